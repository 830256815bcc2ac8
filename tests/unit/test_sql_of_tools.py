"""What dashboards and libraries send: each text of tests/golden/tools is read as the file beside it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot

from farthing.errors import FarthingError
from farthing.query import Schema, Type
from farthing.sql import parse

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "tools"
RIDES = Schema.of(
    {"rider": Type.STRING, "zone": Type.INTEGER, "fare": Type.FLOAT, "day": Type.DATE, "at": Type.TIMESTAMP}
)
ZONES = Schema.of({"id": Type.INTEGER, "borough": Type.STRING})
TOOLS = sorted(path.stem for path in FOLDER.glob("*.sql"))


def texts(tool):
    """Return what a tool does, and the text that it sends, of each of its questions."""
    blocks = (FOLDER / f"{tool}.sql").read_text(encoding="utf-8").split(";\n")
    return [tuple(part.strip() for part in block.strip().removeprefix("-- ").split("\n", 1)) for block in blocks]


def asked(text):
    """Return what a text asks for."""
    return parse(text, table="rides", schema=RIDES, tables={"zones": ZONES}, public=frozenset({"zones"}), unit="rider")


def told(text):
    """Return how a text is read, in words: a line for each part of the question; or its refusal."""
    refusal = found = None
    try:
        found = asked(text)
    except FarthingError as problem:
        refusal = problem
    if found is None:
        return [f"refused: {refusal.what.removeprefix('refused: ')}", f"next: {refusal.next_step}"]
    named = dict(found.groupings)
    lines = [f"column {name}: {named.get(name, name)}" for name in found.by]
    lines += [f"column {output.name}: {output.aggregate}" for output in found.outputs]
    lines += [str(join) for join in found.joins]
    lines += [] if found.where is None else [f"WHERE {found.where}"]
    after = found.aftermath
    lines += [f"column {one.name}: {one}" for one in after.comparisons]
    lines += [] if after.having is None else [f"HAVING {after.having}"]
    order = ", ".join(f"{key.key}{' DESC' if key.descending else ''}" for key in after.order)
    return lines + ([f"ORDER BY {order}"] if order else []) + ([] if after.limit is None else [f"LIMIT {after.limit}"])


def page(tool):
    """Return how all texts of a tool are read."""
    blocks = (f"-- {what}\n" + "\n".join(told(text)) for what, text in texts(tool))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("tool", TOOLS)
def test_texts_of_tools_are_read_as_before(tool):
    """The golden file says for each text which columns, rows and groups are asked, or why it is refused."""
    assert (FOLDER / f"{tool}.txt").read_text(encoding="utf-8") == page(tool)


def test_most_texts_are_answered_and_refusals_are_announced():
    """A text is refused where its own heading says so, and nowhere else."""
    assert {"dbt", "grafana", "metabase", "pandas", "power_bi", "superset", "tableau"} == set(TOOLS)
    for tool in TOOLS:
        for what, text in texts(tool):
            refused = told(text)[0].startswith("refused: ")
            assert ("refused" in what) == refused, (tool, what, told(text))


@pytest.mark.parametrize("tool", TOOLS)
def test_texts_survive_the_wire(tool):
    """The PostgreSQL wire reads a text and writes it anew: that is the same question."""
    for _, text in texts(tool):
        (again,) = sqlglot.transpile(text, read="postgres", write="postgres")
        assert told(text) == told(again) or "refused" in told(text)[0], (text, again)
