"""Ranges that a text itself gives its values: by constants, clamps and choices among them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.query.expressions import (
    Call,
    Case,
    Cast,
    Compare,
    Expression,
    FunctionName,
    IsNull,
    Literal,
    Not,
    Operator,
    Scalar,
    columns_of,
)
from farthing.query.schema import NUMBER_TYPES, Type
from farthing.sql.nodes import holds

if TYPE_CHECKING:
    from farthing.sql.nodes import NodeReader

EVERYTHING: Final = (-math.inf, math.inf)

Range: TypeAlias = "tuple[float, float]"


def range_of(value: Scalar) -> Range | None:
    """Return the least and the greatest that a value can be where it is not NULL; None where the text does not say.

    >>> from farthing.query.expressions import Column
    >>> fare = Call(FunctionName.LEAST, (Call(FunctionName.GREATEST, (Column("fare"), Literal(0))), Literal(80)))
    >>> range_of(fare), range_of(Column("fare"))
    ((0.0, 80.0), None)
    """
    low, high = _span(value)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def wide(found: Range) -> Range:
    """Return a range that is more than one number: that of a constant reaches to zero."""
    low, high = found
    if low < high:
        return found
    return (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)


def when_one(value: Scalar, reader: NodeReader) -> Expression | None:
    """Return the condition under which a value of 0s and 1s is 1; None for any other value.

    >>> from farthing.query.expressions import Column
    >>> paid = Compare(Column("fare"), Operator.GT, Literal(0))
    >>> str(when_one(Case(((paid, Literal(1)),), Literal(0)), None))
    'fare > 0'
    """
    match value:
        case Cast(operand, Type.INTEGER | Type.FLOAT) if reader.type(operand) is Type.BOOLEAN:
            return holds(operand)
        case Case(((condition, Literal() as one),), None | Literal() as none) if _is(one, 1) and _is(none, 0):
            return condition
        case Case(branches, otherwise) if columns_of(*(condition for condition, _ in branches)):
            there = [scalar for _, scalar in branches] + ([] if otherwise is None else [otherwise])
            if all(_is(scalar, 0) or _is(scalar, 1) for scalar in there):
                return Compare(value, Operator.EQ, Literal(1))
    return None


def as_number(value: Scalar, reader: NodeReader) -> Scalar:
    """Return a truth value as 1 and 0, NULL where it is unknown; other values as they are."""
    if reader.type(value) is not Type.BOOLEAN:
        return value
    condition = holds(value)
    return Case(((condition, Literal(1)), (Not(condition), Literal(0))))


def clamped(value: Scalar, found: Range, reader: NodeReader, otherwise: float | None) -> Scalar:
    """Return a value within a range, and a number where there is none; NaN and infinities are none of a real value."""
    low, high = (Literal(int(end) if end.is_integer() and abs(end) < 2**53 else end) for end in found)
    number = value
    if reader.type(value) is not Type.INTEGER and reader.type(value) in NUMBER_TYPES:
        number = Call(FunctionName.ADD, (value, Literal(0.0)))
    within = Call(FunctionName.LEAST, (Call(FunctionName.GREATEST, (number, low)), high))
    return Case(((Not(IsNull(number)), within),), None if otherwise is None else Literal(otherwise))


def _is(scalar: Scalar | None, number: int) -> bool:
    """Return whether a scalar is a number; nothing is 0, as NULL adds nothing."""
    if scalar is None:
        return number == 0
    match scalar:
        case Literal(int() | float() as value) if not isinstance(value, bool):
            return abs(value - number) <= 0
        case _:
            return False


def _span(value: Scalar) -> Range:
    """Return the least and the greatest that a value can be, infinities where the text does not say."""
    match value:
        case Literal(int() | float() as number) if not isinstance(number, bool):
            return float(number), float(number)
        case Case(branches, otherwise):
            there = [scalar for _, scalar in branches] + ([] if otherwise is None else [otherwise])
            return _hull([_span(scalar) for scalar in there])
        case Call(function, arguments):
            return _called(function, arguments)
        case _:
            return EVERYTHING


def _called(function: FunctionName, arguments: tuple[Scalar, ...]) -> Range:
    """Return the range of a function's value."""
    spans = [_span(argument) for argument in arguments]
    match function:
        case FunctionName.LEAST:
            return _least(arguments, spans)
        case FunctionName.GREATEST:
            low, high = _least(arguments, [(-high, -low) for low, high in spans])
            return -high, -low
        case FunctionName.COALESCE:
            return _hull(spans)
        case FunctionName.NULLIF:
            return spans[0]
    if not all(math.isfinite(end) for span in spans for end in span):
        return EVERYTHING
    return _computed(function, spans)


def _computed(function: FunctionName, spans: list[Range]) -> Range:
    """Return the range of arithmetic with values of finite ranges."""
    match function:
        case FunctionName.NEGATE:
            return 0.0 - spans[0][1], 0.0 - spans[0][0]
        case FunctionName.ADD:
            return spans[0][0] + spans[1][0], spans[0][1] + spans[1][1]
        case FunctionName.SUBTRACT:
            return spans[0][0] - spans[1][1], spans[0][1] - spans[1][0]
        case FunctionName.MULTIPLY:
            ends = [one * other + 0.0 for one in spans[0] for other in spans[1]]
            return min(ends), max(ends)
        case FunctionName.ABS:
            low, high = spans[0]
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case _:
            return EVERYTHING


def _hull(spans: list[Range]) -> Range:
    """Return the range that holds all of some."""
    return min(low for low, _ in spans), max(high for _, high in spans)


def _least(arguments: tuple[Scalar, ...], spans: list[Range]) -> Range:
    """Return the range of the least of some values, NULLs skipped: at most any constant, and at most the greatest."""
    sure = [high for argument, (_, high) in zip(arguments, spans, strict=True) if isinstance(argument, Literal)]
    low, high = _hull(spans)
    return low, min([high, *sure])
