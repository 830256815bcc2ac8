"""Opening tables, and the lock on the embedded engine."""

from __future__ import annotations

import threading
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import Csv
from farthing.engines import open_table
from farthing.errors import DataError, InvalidOption
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Type, counting
from farthing.sql import parse_predicate

CONNECTION = duckdb.connect()
TABLE = pa.table({"dest": ["ORD", "ATL", "ORD", None], "delay": [1.0, None, 3.0, 4.0], "tail": ["a", "a", None, "b"]})


def count(engine, by=(), keys=None, *, where=None, unit=None, bounds=None):
    """Return the raw counts of a question."""
    found = Keys.of(by, keys, engine.schema)
    condition = None if where is None else parse_predicate(where, engine.schema)
    return engine.measure(
        Query(engine.name, by, found, condition, counting("count"), PrivacyUnit(unit), bounds or Bounds()), 1
    )[0].tolist()


def csv(path, text="dest,delay\nORD,1.5\nATL,\nORD,3\n"):
    """Write a CSV file."""
    path.write_text(text)
    return path


def test_files_globs_and_names(tmp_path):
    """Paths and patterns open, as text or Path; the name is the stem, or given, or "data" for a pattern."""
    (tmp_path / "rides.2013.csv").write_text("dest,delay\nORD,1\n")
    (tmp_path / "rides.2014.csv").write_text("dest,delay\nORD,2\nATL,3\n")
    pq.write_table(TABLE, tmp_path / "it's flights.parquet")
    one = open_table(Csv(tmp_path / "rides.2013.csv"))
    both = open_table(Csv(str(tmp_path / "rides.*.csv")))
    parquet = open_table(tmp_path / "it's flights.parquet", name="flights")

    assert ("rides", "data", "flights") == (one.name, both.name, parquet.name)
    assert count(one) == [1]
    assert count(both, ("dest",), {"dest": ["ATL", "ORD"]}) == [1, 2]
    assert count(parquet, ("dest",), {"dest": ["ATL", "ORD", None, "JFK"]}) == [1, 2, 1, 0]


def test_a_file_that_comes_later_is_no_part_of_a_glob(tmp_path):
    """The files are those found at opening."""
    csv(tmp_path / "a.csv")
    engine = open_table(Csv(tmp_path / "*.csv"))
    csv(tmp_path / "b.csv")

    assert count(engine) == [3]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.csv", "", "the file is empty"),
        ("empty.parquet", "", "the file is empty"),
        ("broken.parquet", "not a parquet file at all", "cannot be read"),
        ("notes.docx", "x", "neither Parquet nor CSV"),
    ],
)
def test_unusable_files(name, text, words, tmp_path):
    """A file that holds no table is refused at opening."""
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=words):
        open_table(Csv(tmp_path / name) if name.endswith(".csv") else tmp_path / name)


