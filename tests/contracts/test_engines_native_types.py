"""Columns of types that engines have beside ours: read as the evaluator reads them, and no value of one decides."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backends import postgres, table_on
from spark_servers import spark_session
from warehouses import connection

from farthing.engines import open_table
from farthing.engines.duck import database
from farthing.engines.foreign import sqlite
from farthing.engines.foreign.datafusion import DataFusionBackend
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import DataError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import Count, CountUnits, NamedAggregate, Sum
from farthing.query.counts import CountValues
from farthing.query.expressions import Call, Column, Compare, FunctionName, In, IsNull, Literal, Operator
from farthing.query.joins import Join
from farthing.query.per_row import SortKey, Window, Windowed, WindowFrame, WindowKind

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
EMBEDDED = ["arrow", "polars", "parquet"]
LATE = [pytest.param("clickhouse", marks=pytest.mark.slow),
        pytest.param("spark", marks=[pytest.mark.xdist_group("spark"), pytest.mark.slow])]  # fmt: skip
ABROAD = ["postgres", "datafusion", *LATE]
COLUMNS = {
    "tiny": (pa.int8(), [1, -128, 127, None, 0]),
    "large": (pa.uint64(), [1, 2**64 - 1, 2**63, None, 2**63 - 1]),
    "single": (pa.float32(), [0.5, -0.0, 2.0**100, None, 1.5]),
    "price": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.01"), Decimal("99999999.99"), None, Decimal(0)]),
    "fine": (
        pa.decimal128(38, 30),
        [Decimal("0.1"), Decimal("1E-30"), Decimal("1.5"), None, Decimal("-4.531092166015444667283293998369")],
    ),
    "long": (
        pa.decimal128(18, 2),
        [Decimal("9447137442825865.07"), Decimal("-9575228060735481.11"), Decimal("0.07"), None, Decimal(2**53)],
    ),
    "whole": (pa.decimal128(38, 0), [Decimal(10**37 + 1), Decimal(2**63), Decimal(-5), None, Decimal(0)]),
    "coarse": (pa.timestamp("s"), [dt.datetime(1969, 12, 31), dt.datetime(1, 1, 1), dt.datetime(2012, 2, 29), None,
                                   dt.datetime(9999, 12, 31)]),
}  # fmt: skip
UNKNOWN = {"postgres": {"large"}, "spark": {"large", "coarse"}}
"""Types that an engine does not have."""

CLICKHOUSE = {"tiny": "Int8", "large": "UInt64", "single": "Float32", "price": "Decimal(10, 2)",
              "fine": "Decimal(38, 30)", "long": "Decimal(18, 2)", "whole": "Decimal(38, 0)",
              "coarse": "DateTime64(0)", "u": "Int64"}  # fmt: skip
POSTGRES = {"tiny": "smallint", "single": "real", "price": "numeric(10, 2)", "fine": "numeric(38, 30)",
            "long": "numeric(18, 2)", "whole": "numeric(38, 0)", "coarse": "timestamp", "u": "bigint"}  # fmt: skip
SPARK = {"tiny": "byte", "single": "float", "price": "decimal(10, 2)", "fine": "decimal(38, 30)",
         "long": "decimal(18, 2)", "whole": "decimal(38, 0)", "u": "long"}  # fmt: skip
MET = {
    "large": (pa.uint64(), [1, 2, 3, 2**63, 2**64 - 1]),
    "view": (pa.string_view(), ["a", "b", "A", "\0", "\U0001f600"]),
}
"""Units of types for which pyarrow has no filter, or none for some values."""


def rows_of(name):
    """Return rows of a column and a unit, each value twice or so."""
    kind, values = COLUMNS[name]
    places = [0, 1, 2, 3, 4, 0, 0, 1, 3, 4]
    return pa.table({name: pa.array([values[at] for at in places], kind), "u": pa.array([at % 4 for at in places])})


def opened(kind, table, folder):
    """Return the engine of an Arrow table."""
    match kind:
        case "polars":
            table = pl.from_arrow(table).lazy()
        case "parquet":
            pq.write_table(table, folder / "data.parquet")
            return open_table(folder / "data.parquet", name="data")
        case "datafusion":
            table = _in_datafusion(table)
        case "clickhouse":
            table = _in_clickhouse(table)
        case "postgres":
            table = _in_postgres(table)
        case "spark":
            table = _in_spark(table)
    return open_table(table, name="data")


def _in_datafusion(table):
    """Return Arrow rows as a table of DataFusion, in their own types."""
    here, name = connection("datafusion"), f"t_{uuid.uuid4().hex[:12]}"
    here.con.register_record_batches(name, [table.to_batches()])
    return here.table(name)


def _in_clickhouse(table):
    """Return Arrow rows as a table of ClickHouse, in the types that it has for them."""
    here, name = connection("clickhouse"), f"t_{uuid.uuid4().hex[:12]}"
    columns = ", ".join(f"`{column}` Nullable({CLICKHOUSE[column]})" for column in table.column_names)
    here.con.command(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
    here.con.insert_arrow(name, table)
    return here.table(name)


def _in_postgres(table):
    """Return Arrow rows as a temporary table of PostgreSQL."""
    here, name = postgres(), f"t_{uuid.uuid4().hex[:12]}"
    columns = ", ".join(f'"{column}" {POSTGRES[column]}' for column in table.column_names)
    with here.con.transaction(), here.con.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
    return here.table(name)


def _in_spark(table):
    """Return Arrow rows as a frame of Spark."""
    columns = ", ".join(f"{column} {SPARK[column]}" for column in table.column_names)
    return spark_session().createDataFrame([tuple(row.values()) for row in table.to_pylist()], columns)


def questions(name, schema):
    """Yield questions of a column: its values as keys and constants, what they are added to, how many differ."""
    column, values = Column(name), [value for value in COLUMNS[name][1] if value is not None]
    real = schema.require(name) in (Type.FLOAT, Type.DECIMAL)
    told = [float(value) + 0.0 if real else value for value in values]
    keys = pa.array([*told, None], pa.uint64()) if name == "large" else [*dict.fromkeys(told), None]
    sizes = [Compare(column, sign, Literal(one)) for one in told for sign in (Operator.EQ, Operator.LT)]
    outputs = [Count(column)]
    if schema.require(name) is not Type.TIMESTAMP:
        outputs += [Sum(column, -3.0, 10.0), Sum(Call(FunctionName.MULTIPLY, (column, Literal(2))), -1e12, 1e17)]
    for unit in (None, "u"):
        bounds = Bounds() if unit is None else Bounds(5, 2)

        plain = Query("data", (), None, None, counting("n"), PrivacyUnit(unit), bounds)
        yield replace(plain, by=(name,), keys=Keys.of((name,), {name: keys}, schema))
        yield replace(plain, outputs=tuple(NamedAggregate(f"o{place}", one) for place, one in enumerate(outputs)))
        yield replace(plain, outputs=(NamedAggregate("x", CountValues(column)),))
        for where in (*sizes, In(column, tuple(map(Literal, told))), IsNull(column)) if unit is None else ():
            yield replace(plain, where=where)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [*EMBEDDED, *ABROAD])
def test_columns_of_every_type_are_read_alike(kind, tmp_path):
    """Keys, constants, totals and how many differ: of decimals the nearest double, of whole numbers the number."""
    for name in COLUMNS.keys() - UNKNOWN.get(kind, set()):
        table = rows_of(name)
        engine = opened(kind, table, tmp_path)
        slow = MemoryEngine(table.to_pylist(), engine.schema)
        for query in questions(name, engine.schema):
            engine.fingerprint(query)

            assert slow.measure(query, 7).tolist() == engine.measure(query, 7).tolist(), (name, query.canonical)


MADE_FOR_PYARROW = {"1.4": {"view"}, "1.5": {"large", "view"}}.get(duckdb.__version__[:3], set())
"""Which types' filters DuckDB hands to pyarrow, which fails on them: DuckDB 2 filters by itself."""


