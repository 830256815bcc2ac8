"""What clients ask about the database itself: answered by an engine that holds the declared tables without a row.

Guarantee: no answer depends on the data: the engine holds column names and types only, reads no file and no setting of
    the machine, and every table in it is empty.
Proof: the tables are made here, from names; DuckDB is opened without external access and its settings are locked.
Assumes: DuckDB keeps `enable_external_access = false`.
Rounds: nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    import sqlglot.expressions as exp

_TYPES: Final = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "float": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_PRETENDED: Final = (
    "CREATE MACRO main.pg_get_userbyid(x) AS 'farthing'",
    "CREATE MACRO main.pg_encoding_to_char(x) AS 'UTF8'",
)
"""What clients look up of a PostgreSQL server that the engine does not have."""

VERSION: Final = "PostgreSQL 16.0 (farthing)"
"""What the server says that it is: clients read the number and choose by it what they may send."""

_MOST_ROWS: Final = 100_000


class EmptyTables:
    """The declared tables, empty, and the catalog views over them.

    >>> catalog = EmptyTables({"rides": {"zone": "string", "minutes": "float"}})
    >>> catalog.asked("SELECT * FROM rides LIMIT 0").column_names
    ['zone', 'minutes']
    >>> catalog.asked("SELECT table_name FROM information_schema.tables").to_pylist()
    [{'table_name': 'rides'}]
    """

    def __init__(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        import duckdb

        self._lock = threading.Lock()
        self._engine = duckdb.connect(
            ":memory:", config={"enable_external_access": "false", "threads": "1", "memory_limit": "256MB"}
        )
        self._engine.execute("CREATE SCHEMA IF NOT EXISTS public; SET search_path = 'public'")
        for table, columns in tables.items():
            named = ", ".join(f"{_quoted(name)} {_TYPES.get(kind, 'VARCHAR')}" for name, kind in columns.items())
            self._engine.execute(f"CREATE TABLE public.{_quoted(table)} ({named})")
        for made in _PRETENDED:
            self._engine.execute(made)
        self._engine.execute("SET lock_configuration = true")

    def asked(self, text: str) -> pa.Table:
        """Return what a question about the catalog gives.

        Raises:
            UnsupportedQuery: it is not a question that the catalog can answer.
        """
        import duckdb
        import sqlglot
        from sqlglot import exp

        found, tree = None, None
        try:
            tree = sqlglot.parse_one(text, dialect="postgres").transform(_ours)
            if isinstance(tree, exp.Query):
                with self._lock:
                    cursor = self._engine.execute(tree.sql(dialect="duckdb"))
                    found = cursor.to_arrow_table().slice(0, _MOST_ROWS)
        except (sqlglot.errors.SqlglotError, duckdb.Error, RecursionError):
            found = _nothing(tree)
        if found is None:
            raise UnsupportedQuery(
                "the server does not answer this question",
                construct="statement",
                rule="a statement is one SELECT of aggregates over a declared table, or about the catalog",
                next_step="SELECT table_name, column_name FROM information_schema.columns shows what there is",
            )
        return found

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _ours(node: Any) -> Any:
    """Return a part of a statement as the engine has it: no pg_catalog before functions and types, and our version."""
    import sqlglot.expressions as exp

    if isinstance(node, exp.Dot) and node.this.name == "pg_catalog" and isinstance(node.expression, exp.Func):
        node = node.expression
    if isinstance(node, exp.Table) and node.name == "pg_am":
        return exp.select("2 AS oid", "'heap' AS amname").subquery(node.alias or "pg_am")
    if isinstance(node, exp.CurrentVersion | exp.Anonymous) and node.name.lower() in {"", "version"}:
        told = exp.Literal.string(VERSION)
        return exp.alias_(told, "version") if isinstance(node.parent, exp.Select | exp.Dot) else told
    return node


def _nothing(tree: exp.Expression | None) -> pa.Table | None:
    """Return no rows for a question about system tables that the engine cannot compute; None for any other."""
    import pyarrow as pa
    import sqlglot.expressions as exp

    if not isinstance(tree, exp.Query):
        return None
    tables = [table for table in tree.find_all(exp.Table) if table.name]
    if not tables or not all(table.db == "pg_catalog" or table.name.startswith("pg_") for table in tables):
        return None
    return pa.table({name: pa.array([], pa.string()) for name in tree.named_selects})


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
