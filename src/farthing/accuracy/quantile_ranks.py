"""Exact ranks from a bounded histogram, and what a quantile asks for: which rank, how near, told apart how finely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.exponential import BitSource

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

WHOLE: Final = 1 << 20
"""A rank is a share of a group's rows, in steps of 2^-20."""

LEAST_RANK: Final = 2.0**-12
"""The finest rank that may be asked for, as a share of the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Rows at or below each leaf, group by group. Raw.

    Attributes:
        groups: how many groups there are, with and without rows.
        leaves_log2: leaves are numbered 0 ... 2^leaves_log2 - 1.

    >>> ranks = Ranks.of(np.array([0, 0, 1]), np.array([1, 3, 0]), np.array([5, 2, 4]), groups=3, leaves_log2=2)
    >>> ranks.rows.tolist(), ranks.below(np.array([0, 1, 3, 0]), np.array([0, 0, 0, 1])).tolist()
    ([7, 4, 0], [0, 5, 7, 4])
    """

    groups: int
    leaves_log2: int
    _raw: Sealed

    @classmethod
    def of(cls, group: Int64, leaf: Int64, count: Int64, *, groups: int, leaves_log2: int) -> Ranks:
        """Read a histogram: int64[cells] each, pairs in any order, each pair once."""
        cells = (group << leaves_log2) + leaf
        order = np.argsort(cells)
        cells = cells[order]
        sums = np.concatenate([[0], np.cumsum(count[order])]).astype(np.int64)
        starts = np.searchsorted(cells, np.arange(groups + 1) << leaves_log2)
        return cls(groups, leaves_log2, sealed((cells, sums, starts)))

    @property
    def cells(self) -> Int64:
        """int64[cells], group * 2^leaves_log2 + leaf of those with rows, rising."""
        return np.asarray(opened(self._raw)[0])

    @property
    def sums(self) -> Int64:
        """int64[cells + 1], rows in all cells before; the last is all rows."""
        return np.asarray(opened(self._raw)[1])

    @property
    def starts(self) -> Int64:
        """int64[groups + 1], where the cells of each group begin."""
        return np.asarray(opened(self._raw)[2])

    @property
    def rows(self) -> Int64:
        """Return the rows of each group, int64[groups]."""
        return np.asarray(np.diff(self.sums[self.starts]))

    def below(self, thresholds: Int64, groups: Int64) -> Int64:
        """Return the rows of each group in leaves <= its threshold, int64[n]."""
        upto = np.searchsorted(self.cells, (groups << self.leaves_log2) + thresholds, "right")
        return np.asarray(self.sums[upto] - self.sums[self.starts[groups]])

    def lane(self, thresholds: Int64, groups: Int64, steps: int) -> Int64:
        """Return the sum over a group's rows of (1{leaf <= threshold} - q), q = steps/2^20, in units of 2^-20."""
        return self.below(thresholds, groups) * WHOLE - self.rows[groups] * steps