def test_missing_files_folders_and_patterns(tmp_path):
    """What is not there, a folder, a pattern without a match and an address are refused at opening."""
    csv(tmp_path / "a.csv")
    pq.write_table(TABLE, tmp_path / "a.parquet")
    cases = {
        "missing": "no such file",
        "*.parquetx": "no file matches",
        "": "a folder is not a table",
        "a.*": "Parquet and CSV",
    }
    for name, words in cases.items():
        with pytest.raises(DataError, match=words):
            open_table(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    there = tmp_path / "a.parquet"
    for place in ("source", "public", "protected"):
        for name, words in {"missing.csv": "no such file", "folder.csv": "a folder is not a table"}.items():
            for path in (tmp_path / name, str(tmp_path / name), Csv(tmp_path / name)):
                with pytest.raises(DataError, match=words):
                    open_table(**{"source": there, place: path if place == "source" else {"x": path}})
    for name in ("x" * 300 + ".csv", "null\0.csv"):
        with pytest.raises(DataError, match="no such file"):
            open_table(name)
    with pytest.raises(DataError, match="not a local file"):
        open_table("https://example.org/flights.csv")
    for thing in (5, None, [1], {"a": 1}, object()):
        with pytest.raises(DataError, match="not a table"):
            open_table(thing)


def test_check_sees_a_lost_file(tmp_path):
    """A file that is gone, or was emptied, is noticed before anything is charged."""
    path = csv(tmp_path / "a.csv")
    engine = open_table(Csv(path))
    engine.check()
    path.write_text("")
    with pytest.raises(DataError, match="empty"):
        engine.check()
    path.unlink()
    with pytest.raises(DataError, match="no such file"):
        engine.check()


@pytest.mark.parametrize("lines", ["dest\nORD\n", "dest\nORD,1\n", "d\xe9st\nORD\n"])
def test_csv_files_of_which_nothing_says_how_they_are_read_are_refused(lines, tmp_path):
    """By their names alone, whatever is in them, in whatever place: what fits and what would be left out."""
    (tmp_path / "a.csv").write_text(lines, encoding="latin-1")
    pq.write_table(TABLE, tmp_path / "b.parquet")
    there = tmp_path / "b.parquet"
    for path in (tmp_path / "a.csv", str(tmp_path / "*.csv")):
        for place in ({"source": path}, {"public": {"x": path}}, {"protected": {"x": path}}):
            with pytest.raises(InvalidOption, match="nothing says how the CSV table") as refused:
                open_table(**{"source": there, **place})
            assert "[csv." in refused.value.next_step


def test_header_only_is_a_table_without_rows(tmp_path):
    """A CSV of a header alone answers zero."""
    assert count(open_table(Csv(csv(tmp_path / "a.csv", "dest,delay\n")))) == [0]


def test_a_csv_row_that_does_not_fit_is_left_out(tmp_path):
    """A value of another type is NULL, and a line of another width no row: an error would tell of it."""
    lines = ["dest,delay", *(f"ORD,{n}" for n in range(30_000)), "secret,text", "ORD,1", "a,b,c,d"]
    path = csv(tmp_path / "a.csv", "\n".join(lines) + "\n")
    engine = open_table(Csv(path, columns={"delay": "integer"}))

    assert engine.schema.require("delay") is Type.INTEGER
    assert count(engine, where="delay >= 0") == [30_001]
    assert count(engine) == [30_002]


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).lazy(),
        CONNECTION.from_arrow(TABLE),
    ],
    ids=["arrow", "pandas", "polars", "lazy", "relation"],
)
def test_frames(table):
    """Frames of every library count the same, for rows and for units."""
    engine = open_table(table)
    keys = {"dest": ["ATL", "ORD", None, "JFK"]}

    assert engine.name == "data"
    assert count(engine) == [4]
    assert count(engine, ("dest",), keys) == [1, 2, 1, 0]
    assert count(engine, ("dest",), keys, where="delay > 2 OR delay IS NULL") == [1, 1, 1, 0]
    assert count(engine, ("dest",), keys, unit="tail", bounds=Bounds(4, 1)) == [1, 1, 1, 0]
    assert sum(count(engine, ("dest",), keys, unit="tail", bounds=Bounds(1, 1))) == 2
    assert count(engine, unit="tail", bounds=Bounds(max_rows=1)) == [2]


def test_unusual_columns_are_read_totally():
    """Decimals are doubles, categories texts, and wide or nested columns can only be counted or be units."""
    table = pa.table(
        {
            "price": pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(38, 2)),
            "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
            "ns": pa.array([0, 1, 2], pa.timestamp("ns")),
            "s": pa.array([0, 2**62, 2], pa.timestamp("s")),
            "zone": pa.array([0, 1, 2], pa.timestamp("us", tz="UTC")),
            "list": pa.array([[1], [1], None]),
            "small": pa.array([1, 2, 3], pa.uint8()),
            "REAL": pa.array([0.5, 0.1, None], pa.float32()),
        }
    )
    engine = open_table(table)
    kinds = [kind.value for _, kind in engine.schema.columns]

    assert kinds == ["decimal", "string", "timestamp", "timestamp", "timestamp", "other", "integer", "float"]
    assert count(engine, ("price",), {"price": [1.1, 2.2, None]}) == [1, 1, 1]
    assert count(engine, ("kind",), {"kind": ["y", "x"]}) == [1, 2]
    assert count(engine, where="small < 99999 AND price >= 1.1") == [2]
    assert count(engine, where="s > '2013-01-01' OR list IS NULL OR zone IS NULL") == [1]
    assert count(engine, where="ns = '1970-01-01'") == [3]
    assert count(engine, unit="list", bounds=Bounds(max_rows=5)) == [2]
    assert count(engine, ("small",), {"small": [2**63 - 1, 1]}) == [0, 1]
    assert count(engine, ("REAL",), {"REAL": [0.5]}) == [1]


