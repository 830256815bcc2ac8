"""Backends that are told by a table: each primitive of the language is a word, and a dialect spells each word once.

A question is built of words and of what ibis prints alike everywhere. Before it is printed, what ibis would print in a
way that can fail or that differs (casts and comparisons of doubles, least and greatest of them) becomes a word as well.
A word that a dialect does not spell is refused by its name, before anything is charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.terms import call
from farthing.engines.foreign.values import ValuesBackend
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from farthing.engines.foreign.terms import IbisTerm

WORD: Final = "word_"
"""What the names of words begin with, until they are spelled."""

MOST_DIGITS: Final = 15
"""Decimals of no more digits are cast to the nearest double by every engine; others are spelled first, by some."""

EDGES: Final = {
    Type.DATE: (date(1, 1, 1), date(9999, 12, 31)),
    Type.TIMESTAMP: (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001  # no zones
}
_INTEGERS: Final = {"+": "add", "-": "subtract", "*": "multiply"}
_ORDER: Final = {"<": lt, "<=": le, ">": gt, ">=": ge}
_COMPARED: Final = {
    "Equals": "equal",
    "NotEquals": "unequal",
    "Less": "less",
    "LessEqual": "at_most",
    "Greater": "greater",
    "GreaterEqual": "at_least",
}
_PLAIN: Final = ("least_plain", "greatest_plain", "double")
"""Words of whole numbers and moments that a dialect spells where its own functions and casts are not the language's."""

