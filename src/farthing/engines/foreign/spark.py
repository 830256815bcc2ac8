"""Spark: its guards, its hash (xxhash64) and its answers.

Times are TIMESTAMP_NTZ, without zone; a TIMESTAMP is read as one, in UTC. Functions that Spark computes by way of the
session's time zone, such as date_trunc, are built from parts instead.
"""

from __future__ import annotations

import uuid
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.backend import nothing
from farthing.engines.foreign.terms import call, real, whole
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EDGES: Final = {
    Type.DATE: (date(1, 1, 1), date(9999, 12, 31)),
    Type.TIMESTAMP: (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001  # no zones
}
_ERA: Final = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The microseconds from 1970 to the first and last of the years 1 to 9999."""

_WHOLE: Final = 2.0**52
_CLOCK: Final = ("hour", "minute", "second")
_PARTS: Final = {"doy": "dayofyear", "dow": "weekday", "week": "weekofyear"}
_TEXTUAL: Final = {"starts_with": "startswith", "ends_with": "endswith", "contains": "contains"}
_INTEGERS: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


class SparkBackend:
    """The guarded primitives of Spark, and its hash; the same with ANSI mode on or off.

    Args:
        connection: the ibis backend.
    """

    name = "pyspark"
    plans = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._tag = uuid.uuid4().hex[:12]

    @property
    def version(self) -> str:
        """None is needed: xxhash64 is the same in all versions."""
        return ""

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return a table whose texts compare by bytes and whose zoned times, which ibis does not tell, are in UTC."""
        import ibis

        schema, changed = dict(table.schema()), {}
        for field in self._connection.raw_sql(self.compile(table)).schema:
            native = type(field.dataType).__name__
            if native == "TimestampType":
                schema[field.name] = ibis.dtype("timestamp")
                changed[field.name] = _in_utc(table[field.name])
            if native == "StringType" and getattr(field.dataType, "collation", "UTF8_BINARY") != "UTF8_BINARY":
                changed[field.name] = call("collate", "string", table[field.name], "UTF8_BINARY")
        return table.mutate(**changed) if changed else table, schema

    def beside(self, table: pa.Table, name: str) -> Any:
        """Return the name of a table that travels with the question."""
        import ibis

        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=f"{name}_{self._tag}")

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
        """Return the answer of a question; tables beside it are views for as long as it runs."""
        session = self._connection._session  # noqa: SLF001  # ibis has no public name for it
        views = {f"{name}_{self._tag}": table for name, table in beside.items()}
        try:
            for view, table in views.items():
                _frame(session, table).createOrReplaceTempView(view)
            return self._send(self.compile(question))
        finally:
            for view in views:
                session.catalog.dropTempView(view)

    def _send(self, sql: str) -> pa.Table:
        """Return an answer: the one place from which a text reaches rows."""
        return self._connection._session.sql(sql).toArrow()  # noqa: SLF001  # ibis has no public name for it

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared, computed with and grouped."""
        import ibis

        if kind is Type.FLOAT:
            return column.cast("float64") + real(0)
        if kind is Type.DECIMAL:
            return column.cast("float64")
        if kind in _EDGES:
            return ibis.cases((column.between(*(self.moment(edge) for edge in _EDGES[kind])), column))
        return column

    def require(self, function: str) -> None:
        """All functions are there."""

    def hash(self, unit: Any, places: Sequence[Any], key: int) -> Any:
        """Return a chain of hashes: xxhash64 takes each value with what came before as its seed."""
        ranked = whole(key - 2**64 if key >= 2**63 else key)
        for value in (unit, *places):
            ranked = call("xxhash64", "int64", ranked, value)
        return ranked

    def copies(self, node: Any) -> int:  # noqa: ARG002  # as ibis prints it
        """Return how often the text of an operation holds what it is of: once."""
        return 1

    def numbered(self) -> Any:
        """Return a number that tells the rows of one table apart."""
        return call("monotonically_increasing_id", "int64")

    def fence(self) -> Any:
        """Return a truth that is not deterministic: filters are not pushed past a projection that has one."""
        return call("rand", "float64") >= real(0)

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL; ibis' own test takes NaN for NULL here."""
        return call("isnull", "boolean", value)

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group."""
        return column.nunique()

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts: by bytes of UTF-8, which is by code points."""
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]

    def integers(self, sign: str, left: Any, right: Any) -> Any:
        """Return left sign right for + - *, NULL outside int64."""
        return call(_INTEGERS[sign], "int64", left, right)

    def divided(self, word: str, left: Any, right: Any) -> Any:
        """Return the whole quotient or what it leaves, truncated."""
        return call(word, "int64", left, right)

    def rounded(self, word: str, value: Any) -> Any:
        """Return floor, ceil or trunc of a double, as a double: from 2^52 on all doubles are whole."""
        import ibis

        small = ibis.cases((value.abs() < real(_WHOLE), value))
        cut = small.cast("int64") if word == "trunc" else getattr(small, word)()
        return ibis.ifelse(value.abs() < real(_WHOLE), cut.cast("float64"), value)

    def textual(self, word: str, *values: Any) -> Any:
        """Return functions of texts."""
        match word:
            case "lower":
                return call("translate", "string", *values, _LETTERS, _LETTERS.lower())
            case "upper":
                return call("translate", "string", *values, _LETTERS.lower(), _LETTERS)
            case "length":
                return call("char_length", "int32", *values).cast("int64")
            case "starts_with" | "ends_with" | "contains":
                return call(_TEXTUAL[word], "boolean", *values)
            case _:
                return call(word, "string", *values)

    def substring(self, text: Any, start: Any, length: Any | None) -> Any:
        """Return letters from a place on."""
        return call("substring", "string", text, start, *([] if length is None else [length]))

    def logarithm(self, value: Any) -> Any:
        """Return the logarithm to base ten."""
        return call("log10", "float64", value, database="builtin")

    def truncated(self, unit: str, moment: IbisTerm) -> Any:
        """Return the first moment of a unit."""
        x = moment.expr
        if unit in _CLOCK:
            kept = _CLOCK[: _CLOCK.index(unit) + 1]
            return _time(x, [_part(part, x) if part in kept else whole(0) for part in _CLOCK])
        day = x if moment.type is Type.DATE else x.cast("date")
        day = day if unit == "day" else call("trunc", "date", day, unit.upper())
        return day if moment.type is Type.DATE else self.midnight(day)

    def part(self, part: str, moment: IbisTerm) -> Any:
        """Return a part of a date or time as an integer."""
        found = _part(_PARTS.get(part, part), moment.expr)
        return found + whole(1) if part == "dow" else found

    def days(self, first: Any, last: Any) -> Any:
        """Return the days from one date to another."""
        return call("datediff", "int32", last, first).cast("int64")

    def midnight(self, day: Any) -> Any:
        """Return a date as a time."""
        return _time(day, [whole(0)] * 3)

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""
        import ibis

        if isinstance(value, datetime):
            return call("to_timestamp_ntz", "timestamp", value.isoformat(sep=" "))
        return ibis.literal(value)

    def parsed(self, text: Any, pattern: str, kind: Type) -> Any:
        """Return a text that matches a pattern as a value of a type, else NULL."""
        import ibis

        matched = call("regexp_extract", "string", text, rf"^({pattern})\z", ibis.literal(1)).nullif("")
        if kind is Type.TIMESTAMP:
            return call("to_timestamp_ntz", "timestamp", matched)
        return matched.try_cast({Type.INTEGER: "int64", Type.FLOAT: "float64", Type.DATE: "date"}[kind])

    def spelled(self, value: IbisTerm) -> Any:
        """Return an integer, truth value, date or time as text."""
        return value.expr.cast("string")