def test_decimal_units_are_not_merged():
    """Units that one double would merge stay apart."""
    big = 10**20
    table = pa.table({"u": pa.array([Decimal(big), Decimal(big + 1)], pa.decimal128(38, 0))})

    assert count(open_table(table), unit="u", bounds=Bounds(max_rows=1)) == [2]


def test_mixed_or_twin_columns_are_refused():
    """A pandas column of mixed types and columns that differ in case only are refused at opening, without values."""
    with pytest.raises(DataError, match="mixed") as caught:
        open_table(pd.DataFrame({"a": [1, "secret"]}))
    with pytest.raises(DataError, match="two columns"):
        open_table(pa.table({"a": [1], "A": [2]}))

    assert "secret" not in str(caught.value)


HIDDEN = pa.table({"x": [1]})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM HIDDEN",
        "SELECT * FROM hidden",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET GLOBAL enable_external_access = true",
        "SET python_enable_replacements = true",
        "RESET lock_configuration",
        "COPY (SELECT 1) TO '/tmp/farthing-leak.csv'",
        "ATTACH '/tmp/farthing-leak.db'",
        "SELECT * FROM read_parquet('/tmp/*.parquet')",
        "SELECT getenv('HOME')",
        "CREATE SECRET (TYPE s3)",
    ],
)
@pytest.mark.parametrize("kind", ["file", "frame"])
def test_the_embedded_engine_is_locked(kind, sql, tmp_path):
    """Even SQL that got past everything else reads no file, no variable, loads nothing and changes no setting."""
    hidden = HIDDEN  # noqa: F841  # the SQL tries to read it
    engine = open_table(Csv(csv(tmp_path / "a.csv")) if kind == "file" else TABLE)
    for connection in (engine._connection, engine._connection.cursor()):
        with pytest.raises(duckdb.Error):
            connection.execute(sql).fetchall()


def test_threads_may_share_an_engine(tmp_path):
    """Questions asked at once, with keys of their own, do not disturb each other."""
    pq.write_table(pa.table({"g": np.arange(100_000) % 7, "u": np.arange(100_000) % 1000}), tmp_path / "t.parquet")
    for engine in (open_table(tmp_path / "t.parquet"), open_table(pq.read_table(tmp_path / "t.parquet"))):
        expected = np.bincount(np.arange(100_000) % 7)
        wrong = []

        def ask(start, engine=engine, expected=expected, wrong=wrong):
            for _ in range(5):
                keys = [(start + step) % 7 for step in range(7)]
                if count(engine, ("g",), {"g": keys}) != expected[keys].tolist():
                    wrong.append(start)

        threads = [threading.Thread(target=ask, args=(start,)) for start in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert wrong == []


def test_columns_with_odd_names(tmp_path):
    """Names with quotes, spaces, dots and other scripts are columns like any other."""
    names = ['a"b', "a b", "select", "a.b", "日本", "i", "k0", "u", "n", "farthing_table"]
    table = pa.table({name: ["x", "y"] for name in names})
    pq.write_table(table, tmp_path / "odd.parquet")
    for source in (table, tmp_path / "odd.parquet", pl.from_arrow(table), CONNECTION.from_arrow(table)):
        engine = open_table(source)

        assert [count(engine, (name,), {name: ["y", "z"]}) for name in names] == [[1, 0]] * len(names)
        assert count(engine, ("i", "k0"), {"i": ["x"], "k0": ["x", "y"]}, unit="u", bounds=Bounds(1, 1)) == [1, 0]
        assert count(engine, ("n",), {"n": ["x"]}, unit='a"b', bounds=Bounds(1, 1)) == [1]
