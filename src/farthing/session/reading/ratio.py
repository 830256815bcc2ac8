"""One number over another: conditions whose rows are counted, values that are added up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.errors import FarthingError, InvalidBounds, UnsupportedQuery
from farthing.query.aggregates import Count, Sum, part_of, ratio_of
from farthing.query.expressions import And, Case, Expression, Literal, Node, type_of
from farthing.query.schema import NUMBER_TYPES, Type

if TYPE_CHECKING:
    from farthing.query.aggregates import Aggregate
    from farthing.session.reading.reader import QuestionReader

Side: TypeAlias = tuple[Any, "tuple[float, float] | None"]
"""What is above or below the line: a condition, or None for all rows; or a value with the range it is clamped into."""


def over(reader: QuestionReader, top: Side, bottom: Side) -> Aggregate:
    """Return the ratio of two sums or counts: rows of a condition within the rows of another are a part of these."""
    (above, above_range), (below, below_range) = _side(reader, "top", *top), _side(reader, "bottom", *bottom)
    if above_range is None and above is not None and below_range is None:
        return part_of(above, below)
    within = below if below_range is None else None
    return ratio_of(_one(above, above_range, within), _one(below, below_range))


def _one(value: Any, ends: tuple[float, float] | None, within: Any = None) -> Aggregate:
    """Return a count or a sum, of the rows within a condition."""
    if ends is not None:
        return Sum(value if within is None else Case(((within, value),)), *ends)
    condition = value if within is None or value is None else And((within, value))
    return Count() if condition is None else Count(Case(((condition, Literal(1)),)))


def _side(reader: QuestionReader, name: str, value: Any, ends: Any) -> Side:
    """Return one side, read: a number to add up, a condition to count, or None for all rows."""
    _check_side(reader, name, value, ends)
    if ends is not None:
        return reader.value(value), range_of_side(name, ends)
    return (None if value is None else reader.condition(value)), None


def _check_side(reader: QuestionReader, name: str, value: Any, ends: Any) -> None:
    """Refuse a value without a range, a range without a value, and what is neither a value nor a condition."""
    from farthing.sql import is_ibis

    kind = _type(reader, value)
    if value is not None and not isinstance(value, str | Node) and not is_ibis(value):
        raise UnsupportedQuery(
            f"{name} is neither a condition nor a value",
            construct="ratio",
            rule="a condition, whose rows are counted; or, with its range, a value that is added up",
            got=repr(value)[:80],
            next_step=f'{name}="minutes > 30"; or {name}="minutes", {name}_range=(0, 60)',
        )
    if ends is None and kind in NUMBER_TYPES:
        raise InvalidBounds(
            f"{name} is a value without a range",
            rule="a condition is counted; a value is added up, and needs the range that it is clamped into",
            got=str(value)[:80],
            next_step=f"{name}_range=(0, 60), with numbers that fit it; or a condition, such as {name}='{value} > 30'",
            missing="clamps",
        )
    if ends is not None and (value is None or kind is Type.BOOLEAN):
        raise InvalidBounds(
            f"{name}_range without a value",
            rule="values are clamped into a range; the rows of a condition are counted, and so are all rows",
            got=f"{name}={value!r}"[:80],
            next_step=f"drop {name}_range=",
        )


def ranged(reader: QuestionReader, value: Any, ends: Any) -> tuple[Any, Any]:
    """Return one side with a stand-in for its range, if it needs one and has none."""
    return value, (0.0, 1.0) if ends is None and _type(reader, value) in NUMBER_TYPES else ends


def _type(reader: QuestionReader, value: Any) -> Type | None:
    """Return the type of one side; None where it cannot be read as a value."""
    if isinstance(value, Expression):
        return Type.BOOLEAN
    try:
        return None if value is None else type_of(reader.scalar(value), reader.engine.schema)
    except FarthingError:
        return None


def range_of_side(name: str, ends: Any) -> tuple[float, float]:
    """Return the range of one side."""
    try:
        lower, upper = ends
        found = float(lower), float(upper)
    except (TypeError, ValueError):
        found = math.nan, math.nan
    if isinstance(ends, str) or not (math.isfinite(found[0]) and math.isfinite(found[1])):
        raise InvalidBounds(
            f"{name}_range is not a range",
            rule="two numbers, (lower, upper), that values are clamped into",
            got=repr(ends)[:80],
            next_step=f"{name}_range=(0, 60)",
        )
    return found
