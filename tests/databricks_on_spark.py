"""What is printed for Databricks, run by Spark: both have the SQL of Spark, with ANSI mode on."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import ibis
import ibis.expr.operations as ops
from ibis.backends.sql.compilers.databricks import DatabricksCompiler
from spark_servers import spark_session

from farthing.query import Type

IBIS = {Type.STRING: "string", Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date",
        Type.TIMESTAMP: "timestamp", Type.BOOLEAN: "boolean"}  # fmt: skip
ZONED = "z"
"""Times in a column of this name have a zone; rows hold them in UTC."""


class OnSpark:
    """A connection that looks like ibis' own to Databricks and asks Spark."""

    name, version = "databricks", "1"

    def __init__(self):
        self.compiler = DatabricksCompiler()
        self._session = spark_session()
        self._tables = 0

    def table(self, frame, kinds):
        """Return a frame of Spark as an ibis table of this connection."""
        name = f"farthing_t{self._tables}"
        self._tables += 1
        frame.createOrReplaceTempView(name)
        schema = ibis.schema({
            column: "timestamp('UTC')" if column == ZONED else IBIS[kind] for column, kind in kinds.items()
        })  # fmt: skip
        return ops.DatabaseTable(name=name, schema=schema, source=self, namespace=ops.Namespace()).to_expr()

    def sql(self, text, schema=None):
        """Return what is told of a text, as an expression of ibis would be; it is analyzed at once."""
        frame = self._session.sql(text)
        return SimpleNamespace(to_pyarrow=lambda: frame.toArrow().cast(schema.to_pyarrow()))

    def to_pyarrow(self, expr):
        """Return the rows of an expression."""
        text = self.compiler.to_sqlglot(expr.unbind()).sql(dialect="databricks")
        return self.sql(text, expr.as_table().schema()).to_pyarrow()


@cache
def connection():
    """Return one connection."""
    return OnSpark()
