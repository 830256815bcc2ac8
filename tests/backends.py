"""The same rows as a table of any engine: Arrow for the embedded one, PostgreSQL, Spark."""

from __future__ import annotations

import uuid
from functools import cache

import pyarrow as pa
import pytest
from ledger_servers import postgres_url
from spark_servers import spark_session

from farthing.query import Type

FOREIGN = ["postgres", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
ARROW = {Type.STRING: pa.string(), Type.INTEGER: pa.int64(), Type.FLOAT: pa.float64(), Type.DATE: pa.date32(),
         Type.TIMESTAMP: pa.timestamp("us"), Type.BOOLEAN: pa.bool_()}  # fmt: skip
NATIVE = {Type.STRING: "text", Type.INTEGER: "bigint", Type.FLOAT: "double precision", Type.DATE: "date",
          Type.TIMESTAMP: "timestamp", Type.BOOLEAN: "boolean"}  # fmt: skip


def arrow(rows, kinds):
    """Return rows as Arrow."""
    return pa.table({name: pa.array([row[name] for row in rows], ARROW[kind]) for name, kind in kinds.items()})


@cache
def postgres():
    """Return one ibis connection to the tests' own server."""
    import ibis

    return ibis.connect(postgres_url().replace("postgresql+psycopg://", "postgres://"))


def table_on(kind, rows, kinds):
    """Return rows as a table of an engine."""
    if kind == "duckdb":
        return arrow(rows, kinds)
    if kind == "spark":
        from farthing.engines.foreign.spark import _frame

        return _frame(spark_session(), arrow(rows, kinds))
    connection, name = postgres(), f"t_{uuid.uuid4().hex[:12]}"
    columns = ", ".join(f'"{column}" {NATIVE[kind]}' for column, kind in kinds.items())
    with connection.con.transaction(), connection.con.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row[column] for column in kinds])
    return connection.table(name)
