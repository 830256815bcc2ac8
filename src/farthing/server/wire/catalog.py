"""What clients ask about the database itself: answered by an engine that holds the declared tables without a row.

Guarantee: no answer depends on the data: the engine holds column names and types only, reads no file and no setting of
    the machine, and every table in it is empty. No statement holds it for long: it is interrupted, has little memory
    and one thread, and calls no function that makes much of little.
Proof: the tables are made here, from names; DuckDB is opened without external access and its settings are locked;
    functions are looked up in a closed list.
Assumes: DuckDB keeps `enable_external_access = false`, and notices an interrupt between two batches of rows.
Rounds: nothing.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
_NUMBERED: Final = (
    (16, "bool", "boolean", 1, "B"),
    (20, "int8", "bigint", 8, "N"),
    (23, "int4", "integer", 4, "N"),
    (25, "text", "text", -1, "S"),
    (701, "float8", "double precision", 8, "N"),
    (1043, "varchar", "character varying", -1, "S"),
    (1082, "date", "date", 4, "D"),
    (1114, "timestamp", "timestamp without time zone", 8, "D"),
)
"""Types by PostgreSQL's own numbers: with their names, the names that are shown, their lengths and categories."""
_OURS: Final = {"BOOLEAN": 16, "BIGINT": 20, "DOUBLE": 701, "VARCHAR": 1043, "DATE": 1082, "TIMESTAMP": 1114}
_NAMES: Final = " ".join(f"WHEN {number} THEN '{shown}'" for number, _, shown, *_ in _NUMBERED)
_OIDS: Final = " ".join(f"WHEN '{name}' THEN {number}" for name, number in _OURS.items())

_PRETENDED: Final = (
    "CREATE MACRO main.pg_get_userbyid(x) AS 'farthing'",
    "CREATE MACRO main.pg_encoding_to_char(x) AS 'UTF8'",
    "CREATE MACRO main.pg_get_serial_sequence(x, y) AS NULL",
    "CREATE MACRO main.pg_collation_is_visible(x) AS true",
    "CREATE MACRO main.pg_expression(x) AS NULL",
    "CREATE MACRO main.pg_advisory_unlock_all() AS NULL",
    "CREATE MACRO main.pg_table_size(x) AS 0",
    "CREATE MACRO main.pg_total_relation_size(x) AS 0",
    "CREATE MACRO main.pg_relation_size(x) AS 0",
    "CREATE MACRO main.pg_size_pretty(x) AS '0 bytes'",
    f"CREATE MACRO main.pg_type_name(x, y) AS CASE x {_NAMES} ELSE 'text' END",
)
"""What clients look up of a PostgreSQL server that the engine does not have."""

_INVENTED: Final = {
    "pg_am": "SELECT 2 AS oid, 'heap' AS amname",
    "pg_collation": "SELECT 0 AS oid, '' AS collname, 0 AS collnamespace WHERE false",
    "pg_cursors": "SELECT '' AS name, '' AS statement WHERE false",
    "pg_inherits": "SELECT 0 AS inhrelid, 0 AS inhparent WHERE false",
    "pg_attribute": "SELECT a.* REPLACE (c.number AS atttypid, -1 AS atttypmod) FROM pg_catalog.pg_attribute AS a JOIN "
    f"(SELECT table_oid, column_name, CASE data_type {_OIDS} ELSE 25 END AS number FROM duckdb_columns()) AS c "
    "ON a.attrelid = c.table_oid AND a.attname = c.column_name",
    "pg_namespace": "SELECT oid, nspname, 10 AS nspowner, NULL AS nspacl FROM pg_catalog.pg_namespace "
    "WHERE nspname = 'public' UNION ALL SELECT 11, 'pg_catalog', 10, NULL",
    "pg_settings": "SELECT * FROM (VALUES ('max_index_keys', '32'), ('server_version', '16.0'), "
    "('standard_conforming_strings', 'on'), ('bytea_output', 'hex')) AS settings(name, setting)",
    "pg_type": "SELECT *, 11 AS typnamespace, "
    "'b' AS typtype, false AS typnotnull, 0 AS typbasetype, -1 AS typtypmod, 0 AS typrelid, 0 AS typelem, "
    "0 AS typarray, ',' AS typdelim, 10 AS typowner, true AS typisdefined, 0 AS typcollation, 0 AS typndims, "
    "NULL AS typdefault, NULL AS typacl, 'array_in' AS typinput, false AS typbyval, false AS typispreferred "
    f"FROM (VALUES {', '.join(f'({n}, {name!r}, {size}, {kind!r})' for n, name, _, size, kind in _NUMBERED)}) "
    "AS types(oid, typname, typlen, typcategory)",
    "pg_class": "SELECT *, false AS relforcerowsecurity FROM pg_catalog.pg_class",
    "pg_database": "SELECT 1 AS oid, current_database() AS datname, 10 AS datdba, 6 AS encoding, 'C' AS datcollate, "
    "'C' AS datctype, NULL AS daticulocale, 'c' AS datlocprovider, NULL AS datacl, false AS datistemplate, "
    "true AS datallowconn, -1 AS datconnlimit, 0 AS dattablespace",
}
"""System tables that clients join and the engine does not have."""

