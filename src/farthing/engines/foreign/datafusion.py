"""DataFusion: how it spells the words. It compares doubles in one total order, NaN above all, once zero has no sign.

Its optimizer drops a bare TRY_CAST of a number or a time before a comparison with a constant, so that what leaves 64
bits would not be NULL: `greatest` of one value keeps it. It makes starts_with of a constant a LIKE in which `_` is any
letter.

Times are of microseconds: its own TIMESTAMP, of nanoseconds, reaches from 1677 to 2262 alone, and fails beyond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.dialect import Dialect, DialectBackend

if TYPE_CHECKING:
    import pyarrow as pa

_MICROS: Final = "'Timestamp(Microsecond, None)'"
_TIME: Final = "greatest(TRY_CAST({0} AS TIMESTAMP(6)))"
"""A time of any unit, NULL where 64 bits do not hold its microseconds; of a zone, in UTC."""

_IN_YEARS: Final = f"arrow_cast({_TIME}, 'Int64') BETWEEN -62135596800000000 AND 253402300799999999"
"""Whether a time is in the years 1 to 9999: its own functions of times fail far beyond."""

_DAYS: Final = "arrow_cast({0}, 'Int32')"
_SINCE: Final = "arrow_cast({0}, 'Int64')"
_YEAR: Final = "date_part('year', {0})"
_LEAP: Final = f"CASE WHEN {_YEAR} % 400 = 0 OR ({_YEAR} % 4 = 0 AND {_YEAR} % 100 <> 0) THEN 1 ELSE 0 END"
_STARTS: Final = f"WHEN 1 THEN 1 WHEN 2 THEN 91 + {_LEAP} WHEN 3 THEN 182 + {_LEAP} ELSE 274 + {_LEAP}"
"""Where quarters start in a year: `make_date` would fail on rows that have no date."""

_CLOCK: Final = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_PARTS: Final = ("year", "quarter", "month", "week", "day", "doy", "hour", "minute", "second")


def _clock(unit: int) -> str:
    """Return the first moment of a unit of the clock: what is left is positive before 1970, too."""
    return f"arrow_cast({_SINCE} - (({_SINCE} % {unit}) + {unit}) % {unit}, {_MICROS})"


def _back(days: str) -> str:
    """Return a date so many days before."""
    return f"arrow_cast({_DAYS} - CAST({days} AS INT), 'Date32')"


WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"CAST(date_part('{part}', {{0}}) AS BIGINT)" for part in _PARTS},
    "part_dow": "CAST((date_part('dow', {0}) + 6) % 7 + 1 AS BIGINT)",
    **{f"first_of_{unit}": _clock(micros) for unit, micros in _CLOCK.items()},
    "first_of_year": _back("date_part('doy', {0}) - 1"),
    "first_of_quarter": _back(f"date_part('doy', {{0}}) - CASE date_part('quarter', {{0}}) {_STARTS} END"),
    "first_of_month": _back("date_part('day', {0}) - 1"),
    "first_of_week": _back("(date_part('dow', {0}) + 6) % 7"),
    "day_of": "CAST({0} AS DATE)",
    "days": "CAST(arrow_cast({1}, 'Int32') - arrow_cast({0}, 'Int32') AS BIGINT)",
    "midnight": f"arrow_cast({{0}}, {_MICROS})",
    "moment": f"arrow_cast({{0}}, {_MICROS})",
    "day": "CAST({0} AS DATE)",
    "in_utc": _TIME,
    "one_nan": "CASE WHEN isnan({0}) THEN CAST('NaN' AS DOUBLE) ELSE CAST({0} AS DOUBLE) END",
    "unit_date": "arrow_cast({0}, 'Int64')",
    "unit_timestamp": "arrow_cast({0}, 'Int64')",
    "read_float": "CAST({0} AS DOUBLE) + CAST('0' AS DOUBLE)",
    "read_decimal": "CAST({0} AS DOUBLE)",
    "read_wide_decimal": "TRY_CAST(CAST({0} AS VARCHAR) AS DOUBLE)",
    "read_date": "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST({0} AS DATE) END",
    "read_timestamp": f"CASE WHEN {_IN_YEARS} THEN {_TIME} END",
    "read_string": "CAST({0} AS VARCHAR)",
    **{word: f"greatest(TRY_CAST(CAST({{0}} AS DECIMAL(38, 0)) {sign} CAST({{1}} AS DECIMAL(38, 0)) AS BIGINT))"
       for word, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))},
    "div": "{0} / {1}",
    "mod": "{0} % {1}",
    "divide": "{0} / {1}",
    **{word: f"{word}({{0}})" for word in ("floor", "ceil", "trunc", "log10", "sqrt", "ln", "exp")},
    "power": "power({0}, {1})",
    "real": "CAST({0} AS DOUBLE)",
    **{f"whole_{bits}": f"TRY_CAST({{0}} AS {kind})" for bits, kind in ((32, "INT"), (64, "BIGINT"))},
    **{word: f"({{0}} + CAST('0' AS DOUBLE)) {sign} ({{1}} + CAST('0' AS DOUBLE))"
       for word, sign in (("equal", "="), ("unequal", "<>"), ("less", "<"), ("at_most", "<="), ("greater", ">"),
                          ("at_least", ">="))},
    **{word: f"{word}({{0}}, {{1}})" for word in ("least", "greatest", "ends_with")},
    "starts_with": "left({0}, character_length({1})) = {1}",
    "contains": "strpos({0}, {1}) > 0",
    **{word: f"farthing_{word}(arrow_cast({{0}}, 'Utf8'))" for word in ("lower", "upper")},
    "length": "CAST(character_length({0}) AS BIGINT)",
    "trim": "btrim({0}, ' ')",
    "ltrim": "ltrim({0}, ' ')",
    "rtrim": "rtrim({0}, ' ')",
    "from": "substr({0}, {1})",
    "substring": "substr({0}, {1}, {2})",
    "replace": "CASE WHEN {1} = '' THEN {0} ELSE replace(CASE WHEN character_length({0})"
    " * greatest(character_length({2}), 1) <= 1048576 THEN {0} END, {1}, {2}) END",
    "like": "{0} LIKE {1}",
    "matching": "CASE WHEN regexp_like({0}, {1}) THEN {0} END",
    "to_integer": "TRY_CAST({0} AS BIGINT)",
    "to_float": "TRY_CAST({0} AS DOUBLE)",
    "to_date": "TRY_CAST({0} AS DATE)",
    "to_timestamp": f"arrow_cast({{0}}, {_MICROS})",
    "spelled_integer": "CAST({0} AS VARCHAR)",
    "spelled_date": "CAST({0} AS VARCHAR)",
    "spelled_timestamp": "rtrim(rtrim(to_char({0}, '%Y-%m-%d %H:%M:%S%.6f'), '0'), '.')",
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, or NULL."""

