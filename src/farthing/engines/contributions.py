"""What the rows of one unit in one group add to a measure, and where a value is on a grid, in plain Python."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_never

from farthing.query.measures import Rows, Total, Units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.query.aggregates import Quantile


def number(value: Any) -> float | None:
    """Return a number as a double; None for NULL and NaN, which are not values, and for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return None if math.isnan(value) else float(value)


def contribution(measure: Rows | Units | Total, values: Sequence[Any], max_rows: int) -> int:
    """Return the whole number that one unit adds to a measure of one group; of a total, in fine steps.

    Guarantee: at most `measure.sensitivity(max_rows)` in magnitude; of a total, at most `measure.finest(max_rows)`.
    Proof: [design, bound last] a row adds at most finest(1); of n rows with sum S, |S| <= n * finest(1), and
        |S| * max_rows / n is at most max_rows * finest(1), a whole number.
    Assumes: nothing of the values.
    Rounds: each row's value to the fine grid, to the nearest; the scaled sum down.

    Args:
        measure: the measure.
        values: its value on each row, None or NaN where there is none; one a row (of any kind) for a measure of rows.
        max_rows: the bound on rows.

    >>> contribution(Rows(), ["a", "b", "c"], max_rows=2)
    2
    """
    match measure:
        case Rows(value):
            return min(len(values) if value is None else _there(values), max_rows)
        case Units(value):
            return int(bool(values if value is None else _there(values)))
        case Total():
            numbers = [found for value in values if (found := number(value)) is not None]
            total = sum(_steps(measure, value) for value in numbers)
            return total if len(numbers) <= max_rows else total * max_rows // len(numbers)
        case _:
            assert_never(measure)


def leaf(quantile: Quantile, value: float) -> int:
    """Return which of the equal steps from lower to upper a value is in, once clamped; the last one is closed."""
    inside = min(max(value, quantile.lower), quantile.upper) - quantile.lower
    place: int = min(math.floor(inside / quantile.width * 2**quantile.leaves_log2), quantile.leaves - 1)
    return place


def bucket(value: float) -> int:
    """Return the place of a value by sign and magnitude, of `engines.engine.BUCKETS`.

    >>> [bucket(value) for value in (-float("inf"), -1.0, 0.0, 2**-33, 2**-32, 1.0, 1e300)]
    [0, 31, 64, 64, 65, 97, 128]
    """
    magnitude = min(abs(value), 2.0**31)
    if magnitude < 2.0**-32:
        return 64
    return 64 + (math.frexp(magnitude)[1] + 32) * (-1 if value < 0 else 1)


def _there(values: Sequence[Any]) -> int:
    """Return how many values are there: neither NULL nor NaN."""
    return sum(1 for value in values if value is not None and not (isinstance(value, float) and math.isnan(value)))


def _steps(total: Total, value: float) -> int:
    """Return the whole number of fine steps that a row's value gives to a total."""
    inside = min(max(value, total.lower), total.upper) - total.centre
    powered = inside * inside - total.less if total.power == 2 else inside
    return round(math.ldexp(powered, -total.fine_log2))
