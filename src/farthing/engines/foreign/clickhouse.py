"""ClickHouse: how it spells the words. Sums wrap, NaN equals nothing, and casts may look at what is below a NULL.

So integers meet in 128 bits, doubles are compared with NaN above all, and no word has a value at which it fails,
guarded or not.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.dialect import Dialect, DialectBackend
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

_CLOCK: Final = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_SINCE: Final = "toUnixTimestamp64Micro({0})"
_PARTS: Final = {"year": "toYear", "quarter": "toQuarter", "month": "toMonth", "week": "toISOWeek",
                 "day": "toDayOfMonth", "doy": "toDayOfYear", "dow": "toDayOfWeek", "hour": "toHour",
                 "minute": "toMinute", "second": "toSecond"}  # fmt: skip
_ONE: Final = "reinterpretAsInt64(if(isNaN({%d}), nan, {%d} + 0.))"
"""One whole number of each double, of all NaN and of both zeros: where these are equal, so are the doubles."""

_LESS: Final = "(({0} < {1}) OR (NOT isNaN({0}) AND isNaN({1})))"
_AT_MOST: Final = "(({0} <= {1}) OR ({0} IS NOT NULL AND isNaN({1})))"

WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"toInt64({name}({{0}}))" for part, name in _PARTS.items()},
    **{f"first_of_{unit}": f"fromUnixTimestamp64Micro({_SINCE} - positiveModulo({_SINCE}, {micros}), 'UTC')"
       for unit, micros in _CLOCK.items()},
    "first_of_year": "subtractDays({0}, toDayOfYear({0}) - 1)",
    "first_of_quarter": "makeDate32(toYear({0}), toQuarter({0}) * 3 - 2, 1)",
    "first_of_month": "subtractDays({0}, toDayOfMonth({0}) - 1)",
    "first_of_week": "subtractDays({0}, toDayOfWeek({0}) - 1)",
    "day_of": "toDate32({0}, 'UTC')",
    "days": "toInt64(toInt32({1}) - toInt32({0}))",
    "midnight": "toDateTime64({0}, 6, 'UTC')",
    "moment": "toDateTime64OrNull({0}, 6, 'UTC')",
    "day": "toDate32OrNull({0})",
    "in_utc": "toTimeZone({0}, 'UTC')",
    "one_nan": "if(isNaN({0}), nan, CAST({0} AS Nullable(Float64)))",
    "read_float": "CAST({0} AS Nullable(Float64)) + 0.",
    "read_decimal": "CAST({0} AS Nullable(Float64))",
    "read_wide_decimal": "toFloat64OrNull(toString({0}))",
    "read_date": "toDate32({0})",
    "read_timestamp": "toDateTime64({0}, 6, 'UTC')",
    "read_string": "CASE WHEN isValidUTF8(toString({0})) THEN toString({0}) END",
    **{word: f"accurateCastOrNull(toInt128({{0}}) {sign} toInt128({{1}}), 'Int64')"
       for word, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))},
    "div": "intDivOrZero({0}, {1})",
    "mod": "moduloOrZero({0}, {1})",
    "divide": "{0} / {1}",
    **{word: f"{word}({{0}})" for word in ("floor", "ceil", "trunc", "log10", "sqrt", "exp")},
    "ln": "log({0})",
    "power": "pow({0}, {1})",
    "real": "CAST({0} AS Nullable(Float64))",
    **{f"whole_{bits}": f"accurateCastOrNull({{0}}, 'Int{bits}')" for bits in (32, 64)},
    "equal": f"{_ONE % (0, 0)} = {_ONE % (1, 1)}",
    "unequal": f"{_ONE % (0, 0)} <> {_ONE % (1, 1)}",
    "less": _LESS,
    "at_most": _AT_MOST,
    "greater": _LESS.format("{1}", "{0}"),
    "at_least": _AT_MOST.format("{1}", "{0}"),
    "least": f"multiIf({{0}} IS NULL, {{1}}, {{1}} IS NULL, {{0}}, {_AT_MOST}, {{0}}, {{1}})",
    "greatest": f"multiIf({{0}} IS NULL, {{1}}, {{1}} IS NULL, {{0}}, {_AT_MOST}, {{1}}, {{0}})",
    "lower": "lower({0})",
    "upper": "upper({0})",
    "length": "toInt64(lengthUTF8({0}))",
    "starts_with": "startsWith({0}, {1})",
    "ends_with": "endsWith({0}, {1})",
    "contains": "position({0}, {1}) > 0",
    "trim": "trimBoth({0})",
    "ltrim": "trimLeft({0})",
    "rtrim": "trimRight({0})",
    "from": "substringUTF8({0}, {1})",
    "substring": "substringUTF8({0}, {1}, {2})",
    "replace": "if({1} = '', {0}, replaceAll(if(lengthUTF8({0}) * greatest(lengthUTF8({2}), 1) <= 1048576, {0}, ''),"
    " {1}, {2}))",
    "like": "{0} LIKE {1}",
    "matching": "if(match({0}, {1}), {0}, NULL)",
    "to_integer": "toInt64OrNull({0})",
    "to_float": "toFloat64OrNull({0})",
    "to_date": "toDate32OrNull({0})",
    "to_timestamp": "toDateTime64OrNull({0}, 6, 'UTC')",
    **{f"spelled_{kind}": "toString({0})" for kind in ("integer", "date")},
    "spelled_timestamp": "replaceRegexpOne(toString({0}), '\\\\.?0+$', '')",
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, whatever is below a NULL."""

