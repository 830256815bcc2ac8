"""The one reader of SQL text: DuckDB's grammar, with the spellings of PostgreSQL and BigQuery beside it.

No function has a meaning here: all are read as names with arguments, and `functions` and `aggregates` are the whole
list of those that are understood. Only what has a grammar of its own (CASE, CAST, EXTRACT, ...) is read by the parser.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot.dialects.duckdb import DuckDB

_PARSED = ("CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT", "SUBSTRING", "TRIM")
_BARE = ("CASE", "IF")


class SqlDialect(DuckDB):
    """DuckDB's dialect with `backticks` for names, and with functions as plain names."""

    class Tokenizer(DuckDB.Tokenizer):
        """Names in double quotes or backticks; texts in single quotes only; EXPLAIN is no command, DIV a function."""

        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        KEYWORDS: ClassVar[dict[str, Any]] = {
            **{word: token for word, token in DuckDB.Tokenizer.KEYWORDS.items() if word not in ("EXPLAIN", "DIV")},
            "INT64": DuckDB.Tokenizer.KEYWORDS["BIGINT"],
            "FLOAT64": DuckDB.Tokenizer.KEYWORDS["DOUBLE"],
        }

    class Parser(DuckDB.Parser):  # type: ignore[valid-type,misc]  # a class, held by a variable
        """A grammar without functions."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {name: DuckDB.Parser.FUNCTION_PARSERS[name] for name in _PARSED}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in _BARE
        }


READER = SqlDialect()
