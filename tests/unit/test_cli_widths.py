"""Tables of the command line on narrow terminals: nothing is wider than the terminal, and nothing is lost."""

from __future__ import annotations

import inspect
from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

import farthing
from farthing.cli import show
from farthing.cli.input.options import BareWide, Wide
from farthing.cli.run import ask, history, status, workload

HEADS = [("id", True), ("when (UTC)", True), ("who", False), ("question", False), ("reserved", True), ("paid", True),
         ("state", False), ("drawn on", False)]  # fmt: skip
LONG = "COUNT(*) AS rides, AVG(minutes in [0, 60]) AS mean FROM rides BY zone [8 groups], within 10 % or 30, 0.95"
ROWS = [(str(i), "2026-11-22 14:48", "alice", LONG, "0.06622", "0.06622", "settled", "") for i in range(3)]


def terminal(width: int) -> Console:
    """Return a console that takes itself for a terminal of some width."""
    return Console(file=StringIO(), width=width, force_terminal=True, color_system=None, highlight=False, markup=False)


def written(out: Console) -> list[str]:
    """Return the lines that were printed."""
    return out.file.getvalue().splitlines()


@pytest.fixture(scope="module")
def answer():
    """An answer with four aggregates in two groups."""
    rides = pa.table({"zone": ["harbour", "airport"] * 400, "minutes": [1.0, 2.0, 3.0, 4.0] * 200})
    clamped = "(CLAMP(minutes, 0, 60))"
    columns = f"COUNT(*) AS rides, AVG{clamped} AS mean, SUM{clamped} AS total, VARIANCE{clamped} AS spread"
    text = f"SELECT zone, {columns} FROM data GROUP BY zone"
    with farthing.Session(rides, budget=farthing.Budget(epsilon=8, delta=1e-6)) as session:
        yield session.sql(
            text,
            keys={"zone": ["harbour", "airport"]},
            absolute={"rides": 90, "mean": 9, "total": 2000, "spread": 400},
            cap="all",
        )


@pytest.mark.parametrize("width", [72, 80, 100, 120])
def test_the_history_fits(width):
    """No line is wider than the terminal; every cell is there, and each question whole."""
    out = terminal(width)
    show.show_entries(out, HEADS, ROWS)
    lines = written(out)
    assert max(map(len, lines)) <= width
    whole = " ".join(" ".join(lines).split())
    assert whole.count(LONG) == len(ROWS)
    assert whole.count("0.06622") == 2 * len(ROWS)
    assert "drawn on" not in whole  # nothing was


@pytest.mark.parametrize("width", [64, 80, 100, 120, 400])
def test_a_wide_answer_fits(answer, width):
    """Columns that do not fit stand in a table of their own, with the keys; each number stands once."""
    out = terminal(width)
    show.show_rows(out, answer, [0, 1])
    lines = written(out)
    assert max(map(len, lines)) <= width
    heads = [line.split() for line in lines if "zone" in line]
    assert [name for head in heads for name in head if name in answer.names] == list(answer.names)
    assert sum("met" in head for head in heads) == 1
    assert sum("harbour" in line for line in lines) == len(heads)
    assert (width < 400) == (len(heads) > 1)


def test_wide_shows_one_line_a_row(answer):
    """With --wide, and in a pipe, nothing is folded."""
    for out, wide in ((terminal(80), True), (Console(file=StringIO(), width=80), False)):
        show.show_rows(out, answer, [0, 1], wide=wide)
        assert sum("harbour" in line for line in written(out)) == 1
    out = terminal(80)
    show.show_entries(out, HEADS, ROWS, wide=True)
    assert sum(LONG in line for line in written(out)) == len(ROWS)


def test_every_command_with_long_tables_has_the_option():
    """What prints answers or entries takes --wide."""
    wanted = (ask.AskOptions if hasattr(ask, "AskOptions") else None, history.history, status.status, workload._show)
    assert [one for one in wanted if one and "wide" not in inspect.signature(one).parameters] == []
    assert Wide.__metadata__[0].help == BareWide.__metadata__[0].help
