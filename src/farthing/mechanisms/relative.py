"""Noise that grows with the count: relative error at a loss that falls with the size of the group.

Each mechanism is a frozen value: Gaussian noise on a transform of the count, exactly drawn, with a `policy` (the loss
of a member of a group of x, for all x), an `expected_error` and a `release`. `for_relative_error` chooses the noise
from the error that is wanted. docs/how-to/larger-groups.md compares them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from farthing.errors import InvalidTarget
from farthing.mechanisms.relative_error import checked_target, noise_for
from farthing.mechanisms.transformed import LARGEST_LOG_SIGMA, Transformed, checked

if TYPE_CHECKING:
    from flint import arb

    from farthing.mechanisms.relative_error import Metric
    from farthing.mechanisms.transformed import Floats

MOST_ROOT: Final = 8
"""The highest root that a power mechanism takes: beyond it the logarithm serves better."""

LEAST_RECORDS: Final = 2.0**-10
"""The least noise on a plain count: below it counts under 2^41 might not fit in 64 bits; it hides nothing."""

KINK_SHRINK: Final = 0.4
"""How much more the linear-log inverse shrinks at its kink, in parts of the usual shrinkage.

There the noise above is stretched and the noise below is not, so upward errors outweigh: without it the root mean
square error at the kink would be 2 to 6 percent above what it is far above. Found by a search over it and the next.
"""

KINK_REACH: Final = 4.0
"""Over how many sigma above the kink that fades, as a Gaussian."""


@dataclass(frozen=True, slots=True)
class PlainGaussian(Transformed):
    """The same noise for every group: f(x) = x.

    Attributes:
        sigma: standard deviation of the noise, in records.
        sensitivity: the most that one member adds to a group.

    Guarantee: 1/(2 sigma^2)-zCDP and (1/sigma)-GDP at every size, for sensitivity 1.
    Proof: docs/proofs/mechanisms.relative.md.
    Assumes: as `release`.
    Rounds: the policy up.

    >>> PlainGaussian.for_relative_error(0.1, x0=50).policy([1, 10**9]).round(4)
    array([0.0127, 0.0127])
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        checked(self.sigma, self.sensitivity, least=LEAST_RECORDS)

    @classmethod
    def for_relative_error(
        cls, relative: float, *, x0: float = 1.0, metric: Metric = "mae", sensitivity: int = 1
    ) -> Self:
        """Return the mechanism whose error is at most relative * x0, hence also relative * x for x above x0."""
        return cls(noise_for(cls, relative, x0=x0, metric=metric), sensitivity)

    def transform(self, x: Floats) -> Floats:
        """Return x."""
        return x

    def error(self, f: Floats) -> Floats:
        """Return 0: counts are float64s."""
        return np.zeros_like(f)

    def transform_ball(self, x: arb) -> arb:
        """Return x."""
        return x

    def gap(self, low: Floats, by: float) -> Floats:
        """Return `by`."""
        return np.full_like(low, by)

    def value(self, level: Floats) -> Floats:
        """Return the level; exactly unbiased."""
        return level


