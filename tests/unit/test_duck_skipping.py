"""Conditions that a file's reader is handed: the same rows as without, NaN and zeros with a sign too."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engines import open_table
from farthing.engines.duck import engine as duck_engine
from farthing.engines.duck import stored
from farthing.engines.duck.engine import DuckDBEngine
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, counting
from farthing.sql import parse_predicate

NUMBERS = [-math.inf, -2.5, -0.0, 0.0, 5e-324, 1.0, 2.0, 2.5, 3.0, math.inf, None]
SIGNS = ("<", "<=", ">", ">=", "=", "<>")
CONSTANTS = ("0", "0.0", "-2.5", "2", "2.5", "2.55", "100", "-100", "0.1")


def written(folder, values, kind=None, **more):
    """Write one column, four rows a group, so that statistics exclude many; return the engine."""
    table = pa.table({"x": pa.array(values, kind), "s": pa.array(["a"] * len(values)), **more})
    pq.write_table(table, folder / "x.parquet", row_group_size=4)
    return open_table(folder / "x.parquet", name="data")


def counted(engine, text):
    """Return the rows of a condition."""
    where = parse_predicate(text, engine.schema)
    return int(engine.measure(Query("data", (), None, where, counting("n"), PrivacyUnit(), Bounds()), 7)[0, 0])


def unlike(engine):
    """Return the conditions under which a file counts other rows than its rows in memory, where nothing is skipped."""
    slow = open_table(pq.read_table(engine._sources["farthing_table"].files[0]), name="data")
    texts = [f"x {sign} {constant}" for sign in SIGNS for constant in CONSTANTS]
    texts += ["x >= 2 AND x < 3", "x > 2 AND s = 'a'", "NOT x < 2", "x BETWEEN -1 AND 1"]
    return [text for text in texts if counted(engine, text) != counted(slow, text)]


@pytest.mark.parametrize("values", [NUMBERS, [*NUMBERS, math.nan], [-0.0] * 4 + [0.0] * 4 + [1.0] * 4])
def test_reals_are_counted_whatever_is_skipped(tmp_path, values):
    """Each sign and constant, with NaN in the column and without: the rows that count are the same."""
    assert [] == unlike(written(tmp_path, values))


@pytest.mark.parametrize(
    "kind",
    [pa.decimal128(5, 1), pa.decimal128(9, 3), pa.decimal128(15, 0), pa.decimal128(30, 2), pa.decimal128(38, 22)],
)
def test_decimals_are_counted_whatever_is_skipped(tmp_path, kind):
    """Constants between two decimals and beyond all of them count the same rows too."""
    values = [Decimal(each) for each in (-3, -2, 0, 1, 2, 3, 99)] + [None]
    values += [] if kind.scale == 0 else [Decimal("2.5"), Decimal("-2.5"), Decimal("0.1")]

    assert [] == unlike(written(tmp_path, values, kind))


def test_a_condition_that_nan_meets_is_not_handed_over(tmp_path, monkeypatch):
    """Planted: a column with NaN taken for one without; what others hold then decides whether its row counts."""
    rows = [[1.0, 1.0, 1.0, math.nan], [1.0, 1.0, 9.0, math.nan]]
    found = [counted(written(tmp_path, values), "x >= 5") for values in rows]
    looked = DuckDBEngine._looked_up

    def planted(self, query):
        return duck_engine.replace(
            looked(self, query), own=duck_engine.replace(self._catalog.own, ordered=frozenset("x"))
        )

    monkeypatch.setattr(DuckDBEngine, "_looked_up", planted)

    assert [1, 2] == found
    assert 0 == counted(written(tmp_path, rows[0]), "x >= 5")


def test_nan_is_looked_for_once(tmp_path, monkeypatch):
    """Once a column and state of the file; not at all where no real is compared; again after the file has changed."""
    engine = written(tmp_path, [1.0, 2.0])
    calls, counts, run = [], [], DuckDBEngine._run
    monkeypatch.setattr(DuckDBEngine, "_run", lambda self, *more: calls.append(more) or run(self, *more))
    for text in ("s = 'a'", "x > 1", "x < 2", "x >= 0"):
        counted(engine, text)
        counts.append(len(calls))
    pq.write_table(pa.table({"x": [1.0, math.nan, 3.0], "s": ["a"] * 3}), tmp_path / "x.parquet")

    assert [1, 3, 4, 5] == counts
    assert 2 == counted(engine, "x > 1")
    assert len(calls) == 7


def test_text_that_is_not_utf8_changes_no_other_row(tmp_path):
    """Where rows are read by pyarrow, which filters by rules of its own, the same rows count, and nothing fails."""
    money = pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(9, 3))
    pq.write_table(pa.table({"x": [-0.0, 2.0], "m": money, "s": _bad()}), tmp_path / "x.parquet")
    engine = open_table(tmp_path / "x.parquet", name="data")

    assert 1 == counted(engine, "m >= 2.2 AND (s = 'a' OR s IS NULL)")
    assert 2 == counted(engine, "x >= 0 AND (s = 'a' OR s IS NULL)")
    assert 1 == counted(engine, "x <= 0 AND m < 1.7 AND (s = 'a' OR s IS NULL)")


def _bad():
    """Return two texts, one of which is not UTF-8."""
    return pa.StringArray.from_buffers(2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))


def test_edges_of_decimals():
    """The first decimal that compares so; none where the column cannot hold it."""
    asked = ((">=", 2.55), (">", 2.5), ("<", 2.5), ("<=", -0.01), (">", 9999.9))
    edges = [stored._edge(stored.Operator(sign), value, 5, 1) for sign, value in asked]

    assert ["2.6", "2.6", "2.4", "-0.1", None] == edges
