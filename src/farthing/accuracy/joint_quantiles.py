"""Several quantiles of one column in the same groups, looked for together: their ranks are measured in one vector.

Each look asks for the rows below one threshold of every quantile that is not settled yet. Noise that is correlated as
the thresholds are nested costs little more for nine of them than for one (`mechanisms.joint_ranks`). A quantile that is
settled is asked no more, so that looks become cheaper as they go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_quantile_count import JointCount
from farthing.accuracy.joint_quantile_run import JointRun
from farthing.accuracy.joint_quantile_state import JointQuantilesState, JointTrail
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE, GaussianMeasurements, Measured
from farthing.mechanisms.joint_ranks import JointRanks, rank_strategy
from farthing.normal import ndtri

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.joint_quantile_count import MeasureCount
    from farthing.accuracy.joint_quantile_run import Measure
    from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
    from farthing.mechanisms.exponential import BitSource
    from farthing.mechanisms.joint_ranks import RankStrategy

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

COUNT_SHARE: Final = 0.1
"""Part of beta that the count may use up."""

USUAL: Final = 0.85
"""Part of the rest for thresholds that falls geometrically; what is left falls as 1/2, 1/6, 1/12, ..."""

AGAIN: Final = 0.5
"""The part of it that a next threshold has of the one before."""

STEEP: Final = 1.6
"""The slope of a threshold's line, over log(1/chance) and turned over the slack."""

EXPECTED: Final = 33.0
"""About the information, times the squared slack, that all looks for one quantile have together,"""

MORE: Final = 4.0
"""and by how much it is more with each doubling of how many there are, since they are not done at the same time."""

MOST_WIDTH: Final = 0.25
"""The count may be off by no more than this share of it."""

HOPELESS: Final = 4
"""A group is given up when proving its thresholds would surely cost more than this many caps."""

_MOST_RATIO: Final = 64.0  # of the widest slack to the narrowest: beyond, the widest is measured better than it needs


