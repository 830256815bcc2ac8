"""Quantiles at a named accuracy: a noisy search over the leaves of a value range, paid look by look.

The q-quantile is the first leaf t at which D(t) = #(x <= t) - q n is no longer negative. At each threshold D is
measured with Gaussian noise and refined in looks. What was measured is left behind (`Trail`): a sharper question reads
it first and pays for what is new.

A guess that may err chooses the thresholds: for a rank `quantile_scouts`, for a value `quantile_windows`. Bets on what
the looks will show add up to a proof: `quantile_bets` and `quantile_rank_run`, `quantile_value_bets` and
`quantile_value_run`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from farthing.accuracy.quantile_rank_run import RankRun
from farthing.accuracy.quantile_ranks import WHOLE, NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_trail import FIRST_GRAINS, Trail
from farthing.accuracy.quantile_value_run import ValueRun
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[Int64, Int64, Int64], Float64]
    MeasureCount = Callable[[Int64, Int64], Float64]

INTERVAL_SHARE: Final = 0.1
"""Part of beta that the interval may use up beside a rank; the rest is the rank's."""

EITHER_SHARE: Final = 0.5
"""The same where a rank or a value will do."""

TYPICAL: Final = 23.0
"""About what a search by rank needs, with its count, on even data: information times the squared slack."""


NOISY: Final = 2.0
"""A search by value pays about so many times what it would if noise were nought."""


__all__ = ["FIRST_GRAINS", "NoisyRanks", "QuantileBisection", "QuantileGoal", "QuantileState", "Ranks", "Trail"]


