"""What a SQL text that reaches an engine of the user's may hold: what no row can make fail, and why.

The printers beside this module write nothing else; a test reads every text that is sent, gives each operand its type,
and looks it up here. Neither a bare cast nor a function is written that is not listed.
"""

from __future__ import annotations

from typing import Final

WHOLE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
TEXT: Final = frozenset({"VARCHAR", "TEXT", "CHAR", "BPCHAR"})
MOMENTS: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMPNTZ"})

TOTAL_CASTS: Final[dict[tuple[frozenset[str], frozenset[str]], str]] = {
    (WHOLE, frozenset({"DOUBLE", "DECIMAL"})): "every whole number has a nearest double, and 38 digits hold it",
    (WHOLE, frozenset({"BIGINT"})): "no narrower than it was",
    (frozenset({"INT", "SMALLINT", "TINYINT"}), frozenset({"INT"})): "no narrower than it was",
    (frozenset({"FLOAT", "DOUBLE", "NULL"}), frozenset({"DOUBLE"})): "no narrower than it was",
    (frozenset({"NULL"}), WHOLE | TEXT | MOMENTS | {"BOOLEAN", "DECIMAL"}): "NULL is of every type",
    (WHOLE | TEXT | MOMENTS | {"JSON", "BOOLEAN"}, TEXT): "everything has a spelling",
    (frozenset({"DECIMAL"}), frozenset({"DECIMAL"})): "of as many digits as it has",
    (MOMENTS, MOMENTS): "within the years 1 to 9999, to which columns are guarded where they are read",
}
"""(types of the operand, types that it becomes): why no value fails. Constants are cast before any row is read."""

BOUNDED: Final[dict[tuple[str, str], str]] = {
    ("LEAST", "INT"): "at most a constant of the type, of what is not negative or clamped below",
    ("LEAST", "BIGINT"): "at most a constant of the type, of what is not negative or clamped below",
    ("FLOOR", "INT"): "2^-16 of a number on the fine grid, of at most 2^36 steps",
    ("IF", "INT"): "the same on Spark, whose floor is of what is below 2^52 in size",
    ("SUB", "INT"): "what that leaves of it: at most 2^15 in size",
    ("CASE", "INT"): "between 0 and 2^30 by its guards: where letters are taken from and how many",
    ("FLOOR", "BIGINT"): "a part of a moment within the years 1 to 9999, or of a clamped number: at most 2^32",
    ("IF", "BIGINT"): "the latter on Spark",
    ("ADD", "BIGINT"): "the whole number next to what its guards keep within 64 bits",
    ("NULLIF", "BIGINT"): "clamped to just outside of 64 bits, and NULL there",
    ("CASE", "BIGINT"): "below 2^52 in size by its guard",
    ("CEIL", "BIGINT"): "of what is below 2^52 in size by its guard",
    ("SUM", "DECIMAL"): "a sum of 32-bit parts of fewer than 2^32 rows, which some backends give in 38 digits",
    ("CAST", "BIGINT"): "such a sum",
    ("CAST", "INT"): "a part of a moment, which was made wider before",
}
"""Operands, by their outermost function, and the narrower type into which their values fit."""

_PLAIN: Final = {
    **dict.fromkeys(("AND", "OR", "CASE", "IF", "COALESCE", "NULLIF"), "logic and choices among values"),
    **dict.fromkeys(("LEAST", "GREATEST"), "choices among values"),
    **dict.fromkeys(("SUM", "COUNT", "MIN", "MAX"), "of numbers on the grid, and of rows"),
    **dict.fromkeys(("ROW_NUMBER", "DENSE_RANK", "FIRST_VALUE", "FIRST"), "windows over cells, and over a unit's rows"),
    **dict.fromkeys(("RANK", "LAG", "LEAD", "LAST_VALUE", "LAST"), "windows over a unit's rows"),
    "ABS": "of doubles, or of integers above -2^63",
    **dict.fromkeys(("SQRT", "LN", "EXP", "POWER"), "of what CASE leaves where they are defined, NULL elsewhere"),
    "CAST": "see above",
    "TRY_CAST": "NULL where there is no such value",
}

