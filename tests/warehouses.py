"""Engines that are asked through constants in the text: connections that only print, two in process, and your own."""

from __future__ import annotations

import importlib
import os
import uuid
from functools import cache
from importlib.util import find_spec

import pyarrow as pa
import pytest

from farthing.query import Type

ADDRESS = "FARTHING_WAREHOUSE"
"""The environment variable that names a warehouse of yours, as `ibis.connect` takes it."""

REQUIRED = "FARTHING_REQUIRE_ENGINES"
"""The environment variable with which a missing engine is a failure."""

COMPILERS = {"bigquery": "BigQuery", "clickhouse": "ClickHouse", "databricks": "Databricks",
             "datafusion": "DataFusion", "snowflake": "Snowflake", "trino": "Trino"}  # fmt: skip
KINDS = {"u": Type.STRING, "v": Type.INTEGER, "s": Type.STRING, "i": Type.INTEGER, "b": Type.BOOLEAN, "d": Type.DATE}
_ARROW = {Type.STRING: pa.string(), Type.INTEGER: pa.int64(), Type.BOOLEAN: pa.bool_(), Type.DATE: pa.date32()}
_CLICKHOUSE = {Type.STRING: "String", Type.INTEGER: "Int64", Type.BOOLEAN: "Bool", Type.DATE: "Date32"}


class Printed:
    """A connection that prints what it would ask, without a server and without its driver."""

    version = "1"

    def __init__(self, name):
        module = importlib.import_module(f"ibis.backends.sql.compilers.{name}")
        self.name, self.compiler = name, getattr(module, f"{COMPILERS[name]}Compiler")()

    def compile(self, question):
        """Return the text of a question."""
        return self.compiler.to_sqlglot(question).sql(dialect=self.compiler.dialect)


@cache
def connection(kind):
    """Return an ibis connection to an engine in this process, or to the warehouse of the environment; or skip."""
    import ibis

    if kind == "warehouse":
        if not os.environ.get(ADDRESS):
            pytest.skip(f"no warehouse: set {ADDRESS} to an address of ibis.connect")
        return ibis.connect(os.environ[ADDRESS])
    needed = {"datafusion": ["datafusion"], "clickhouse": ["chdb", "clickhouse_connect"]}[kind]
    missing = [name for name in needed if find_spec(name) is None]
    if missing and os.environ.get(REQUIRED):
        pytest.fail(f"{kind} has to be tested here, and is not installed: {', '.join(missing)}")
    if missing:
        pytest.skip(f"not installed, so {kind} is not tested: {', '.join(missing)}")
    if kind == "datafusion":
        return ibis.datafusion.connect()
    import clickhouse_connect

    return ibis.clickhouse.from_connection(clickhouse_connect.get_client(dsn="chdb://memory"))


def table_on(kind, rows, kinds):
    """Return rows as a table of an engine."""
    here, name = connection(kind), f"t_{uuid.uuid4().hex[:12]}"
    columns = {column: pa.array([row[column] for row in rows], _ARROW[one]) for column, one in kinds.items()}
    if kind != "clickhouse":
        return here.create_table(name, pa.table(columns), **({"temp": True} if kind == "warehouse" else {}))
    spelled = ", ".join(f"`{column}` Nullable({_CLICKHOUSE[one]})" for column, one in kinds.items())
    here.con.command(f"CREATE TABLE {name} ({spelled}) ENGINE = Memory")
    if rows:
        told = [[row[column] for column in kinds] for row in rows]
        here.con.insert(name, told, column_names=list(kinds))
    return here.table(name)


def arrow_on(kind, table):
    """Return Arrow rows as a table of an engine in this process, or as a temporary one of your warehouse."""
    here, name = connection(kind), f"t_{uuid.uuid4().hex[:12]}"
    if kind == "warehouse":
        return here.create_table(name, table, temp=True)
    if kind == "datafusion":
        here.con.register_record_batches(name, [table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]])
        return here.table(name)
    spelled = ", ".join(f"`{field.name}` Nullable({_told(field.type)})" for field in table.schema)
    here.con.command(f"CREATE TABLE {name} ({spelled}) ENGINE = Memory")
    if table.num_rows:
        here.con.insert_arrow(name, table)
    return here.table(name)


def _told(kind):
    """Return ClickHouse's type of an Arrow type."""
    if pa.types.is_timestamp(kind):
        return "DateTime64(6)" if kind.tz is None else f"DateTime64(6, '{kind.tz}')"
    plain = {pa.string(): "String", pa.int64(): "Int64", pa.bool_(): "Bool", pa.date32(): "Date32"}
    return plain.get(kind, "Float64")
