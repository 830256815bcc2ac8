"""What is not understood, by the name that SQL or its parser has for it, and what to write instead."""

from __future__ import annotations

from typing import Final

_CHANCE: Final = "leave chance out: asking again would give another answer"
_NOW: Final = "write the moment: DATE '2013-01-31' or TIMESTAMP '2013-01-31 10:00:00'"
_ONE_ROW: Final = "no value of one row is told: ask for a count by group, or for a quantile"
_ONE_DECIDES: Final = "one row would decide it: write COUNT_IF(condition), and compare it with COUNT(*)"
_COMMON: Final = "write SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 1"
_SHAPE: Final = "ask for several quantiles: they tell the shape"
_FILES: Final = "a question reads the protected table, and nothing else"

NEVER: Final[dict[str, str]] = {
    **dict.fromkeys(("RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID", "GENERATE_UUID", "SETSEED", "NEXTVAL"), _CHANCE),
    **dict.fromkeys(
        ("NOW", "TODAY", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_DATETIME", "LOCALTIME",
         "LOCALTIMESTAMP", "GET_CURRENT_TIMESTAMP", "GETDATE", "SYSDATE", "CLOCK_TIMESTAMP", "AGE"), _NOW,
    ),
    **dict.fromkeys(
        ("READ_CSV", "READ_CSV_AUTO", "READ_PARQUET", "READ_JSON", "READ_TEXT", "READ_BLOB", "GLOB", "GETENV",
         "PG_READ_FILE", "CURRENT_SETTING", "CURRENT_USER", "VERSION", "QUERY", "PG_SLEEP"), _FILES,
    ),
    **dict.fromkeys(
        ("ANY_VALUE", "ARBITRARY", "FIRST", "LAST", "LIST", "ARRAY_AGG", "STRING_AGG", "GROUP_CONCAT", "LISTAGG",
         "ARG_MIN", "ARG_MAX", "MIN_BY", "MAX_BY"), _ONE_ROW,
    ),
    **dict.fromkeys(("BOOL_AND", "BOOL_OR", "EVERY", "LOGICAL_AND", "LOGICAL_OR"), _ONE_DECIDES),
    **dict.fromkeys(("MODE", "TOP_K", "APPROX_TOP_K", "APPROX_TOP_COUNT"), _COMMON),
    **dict.fromkeys(("MAD", "IQR", "KURTOSIS", "SKEWNESS"), _SHAPE),
    "PRODUCT": "write SUM(LN(x))",
    "GEOMEAN": "write AVG(LN(x))",
    "HISTOGRAM": "write SELECT FLOOR(x / 10) AS bin, COUNT(*) ... GROUP BY bin",
    "RANGE": "write MIN(x) and MAX(x)",
    "LOG": "write LN(x) or LOG10(x): dialects differ on what LOG is",
    "LOG2": "write LN(x) / LN(2)",
    **dict.fromkeys(("STRPOS", "INSTR", "POSITION", "CHARINDEX"), "write CONTAINS(text, part)"),
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_CONTAINS", "REGEXP_LIKE"), "write LIKE, STARTS_WITH or CONTAINS"),
    **dict.fromkeys(("GROUPING", "GROUPING_ID"), "select it by itself: GROUPING(zone) AS top is 1 where zone is NULL"),
    "ERROR": "nothing in a question may fail",
    "RIGHT": "write SUBSTRING(text, start) or ENDS_WITH(text, part)",
    "ISNULL": "write x IS NULL",

}  # fmt: skip

_SUBQUERY: Final = ("a subquery", "ask one SELECT at a time, with constants in its conditions")

INSTEAD: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(("Subquery", "Select", "Exists", "Union"), _SUBQUERY),
    **dict.fromkeys(("Any", "All"), ("ANY or ALL", "join comparisons with constants by OR or AND")),
    "Null": ("NULL as a value", "compare with IS NULL, or leave the value out"),
    "Star": ("*", "rows never leave: write COUNT(*)"),
    "Window": ("a window (OVER)", "ask an aggregate with GROUP BY"),
    "Filter": ("FILTER", "FILTER follows an aggregate of the SELECT list"),
    "WithinGroup": ("WITHIN GROUP", "it follows PERCENTILE_CONT(q) in the SELECT list"),
    "Lambda": ("a lambda", "write the expression itself"),
    "Kwarg": ("a named argument", "give the arguments by place"),
    "Interval": ("INTERVAL", "write the moment itself, or count days: DATE_DIFF('day', a, b)"),
    "Escape": ("LIKE with ESCAPE", "write CONTAINS, STARTS_WITH or ENDS_WITH"),
    "SimilarTo": ("SIMILAR TO", "write LIKE, STARTS_WITH or CONTAINS"),
    "RegexpLike": ("a regular expression", "write LIKE, STARTS_WITH or CONTAINS"),
    "RegexpFullMatch": ("a regular expression", "write LIKE, STARTS_WITH or CONTAINS"),
    "Placeholder": ("a parameter", "write the constant itself"),
    "Parameter": ("a parameter", "write the constant itself"),
    "Array": ("a list", "ask of one value at a time"),
    "Struct": ("a struct", "ask of one value at a time"),
    "Bracket": ("a part of a list", "ask of a column of plain values"),
    "Tuple": ("a row of values", "compare value by value"),
    "AtTimeZone": ("AT TIME ZONE", "times have no zone here; those of a table that has zones are read in UTC"),
    "Distinct": ("DISTINCT", "COUNT(DISTINCT x) counts what differs; leave it out elsewhere"),
    "Order": ("ORDER BY within a function", "leave it out: the order of rows does not matter"),
    "Alias": ("an alias within an expression", "give names in the SELECT list"),
    "JSONExtract": ("a lambda or JSON", "ask of a column of plain values"),
    "ByteString": ("a text with escapes", "write the text in plain quotes"),
    "HexString": ("a hexadecimal constant", "write the number in digits"),
    "Dot": ("a name with several parts", "write the function without a prefix"),
}
