"""One row's text that is not UTF-8: NULL in that row, on every road, and no error, whatever a question does with it."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing
from farthing.engines.duck.engine import DuckDBEngine
from farthing.engines.opening import arrow_of, open_table, source_of
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Query, counting
from farthing.sql import parse_predicate

pytestmark = pytest.mark.thorough

BROKEN = (b"\xff\xfe", b"\xed\xa0\x80", b"ok\xc3", b"\xc0\xaf")
KINDS = (pa.string(), pa.large_string(), pa.string_view())
PREDICATES = (
    None,
    "name = 'bob'",
    "name IS NULL",
    "name IS NOT NULL",
    "LOWER(name) LIKE '%o%' OR x > 2",
    "LENGTH(TRIM(name)) > 1",
    "CAST(name AS INTEGER) IS NULL",
    "name > 'b' AND x < 10",
)


def table(odd, kind=KINDS[0]):
    """Return a table in which one person's name has exactly these bytes."""
    values = [b"ann", b"bob", None, "zoë".encode(), *(b"many" for _ in range(3000)), odd, b"bob"]
    wide = kind == pa.large_string()
    data = pa.array(values, pa.large_binary() if wide else pa.binary())
    array = pa.Array.from_buffers(kind if wide else pa.string(), len(values), data.buffers())
    if kind == pa.string_view():
        array = pa.array(values, pa.binary_view()).view(kind)
    return pa.table({"name": array, "x": pa.array(range(len(values)))})


def rows(data, predicate, folder=None):
    """Return how many rows hold a predicate, in memory or from Parquet in several row groups."""
    if folder is not None:
        pq.write_table(data, folder / "t.parquet", row_group_size=1000)
        data = folder / "t.parquet"
    engine = open_table(data, name="t")
    where = None if predicate is None else parse_predicate(predicate, engine.schema)
    query = Query("t", (), None, where, counting("count"), PrivacyUnit(None), farthing.Bounds())
    return engine.measure(query, 0).tolist()


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("road", ["parquet", *KINDS], ids=str)
@pytest.mark.parametrize("odd", BROKEN, ids=repr)
def test_odd_text_is_null_in_its_row(road, predicate, odd, tmp_path):
    """Every question has the answer of the same table with NULL in that place."""
    folder, kind = (tmp_path, pa.string()) if road == "parquet" else (None, road)

    assert rows(table(odd, kind), predicate, folder) == rows(table(None, kind), predicate, folder)


def test_an_ask_is_answered_and_later_ones_too(tmp_path):
    """No failure that is charged, and no engine that stays broken."""
    pq.write_table(table(BROKEN[0]), tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table(BROKEN[0])):
        session = farthing.Session(source, name="t", budget=farthing.Budget(epsilon=5, delta=1e-6))
        for predicate in PREDICATES[1:]:
            assert session.count(where=predicate, absolute=100).met


def test_dictionaries_and_tables_beside(tmp_path):
    """The same for text in dictionaries, and for tables that travel to another engine."""
    odd = table(BROKEN[2])
    pq.write_table(odd, tmp_path / "t.parquet")
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None]), odd.column("name").chunk(0)[-3:-1])

    assert arrow_of(source_of(tmp_path / "t.parquet")).column("name").null_count == 2
    assert source_of(pa.table({"name": codes})).load(("name",)).column("name").to_pylist() == ["many", None, None, None]


def test_it_is_the_second_reading_that_answers(tmp_path, monkeypatch):
    """Without it the row decides between an answer and an error: the test can fail."""
    monkeypatch.setattr(DuckDBEngine, "_scans_text", lambda *_: False)

    assert rows(table(None), "name = 'bob'", tmp_path)
    with pytest.raises(farthing.DataError):
        rows(table(BROKEN[0]), "name = 'bob'", tmp_path)


def test_a_lazy_frame_that_fails_says_nothing_of_a_row():
    """What Polars says of a value is neither repeated nor the context of what is."""
    lazy = pl.LazyFrame({"x": ["1", "secret"]}).select(pl.col("x").cast(pl.Int64))

    with pytest.raises(farthing.DataError) as failed:
        rows(lazy, None)
    assert "secret" not in str(failed.value)
    assert failed.value.__context__ is None


def nested(holder, odd):
    """Return a table whose column holds text inside: in lists, structs, maps, or as JSON."""
    values = [b'"ann"', odd, None, b'"bob"'] * 500
    data = pa.array(values, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(values), data.buffers())
    each = pa.array(range(len(values) + 1), pa.int32())
    column = {
        "list": lambda: pa.ListArray.from_arrays(each, text),
        "struct": lambda: pa.StructArray.from_arrays([text], ["s"]),
        "map": lambda: pa.MapArray.from_arrays(each, pa.array(["k"] * len(values)), text),
        "json": lambda: pa.ExtensionArray.from_storage(pa.json_(), text),
    }[holder]()
    return pa.table({"c": column, "x": pa.array(range(len(values)))})


@pytest.mark.parametrize("predicate", [None, "c IS NULL", "c IS NOT NULL AND x > 2", "x > 2"])
@pytest.mark.parametrize("road", ["parquet", "arrow"])
@pytest.mark.parametrize("holder", ["list", "struct", "map", "json"])
def test_odd_text_inside_of_values(holder, road, predicate, tmp_path):
    """Of such columns only whether a value is there can be asked, and that is answered as if all text were UTF-8."""
    folder = tmp_path if road == "parquet" else None
    odd, plain = (rows(nested(holder, value), predicate, folder) for value in (b"\xff\xfe", b'"zed"'))

    assert plain == odd


@pytest.mark.parametrize("holder", ["list", "struct", "map", "json"])
def test_relations_and_lazy_frames_that_fail_say_nothing_of_a_row(holder, tmp_path):
    """Their own readers fail on such text, some with errors of Python's own: the error is constant, without context."""
    import duckdb

    pq.write_table(nested(holder, b"\xff\xfe"), tmp_path / "t.parquet")
    for opened in (duckdb.connect().read_parquet(str(tmp_path / "t.parquet")), pl.scan_parquet(tmp_path / "t.parquet")):
        with pytest.raises(farthing.errors.DataError, match="could not finish") as caught:
            rows(opened, "c IS NOT NULL")
        assert caught.value.__context__ is None is caught.value.__cause__
