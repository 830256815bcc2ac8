"""Snowflake: how it spells the words. Each is defined on every value, guarded or not.

Whole numbers have 38 digits, quotients of them six behind the point, and TRY_CAST takes texts alone: so whole numbers
are kept within 64 bits, quotients are made of what MOD leaves, and reals are cut before they are cast. NaN equals NaN,
above all others. Weeks and the formats of days go by the session, and are not left to it. What each form means is said
in https://docs.snowflake.com/en/sql-reference/functions-all .
"""

from __future__ import annotations

from typing import Final

from farthing.engines.foreign.dialect import Dialect
from farthing.engines.foreign.warehouse import CAPITALS, GREATEST_PLAIN, LEAST_PLAIN, WarehouseBackend

_PARTS: Final = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEKISO", "day": "DAY",
                 "doy": "DAYOFYEAR", "dow": "DAYOFWEEKISO", "hour": "HOUR", "minute": "MINUTE",
                 "second": "SECOND"}  # fmt: skip
_UNITS: Final = ("year", "quarter", "month", "hour", "minute", "second")
_DAY: Final = "'YYYY-MM-DD'"
_CLOCK: Final = "'YYYY-MM-DD HH24:MI:SS.FF6'"
_INSIDE: Final = "CASE WHEN %s BETWEEN -9223372036854775808 AND 9223372036854775807 THEN %s END"
_REST: Final = "(MOD(ABS({0}), NULLIF(ABS({1}), 0)))"
_HALF: Final = "CAST('4294967296' AS DOUBLE)"
_FAR: Final = "CASE WHEN ABS({0}) < CAST('9300000000000000000' AS DOUBLE) THEN {0} END"
_HIGH: Final = f"FLOOR(({_FAR}) / {_HALF})"


def _inside(made: str) -> str:
    """Return a whole number, NULL outside of 64 bits."""
    return _INSIDE % (made, made)


def _whole(high: str) -> str:
    """Return a whole double as a whole number: in two parts, each of which a double holds to the last digit."""
    return f"CAST({high} AS DECIMAL(38, 0)) * 4294967296 + CAST(({_FAR}) - {high} * {_HALF} AS DECIMAL(38, 0))"


def _found(test: str) -> str:
    """Return a test for a part of a text; the empty text is a part of each."""
    return f"({{1}} = '' AND NOT {{0}} IS NULL) OR {test}({{0}}, {{1}})"


WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"{word}({{0}})" for part, word in _PARTS.items()},
    **{f"first_of_{unit}": f"DATE_TRUNC('{unit.upper()}', {{0}})" for unit in _UNITS},
    "first_of_week": "DATEADD(DAY, 1 - DAYOFWEEKISO({0}), {0})",
    "day_of": "CAST({0} AS DATE)",
    "days": "DATEDIFF(DAY, {0}, {1})",
    "midnight": "CAST({0} AS TIMESTAMPNTZ)",
    "moment": f"TO_TIMESTAMP_NTZ({{0}}, {_CLOCK})",
    "day": f"TO_DATE({{0}}, {_DAY})",
    "in_utc": "CAST(CONVERT_TIMEZONE('UTC', {0}) AS TIMESTAMPNTZ)",
    "plain_text": "CAST(TO_VARIANT({0}) AS VARCHAR)",
    "read_integer": _inside("{0}"),
    "read_float": "CAST({0} AS DOUBLE) + CAST('0' AS DOUBLE)",
    "read_decimal": "CAST(CAST({0} AS VARCHAR) AS DOUBLE)",
    "read_date": "CASE WHEN YEAR({0}) BETWEEN 1 AND 9999 THEN {0} END",
    "read_timestamp": "CASE WHEN YEAR({0}) BETWEEN 1 AND 9999 THEN DATE_TRUNC('MICROSECOND', {0}) END",
    **{word: _inside(f"({{0}} {sign} {{1}})") for word, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))},
    "div": f"CAST(SIGN({{0}}) * SIGN({{1}}) * ((ABS({{0}}) - {_REST}) / NULLIF(ABS({{1}}), 0)) AS DECIMAL(38, 0))",
    "mod": f"SIGN({{0}}) * {_REST}",
    "divide": "{0} / NULLIF({1}, CAST('0' AS DOUBLE))",
    "floor": "FLOOR({0})",
    "ceil": "CEIL({0})",
    "trunc": "CASE WHEN {0} < CAST('0' AS DOUBLE) THEN CEIL({0}) ELSE FLOOR({0}) END",
    **{word: f"{word.upper()}({{0}})" for word in ("sqrt", "ln", "exp")},
    "log10": "LOG(10, {0})",
    "power": "POWER({0}, {1})",
    "real": "CAST({0} AS DOUBLE)",
    "double": f"CAST(FLOOR({{0}} / 4294967296) AS DOUBLE) * {_HALF}"
    " + CAST({0} - FLOOR({0} / 4294967296) * 4294967296 AS DOUBLE)",
    **{f"whole_{bits}": _whole(_HIGH) for bits in (32, 64)},
    **{word: f"{{0}} {sign} {{1}}" for word, sign in (("equal", "="), ("unequal", "<>"), ("less", "<"),
                                                      ("at_most", "<="), ("greater", ">"), ("at_least", ">="))},
    "least": LEAST_PLAIN,
    "greatest": GREATEST_PLAIN,
    "least_plain": LEAST_PLAIN,
    "greatest_plain": GREATEST_PLAIN,
    "lower": f"TRANSLATE({{0}}, '{CAPITALS}', '{CAPITALS.lower()}')",
    "upper": f"TRANSLATE({{0}}, '{CAPITALS.lower()}', '{CAPITALS}')",
    "length": "LENGTH({0})",
    "starts_with": _found("STARTSWITH"),
    "ends_with": _found("ENDSWITH"),
    "contains": _found("CONTAINS"),
    **{word: f"{word.upper()}({{0}}, ' ')" for word in ("trim", "ltrim", "rtrim")},
    "from": "SUBSTRING({0}, {1})",
    "substring": "CASE WHEN {2} = 0 AND NOT {0} IS NULL THEN '' ELSE SUBSTRING({0}, {1}, {2}) END",
    "replace": "CASE WHEN {1} = '' AND NOT {2} IS NULL THEN {0} ELSE REPLACE(CASE WHEN LENGTH({0})"
    " * GREATEST(LENGTH({2}), 1) <= 1048576 THEN {0} END, {1}, {2}) END",
    "like": "{0} LIKE {1} ESCAPE '\\\\'",
    "matching": "CASE WHEN REGEXP_LIKE({0}, {1}) AND NOT CONTAINS({0}, CHR(10)) THEN {0} END",
    "to_integer": "TRY_CAST(LTRIM({0}, '+') AS DECIMAL(38, 0))",
    "to_float": "TRY_CAST(LTRIM({0}, '+') AS DOUBLE)",
    "to_date": f"TRY_TO_DATE({{0}}, {_DAY})",
    "to_timestamp": "TRY_TO_TIMESTAMP_NTZ(REPLACE({0}, 'T', ' ') || CASE WHEN LENGTH({0}) = 19 THEN '.0' ELSE '' END,"
    " 'YYYY-MM-DD HH24:MI:SS.FF')",
    "spelled_integer": "CAST({0} AS VARCHAR)",
    "spelled_date": f"TO_CHAR({{0}}, {_DAY})",
    "spelled_timestamp": f"RTRIM(RTRIM(TO_CHAR({{0}}, {_CLOCK}), '0'), '.')",
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, or NULL."""

SNOWFLAKE: Final = Dialect("snowflake", WORDS, whole="({0})")


class SnowflakeBackend(WarehouseBackend):
    """The guarded primitives of Snowflake."""

    dialect = SNOWFLAKE

    def _prepare(self, sql: str) -> None:
        """Have a text compiled, where the warehouse is there: what ibis would send to find its types runs it."""
        if hasattr(self._connection, "raw_sql"):
            self._connection.raw_sql(f"EXPLAIN USING TEXT {sql}")
