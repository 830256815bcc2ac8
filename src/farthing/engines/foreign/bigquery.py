"""BigQuery: how it spells the words, in GoogleSQL. Each is defined on every value, guarded or not.

Comparisons with NaN are false there, sums and products of INT64 fail beyond 64 bits, and casts fail: SAFE forms are
NULL instead. LOWER and UPPER change letters of all scripts, so that letters of ASCII are translated one by one. What
each form means is said in https://cloud.google.com/bigquery/docs/reference/standard-sql/functions-all .
"""

from __future__ import annotations

from typing import Final

from farthing.engines.foreign.dialect import Dialect
from farthing.engines.foreign.warehouse import CAPITALS, GREATEST_PLAIN, LEAST_PLAIN, WarehouseBackend

_PARTS: Final = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "ISOWEEK", "day": "DAY",
                 "doy": "DAYOFYEAR", "hour": "HOUR", "minute": "MINUTE", "second": "SECOND"}  # fmt: skip
_FIRST: Final = {"year": "YEAR", "quarter": "QUARTER", "month": "MONTH", "week": "ISOWEEK"}
_EQUAL: Final = "(({0} = {1}) OR (IS_NAN({0}) AND IS_NAN({1})))"
_LESS: Final = "(({0} < {1}) OR (NOT IS_NAN({0}) AND IS_NAN({1})))"
_AT_MOST: Final = "(({0} <= {1}) OR ({0} IS NOT NULL AND IS_NAN({1})))"
_CHOSEN: Final = "CASE WHEN {0} IS NULL THEN {1} WHEN {1} IS NULL THEN {0} WHEN %s THEN {0} ELSE {1} END"

WORDS: Final[dict[str, str]] = {
    **{f"part_{part}": f"EXTRACT({word} FROM {{0}})" for part, word in _PARTS.items()},
    "part_dow": "MOD(EXTRACT(DAYOFWEEK FROM {0}) + 5, 7) + 1",
    **{f"first_of_{unit}": f"DATETIME_TRUNC({{0}}, {unit.upper()})" for unit in ("hour", "minute", "second")},
    **{f"first_of_{unit}": f"DATE_TRUNC({{0}}, {word})" for unit, word in _FIRST.items()},
    "day_of": "CAST({0} AS DATE)",
    "days": "DATE_DIFF({1}, {0}, DAY)",
    "midnight": "CAST({0} AS DATETIME)",
    "moment": "CAST({0} AS DATETIME)",
    "day": "CAST({0} AS DATE)",
    "in_utc": "DATETIME({0}, 'UTC')",
    "plain_text": "SAFE_CONVERT_BYTES_TO_STRING(CAST({0} AS BYTES))",
    "read_float": "CAST({0} AS FLOAT64) + CAST('0' AS FLOAT64)",
    "read_decimal": "CAST({0} AS FLOAT64)",
    "add": "SAFE_ADD({0}, {1})",
    "subtract": "SAFE_SUBTRACT({0}, {1})",
    "multiply": "SAFE_MULTIPLY({0}, {1})",
    "div": "SAFE.DIV({0}, {1})",
    "mod": "SAFE.MOD({0}, {1})",
    "divide": "SAFE_DIVIDE({0}, {1})",
    **{word: f"{word.upper()}({{0}})" for word in ("floor", "ceil", "trunc")},
    **{word: f"SAFE.{word.upper()}({{0}})" for word in ("log10", "sqrt", "ln", "exp")},
    "power": "SAFE.POW({0}, {1})",
    "real": "CAST({0} AS FLOAT64)",
    **{f"whole_{bits}": "SAFE_CAST({0} AS INT64)" for bits in (32, 64)},
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
    "length": "CHAR_LENGTH({0})",
    "starts_with": "STARTS_WITH({0}, {1})",
    "ends_with": "ENDS_WITH({0}, {1})",
    "contains": "STRPOS({0}, {1}) > 0",
    **{word: f"{word.upper()}({{0}}, ' ')" for word in ("trim", "ltrim", "rtrim")},
    "from": "SUBSTR({0}, {1})",
    "substring": "SUBSTR({0}, {1}, {2})",
    "replace": "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE ARRAY_TO_STRING(SPLIT(CASE WHEN CHAR_LENGTH({0})"
    " * GREATEST(CHAR_LENGTH({2}), 1) <= 1048576 THEN {0} END, {1}), {2}) END",
    "like": "{0} LIKE {1}",
    "matching": "CASE WHEN REGEXP_CONTAINS({0}, {1}) THEN {0} END",
    "to_integer": "SAFE_CAST({0} AS INT64)",
    "to_float": "SAFE_CAST({0} AS FLOAT64)",
    "to_date": "SAFE_CAST({0} AS DATE)",
    "to_timestamp": "SAFE_CAST({0} AS DATETIME)",
    "spelled_integer": "CAST({0} AS STRING)",
    "spelled_date": "FORMAT_DATE('%E4Y-%m-%d', {0})",
    "spelled_timestamp": "RTRIM(RTRIM(FORMAT_DATETIME('%E4Y-%m-%d %H:%M:%E6S', {0}), '0'), '.')",
}  # fmt: skip
"""SQL of each word; all of them are defined on every value, or NULL."""

BIGQUERY: Final = Dialect("bigquery", WORDS)


class BigQueryBackend(WarehouseBackend):
    """The guarded primitives of BigQuery."""

    dialect = BIGQUERY