_TEXTS: Final = frozenset({"TEXT", "NAME", "REGCLASS", "REGTYPE", "REGNAMESPACE", "REGPROC", "REGROLE", '"CHAR"'})
"""Types of PostgreSQL that leave as texts."""

VERSION: Final = "PostgreSQL 16.0 (farthing)"
"""What the server says that it is: clients read the number and choose by it what they may send."""

_MOST_ROWS: Final = 100_000

_LIMIT_S: Final = 2.0
"""After so long a statement is interrupted."""

_AGAIN_S: Final = 0.1
"""So long after an interrupt comes the next, while the statement still runs."""

_WAIT_S: Final = 5.0
"""So long a statement waits for that of another client."""

_FUNCTIONS: Final = frozenset({
    "and", "array", "array_agg", "array_length", "array_lower", "array_position", "array_to_string", "array_upper",
    "avg", "case", "cast", "coalesce", "col_description", "concat", "concat_ws", "count", "current_catalog",
    "current_database", "current_date", "current_role", "current_schema", "current_schemas", "current_setting",
    "current_time", "current_timestamp", "current_user", "current_version", "exists", "explode", "extract",
    "format_type", "greatest", "group_concat", "if", "least", "left", "length", "lower", "max", "min", "not", "nullif",
    "obj_description", "or", "position", "quote_ident", "quote_literal", "rank", "regexp_ilike", "regexp_like",
    "right", "row_number", "session_user", "shobj_description", "split_part", "starts_with", "str_position",
    "string_agg", "substring", "sum", "to_regclass", "to_regtype", "trim", "try_cast", "unnest", "upper", "user",
    "version", "xor",
})  # fmt: skip
"""The functions that a statement may call, beside those that begin as PostgreSQL's own, `pg_` and `has_`. Each returns
no more than a little of what it is given: no range, no repeat, no padding."""


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
            ":memory:", config={"enable_external_access": "false", "threads": "1", "memory_limit": "64MB"}
        )
        self._engine.execute("ATTACH ':memory:' AS farthing; USE farthing; DETACH memory")  # clients show its name
        self._engine.execute("CREATE SCHEMA IF NOT EXISTS public; SET search_path = 'public'")
        for table, columns in tables.items():
            named = ", ".join(f"{_quoted(name)} {_TYPES.get(kind, 'VARCHAR')}" for name, kind in columns.items())
            self._engine.execute(f"CREATE TABLE public.{_quoted(table)} ({named})")
        for made in _PRETENDED:
            self._engine.execute(made)
        for table, text in _INVENTED.items():
            self._engine.execute(f"CREATE MACRO main.pg_made_{table}() AS TABLE {text}")
        self._engine.execute("SET lock_configuration = true")

    def asked(self, text: str) -> pa.Table:
        """Return what a question about the catalog gives.

        Raises:
            UnsupportedQuery: it is not a question that the catalog can answer, or it takes too long.
        """
        import duckdb
        import sqlglot
        from sqlglot import exp

        found, interrupted = None, False
        plain: Any = None
        try:
            plain = sqlglot.parse_one(text, dialect="postgres")
            tree = plain.transform(_ours)
            if isinstance(tree, exp.Query) and _is_cheap(tree):
                with self._turn():
                    found = self._engine.sql(_limited(tree).sql(dialect="duckdb")).to_arrow_table()
            else:
                found = _nothing(plain)
        except duckdb.InterruptException:
            interrupted = True
        except (sqlglot.errors.SqlglotError, duckdb.Error, RecursionError):
            found = _nothing(plain)
        if interrupted:
            raise _too_long("the statement takes too long", f"a statement about the catalog takes {_LIMIT_S:g} seconds")
        if found is None:
            raise UnsupportedQuery(
                "the server does not answer this question",
                construct="statement",
                rule="a statement is one SELECT of aggregates over a declared table, or about the catalog",
                next_step="SELECT table_name, column_name FROM information_schema.columns shows what there is",
            )
        return found

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the engine, for a while, and interrupt what runs in it after a while."""
        if not self._lock.acquire(timeout=_WAIT_S):
            raise _too_long("the catalog is busy", "one statement about the catalog at a time")
        done = threading.Event()
        alarm = threading.Thread(target=self._interrupt, args=(done,), daemon=True)
        try:
            alarm.start()
            yield
        finally:
            done.set()
            alarm.join()  # or it would interrupt the next one
            self._lock.release()

    def _interrupt(self, done: threading.Event) -> None:
        """Interrupt what takes too long, again and again: an interrupt that comes between two steps is forgotten."""
        wait_s = _LIMIT_S
        while not done.wait(wait_s):
            self._engine.interrupt()
            wait_s = _AGAIN_S

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _ours(node: Any) -> Any:
    """Return a part of a statement as the engine has it: no pg_catalog before functions and types, and our version."""
    import sqlglot.expressions as exp

    if isinstance(node, exp.Dot) and node.this.name == "pg_catalog" and isinstance(node.expression, exp.Func):
        node = node.expression if _is_version(node.expression) else node.expression.transform(_ours)
    if isinstance(node, exp.Column) and node.db == "pg_catalog":
        node.set("db", None)  # tables that are made here are in no schema
    if _is_version(node):
        told = exp.Literal.string(VERSION)
        return exp.alias_(told, "version") if isinstance(node.parent, exp.Select | exp.Dot) else told
    return next((made for rule in (_table, _call, _typed) if (made := rule(node)) is not None), node)


def _table(node: Any) -> Any:
    """Return a system table that the engine does not have, or lacks columns of; None for anything else."""
    import sqlglot.expressions as exp

    if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
        node.set("db", None)
    elif isinstance(node, exp.Table) and node.name in _INVENTED:
        made = exp.Table(this=exp.func(f"pg_made_{node.name}"), joins=node.args.get("joins"))
        return exp.alias_(made, node.alias or node.name, table=True)
    return None


def _call(node: Any) -> Any:
    """Return a call of PostgreSQL's own in words of the engine; None for anything else."""
    import sqlglot.expressions as exp

    match node.name.lower() if isinstance(node, exp.Anonymous) else "":
        case "format_type":
            node.set("this", "pg_type_name")
        case "pg_get_expr":
            return exp.func("pg_expression", node.expressions[0])  # with two arguments or three; no column has any
        case "json_build_object":
            return exp.Null()  # of identities and collations, which no column here has
    return None


