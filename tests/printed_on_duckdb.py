"""What is printed for Snowflake and Trino, translated by sqlglot and run by DuckDB.

It shows that guards stand where they must and arguments in their order. What a function of these warehouses means is
not shown: that is the translator's word, and their documentation's.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import SimpleNamespace

import duckdb
import ibis
import ibis.expr.operations as ops
import sqlglot
import warehouses
from sqlglot import exp

from farthing.query import Type

IBIS = {Type.STRING: "string", Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date",
        Type.TIMESTAMP: "timestamp", Type.BOOLEAN: "boolean"}  # fmt: skip
ZONED = "z"
"""Times in a column of this name have a zone; rows hold them in UTC."""


class OnDuckDB:
    """A connection that looks like ibis' own to a warehouse and asks DuckDB.

    Args:
        name: ibis' name of the warehouse.
    """

    version = "1"

    def __init__(self, name):
        self.name = name
        module = importlib.import_module(f"ibis.backends.sql.compilers.{name}")
        self.compiler = getattr(module, f"{warehouses.COMPILERS[name]}Compiler")()
        self._duck = duckdb.connect(config={"threads": 1})
        self._duck.execute("SET TimeZone = 'UTC'")
        self._tables = 0

    def table(self, rows, kinds):
        """Return Arrow rows as an ibis table of this connection; whole numbers of Snowflake have 38 digits."""
        name = f"t_{self._tables}"
        self._tables += 1
        wide = "::HUGEINT" if self.name == "snowflake" else ""
        told = (f'"{column}"{wide if kind is Type.INTEGER else ""} AS "{column}"' for column, kind in kinds.items())
        self._duck.register("rows", rows)
        self._duck.execute(f'CREATE TABLE "{name}" AS SELECT {", ".join(told)} FROM rows')
        self._duck.unregister("rows")
        schema = ibis.schema({
            column: "timestamp('UTC')" if column == ZONED else IBIS[kind] for column, kind in kinds.items()
        })  # fmt: skip
        return ops.DatabaseTable(name=name, schema=schema, source=self, namespace=ops.Namespace()).to_expr()

    def drop(self, name):
        """Take a table away."""
        self._duck.execute(f'DROP TABLE "{name}"')

    def sql(self, text, schema=None):
        """Return what is told of a text, as an expression of ibis would be; without types it is planned at once."""
        tree = sqlglot.parse_one(text, dialect=self.compiler.dialect)
        made = _translated(_wide(tree) if self.name == "snowflake" else tree)
        if schema is None:
            self._duck.execute(f"EXPLAIN {made}")
        return SimpleNamespace(to_pyarrow=lambda: self._duck.sql(made).to_arrow_table().cast(schema.to_pyarrow()))

    def raw_sql(self, text):
        """Have a text planned."""
        self.sql(text.removeprefix("EXPLAIN USING TEXT "))

    def to_pyarrow(self, expr):
        """Return the rows of an expression."""
        text = self.compiler.to_sqlglot(expr.unbind()).sql(dialect=self.compiler.dialect)
        return self.sql(text, expr.as_table().schema()).to_pyarrow()


def _wide(tree):
    """Return a text of Snowflake in which BIGINT and long constants are what they are there: numbers of 38 digits."""
    for kind in tree.find_all(exp.DataType):
        if kind.this is exp.DataType.Type.BIGINT:
            kind.set("this", exp.DataType.Type.INT128)
    for number in list(tree.find_all(exp.Literal)):
        if number.is_int and int(number.this) >= 2**31:
            number.replace(exp.cast(number.copy(), exp.DataType.Type.INT128))
    return tree


def _translated(tree):
    """Return a text for DuckDB; quotients, texts of days and zones are said here."""
    for node in list(tree.find_all(exp.Div, exp.ToChar, exp.Anonymous)):
        match node:
            case exp.Div(expression=exp.Nullif(expression=exp.Literal(is_string=False))):
                node.replace(exp.IntDiv(this=node.this.copy(), expression=node.expression.copy()))
            case exp.ToChar():
                form = "%Y-%m-%d %H:%M:%S.%f" if "hh" in node.args["format"].this.lower() else "%Y-%m-%d"
                day = exp.cast(node.this.copy(), "timestamp")
                node.replace(exp.func("strftime", day, exp.Literal.string(form)))
            case exp.Anonymous(this="AT_TIMEZONE"):
                moment, zone = node.expressions
                node.replace(exp.AtTimeZone(this=moment.copy(), zone=zone.copy()))
            case _:
                pass
    return tree.sql(dialect="duckdb")


@cache
def connection(name):
    """Return one connection a warehouse."""
    return OnDuckDB(name)
