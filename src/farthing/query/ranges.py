"""Ranges of values, and the public grids that values are put on before they are added."""

from __future__ import annotations

import math
from typing import Final

from farthing.errors import InvalidBounds
from farthing.query.bounding import LARGEST

SMALLEST_ADDED: Final = 1e-50
LARGEST_ADDED: Final = 1e50
"""The least and the most that a range may let one row add: noise, and its square, then stay far inside float64."""

STEP_BITS: Final = 20
"""Sums leave an engine on a grid of 2^-20 of the most that one row adds: they are whole numbers of steps."""

FINE_BITS: Final = 16
"""Each row's value is put on a grid 2^16 times finer still before it is added, so that many equal ones add up well."""

ADDED: Final = "rows at 2^-36, rounded once"
"""How totals are added up: part of the identity of a question, whose truth it decides to within a step or so a row."""


def rounded(total: int) -> int:
    """Return a group's total of fine steps in steps, halves up: totals D steps apart, D whole, stay within D.

    >>> [rounded(total) for total in (3 << 15, -(3 << 15), 7)]
    [2, -1, 0]
    """
    return (total + (1 << (FINE_BITS - 1))) >> FINE_BITS


def check_range(lower: float, upper: float) -> None:
    """Refuse clamps that are not a range of numbers that expressions can have."""
    if not -LARGEST <= lower < upper <= LARGEST:
        raise InvalidBounds(
            "the bounds of a value are not a range",
            rule="lower < upper, both within 1e150 of zero",
            got=f"lower={lower!r}, upper={upper!r}",
            next_step="pass the range that values may have in the answer, as in lower=0, upper=200",
        )


def middle(lower: float, upper: float) -> float:
    """Return the middle of a range on a grid of 2^-19 of its half-width, so that centred values stay on theirs."""
    check_range(lower, upper)
    half = (upper - lower) / 2
    grid = math.ldexp(1.0, math.frexp(half)[1] - STEP_BITS + 1)
    return math.floor((lower + half) / grid + 0.5) * grid
