"""Trino: how it spells the words. Each is defined on every value, guarded or not.

Sums and products of BIGINT fail beyond 64 bits and casts fail: TRY, of what holds no aggregate, and TRY_CAST are NULL.
LIKE has no escape by itself, patterns are Java's, least and greatest are NULL with any NULL, and texts may be padded:
all are cast to VARCHAR. What each form means is said in https://trino.io/docs/current/functions.html .
"""

from __future__ import annotations

from typing import Final

from farthing.engines.foreign.dialect import Dialect
from farthing.engines.foreign.warehouse import CAPITALS, GREATEST_PLAIN, LEAST_PLAIN, WarehouseBackend

_PARTS: Final = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "WEEK", "day": "DAY",
                 "doy": "DAY_OF_YEAR", "dow": "DAY_OF_WEEK", "hour": "HOUR", "minute": "MINUTE",
                 "second": "SECOND"}  # fmt: skip
_UNITS: Final = ("year", "quarter", "month", "week", "hour", "minute", "second")
_MICROS: Final = "CAST({0} AS TIMESTAMP(6))"
_SPELLED: Final = f"CAST({_MICROS} AS VARCHAR)"
_EQUAL: Final = "(({0} = {1}) OR (IS_NAN({0}) AND IS_NAN({1})))"
_LESS: Final = "(({0} < {1}) OR (NOT IS_NAN({0}) AND IS_NAN({1})))"
_AT_MOST: Final = "(({0} <= {1}) OR (NOT {0} IS NULL AND IS_NAN({1})))"
_CHOSEN: Final = "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} WHEN %s THEN {0} ELSE {1} END"

WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"{word}({{0}})" for part, word in _PARTS.items()},
    **{f"first_of_{unit}": f"DATE_TRUNC('{unit.upper()}', {{0}})" for unit in _UNITS},
    "day_of": "CAST({0} AS DATE)",
    "days": "DATE_DIFF('DAY', {0}, {1})",
    "midnight": _MICROS,
    "moment": _MICROS,
    "day": "CAST({0} AS DATE)",
    "in_utc": "CAST({0} AT TIME ZONE 'UTC' AS TIMESTAMP(6))",
    "plain_text": "CAST({0} AS VARCHAR)",
    "read_float": "CAST({0} AS DOUBLE) + CAST('0' AS DOUBLE)",
    "read_decimal": "CAST(CAST({0} AS VARCHAR) AS DOUBLE)",
    "read_date": "CASE WHEN {0} BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN {0} END",
    "read_timestamp": f"CASE WHEN {_MICROS} BETWEEN CAST('0001-01-01 00:00:00.000000' AS TIMESTAMP(6))"
    f" AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP(6)) THEN {_MICROS} END",
    **{word: f"TRY({{0}} {sign} {{1}})" for word, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))},
    "div": "{0} / NULLIF({1}, 0)",
    "mod": "{0} % NULLIF({1}, 0)",
    "divide": "{0} / {1}",
    **{word: f"{word.upper()}({{0}})" for word in ("floor", "ceil", "log10", "sqrt", "ln", "exp")},
    "trunc": "TRUNCATE({0})",
    "power": "POWER({0}, {1})",
    "real": "CAST({0} AS DOUBLE)",
    "whole_32": "TRY_CAST({0} AS INTEGER)",
    "whole_64": "TRY_CAST({0} AS BIGINT)",
    "equal": _EQUAL,
    "unequal": f"NOT {_EQUAL}",
    "less": _LESS,
    "at_most": _AT_MOST,
    "greater": _LESS.format("{1}", "{0}"),
    "at_least": _AT_MOST.format("{1}", "{0}"),
    "least": _CHOSEN % _AT_MOST,
    "greatest": _CHOSEN % _AT_MOST.format("{1}", "{0}"),
    "least_plain": LEAST_PLAIN,
    "greatest_plain": GREATEST_PLAIN,
    "lower": f"TRANSLATE({{0}}, '{CAPITALS}', '{CAPITALS.lower()}')",
    "upper": f"TRANSLATE({{0}}, '{CAPITALS.lower()}', '{CAPITALS}')",
    "length": "LENGTH({0})",
    "starts_with": "STARTS_WITH({0}, {1})",
    "ends_with": "STARTS_WITH(REVERSE({0}), REVERSE({1}))",
    "contains": "({1} = '' AND NOT {0} IS NULL) OR STRPOS({0}, {1}) > 0",
    "trim": "TRIM(BOTH ' ' FROM {0})",
    "ltrim": "TRIM(LEADING ' ' FROM {0})",
    "rtrim": "TRIM(TRAILING ' ' FROM {0})",
    "from": "SUBSTRING({0}, {1})",
    "substring": "SUBSTRING({0}, {1}, {2})",
    "replace": "CASE WHEN {1} = '' AND NOT {2} IS NULL THEN {0} ELSE REPLACE(CASE WHEN LENGTH({0})"
    " * GREATEST(LENGTH({2}), 1) <= 1048576 THEN {0} END, {1}, {2}) END",
    "like": "{0} LIKE {1} ESCAPE '\\'",
    "matching": "CASE WHEN REGEXP_LIKE({0}, {1}) THEN {0} END",
    "to_integer": "TRY_CAST({0} AS BIGINT)",
    "to_float": "TRY_CAST({0} AS DOUBLE)",
    "to_date": "TRY_CAST({0} AS DATE)",
    "to_timestamp": "TRY_CAST(REPLACE({0}, 'T', ' ') AS TIMESTAMP(6))",
    "spelled_integer": "CAST({0} AS VARCHAR)",
    "spelled_date": "CAST({0} AS VARCHAR)",
    "spelled_timestamp": f"CASE WHEN STRPOS({_SPELLED}, '.') > 0"
    f" THEN TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {_SPELLED})) ELSE {_SPELLED} END",
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, or NULL."""

TRINO: Final = Dialect("trino", WORDS, whole="^({0})\\z")


class TrinoBackend(WarehouseBackend):
    """The guarded primitives of Trino."""

    dialect = TRINO
