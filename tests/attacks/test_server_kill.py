"""A server that is killed in the middle of questions, and a proxy that loses responses: nothing lost or paid twice."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.thorough, pytest.mark.fresh_bits]


@pytest.fixture(scope="module")
def bench():
    """The script bench/speed/server.py as a module."""
    path = Path(__file__).parents[2] / "bench" / "speed" / "server.py"
    spec = importlib.util.spec_from_file_location("bench_server", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules["bench_server"] = made  # dataclasses look their module up
    before = list(sys.path)
    spec.loader.exec_module(made)
    sys.path[:] = before  # it finds its neighbours by it
    return made


@pytest.mark.parametrize("part", ["kills", "lost"])
def test_nothing_is_lost_and_nothing_is_paid_twice(bench, part, tmp_path):
    """Few kills and few lost responses; the script itself does hundreds."""
    bench.write(10_000, tmp_path / bench.TABLE)
    found = bench.PARTS[part](tmp_path, argparse.Namespace(kills=2, lost=4, workers=1))

    assert found["charged twice"] == 0
    assert found.get("answers lost", 0) == found.get("paid, not charged", 0) == 0
    assert sum(found.values()) > 0