@dataclass(frozen=True, slots=True)
class Log(Transformed):
    """Noise on a logarithm: f(x) = log(x + offset).

    The value is exp(level) e^(-sigma^2/2) - offset, exactly unbiased. Its loss at large sizes is the least that any
    unbiased mechanism can have, up to sigma^2/(e^(sigma^2) - 1); at small ones it is expensive, for f is steep at 0.

    Attributes:
        sigma: standard deviation of the noise on the logarithm.
        offset: > 0; a smaller one serves large groups better and costs small ones more.
        sensitivity: the most that one member adds to a group.

    Guarantee: a member of a group of x >= 1 has log((x + offset)/(x + offset - 1))^2 / (2 sigma^2)-zCDP; x = 0 as 1.
    Proof: docs/proofs/mechanisms.relative.md.
    Assumes: as `release`.
    Rounds: the policy up.

    >>> Log(sigma=0.1, offset=1).policy([1, 1000]).round(6)
    array([2.4022651e+01, 5.0000000e-05])
    """

    sigma: float
    offset: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        checked(self.sigma, self.sensitivity, most=LARGEST_LOG_SIGMA, offset=self.offset)

    @classmethod
    def for_relative_error(
        cls,
        relative: float,
        *,
        x0: float = 1.0,
        metric: Metric = "mae",
        sensitivity: int = 1,
        overhead: float = 1.25,
    ) -> Self:
        """Return the mechanism whose error is at most relative * max(x, x0) at every size.

        Args:
            relative: the relative error, in (0, 1).
            x0: the size below which the absolute error relative * x0 is fine.
            metric: "mae", "rmse" or ("ci", confidence).
            sensitivity: the most that one member adds to a group.
            overhead: about what large groups pay, over a Gaussian that knew their size; > 1. Close to 1, small groups
                pay the more.
        """
        checked_target(relative, x0, metric)
        offset = x0 * (math.sqrt(_above_one(overhead)) - 1)
        return cls(noise_for(lambda s: cls(s, offset), relative, x0=x0, metric=metric), offset, sensitivity)

    def transform(self, x: Floats) -> Floats:
        """Return log(x + offset)."""
        return np.log(x + self.offset)

    def transform_ball(self, x: arb) -> arb:
        """Return log(x + offset)."""
        return (x + self.offset).log()

    def gap(self, low: Floats, by: float) -> Floats:
        """Return log((low + by + offset) / (low + offset))."""
        return np.log1p(by / (low + self.offset))

    def value(self, level: Floats) -> Floats:
        """Return e^level, shrunk to be exactly unbiased, less the offset."""
        return np.exp(level) * self.shrink - self.offset


@dataclass(frozen=True, slots=True)
class LinearLog(Transformed):
    """Noise on a count up to x0 and on its logarithm above: f(x) = x/x0, then 1 + log(x/x0).

    Nearly the loss of a Gaussian that knows the size, at every size. No exactly unbiased inverse exists. This one is
    straight up to the kink; above, it is the exponential, shrunk as `Log` shrinks it and by up to 1.4 times that close
    to the kink, which lowers the worst root mean square error. `bias` tells what bias is left: none far above.

    Attributes:
        sigma: standard deviation of the noise on f.
        x0: > 0, the size up to which the error is absolute.
        sensitivity: the most that one member adds to a group.

    Guarantee: a member of a group of x >= 1 has (f(x) - f(x-1))^2 / (2 sigma^2)-zCDP, about
        1/(2 sigma^2 max(x, x0)^2); x = 0 as 1.
    Proof: docs/proofs/mechanisms.relative.md.
    Assumes: as `release`.
    Rounds: the policy up.

    >>> LinearLog.for_relative_error(0.1, x0=50).policy([1, 50, 5000]).round(9)
    array([1.2789036e-02, 1.2789036e-02, 1.2790000e-06])
    """

    sigma: float
    x0: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        checked(self.sigma, self.sensitivity, most=LARGEST_LOG_SIGMA, x0=self.x0)

    @classmethod
    def for_relative_error(
        cls, relative: float, *, x0: float = 1.0, metric: Metric = "mae", sensitivity: int = 1
    ) -> Self:
        """Return the mechanism whose error is at most relative * max(x, x0) at every size."""
        return cls(noise_for(lambda s: cls(s, x0), relative, x0=x0, metric=metric), x0, sensitivity)

    def transform(self, x: Floats) -> Floats:
        """Return x/x0 up to x0, then 1 + log(x/x0)."""
        ratio = x / self.x0
        return np.where(ratio <= 1, ratio, 1 + np.log(np.maximum(ratio, 1)))

    def transform_ball(self, x: arb) -> arb:
        """Return x/x0 up to x0, then 1 + log(x/x0)."""
        return x / self.x0 if x <= self.x0 else 1 + (x / self.x0).log()

    def gap(self, low: Floats, by: float) -> Floats:
        """Return the straight part of the way and the logarithm of the rest."""
        straight = np.clip(self.x0 - low, 0, by)
        return straight / self.x0 + np.log1p((by - straight) / np.maximum(low, self.x0))

    def value(self, level: Floats) -> Floats:
        """Return the continuous inverse, shrunk above the kink, and a little more close to it."""
        beyond = np.maximum(level, 1) - 1
        near = np.exp(-((beyond / (KINK_REACH * self.sigma)) ** 2) / 2)
        above = np.exp(beyond) * self.shrink ** (1 + KINK_SHRINK * near)
        return self.x0 * np.where(level <= 1, level, np.maximum(above, 1))


