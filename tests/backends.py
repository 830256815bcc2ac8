"""The same rows as a table of any engine: Arrow for the embedded one, PostgreSQL, Spark, SQLite."""

from __future__ import annotations

import datetime as dt
import uuid
from functools import cache

import databricks_on_spark
import googlesql
import polars as pl
import printed_on_duckdb
import pyarrow as pa
import pytest
import warehouses
from ledger_servers import postgres_url
from spark_servers import spark_session

from farthing.query import Type

SERVERS = ["postgres", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
IN_PROCESS = ("datafusion", "clickhouse")
SPOKEN = ("bigquery", "databricks", "snowflake", "trino")
"""Warehouses: what is printed for them is run by GoogleSQL's own evaluator, by Spark, and translated for DuckDB."""

LATE = {kind: [pytest.mark.slow] for kind in ("sqlite", *IN_PROCESS, *SPOKEN, "warehouse")}
LATE["databricks"].append(pytest.mark.xdist_group("spark"))
LATE["bigquery"].append(pytest.mark.xdist_group("googlesql"))
SPOKEN_IN_SHORT = {kind: LATE[kind] if kind in {"bigquery", "databricks"} else LATE[kind][1:] for kind in SPOKEN}
"""What the gate has of them: GoogleSQL's evaluator takes a minute to start, and Spark is in the gate as itself."""

FOREIGN = [*SERVERS, *(pytest.param(kind, marks=marks) for kind, marks in LATE.items())]
"""All but the embedded one; of SQLite and of the engines in process the gate has a share, "in short"."""

GATED = [
    *SERVERS,
    *IN_PROCESS,
    *(pytest.param(kind, marks=marks) for kind, marks in LATE.items() if kind not in IN_PROCESS),
]
"""The same, with the engines in process in the gate: for tests that take them seconds."""

ARROW = {Type.STRING: pa.string(), Type.INTEGER: pa.int64(), Type.FLOAT: pa.float64(), Type.DATE: pa.date32(),
         Type.TIMESTAMP: pa.timestamp("us"), Type.BOOLEAN: pa.bool_()}  # fmt: skip
NATIVE = {Type.STRING: "text", Type.INTEGER: "bigint", Type.FLOAT: "double precision", Type.DATE: "date",
          Type.TIMESTAMP: "timestamp", Type.BOOLEAN: "boolean"}  # fmt: skip
SQLITE = {**NATIVE, Type.FLOAT: "real", Type.INTEGER: "integer"}
ZONED = "z"
"""Times in a column of this name have a zone; rows hold them in UTC."""


def arrow(rows, kinds):
    """Return rows as Arrow."""
    native = {name: pa.timestamp("us", "Asia/Tokyo") if name == ZONED else ARROW[kind] for name, kind in kinds.items()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in native.items()})


def _aware(time):
    """Return a time in UTC with its zone."""
    return None if time is None else time.replace(tzinfo=dt.UTC)


@cache
def postgres():
    """Return one ibis connection to the tests' own server."""
    import ibis

    return ibis.connect(postgres_url().replace("postgresql+psycopg://", "postgres://"))


@cache
def sqlite():
    """Return one ibis connection to a database in memory."""
    import ibis

    return ibis.sqlite.connect()


def _in_sqlite(rows, kinds):
    """Return rows as a table of SQLite; days and times are texts there."""
    connection, name = sqlite(), f"t_{uuid.uuid4().hex[:12]}"
    columns = ", ".join(f'"{column}" {SQLITE[kind]}' for column, kind in kinds.items())
    connection.con.execute(f"CREATE TABLE {name} ({columns})")
    told = [[row[column] for column in kinds] for row in rows]
    plain = [[value.isoformat() if isinstance(value, dt.date) else value for value in row] for row in told]
    connection.con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in kinds)})", plain)
    connection.con.commit()
    return connection.table(name)


def kept(kind, rows):
    """Return rows as an engine keeps them: SQLite has no NaN and keeps NULL."""
    if kind != "sqlite":
        return rows
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]  # noqa: PLR0124


def table_on(kind, rows, kinds):  # noqa: PLR0911  # one return a kind
    """Return rows as a table of an engine."""
    if kind == "duckdb":
        return arrow(rows, kinds)
    if kind == "polars":
        return pl.from_arrow(arrow(rows, kinds)).lazy()
    if kind in ("spark", "databricks"):
        from farthing.engines.foreign.spark import _frame

        frame = _frame(spark_session(), arrow(rows, kinds))
        zoned = f"cast(concat(cast({ZONED} AS string), 'Z') AS timestamp) AS {ZONED}"
        frame = frame.selectExpr(*(zoned if name == ZONED else f"`{name}`" for name in kinds))
        return frame if kind == "spark" else databricks_on_spark.connection().table(frame, kinds)
    if kind == "sqlite":
        return _in_sqlite(rows, kinds)
    if kind == "bigquery":
        return googlesql.connection().table(rows, kinds)
    if kind in ("snowflake", "trino"):
        return printed_on_duckdb.connection(kind).table(arrow(rows, kinds), kinds)
    if kind in (*IN_PROCESS, "warehouse"):
        return warehouses.arrow_on(kind, arrow(rows, kinds))
    connection, name = postgres(), f"t_{uuid.uuid4().hex[:12]}"
    native = {column: "timestamptz" if column == ZONED else NATIVE[kind] for column, kind in kinds.items()}
    columns = ", ".join(f'"{column}" {kind}' for column, kind in native.items())
    with connection.con.transaction(), connection.con.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row([_aware(row[name]) if name == ZONED else row[name] for name in kinds])
    return connection.table(name)
