"""WHERE: from the syntax tree into the closed expression language, by whitelist."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from farthing.query.expressions import (
    And,
    Between,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Operator,
    Or,
    check,
)
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.sql.text import Node, Source


@dataclass(frozen=True, slots=True)
class Translator:
    """Reads the nodes of one question.

    Attributes:
        source: the text, for places in messages.
        schema: the table's schema.
        tables: the names by which columns may be qualified.
    """

    source: Source
    schema: Schema
    tables: tuple[str, ...]

    def predicate(self, node: Node) -> Expression:
        """Return a checked predicate.

        Raises:
            UnsupportedQuery: anything outside of the language, by name.
        """
        return self._predicate(node)

    def column(self, node: Node) -> str:
        """Return the name of a column; unquoted names may differ in case, as SQL has it."""
        from sqlglot import exp

        self.only(node, "this", "table")
        name = node.this
        if not isinstance(name, exp.Identifier):
            raise self.source.refuse("a column list", "name the columns", node)
        table = node.args.get("table")
        if table is not None and table.name.casefold() not in (known.casefold() for known in self.tables):
            raise self.source.refuse(f"table {table.name!r}", f"columns belong to {self.tables[0]!r}", node)
        names = self.schema.names
        same = [known for known in names if known.casefold() == name.name.casefold()]
        if name.name not in names and not name.args.get("quoted") and len(same) == 1:
            return same[0]
        with self.source.located(node):
            self.schema.require(name.name)
        return str(name.name)

    def only(self, node: Node, *expected: str) -> None:
        """Refuse a node that carries more than the parts that are understood."""
        for part, value in node.args.items():
            if value and part not in expected:
                raise self.source.refuse(f"{type(node).__name__} with {part.strip('_')}", "leave that part out", node)

    def _predicate(self, node: Node) -> Expression:
        """Return the predicate of a node."""
        for kind, translate in _rules():
            if isinstance(node, kind):
                with self.source.located(node):
                    expression = translate(self, node)
                    if not isinstance(expression, And | Or | Not):  # their parts are checked already
                        check(expression, self.schema)
                    return expression
        raise self._unknown(node)

    def connective(self, node: Node) -> Expression:
        """Return a chain of ANDs or ORs as one expression, without recursing along the chain."""
        from sqlglot import exp

        kind = type(node)
        parts: list[Expression] = []
        waiting: list[Node] = [node]
        while waiting:
            current = waiting.pop()
            if type(current) is kind:
                self.only(current, "this", "expression")
                waiting += [current.expression, current.this]
            else:
                parts.append(self._predicate(current))
        return And(tuple(parts)) if kind is exp.And else Or(tuple(parts))

    def comparison(self, node: Node) -> Compare:
        """Return a comparison."""
        self.only(node, "this", "expression")
        left, right = self._operand(node.this), self._operand(node.expression)
        return Compare(self._like(left, right), _OPERATORS[type(node).__name__], self._like(right, left))

    def between(self, node: Node) -> Between:
        """Return a range test."""
        self.only(node, "this", "low", "high")
        value, low, high = (self._operand(node.args[part]) for part in ("this", "low", "high"))
        return Between(self._like(value, low), self._like(low, value), self._like(high, value))

    def membership(self, node: Node) -> In:
        """Return a membership test over constants."""
        if node.args.get("query") is not None:
            raise self.source.refuse("a subquery", "list the values: IN (1, 2, 3)", node)
        self.only(node, "this", "expressions")
        value = self._operand(node.this)
        if not isinstance(value, Column):
            raise self.source.refuse("IN of a constant", "write column IN (values)", node)
        choices = [self._like(self._operand(choice), value) for choice in node.expressions]
        constants = tuple(choice for choice in choices if isinstance(choice, Literal))
        if not constants or len(constants) < len(choices):
            raise self.source.refuse("IN without a list of constants", "write column IN (1, 2, 3)", node)
        return In(value, constants)

    def null_test(self, node: Node) -> IsNull:
        """Return a NULL test."""
        from sqlglot import exp

        self.only(node, "this", "expression")
        value = self._operand(node.this)
        if not isinstance(node.expression, exp.Null) or not isinstance(value, Column):
            raise self.source.refuse("IS of anything but NULL", "write column IS NULL, or column = TRUE", node)
        return IsNull(value)

    def negation(self, node: Node) -> Not:
        """Return a negation."""
        self.only(node, "this")
        return Not(self._predicate(node.this))

    def bracketed(self, node: Node) -> Expression:
        """Return what stands in brackets."""
        self.only(node, "this")
        return self._predicate(node.this)

    def truth(self, node: Node) -> Compare:
        """Return a truth value, a column or TRUE, as a comparison with TRUE."""
        return Compare(self._operand(node), Operator.EQ, Literal(value=True))

    def _operand(self, node: Node) -> Operand:
        """Return a column or a constant."""
        from sqlglot import exp

        if isinstance(node, exp.Column):
            return Column(self.column(node))
        if isinstance(node, exp.Paren):
            self.only(node, "this")
            return self._operand(node.this)
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this))
        if isinstance(node, exp.Literal):
            return Literal(node.this) if node.is_string else self._number(node, node.this)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._number(node, "-" + node.this.this)
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return self._typed_constant(node)
        raise self._unknown(node)

    def _number(self, node: Node, text: str) -> Literal:
        """Return a numeric constant; whole numbers below 2^53 are integers however they are written."""
        digits = text.replace("_", "")
        if digits.lstrip("-").isdigit() and len(digits) < 40:
            return Literal(int(digits))
        try:
            number = float(digits)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.source.refuse("a number out of range", "write a finite number", node)
        return Literal(int(number)) if number.is_integer() and abs(number) < 2**53 else Literal(number)

    def _typed_constant(self, node: Node) -> Literal:
        """Return DATE '...' or TIMESTAMP '...' as a constant; any other cast is refused."""
        from sqlglot import exp

        self.only(node, "this", "to")
        kind = node.args["to"].this.value
        constant = node.this
        if not isinstance(constant, exp.Literal) or not constant.is_string or kind not in ("DATE", "TIMESTAMP"):
            raise self.source.refuse("CAST", "compare the column as it is; constants may be DATE '2013-01-31'", node)
        return self._moment(constant.this, Type.DATE if kind == "DATE" else Type.TIMESTAMP, node)

    def _like(self, operand: Operand, other: Operand) -> Operand:
        """Return a text constant as a date or time where it meets one, and a date as midnight where it meets a time."""
        if not isinstance(operand, Literal):
            return operand
        met = other.type if isinstance(other, Literal) else self.schema.require(other.name)
        value = operand.value
        if isinstance(value, str) and met in (Type.DATE, Type.TIMESTAMP):
            return self._moment(value, met, None)
        if met is Type.TIMESTAMP and isinstance(value, date) and not isinstance(value, datetime):
            return Literal(datetime(value.year, value.month, value.day))  # noqa: DTZ001  # times here have no zone
        return operand

    def _moment(self, text: str, kind: Type, node: Node | None) -> Literal:
        """Return a date or time constant from its ISO text."""
        try:
            return Literal(date.fromisoformat(text) if kind is Type.DATE else datetime.fromisoformat(text))
        except ValueError:
            raise self.source.refuse(f"{kind} {text[:40]!r}", f"write a {kind} as '2013-01-31'", node) from None

    def _unknown(self, node: Node) -> Exception:
        """Return the refusal of a node, by the name SQL has for it."""
        from sqlglot import exp

        name = str(getattr(node, "sql_name", str)())
        for kind, construct, advice in (
            (exp.Query, "a subquery", "compare with constants"),
            (exp.Null, "a comparison with NULL", "write column IS NULL"),
            (exp.AggFunc, f"{name} in WHERE", "aggregates come last"),
            (exp.Anonymous, f"function {node.name}", "compare columns with constants"),
            (exp.Cast, "CAST", "compare the column as it is"),
            (exp.Func, f"function {name}", "compare columns"),
            (exp.Like, "LIKE", "compare with =, or IN and a list of values"),
            (
                exp.Binary,
                f"operator {type(node).__name__}",
                "compare columns with constants; arithmetic is not understood",
            ),
        ):
            if isinstance(node, kind):
                return self.source.refuse(construct, advice, node)
        return self.source.refuse(type(node).__name__, "compare columns with constants", node)


_OPERATORS = {
    "EQ": Operator.EQ,
    "NEQ": Operator.NE,
    "LT": Operator.LT,
    "LTE": Operator.LE,
    "GT": Operator.GT,
    "GTE": Operator.GE,
}


def _rules() -> tuple[tuple[tuple[type, ...], Callable[[Translator, Node], Expression]], ...]:
    """Return the whole whitelist of predicates."""
    from sqlglot import exp

    return (
        ((exp.And, exp.Or), Translator.connective),
        ((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), Translator.comparison),
        ((exp.Not,), Translator.negation),
        ((exp.Is,), Translator.null_test),
        ((exp.In,), Translator.membership),
        ((exp.Between,), Translator.between),
        ((exp.Paren,), Translator.bracketed),
        ((exp.Column, exp.Boolean), Translator.truth),
    )
