"""Numbers at the door of the books: what may be a loss or a delta, as an exact fraction, or a clear refusal."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from farthing.errors import InvalidBudget

Number = Fraction | float | int

LARGEST: Final = 1 << 40
"""The largest loss that may be named. Long before it a loss hides nothing; beyond it floats overflow."""


def exact(value: Number, name: str, *, most: int = LARGEST) -> Fraction:
    """Return a user's number as a fraction; refuse what is not a finite number from 0 to `most`.

    >>> exact(0.5, "epsilon")
    Fraction(1, 2)
    """
    rule = f"{name} is a finite number, 0 <= {name} <= {most:.3g}"
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidBudget(f"{name} is not a number", rule=rule, got=repr(value), next_step="write it as 0.5 or 1e-6")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidBudget(f"{name} is not finite", rule=rule, got=value, next_step=f"name a finite {name}")
    if value < 0:
        raise InvalidBudget(f"{name} is negative", rule=rule, got=value, next_step=f"give {name} a value from 0 up")
    if value > most:
        raise InvalidBudget(
            f"{name} is too large: such a loss hides nothing", rule=rule, got=value, next_step=f"name a smaller {name}"
        )
    return Fraction(value)


def within_unit(value: Number, name: str = "delta", next_step: str = "1e-6 is usual") -> Fraction:
    """Return a delta as a fraction; refuse what is not strictly between 0 and 1.

    >>> within_unit(0.25)
    Fraction(1, 4)
    """
    fraction = exact(value, name)
    if not 0 < fraction < 1:
        raise InvalidBudget(f"{name} is out of range", rule=f"0 < {name} < 1", got=value, next_step=next_step)
    return fraction


def squared(value: Number, name: str) -> Fraction:
    """Return an additive amount that may be the square of a loss, such as mu^2, as a fraction."""
    return exact(value, name, most=LARGEST**2)
