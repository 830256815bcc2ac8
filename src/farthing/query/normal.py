"""The normal form of a predicate: one spelling for all the ways of saying the same.

Negations are pushed to the leaves, BETWEEN becomes two comparisons, nested chains of one connective are joined, tests
of one scalar for several constants become one IN, sides, operands and choices are put in one order, repetitions are
dropped, and 15.0 becomes 15. Scalars stay as they are: here x + 1 is one more column. Every step is an identity of
three-valued logic over the total order of `expressions`, so a row counts under the normal form exactly when it counts
under the original. Engines run the normal form itself: questions of equal identity run the same query, whatever a
backend's own rules for NaN.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final, assert_never

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
    Operator,
    Or,
    Scalar,
)

_OPPOSITE: Final = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.GT: Operator.LE,
    Operator.LE: Operator.GT,
}


@lru_cache(maxsize=32)
def normal(expression: Expression) -> Expression:
    """Return the normal form of a predicate; the latest are kept, since one ask needs that of its own many times.

    >>> x = Column("x")
    >>> str(normal(Not(Or((Compare(Literal(3), Operator.GT, x), Not(In(x, (Literal(7.0),))))))))
    'x = 7 AND x >= 3'
    """
    return _normal(expression, positive=True)


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """Return the parts of a normal predicate that must all hold; none for None."""
    if expression is None:
        return ()
    return expression.operands if isinstance(expression, And) else (expression,)


def conjunction(parts: tuple[Expression, ...]) -> Expression | None:
    """Return the normal predicate that holds where all parts do; None for none.

    >>> x = Compare(Column("x"), Operator.EQ, Literal(1))
    >>> conjunction((x, x)) == x
    True
    """
    return normal(And(parts)) if parts else None


def constants(part: Expression) -> tuple[str, tuple[Literal | None, ...]] | None:
    """Return the column that a part of a normal predicate holds to a list of constants, and the list; None for NULL.

    >>> constants(In(Column("x"), (Literal(1), Literal(2))))
    ('x', (Literal(value=1), Literal(value=2)))
    """
    match part:
        case In(Column(name), choices):
            return name, choices
        case IsNull(Column(name)):
            return name, (None,)
        case Compare(Column(name), Operator.EQ, Literal() as value) | Compare(
            Literal() as value, Operator.EQ, Column(name)
        ):
            return name, (value,)
        case _:
            return None


def _normal(expression: Expression, *, positive: bool) -> Expression:
    """Return the normal form of a predicate, or of its negation."""
    match expression:
        case Compare(left, operator, right):
            return _comparison(left, operator if positive else _OPPOSITE[operator], right)
        case Not(operand):
            return _normal(operand, positive=not positive)
        case And(operands) | Or(operands):
            kind = And if isinstance(expression, And) is positive else Or
            return _joined(kind, [_normal(operand, positive=positive) for operand in operands])
        case Between():
            return _normal(And(expression.comparisons), positive=positive)
        case In(operand, choices):
            return _membership(operand, [_literal(choice) for choice in choices], positive=positive)
        case IsNull():
            return expression if positive else Not(expression)
        case _:
            assert_never(expression)


def _comparison(left: Scalar, operator: Operator, right: Scalar) -> Compare:
    """Return a comparison with its constant last; two constants, or none, in the order of their texts."""
    left, right = _side(left), _side(right)
    flip = (isinstance(left, Literal), left.canonical(), operator) > (
        isinstance(right, Literal),
        right.canonical(),
        operator.flipped,
    )
    return Compare(right, operator.flipped, left) if flip else Compare(left, operator, right)


def _side(operand: Scalar) -> Scalar:
    """Return a side of a comparison with constants in one spelling."""
    return _literal(operand) if isinstance(operand, Literal) else operand


def _literal(literal: Literal) -> Literal:
    """Return a constant in one spelling: whole floats as integers."""
    value = literal.value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return replace(literal, value=int(value)) if whole and isinstance(value, float) else literal


def _membership(operand: Scalar, choices: list[Literal], *, positive: bool) -> Expression:
    """Return the test that a scalar equals one of the constants, or none of them."""
    ordered = {choice.canonical(): choice for choice in choices}
    kept = tuple(ordered[text] for text in sorted(ordered))
    if len(kept) == 1:
        return _comparison(operand, Operator.EQ if positive else Operator.NE, kept[0])
    return In(operand, kept) if positive else Not(In(operand, kept))


def _joined(kind: type[And | Or], operands: list[Expression]) -> Expression:
    """Return normal operands under one connective: flattened, merged, ordered, each once."""
    flat = [part for operand in operands for part in (operand.operands if isinstance(operand, kind) else (operand,))]
    lists: dict[Scalar, list[Literal]] = {}
    others: dict[str, Expression] = {}
    for part in flat:
        found = _listed(part, positive=kind is Or)
        if found is None:
            others[part.canonical()] = part
        else:
            lists.setdefault(found[0], []).extend(found[1])
    for operand, choices in lists.items():
        merged = _membership(operand, choices, positive=kind is Or)
        others[merged.canonical()] = merged
    parts = tuple(others[text] for text in sorted(others))
    return parts[0] if len(parts) == 1 else kind(parts)


def _listed(part: Expression, *, positive: bool) -> tuple[Scalar, tuple[Literal, ...]] | None:
    """Return scalar and constants of a normal test for equality (or for its opposite) with constants."""
    wanted = Operator.EQ if positive else Operator.NE
    match part:
        case Compare(left, operator, Literal() as value) if operator is wanted and not isinstance(left, Literal):
            return left, (value,)
        case In(operand, choices) if positive:
            return operand, choices
        case Not(In(operand, choices)) if not positive:
            return operand, choices
        case _:
            return None
