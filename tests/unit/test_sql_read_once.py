"""How often the text of a question is parsed: once, however many steps read it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
import pytest
from sqlglot.parser import Parser

import farthing
from farthing.sql import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ZONES = {"zone": [0, 1]}
TEXTS = [f"SELECT zone, COUNT(*) AS n FROM rides WHERE fare > {bound} GROUP BY zone" for bound in range(12)]


@pytest.fixture
def parsed() -> Iterator[Callable[[], list[str]]]:
    """Give the questions that were parsed since, after everything that is kept was dropped."""
    text._short_tree.cache_clear()
    text._long_tree.cache_clear()
    with patch.object(Parser, "parse", autospec=True, side_effect=Parser.parse) as called:
        yield lambda: [call.args[2] for call in called.call_args_list if "rides" in call.args[2]]  # and no template


def _session() -> farthing.Session:
    """Return a session of a few rides."""
    rides = pa.table({"zone": [0, 1] * 50, "fare": [float(row) for row in range(100)]})
    return farthing.Session(rides, name="rides", budget=farthing.Budget(epsilon=50, delta=1e-6))


def test_a_question_is_parsed_once_however_often_it_is_asked(parsed: Callable[[], list[str]]) -> None:
    """What reads the text, what prices it and what asks it share one tree."""
    with _session() as session:
        session.sql(TEXTS[0], keys=ZONES, absolute=50)
        session.sql(TEXTS[0], keys=ZONES, absolute=50)

    assert len(parsed()) == 1


@pytest.mark.parametrize("strategy", ["each", "together"])
def test_a_workload_parses_each_of_its_texts_once(parsed: Callable[[], list[str]], strategy: str) -> None:
    """All are read before the first is planned, and planned before the first is asked: the trees are kept meanwhile."""
    with _session() as session:
        session.workload([{"text": asked, "keys": ZONES} for asked in TEXTS], absolute=50, strategy=strategy)

    assert len(parsed()) == len(TEXTS)


def test_a_long_text_is_parsed_once_too(parsed: Callable[[], list[str]]) -> None:
    """Of long texts the latest few are kept."""
    listed = ", ".join(map(str, range(500)))
    with _session() as session:
        session.sql(f"SELECT COUNT(*) AS n FROM rides WHERE zone IN ({listed})", absolute=50)

    assert len(parsed()) == 1