def _in_utc(moment: Any) -> Any:
    """Return a zoned time as it is in UTC, NULL outside the years 1 to 9999; a cast would go by the session's zone."""
    import ibis

    micros = call("unix_micros", "int64", moment)
    inside = ibis.cases((micros.between(*(ibis.literal(edge) for edge in _ERA)), micros))
    seconds = inside.cast("decimal(19, 0)") / ibis.literal(1_000_000).cast("decimal(7, 0)")
    passed = call("make_dt_interval", "interval('us')", 0, 0, 0, seconds)
    return call("try_add", "timestamp", call("to_timestamp_ntz", "timestamp", "1970-01-01 00:00:00"), passed)


def _part(name: str, moment: Any) -> Any:
    """Return a part of a date or time."""
    return call(name, "int32", moment).cast("int64")


def _time(day: Any, clock: Sequence[Any]) -> Any:
    """Return the time without zone on the day of a date or time."""
    parts = [_part(part, day) for part in ("year", "month", "day")]
    return call("make_timestamp_ntz", "timestamp", *(part.cast("int32") for part in (*parts, *clock)))


def _frame(session: Any, table: pa.Table) -> Any:
    """Return Arrow rows as a frame of Spark; times have no zone."""
    import pyarrow.types as t
    from pyspark.sql import types

    kinds = (
        (t.is_boolean, types.BooleanType()),
        (t.is_integer, types.LongType()),
        (t.is_floating, types.DoubleType()),
        (t.is_date, types.DateType()),
        (t.is_timestamp, types.TimestampNTZType()),
    )
    fields = [
        types.StructField(field.name, next((kind for test, kind in kinds if test(field.type)), types.StringType()))
        for field in table.schema
    ]
    return session.createDataFrame(table, schema=types.StructType(fields))