_KINDS: Final = {"length": "int64", "starts_with": "boolean", "ends_with": "boolean", "contains": "boolean"}
_PARSED: Final = {
    Type.INTEGER: "int64",
    Type.FLOAT: "float64",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


@dataclass(frozen=True)
class Dialect:
    """How one engine spells the words.

    Attributes:
        name: sqlglot's name of the dialect.
        words: SQL of each word, with {0}, {1}, ... for what it is given; each total on every value of its types.
        settings: what is written behind a question.
        whole: the regular expression of a whole text that matches a pattern.
    """

    name: str
    words: Mapping[str, str]
    settings: str = ""
    whole: str = "^({0})$"

    def spelled(self, word: str, *values: str) -> str:
        """Return the SQL of a word, of SQL that is written as it is or stands in brackets."""
        return self.words[word].format(*values)

    def copies(self, word: str) -> int:
        """Return how often a word writes what it is given, at most."""
        return max(1, *(self.words[word].count(f"{{{place}}}") for place in range(4)))


class DialectBackend(ValuesBackend):
    """The guarded primitives of an engine by its dialect, and the keyed hash of `ValuesBackend`.

    Args:
        connection: the ibis backend.
    """

    dialect: Dialect
    plans = True

    def prepared(self, question: Any, beside: Mapping[str, pa.Table]) -> Callable[[], None]:
        """Return what lets the engine prepare the text of a question with all its constants; it runs nothing."""
        sql = self.text(question, beside)
        return lambda: self._require_prepared(sql)

    def _require_prepared(self, sql: str) -> None:
        """Let the engine prepare a text."""
        from ibis.common.exceptions import IbisError

        try:
            self._prepare(sql)
        except Exception:  # noqa: BLE001, S110  # every engine has errors of its own
            pass
        else:
            return
        raise IbisError(f"{self.name} cannot prepare the question")

    def run(self, question: Any, beside: Mapping[str, pa.Table]) -> pa.Table:
        """Return the answer of a question; tables beside it are constants of its text."""
        return self._send(self.text(question, beside)).cast(question.as_table().schema().to_pyarrow())

    def _prepare(self, sql: str) -> None:
        """Have a text prepared, where the engine is there."""

    def _send(self, sql: str) -> pa.Table:
        """Return the answer of a text."""
        raise NotImplementedError

    def word(self, name: str, output: Any, *values: Any) -> Any:
        """Return a word of the dialect; refuse one that it does not spell."""
        if name not in self.dialect.words:
            self._refuse(name)
        return call(f"{WORD}{name}", output, *values)

    def copies(self, node: Any) -> int:
        """Return how often the SQL of an operation holds what it is of."""
        word = _word_of(node)
        return 1 if word is None or word not in self.dialect.words else self.dialect.copies(word)

    def tree(self, question: Any) -> Any:
        """Return a question as SQL of the dialect, before its constants."""
        from sqlglot import exp

        lowered = question.as_table().op().replace(self._lowered).to_expr()
        tree = _in_lists(self._connection.compiler.to_sqlglot(lowered.unbind())).copy()  # no part has two places
        for node in list(tree.find_all(exp.Count, exp.CountIf)):  # ClickHouse's have no sign, and meet no other integer
            place = node.parent if isinstance(node.parent, exp.Window) else node
            place.replace(exp.cast(place.copy(), "bigint"))
        for node in reversed(list(tree.find_all(exp.Anonymous))):  # what is inside first
            word = str(node.this).lower()
            if word.startswith(WORD):
                values = [self._written(each) for each in node.expressions]
                node.replace(exp.Var(this=f"({self.dialect.spelled(word.removeprefix(WORD), *values)})"))
        return tree

    def _written(self, node: Any) -> str:
        """Return SQL that can stand anywhere."""
        from sqlglot import exp

        text = str(node.sql(dialect=self.dialect.name))
        return text if isinstance(node, exp.Column | exp.Literal | exp.Var | exp.Paren) else f"({text})"

    def _lowered(self, node: Any, changed: Mapping[str, Any] | None) -> Any:
        """Return an operation with a word in its place where ibis would print what differs."""
        node = node.__recreate__(changed) if changed else node
        word = _word_of(node)
        if word is None or _is_word(node) or (word in _PLAIN and word not in self.dialect.words):
            return node
        output, arguments = node.dtype, [each.to_expr() for each in _operands(node)]
        if word in ("least", "greatest", "least_plain", "greatest_plain"):
            first, *rest = arguments
            for each in rest:
                first = self.word(word, output, first, each)
            return first.op()
        return self.word(word, output, *arguments).op()

    def require(self, function: str) -> None:
        """Every function is made of words, and these are refused where they are missing."""

    def opened(self, table: Any) -> tuple[Any, Mapping[str, Any]]:
        """Return a table of texts without collation, one NaN, and times with a zone in UTC; and its types."""
        import ibis

        schema, changed = dict(table.schema()), {}
        for name, kind in schema.items():
            if kind.is_floating() and "one_nan" in self.dialect.words:
                schema[name] = ibis.dtype("float64")
                changed[name] = self.word("one_nan", schema[name], table[name])
            if kind.is_string() and "plain_text" in self.dialect.words:
                changed[name] = self.word("plain_text", kind, table[name])
            if kind.is_timestamp() and kind.timezone is not None:
                schema[name] = ibis.dtype("timestamp")
                changed[name] = self.word("in_utc", schema[name], table[name])
        return table.mutate(**changed) if changed else table, schema

    def read(self, column: Any, kind: Type) -> Any:
        """Return a column in the type in which it is compared, computed with and grouped."""
        word = f"read_{kind.value}"
        if kind is Type.DECIMAL and (column.type().precision or MOST_DIGITS + 1) > MOST_DIGITS:
            word = next(each for each in ("read_wide_decimal", word) if each in self.dialect.words)
        if word not in self.dialect.words:
            return super().read(column, kind)
        output = {Type.DECIMAL: "float64", Type.FLOAT: "float64", Type.DATE: "date", Type.TIMESTAMP: "timestamp"}
        return self.word(word, output.get(kind, column.type()), column)

    def _typed(self, column: str, kind: str) -> Any:
        """Return a column of texts as one of an ibis type: days, times and reals as constants of theirs are."""
        from sqlglot import exp

        word = {"timestamp": "moment", "date": "day", "float64": "real"}.get(kind)
        return super()._typed(column, kind) if word is None else exp.Var(this=self.dialect.spelled(word, column))

    def is_null(self, value: Any) -> Any:
        """Return whether a value is NULL, NaN being a value."""
        return value.isnull()

    def ordered(self, left: Any, sign: str, right: Any) -> Any:
        """Return a comparison of texts: by bytes of UTF-8, which is by code points."""
        return _ORDER[sign](left, right)

    def integers(self, sign: str, left: Any, right: Any) -> Any:
        """Return left sign right for + - *, NULL outside int64."""
        return self.word(_INTEGERS[sign], "int64", left, right)

    def divided(self, word: str, left: Any, right: Any) -> Any:
        """Return the whole quotient or what it leaves, truncated."""
        return self.word(word, "int64", left, right)

    def rounded(self, word: str, value: Any) -> Any:
        """Return floor, ceil or trunc of a double, as a double."""
        return self.word(word, "float64", value)

    def textual(self, word: str, *values: Any) -> Any:
        """Return functions of texts."""
        return self.word(word, _KINDS.get(word, "string"), *values)

    def substring(self, text: Any, start: Any, length: Any | None) -> Any:
        """Return letters from a place on."""
        if length is None:
            return self.word("from", "string", text, start)
        return self.word("substring", "string", text, start, length)

    def logarithm(self, value: Any) -> Any:
        """Return the logarithm to base ten."""
        return self.word("log10", "float64", value)

    def truncated(self, unit: str, moment: IbisTerm) -> Any:
        """Return the first moment of a unit: of a time by its clock, or the midnight of the first day."""
        if moment.type is Type.DATE:
            return moment.expr if unit == "day" else self.word(f"first_of_{unit}", "date", moment.expr)
        if unit in ("hour", "minute", "second"):
            return self.word(f"first_of_{unit}", "timestamp", moment.expr)
        day = self.word("day_of", "date", moment.expr)
        return self.midnight(day if unit == "day" else self.word(f"first_of_{unit}", "date", day))

    def part(self, part: str, moment: IbisTerm) -> Any:
        """Return a part of a date or time as an integer."""
        return self.word(f"part_{part}", "int64", moment.expr)

    def days(self, first: Any, last: Any) -> Any:
        """Return the days from one date to another."""
        return self.word("days", "int64", first, last)

    def midnight(self, day: Any) -> Any:
        """Return a date as a time."""
        return self.word("midnight", "timestamp", day)

    def moment(self, value: Any) -> Any:
        """Return a constant date or time."""
        if isinstance(value, datetime):
            return self.word("moment", "timestamp", value.isoformat(sep=" ", timespec="microseconds"))
        return self.word("day", "date", value.isoformat())

    def parsed(self, text: Any, pattern: str, kind: Type) -> Any:
        """Return a text that matches a pattern as a value of a type, else NULL."""
        return self.word(
            f"to_{kind.value}", _PARSED[kind], self.word("matching", "string", text, self.dialect.whole.format(pattern))
        )

    def spelled(self, value: IbisTerm) -> Any:
        """Return an integer, truth value, date or time as text."""
        import ibis

        if value.type is Type.BOOLEAN:
            return ibis.cases((value.expr, "true"), (~value.expr, "false"))
        return self.word(f"spelled_{value.type.value}", "string", value.expr)

    def text(self, question: Any, beside: Mapping[str, pa.Table]) -> str:
        """Return the whole text of a question, in the dialect."""
        import sqlglot
        from sqlglot import exp

        tree = self.tree(question)
        named = {table.name for table in tree.find_all(exp.Table)}
        made = sqlglot.select("*").from_(tree.subquery("answer", copy=False), copy=False)
        for name, table in beside.items():
            if name in named:
                made = made.with_(sqlglot.to_identifier(name, quoted=True), as_=self._constants(table), copy=False)
        return f"{made.sql(dialect=self.dialect.name)}{self.dialect.settings}"


def _in_lists(tree: Any) -> Any:
    """Return a tree of SQL whose parts are all found: what ibis leaves in tuples is neither walked nor copied."""
    for node in tree.walk():
        for name, parts in list(node.args.items()):
            if isinstance(parts, tuple):
                node.set(name, list(parts))
    return tree


def _is_word(node: Any) -> bool:
    """Return whether an operation is a word."""
    return str(getattr(type(node), "__func_name__", "")).startswith(WORD)


@cache
def _casts() -> Mapping[type, Callable[[Any], str | None]]:
    """Return which word stands for an operation of ibis, by its class."""
    import ibis.expr.operations as ops

    def compared(node: Any) -> str | None:
        real = node.left.dtype.is_floating() or node.right.dtype.is_floating()
        return _COMPARED[type(node).__name__] if real else None

    def cast(node: Any) -> str | None:
        source, to = node.arg.dtype, node.to
        if source.is_integer() and to.is_floating():
            return "double"
        if source.is_floating() and to.is_integer():
            return f"whole_{to.nbytes * 8}"
        if isinstance(node.arg, ops.Literal) and source.is_string() and to.is_floating():
            return "real"
        if source.is_timestamp() and to.is_date():
            return "day_of"
        return None

    def chosen(word: str) -> Callable[[Any], str | None]:
        return lambda node: word if node.dtype.is_floating() else None

    def picked(word: str) -> Callable[[Any], str | None]:
        return lambda node: word if node.dtype.is_floating() else f"{word}_plain"

    found: dict[type, Callable[[Any], str | None]] = {getattr(ops, name): compared for name in _COMPARED}
    found |= {ops.Cast: cast, ops.Least: picked("least"), ops.Greatest: picked("greatest")}
    found |= {ops.Sqrt: lambda _: "sqrt", ops.Ln: lambda _: "ln", ops.Exp: lambda _: "exp"}
    return found | {ops.Power: lambda _: "power", ops.StringSQLLike: lambda _: "like", ops.Divide: chosen("divide")}


def _word_of(node: Any) -> str | None:
    """Return the word that stands for an operation, or that it is; None where ibis prints it."""
    if _is_word(node):
        return str(type(node).__func_name__).removeprefix(WORD)
    told = _casts().get(type(node))
    return None if told is None else told(node)


def _operands(node: Any) -> tuple[Any, ...]:
    """Return what an operation is of."""
    import ibis.expr.operations as ops

    match node:
        case ops.Least() | ops.Greatest():
            return tuple(node.arg)
        case ops.StringSQLLike():
            return (node.arg, node.pattern)
        case ops.Binary():
            return (node.left, node.right)
        case _:
            return (node.arg,)
