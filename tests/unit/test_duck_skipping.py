"""Conditions that a file's reader is handed: the same rows as without, NaN and zeros with a sign too."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.engines import open_table
from farthing.engines.duck import stored
from farthing.engines.duck.engine import DuckDBEngine
from farthing.engines.sources import Files
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, NamedAggregate, Query, counting
from farthing.query.aggregates import Count, Sum
from farthing.sql import parse_predicate, parse_scalar

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


CONDITIONS = (
    *(f"x {sign} {constant}" for sign in SIGNS for constant in CONSTANTS),
    *("x >= 2 AND x < 3", "x > 2 AND s = 'a'", "NOT x < 2", "x BETWEEN -1 AND 1"),
)
COMPUTED = ("x + 1 > 5", "-x < -5", "x - 9 >= 0", "abs(x) <= 100", "x * 2 <= 100", "x / 2 > 50", "round(x) > 5",
            "least(x, 7) < 5", "sqrt(x) IS NULL", "x = x", "x + 1 BETWEEN 0 AND 90", "CASE WHEN x > 5 THEN 1 END = 1",
            "CAST(x AS INTEGER) IS NOT NULL", "nullif(x, 1) > 90", "x + 0 <> 1", "x IN (1, 2)")  # fmt: skip
"""Conditions on what is computed of a column: from DuckDB 2 on the least and the greatest value go with them."""


def unlike(engine, texts=CONDITIONS):
    """Return the conditions under which a file counts other rows than its rows in memory, where nothing is skipped."""
    slow = open_table(pq.read_table(engine._sources["farthing_table"].files[0]), name="data")
    return [text for text in texts if counted(engine, text) != counted(slow, text)]


@pytest.mark.parametrize("values", [NUMBERS, [*NUMBERS, math.nan], [-0.0] * 4 + [0.0] * 4 + [1.0] * 4])
def test_reals_are_counted_whatever_is_skipped(tmp_path, values):
    """Each sign and constant, with NaN in the column and without: the rows that count are the same."""
    assert [] == unlike(written(tmp_path, values))


@pytest.mark.parametrize("kind", [pa.decimal128(5, 1), pa.decimal128(9, 3), pa.decimal128(15, 0), pa.decimal128(30, 2)])
def test_decimals_are_counted_whatever_is_skipped(tmp_path, kind):
    """Constants between two decimals and beyond all of them count the same rows too."""
    values = [Decimal(each) for each in (-3, -2, 0, 1, 2, 3, 99)] + [None]
    values += [] if kind.scale == 0 else [Decimal("2.5"), Decimal("-2.5"), Decimal("0.1")]

    assert [] == unlike(written(tmp_path, values, kind))


def test_decimals_of_no_digit_before_the_point(tmp_path):
    """DuckDB takes no number with an exponent for such a decimal; large ones and small ones are read alike."""
    values = [Decimal(f"{sign}0.{tenths}") for sign in ("", "-") for tenths in ("9", "1", "0000005", "00000091")]

    for kind in (pa.decimal128(22, 22), pa.decimal128(22, 21)):
        assert [] == unlike(written(tmp_path, [*values, Decimal(0), None], kind))


SMALL = [1.0, 1.0, 1.0, math.nan]
"""Rows of which a reader knows that none but NaN is above 1."""


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_counted_whatever_is_beside_it(tmp_path, kind):
    """Conditions on a column, and on what is computed of it: other rows decide for none whether it meets them."""
    for beside in ([], [9.0] * 4, [-9.0] * 4, [math.inf] * 4, [math.nan] * 4, [None] * 4):
        assert [] == unlike(written(tmp_path, SMALL + beside, kind), (*COMPUTED, "x >= 5", "x <= 5", "x <> 1"))


@pytest.mark.parametrize("value", ["x", "-x", "CASE WHEN x > 3 THEN x ELSE 0 END", "least(x, 3)", "x * x", "x + 1"])
def test_nan_is_added_whatever_is_beside_it(tmp_path, value):
    """Values and sums of files are those of their rows in memory, where these are enough to be no dictionary too."""
    for rows in (SMALL, [*SMALL, 9.0], [*(place / 7 for place in range(4_000)), math.nan, math.nan]):
        engine = written(tmp_path, rows)
        slow = open_table(pq.read_table(tmp_path / "x.parquet"), name="data")
        scalar = parse_scalar(value, engine.schema)
        outputs = (NamedAggregate("n", Count(scalar)), NamedAggregate("s", Sum(scalar, 0.0, 100.0)))
        query = Query("data", (), None, None, outputs, PrivacyUnit(), Bounds())

        assert slow.measure(query, 7).tolist() == engine.measure(query, 7).tolist()


def test_a_column_with_nan_is_not_read_as_one_without(tmp_path, monkeypatch):
    """Planted: a column with NaN taken for one without; what others hold then decides whether its row counts."""
    rows = [SMALL, [1.0, 1.0, 9.0, math.nan]]
    found = [counted(written(tmp_path, values), "x >= 5") for values in rows]
    monkeypatch.setattr(DuckDBEngine, "_without_nan", lambda *_: True)

    assert [1, 2] == found
    assert 0 == counted(written(tmp_path, rows[0]), "x >= 5")


def test_readers_are_told_that_nan_may_be_there(tmp_path, monkeypatch):
    """Planted: files are scanned as if no column of reals held NaN, as DuckDB does by itself."""
    monkeypatch.setattr(Files, "scan", Files.scan_of_numbers)

    assert 0 == counted(written(tmp_path, SMALL), "x >= 5")


def test_another_column_with_nan_is_looked_at_too(tmp_path):
    """Beside a comparison with a column of numbers, a column that holds NaN counts for as much as it did alone."""
    table = pa.table({"x": [1.0, 1.0, 1.0, 2.0], "y": SMALL, "s": ["a"] * 4})
    pq.write_table(table, tmp_path / "x.parquet")
    texts = [f"x >= 1 AND {text.replace('x', 'y')}" for text in ("x + 1 > 5", "abs(x) <= 100", "x > 5")]

    assert [] == unlike(open_table(tmp_path / "x.parquet", name="data"), texts)


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
