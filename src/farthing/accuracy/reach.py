"""Which groups can be within their targets at all: what targets take of a group of any mean and variance there can be.

Targets of means, variances, and relative ones of counts and sums take grains in proportion to 1/N^2, at each mean and
variance. So what a group may pay says how many rows it must have, and whether noisy rows, sums and squares together are
too few for that can be tested long before any one of them is known well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices
    from farthing.accuracy.statistics import Statistic

FUTILE_SHARE: Final = 0.3
"""The part of beta with which a look gives up a group that would be within its targets if noise were nought."""

GIVING_UP: Final = (64, 32, 24, 16, 12, 8, 6, 4, 3, 2)
"""A group may be given up when it has paid what it may pay over one of these,"""

NEAR_THE_END: Final = (3, 5)
"""or all but that over one of these; and when it has paid all."""

ENDS: Final = len(GIVING_UP) + len(NEAR_THE_END) + 1
"""So many looks there are at which groups may end unmet."""

MANY: Final = 1e8
"""Rows: so many that a sample variance is one of all."""

_MEANS: Final = np.linspace(-1, 1, 17)  # tried, from one end of the range to the other
_SPREADS: Final = (0.02, 0.1, 0.3, 0.6, 0.8, 0.88, 0.94, 0.98, 1.0)  # tried, as parts of the largest variance at a mean
_TURNS: Final = 10
_MOST: Final = 3.0  # change of a width in one of them
_SURELY: Final = 1 << 60  # grains that leave no doubt
_TINY: Final = 1e-100
_NONE: Final = 1 << 62  # more than anybody may pay


@dataclass(frozen=True, slots=True)
class Reach:
    """What groups take, by mean and variance.

    Attributes:
        lanes: the lanes of a mean or variance: rows, sum and squares.
        ways: float64[k, n], what one row adds to these, at every other mean and variance that is tried.
        needed: float64[n], the grains that a group of one row would take there or at the next ones that are tried, the
            least of these, each in the best shape there is.

    Guarantee: a group whose values would have one of these means and variances, and be within its targets, when it has
        paid all that it may come to, is called too small at an earlier look with probability Phi(-z) at most, whatever
        it holds; that follows from noisy values alone.
    Proof: docs/proofs/accuracy.ratio_looks.md, claim 3.
    Assumes: independent Gaussian noise; targets that scale with the rows.
    Rounds: to nearest; what lies between means and variances that are tried is held against simulations.
    """

    lanes: tuple[int, ...]
    ways: Floats
    needed: Floats

    @classmethod
    def of(cls, prices: JointPrices, told: float, shape: Callable[..., Ints], excess: Callable[..., Floats]) -> Reach:
        """Return that of targets about the lanes of one mean or variance.

        Args:
            prices: the targets.
            told: the failure probability of intervals.
            shape: returns the grains of a tick of groups, by what they hold.
            excess: returns by what factor intervals are too wide.
        """
        lanes, half = column(prices.statistics)
        ways = np.array(list(directions(half, squares=len(lanes) == 3))).T  # rows, sum and squares
        values = np.zeros((len(prices.worth), ways.shape[1]))
        values[list(lanes)] = ways * MANY
        surely = np.full(values.shape, _SURELY)
        grains = shape(values, surely)
        size = grains.sum(axis=0)
        ticks = np.maximum(prices.price(values, surely, told) / size, _TINY)
        for _ in range(_TURNS):
            wide = excess(values, 1 / (np.maximum(grains, _TINY) * ticks * prices.worth))
            ticks = ticks * np.clip(np.where(np.isfinite(wide), wide, _MOST), 1 / _MOST, _MOST) ** 2
        chosen, needed = least_near(ticks * size * MANY**2)
        return cls(lanes, ways[:, chosen], needed)

    def too_small(self, values: Floats, information: Floats, most: Ints, beta: float, spent: Ints) -> Flags:
        """Return which groups surely hold too little to be within their targets, bool[n].

        At each mean and variance that is tried, the rows that a group would have there are estimated with the least
        variance; a group is too small where what is still to be learned surely does not make any of these as many as it
        would take.

        Args:
            values: float64[lanes, n], what lanes seem to hold.
            information: float64[lanes, n], of their noise.
            most: int64[n], the grains that groups may come to.
            beta: the failure probability of each interval.
            spent: int64[n], the grains that these values took.
        """
        known = information[list(self.lanes)]
        per_row = np.sqrt((self.ways**2).T @ known)
        signal = self.ways.T @ (values[list(self.lanes)] * known) / np.maximum(per_row, _TINY)
        enough = np.sqrt(self.needed[:, None] / np.maximum(most, 1)) * per_row
        left = np.sqrt(np.clip(1 - spent / np.maximum(most, 1), 0, 1))  # the part of the noise that is to go
        return np.asarray((signal < enough - two_sided(2 * FUTILE_SHARE * beta) * left).all(axis=0))


def judged_at(most: Ints) -> Ints:
    """Return the ticks at which groups may be given up that may pay so many, rising, int64[ENDS, ...].

    >>> judged_at(np.array(960)).tolist()
    [15, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 768, 960]
    """
    late = (*NEAR_THE_END, _NONE)
    return np.asarray([*(most // part for part in GIVING_UP), *(most - most // part for part in late)])


def least_near(needed: Floats) -> tuple[Ints, Floats]:
    """Return every other mean and spread, and the least that is needed there or at those next to it."""
    table = needed.reshape(len(_MEANS), -1)
    edged = np.pad(table, 1, constant_values=np.inf)
    edged = np.minimum(np.minimum(edged[:-2], edged[1:-1]), edged[2:])
    edged = np.minimum(np.minimum(edged[:, :-2], edged[:, 1:-1]), edged[:, 2:])
    places = np.arange(needed.size).reshape(table.shape)
    return places[::2, ::2].ravel(), edged[::2, ::2].ravel()


def about_one(prices: JointPrices) -> JointPrices:
    """Return the targets about the lanes of one mean or variance that scale with the rows: each has to be met."""
    lanes, _ = column(prices.statistics)
    wide = prices.absolute[:, 0] > 0
    chosen = [
        place
        for place, one in enumerate(prices.statistics)
        if set(one.reads) <= set(lanes) and not (isinstance(one, Linear) and wide[place])
    ]
    statistics = tuple(prices.statistics[place] for place in chosen)
    return replace(prices, statistics=statistics, relative=prices.relative[chosen], absolute=prices.absolute[chosen])


def column(statistics: tuple[Statistic, ...]) -> tuple[tuple[int, ...], float]:
    """Return the lanes of the first mean or variance, in their order, and half of its range."""
    several = [one for one in statistics if isinstance(one, RatioStatistic | VarianceStatistic)]
    first = max(several, key=lambda one: len(one.reads))
    half = first.half if isinstance(first, VarianceStatistic) else (first.upper - first.lower) / 2
    return first.reads, half


def directions(half: float, *, squares: bool) -> Iterator[tuple[float, ...]]:
    """Give what one row adds to rows and sum, and to squares less half of the largest, at means and variances."""
    for mean in _MEANS:
        for part in _SPREADS if squares else (0.0,):
            square = part * (1 - mean**2) + mean**2
            yield (1.0, mean * half, (square - 0.5) * half**2)[: 3 if squares else 2]