def met(name, values, convert=lambda table: table):
    """Return what is counted where two tables in memory meet by units of these values."""
    table = pa.table({"u": pa.array(values * 20, MET[name][0])})
    engine = open_table(convert(table), name="data", protected={"o": convert(table.slice(0, 8))})
    join = Join("o", Compare(Column("u"), Operator.EQ, Column("o.u")), public=False)
    query = Query("data", (), None, None, counting("n"), PrivacyUnit("u"), Bounds(1, 30), joins=(join,))
    return engine.measure(query, 7).tolist()


@pytest.mark.parametrize("convert", [lambda table: table, lambda table: pl.from_arrow(table).lazy()], ids=EMBEDDED[:2])
@pytest.mark.parametrize("name", MET)
def test_no_unit_decides_where_tables_in_memory_meet(name, convert):
    """A unit that pyarrow has no filter for is a unit like any other: three of two rows beside, and two of one."""
    assert met(name, MET[name][1], convert) == [[3 * 30 + 2 * 20]]


def test_filters_that_are_made_of_rows_let_one_decide(monkeypatch):
    """Planted: with DuckDB's own optimizer one unit fails what all others answer, where pyarrow reads for DuckDB."""
    monkeypatch.delitem(database._SETTINGS, "disabled_optimizers")

    assert met("large", [1, 2, 3, 4, 5]) == [[3 * 30 + 2 * 20]]
    for name, (_, values) in MET.items():
        with pytest.raises(DataError) if name in MADE_FOR_PYARROW else nullcontext():
            assert met(name, values) == [[3 * 30 + 2 * 20]]


