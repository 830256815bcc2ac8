"""Times with a zone are the time in UTC, on every engine and kind of table, whatever any clock's own zone is."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from backends import IN_PROCESS, SERVERS, postgres, table_on
from hostile import HOSTILE, oracle, same
from spark_servers import spark_session

from farthing import Csv
from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.duck.rows import DuckRows
from farthing.engines.duck.terms import ZONED, reader
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import InvalidKeys, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import Count, NamedAggregate, Sum
from farthing.query.calendar import calendar
from farthing.query.expressions import Call, Cast, Column, FunctionName, Literal
from farthing.query.expressions.signatures import CLOCK_UNITS, DAY_PARTS, DAY_UNITS
from farthing.sql import parse_predicate

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
ABROAD = [*SERVERS, *(pytest.param(kind, marks=pytest.mark.thorough) for kind in IN_PROCESS)]
EMBEDDED = [
    "s",
    "ms",
    "us",
    "ns",
    "dictionary",
    "parquet",
    "fine",
    "csv",
    "pandas",
    "polars",
    "lazy",
    "relation",
    "ibis",
]
KINDS = {"z": Type.TIMESTAMP, "v": Type.INTEGER}
SCHEMA = Schema.of(KINDS)
TIMES = [
    *(dt.datetime(2013, 3, 9, 23, 30), dt.datetime(2013, 3, 10, 0, 0), dt.datetime(2013, 3, 10, 5, 29, 59)),
    *(dt.datetime(2013, 3, 10, 5, 30), dt.datetime(2013, 3, 10, 23, 59, 59), dt.datetime(2013, 11, 3, 4, 30)),
    *(dt.datetime(2013, 11, 3, 5, 30), dt.datetime(1969, 12, 31, 23, 59, 59), None),
]
ROWS = [{"z": time, "v": place} for place, time in enumerate(TIMES)]
LAST = 2**63 - 1


def zoned(unit="us", zone="America/St_Johns", rows=ROWS):
    """Return rows as an Arrow table whose times have a zone."""
    moments = pa.array([row["z"] for row in rows], pa.timestamp(unit, tz=zone))
    return pa.table({"z": moments, "v": pa.array([row["v"] for row in rows], pa.int64())})


CONNECTION = duckdb.connect()


def opened(kind, folder):  # noqa: C901, PLR0911  # one return a kind
    """Return the engine of the rows as one kind of table."""
    match kind:
        case "s" | "ms" | "us" | "ns":
            return open_table(zoned(kind), name="data")
        case "dictionary":
            data = zoned()
            return open_table(data.set_column(0, "z", data.column("z").dictionary_encode()), name="data")
        case "parquet":
            pq.write_table(zoned(), folder / "data.parquet")
            return open_table(folder / "data.parquet")
        case "fine":
            pq.write_table(zoned("ns"), folder / "data.parquet")
            return open_table(folder / "data.parquet")
        case "csv":
            lines = [f"{'' if row['z'] is None else row['z'].isoformat() + 'Z'},{row['v']}" for row in ROWS]
            (folder / "data.csv").write_text("\n".join(["z,v", *lines]) + "\n")
            return open_table(Csv(folder / "data.csv", columns={"z": "timestamp", "v": "integer"}))
        case "pandas":
            return open_table(zoned().to_pandas(), name="data")
        case "polars":
            return open_table(pl.from_arrow(zoned("ms")), name="data")
        case "lazy":
            return open_table(pl.from_arrow(zoned("ns")).lazy(), name="data")
        case "relation":
            CONNECTION.execute("SET TimeZone = 'Asia/Kathmandu'")
            return open_table(CONNECTION.from_arrow(zoned()), name="data")
        case "ibis":
            return open_table(ibis.duckdb.connect().create_table("data", zoned()), name="data")
        case _:
            return open_table(table_on(kind, ROWS, KINDS), name="data")


def aware(rows):
    """Return rows whose times have zones, a different one from row to row."""
    zones = [ZoneInfo(name) for name in ("Asia/Kathmandu", "America/New_York", "UTC")]
    return [
        row | {"z": row["z"] and row["z"].replace(tzinfo=dt.UTC).astimezone(zones[place % 3])}
        for place, row in enumerate(rows)
    ]


def question(by=(), keys=None, where=None, outputs=None, groupings=()):
    """Return a question of rows."""
    condition = None if where is None else parse_predicate(where, SCHEMA)
    outputs = counting("n") if outputs is None else outputs
    return Query("data", by, keys, condition, outputs, PrivacyUnit(), Bounds(), groupings=groupings)


def truncated(unit):
    """Return a question by the beginnings of a unit of time."""
    keys = Keys.of(("t",), {"t": [*calendar("2013-03-09 00:00:00", "2013-03-11 00:00:00", unit), None]}, TRUNCATED)
    grouping = (("t", Call(FunctionName.DATE_TRUNC, (Literal(unit), Column("z")))),)
    return question(("t",), keys, groupings=grouping)


TRUNCATED = Schema.of({"t": Type.TIMESTAMP})
HOURS = Sum(Call(FunctionName.EXTRACT, (Literal("hour"), Column("z"))), 0, 23)
QUESTIONS = [
    truncated("day"),
    truncated("hour"),
    question(("z",), Keys.of(("z",), {"z": TIMES}, SCHEMA)),
    question(where="z >= TIMESTAMP '2013-03-10 00:00:00' AND z < TIMESTAMP '2013-03-10 05:30:00'"),
    question(where="z = '2013-11-03 05:30:00' OR z IS NULL OR CAST(z AS DATE) = DATE '1969-12-31'"),
    question(where="CAST(z AS VARCHAR) = '2013-03-10 23:59:59' OR DATE_DIFF('day', z, DATE '2013-03-10') = 1"),
    question(outputs=(NamedAggregate("n", Count(Column("z"))), NamedAggregate("s", HOURS))),
]


@pytest.mark.parametrize("kind", [*EMBEDDED, *ABROAD])
def test_zoned_times_are_read_in_utc(kind, tmp_path):
    """Keys, values, conditions and groupings are those of the slow engine on the same moments, in any zones."""
    engine, slow = opened(kind, tmp_path), MemoryEngine(aware(ROWS), SCHEMA)

    assert engine.schema == SCHEMA
    for query in QUESTIONS:
        assert slow.measure(query, 0).tolist() == engine.measure(query, 0).tolist(), query.canonical
    naive = MemoryEngine(ROWS, SCHEMA)
    assert [naive.measure(query, 0).tolist() for query in QUESTIONS] == [
        slow.measure(query, 0).tolist() for query in QUESTIONS
    ]
    assert [[2 + 1 + 1]] == engine.measure(question(where="z < '2013-03-10 05:30:00'"), 0).tolist()


@pytest.mark.parametrize("kind", ["us", "parquet", *ABROAD])
def test_zoned_times_are_found_and_may_be_units(kind, tmp_path):
    """Found keys have no zone, and moments are units that are never merged."""
    engine = opened(kind, tmp_path)
    found = engine.found(Query("data", ("z",), None, None, (), PrivacyUnit(), Bounds()), 0)
    unit = Query("data", (), None, None, counting("n"), PrivacyUnit("z"), Bounds(max_rows=1))

    assert sorted(filter(None, TIMES)) == sorted(filter(None, found.keys.column("z").to_pylist()))
    assert pa.timestamp("us") == found.keys.schema.field("z").type
    assert [[8]] == engine.measure(unit, 0).tolist()


def test_the_whole_language_on_zoned_parquet(tmp_path):
    """Every function of times gives on a zoned column what it gives on the time in UTC, for every hostile time."""
    times = [*HOSTILE[Type.TIMESTAMP], None]
    pq.write_table(zoned(rows=[{"z": time, "v": place} for place, time in enumerate(times)]), tmp_path / "d.parquet")
    engine = open_table(tmp_path / "d.parquet")
    trees = [Call(FunctionName.DATE_TRUNC, (Literal(unit), Column("z"))) for unit in (*DAY_UNITS, *CLOCK_UNITS)]
    trees += [Call(FunctionName.EXTRACT, (Literal(part), Column("z"))) for part in (*DAY_PARTS, *CLOCK_UNITS)]
    trees += [Cast(Column("z"), Type.STRING), Cast(Column("z"), Type.DATE), Column("z")]
    rows = DuckRows(bounded(question()), engine._catalog)
    names = [rows.show(rows.scalars.scalar(tree), "x") for tree in (Column("v"), *trees)]
    answer = engine._connection.cursor().execute(f"SELECT {', '.join(names)} FROM ({rows.sql()})").fetchall()

    assert len(times) == len(answer)
    for place, *values in answer:
        expected = [oracle(tree, SCHEMA)({"z": times[place], "v": place}) for tree in trees]
        assert all(map(same, expected, values)), (times[place], expected, values)


EDGE = [0, 2**62, -(2**62), LAST, None]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "parquet"])
def test_times_outside_the_calendar_are_null_on_duckdb(unit, tmp_path):
    """Arrow and Parquet times beyond the years 1 to 9999, in whatever unit, are NULL and never an error."""
    kind, first = ("us", -LAST) if unit == "parquet" else (unit, -LAST - 1)
    table = pa.table({"z": pa.array([*EDGE, first], pa.timestamp(kind, tz="Asia/Tokyo"))})
    if unit == "parquet":
        pq.write_table(table, tmp_path / "z.parquet")
    engine = open_table(tmp_path / "z.parquet" if unit == "parquet" else table, name="data")

    assert [[5]] == engine.measure(question(where="z IS NULL"), 0).tolist()
    assert [[1]] == engine.measure(
        question(where="z <= '9999-12-31 23:59:59' AND EXTRACT(YEAR FROM z) > 0"), 0
    ).tolist()


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_far_times_are_null_on_datafusion(unit, zone):
    """Beyond the years 1 to 9999, which nanoseconds do not leave, in whatever unit: NULL, and never an error."""
    edges = {"s": 1, "ms": 1_000, "us": 1_000_000}.get(unit, 0)
    ends = [-62135596800 * edges, -62135596800 * edges - 1, 253402300800 * edges, 253402300800 * edges - 1]
    moments = pa.array([*EDGE, -LAST - 1, 1, *ends], pa.int64()).cast(pa.timestamp(unit, tz=zone))
    engine = open_table(ibis.datafusion.connect().create_table("z", pa.table({"z": moments})), name="data")
    parts = "EXTRACT(YEAR FROM z) > 0 AND EXTRACT(HOUR FROM z) >= 0 AND CAST(z AS DATE) > '0001-01-01'"

    assert [[7 if edges else 1]] == engine.measure(question(where="z IS NULL"), 0).tolist()
    assert [[4 if edges else 10]] == engine.measure(question(where="z <> '2000-01-01 00:00:00'"), 0).tolist()
    assert [[3 if edges else 10]] == engine.measure(question(where=parts), 0).tolist()
    if edges:
        assert [[1]] == engine.measure(question(where="z >= '9999-12-31 23:59:59'"), 0).tolist()


def test_far_days_are_null_on_datafusion():
    """Days of milliseconds, too, of which 32 bits hold no number."""
    days = pa.array([0, 2**62, -LAST, None, -62135596800000, 253402214400000, 253402300800000], pa.int64())
    days = pa.Array.from_buffers(pa.date64(), len(days), days.buffers())
    engine = open_table(ibis.datafusion.connect().create_table("z", pa.table({"z": days})), name="data")
    query = Query(
        "data",
        (),
        None,
        parse_predicate("EXTRACT(DAY FROM z) > 0", engine.schema),
        counting("n"),
        PrivacyUnit(),
        Bounds(),
    )

    assert [[3]] == engine.measure(query, 0).tolist()


def test_infinite_times_are_null():
    """DuckDB's infinite moments, and those after the year 9999, are NULL; the session's zone moves nothing."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/St_Johns'")
    texts = [
        "infinity",
        "-infinity",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "10000-01-01 00:00:00+00",
    ]
    moments = ", ".join(f"(TIMESTAMPTZ '{text}')" for text in texts)
    rows = connection.execute(f"SELECT {reader('z', ZONED)} FROM (VALUES {moments}) AS r(z)").fetchall()

    assert [None, None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None] == [
        x for (x,) in rows
    ]


