"""One run of a joint search for several quantiles: a look is at one threshold of each that is still looked for.

Each quantile is searched, and bet on, as if it were alone (`quantile_rank_run`); a look is taken at several of them in
one measurement, whose noise they share, and with one count. What a look tells of a quantile is kept as a look of its
own, with the information that it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.accuracy.quantile_rank_run import HOPELESS, NOISES, RankRun, next_count
from farthing.accuracy.quantile_trail import Trail
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bisection import QuantileBisection
    from farthing.mechanisms.joint_ranks import RankStrategy

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[RankStrategy, Int64, Int64, Int64], Float64]
    MeasureCount = Callable[[Int64, Int64], Float64]

TOGETHER: Final = 3.0
"""Quantiles that are far off are looked at together where their looks ask for less than so many times the least."""

FAR: Final = 0.05
"""Looks that ask for less information than this, times the squared slack, come first: they cost little."""

PART: Final = 0.4
"""A look at all that are looked for has the information that so large a part of them asks for, or less."""


class JointPlan(Protocol):
    """What a run knows of its plan."""

    @property
    def many(self) -> int:
        """How many quantiles there are."""

    @property
    def cap_grains(self) -> int:
        """The most that a group may pay."""

    @property
    def reach(self) -> int:
        """The most rows of one unit in a group."""

    @property
    def price(self) -> float:
        """What it costs in mu^2, times the squared rows, to know each rank with its slack as the noise."""

    @property
    def plans(self) -> tuple[QuantileBisection, ...]:
        """The plan of each quantile alone."""

    def strategy(self, which: tuple[int, ...], order: tuple[int, ...]) -> RankStrategy:
        """Return how the ranks of some quantiles are measured."""


@dataclass(slots=True, eq=False)
class JointTrail:
    """Everything that was measured of the groups of one question.

    Attributes:
        each: the looks of each quantile; their grains are what a look of its own would cost that tells as much.
        paid: int64[groups], all grains that a member of the group has ever paid.
    """

    each: tuple[Trail, ...]
    paid: Int64

    @classmethod
    def nothing(cls, groups: int, many: int) -> JointTrail:
        """Return the trail before any measurement.

        >>> len(JointTrail.nothing(2, 9).each)
        9
        """
        return cls(tuple(Trail.nothing(groups) for _ in range(many)), np.zeros(groups, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class NextLooks:
    """What the next look at each quantile of each group is to be; one row a group, one column a quantile.

    Attributes:
        place: int64, the threshold.
        information: float64, on the rank there; 0 where only the rows are to be counted.
        counted: int64, grains of a count.
        slack: float64, in rows.
        open: bool, which are looked for.
    """

    place: Int64
    information: Float64
    counted: Int64
    slack: Float64
    open: Flags

    @property
    def unit(self) -> Float64:
        """Information times the squared slack; infinite for what is not looked for, or counted."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(self.open & (self.information > 0), self.information * self.slack**2, np.inf))


