"""The one reader of SQL text: DuckDB's grammar, with the spellings of PostgreSQL and GoogleSQL beside it.

No function has a meaning here: all are read as names with arguments, and `functions` and `aggregates` are the whole
list of those that are understood. Only what has a grammar of its own (CASE, CAST, EXTRACT, ...) is read by the parser.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import TokenType, exp
from sqlglot.dialects.duckdb import DuckDB

_PARSED = ("CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT", "SUBSTRING", "TRIM")
_BARE = ("CASE", "IF")
_SETS = {exp.GroupingSets: "grouping_sets", exp.Cube: "cube", exp.Rollup: "rollup"}
_QUERY = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)


class Privacy(exp.Expression):
    """GoogleSQL's WITH DIFFERENTIAL_PRIVACY OPTIONS (...): the kind, and its options as equations."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class SqlDialect(DuckDB):
    """DuckDB's dialect with `backticks` for names, and with functions as plain names."""

    class Tokenizer(DuckDB.Tokenizer):
        """Names in double quotes or backticks, texts in single quotes; EXPLAIN is not a command, DIV is a function."""

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

        def _parse_statement(self) -> Any:
            """Read EXPLAIN before a query as a mark of its tree, `meta["explain"]`."""
            explain = bool(self._next) and self._next.token_type in _QUERY and self._match_text_seq("EXPLAIN")
            tree = super()._parse_statement()
            if explain and tree is not None:
                tree.meta["explain"] = True
            return tree

        def _negate_range(self, this: Any = None) -> Any:
            """Return NOT of what stood behind a value, as LIKE 'x'; newer versions mark some of these tests instead."""
            return this and self.expression(exp.Not(this=this))

        def _parse_group(self, skip_group_by_token: bool = False) -> Any:  # as the parser has it
            """Read GROUP BY; its grouping sets stand apart from its columns, in whichever place they were read."""
            group = super()._parse_group(skip_group_by_token)
            if group is not None:
                listed = group.expressions
                group.set("expressions", [node for node in listed if type(node) not in _SETS])
                for node in listed:
                    if type(node) in _SETS:
                        group.append(_SETS[type(node)], node)
            return group

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:  # as the parser has it
            """Read CUBE (...) and ROLLUP (...) of any expressions, as plain GROUP BY takes them."""
            kinds = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}
            kind = next((made for token, made in kinds.items() if self._match(token)), None)
            if kind is None:
                return None
            return self.expression(kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_whole)))

        def _parse_grouping_set(self) -> Any:
            """Read one element of GROUPING SETS: nested ones, or any expression."""
            return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_whole()

        def _parse_whole(self) -> Any:
            """Read an expression, comparisons and logic among them."""
            return self._parse_disjunction()

        def _parse_hint(self) -> Any:
            """Read SELECT WITH kind OPTIONS (name = value, ...) as `Privacy`, where hints stand in other grammars."""
            if not self._match(TokenType.WITH):
                return None
            kind, options = self._parse_word("a kind"), []
            if self._match_text_seq("OPTIONS"):
                self._expect(TokenType.L_PAREN, "(")
                while not self._match(TokenType.R_PAREN):
                    options.append(self._parse_option())
                    if not self._match(TokenType.R_PAREN, advance=False):
                        self._expect(TokenType.COMMA, ",")
            return Privacy(this=kind, expressions=options)

        def _parse_option(self) -> Any:
            """Read name = value; a value is a number or a column, as anywhere."""
            name = self._parse_word("a name")
            self._expect(TokenType.EQ, "=")
            start = self._curr
            value = self._parse_unary() or self._parse_word("a value")
            value.meta["start"] = start.start
            return exp.EQ(this=name, expression=value)

        def _parse_word(self, what: str) -> Any:
            """Read one word, whatever it is, and where it stands."""
            if not self._curr:
                self._missing(what)
            word = exp.Var(this=self._curr.text)
            word.meta["start"] = self._curr.start
            self._advance()
            return word

        def _expect(self, kind: TokenType, what: str) -> None:
            """Read one sign; refuse any other."""
            if not self._match(kind):
                self._missing(what)

        def _missing(self, what: str) -> None:
            """Refuse the text at the present word."""
            self.raise_error(f"expected {what} in OPTIONS (name = value, ...)")


READER = SqlDialect()
