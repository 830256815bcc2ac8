"""Ball arithmetic at the edge of the books: numbers that enclose the truth, read off in a safe direction."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Ball = Any
"""A `flint.arb`: a midpoint and a radius that together enclose a real number."""

PRECISION = 192
TINY = 1100


@contextmanager
def working(bits: int = PRECISION) -> Iterator[Any]:
    """Yield the `flint` module with its working precision set to `bits`, and set it back afterwards."""
    import flint

    with flint.ctx.workprec(bits):
        yield flint


def ball(flint: Any, x: Fraction) -> Ball:
    """Return the ball around an exact fraction."""
    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def upper(x: Ball) -> Fraction:
    """Return an exact fraction that is >= every number in the ball."""
    mantissa, exponent = _parts(x.upper())
    if mantissa.bit_length() + exponent < -TINY:
        # Numbers far under the least float would be fractions of gigabytes: read them off as +-2^-TINY, outwards.
        return Fraction(1, 1 << TINY) if mantissa > 0 else Fraction(0)
    return Fraction(mantissa) * Fraction(2) ** exponent


def lower(x: Ball) -> Fraction:
    """Return an exact fraction that is <= every number in the ball."""
    return -upper(-x)


def _parts(point: Ball) -> tuple[int, int]:
    """Return mantissa and exponent of a ball of radius zero; refuse infinities and NaN."""
    if not point.is_finite():
        raise ArithmeticError("a ball without a finite end: raise the working precision")
    mantissa, exponent = point.man_exp()
    return int(mantissa), int(exponent)