@dataclass(slots=True, eq=False)
class JointRun:
    """Where the search for each quantile stands.

    Attributes:
        plan: what is looked for.
        runs: the search for each quantile.
        paid: int64[groups], what was paid, in all runs.
        waits: bool[groups], which groups would go on, if anything could be measured.
    """

    plan: JointPlan
    runs: tuple[RankRun, ...]
    paid: Int64
    waits: Flags

    @classmethod
    def of(cls, plan: JointPlan, held: JointTrail, settled: Flags) -> JointRun:
        """Return the start: what is held is not read yet. bool[groups, quantiles] are left alone."""
        runs = tuple(
            RankRun.of(one, trail, settled[:, number], None, None)
            for number, (one, trail) in enumerate(zip(plan.plans, held.each, strict=True))
        )
        return cls(plan, runs, held.paid.copy(), np.zeros(len(held.paid), np.bool_))

    @property
    def trail(self) -> JointTrail:
        """What is held by now."""
        return JointTrail(tuple(run.trail for run in self.runs), self.paid)

    @property
    def open(self) -> Flags:
        """bool[groups, quantiles], what is looked for."""
        return np.stack([run.active for run in self.runs], axis=1)

    def read(self) -> None:
        """Read all looks that are held and were not read yet."""
        for run in self.runs:
            while (at := run.told()).size:
                run.look(at)

    def wanted(self) -> NextLooks:
        """Return the next looks; give up what is too small for its target."""
        shape = (len(self.paid), self.plan.many)
        place, counted = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        information, slack = np.zeros(shape), np.ones(shape)
        for number, run in enumerate(self.runs):
            self._give_up(run)
            at = np.flatnonzero(run.active)
            place[at, number], grains, counted[at, number] = run.next(at)
            information[at, number] = grains * run.plan.per_grain
            slack[at, number] = np.where(grains > 0, run.plan.asked.slack * run.rows[at], 1.0)
        return NextLooks(place, information, counted, slack, self.open)

    def _give_up(self, run: RankRun) -> None:
        """Give up groups that are at their cap, or where one or all of the quantiles would cost far more than it."""
        run.leave(np.flatnonzero(run.active))
        with np.errstate(divide="ignore", invalid="ignore"):
            need = HOPELESS * self.plan.price / run.most_rows(np.arange(len(self.paid))) ** 2 / float(GRAIN)
        run.active &= ((need <= self.plan.cap_grains) | (run.counted == 0)) & (self.paid < self.plan.cap_grains)

    def look(self, wanted: NextLooks, measure: Measure, measure_count: MeasureCount) -> None:
        """Take one look at each group: a count of rows that are hardly known, or a look at some of its quantiles."""
        unit = wanted.unit
        counts: Flags = np.asarray((wanted.open & np.isinf(unit)).any(axis=1))
        at = np.flatnonzero(counts)
        self._count(wanted, at, measure_count)
        entries, size = _chosen(np.where(counts[:, None], np.inf, unit))
        at = np.flatnonzero(entries.any(axis=1))
        for which, order, same in _alike(entries[at], wanted.place[at]):
            self._together(wanted, (which, order), size, at[same], (measure, measure_count))

    def _count(self, wanted: NextLooks, at: Int64, measure_count: MeasureCount) -> None:
        """Count the rows of groups, for all that is looked for there."""
        usual = np.where(wanted.open[at], wanted.counted[at], 0).max(axis=1, initial=0)
        per_grain = self.plan.plans[0].count_per_grain
        held = np.round(np.max([run.counted[at] for run in self.runs], axis=0) / per_grain)
        tells = self.plan.cap_grains * float(GRAIN) / (HOPELESS * self.plan.price * per_grain / NOISES**2)
        grains = np.minimum(next_count(held, usual, tells).astype(np.int64), self.plan.cap_grains - self.paid[at])
        self._stop(at[grains <= 0])
        at, grains = at[grains > 0], grains[grains > 0]
        if at.size:
            count, none = measure_count(grains, at), np.zeros(len(at), np.int64)
            self.paid[at] += grains
            for number, run in enumerate(self.runs):
                mine = wanted.open[at, number]
                run.keep(at[mine], none[mine], (np.zeros(int(mine.sum())), none[mine]), (count[mine], grains[mine]))

    def _together(
        self,
        wanted: NextLooks,
        pattern: tuple[tuple[int, ...], tuple[int, ...]],
        size: Float64,
        groups: Int64,
        measures: tuple[Measure, MeasureCount],
    ) -> None:
        """Take one look at the same quantiles of groups, whose thresholds lie in the same order."""
        plan, which = self.plan, np.array(pattern[0])
        strategy, (measure, measure_count) = plan.strategy(*pattern), measures
        least = np.array([plan.plans[one].per_grain for one in pattern[0]])  # less is told as nothing
        information = np.maximum(size[groups, None] / wanted.slack[np.ix_(groups, which)] ** 2, least)
        wish = np.minimum(np.ceil(strategy.grains(information, plan.reach)), float(MOST_GRAINS // 2)).astype(np.int64)
        room = plan.cap_grains - self.paid[groups]
        told = strategy.information(wish, plan.reach)
        rows = np.minimum(self._counts(which, told, wish, wanted.counted[np.ix_(groups, which)] > 0), room // 2)
        grains = np.minimum(wish, room - rows)
        self._stop(groups[grains <= 0])
        groups, grains, rows = groups[grains > 0], grains[grains > 0], rows[grains > 0]
        if not groups.size:
            return
        fresh = measure(strategy, wanted.place[np.ix_(groups, which)], grains, groups)
        count = np.zeros(len(groups))
        if (buys := rows > 0).any():
            count[buys] = measure_count(rows[buys], groups[buys])
        self.paid[groups] += grains + rows
        told = strategy.information(grains, plan.reach)
        for place, number in enumerate(which.tolist()):
            run = self.runs[number]
            own = np.minimum(np.floor(told[:, place] / run.plan.per_grain), MOST_GRAINS).astype(np.int64)
            bets = wanted.counted[groups, number] > 0  # a count makes a bet: far off, that would only lose
            counts = (np.where(bets, count, 0.0), np.where(bets, rows, 0))
            run.keep(groups, wanted.place[groups, number], (fresh[:, place], own), counts)

    def _counts(self, which: Int64, told: Float64, grains: Int64, bets: Flags) -> Int64:
        """Return the grains of the count that goes with looks: the cheapest proof of the rank that needs most."""
        most = np.array([self.plan.plans[one].most_share for one in which.tolist()]) * self.plan.reach
        wish = most * np.sqrt(grains[:, None] * told / float(GRAIN))
        most_wished: Float64 = np.asarray(np.ceil(np.where(bets, wish, 0.0).max(axis=1)))
        return np.minimum(most_wished, float(MOST_GRAINS // 2)).astype(np.int64)

    def _stop(self, groups: Int64) -> None:
        """Stop groups that have reached their cap."""
        for run in self.runs:
            run.active[groups] = False


def _chosen(unit: Float64) -> tuple[Flags, Float64]:
    """Return at which quantiles of each group the next look is, and its information times the squared slack.

    While some ask for little, it is at those alone: they are far off, and cheap. Then it is at all, as one of those
    asks that ask for less than most: so they are done at about the same time.

    >>> entries, size = _chosen(np.array([[0.01, 0.02, 1.0], [0.5, 1.0, np.inf]]))
    >>> entries.tolist(), size.tolist()
    ([[True, True, False], [True, True, False]], [0.01, 0.5])
    """
    open_ = np.isfinite(unit)
    far = (unit < FAR) & (unit <= TOGETHER * unit.min(axis=1, initial=np.inf)[:, None])
    some = far.any(axis=1)
    entries = np.where(some[:, None], far, open_)
    place = np.where(some, 0, np.floor(PART * np.maximum(entries.sum(axis=1) - 1, 0))).astype(np.int64)
    size = np.sort(np.where(entries, unit, np.inf), axis=1)[np.arange(len(unit)), place]
    return entries, size


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
