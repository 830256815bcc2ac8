"""Searches whose result is safe wherever they end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction


def log_of(x: Fraction) -> float:
    """Return log(x) for a positive fraction that may be far below the least float."""
    return math.log(x.numerator) - math.log(x.denominator)


def minimise(f: Callable[[float], float], low: float, high: float) -> float:
    """Return a point near the minimum of a unimodal function by golden section; any point it returns is safe."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    x1, x2 = b - ratio * (b - a), a + ratio * (b - a)
    f1, f2 = _finite(f, x1), _finite(f, x2)
    for _ in range(90):
        if f1 <= f2:
            b, x2, f2 = x2, x1, f1
            x1 = b - ratio * (b - a)
            f1 = _finite(f, x1)
        else:
            a, x1, f1 = x1, x2, f2
            x2 = a + ratio * (b - a)
            f2 = _finite(f, x2)
    # The minimum over a range that was cut short can lie at its end, which the sections only approach.
    return min((a + b) / 2, low, high, key=lambda x: _finite(f, x))


def _finite(f: Callable[[float], float], x: float) -> float:
    """Return f(x), with an overflow read as +infinity."""
    try:
        value = f(x)
    except (OverflowError, ValueError, ZeroDivisionError):
        return math.inf
    return math.inf if math.isnan(value) else value


_WIDTHS: Final = tuple(4e-14 * 64**k for k in range(7))
"""Around a guess, as parts of it: where an answer is sought, from near to far."""


def least_float(holds: Callable[[float], bool], low: float, high: float, near: float = 0.0) -> float:
    """Return a float at which a monotone condition holds, within a relative 1e-13 above the least such float.

    Where `near` is about the answer few floats are tried; whatever it is, the answer is tried.
    """
    if holds(low):
        return low
    while not holds(high):
        low, high = high, 2 * high
    for width in _WIDTHS:
        for at in (near * (1 + width), near * (1 - width)):
            if low < at < high:
                low, high = (low, at) if holds(at) else (at, high)
        if high - low <= 3 * width * near:
            break
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def most_farthings(holds: Callable[[Fraction], bool], near: Fraction = FARTHING) -> Fraction:
    """Return the greatest whole number of farthings at which a condition that fails for good somewhere still holds.

    Where `near` is about the answer few numbers are tried, and the answer is the same.
    """
    low, high = 0, max(1, math.floor(near / FARTHING))
    step = max(1, high >> 44)
    while holds(high * FARTHING):
        low, high = high, high + step
        step *= 2
    while high - step > low and not holds((high - step) * FARTHING):
        high, step = high - step, 2 * step
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle * FARTHING) else (low, middle)
    return low * FARTHING
