"""Moments and times of day in Parquet that no calendar has: they are NULL, and fail neither a file nor a question."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing
from farthing.engines import open_table
from farthing.engines.duck import database, engine
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, counting
from farthing.sql import parse, parse_predicate

FAR = [-(2**63), -(2**63) + 1, -(2**62), 2**62, 2**63 - 1]
MOMENTS = [pa.timestamp(unit, zone) for unit in ("ms", "us") for zone in (None, "UTC")]
SIDE = pa.table({"k": [0, 1], "w": [1, 2]})
TEXTS = (
    "SELECT COUNT(*) FROM data",
    "SELECT COUNT(*) FROM data WHERE x >= 0 AND s = 'a'",
    "SELECT COUNT(*) FROM data WHERE t < TIMESTAMP '2020-01-01 00:00:00'",
    "SELECT COUNT(*) FROM data WHERE t = TIMESTAMP '1970-01-01 00:00:00.001' AND s = 'a'",
    "SELECT COUNT(*) FROM data WHERE EXTRACT(year FROM t) = 1970 OR t IS NULL",
    "SELECT COUNT(*) FROM data JOIN side ON data.x = side.k",
    "SELECT COUNT(*) FROM data JOIN side ON data.x = side.k WHERE t IS NOT NULL",
)


def written(path, values, kind, **how):
    """Write a table with a column of these whole numbers as a type; return its path."""
    column = pa.array(values, pa.int64()).view(kind)
    rows = {"x": [place % 3 for place in range(len(values))], "t": column, "s": ["a"] * len(values)}
    pq.write_table(pa.table(rows), path, **how)
    return path


def counts(path):
    """Return what every question counts, or the kind of its error."""
    data, found = open_table(path, name="data", public={"side": SIDE}), []
    for text in TEXTS:
        asked = parse(text, table="data", schema=data.schema, tables=data.tables, public=data.public)
        query = Query("data", (), None, asked.where, asked.outputs, PrivacyUnit(), Bounds(), joins=asked.joins)
        try:
            found.append(int(data.measure(query, 1)[0, 0]))
        except farthing.DataError:
            found.append("failed")
    return found


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("kind", MOMENTS, ids=str)
def test_far_moments_are_null(kind, statistics, tmp_path):
    """The file opens, and each question counts what it counts with NULL in their places."""
    tick = {"ms": 1, "us": 1_000}[kind.unit]
    near = [0, tick, tick, None]

    for far in FAR:
        usual = counts(written(tmp_path / "near.parquet", [*near, None], kind, write_statistics=statistics))
        assert usual == counts(written(tmp_path / "far.parquet", [*near, far], kind, write_statistics=statistics))
        assert usual == [5, 5, 3, 2, 5, 4, 2]


def test_the_embedded_engine_would_fail_on_them(tmp_path, monkeypatch):
    """Planted: times of milliseconds are scanned as all others; then statistics fail questions that read others."""
    for module in (database, engine):
        monkeypatch.setattr(module, "held_back", lambda _: frozenset())

    for statistics in (True, False):
        path = written(tmp_path / "far.parquet", [0, 1, 1, None, FAR[0]], MOMENTS[0], write_statistics=statistics)
        assert ("failed" if statistics else 5) == counts(path)[0]
        assert "failed" == counts(path)[2]


@pytest.mark.parametrize(("kind", "odd"), [
    *((pa.time64("ns"), each) for each in (-1, 2**63 - 1)),
    *((pa.time64("us"), each) for each in (-1, -(2**63))),
], ids=str)  # fmt: skip
def test_times_of_day_that_no_clock_tells(kind, odd, tmp_path):
    """The file opens, and its rows are counted; DuckDB's list of statistics fails on it, or ends the process."""
    for values in ([0, 1, None], [0, 1, odd]):
        data = open_table(written(tmp_path / "data.parquet", values, kind), name="data")
        query = Query("data", (), None, parse_predicate("x >= 0", data.schema), counting("n"), PrivacyUnit(), Bounds())
        assert [[3]] == data.measure(query, 1).tolist()


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_lists_of_far_moments_are_out_of_reach(zone, tmp_path):
    """What holds times of milliseconds cannot be asked about, and fails nothing beside it."""
    far = pa.array([0, FAR[0]], pa.int64()).view(pa.timestamp("ms", zone))
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), far)
    pq.write_table(pa.table({"x": [1, 2], "l": nested, "t": far}), tmp_path / "data.parquet")
    data = open_table(tmp_path / "data.parquet", name="data")

    assert ("x", "t") == data.schema.names
    for text in ("x > 0", "t IS NULL OR x > 0"):
        query = Query("data", (), None, parse_predicate(text, data.schema), counting("n"), PrivacyUnit(), Bounds())
        assert [[2]] == data.measure(query, 1).tolist()


def test_names_that_differ_in_letters_alone_are_refused_beside_them(tmp_path):
    """DuckDB names the second column anew, and so would scan it."""
    far = pa.array([0], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"t": far, "T": far}), tmp_path / "data.parquet")

    with pytest.raises(farthing.DataError, match="the same name"):
        open_table(tmp_path / "data.parquet", name="data")
