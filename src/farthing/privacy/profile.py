"""The law of the privacy loss of a mechanism, from which its curve of (epsilon, delta) follows.

The privacy loss Z is the log-likelihood ratio of the output, drawn from the mechanism on the data. What delta says at
epsilon is E[max(0, 1 - exp(epsilon - Z))]: all that Z does beyond epsilon, weighed by how far beyond it goes. A bounded
mechanism has no such tail, Gaussian noise a short one, and "name and shame" an infinite one.
docs/explanation/delta.md shows them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBudget
from farthing.normal import ndtr
from farthing.privacy import convert
from farthing.privacy.balls import Ball, ball, upper, working
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.numbers import Number

    Floats: TypeAlias = NDArray[np.float64]

MOST_STEPS: Final = 100_000
"""The most grid steps of one unit for which a loss distribution is written down atom by atom."""


@dataclass(frozen=True, slots=True)
class GaussianLoss:
    """The privacy loss of Gaussian noise: N(mu^2/2, mu^2), with tails that fall faster than any exponential.

    Attributes:
        mu: sensitivity over standard deviation.

    Guarantee: `hockey_stick` is the least delta, for this pair.
    Proof: Z = mu Y - mu^2/2 with Y ~ N(mu, 1) [DongRS22, Cor. 2.13].
    Assumes: one unit moves the answer by at most mu standard deviations.
    Rounds: hockey_stick up; the rest is for plots.

    >>> round(GaussianLoss(1).tail(1), 4), round(GaussianLoss(1).hockey_stick(1), 4)
    (0.3085, 0.1269)
    """

    mu: float

    def __post_init__(self) -> None:
        if not exact(self.mu, "mu"):
            raise InvalidBudget(
                "mu is zero", rule="mu > 0", got=self.mu, next_step="a loss of zero has no distribution"
            )

    @property
    def mean(self) -> float:
        """The mean of Z, mu^2/2."""
        return self.mu**2 / 2

    def pdf(self, z: ArrayLike) -> Floats:
        """Return the density of Z; float64[...]."""
        at = (np.asarray(z, dtype=np.float64) - self.mean) / self.mu
        return np.asarray(np.exp(-at * at / 2) / (self.mu * math.sqrt(2 * math.pi)))

    def cdf(self, z: ArrayLike) -> Floats:
        """Return P[Z <= z]; float64[...]."""
        return np.asarray(ndtr((np.asarray(z, dtype=np.float64) - self.mean) / self.mu))

    def tail(self, epsilon: Number) -> float:
        """Return P[Z > epsilon]."""
        return float(ndtr((self.mean - float(epsilon)) / self.mu))

    def hockey_stick(self, epsilon: Number) -> float:
        """Return the least delta at epsilon, rounded up."""
        return convert.gdp_delta(Fraction(self.mu) ** 2, exact(epsilon, "epsilon"))


@dataclass(frozen=True, slots=True)
class DiscreteLoss:
    """A privacy loss that takes finitely many values, one of which may be infinite.

    Attributes:
        atoms: pairs (loss, mass) by rising loss; masses are exact or rounded up in the last of 192 bits.
        infinite: the mass at infinity: outcomes that give the unit away for certain.

    Guarantee: `hockey_stick` is the least delta for this pair, to the last bits.
    Proof: the sum over the atoms beyond epsilon; docs/proofs/privacy.profile.md.
    Assumes: the atoms are those of the mechanism's worst pair.
    Rounds: up.

    >>> randomised_response(1).pmf()[1].round(4)
    array([0.2689, 0.7311])
    """

    atoms: tuple[tuple[Fraction, Fraction], ...]
    infinite: Fraction = Fraction(0)

    @property
    def mean(self) -> float:
        """The mean of Z."""
        return math.inf if self.infinite else float(sum((loss * mass for loss, mass in self.atoms), Fraction(0)))

    def pmf(self) -> tuple[Floats, Floats]:
        """Return the values of Z and their masses by rising value, infinity last; two float64[atoms]."""
        atoms: list[tuple[float, Fraction]] = [(float(loss), mass) for loss, mass in self.atoms]
        if self.infinite:
            atoms.append((math.inf, self.infinite))
        return np.array([loss for loss, _ in atoms]), np.array([float(mass) for _, mass in atoms])

    def cdf(self, z: ArrayLike) -> Floats:
        """Return P[Z <= z]; float64[...]."""
        losses, masses = self.pmf()
        below = np.concatenate([[0.0], np.cumsum(masses)])
        return np.asarray(np.minimum(below[np.searchsorted(losses, z, side="right")], 1.0))

    def tail(self, epsilon: Number) -> float:
        """Return P[Z > epsilon]."""
        at = Fraction(epsilon)
        return float(self.infinite + sum((mass for loss, mass in self.atoms if loss > at), Fraction(0)))

    def hockey_stick(self, epsilon: Number) -> float:
        """Return the least delta at epsilon, rounded up."""
        at = exact(epsilon, "epsilon")
        with working() as flint:
            total = ball(flint, self.infinite)
            for loss, mass in self.atoms:
                if loss > at:
                    total += ball(flint, mass) * -ball(flint, at - loss).expm1()
            return min(1.0, up(upper(total)))


def gaussian(mu: float) -> GaussianLoss:
    """Return the loss distribution of Gaussian noise; mu is sensitivity over standard deviation."""
    return GaussianLoss(mu)


def randomised_response(epsilon: Number) -> DiscreteLoss:
    """Return the loss distribution of randomised response: +-epsilon, the worst that epsilon-DP allows.

    >>> randomised_response(1).hockey_stick(1)
    0.0
    """
    return two_sided_geometric(epsilon, 1)


def two_sided_geometric(epsilon: Number, steps: int) -> DiscreteLoss:
    """Return the loss distribution of two-sided geometric noise of rate epsilon/steps on an answer that moves by steps.

    >>> round(two_sided_geometric(1, 4).hockey_stick(0.5), 4)
    0.2212
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST_STEPS:
        raise InvalidBudget(
            "the number of steps is out of range", rule=f"1 <= steps <= {MOST_STEPS}", got=steps, next_step="1"
        )
    rate = _positive(epsilon, "epsilon") / steps

    with working() as flint:
        q: Ball = (-ball(flint, rate)).exp()
        between = [(rate * (steps - 2 * j), upper(q**j * (1 - q) / (1 + q))) for j in range(1, steps)]
        ends = [(rate * steps, upper(1 / (1 + q))), (-rate * steps, upper(q**steps / (1 + q)))]
    return DiscreteLoss(tuple(sorted(ends + between)))