POSTGRES: Final[dict[str, str]] = {
    **_PLAIN,
    "COLLATE": "an order of texts",
    "ARRAY": "one value, for its hash",
    "MAKE_DATE": "of constants",
    "UNNEST": "of parameters: keys and rows that travel with the question",
    **dict.fromkeys(("PG_CATALOG.INT8DIV", "PG_CATALOG.INT8MOD"), "the divisor is neither 0 nor -1"),
    **dict.fromkeys(("PG_CATALOG.FLOOR", "PG_CATALOG.CEIL", "PG_CATALOG.TRUNC"), "of doubles"),
    "PG_CATALOG.LOG10": "of what CASE leaves where it is defined",
    **dict.fromkeys(
        (f"PG_CATALOG.HASH{kind}EXTENDED" for kind in ("INT8", "TEXT", "FLOAT8", "_ARRAY_")), "defined on every value"
    ),
    **dict.fromkeys(("PG_CATALOG.ISFINITE", "PG_CATALOG.CLOCK_TIMESTAMP"), "a filter that stays where it is written"),
    **dict.fromkeys(
        (f"PG_CATALOG.TEXT_PATTERN_{sign}" for sign in ("LT", "LE", "GT", "GE")), "comparisons of texts by bytes"
    ),
    **dict.fromkeys(
        (
            f"PG_CATALOG.{name}"
            for name in ("TRANSLATE", "CHAR_LENGTH", "STRPOS", "STARTS_WITH", "RIGHT", "BTRIM", "REPLACE")
        ),
        "defined on every text",
    ),
    **dict.fromkeys(("PG_CATALOG.LTRIM", "PG_CATALOG.RTRIM"), "defined on every text"),
    "PG_CATALOG.SUBSTR": "places from 1 and lengths from 0, to 2^30",
    "PG_CATALOG.SUBSTRING": "a constant pattern",
    **dict.fromkeys(
        (f"PG_CATALOG.{name}" for name in ("DATE_TRUNC", "DATE_PART", "DATE_MI", "TO_CHAR")),
        "of moments of the years 1 to 9999",
    ),
}
"""Functions that are written for PostgreSQL, with their schema as they are written: why no value makes them fail."""

SPARK: Final[dict[str, str]] = {
    **_PLAIN,
    **dict.fromkeys(("SAFE_ADD", "SAFE_SUBTRACT", "SAFE_MULTIPLY"), "NULL where the result does not fit"),
    **dict.fromkeys(("DIV", "MOD"), "the divisor is neither 0 nor -1"),
    **dict.fromkeys(("FLOOR", "CEIL"), "of doubles below 2^52 in size"),
    "LOG": "of what CASE leaves where it is defined",
    **dict.fromkeys(("XXHASH64", "ISNULL", "IS_NAN"), "defined on every value"),
    **dict.fromkeys(("RAND", "MONOTONICALLY_INCREASING_ID"), "no value enters"),
    **dict.fromkeys(
        ("TRANSLATE", "LENGTH", "TRIM", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "CONCAT", "REPLACE", "COLLATE"),
        "defined on every text",
    ),
    "SUBSTRING": "places from 1 and lengths from 0, to 2^30",
    "REGEXP_EXTRACT": "a constant pattern that has the one group which is named",
    "TO_TIMESTAMP_NTZ": "of a constant, or of what a pattern leaves that only moments match",
    **dict.fromkeys(
        ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER", "DAYOFYEAR", "DAY_OF_YEAR", "WEEKDAY"),
        "of moments of the years 1 to 9999",
    ),
    **dict.fromkeys(("WEEK_OF_YEAR", "DATEDIFF", "DATE_DIFF", "DATE_TRUNC", "TIMESTAMP_TRUNC"), "the same"),
    **dict.fromkeys(("TS_OR_DS_TO_DATE", "DATE", "TRUNC"), "the same; of dates"),
    "MAKE_DATE": "of constants",
    "MAKE_TIMESTAMP_NTZ": "of the parts of a moment",
    "UNIX_MICROS": "every moment with a zone has such a number",
    "MAKE_DT_INTERVAL": "of microseconds within the years 1 to 9999",
}
"""Functions that are written for Spark, in the parser's spelling: why no value makes them fail, ANSI mode or not."""