def test_infinite_times_are_null_on_postgres():
    """PostgreSQL's infinite moments, and those before and after our calendar, are NULL, whatever the session's zone."""
    server = postgres()
    moments = ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31 23:59:59+00", "2013-03-10 05:30+05:30"]
    with server.con.transaction(), server.con.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE edges (z timestamptz)")
        cursor.executemany("INSERT INTO edges VALUES (%s::timestamptz)", [(moment,) for moment in moments])
        cursor.execute("SET TimeZone = 'America/St_Johns'")
    try:
        engine = open_table(server.table("edges"), name="data")

        assert [[4]] == engine.measure(question(where="z IS NULL"), 0).tolist()
        assert [[1]] == engine.measure(question(where="z = '2013-03-10 00:00:00'"), 0).tolist()
    finally:
        with server.con.transaction(), server.con.cursor() as cursor:
            cursor.execute("RESET TimeZone")
            cursor.execute("DROP TABLE edges")


@pytest.mark.xdist_group("spark")
def test_far_times_are_null_on_spark():
    """Spark's first and last moments are NULL, with the session in a zone with gaps."""
    edges = (-LAST - 1, LAST, -62135596800000001, 253402300800000000, -62135596800000000, 253402300799999999)
    values = ", ".join(f"(timestamp_micros({edge}))" for edge in edges)
    engine = open_table(spark_session().sql(f"SELECT z FROM VALUES {values} AS t(z)"), name="data")
    ends = "z = '0001-01-01 00:00:00' OR z = '9999-12-31 23:59:59.999999'"

    assert [[4]] == engine.measure(question(where="z IS NULL"), 0).tolist()
    assert [[2]] == engine.measure(question(where=ends), 0).tolist()


