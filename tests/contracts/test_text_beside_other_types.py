"""Text that is not UTF-8 makes pyarrow read a Parquet file instead of DuckDB: both read every column as one type."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing
from farthing.engines.duck import engine as duck
from farthing.engines.opening import open_table
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Query, counting
from farthing.sql import parse_predicate

COLUMNS = (
    "('00000000-0000-0000-0000-00000000000' || i % 3)::UUID AS id",
    "TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS fine",
    "TIMESTAMP_MS '2020-01-01 00:00:00.123' AS coarse",
    "TIMESTAMPTZ '2020-01-01 12:00:00+00' AS zoned",
    "(i / 4)::DECIMAL(10, 2) AS price",
    "TIME '01:02:03' AS hour",
    """'{"a": 1}'::JSON AS doc""",
    "i AS x",
    "i::UTINYINT AS small",
    "1::HUGEINT AS huge",
    "'ab'::BLOB AS raw",
    "[1, 2] AS list",
    "INTERVAL 1 DAY AS span",
    "TIMETZ '01:02:03+01' AS clock",
)
WRITTEN = {
    "int96": (pa.array([0, 10**18, None, 5], pa.timestamp("ns")), True),
    "seconds": (pa.array([0, 10**9, None, 5], pa.timestamp("s")), False),
    "half": (pa.array([1.5, None, 2, 3], pa.float16()), False),
    "duration": (pa.array([1, None, 2, 3], pa.duration("us")), False),
    "nanos": (pa.array([1, None, 2, 3], pa.time64("ns")), False),
    "large": (pa.array([1, None, 2, 3], pa.decimal256(40, 2)), False),
    "category": (pa.array(["a", None, "b", "a"]).dictionary_encode(), False),
}


def typed(folder):
    """Return a table of many types as DuckDB writes it."""
    path = folder / "typed.parquet"
    duckdb.connect().sql(f"SELECT {', '.join(COLUMNS)} FROM range(5) t(i)").write_parquet(str(path))
    return pq.read_table(path)


def outcome(data, path, column, where, unit=None, *, int96=False):
    """Return what comes of counting where a condition on the text holds and the column is there."""
    pq.write_table(data, path, use_deprecated_int96_timestamps=int96)
    engine = open_table(path, name="t")
    try:
        predicate = parse_predicate(where.format(column), engine.schema)
        query = Query(
            "t",
            (),
            None,
            predicate,
            counting("count"),
            PrivacyUnit(unit),
            farthing.Bounds(max_rows=5 if unit else None),
        )
        engine.fingerprint(query)
    except UnsupportedQuery as refused:
        return str(refused)
    return engine.measure(query, 0).tolist()


def with_text(data, last):
    """Return a table with a text column: a NULL, then these bytes."""
    values = [*(b"ann", b"bob", b"ann")[: len(data) - 2], None, last]
    names = pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())
    return data.append_column("name", names)


def both(data, folder, column, where, unit=None, *, int96=False):
    """Return the outcomes with text that is not UTF-8 and with NULL in its place."""
    return [
        outcome(with_text(data, last), folder / f"{n}.parquet", column, where, unit, int96=int96)
        for n, last in enumerate((None, b"\xff\xfe"))
    ]


@pytest.mark.parametrize("column", [text.split(" AS ")[-1] for text in COLUMNS])
def test_the_outcome_does_not_depend_on_one_rows_text(column, tmp_path):
    """An answer or a refusal, with the bad row and without it; as a condition and as the unit."""
    data = typed(tmp_path)

    for where in ("name = 'ann' AND {} IS NOT NULL", "name IS NULL OR {} IS NULL"):
        usual, odd = both(data, tmp_path, column, where)
        assert usual == odd
    if column in {"id", "x", "price", "small"}:
        usual, odd = both(data, tmp_path, column, "name IS NOT NULL", column)
        assert usual == odd == [[3]]


@pytest.mark.parametrize("kind", WRITTEN)
def test_types_that_pyarrow_writes(kind, tmp_path):
    """Values and not only types are alike: the same rows hold a condition on the column."""
    values, int96 = WRITTEN[kind]
    data = pa.table({"c": values})
    usual, odd = both(data, tmp_path, "c", "name IS NOT NULL AND {} IS NOT NULL", int96=int96)

    assert usual == odd
    if kind in {"int96", "seconds"}:
        moment = "name IS NOT NULL AND {} = CAST('1970-01-01 00:00:00' AS TIMESTAMP)"
        assert [[[1]]] * 2 == both(data, tmp_path, "c", moment, int96=int96)


def test_only_what_is_read_in_two_ways_is_out_of_reach(tmp_path):
    """Intervals and times with a zone beside text; all others can be asked about, and without text these too."""
    data = typed(tmp_path)
    pq.write_table(with_text(data, None), tmp_path / "t.parquet")
    whole = {text.split(" AS ")[-1] for text in COLUMNS}

    assert whole | {"name"} == set(open_table(tmp_path / "t.parquet", name="t").schema.names)
    assert whole - set(open_table(tmp_path / "typed.parquet", name="t").schema.names) <= {"span", "clock"}


def test_without_the_types_of_duckdb_a_row_decides(tmp_path, monkeypatch):
    """Planted: where pyarrow's own types are handed over, the bad row is noticed."""
    monkeypatch.setattr(duck, "_apart", lambda *_: frozenset())
    values, _ = WRITTEN["large"]
    data = pa.table({"c": values})

    with pytest.raises(farthing.DataError):
        both(data, tmp_path, "c", "name IS NOT NULL AND {} IS NOT NULL")