class QuantileState(NamedTuple):
    """What a descent ends with, one entry a group; all of it released.

    Attributes:
        value: float64, the quantile; where no target of the value was met, a guess within the interval.
        lower, upper: float64, an interval that holds the true quantile of the bounded, clamped rows; near the ends the
            value below which q n + `beside` of the n rows lie.
        met: bool, whether a target was reached.
        paid: int64, grains of mu^2 that a member of the group has paid, in all runs.
        by_rank: bool, whether it was the rank target: then `value` has a rank that is within it.
        rows: float64, the count that was measured for the rank target; NaN without one.
        beside: float64, in rows; 0 but near the ends.
        waits: bool, whether what is held does not suffice, and nothing more could be measured.
        spent: int64, the grains that were read on the way to this answer.
        trail: what was measured, for a later run.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    paid: Int64
    by_rank: Flags
    rows: Float64
    beside: Float64
    waits: Flags
    spent: Int64
    trail: Trail


@dataclass(frozen=True, slots=True)
class QuantileBisection:
    """The plan of a noisy search, the same for all groups of a question.

    A group is done as soon as one of its targets is met: the rank of `asked`, or a value interval with half-width at
    most max(relative |value|, absolute).

    Attributes:
        asked: which quantile, and its rank target.
        beta: allowed chance of a miss, a group.
        cap_grains: the most that a group may pay.
        relative: of the value, in [0, 1).
        absolute: in units of the value.
        spend: whether groups that are too small for their rank target go on to their cap.

    Guarantee: with probability at least 1 - beta, [lower, upper] holds the quantile, and where `by_rank` the rank of
        `value` is within the rank target of q: at most (q + rank) n rows lie below it, at least (q - rank) n. So for
        each of several runs, one after the other on the same trail.
    Proof: docs/proofs/accuracy.quantile_bisection.md.
    Assumes: `measure` and `measure_count` add independent Gaussian noise of the scale that the grains pay for; targets
        and caps that were named without looking at what is held.
    Rounds: the rank target down to what the released count allows.

    >>> goal = QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10, rank=0.05)
    >>> descent = QuantileBisection(goal, beta=0.05, cap_grains=1 << 52)
    >>> exact = lambda thresholds, grains, groups: thresholds + 1 - 512.0  # one row per leaf, no noise
    >>> state = descent.run(exact, lambda grains, groups: np.full(len(groups), 1024.0), groups=1)
    >>> state.value.tolist(), state.met.tolist(), state.by_rank.tolist()
    ([512.0], [True], [True])
    """

    asked: QuantileGoal
    beta: float
    cap_grains: int
    relative: float = 0.0
    absolute: float = 0.0
    spend: bool = False

    def __post_init__(self) -> None:
        if not (self.asked.rank or self.relative or self.absolute):
            raise InvalidTarget(
                "there is no accuracy target",
                rule="a rank, a relative or an absolute target",
                next_step="say how far off the rank may be, as in rank=0.01",
            )
        if not 0 <= self.relative < 1 or not self.absolute >= 0 or not 0 < self.beta < 1:
            raise InvalidTarget(
                "the target is out of range",
                rule="0 <= relative < 1, absolute >= 0, 0 < beta < 1",
                got=f"relative={self.relative}, absolute={self.absolute}, beta={self.beta}",
                next_step="relative=0.05 is 5 %",
            )
        if not 1 <= self.cap_grains <= MOST_GRAINS:
            raise InvalidTarget(
                "the cap is out of range",
                rule=f"1 <= cap_grains <= {MOST_GRAINS}",
                got=self.cap_grains,
                next_step="cap a group at what is left of the budget",
            )

    def run(
        self,
        measure: Measure,
        measure_count: MeasureCount,
        *,
        groups: int,
        held: Trail | None = None,
        settled: Flags | None = None,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> QuantileState:
        """Follow the plan; every decision is made from what the two functions returned, now or in earlier runs.

        Args:
            measure: (thresholds int64[n], grains int64[n], groups int64[n]) -> float64[n], fresh noisy D of these
                groups, in rows: `Ranks.lane` of sensitivity `asked.lane_sensitivity`, times 2^-20, plus noise of
                standard deviation sensitivity / sqrt(grains 2^-56).
            measure_count: (grains, groups) -> float64[n], fresh noisy rows of these groups, of sensitivity
                `asked.max_rows`.
            groups: how many.
            held: what earlier runs of this question measured.
            settled: bool[groups], groups that are left alone.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        trail = Trail.nothing(groups) if held is None else held
        run = self._run(trail, _none_of(groups) if settled is None else settled, measure, measure_count)
        looks = 0
        while (active := np.flatnonzero(run.active)).size:
            run.look(active)
            looks += 1
            if progress is not None:
                lower, upper = self.asked.ends(run.low, run.high)
                progress(looks, groups, groups - int(run.active.sum()), float((upper - lower).max()) / 2)
        return self.state(run)

    def replayed(self, held: Trail, settled: Flags) -> QuantileState:
        """Return what a run comes to without measuring anything: for groups that wait, how far it leads."""
        run = self._run(held, settled, None, None)
        while (active := np.flatnonzero(run.active)).size:
            run.look(active)
        return self.state(run)

    def _run(self, held: Trail, settled: Flags, measure: Measure | None, measure_count: MeasureCount | None) -> RankRun:
        """Return the start of a run."""
        return (RankRun if self.by_rank else ValueRun).of(self, held, settled, measure, measure_count)

    def state(self, run: RankRun) -> QuantileState:
        """Return what there is to tell; of a value that is not met, a guess within its interval."""
        state = state_of(self.asked, run)
        unmet = np.flatnonzero(~state.met)
        if isinstance(run, ValueRun) and unmet.size:
            state.value[unmet] = run.guessed(unmet)
        return state

    @property
    def by_rank(self) -> bool:
        """Whether it is the rank alone that is asked for."""
        return bool(self.asked.rank) and not (self.relative or self.absolute)

    @property
    def interval_share(self) -> float:
        """The part of beta that the interval may use up."""
        if not self.asked.rank:
            return 1.0
        return INTERVAL_SHARE if self.by_rank else EITHER_SHARE

    @property
    def per_grain(self) -> float:
        """Information on D, in rows, that one grain buys."""
        return float(GRAIN) / (self.asked.lane_sensitivity / WHOLE) ** 2 / ROUNDING_VARIANCE

    @property
    def count_per_grain(self) -> float:
        """Information on the count that one grain buys."""
        return float(GRAIN) / self.asked.max_rows**2 / ROUNDING_VARIANCE

    @property
    def count_share(self) -> float:
        """The grains of a count beside a look by rank, over those of the rank: the cheapest proof of both."""
        return self.most_share * self.asked.max_rows / (self.asked.lane_sensitivity / WHOLE)

    @property
    def most_share(self) -> float:
        """The share of the rows that a proof subtracts from D, at most: the larger of the ranks that will do."""
        return max(abs(self.asked.beside + self.asked.slack), abs(self.asked.beside - self.asked.slack))

    @property
    def beside_count(self) -> float:
        """How many times the grains a look by rank takes, with its count, that one with a known count does."""
        return (1 + self.count_share) ** 2

    @property
    def worst(self) -> int:
        """The most that a group pays: its cap, since nothing is known of its rows beforehand."""
        return self.cap_grains

    def typical(self, rows: int) -> int:
        """Return about what a group of so many rows pays, if they are spread evenly from lower to upper.

        >>> asked = QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10, rank=0.05)
        >>> few, many = (QuantileBisection(asked, 0.05, 1 << 60).typical(rows) for rows in (10_000, 20_000))
        >>> 2 < few / many < 8
        True
        """
        if self.by_rank:
            grains = TYPICAL * self.beside_count / (self.asked.slack * max(rows, 1)) ** 2 / self.per_grain
            return math.ceil(min(grains, float(MOST_GRAINS)))
        share, rows = self.asked.lane_steps / WHOLE - 0.37 / self.asked.leaves, max(rows, 1)

        def evenly(thresholds: Int64, _grains: Int64, _groups: Int64) -> Float64:
            return np.asarray(rows * ((thresholds + 1) / self.asked.leaves - share))

        def full(_grains: Int64, groups: Int64) -> Float64:
            return np.full(len(groups), float(rows))

        return math.ceil(min(NOISY * int(self.run(evenly, full, groups=1).paid[0]), float(MOST_GRAINS)))