@dataclass(frozen=True)
class JointQuantiles:
    """The plan of a joint search, the same for all groups of a question.

    Attributes:
        asked: the quantiles, with their rank targets.
        beta: allowed chance of a miss, for each quantile of each group.
        cap_grains: the most that a group may pay for all of them, in all runs.

    Guarantee: with probability at least 1 - beta, for each quantile by itself: where `met` the rank of its value is
        within its target of q, and [lower, upper] holds the quantile. So for each of several runs, one after the other
        on the same trail.
    Proof: docs/proofs/accuracy.joint_quantiles.md.
    Assumes: measurements add Gaussian noise, fresh each time, of no more than the variance that their price tells;
        targets that were named without looking at what is held.
    Rounds: rank targets down to what the released count allows.
    """

    asked: tuple[QuantileGoal, ...]
    beta: float
    cap_grains: int

    def __post_init__(self) -> None:
        if not (0 < self.beta < 1 and 1 <= self.cap_grains <= MOST_GRAINS and all(one.rank for one in self.asked)):
            raise InvalidTarget(
                "several quantiles at once need rank targets",
                rule=f"a rank target each, 0 < beta < 1, 1 <= cap_grains <= {MOST_GRAINS}",
                got=f"{[one.rank for one in self.asked]}, {self.beta}, {self.cap_grains}",
                next_step="ask for rank=0.01",
            )

    @property
    def many(self) -> int:
        """How many quantiles there are."""
        return len(self.asked)

    @property
    def leaves(self) -> int:
        """How many leaves the range has."""
        return self.asked[0].leaves

    @property
    def reach(self) -> int:
        """The most rows of one unit in a group."""
        return self.asked[0].max_rows

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """The noise that each rank may have, in proportion to the others."""
        least = min(one.slack for one in self.asked)
        return tuple(min(one.slack / least, _MOST_RATIO) for one in self.asked)

    @cached_property
    def price(self) -> float:
        """What it costs in mu^2, times the squared rows, to know each rank with its slack as the noise."""
        whole = self.strategy(tuple(range(self.many)), tuple(range(self.many)))
        slack = np.array([one.slack for one in self.asked])
        return float((self.reach * whole.length * whole.spread / slack).max() ** 2)

    def strategy(self, which: tuple[int, ...], order: tuple[int, ...]) -> RankStrategy:
        """Return how the ranks of some quantiles are measured, whose thresholds lie in this order."""
        return rank_strategy(
            tuple(self.asked[one].lane_steps for one in which), order, tuple(self.scales[one] for one in which)
        )

    def line(self, slack: Float64, depth: Int64 | int) -> tuple[Float64, Float64]:
        """Return slope m and offset c/(2m): noise passes m/information + offset anywhere with chance exp(-c)."""
        beta = self.beta * (1 - COUNT_SHARE)
        share = USUAL * (1 - AGAIN) * AGAIN**depth + (1 - USUAL) / ((depth + 1) * (depth + 2))
        c = -np.log(beta * share)
        with np.errstate(divide="ignore"):
            slope = np.asarray(STEEP * c / slack)
            return slope, np.asarray(c / (2 * slope))

    @property
    def count_per_grain(self) -> float:
        """Information on the count that one grain buys."""
        return float(GRAIN) / self.reach**2 / ROUNDING_VARIANCE

    @cached_property
    def count_width(self) -> float:
        """How far the count may be off, as a share of it: where a better one would cost what it saves."""
        best = (self.z_count(0) * self.reach) ** 2 / (self.price * self._expected)
        return float(min(MOST_WIDTH, best ** (1 / 3)))

    @property
    def _expected(self) -> float:
        """About the information, times the squared slack, that all looks have together."""
        return EXPECTED + MORE * math.log2(self.many)

    def z_count(self, attempt: int) -> float:
        """Return the one-sided critical value of the count's attempts, counted from 0."""
        return float(-ndtri(self.beta * COUNT_SHARE / ((attempt + 1) * (attempt + 2))))

    def run(
        self,
        measure: Measure | None,
        measure_count: MeasureCount | None,
        *,
        groups: int,
        held: JointTrail | None = None,
        settled: Flags | None = None,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> JointQuantilesState:
        """Follow the plan; every decision is made from what the two functions returned, now or in earlier runs.

        Args:
            measure: (strategy, thresholds int64[n, ranks], grains int64[n], groups int64[n]) -> float64[n, ranks].
                None: go as far as what is held leads.
            measure_count: (grains, groups) -> float64[n], fresh noisy rows.
            groups: how many.
            held: what earlier runs of this question measured.
            settled: bool[groups, quantiles], what is left alone.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        trail = JointTrail.nothing(groups, self.many) if held is None else held.copy()
        open_ = np.ones((groups, self.many), np.bool_) if settled is None else ~settled
        counting = JointCount(self, trail, measure_count, np.asarray(open_.any(axis=1)), np.zeros(groups, np.bool_))
        rows, half = counting.run()
        self._give_up(counting.active, rows + half, trail)
        least = np.maximum(rows - half, 0.0)
        run = JointRun.of(self, trail, rows, least, open_ & counting.active[:, None])
        looks = 0
        while True:
            run.judge()
            want = run.wanted()
            entries = run.chosen(want)
            at = np.flatnonzero(entries.any(axis=1))
            if not at.size:
                break
            if measure is None:
                run.waits[np.repeat(entries.any(axis=1), self.many)] = True
                break
            self._look(run, measure, want, entries, at)
            looks += 1
            if progress is not None:
                done = groups - int(run.active.reshape(groups, -1).any(axis=1).sum())
                progress(looks, groups, done, float(self._widest(run)))
        return self._state(run, counting.waits)

    def _give_up(self, active: Flags, most: Float64, trail: JointTrail) -> None:
        """Give up groups of so few rows that even certain thresholds would cost far more than the cap."""
        need = self.price * STEEP * -math.log(self.beta) / np.maximum(most, 1.0) ** 2 / float(GRAIN)
        active &= (need <= HOPELESS * self.cap_grains) | (trail.paid > self.cap_grains)

    def _look(self, run: JointRun, measure: Measure, want: Float64, entries: Flags, at: Int64) -> None:
        """Take one look at the chosen entries of groups, those that are alike in one go."""
        many, place = self.many, run.place.reshape(-1, self.many)
        slack = np.where(run.active, run.slack, 1.0).reshape(-1, many)
        unit = np.where(entries, want.reshape(-1, many) * slack**2, np.inf).min(axis=1)
        for which, order, same in _alike(entries[at], place[at]):
            groups, strategy = at[same], self.strategy(which, order)
            mine = np.array(which)
            info = unit[groups, None] / slack[np.ix_(groups, mine)] ** 2
            wish = np.ceil(strategy.grains(info, self.reach))
            room = self.cap_grains - run.trail.paid[groups]
            grains = np.minimum(np.minimum(wish, float(MOST_GRAINS)).astype(np.int64), room)
            flat = groups[:, None] * many + mine
            run.active[flat[grains <= 0].ravel()] = False
            groups, grains, flat = groups[grains > 0], grains[grains > 0], flat[grains > 0]
            if not groups.size:
                continue
            fresh = measure(strategy, place[np.ix_(groups, mine)], grains, groups)
            run.trail.paid[groups] += grains
            run.read(flat.ravel(), fresh.ravel(), strategy.information(grains, self.reach).ravel())

    def _widest(self, run: JointRun) -> float:
        """Return half of the widest range that a quantile is known to be in."""
        lower, upper = self._ends(run)
        return float((upper - lower).max() / 2)

    def _ends(self, run: JointRun) -> tuple[Float64, Float64]:
        """Return intervals that hold the quantiles, [groups, quantiles]."""
        shape = (-1, self.many)
        ends = [
            one.ends(low, high)
            for one, low, high in zip(self.asked, run.low.reshape(shape).T, run.high.reshape(shape).T, strict=True)
        ]
        return np.stack([low for low, _ in ends], axis=1), np.stack([high for _, high in ends], axis=1)

    def _state(self, run: JointRun, waiting: Flags) -> JointQuantilesState:
        """Return what there is to tell."""
        shape, edge = (-1, self.many), self.asked[0].edge
        run.conclude(np.flatnonzero(~run.good & run.proving & (run.held > 0)))
        lower, upper = self._ends(run)
        leaf = run.good & (run.least > run.most)  # this leaf is right: its middle is told
        chosen = np.clip(run.place, run.least, np.maximum(run.most, run.least))
        middle = (edge(run.least) + edge(run.least + 1)) / 2
        unknown = (edge(run.low) + edge(run.high + 1)) / 2
        value = np.where(run.good, np.where(leaf, middle, edge(chosen + 1)), unknown)
        waits = waiting | run.waits.reshape(shape).any(axis=1)
        return JointQuantilesState(value.reshape(shape), lower, upper, run.good.reshape(shape), waits, run.trail)

    def typical(self, rows: int) -> int:
        """Return about what a group of so many rows pays, at what looks cost on the way."""
        count = (self.z_count(0) / (self.count_width * rows)) ** 2 / self.count_per_grain
        looks = self.price * self._expected * (1 + 2 * self.count_width) / rows**2 / float(GRAIN)
        return min(math.ceil(count + looks), MOST_GRAINS)


def _alike(entries: Flags, place: Int64) -> list[tuple[tuple[int, ...], tuple[int, ...], Int64]]:
    """Return which quantiles are looked at, in which order their thresholds lie, and the groups where it is so."""
    many = entries.shape[1]
    last = np.where(entries, place, np.iinfo(np.int64).max)
    ranked = np.argsort(np.argsort(last, axis=1, kind="stable"), axis=1)
    code = np.where(entries, ranked, many)
    patterns, inverse = np.unique(code, axis=0, return_inverse=True)
    found = []
    for number, pattern in enumerate(patterns.tolist()):
        which = tuple(one for one in range(many) if pattern[one] < many)
        found.append((which, tuple(pattern[one] for one in which), np.flatnonzero(inverse.ravel() == number)))
    return found


@dataclass(frozen=True, slots=True)
class NoisyJointRanks:
    """Exact ranks behind noise: what a joint search looks through.

    Attributes:
        ranks: raw; never leaves this object.
        reach: the most rows of one unit in a group.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a measurement of a group at n grains is mu-GDP with mu^2 = n 2^-56 for a unit in that group; over any
        adaptive sequence they add up, and a unit in K groups pays for the K most expensive.
    Proof: docs/proofs/accuracy.joint_quantiles.md, "What one row moves"; docs/proofs/mechanisms.gaussian.md.
    Assumes: add/remove one unit adds or removes at most `reach` rows of a group; exact sampler.
    Rounds: sigma up.
    """

    ranks: Ranks
    reach: int
    bits: BitSource | None = None

    def measure(self, strategy: RankStrategy, thresholds: Int64, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy #(leaf <= threshold) - q n of some groups and quantiles, in rows."""
        rising = np.sort(thresholds, axis=1)
        upto = self.ranks.below(rising.ravel(), np.repeat(groups, rising.shape[1])).reshape(rising.shape)
        edges = np.column_stack([np.zeros_like(groups), upto, self.ranks.rows[groups]])
        return JointRanks(self.reach, self.bits).measure(strategy, np.diff(edges, axis=1).T, grains)

    def measure_count(self, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy rows of some groups."""
        lane = GaussianMeasurements(self.ranks.rows[groups], self.reach, bits=self.bits)
        return lane.measure(Measured.nothing(len(groups)), np.asarray(grains, np.int64)).values