DATAFUSION: Final = Dialect("datafusion", WORDS)


class DataFusionBackend(DialectBackend):
    """The guarded primitives of DataFusion."""

    dialect = DATAFUSION

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        if getattr(connection, "con", None) is not None:
            for word in ("lower", "upper"):
                _registered(connection.con, word)

    def spelled_unit(self, unit: Any) -> Any:
        """Return a unit as what has a spelling: days and times by their number, since some are in no calendar."""
        word = next((each for each in ("date", "timestamp") if getattr(unit.type(), f"is_{each}")()), None)
        return super().spelled_unit(unit) if word is None else self.word(f"unit_{word}", "int64", unit)

    def _prepare(self, sql: str) -> None:
        """Have a text planned; nothing is run before its rows are asked for."""
        self._connection.con.sql(sql)

    def _send(self, sql: str) -> pa.Table:
        """Return an answer: the one place from which a text reaches rows."""
        import pyarrow as pa

        frame = self._connection.con.sql(sql)
        names = frame.schema().names
        batches = [pa.RecordBatch.from_arrays(one.columns, names=names) for one in frame.collect()]
        return pa.Table.from_batches(batches) if batches else frame.schema().empty_table()  # parts of UNION may differ


def _registered(context: Any, word: str) -> None:
    """Give a context the function of Arrow's that changes the case of ASCII letters: no function of its own does."""
    import datafusion
    import pyarrow as pa
    import pyarrow.compute as pc

    name = f"farthing_{word}"
    context.register_udf(datafusion.udf(getattr(pc, f"ascii_{word}"), [pa.string()], pa.string(), "immutable", name))