def _none_of(groups: int) -> Flags:
    """Return no group."""
    return np.zeros(groups, np.bool_)


class FinishedRun(Protocol):
    """What there is to tell of a run, one entry a group."""

    low: Int64
    high: Int64
    good: Flags
    least: Int64
    most: Int64
    middle: Int64
    rows: Float64
    goal: Float64
    waits: Flags
    spent: Int64
    trail: Trail

    def within(self, at: Int64) -> Flags:
        """Return which ranges are within the value target."""


def state_of(asked: QuantileGoal, run: FinishedRun) -> QuantileState:
    """Return what a run has to tell."""
    lower, upper = asked.ends(run.low, run.high)
    by_rank = (run.good | (run.low == run.high)) if asked.rank else np.zeros(len(run.low), np.bool_)
    leaf = run.good & (run.least > run.most)
    low, high = np.where(leaf, run.least, run.low), np.where(leaf, run.least, run.high)
    least, most = np.maximum(run.least, run.low - 1), np.minimum(run.most, run.high)
    chosen = np.maximum(np.minimum(run.middle, most), least)  # every threshold from least to most is right
    shown = np.maximum(asked.most(chosen), asked.least(run.low))  # where threshold t is right, so is leaf t + 1
    value = np.where(run.good & ~leaf, shown, asked.middle(low, high))
    met = by_rank | run.within(np.arange(len(run.low)))
    paid = run.trail.paid
    return QuantileState(value, lower, upper, met, paid, by_rank, run.rows, run.goal, run.waits, run.spent, run.trail)