@dataclass(frozen=True, slots=True)
class Asinh(Transformed):
    """Noise on an inverse hyperbolic sine: f(x) = asinh(x/x0), straight below x0 and a logarithm above, without a kink.

    The value is x0 e^(-sigma^2/2) sinh(level), exactly unbiased, with variance
    x^2 (e^(sigma^2) - 1) + x0^2 sinh(sigma^2).

    Attributes:
        sigma: standard deviation of the noise on f.
        x0: > 0, where absolute noise turns into relative noise.
        sensitivity: the most that one member adds to a group.

    Guarantee: a member of a group of x >= 1 has (f(x) - f(x-1))^2 / (2 sigma^2)-zCDP, about
        1/(2 sigma^2 (x^2 + x0^2)); x = 0 as 1.
    Proof: docs/proofs/mechanisms.relative.md.
    Assumes: as `release`.
    Rounds: the policy up.

    >>> Asinh(sigma=0.1, x0=50).policy([1, 5000]).round(9)
    array([1.9997334e-02, 2.0000000e-06])
    """

    sigma: float
    x0: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        checked(self.sigma, self.sensitivity, most=LARGEST_LOG_SIGMA, x0=self.x0)

    @classmethod
    def for_relative_error(
        cls,
        relative: float,
        *,
        x0: float = 1.0,
        metric: Metric = "mae",
        sensitivity: int = 1,
        overhead: float = 1.04,
    ) -> Self:
        """Return the mechanism whose error is at most relative * max(x, x0) at every size.

        Its own x0 comes out smaller than the one asked for, x0 sqrt(overhead - 1): where its noise turns from absolute
        to relative it has both kinds.

        Args:
            relative: the relative error, in (0, 1).
            x0: the size below which the absolute error relative * x0 is fine.
            metric: "mae", "rmse" or ("ci", confidence).
            sensitivity: the most that one member adds to a group.
            overhead: about what large groups pay, over a Gaussian that knew their size; > 1. The smallest groups pay
                about 1 + 1/(overhead - 1) times what a Gaussian of error relative * x0 costs.
        """
        checked_target(relative, x0, metric)
        own = x0 * math.sqrt(_above_one(overhead) - 1)
        return cls(noise_for(lambda s: cls(s, own), relative, x0=x0, metric=metric), own, sensitivity)

    def transform(self, x: Floats) -> Floats:
        """Return asinh(x/x0)."""
        return np.arcsinh(x / self.x0)

    def transform_ball(self, x: arb) -> arb:
        """Return asinh(x/x0)."""
        return (x / self.x0).asinh()

    def gap(self, low: Floats, by: float) -> Floats:
        """Return asinh(b) - asinh(a) as the asinh of b sqrt(1 + a^2) - a sqrt(1 + b^2), which is free of cancellation
        once it is multiplied by its conjugate.
        """
        a, b = low / self.x0, (low + by) / self.x0
        return np.arcsinh(by / self.x0 * (a + b) / (b * np.sqrt(1 + a * a) + a * np.sqrt(1 + b * b)))

    def value(self, level: Floats) -> Floats:
        """Return x0 sinh(level), shrunk to be exactly unbiased."""
        return self.x0 * self.shrink * np.sinh(level)


