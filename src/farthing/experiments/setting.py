"""What is promised and asked in one cell of the experiment, and what a played session came to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.baselines import oracle_cost
from farthing.accuracy.largest_counts import GRID
from farthing.accuracy.stop_rule import two_sided
from farthing.privacy.filters import GdpFilter
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.residue import LEAST_KAPPA, MOST_KAPPA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.experiments.laws import Task
    from farthing.privacy.loss import Loss

_SPARE: Final = 8


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell: a task, a promise and a target.

    Attributes:
        task: the counts.
        epsilon, delta: the promise that holds for the whole session.
        relative: the target: each released count within this part of the truth.
        confidence: how surely.
    """

    task: Task
    epsilon: float
    delta: float
    relative: float
    confidence: float

    @property
    def beta(self) -> float:
        """Return the allowed chance of a miss."""
        return max(1 - self.confidence, 1e-12)

    @property
    def laplace_critical(self) -> float:
        """Return log(1/beta): a Laplace release of epsilon is within log(1/beta)/epsilon with chance 1 - beta."""
        return math.log(1 / self.beta)

    @property
    def mu_squared(self) -> float:
        """Return the squared mu that the promise allows: the exact Gaussian conversion."""
        return amount(GdpFilter.from_epsilon(self.epsilon, delta=self.delta).remaining)

    @property
    def gaussian_affordable(self) -> int:
        """Return how many of the largest counts the Gaussian oracle pays for."""
        return self._affordable(self.mu_squared, lambda x: oracle_cost(x, self.relative, 0.0, self.beta))

    @property
    def laplace_affordable(self) -> int:
        """Return how many of the largest counts the Laplace oracle pays for."""
        return self._affordable(self.epsilon, lambda x: self.laplace_critical / (self.relative * x))

    def most(self, affordable: int) -> int:
        """Return how many counts of a session are simulated: a few more than an oracle could pay for."""
        wanted = affordable + int(4 * math.sqrt(affordable)) + _SPARE
        return wanted if self.task.unlimited else min(wanted, self.task.size)

    def last_size(self, affordable: int) -> float:
        """Return the size of the last count that an oracle pays for: what selections must tell apart."""
        return float(self.task.sorted_counts(max(affordable, 1))[-1])

    def first_information(self) -> float:
        """Return a low first level for doubling: sixteen noise deviations short of the largest count's stop."""
        return (two_sided(self.beta) / self.relative / (16 * self.task.guess)) ** 2

    def _affordable(self, total: float, cost: Costs) -> int:
        """Return how many of the largest counts fit into a total."""
        if self.task.unlimited:
            return math.floor(total / float(cost(self.task.counts[:1].astype(np.float64))[0]))
        return int(np.searchsorted(np.cumsum(cost(self.task.counts.astype(np.float64))), total, side="right"))


class Side(NamedTuple):
    """One of the sums that a session must keep within its total.

    Attributes:
        paid: float64[trials, counts], what each count costs on this side, selection and release.
        total: the most that may be paid.
    """

    paid: Floats
    total: float


@dataclass(frozen=True, slots=True)
class Played:
    """What sessions came to.

    Attributes:
        returned: int64[trials], counts returned at the target.
        within: int64[trials], how many of them are within the target of the truth.
    """

    returned: Ints
    within: Ints

    @classmethod
    def of(cls, sides: Sequence[Side], hit: NDArray[np.bool_], kept: NDArray[np.bool_]) -> Played:
        """Settle sessions: each goes on, count by count, until what comes next does not fit on some side.

        >>> paid, yes = np.array([[0.25, 0.25, 0.75, 0.25]]), np.ones((1, 4), bool)
        >>> Played.of([Side(paid, 1.0)], hit=yes, kept=yes).returned.tolist()
        [2]
        """
        fits = kept & np.logical_and.reduce([np.cumsum(side.paid, axis=1) <= side.total for side in sides])
        return cls(fits.sum(axis=1), (fits & hit).sum(axis=1))

    @classmethod
    def together(cls, parts: Sequence[Played]) -> Played:
        """Join the trials of several parts."""
        return cls(np.concatenate([p.returned for p in parts]), np.concatenate([p.within for p in parts]))


def amount(loss: Loss) -> float:
    """Return the additive amount of a loss (epsilon, rho or mu^2) as a float."""
    return float(loss.amount)


def on_grid(epsilon: Floats) -> tuple[Floats, Ints]:
    """Return selection epsilons rounded down to the grid, and the exponents."""
    exponent = np.floor(np.log(epsilon) / math.log(GRID)).astype(np.int64)
    return GRID ** exponent.astype(np.float64), exponent


def pick_prices(exponent: Ints, currency: type[Loss]) -> Floats:
    """Return the certified prices of selections in a currency, by the exponents of their epsilons."""
    kinds, where = np.unique(exponent, return_inverse=True)
    prices = np.array([_pick_price(int(kind), currency.__name__) for kind in kinds])
    return np.asarray(prices[where].reshape(exponent.shape))


def residue_prices(exponent: Ints, cost: Floats, total: float, *, made: NDArray[np.bool_]) -> Floats:
    """Return what selections take out of a total of mu^2, each by what is left when it has paid.

    Args:
        exponent: int64[trials, picks], of their epsilons on the grid of prices.
        cost: float64[trials, picks], the mu^2 of the release that follows each.
        total: of a session.
        made: bool[trials, picks], where there was a pick at all.
    """
    size, price = GRID ** (2.0 * exponent), pick_prices(exponent, Gdp) * made
    left = np.full(len(cost), total)
    for k in range(cost.shape[1]):
        alone = price[:, k].copy()
        for _ in range(2):
            kappa = np.minimum((left - price[:, k]) / size[:, k], float(MOST_KAPPA))
            less = size[:, k] * (0.25 + 1 / (90 * np.maximum(kappa, float(LEAST_KAPPA)) + 4.5))
            price[:, k] = np.where(kappa >= float(LEAST_KAPPA), np.minimum(alone, less), alone)
        left = left - price[:, k] - cost[:, k]
    return price


@lru_cache(maxsize=4096)
def _pick_price(exponent: int, currency: str) -> float:
    """Return the certified price of one selection by the exponential mechanism, in the currency of that name."""
    kinds: dict[str, type[Loss]] = {"Gdp": Gdp, "Zcdp": Zcdp, "Pure": Pure}
    return amount(BoundedRange(GRID**exponent).to(kinds[currency]))


if TYPE_CHECKING:
    from collections.abc import Callable

    Costs = Callable[[Floats], Floats]

__all__ = ["GRID", "Played", "Setting", "Side", "amount", "on_grid", "pick_prices", "residue_prices"]