CLICKHOUSE: Final = Dialect(
    "clickhouse", WORDS, " SETTINGS join_use_nulls = 1, session_timezone = 'UTC', precise_float_parsing = 1"
)

_PROBE: Final = (
    "SELECT toInt32(toDate32('0001-01-01')) = -719162 AND toInt32(toDate32('9999-12-31')) = 2932896"
    " AND least(NULL, 1) = 1"
)
"""Whether dates reach from the year 1 to 9999, and NULL is never the least value: so in versions of 2026."""


@cache
def exact_distinct(kind: Any) -> Any:
    """Return ClickHouse's count of different values, of a type.

    Guarantee: the number itself, so that one unit moves it by no more than its sensitivity.
    Proof: docs/proofs/engines.bounded.md, "Different values".
    Assumes: `uniqExact` counts all, NULL left out.
    Rounds: nothing.
    """
    import ibis

    return ibis.udf.agg.builtin(_counted, name="uniqExact", signature=((kind,), ibis.dtype("uint64")))


def _counted(value: Any) -> Any:
    """Stand for a function of ClickHouse of one argument."""


class ClickHouseBackend(DialectBackend):
    """The guarded primitives of ClickHouse."""

    dialect = CLICKHOUSE

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        if getattr(connection, "con", None) is not None and not connection.con.command(_PROBE):
            raise DataError(
                "this ClickHouse is too old",
                rule="its dates reach from the year 1 to 9999, as in version 26.9",
                got=self.version,
                next_step="use a later version, or export the table to Parquet",
            )

    def different(self, column: Any) -> Any:
        """Return how many different values a column has in a group; `uniq`, which ibis would send, is an estimate."""
        return exact_distinct(column.type())(column).cast("int64")

    def _rows_of(self, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> Any:
        """Return constant rows by the function of that name; a union, as sqlglot writes, has a step of a plan each."""
        from sqlglot import exp

        kinds = exp.Literal.string(", ".join(f"{column} Nullable(String)" for column in columns))
        told = exp.Anonymous(this="values", expressions=[kinds, *(exp.Tuple(expressions=list(row)) for row in rows)])
        return exp.Table(this=told, alias=exp.TableAlias(this=exp.to_identifier("k")))

    def _prepare(self, sql: str) -> None:
        """Have a text read and its names and types found; nothing is run."""
        self._connection.con.command(f"EXPLAIN QUERY TREE {sql}")

    def _send(self, sql: str) -> pa.Table:
        """Return an answer: the one place from which a text reaches rows."""
        return self._connection.con.query_arrow(sql)
