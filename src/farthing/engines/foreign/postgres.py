"""PostgreSQL: its guards, its hash (hashtextextended and its kin) and its answers.

Functions are named with their schema: the search path of a session cannot put others in their place.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.backend import nothing
from farthing.engines.foreign.terms import call, real, whole
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm

_BACK_S, _PAUSE_S = 20.0, 0.25
"""How long a server that has stopped is waited for, and how long between two tries."""

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EDGES: Final = {
    Type.DATE: (date(1, 1, 1), date(9999, 12, 31)),
    Type.TIMESTAMP: (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001  # no zones
}
_ORDER: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_NAMES: Final = {"trim": "btrim", "length": "char_length", "contains": "strpos"}


def _pg(name: str, output: Any, *arguments: Any) -> Any:
    """Return a call of a function of PostgreSQL's own."""
    return call(name, output, *arguments, database="pg_catalog")


class PostgresBackend:
    """The guarded primitives of PostgreSQL, and its hash.

    PostgreSQL raises on overflow and underflow, has no TRY_CAST, and may compute constant parts of any branch early:
    so integers go through numeric and are brought back by clamping, and texts are cut to what a strict pattern matches
    before they are cast.

    Args:
        connection: the ibis backend.
    """

    name = "postgres"
    plans = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def version(self) -> str:
        """The server's major version: hash functions stay the same within one."""
        return str(self._connection.con.info.server_version // 10_000)

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return a table whose texts compare by bytes, whatever their collation, and whose zoned times are in UTC."""
        import ibis

        # Places on earth are told by functions that may not be there; the text of one is the same everywhere.
        places = {name: table[name].cast("string") for name, kind in table.schema().items() if kind.is_geospatial()}
        table = table.mutate(**places) if places else table
        schema, columns = dict(table.schema()), []
        for name, kind in schema.items():
            quoted = '"' + name.replace('"', '""') + '"'
            if kind.is_string():
                columns.append(f'CAST({quoted} AS text) COLLATE "C" AS {quoted}')
            elif kind.is_timestamp() and kind.timezone is not None:
                columns.append(f"{quoted} AT TIME ZONE 'UTC' AS {quoted}")
                schema[name] = ibis.dtype("timestamp")
            elif kind.is_decimal():  # `money` is one to ibis
                columns.append(f"CAST({quoted} AS numeric) AS {quoted}")
            elif kind.is_int64():  # `oid` is one to ibis; a cast of a bigint is none to the server
                columns.append(f"CAST({quoted} AS bigint) AS {quoted}")
            else:
                columns.append(quoted)
        sql = f"SELECT {', '.join(columns)} FROM ({self.compile(table)}) AS farthing_table"
        return self._connection.sql(sql, schema=ibis.schema(schema)), schema

    def beside(self, table: pa.Table, name: str) -> Any:
        """Return the name of a table that travels with the question."""
        import ibis

        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

    def compile(self, question: Any) -> str:
        """Return the text of a question."""
        return str(self._connection.compile(question))

    def prepared(
        self,
        question: Any,
        beside: Mapping[str, pa.Table],  # noqa: ARG002  # names are enough
    ) -> Callable[[], None]:
        """Find out that ibis can print a question; the backend prepares nothing."""
        self.compile(question)
        return nothing

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question; tables beside it are arrays that the server unnests: nothing is written."""
        import pyarrow as pa

        sql = self.compile(question)
        parameters: list[Any] = []
        if beside:
            parts = []
            for name, table in beside.items():
                columns = ", ".join(f'"{column}"' for column in table.column_names)
                unnested = ", ".join(f"%s::{_native(field.type)}[]" for field in table.schema)
                parts.append(f'"{name}" AS (SELECT * FROM unnest({unnested}) AS k({columns}))')
                parameters += [column.to_pylist() for column in table.columns]
            sql = f"WITH {', '.join(parts)} SELECT * FROM ({sql.replace('%', '%%')}) AS answer"
        rows, schema = self._asked(sql, parameters), question.schema().to_pyarrow()
        found = list(zip(*rows, strict=True)) or [() for _ in schema]
        arrays = [pa.array(column, field.type) for column, field in zip(found, schema, strict=True)]
        return pa.table(arrays, schema)

    def _asked(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of an answer; what was sent over a connection that was lost is asked once more."""
        import psycopg

        if not self._connection.con.closed:
            try:
                return self._send(sql, parameters)
            except psycopg.OperationalError:
                if not self._connection.con.closed:
                    raise
        self._connect_again()
        return self._send(sql, parameters)

    def _connect_again(self) -> None:
        """Make the connection again, and wait for the server for a while where it has stopped."""
        import psycopg

        until = time.monotonic() + _BACK_S
        while time.monotonic() < until:
            with suppress(psycopg.OperationalError):
                self._connection.reconnect()
                return
            time.sleep(_PAUSE_S)
        self._connection.reconnect()

    def _send(self, sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """Send a text once: the one place from which it reaches rows."""
        connection = self._connection.con
        with connection.transaction(), connection.cursor() as cursor:
            return list(cursor.execute(sql, parameters or None).fetchall())

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared, computed with and grouped."""
        import ibis

        if kind is Type.FLOAT:
            return column.cast("float64") + real(0)
        if kind is Type.DECIMAL:
            return _decimal(column)
        if kind in _EDGES:
            return ibis.cases((column.between(*(self.moment(edge) for edge in _EDGES[kind])), column))
        return column

    def require(self, function: str) -> None:
        """All functions are there."""

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return a chain of hashes, each the seed of the next: each mixes its seed in as well as its value."""
        seed = ibis_key(key)
        for value in (unit, *places):
            seed = _hashed(value, seed)
        return seed

    def copies(self, node: Any) -> int:  # noqa: ARG002  # as ibis prints it
        """Return how often the text of an operation holds what it is of: once."""
        return 1

    def numbered(self) -> Any:
        """Return a number that tells the rows of one table apart."""
        import ibis

        return ibis.row_number()

    def fence(self) -> Any:
        """Return a volatile truth: subqueries that have one are neither pulled up nor pushed into."""
        return _pg("isfinite", "boolean", _pg("clock_timestamp", "timestamp"))

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL."""
        return value.isnull()

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group."""
        return column.nunique()

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts by code points, whatever their collation."""
        return _pg(f"text_pattern_{_ORDER[sign]}", "boolean", left, right)

    def integers(self, sign: str, left: Any, right: Any) -> Any:
        """Return left sign right for + - *, NULL outside int64: numeric, clamped to just outside, which is NULL."""
        import ibis

        one, other = left.cast("decimal(38, 0)"), right.cast("decimal(38, 0)")
        exact = {"+": one + other, "-": one - other, "*": one * other}[sign]
        low, high = (ibis.literal(Decimal(edge), type="decimal(38, 0)") for edge in (-(2**63) - 1, 2**63))
        clamped = ibis.least(ibis.greatest(exact, low), high)
        return clamped.nullif(low).nullif(high).cast("int64")

    def divided(self, word: str, left: Any, right: Any) -> Any:
        """Return the whole quotient or what it leaves, truncated."""
        return _pg(f"int8{word}", "int64", left, right)

    def rounded(self, word: str, value: Any) -> Any:
        """Return floor, ceil or trunc of a double, as a double."""
        return _pg(word, "float64", value)

    def textual(self, word: str, *values: Any) -> Any:  # noqa: PLR0911  # one return a case
        """Return functions of texts."""
        match word:
            case "lower":
                return _pg("translate", "string", *values, _LETTERS, _LETTERS.lower())
            case "upper":
                return _pg("translate", "string", *values, _LETTERS.lower(), _LETTERS)
            case "length":
                return _pg("char_length", "int32", *values).cast("int64")
            case "contains":
                return _pg("strpos", "int32", *values) > 0
            case "starts_with":
                return _pg("starts_with", "boolean", *values)
            case "replace":
                return _pg("replace", "string", *values)
            case "ends_with":
                end = _pg("char_length", "int32", values[1])
                return _pg("right", "string", values[0], end) == values[1]
            case _:
                return _pg(_NAMES.get(word, word), "string", *values, " ")

    def substring(self, text: Any, start: Any, length: Any | None) -> Any:
        """Return letters from a place on."""
        return _pg("substr", "string", text, start, *([] if length is None else [length]))

    def logarithm(self, value: Any) -> Any:
        """Return the logarithm to base ten."""
        return _pg("log10", "float64", value)

    def truncated(self, unit: str, moment: IbisTerm) -> Any:
        """Return the first moment of a unit."""
        cut = _pg("date_trunc", "timestamp", unit, moment.expr.cast("timestamp"))
        return cut.cast("date") if moment.type is Type.DATE else cut

    def part(self, part: str, moment: IbisTerm) -> Any:
        """Return a part of a date or time as an integer."""
        found = _pg("date_part", "float64", {"dow": "isodow"}.get(part, part), moment.expr.cast("timestamp"))
        return self.rounded("floor", found).cast("int64")

    def days(self, first: Any, last: Any) -> Any:
        """Return the days from one date to another."""
        return _pg("date_mi", "int32", last, first).cast("int64")

    def midnight(self, day: Any) -> Any:
        """Return a date as a time."""
        return day.cast("timestamp")

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""
        import ibis

        return ibis.literal(value)

    def parsed(self, text: Any, pattern: str, kind: Type) -> Any:
        """Return a text that matches a pattern as a value of a type, else NULL."""
        native = {Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date", Type.TIMESTAMP: "timestamp"}[kind]
        return _pg("substring", "string", text, f"^({pattern})$").cast(native)

    def spelled(self, value: IbisTerm) -> Any:
        """Return an integer, truth value, date or time as text, whatever the session's own style of dates."""
        import ibis

        match value.type:
            case Type.BOOLEAN:
                return ibis.cases((value.expr, "true"), (~value.expr, "false"))
            case Type.DATE:
                return _pg("to_char", "string", value.expr.cast("timestamp"), "YYYY-MM-DD")
            case Type.TIMESTAMP:
                spelled = _pg("to_char", "string", value.expr, "YYYY-MM-DD HH24:MI:SS.US")
                return _pg("rtrim", "string", _pg("rtrim", "string", spelled, "0"), ".")
            case _:
                return value.expr.cast("string")


def ibis_key(key: int) -> Any:
    """Return a hash key as a constant of 64 bits with sign."""
    return whole(key - 2**64 if key >= 2**63 else key)


def _hashed(value: Any, seed: Any) -> Any:
    """Return PostgreSQL's 64-bit hash of a value with a seed: the one that goes with its equality."""
    import ibis

    kind = value.type()
    if kind.is_integer():
        return _pg("hashint8extended", "int64", value, seed)
    if kind.is_string():
        return _pg("hashtextextended", "int64", value, seed)
    if kind.is_floating():
        return _pg("hashfloat8extended", "int64", value, seed)
    return _pg("hash_array_extended", "int64", ibis.array([value]), seed)


def _decimal(column: Any) -> Any:
    """Return a numeric as a double; what has too many digits for one is infinite or zero."""
    import ibis

    kind = column.type()
    if kind.precision is not None and kind.precision <= 300:
        return column.cast("float64")
    size, digits = column.abs(), column.cast("string")
    return ibis.cases(
        (digits.isin(["NaN", "Infinity", "-Infinity"]), column.cast("float64")),
        (size < ibis.literal("1e-300").cast("decimal"), real(0)),
        (size <= ibis.literal("1e308").cast("decimal"), column.cast("float64")),
        (column > 0, real(float("inf"))),
        (column < 0, real(float("-inf"))),
    )


def _native(kind: Any) -> str:
    """Return PostgreSQL's type of an Arrow type."""
    import pyarrow.types as t

    tests = (
        (t.is_boolean, "boolean"),
        (t.is_integer, "bigint"),
        (t.is_floating, "double precision"),
        (t.is_decimal, "numeric"),
        (t.is_date, "date"),
        (t.is_timestamp, "timestamp"),
    )
    return next((name for test, name in tests if test(kind)), "text")