def bounded_range(eta: Number, low: Number | None = None) -> DiscreteLoss:
    """Return the worst loss distribution on an interval of length eta, from `low` up; centred if absent.

    Its two values are the ends of the interval: any other law on it is less spread, and has a smaller profile.

    >>> bounded_range(2).pmf()[0]
    array([-1.,  1.])
    """
    width = _positive(eta, "eta")
    start = -width / 2 if low is None else Fraction(low)
    if not -width <= start <= 0:
        raise InvalidBudget("the interval misses zero", rule="-eta <= low <= 0", got=low, next_step="leave low out")
    with working() as flint:
        n, t = ball(flint, width), ball(flint, start)
        top = Fraction(0) if start == 0 else min(Fraction(1), upper(t.expm1() / (-n).expm1()))
    return DiscreteLoss(((start, 1 - top), (start + width, top)))


def name_and_shame(delta: Number) -> DiscreteLoss:
    """Return the loss distribution of publishing the unit's record with chance delta, and nothing otherwise.

    It is (0, delta)-DP, and with chance delta it protects nobody at all.

    >>> name_and_shame(0.125).hockey_stick(50)
    0.125
    """
    chance = within_unit(delta)
    return DiscreteLoss(((Fraction(0), 1 - chance),), infinite=chance)


def _positive(value: Number, name: str) -> Fraction:
    """Return a parameter as a fraction; refuse zero."""
    number = exact(value, name)
    if not number:
        raise InvalidBudget(f"{name} is zero", rule=f"{name} > 0", got=value, next_step="zero has no distribution")
    return number


def plot_points(law: Any, losses: ArrayLike) -> dict[str, Floats]:
    """Return arrays for a picture: the losses, the chance of more than each, and delta there; delta only from 0 up.

    >>> sorted(plot_points(gaussian(1), [0.0, 1.0]))
    ['delta', 'loss', 'tail']
    """
    at = np.asarray(losses, dtype=np.float64)
    tail = np.array([law.tail(each) for each in at.tolist()])
    delta = np.array([law.hockey_stick(each) if each >= 0 else math.nan for each in at.tolist()])
    return {"loss": at, "tail": tail, "delta": delta}