@dataclass(frozen=True, slots=True)
class QuantileGoal:
    """Which quantile is asked for, and how near in rank.

    Attributes:
        q: in [0, 1]; 0 is MIN, 1 is MAX.
        lower, upper: the clamps.
        leaves_log2: values are told apart on 2^leaves_log2 equal steps from lower to upper.
        max_rows: the most rows of one unit in a group.
        rank: how far the rank may be off, as a share of the group's rows, in [2^-12, 1/2]; or 0 for no rank target.
        whole: values are whole numbers from lower to upper, and each of them, at most 2^leaves_log2, is a leaf.

    >>> asked = QuantileGoal(0.0, 0, 100, rank=0.02)
    >>> asked.steps, round(asked.slack, 4), asked.sensitivity
    (10486, 0.01, 1038090)
    >>> asked.lane_steps, asked.beside, asked.lane_sensitivity
    (0, 0.01, 1048576)
    >>> print(asked)
    MIN, read as a value at or below which 0 % to 2 % of the rows lie
    >>> ages = QuantileGoal(0.5, 18, 90, leaves_log2=7, whole=True)
    >>> ages.leaves, ages.ends(np.array([0]), np.array([24]))
    (73, (array([18.]), array([42.])))
    """

    q: float
    lower: float
    upper: float
    leaves_log2: int = 16
    max_rows: int = 1
    rank: float = 0.0
    whole: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise InvalidTarget(
                "the quantile is out of range", rule="0 <= q <= 1", got=self.q, next_step="0.5 is the median"
            )
        if self.rank and not LEAST_RANK <= self.rank <= 0.5:
            raise InvalidTarget(
                "the rank target is out of range",
                rule="2^-12 <= rank <= 1/2, a share of the rows",
                got=self.rank,
                next_step="rank=0.01 is a percentile",
            )
        if not 0 < self.steps < WHOLE:
            raise InvalidTarget(
                "MIN and MAX have no neighbours on one side",
                rule="the least and greatest value are asked for within a share of the rows",
                got=f"q={self.q:g} without a rank target",
                next_step="rank=0.01 asks for a value in the outermost 1 % of the rows",
            )

    @property
    def steps(self) -> int:
        """Return the rank that is looked for, in 2^-20: q, or at the ends the middle of the ranks that will do."""
        return int(np.rint(self._centre * WHOLE))

    @property
    def _centre(self) -> float:
        """Return the rank that is looked for: q, or at the ends the middle of the ranks that will do."""
        return min(max(self.q, self.rank / 2), 1 - self.rank / 2)

    @property
    def slack(self) -> float:
        """Return how far from what is looked for a rank may lie and still be within `rank` of q, however it is read."""
        read = abs(self.beside) + abs(self.lane_steps / WHOLE - self.q)
        return self.rank - max(abs(self.steps / WHOLE - self.q), read) if self.rank else 0.0

    @property
    def sensitivity(self) -> int:
        """Return the most that one unit moves rows below less `steps` of all rows, in 2^-20: max(q, 1 - q) max_rows."""
        return max(self.steps, WHOLE - self.steps) * self.max_rows

    @property
    def lane_steps(self) -> int:
        """Return the rank that a bisection counts from, in 2^-20: q itself, so that it is the same for every target."""
        return int(np.rint(self.q * WHOLE))

    @property
    def lane_sensitivity(self) -> int:
        """Return the most that one unit moves what a bisection measures, in units of 2^-20."""
        return max(self.lane_steps, WHOLE - self.lane_steps) * self.max_rows

    @property
    def beside(self) -> float:
        """Return how far from q the rank lies that is looked for, as a share of the rows: 0 but near the ends."""
        return self._centre - self.q

    @property
    def leaves(self) -> int:
        """Return how many leaves there are."""
        return int(self.upper - self.lower) + 1 if self.whole else 1 << self.leaves_log2

    @property
    def step(self) -> float:
        """Return how far apart leaves are."""
        return 1.0 if self.whole else (self.upper - self.lower) / self.leaves

    def least(self, leaf: Int64) -> Float64:
        """Return the least value of leaves, float64: their lower edge, or the whole number that each is."""
        return np.asarray(np.minimum(self.lower + leaf * self.step, self.upper))

    def most(self, leaf: Int64) -> Float64:
        """Return what no value of leaves is above, float64: their upper edge, or the whole number that each is."""
        if self.whole:
            return self.least(leaf)
        return np.where(leaf + 1 >= self.leaves, self.upper, self.least(leaf + 1))

    def middle(self, low: Int64, high: Int64) -> Float64:
        """Return the middle of the values in leaves `low` to `high`, float64."""
        return np.asarray((self.least(low) + self.most(high)) / 2)

    def ends(self, low: Int64, high: Int64) -> tuple[Float64, Float64]:
        """Return what the values in leaves `low` to `high` lie between, outward by all that was rounded.

        Which leaf a value is in, and where a leaf ends, is computed in float64: each is off by less than 2^-50 of the
        larger bound. Whole numbers are exact.
        """
        spare = 0.0 if self.whole else max(max(abs(self.lower), abs(self.upper)) * 2.0**-49, 5e-324)
        return (
            np.maximum(self.least(low) - spare, self.lower),
            np.minimum(self.most(high) + spare, self.upper),
        )

    def __str__(self) -> str:
        name = {0.0: "MIN", 0.5: "MEDIAN", 1.0: "MAX"}.get(self.q, f"QUANTILE {self.q:g}")
        if not self.rank:
            return name
        low, high = max(self.q - self.rank, 0.0), min(self.q + self.rank, 1.0)
        return f"{name}, read as a value at or below which {100 * low:.4g} % to {100 * high:.4g} % of the rows lie"


@dataclass(frozen=True, slots=True, eq=False)
class NoisyRanks:
    """Measure ranks and counts of groups with exactly rounded Gaussian noise: what a `Descent` looks through.

    Attributes:
        ranks: raw; never leaves this object.
        asked: which quantile.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a measurement of a group at n grains is mu-GDP with mu^2 = n 2^-56 for a unit in that group; over any
        adaptive sequence they add up, and a unit in K groups pays for the K most expensive.
    Proof: docs/proofs/mechanisms.gaussian.md; docs/proofs/accuracy.quantile_bisection.md for the sensitivity.
    Assumes: add/remove one unit moves at most `asked.max_rows` rows of a group; exact sampler.
    Rounds: sigma up.

    >>> ranks = Ranks.of(np.array([0]), np.array([3]), np.array([500]), groups=1, leaves_log2=2)
    >>> noisy = NoisyRanks(ranks, QuantileGoal(0.5, 0.0, 4.0, leaves_log2=2))
    >>> [round(float(noisy.measure(np.array([t]), np.array([1 << 60]), np.array([0]))[0]), -1) for t in (2, 3)]
    [-250.0, 250.0]
    """

    ranks: Ranks
    asked: QuantileGoal
    bits: BitSource | None = None

    def measure(self, thresholds: Int64, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy #(leaf <= threshold) - q n of some groups, in rows."""
        lane = self.ranks.lane(thresholds, groups, self.asked.lane_steps)
        return self._noisy(lane, self.asked.lane_sensitivity, grains) / WHOLE

    def measure_count(self, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy rows of some groups."""
        return self._noisy(self.ranks.rows[groups], self.asked.max_rows, grains)

    def _noisy(self, truth: Int64, sensitivity: int, grains: Int64) -> Float64:
        """Return one measurement of each, at the cost of its grains."""
        mechanism = GaussianMeasurements(truth, sensitivity, bits=self.bits)
        return mechanism.measure(Measured.nothing(len(truth)), np.asarray(grains, np.int64)).values