FAR = {
    "day": pa.array([0, 99_999_999, -99_999_999], pa.int32()).view(pa.date32()),
    "second": pa.array([0, 9 * 10**12, -9 * 10**12]).view(pa.timestamp("s")),
    "microsecond": pa.array([0, 2**63 - 1, -(2**63) + 1]).view(pa.timestamp("us")),
}
"""Units in the calendar of no engine."""


def kept_of(table):
    """Return how many units are kept where each is in three groups and keeps one."""
    engine = open_table(table, name="data")
    keys = Keys.of(("g",), {"g": [0, 1, 2]}, engine.schema)
    query = Query("data", ("g",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(1, 1))
    engine.fingerprint(query)
    return int(engine.measure(query, 7).sum())


@pytest.mark.parametrize("name", FAR)
def test_no_unit_decides_whether_its_hash_is_computed(name, monkeypatch):
    """On DataFusion a unit that no calendar has is kept in one group; planted: by its spelling it fails."""
    units = pa.table({"u": pa.concat_arrays([FAR[name]] * 3), "g": [0] * 3 + [1] * 3 + [2] * 3})
    table = _in_datafusion(units)

    assert kept_of(table) == 3
    monkeypatch.setattr(DataFusionBackend, "spelled_unit", lambda _, unit: unit)
    with pytest.raises(DataError):
        kept_of(table)


def test_no_text_of_a_unit_fails_a_function_of_pythons(monkeypatch):
    """On SQLite a unit of a type that is not ours may hold anything; planted: text that is not UTF-8 fails its hash."""
    here, name = ibis.sqlite.connect(), f"t_{uuid.uuid4().hex[:12]}"
    here.con.execute(f"CREATE TABLE {name} (u UUID, g INTEGER)")
    for unit in ("'a'", "'A'", "x'61'", "CAST(x'ff' AS TEXT)", "CAST(x'6100' AS TEXT)", "1", "NULL"):
        here.con.execute(f"INSERT INTO {name} VALUES ({unit}, 0), ({unit}, 1), ({unit}, 2)")
    here.con.commit()

    assert kept_of(here.table(name)) == 6
    monkeypatch.setattr(sqlite, "_BYTES", "{x}")
    with pytest.raises(DataError):
        kept_of(here.table(name))


@pytest.mark.parametrize("kind", ["arrow", "datafusion", pytest.param("clickhouse", marks=pytest.mark.thorough)])
def test_all_nan_are_one(kind, tmp_path):
    """A NaN has a sign and letters of its own: whatever they are, it is one unit, no number, and above all numbers."""
    odd = [math.nan, -math.nan, struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]]
    table = pa.table({"single": pa.array([*odd, 1.5, 0.0, -0.0], pa.float32()), "u": pa.array(range(6))})
    engine, column = opened(kind, table, tmp_path), Column("single")
    plain = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    outputs = (NamedAggregate("n", Count(column)), NamedAggregate("s", Sum(column, -1.0, 1.0)))
    asked = [
        replace(plain, outputs=outputs),
        replace(plain, where=Compare(column, Operator.LT, Literal(0.0))),
        replace(plain, where=Compare(column, Operator.GT, Literal(9.0))),
        replace(plain, outputs=(NamedAggregate("u", CountUnits()),), unit=PrivacyUnit("single"), bounds=Bounds(1, 9)),
    ]
    told = [engine.measure(query, 7)[:, 0].tolist() for query in asked]
    slow = MemoryEngine(table.to_pylist(), engine.schema)

    assert told == [slow.measure(query, 7)[:, 0].tolist() for query in asked]
    assert [[3], [0], [3], [3]] == [one[:1] for one in told]


