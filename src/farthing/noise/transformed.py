"""The rounded Gaussian around a mean that float64 does not hold: `round(mean + sigma Z)`, drawn exactly.

The mean is f(x)/H for a transform f such as a logarithm, which is irrational. Its float64 value comes with a bound on
its error, which widens the margin of the fast path; a draw that is then undecided has its mean computed again, as a
ball, at whatever precision the bits of the draw need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import NoiseError
from farthing.noise.certified import SCALES, at_block, draw, parameter
from farthing.noise.gaussian import Gaussian

if TYPE_CHECKING:
    from collections.abc import Callable

    from flint import arb

    from farthing.noise.bits import BitSource
    from farthing.noise.certified import Floats, Integers, Parameter

LARGEST_MEAN: Final = 2.0**62
"""Means beyond it would not fit in 64 bits with their noise."""


@dataclass(frozen=True, slots=True)
class Around:
    """The normal law around means of which only balls are exact, each moved by a whole number towards 0.

    Attributes:
        noise: the law around the float64 means, less their whole parts.
        whole: int64[draws], the whole parts; the draw is round(Y - whole).
        error: float64[draws], how far each float64 mean can be from the exact one.
        ball: the exact mean of a draw, at the working precision.
    """

    noise: Gaussian
    whole: Integers
    error: Floats
    ball_of_mean: Callable[[int], arb]

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the point beyond which it lies."""
        self.noise.floats(beyond, side, at)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth: the noise's own error, and the mean's."""
        return self.noise.slack(at) + at_block(self.error, at)

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the exact mean +- sigma sqrt(2) erfcinv(2 U), less the whole part."""
        centred = Gaussian(self.noise.sigma, 0.0)
        return self.ball_of_mean(index) - int(self.whole[index]) + centred.ball(beyond, upper=upper, index=index)


def rounded_around(
    sigma: float, means: Floats, *, error: Floats, ball: Callable[[int], arb], bits: BitSource | None = None
) -> Integers:
    """Draw round(mean + sigma Z), Z ~ N(0, 1), exactly, for means that are known as balls.

    Args:
        sigma: standard deviation in grid steps; the float64 is taken as the exact dyadic number it is.
        means: float64[draws], the means in grid steps, nearly.
        error: float64[draws], how far each of them can be from the exact mean.
        ball: returns a ball around the exact mean of one draw, at flint's working precision.
        bits: where the bits come from; by default the operating system through `system_bits`.

    Returns:
        int64[draws], independent draws, in grid steps.

    Guarantee: (d/sigma)-GDP where one unit moves an exact mean by at most d grid steps; also d^2/(2 sigma^2)-zCDP.
    Proof: docs/proofs/mechanisms.relative.md, "The sampler"; docs/proofs/noise.gaussian.md.
    Assumes: |means - exact means| <= error; secret uniform bits; the float64 quantile errs by at most 2^-40 (1 + |z|).
        Timing is not hidden.
    Rounds: to the nearest grid point.

    >>> from flint import arb
    >>> thirds = np.array([1, 2]) / 3
    >>> rounded_around(1e-9, thirds, error=np.full(2, 2.0**-50), ball=lambda i: arb(i + 1) / 3).tolist()
    [0, 1]
    """
    scale = float(parameter("sigma", sigma, within=SCALES))
    if not (np.abs(means) < LARGEST_MEAN).all():
        raise NoiseError(
            "the means do not fit in 64 bits",
            rule="|mean| < 2^62 grid steps",
            next_step="a coarser grid, or smaller groups",
        )
    floors = np.floor(means)
    law = Around(Gaussian(scale, means - floors), floors.astype(np.int64), error, ball)
    return law.whole + draw(law, means.shape, bits)
