"""Databricks: how it spells the words, in the SQL of Spark. Each is defined on every value, in ANSI mode or not.

Doubles are compared as the language asks: NaN equals NaN, above all others. Times are TIMESTAMP_NTZ; one with a zone is
read by the time that passed since 1970, since casts go by the zone of the session. What each form means is said in
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-functions-builtin-alpha , and Spark runs them in tests.
"""

from __future__ import annotations

from typing import Any, Final

from farthing.engines.foreign.dialect import Dialect
from farthing.engines.foreign.terms import call
from farthing.engines.foreign.warehouse import CAPITALS, WarehouseBackend

_PARTS: Final = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEKOFYEAR", "day": "DAY",
                 "doy": "DAYOFYEAR", "hour": "HOUR", "minute": "MINUTE", "second": "SECOND"}  # fmt: skip
_MOMENT: Final = "MAKE_TIMESTAMP_NTZ(YEAR({0}), MONTH({0}), DAY({0}), %s)"
_CLOCK: Final = ("HOUR({0})", "MINUTE({0})", "SECOND({0})")
_DAYS: Final = "CASE WHEN {0} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31' THEN {0} END"
_TIMES: Final = (
    "CASE WHEN {0} BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP_NTZ)"
    " AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP_NTZ) THEN {0} END"
)
_ERA: Final = "BETWEEN -62135596800000000 AND 253402300799999999"
_SINCE: Final = (
    f"MAKE_DT_INTERVAL(0, 0, 0, CAST(CASE WHEN UNIX_MICROS({{0}}) {_ERA}"
    " THEN UNIX_MICROS({0}) END AS DECIMAL(19, 0)) / CAST(1000000 AS DECIMAL(7, 0)))"
)


def _down_to(place: int) -> str:
    """Return the moment with its clock down to a place, and zeros below."""
    return _MOMENT % ", ".join([*_CLOCK[: place + 1], *(["0"] * (2 - place))])


def _round(word: str) -> str:
    """Return a whole double next to one: from 2^52 on all doubles are whole, and might not fit an integer."""
    there = "CASE WHEN ABS({0}) < CAST('4503599627370496' AS DOUBLE) THEN {0} END"
    made = f"CAST({there} AS BIGINT)" if word == "trunc" else f"{word.upper()}({there})"
    return f"COALESCE(CAST({made} AS DOUBLE), {{0}})"


WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"CAST({word}({{0}}) AS BIGINT)" for part, word in _PARTS.items()},
    "part_dow": "CAST(WEEKDAY({0}) + 1 AS BIGINT)",
    **{f"first_of_{unit}": _down_to(place) for place, unit in enumerate(("hour", "minute", "second"))},
    **{f"first_of_{unit}": f"TRUNC({{0}}, '{unit.upper()}')" for unit in ("year", "quarter", "month", "week")},
    "day_of": "CAST({0} AS DATE)",
    "days": "CAST(DATEDIFF({1}, {0}) AS BIGINT)",
    "midnight": _MOMENT % "0, 0, 0",
    "moment": "CAST({0} AS TIMESTAMP_NTZ)",
    "day": "CAST({0} AS DATE)",
    "in_utc": f"TRY_ADD(CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ), {_SINCE})",
    "plain_text": "{0} COLLATE UTF8_BINARY",
    "read_float": "CAST({0} AS DOUBLE) + CAST('0' AS DOUBLE)",
    "read_decimal": "CAST({0} AS DOUBLE)",
    "read_date": _DAYS,
    "read_timestamp": _TIMES,
    **{word: f"TRY_{word.upper()}({{0}}, {{1}})" for word in ("add", "subtract", "multiply")},
    "div": "{0} DIV NULLIF({1}, 0)",
    "mod": "{0} % NULLIF({1}, 0)",
    "divide": "TRY_DIVIDE({0}, {1})",
    **{word: _round(word) for word in ("floor", "ceil", "trunc")},
    **{word: f"{word.upper()}({{0}})" for word in ("log10", "sqrt", "ln", "exp")},
    "power": "POWER({0}, {1})",
    "real": "CAST({0} AS DOUBLE)",
    **{f"whole_{bits}": f"TRY_CAST({{0}} AS {kind})" for bits, kind in ((32, "INT"), (64, "BIGINT"))},
    **{word: f"{{0}} {sign} {{1}}" for word, sign in (("equal", "="), ("unequal", "<>"), ("less", "<"),
                                                      ("at_most", "<="), ("greater", ">"), ("at_least", ">="))},
    **{word: f"{word.upper()}({{0}}, {{1}})" for word in ("least", "greatest")},
    "lower": f"TRANSLATE({{0}}, '{CAPITALS}', '{CAPITALS.lower()}')",
    "upper": f"TRANSLATE({{0}}, '{CAPITALS.lower()}', '{CAPITALS}')",
    "length": "CAST(CHAR_LENGTH({0}) AS BIGINT)",
    "starts_with": "STARTSWITH({0}, {1})",
    "ends_with": "ENDSWITH({0}, {1})",
    "contains": "CONTAINS({0}, {1})",
    **{word: f"{word.upper()}({{0}})" for word in ("trim", "ltrim", "rtrim")},
    "from": "SUBSTRING({0}, {1})",
    "substring": "SUBSTRING({0}, {1}, {2})",
    "replace": "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE REPLACE(CASE WHEN CHAR_LENGTH({0})"
    " * CAST(GREATEST(CHAR_LENGTH({2}), 1) AS BIGINT) <= 1048576 THEN {0} END, {1}, {2}) END",
    "like": "{0} LIKE {1}",
    "matching": "CASE WHEN {0} RLIKE {1} THEN {0} END",
    "to_integer": "TRY_CAST({0} AS BIGINT)",
    "to_float": "TRY_CAST({0} AS DOUBLE)",
    "to_date": "TRY_CAST({0} AS DATE)",
    "to_timestamp": "TRY_CAST({0} AS TIMESTAMP_NTZ)",
    **{f"spelled_{kind}": "CAST({0} AS STRING)" for kind in ("integer", "date", "timestamp")},
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, or NULL."""

DATABRICKS: Final = Dialect("databricks", WORDS, whole="^({0})\\z")


class DatabricksBackend(WarehouseBackend):
    """The guarded primitives of Databricks."""

    dialect = DATABRICKS

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL; ibis' own test takes NaN for NULL here."""
        return call("isnull", "boolean", value)
