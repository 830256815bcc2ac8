"""What expressions are on one row: the definition of the language, in plain Python, slow and obvious.

Values are Python's: bool, int, float, str, date, datetime without zone; None is NULL and, of a predicate, unknown.
Nothing here raises on a well-typed tree, whatever the row holds. Trees are `explicit` ones: only there does the value
of COALESCE(integer, real) say that it is real.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, assert_never

from farthing.engines.casts import cast
from farthing.engines.functions import FUNCTIONS, in_64_bits
from farthing.query.expressions import (
    And,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Scalar,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COMPARE: Final = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def evaluate(scalar: Scalar, row: Mapping[str, Any]) -> Any:
    """Return the value of a scalar on a row; None is NULL.

    >>> evaluate(Call(FunctionName.INTEGER_DIVIDE, (Column("x"), Literal(2))), {"x": -7})
    -3
    """
    match scalar:
        case Column(name):
            value = row[name]
            return float(value) if isinstance(value, Decimal) else value
        case Literal(value):
            return value
        case Call(function, arguments):
            return _call(function, [_inside(argument, row) for argument in arguments])
        case Cast(operand, kind):
            return cast(_inside(operand, row), kind)
        case Case(branches, otherwise):
            chosen = next((value for condition, value in branches if holds(condition, row) is True), otherwise)
            return None if chosen is None else _inside(chosen, row)
        case _:
            assert_never(scalar)


def holds(expression: Expression, row: Mapping[str, Any]) -> bool | None:  # noqa: PLR0911  # one return a case
    """Return the truth of a predicate on a row; None is unknown.

    >>> holds(Compare(Column("x"), Operator.GT, Literal(2)), {"x": None}) is None
    True
    """
    match expression:
        case Compare(left, comparison, right):
            return compare(evaluate(left, row), comparison, evaluate(right, row))
        case And(operands):
            return _all([holds(operand, row) for operand in operands])
        case Or(operands):  # De Morgan
            return _not(_all([_not(holds(operand, row)) for operand in operands]))
        case Not(operand):
            return _not(holds(operand, row))
        case IsNull(operand):
            return evaluate(operand, row) is None
        case In(operand, choices):
            value = evaluate(operand, row)
            return _not(_all([_not(compare(value, Operator.EQ, choice.value)) for choice in choices]))
        case Between(operand, low, high):
            value = evaluate(operand, row)
            bounds = evaluate(low, row), evaluate(high, row)
            return _all([compare(value, Operator.GE, bounds[0]), compare(value, Operator.LE, bounds[1])])
        case _:
            assert_never(expression)


def compare(left: Any, comparison: Operator, right: Any) -> bool | None:
    """Compare two values of one type; unknown where one is NULL."""
    if left is None or right is None:
        return None
    first, second = _ranks([left, right])
    return bool(_COMPARE[comparison](first, second))


def _ranks(values: Sequence[Any]) -> Sequence[Any]:
    """Return values as Python compares them: numbers as doubles unless all are integers, NaN above all."""
    if not any(isinstance(value, float | Decimal) for value in values):
        return values
    return [(math.isnan(value), 0.0 if math.isnan(value) else float(value)) for value in values]


def _inside(scalar: Scalar, row: Mapping[str, Any]) -> Any:
    """Return the value of a scalar inside another one, where an integer beyond 64 bits with sign is NULL."""
    return in_64_bits(evaluate(scalar, row))


def _call(function: FunctionName, values: list[Any]) -> Any:
    """Return what a function gives; NULL in is NULL out, but for the four that look for a value."""
    match function:
        case FunctionName.COALESCE:
            return next((value for value in values if value is not None), None)
        case FunctionName.LEAST | FunctionName.GREATEST:
            there = [value for value in values if value is not None]
            choose = min if function is FunctionName.LEAST else max
            return choose(zip(_ranks(there), there, strict=True), key=operator.itemgetter(0))[1] if there else None
        case FunctionName.NULLIF:
            return None if compare(values[0], Operator.EQ, values[1]) else values[0]
        case _:
            return None if None in values else FUNCTIONS[function](*values)


def _all(truths: list[bool | None]) -> bool | None:
    """Return the three-valued AND."""
    return False if False in truths else None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    """Return the three-valued NOT."""
    return None if truth is None else not truth
