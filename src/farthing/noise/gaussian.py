"""The rounded Gaussian: `round(offset + sigma Z)` with Z standard normal, drawn exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.polynomial import chebyshev

from farthing.noise.certified import OFFSETS, SCALES, ULPS, at_block, at_index, draw, layout, parameter
from farthing.normal import ndtri

if TYPE_CHECKING:
    from flint import arb
    from numpy.typing import ArrayLike

    from farthing.noise.bits import BitSource
    from farthing.noise.certified import Floats, Integers, Parameter, Size

SLACK: Final = 2.0**-37
"""How far the float64 z can be from the true one: docs/proofs/noise.gaussian.md adds up the terms.

    2^-40 (1 + |z|)     the float64 quantile: measured at 2^-47 (1 + |z|), not proved, hence the hundredfold allowance
    1.26 (2^-42+2^-52)  both ends of the bit interval and the rounding of U, times Phi/phi <= 1.2534
    2^-51 |z|           the product with sigma and the sum with the offset

U >= 2^-22 means |z| < 5.1, so the sum is below 6.5 * 2^-40 < 2^-37.
"""

DEGREE: Final = 16
"""Degree of the polynomial below; its error stops falling here, at the rounding errors of its evaluation."""

_LOW: Final = log(log(2))
_HIGH: Final = log(23 * log(2))


@cache
def _coefficients() -> tuple[float, ...]:
    """Return -ndtri(U) as a polynomial in log(-log U), scaled from U in [2^-23, 1/2] to [-1, 1]; constant term last.

    In this variable, a Gumbel quantile, the normal quantile is nearly a parabola. Two logarithms and a polynomial
    take half the time of a branching ndtri, which gives the values at the nodes.
    """
    nodes = chebyshev.chebpts1(DEGREE + 1)
    chances = np.exp(-np.exp(_LOW + (_HIGH - _LOW) * (nodes + 1) / 2))
    distances = np.array([-ndtri(chance) for chance in chances.tolist()])
    polynomial = chebyshev.cheb2poly(chebyshev.chebfit(nodes, distances, DEGREE))
    return tuple(polynomial[::-1].tolist())


def _to_distance(beyond: Floats) -> None:
    """Overwrite probabilities U in [2^-22, 1/2] by the distance z >= 0 beyond which the normal law has U."""
    np.log(beyond, out=beyond)
    np.negative(beyond, out=beyond)
    np.log(beyond, out=beyond)
    beyond -= (_LOW + _HIGH) / 2
    beyond *= 2 / (_HIGH - _LOW)
    t = beyond.copy()
    first, *others, last = _coefficients()
    np.multiply(t, first, out=beyond)
    for coefficient in others:
        beyond += coefficient
        beyond *= t
    beyond += last


@dataclass(frozen=True, slots=True)
class Gaussian:
    """The normal law with mean `offset` and standard deviation `sigma`, in grid steps."""

    sigma: Parameter
    offset: Parameter

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the point beyond which it lies."""
        _to_distance(beyond)  # from the tail probability, so that precision never runs out
        beyond *= at_block(self.sigma, at)
        np.copysign(beyond, side, out=beyond)
        beyond += at_block(self.offset, at)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return at_block(self.sigma, at) * SLACK + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return offset +- sigma sqrt(2) erfcinv(2 U)."""
        from flint import arb

        distance = arb(at_index(self.sigma, index)) * arb(2).sqrt() * (2 * beyond).erfcinv()
        return arb(at_index(self.offset, index)) + (distance if upper else -distance)


def rounded_gaussian(
    sigma: ArrayLike, *, offset: ArrayLike = 0.0, size: Size = None, bits: BitSource | None = None
) -> Integers:
    """Draw round(offset + sigma Z), Z ~ N(0, 1), exactly.

    With x a real answer and h the grid step, `h * (floor(x/h) + rounded_gaussian(s/h, offset=x/h - floor(x/h)))` is the
    continuous Gaussian mechanism followed by rounding to the grid: nothing of x survives in the last bits of a float.

    Args:
        sigma: standard deviation in grid steps, > 0 and at most 2^56; a float64 is taken as the exact dyadic number it
            is, so the sigma that is priced is the sigma that is drawn. One number, or one for each sample.
        offset: the fractional part of the mean, in grid steps, within [-1, 1]. One number, or one for each sample.
        size: shape of the result; by default that of sigma and offset together.
        bits: where the bits come from; by default the operating system through `system_bits`.

    Returns:
        int64 array, independent draws, in grid steps.

    Raises:
        NoiseError: sigma or offset out of range, or shapes that do not fit.

    Guarantee: (c/sigma)-GDP for a mean of L2 sensitivity c grid steps; also c^2/(2 sigma^2)-zCDP.
    Proof: docs/proofs/noise.gaussian.md; rounding is post-processing of the Gaussian mechanism.
    Assumes: secret uniform bits; the float64 quantile errs by at most 2^-40 (1 + |z|). Timing is not hidden.
    Rounds: to the nearest grid point, which adds about 1/12 to the variance.

    >>> rounded_gaussian(10.0, size=4).dtype
    dtype('int64')
    >>> rounded_gaussian(1e-9, offset=0.75, size=3).tolist()
    [1, 1, 1]
    """
    scales, means = parameter("sigma", sigma, within=SCALES), parameter("offset", offset, within=OFFSETS)
    shape, (scale, mean) = layout(size, (scales, means))
    return draw(Gaussian(scale, mean), shape, bits)