def _typed(node: Any) -> Any:
    """Return a comparison, a cast or a column whose type the engine does not have; None for anything else."""
    import sqlglot.expressions as exp

    if isinstance(node, exp.Operator):  # as psql writes what a name is like
        pattern = node.expression.this if isinstance(node.expression, exp.Collate) else node.expression
        like = exp.RegexpLike(this=node.this.transform(_ours), expression=pattern)
        return exp.Not(this=like) if "!" in str(node.args.get("operator")) else like
    if isinstance(node, exp.Replace) and node.args["expression"].name == "pg_temp_":
        return node.this  # the name of a schema of temporary tables, which there are none of
    if isinstance(node, exp.Column) and node.name == "reloptions":
        return exp.cast(exp.Null(), "text[]")
    if isinstance(node, exp.Cast) and node.to.sql().upper().removeprefix("PG_CATALOG.") in _TEXTS:
        node.set("to", exp.DataType.build("text"))
    return None


def _is_version(node: Any) -> bool:
    """Whether a part of a statement asks for the version of the server."""
    import sqlglot.expressions as exp

    return isinstance(node, exp.CurrentVersion | exp.Anonymous) and node.name.lower() in {"", "version"}


def _is_cheap(tree: exp.Query) -> bool:
    """Whether a statement calls listed functions only."""
    import sqlglot.expressions as exp

    def named(call: Any) -> str:
        """Return the name of a function."""
        return str(call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()

    names = map(named, tree.find_all(exp.Func))
    return all(name in _FUNCTIONS or name.startswith(("pg_", "has_")) for name in names)


def _limited(tree: exp.Query) -> exp.Query:
    """Return a statement that gives no more rows than a client is sent."""
    import sqlglot.expressions as exp

    limit = tree.args.get("limit")
    count = None if limit is None else limit.args.get("count") or limit.args.get("expression")
    if isinstance(count, exp.Literal) and count.is_int and int(count.name) <= _MOST_ROWS:
        return tree
    return tree.limit(_MOST_ROWS)


def _too_long(what: str, rule: str) -> UnsupportedQuery:
    """Return the refusal of a statement that the engine has no time for."""
    return UnsupportedQuery(what, construct="statement", rule=rule, next_step="ask again, or ask for less at a time")


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