SQLITE: Final[dict[str, str]] = {
    **dict.fromkeys(("AND", "OR", "CASE", "IF", "COALESCE", "NULLIF"), "logic and choices among values"),
    **dict.fromkeys(("COUNT", "MIN", "MAX", "ROW_NUMBER", "DENSE_RANK", "FIRST_VALUE"), "of rows and cells"),
    **dict.fromkeys(("RANK", "LAG", "LEAD", "LAST_VALUE"), "windows over a unit's rows"),
    "SUM": "of whole numbers on the grid, of fewer than 2^32 rows: beyond 64 bits it would fail",
    "ABS": "of doubles, or of integers above -2^63",
    **dict.fromkeys(("SQRT", "LN", "EXP", "POWER"), "of what CASE leaves where they are defined, NULL elsewhere"),
    "CAST": "no cast of SQLite's fails",
    "TYPEOF": "defined on every value",
    "SUBSTR": "the day of a time, as it is kept in a question",
    **dict.fromkeys(("JSON_EACH", "JSON_EXTRACT"), "of parameters: keys and rows that travel with the question"),
}
"""Functions that are written for SQLite, beside the evaluator's own (`farthing_...`): why no value makes them fail."""

PRINTED: Final[dict[str, str]] = {
    **dict.fromkeys(("AND", "OR", "NOT", "IN", "AS", "ON", "OVER", "FROM", "VALUES", "SELECT"), "the grammar"),
    **dict.fromkeys(("WHEN", "THEN", "ELSE", "WHERE", "BETWEEN", "JOIN", "IS", "EXCEPT"), "the grammar"),
    **dict.fromkeys(("COALESCE", "NULLIF", "LEAST", "GREATEST"), "choices among whole numbers, texts and moments"),
    **dict.fromkeys(("SUM", "COUNT", "MIN", "MAX"), "of numbers on the grid, and of rows; sums of 32-bit parts"),
    **dict.fromkeys(("ROW_NUMBER", "DENSE_RANK", "RANK", "FIRST_VALUE", "LAST_VALUE"), "windows over a unit's rows"),
    **dict.fromkeys(("LAG", "LEAD", "LAGINFRAME", "LEADINFRAME"), "the same"),
    **dict.fromkeys(("MD5", "HEX", "CONCAT", "ISNULL", "ISNOTNULL"), "the hash, defined on every value"),
    "CAST": "of whole numbers, to wider ones or clamped before, and of what has a spelling; casts of reals are words",
    **dict.fromkeys(("NULLABLE", "DECIMAL", "VARCHAR", "TIMESTAMP"), "types"),
    **dict.fromkeys(("UNIQEXACT", "UNIQEXACTIF"), "of rows that differ; UNIQ would be an estimate"),
    "K": "the name of constant rows",
    **dict.fromkeys(("STRUCT", "UNNEST"), "constant rows of BigQuery"),
    **dict.fromkeys(("IF", "IFF"), "choices among values"),
    "FIRST": "a window over a unit's rows",
    **dict.fromkeys(("TO_HEX", "TO_UTF8"), "of an MD5, and of the text that it is of"),
    "AT_TIMEZONE": "every moment with a zone has a time in UTC",
    "ISNAN": "beside IS NULL of a number that is never NaN",
    "ABS": "of doubles, or of integers above -2^63",
}
"""What ibis prints alike for engines that are told by a dialect, beside the dialect's words."""
