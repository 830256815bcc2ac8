"""Exact numbers to floats and to farthings, always in a named direction.

A *farthing* is the smallest coin of the books: 2^-40 of the ledger's additive currency (mu^2, rho or epsilon). Delta
has its own coin, 2^-80. What is spent rounds up; what may be spent rounds down.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

FARTHING: Final = Fraction(1, 1 << 40)
"""One coin of mu^2, rho or epsilon."""

DELTA_COIN: Final = Fraction(1, 1 << 80)
"""One coin of delta."""


def up(x: Fraction) -> float:
    """Return the least float that is >= x.

    >>> up(Fraction(1, 3)) >= Fraction(1, 3)
    True
    >>> up(Fraction(1, 2))
    0.5
    """
    nearest = float(x)
    return nearest if nearest >= x else math.nextafter(nearest, math.inf)


def down(x: Fraction) -> float:
    """Return the greatest float that is <= x.

    >>> down(Fraction(1, 3)) <= Fraction(1, 3)
    True
    """
    nearest = float(x)
    return nearest if nearest <= x else math.nextafter(nearest, -math.inf)


def digits_up(x: float, digits: int = 2) -> float:
    """Return a number of so many digits that is >= x, for advice; x itself where it is 0 or less, or not finite.

    >>> [f"{digits_up(*each):.6g}" for each in ((0.0123,), (1234.0, 3), (math.inf,))]
    ['0.013', '1240', 'inf']
    """
    if x <= 0 or not math.isfinite(x):
        return x
    step = 10.0 ** (math.floor(math.log10(x)) + 1 - digits)
    return math.ceil(x / step) * step


def coins_up(x: Fraction, coin: Fraction = FARTHING) -> int:
    """Return the least number of coins worth at least x: how a cost enters the books.

    >>> coins_up(Fraction(1, 1 << 41))
    1
    """
    return math.ceil(x / coin)


def coins_down(x: Fraction, coin: Fraction = FARTHING) -> int:
    """Return the greatest number of coins worth at most x: how a budget enters the books.

    >>> coins_down(Fraction(1, 1 << 41))
    0
    """
    return math.floor(x / coin)


def sqrt_up(x: Fraction) -> float:
    """Return a float that is >= the square root of x, at most one step above the least such float.

    >>> sqrt_up(Fraction(4))
    2.0
    >>> Fraction(sqrt_up(Fraction(2))) ** 2 >= 2
    True
    """
    guess = math.sqrt(x)
    while Fraction(guess) ** 2 < x:
        guess = math.nextafter(guess, math.inf)
    return guess


def sqrt_down(x: Fraction) -> float:
    """Return a float that is <= the square root of x, at most one step below the greatest such float.

    >>> Fraction(sqrt_down(Fraction(2))) ** 2 <= 2
    True
    """
    guess = math.sqrt(x)
    while Fraction(guess) ** 2 > x:
        guess = math.nextafter(guess, 0.0)
    return guess
