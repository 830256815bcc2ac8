"""What a SQL text that reaches a private table may hold: casts and functions that no row can make fail, and why.

The printers beside this module write nothing else; a test reads every text that is sent, gives each operand its type,
and looks it up here. A cast that is not listed is written TRY_CAST, a function that is not listed is not written.
"""

from __future__ import annotations

from typing import Final

WHOLE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "UTINYINT", "USMALLINT", "UINT", "UBIGINT"})
"""Whole numbers of at most 64 bits, as the parser spells them."""

MOMENTS: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})

TOTAL_CASTS: Final[dict[tuple[frozenset[str], frozenset[str]], str]] = {
    (WHOLE | {"INT128"}, frozenset({"DOUBLE"})): "every whole number has a nearest double",
    (frozenset({"FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN"}), frozenset({"DOUBLE"})): "rounded to the nearest double",
    (WHOLE | {"INT128"}, frozenset({"INT128"})): "128 bits hold 64",
    (frozenset({"INT", "SMALLINT", "TINYINT", "BIGINT"}), frozenset({"BIGINT"})): "no narrower than it was",
    (frozenset({"BOOLEAN"}), frozenset({"INT", "BIGINT"})): "0 or 1",
    (WHOLE | MOMENTS | {"BOOLEAN", "ENUM", "DECIMAL"}, frozenset({"VARCHAR"})): "everything has a spelling",
    (MOMENTS, MOMENTS): "guarded to the years 1 to 9999, or what the type holds, where the column is read",
}
"""(types of the operand, types that it becomes): why no value fails. Constants are cast before any row is read."""

BOUNDED: Final[dict[str, str]] = {
    "SIGN": "-1, 0 or 1",
    "LOG": "a logarithm to base 2 of what is clamped into [2^-33, 2^32], or of a constant",
    "FLOOR": "of such a logarithm, of a share of the leaves, or of a part of a number, all clamped before",
    "LEAST": "clamped to a constant of the new type",
    "SUM": "at most 2^20 in size from each of fewer than 2^43 rows",
    "COALESCE": "of such a sum and 0",
    "CASE": "a part's constants",
    "BITWISERIGHTSHIFT": "a sum in fine steps told in coarse ones: at most 2^20 from each of fewer than 2^43 rows",
    "DATE_PART": "a part of a moment within the years 1 to 9999",
    "MAX": "a count of rows",
    "COUNT": "a count of rows",
}
"""Operands whose value lies within the narrower type that they are cast to, by their outermost function."""

FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(("ABS", "FLOOR", "CEIL", "TRUNC", "ROUND", "SIGN"), "of doubles or of 128 bits"),
    **dict.fromkeys(("SQRT", "LN", "LOG", "EXP", "POWER"), "behind CASE, on the values where they are defined only"),
    **dict.fromkeys(("COALESCE", "LEAST", "GREATEST", "NULLIF", "CASE", "IF"), "choices among values"),
    **dict.fromkeys(("SUM", "COUNT", "MIN", "MAX", "GROUPING"), "of numbers on the grid, and of rows"),
    **dict.fromkeys(("ROW_NUMBER", "DENSE_RANK", "FIRST_VALUE"), "windows over cells, and over a unit's rows"),
    **dict.fromkeys(("RANK", "LAG", "LEAD", "LAST_VALUE"), "windows over a unit's rows"),
    **dict.fromkeys(("HASH", "XOR"), "defined on every value"),
    **dict.fromkeys(("AND", "OR"), "logic"),
    **dict.fromkeys(("LENGTH", "TRIM", "LTRIM", "RTRIM", "TRANSLATE", "BIN"), "defined on every text and number"),
    **dict.fromkeys(("STARTS_WITH", "ENDS_WITH", "CONTAINS"), "of two texts"),
    **dict.fromkeys(("REGEXP_FULL_MATCH", "DECODE"), "a constant pattern; a constant text"),
    "REPLACE": "behind CASE, of texts that cannot become too long",
    "SUBSTRING": "behind CASE, places from 1 to 2^32 - 1",
    **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATE_PART", "DATEDIFF"), "of moments of the years 1 to 9999"),
    **dict.fromkeys(("MAKE_TIMESTAMP", "EPOCH_US"), "of a moment within the years 1 to 9999"),
    **dict.fromkeys(("MAKE_TIMESTAMP_NS", "EPOCH_NS"), "of a moment within the years 1678 to 2261, or beside them"),
    **dict.fromkeys(("LIST_TRANSFORM", "ARRAY"), "one entry, by a formula of the functions above"),
    "RAND": "a filter that stays where it is written",
    **dict.fromkeys(("CAST", "TRY_CAST"), "see above"),
}
"""Functions that the printers write: why no value that reaches them fails."""