@dataclass(frozen=True, slots=True)
class Power(Transformed):
    """Noise on a root of the count: f(x) = (x + offset)^power, between the plain Gaussian and the logarithm.

    The relative error falls with the size, and the loss falls more slowly than it could. The value is the Hermite
    polynomial of degree 1/power in the level, exactly unbiased: level^2 - sigma^2 - offset for the square root.

    Attributes:
        power: 1/2 for the square root, or 1/3, 1/4, ..., 1/8: only where 1/power is whole is there an unbiased inverse.
        sigma: standard deviation of the noise on the root.
        offset: > 0; keeps the root from being steep at 0.
        sensitivity: the most that one member adds to a group.

    Guarantee: a member of a group of x >= 1 has (f(x) - f(x-1))^2 / (2 sigma^2)-zCDP, about
        power^2 (x + offset)^(2 power - 2) / (2 sigma^2); x = 0 as 1.
    Proof: docs/proofs/mechanisms.relative.md.
    Assumes: as `release`.
    Rounds: the policy up.

    >>> Power(0.5, sigma=1.0, offset=0.25).policy([1, 1000]).round(6)
    array([1.90983e-01, 1.25000e-04])
    """

    power: float
    sigma: float
    offset: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _degree(self.power)
        checked(self.sigma, self.sensitivity, offset=self.offset)

    @classmethod
    def for_relative_error(
        cls,
        relative: float,
        *,
        power: float = 0.5,
        x0: float = 1.0,
        metric: Metric = "mae",
        sensitivity: int = 1,
        overhead: float = 1.25,
    ) -> Self:
        """Return the mechanism whose error is at most relative * max(x, x0) at every size.

        Args:
            relative: the relative error, in (0, 1).
            power: which root.
            x0: the size below which the absolute error relative * x0 is fine.
            metric: "mae", "rmse" or ("ci", confidence).
            sensitivity: the most that one member adds to a group.
            overhead: what the offset may cost large groups; > 1. Close to 1, small groups pay the more.
        """
        _degree(power)
        checked_target(relative, x0, metric)
        offset = x0 * (_above_one(overhead) ** (0.5 / (1 - power)) - 1)
        return cls(
            power, noise_for(lambda s: cls(power, s, offset), relative, x0=x0, metric=metric), offset, sensitivity
        )

    def transform(self, x: Floats) -> Floats:
        """Return the root of x + offset."""
        return np.exp(np.log(x + self.offset) * self.power) if _degree(self.power) > 2 else np.sqrt(x + self.offset)

    def error(self, f: Floats) -> Floats:
        """Return how far `transform` can be from the truth; a logarithm of up to 37 lies between."""
        return np.asarray(64 * 2.0**-45 * f)

    def transform_ball(self, x: arb) -> arb:
        """Return the root of x + offset."""
        return (x + self.offset).root(_degree(self.power))

    def gap(self, low: Floats, by: float) -> Floats:
        """Return root(low) ((1 + by/low)^power - 1), with low + offset for low."""
        start = low + self.offset
        return start ** (1 / _degree(self.power)) * np.expm1(np.log1p(by / start) / _degree(self.power))

    def value(self, level: Floats) -> Floats:
        """Return the Hermite polynomial of the level whose mean is the power of its mean, less the offset."""
        before, now = np.ones_like(level), level
        for degree in range(1, _degree(self.power)):
            before, now = now, level * now - degree * self.spread**2 * before
        return now - self.offset


def _degree(power: float) -> int:
    """Return 1/power; refuse a power for which it is not whole."""
    fine = isinstance(power, float) and 1 / (MOST_ROOT + 0.5) < power < 0.6
    degree = int(1 / power + 0.5) if fine else 0
    if not fine or abs(power * degree - 1) > 1e-9:
        raise InvalidTarget(
            "no unbiased inverse for this power",
            rule=f"power = 1/2, 1/3, ..., 1/{MOST_ROOT}: noise on a root averages out only for whole roots",
            got=power,
            next_step="power=0.5, the square root; PlainGaussian for 1, Log for 0",
        )
    return degree


def _above_one(overhead: float) -> float:
    """Return an overhead; refuse what is none."""
    if isinstance(overhead, bool) or not isinstance(overhead, int | float) or not 1 < overhead <= 1e6:
        raise InvalidTarget(
            "the overhead is out of range",
            rule="1 < overhead <= 10^6: at 1 large groups pay the ideal, and small ones have no protection",
            got=overhead,
            next_step="overhead=1.04",
        )
    return float(overhead)