def test_the_clock_of_the_machine_does_not_matter(tmp_path):
    """In another zone CSV text without a zone, beside text with one, is in UTC, and Parquet reads the same."""
    (tmp_path / "mixed.csv").write_text("z\n2013-01-31T23:00:00Z\n2013-01-31 23:30:00\n2013-02-01 01:00:00+02:00\n")
    pq.write_table(zoned(), tmp_path / "zoned.parquet")
    script = """
import sys
from farthing.engines import open_table
from farthing import Csv
from test_engines_zones import question
mixed = Csv(sys.argv[1], columns={"z": "timestamp"})
for table, day in ((mixed, "2013-01-31"), (sys.argv[2], "2013-03-10")):
    engine = open_table(table, name="data")
    query = question(where=f"CAST(z AS DATE) = DATE '{day}'")
    print(engine.schema.columns[0][1], engine.measure(query, 0))
"""
    folders = os.pathsep.join([*filter(None, sys.path), str(Path(__file__).parent)])
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "mixed.csv"), str(tmp_path / "zoned.parquet")],
        env=os.environ | {"TZ": "America/New_York", "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=True,
    )

    assert ["timestamp [[3]]", "timestamp [[4]]"] == told.stdout.split("\n")[:2]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Keys.of(("z",), {"z": [dt.datetime(2013, 1, 31, tzinfo=dt.UTC)]}, SCHEMA), "in UTC"),
        (lambda: Keys.of(("z",), {"z": pl.Series(TIMES[:2]).dt.replace_time_zone("UTC")}, SCHEMA), "in UTC"),
        (lambda: Literal(dt.datetime(2013, 1, 31, tzinfo=dt.UTC)), "in UTC"),
        (lambda: calendar(dt.datetime(2013, 1, 31, tzinfo=dt.UTC), "2013-02-01 00:00:00"), "in UTC"),
        (lambda: parse_predicate("z > TIMESTAMP '2013-01-31 10:00:00+01:00'", SCHEMA), "in UTC"),
        (lambda: parse_predicate("z AT TIME ZONE 'UTC' > '2013-01-31'", SCHEMA), "in UTC"),
    ],
)
def test_questions_have_no_zones(ask, words):
    """Keys, constants and calendars with a zone are refused: the message says what to write instead."""
    with pytest.raises((InvalidKeys, UnsupportedQuery)) as caught:
        ask()

    assert words in str(caught.value)


def test_a_session_asks_of_zoned_times():
    """The public face: days in UTC as keys, from the calendar, of a zoned column."""
    import farthing

    budget = farthing.Budget(epsilon=1, delta=1e-6)
    table = zoned(rows=[{"z": TIMES[place % 5], "v": place} for place in range(5000)])
    with farthing.Session(table, budget=budget, bounds=farthing.Bounds()) as session:
        answer = session.sql(
            "SELECT DATE_TRUNC('day', z) AS day, COUNT(*) AS n FROM data GROUP BY 1",
            keys={"day": farthing.calendar("2013-03-09 00:00:00", "2013-03-10 00:00:00")},
            absolute=200,
        )

    assert [1000, 4000] == pytest.approx(answer.to_arrow().column("n").to_pylist(), abs=700)
