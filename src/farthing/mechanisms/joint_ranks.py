"""Ranks of several thresholds at once: noise that one row, in one place between them, pays for once.

The thresholds of one group cut its rows into bins, and a row lies in exactly one. So it moves all ranks together, in
one of a few directions; noise that is correlated as these directions are hides it in nine ranks for little more than
noise of its own would hide it in one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.gaussian import FINEST_BITS, GRAIN, ROUNDING_VARIANCE
from farthing.mechanisms.residuals import UP
from farthing.mechanisms.strategy import MOST_CELLS, Strategy, on_grid
from farthing.noise.gaussian import rounded_gaussian
from farthing.rounding import sqrt_up

if TYPE_CHECKING:
    from farthing.noise.bits import BitSource

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]

WHOLE_LOG2: Final = 20
"""Ranks are counted from shares of the rows in steps of 2^-20."""

_MIXED_LOG2: Final = 14
_FRACTION: Final = 52
_STEPS: Final = 40
_FLOOR: Final = 1e-9


@dataclass(frozen=True, slots=False)
class RankStrategy:
    """What is measured in place of the ranks of some thresholds: mixtures of them, with equal noise.

    Attributes:
        steps: the share of the rows that each rank is counted from, in steps of 2^-20.
        order: the place of each threshold among all of them, from 0, by size.
        mixed: int64 rows of whole numbers over 2^14, which ranks each measurement mixes; as many as there are ranks.

    >>> deciles = rank_strategy(tuple((k << 20) // 10 for k in range(1, 10)), tuple(range(9)), (1.0,) * 9)
    >>> one = rank_strategy(((1 << 20) // 10,), (0,), (1.0,))
    >>> round(deciles.price / one.price, 2)
    1.37
    """

    steps: tuple[int, ...]
    order: tuple[int, ...]
    mixed: tuple[tuple[int, ...], ...]

    @cached_property
    def matrix(self) -> Int64:
        """int64[measurements, bins], what a row in each bin adds to each measurement, over 2^34."""
        return np.array(self.mixed, np.int64) @ directions(self.steps, self.order)

    @cached_property
    def length(self) -> float:
        """The most that one row moves the measurements, as the length of that vector.

        Guarantee: the length of the longest column, at least.
        Proof: docs/proofs/accuracy.joint_quantiles.md, "What one row moves".
        Assumes: nothing.
        Rounds: up; the columns are added up in whole numbers of any size.
        """
        longest = max(sum(int(one) ** 2 for one in column) for column in self.matrix.T)
        return sqrt_up(Fraction(longest, 1 << (2 * self.places)))

    @property
    def places(self) -> int:
        """The bits behind the point of a measurement."""
        return _MIXED_LOG2 + WHOLE_LOG2

    @cached_property
    def back(self) -> Float64:
        """float64[ranks, measurements], which turns measurements into ranks."""
        return np.asarray(np.linalg.inv(np.ldexp(np.array(self.mixed, np.float64), -_MIXED_LOG2)))

    @cached_property
    def spread(self) -> Float64:
        """float64[ranks], the noise of each rank where that of measurements is 1."""
        return np.asarray(np.sqrt((self.back**2).sum(axis=1)) * UP)

    @cached_property
    def price(self) -> float:
        """What it costs, in mu^2, to hide one row behind noise of which no rank has more than 1."""
        return float((self.length * self.spread.max()) ** 2)

    def information(self, grains: Int64, reach: int) -> Float64:
        """Return float64[n, ranks], one over the variance of each rank, in rows, at n prices; the grid is counted.

        Rounds: down.
        """
        held = np.asarray(grains, np.float64)[:, None] * float(GRAIN) / ROUNDING_VARIANCE
        return np.asarray(held / (reach * self.length * self.spread) ** 2 / UP**3)

    def grains(self, information: Float64, reach: int) -> Float64:
        """Return the prices, float64[n], at which ranks have all of the information wanted, float64[n, ranks]."""
        each = information * (reach * self.length * self.spread) ** 2
        return np.asarray(each.max(axis=1) * ROUNDING_VARIANCE / float(GRAIN) * UP**6)


@dataclass(frozen=True, slots=True)
class JointRanks:
    """Measure the ranks of several thresholds in groups of rows, each as often as wanted.

    Attributes:
        reach: the most rows of one unit in a group.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a measurement of a group at n grains is mu-GDP with mu^2 = n 2^-56 for a unit in that group; over any
        sequence of them, chosen adaptively, they add up.
    Proof: [DongRS22, Cor. 3.3; SmithT22]; docs/proofs/accuracy.joint_quantiles.md, "What one row moves".
    Assumes: add/remove one unit adds or removes at most `reach` rows of a group, in whatever bins; exact sampler.
    Rounds: noise scales up, so that each measurement costs no more than its grains.

    >>> strategy = rank_strategy((1 << 18, 1 << 19), (0, 1), (1.0, 1.0))  # a quarter and a half of 800 rows
    >>> shown = JointRanks(1).measure(strategy, np.array([[250], [150], [400]]), np.array([1 << 60]))
    >>> bool(abs(shown - [[50.0, 0.0]]).max() < 5)
    True
    """

    reach: int
    bits: BitSource | None = field(default=None, repr=False)

    def measure(self, strategy: RankStrategy, bins: Int64, grains: Int64) -> Float64:
        """Return float64[groups, ranks], each rank less its share of the rows, with noise.

        Args:
            strategy: what is measured.
            bins: int64[bins, groups], the rows in each bin, from below the least threshold up.
            grains: int64[groups], what each group pays.
        """
        sigma = self.reach * strategy.length * 2.0**28 / np.sqrt(grains.astype(np.float64)) * UP
        exponents = np.minimum(np.frexp(sigma)[1] - (FINEST_BITS + 1), _FRACTION - strategy.places)
        shown = np.zeros((bins.shape[1], len(strategy.steps)))
        for exponent in np.unique(exponents).tolist():
            (same,) = np.nonzero(exponents == exponent)
            for at in np.array_split(same, -(-len(same) * len(bins) // MOST_CELLS)):
                shown[at] = self._drawn(strategy, bins[:, at], sigma[at], exponent).T
        return shown @ strategy.back.T

    def _drawn(self, strategy: RankStrategy, bins: Int64, sigma: Float64, exponent: int) -> Float64:
        """Return noisy measurements of groups on one grid, float64[measurements, groups]."""
        exact = Strategy(bins.shape, (strategy.matrix, None), strategy.places)
        whole, rest = on_grid(bins, exact, exponent)
        scale = np.broadcast_to(np.ldexp(sigma, -exponent), whole.shape)
        noisy = rounded_gaussian(np.ascontiguousarray(scale), offset=rest, bits=self.bits)
        return np.ldexp((whole + noisy).astype(np.float64), exponent)


def directions(steps: tuple[int, ...], order: tuple[int, ...]) -> Int64:
    """Return int64[ranks, bins], what a row in each bin adds to each rank less its share of the rows, over 2^20.

    >>> directions((1 << 18, 1 << 19), (0, 1)).tolist()
    [[786432, -262144, -262144], [524288, 524288, -524288]]
    """
    below = np.arange(len(steps) + 1) <= np.array(order)[:, None]
    return (below.astype(np.int64) << WHOLE_LOG2) - np.array(steps, np.int64)[:, None]


@lru_cache(maxsize=1 << 16)
def rank_strategy(steps: tuple[int, ...], order: tuple[int, ...], scales: tuple[float, ...]) -> RankStrategy:
    """Return a strategy that is nearly the cheapest for ranks whose noise is to have these scales.

    The noise of ranks may be any whose covariance C has the wanted variances; a row in bin j then costs d'C^-1 d for
    its direction d. Weights of ranks and of bins say where it matters most: those of the largest variances and costs
    grow, round after round, and C is the best for the weights. Whichever C it ends with, `length` is computed from what
    is measured.

    Args:
        steps: the share of the rows that each rank is counted from, in steps of 2^-20.
        order: the place of each threshold among all of them, by size.
        scales: the noise that each rank may have, in proportion.
    """
    wide = np.array(scales) / min(scales)
    lines = directions(steps, order) / (1 << WHOLE_LOG2) / wide[:, None]
    ranks, bins = np.ones(len(steps)) / len(steps), np.ones(len(steps) + 1) / (len(steps) + 1)
    best, least = np.eye(len(steps)), math.inf
    for _ in range(_STEPS):
        root = np.sqrt(ranks)[:, None]
        values, turned = np.linalg.eigh((root * lines * bins) @ (root * lines).T)
        spread = (turned * np.sqrt(np.maximum(values, _FLOOR**2 * values.max()))) @ turned.T / root / root.T
        variances = np.diag(spread)
        mixing = np.linalg.inv(np.linalg.cholesky(spread))
        costs = ((mixing @ lines) ** 2).sum(axis=0)
        if costs.max() * variances.max() < least:
            best, least = mixing / math.sqrt(costs.max()), costs.max() * variances.max()
        ranks, bins = ranks * variances / variances.max() + _FLOOR, bins * costs / costs.max() + _FLOOR
        ranks, bins = ranks / ranks.sum(), bins / bins.sum()
    mixed = np.rint(np.ldexp(best / wide, _MIXED_LOG2)).astype(np.int64)
    return RankStrategy(steps, order, tuple(tuple(row) for row in mixed.tolist()))
