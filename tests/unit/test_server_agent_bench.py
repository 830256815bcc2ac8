"""The agents of bench/agents.py in small: exact answers give secrets away, budgets by session add up, ours is one."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="NOT TESTED: agents need the extra mcp")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def bench():
    """The script as a module, with few sessions and few levels."""
    path = Path(__file__).parents[2] / "bench" / "agents.py"
    spec = importlib.util.spec_from_file_location("bench_agents", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules["bench_agents"] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    made.SESSIONS, made.ASKS, made.LEVELS = 4, 2, [4.0, 32.0, 256.0]
    return made


@pytest.fixture(scope="module")
def table(bench):
    """Few people."""
    return bench.people(4_000)


def attacked(bench, table, kind, door, agent):
    """Let an agent guess two secrets."""
    return asyncio.run(bench.attacked(kind, door, agent, table, 2))


@pytest.mark.parametrize("door", ["tools", "wire"])
@pytest.mark.parametrize("agent", ["differencing", "injected"])
def test_exact_answers_give_every_secret(bench, table, door, agent):
    """The agents are good enough: where numbers are exact, they get all that they are after."""
    assert attacked(bench, table, "exact", door, agent)["right"] == 2


def test_a_budget_for_each_session_is_no_budget(bench, table):
    """Each visit has the whole budget again: four sessions of two questions are given 0.8 a secret, without an end."""
    assert attacked(bench, table, "fixed", "tools", "splitting")["epsilon"] == pytest.approx(1.6)


@pytest.mark.parametrize(("door", "agent"), [("tools", "injected"), ("wire", "injected"), ("wire", "splitting")])
def test_one_ledger_gives_one_budget(bench, table, door, agent):
    """However many come and whatever they say, all of them together are given at most the one budget."""
    assert 0 < attacked(bench, table, "ours", door, agent)["epsilon"] <= 1


def test_useful_questions_are_many(bench):
    """Sixty questions, all different."""
    assert len(set(bench.useful())) == 60
