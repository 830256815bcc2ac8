"""The two-sided geometric, and rounded exponential and Gumbel noise, drawn exactly from logarithms of one uniform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.noise.certified import OFFSETS, RATES, SCALES, ULPS, at_block, at_index, draw, layout, parameter

if TYPE_CHECKING:
    from flint import arb
    from numpy.typing import ArrayLike

    from farthing.noise.bits import BitSource
    from farthing.noise.certified import Floats, Integers, Parameter, Size

SLACK: Final = 2.0**-35
"""How far the float64 of a standard variable can be from the truth: docs/proofs/noise.laplace.md adds up the terms.

    2^-40 (1 + |t|)     numpy's log, log1p and exp: within 4 units of the last place (2^-50), hence a wide allowance
    1.5 (2^-42+2^-52)   both ends of the bit interval and the rounding of U
    2^-50 |t|           the arithmetic around them

U >= 2^-22 means |t| < 16, so the sum is below 18 * 2^-40 < 2^-35.
"""


@dataclass(frozen=True, slots=True)
class Geometric:
    """The real variable whose rounding is the two-sided geometric law, P[k] proportional to exp(-rate |k|).

    With a = exp(-rate), the probability of -m or less is a^m / (1 + a) for m >= 0. So the magnitude is the largest
    m >= 0 with U (1 + a) <= a^m: the floor of -(log U + log(1 + a)) / rate, or that less a half, rounded.
    """

    rate: Parameter

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the signed magnitude, less a half."""
        rate = at_block(self.rate, at)
        np.log(beyond, out=beyond)
        beyond += np.log1p(np.exp(-rate))
        beyond /= -rate
        beyond -= 0.5
        np.maximum(beyond, 0.0, out=beyond)
        np.copysign(beyond, side, out=beyond)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return SLACK / at_block(self.rate, at) + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the same in balls."""
        from flint import arb

        rate = arb(at_index(self.rate, index))
        magnitude = -(beyond.log() + (-rate).exp().log1p()) / rate - arb(0.5)
        magnitude = magnitude.max(arb(0))  # it is more than -1/2, so this moves no rounding
        return magnitude if upper else -magnitude


@dataclass(frozen=True, slots=True)
class ExponentialLaw:
    """offset + scale E, with E ~ Exp(1)."""

    scale: Parameter
    offset: Parameter

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the point beyond which it lies."""
        _exponential(beyond, side)
        beyond *= at_block(self.scale, at)
        beyond += at_block(self.offset, at)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return at_block(self.scale, at) * SLACK + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the same in balls."""
        from flint import arb

        return arb(at_index(self.offset, index)) + arb(at_index(self.scale, index)) * _exponential_ball(beyond, upper)


@dataclass(frozen=True, slots=True)
class Gumbel:
    """offset + scale G, with G = -log E a standard Gumbel variable: its upper side is the lower side of E."""

    scale: Parameter
    offset: Parameter

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the point beyond which it lies."""
        _exponential(beyond, -side)
        np.log(beyond, out=beyond)
        beyond *= at_block(self.scale, at)
        np.subtract(at_block(self.offset, at), beyond, out=beyond)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return at_block(self.scale, at) * SLACK + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the same in balls."""
        from flint import arb

        standard = -_exponential_ball(beyond, not upper).log()
        return arb(at_index(self.offset, index)) + arb(at_index(self.scale, index)) * standard


def _exponential(beyond: Floats, side: Floats) -> None:
    """Overwrite tail probabilities by Exp(1): -log U on the upper side, -log(1 - U) on the lower."""
    near_zero = np.log1p(-beyond)  # keeps relative precision down to U = TAIL, which Gumbel needs
    np.log(beyond, out=beyond)
    np.copyto(beyond, near_zero, where=np.signbit(side))
    np.negative(beyond, out=beyond)


def _exponential_ball(beyond: arb, upper: bool) -> arb:
    """Return Exp(1) as a ball, from the same bits as `_exponential`."""
    return -(beyond.log() if upper else (-beyond).log1p())


def two_sided_geometric(rate: ArrayLike, size: Size = None, bits: BitSource | None = None) -> Integers:
    """Draw integers with P[k] proportional to exp(-rate |k|), exactly.

    Args:
        rate: epsilon over the sensitivity in grid steps; at least 2^-56, taken as the exact dyadic number it is. One
            number, or one for each sample.
        size: shape of the result; by default that of rate.
        bits: where the bits come from; by default the operating system through `system_bits`.

    Returns:
        int64 array, independent draws, in grid steps.

    Raises:
        NoiseError: rate out of range, or a size that does not fit.

    Guarantee: (c rate)-pure DP for integers of L1 sensitivity c grid steps.
    Proof: docs/proofs/noise.laplace.md; the ratio of neighbouring probabilities is at most exp(rate).
    Assumes: secret uniform bits; numpy's log, log1p and exp err by at most 2^-40 relative. Timing is not hidden.
    Rounds: nothing: the law lives on the integers.

    >>> two_sided_geometric(50.0, size=3).tolist()
    [0, 0, 0]
    """
    shape, (value,) = layout(size, (parameter("rate", rate, within=RATES),))
    return draw(Geometric(value), shape, bits)


def rounded_exponential(
    scale: ArrayLike, size: Size = None, bits: BitSource | None = None, *, offset: ArrayLike = 0.0
) -> Integers:
    """Draw round(offset + scale E), E ~ Exp(1), exactly.

    Args:
        scale: mean of the noise in grid steps, > 0 and at most 2^56, taken as the exact dyadic number it is.
        offset: the fractional part of the location, in grid steps, within [-1, 1].
        size: shape of the result; by default that of scale and offset together.
        bits: where the bits come from; by default the operating system through `system_bits`.

    Returns:
        int64 array, independent draws, in grid steps.

    Raises:
        NoiseError: a parameter out of range, or shapes that do not fit.

    Guarantee: exactly the law of offset + scale E, rounded; its price is that of the mechanism it is used in.
    Proof: docs/proofs/noise.laplace.md.
    Assumes: secret uniform bits; numpy's log and log1p err by at most 2^-40 relative. Timing is not hidden.
    Rounds: to the nearest grid point.

    >>> bool(rounded_exponential(5.0, size=100).min() >= 0)
    True
    """
    scales, places = parameter("scale", scale, within=SCALES), parameter("offset", offset, within=OFFSETS)
    shape, (value, place) = layout(size, (scales, places))
    return draw(ExponentialLaw(value, place), shape, bits)


def rounded_gumbel(
    scale: ArrayLike, offset: ArrayLike = 0.0, size: Size = None, bits: BitSource | None = None
) -> Integers:
    """Draw round(offset + scale G), G a standard Gumbel variable, P[G <= g] = exp(-exp(-g)), exactly.

    Args:
        scale: scale of the noise in grid steps, > 0 and at most 2^56, taken as the exact dyadic number it is.
        offset: the fractional part of the location, in grid steps, within [-1, 1].
        size: shape of the result; by default that of scale and offset together.
        bits: where the bits come from; by default the operating system through `system_bits`.

    Returns:
        int64 array, independent draws, in grid steps.

    Raises:
        NoiseError: a parameter out of range, or shapes that do not fit.

    Guarantee: exactly the law of offset + scale G, rounded; its price is that of the mechanism it is used in.
    Proof: docs/proofs/noise.laplace.md.
    Assumes: secret uniform bits; numpy's log and log1p err by at most 2^-40 relative. Timing is not hidden.
    Rounds: to the nearest grid point, so a race on the grid can tie.

    >>> rounded_gumbel(5.0, size=(2, 3)).shape
    (2, 3)
    """
    scales, places = parameter("scale", scale, within=SCALES), parameter("offset", offset, within=OFFSETS)
    shape, (value, place) = layout(size, (scales, places))
    return draw(Gumbel(value, place), shape, bits)