def test_units_without_a_spelling_are_refused():
    """Bytes may be no text: where a unit gives up groups they are refused before anything is asked."""
    table = _in_datafusion(pa.table({"u": [b"a", b"\xff"], "g": [0, 1]}))
    with pytest.raises(UnsupportedQuery, match="a unit of type binary that gives up groups"):
        kept_of(table)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_lists_hold_whole_numbers_of_64_bits(value):
    """A constant beyond 64 bits with sign stands in a list of a column in memory, as it does alone."""
    table = pa.table({"x": pa.array([1, value, None, 0], pa.uint64()), "i": [1, 2, 3, 4]})
    engine = open_table(table, name="data")
    for name, counted in (("x", 2), ("i", 1)):
        where = In(Column(name), (Literal(1), Literal(value)))
        query = Query("data", (), None, where, counting("n"), PrivacyUnit(), Bounds())

        assert [[counted]] == engine.measure(query, 7).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["duckdb", *ABROAD])
def test_a_frame_without_values_has_no_least_and_no_greatest(kind):
    """What has left the frame of a window is not in it: DataFusion's MIN would keep it."""
    kinds = {"u": Type.INTEGER, "i": Type.INTEGER, "t": Type.INTEGER}
    rows = [{"u": 1, "t": place, "i": value} for place, value in enumerate([7, 2, 1, None, None, 3])]
    order, frame = (SortKey(Column("t")),), WindowFrame(-1, 0)
    words = (WindowKind.MIN, WindowKind.MAX)
    windows = tuple((word.value, Window(word, Column("i"), (), order, frame)) for word in words)
    aggregates = [made for word in words for made in (Count(Column(word.value)), Sum(Column(word.value), 0, 10))]
    outputs = tuple(NamedAggregate(f"o{place}", one) for place, one in enumerate(aggregates))
    derived = (Windowed("w", None, (), None, (), windows),)
    query = Query("data", (), None, None, outputs, PrivacyUnit("u"), Bounds(1, 6), derived=derived, source="w")
    expected = MemoryEngine(rows, Schema.of(kinds)).measure(query, 7).tolist()
    unit = expected[1][0] // (7 + 2 + 1 + 1 + 3)

    assert [[5], [14 * unit], [5], [(7 + 7 + 2 + 1 + 3) * unit]] == expected
    assert open_table(table_on(kind, rows, kinds), name="data").measure(query, 7).tolist() == expected
