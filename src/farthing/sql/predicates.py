"""Conditions: AND, OR, NOT, comparisons, IN, BETWEEN, LIKE and the tests for NULL and truth values."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from farthing.query.expressions import (
    MOST_CHOICES,
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
)
from farthing.sql.meeting import MOMENTS, NUMBERS, alike
from farthing.sql.nodes import TRUE, surely
from farthing.sql.scalars import plain

if TYPE_CHECKING:
    from farthing.sql.nodes import NodeReader, Rule
    from farthing.sql.text import Node


def _connective(reader: NodeReader, node: Node) -> Expression:
    """Return a chain of ANDs or ORs as one expression, without recursing along the chain."""
    kind = type(node)
    parts: list[Expression] = []
    waiting: list[Node] = [node]
    while waiting:
        current = waiting.pop()
        if type(current) is kind:
            reader.only(current, "this", "expression")
            waiting += [current.expression, current.this]
        else:
            parts.append(reader.predicate(current))
    return And(tuple(parts)) if kind.__name__ == "And" else Or(tuple(parts))


def _comparison(reader: NodeReader, node: Node) -> Expression:
    """Return a comparison."""
    reader.only(node, "this", "expression")
    left, right = alike(reader, reader.scalar(node.this), reader.scalar(node.expression))
    return Compare(left, _OPERATORS[type(node).__name__], right)


def _between(reader: NodeReader, node: Node) -> Expression:
    """Return a range test."""
    reader.only(node, "this", "low", "high")
    return Between(*alike(reader, *(reader.scalar(node.args[part]) for part in ("this", "low", "high"))))


def _membership(reader: NodeReader, node: Node) -> Expression:
    """Return a membership test over constants."""
    if node.args.get("query") is not None:
        advice = "list the values: IN (1, 2, 3); or JOIN (SELECT unit FROM ... GROUP BY unit HAVING ...) USING (unit)"
        raise reader.source.refuse("a subquery", advice, node)
    reader.only(node, "this", "expressions")
    value = reader.scalar(node.this)
    if len(node.expressions) > MOST_CHOICES:
        raise reader.source.refuse(
            f"IN with more than {MOST_CHOICES:,} constants", "list them in keys=, or join a public table of them", node
        )
    met = reader.type(value) in (*MOMENTS, *NUMBERS)
    choices = [
        (None if met and getattr(choice, "is_string", True) else plain(choice))
        or alike(reader, reader.scalar(choice), value)[0]
        for choice in node.expressions
    ]
    constants = tuple(choice for choice in choices if isinstance(choice, Literal))
    if not constants or len(constants) < len(choices) or isinstance(value, Literal):
        raise reader.source.refuse("IN without a list of constants", "write column IN (1, 2, 3)", node)
    return In(value, constants)


def _test(reader: NodeReader, node: Node) -> Expression:
    """Return IS NULL, IS TRUE or IS FALSE: never unknown."""
    from sqlglot import exp

    reader.only(node, "this", "expression")
    if isinstance(node.expression, exp.Null):
        return IsNull(reader.scalar(node.this))
    if not isinstance(node.expression, exp.Boolean):
        raise reader.source.refuse("IS of anything but NULL, TRUE or FALSE", "compare with =", node)
    predicate = reader.predicate(node.this)
    return Compare(surely(predicate if node.expression.this else Not(predicate)), Operator.EQ, TRUE)


def _same(reader: NodeReader, node: Node) -> Expression:
    """Return IS [NOT] DISTINCT FROM: a comparison for which NULL is one more value; never unknown."""
    reader.only(node, "this", "expression")
    left, right = alike(reader, reader.scalar(node.this), reader.scalar(node.expression))
    there = And((Not(IsNull(left)), Not(IsNull(right)), Compare(left, Operator.EQ, right)))
    same = Or((And((IsNull(left), IsNull(right))), there))
    return same if type(node).__name__ == "NullSafeEQ" else Not(same)


def _negation(reader: NodeReader, node: Node) -> Expression:
    """Return a negation."""
    reader.only(node, "this")
    return Not(reader.predicate(node.this))


def _bracketed(reader: NodeReader, node: Node) -> Expression:
    """Return what stands in brackets."""
    reader.only(node, "this")
    return reader.predicate(node.this)


_OPERATORS = {
    "EQ": Operator.EQ,
    "NEQ": Operator.NE,
    "LT": Operator.LT,
    "LTE": Operator.LE,
    "GT": Operator.GT,
    "GTE": Operator.GE,
}


@cache
def rules() -> dict[str, Rule]:
    """Return the whole whitelist of predicates, by the names of the parser's nodes."""
    return {
        **dict.fromkeys(("And", "Or"), _connective),
        **dict.fromkeys(_OPERATORS, _comparison),
        **dict.fromkeys(("NullSafeEQ", "NullSafeNEQ"), _same),
        "Not": _negation,
        "Is": _test,
        "In": _membership,
        "Between": _between,
        "Paren": _bracketed,
    }
