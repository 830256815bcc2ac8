"""One run of a search for a quantile by rank: looks at thresholds, and bets on what they will show.

Each look is kept as it was measured. A later run reads them in the same order, bets again, at its own target, and goes
on from there: so it pays for no look twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.quantile_bets import STAKE, Ladder, Places, partly, wholly, won, won_at_most
from farthing.accuracy.quantile_ranks import WHOLE
from farthing.accuracy.quantile_scouts import Scouts
from farthing.accuracy.quantile_trail import FIRST_GRAINS, LOOK, Trail, made_for
from farthing.mechanisms.gaussian import MOST_GRAINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_plan import BisectionPlan

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[Int64, Int64, Int64], Float64]
    MeasureCount = Callable[[Int64, Int64], Float64]

RATE: Final = 0.7
"""A bet on a rank wins this much for each row by which it is right, over the slack,"""

FADE: Final = 3.0
"""less where the place seems to be off by more than two thirds of the slack, and nothing from one slack on."""

PRIOR: Final = 4.0
"""What a place seems to be off counts as much as zero at this information, times the squared slack."""

WIDE: Final = 2.5
"""A first look with more information than this, times the squared slack, was made for a wider target: no bet."""

WIDER: Final = 2.5
"""A look that was made for more than so many times the slack tells of the interval, and of the rows, alone."""

MOVED: Final = 1.5
"""So does one for another rank, as MIN and MAX have with each target, that was made for more than so many times it."""

GUESSED: Final = 2.5
"""The first bet on the side of a place is the best one where it is so many standard deviations off;"""

GUESSED_STAKE: Final = 0.3
"""it stakes this part."""

CLEARLY: Final = 2.2
"""Rows are roughly known when there are this many times their noise."""

AHEAD: Final = 3
"""Until then, each count has this many times the grains of all before,"""

SLOWLY: Final = 0.5
"""and this many times from where a group without rows would have been given up."""

HOPELESS: Final = 8.0
"""A group is given up where even this information, times the squared slack, with its count, costs more than its cap,"""

NOISES: Final = 1.5
"""for a count that is so many of its noises larger than what was measured."""

UP: Final = 1 + 1e-9
"""What is needed is told higher by this, past what rounding takes."""

_ROUNDED: Final = 1 + 2.0**-19  # noise is put on a grid, and rounded up: its variance is told higher by less than this


@dataclass(slots=True)
class RankRun:
    """Where each group stands; all arrays have one entry a group.

    Without functions that measure, it goes as far as what is held leads: then `waits` says which groups need more.

    Guarantee: with probability at least 1 - beta, no threshold that is too high is ever in `most` or below, none that
        is too low in `least` or above, and the quantile is always in `low` to `high`.
    Proof: docs/proofs/accuracy.quantile_bisection.md.
    Assumes: as `quantile_bisection.QuantileBisection`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    plan: BisectionPlan
    trail: Trail  # its own: what was held, and what it adds
    measure: Measure | None
    measure_count: MeasureCount | None
    low: Int64
    high: Int64
    spent: Int64  # the grains that are read on this way
    rows: Float64  # the count, as far as known
    goal: Float64  # the D that is looked for, in rows: 0 but near the ends
    active: Flags
    waits: Flags  # for a measurement that cannot be made
    good: Flags  # the rank is within its target
    least: Int64  # the first threshold that is not too low for the rank target
    most: Int64  # the last one that is not too high
    depth: Int64  # looks that are behind
    middle: Int64  # the last threshold that was looked at
    places: Places
    aside: Places  # those of looks for a much wider slack
    counted: Float64  # information on the count
    total: Float64  # the mean of the count times it

    @classmethod
    def of(
        cls,
        plan: BisectionPlan,
        held: Trail,
        settled: Flags,
        measure: Measure | None,
        measure_count: MeasureCount | None,
    ) -> RankRun:
        """Return the start: the whole range, nothing read. Groups that are settled already are left alone."""
        return cls(**started(plan, held.only(_kind(plan)), settled, measure, measure_count))

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle; nowhere without one."""
        return np.zeros(len(at), np.bool_)

    def look(self, at: Int64) -> None:
        """Read one look of each of these groups, or take it where none is held; stop where the target is met."""
        self.trail.grow(int(self.depth[at].max()))
        at = self._bought(at)
        depth = self.depth[at]
        grains, rows = self.trail.grains[depth, at], self.trail.counted[depth, at]
        place, mean = self.trail.thresholds[depth, at], self.trail.means[depth, at]
        count = self.trail.counts[depth, at]
        self.spent[at] += grains + rows
        self.depth[at] += 1
        wide = self._aside(depth, at)
        seen = (grains > 0) & ~wide
        self.middle[at[seen]] = place[seen]
        for places, some in ((self.places, seen), (self.aside, (grains > 0) & wide)):
            self._bet(places, at[some], place[some], (mean[some], grains[some]), (count[some], rows[some]))
        information = rows * self.plan.count_per_grain
        self.counted[at] += information
        self.total[at] += information * count
        with np.errstate(divide="ignore", invalid="ignore"):
            self.rows[at] = np.maximum(self.total[at], np.sqrt(self.counted[at])) / self.counted[at]
        self.goal[at] = self.plan.asked.beside * self.rows[at]
        self._claim(at)

    def _aside(self, depth: Int64, at: Int64) -> Flags:
        """Return which looks are put aside: it follows from what they were made for alone, whatever they showed."""
        slacks, moved = self.trail.slacks(depth, at), self.trail.moved(depth, at, _kind(self.plan))
        most = np.where(moved, MOVED, WIDER) * self.plan.asked.slack
        return np.asarray((slacks > most) | (moved & (slacks == 0)))

    def told(self) -> Int64:
        """Return the groups that go on, and whose next look is held."""
        at = np.flatnonzero(self.active)
        self.trail.grow(int(self.depth[at].max(initial=0)))
        return np.asarray(at[self.trail.kinds[self.depth[at], at] >= LOOK])

    def keep(self, at: Int64, place: Int64, ranks: tuple[Float64, Int64], counts: tuple[Float64, Int64]) -> None:
        """Keep the next look of groups as it was measured: a fresh D and a fresh count, each with its grains."""
        self.trail.keep(self.depth[at], place, ranks, counts, at, self._made_for(at))

    def _made_for(self, at: Int64) -> int | Int64:  # noqa: ARG002  # all looks are made for the same
        """Return what the trail says of the next looks."""
        return _kind(self.plan)

    def leave(self, at: Int64) -> None:
        """Give up groups that are too small for their target, as far as the count tells."""
        self.active[at[self._hopeless(at)]] = False

    def _bought(self, at: Int64) -> Int64:
        """Take looks that are not held; return the groups whose next look is held now."""
        depth = self.depth[at]
        new = self.trail.kinds[depth, at] < LOOK
        some = at[new]
        place, grains, rows = self.next(some)
        short = grains + rows > self.plan.cap_grains - self.spent[some]
        stops = short | self._hopeless(some)
        self.active[some[stops]] = False
        if self.measure is None or self.measure_count is None:
            self.waits[some[~stops]], self.active[some[~stops]] = True, False
            return np.asarray(at[~new])
        some, place, grains, rows = (each[~stops] for each in (some, place, grains, rows))
        mean, count = np.zeros(len(some)), np.zeros(len(some))
        if (buys := grains > 0).any():
            mean[buys] = self.measure(place[buys], grains[buys], some[buys])
        if (buys := rows > 0).any():
            count[buys] = self.measure_count(rows[buys], some[buys])
        self.keep(some, place, (mean, grains), (count, rows))
        return np.asarray(at[self.active[at]])

    def _bet(
        self, places: Places, at: Int64, place: Int64, ranks: tuple[Float64, Int64], counts: tuple[Float64, Int64]
    ) -> None:
        """Settle the bets on looks; how much was bet, and on what, follows from what was seen before them.

        On looks that are put aside no rank is bet on, whatever they showed.
        """
        if not at.size:
            return
        (mean, grains), (count, rows) = ranks, counts
        row, asked = places.at(place, at), self.plan.asked
        fresh: Float64 = np.asarray(grains * self.plan.per_grain)
        counted = rows * self.plan.count_per_grain

        def beyond(share: float) -> tuple[Float64, Float64]:
            """Return how far D is beyond this share of the rows, and the information on it; none without a count."""
            if not share:
                return mean, fresh
            with np.errstate(divide="ignore"):
                known = np.where(rows > 0, 1 / (1 / fresh + share**2 / counted), 0.0)
            return mean - share * count, np.asarray(known)

        if places is self.places and asked.rank:
            seen = (beyond(asked.beside + asked.slack), beyond(asked.beside - asked.slack))
            self._bet_on_ranks(at, row, (fresh, surely(grains)), seen)
        self._bet_on_sides(places, at, row, fresh, beyond(asked.beside))
        places.information[row, at] += fresh
        places.totals[row, at] += fresh * mean

    def _bet_on_ranks(
        self,
        at: Int64,
        row: Int64,
        told: tuple[Float64, Float64],
        seen: tuple[tuple[Float64, Float64], tuple[Float64, Float64]],
    ) -> None:
        """Settle bets that D is not too high, and not too low: none wins more than what its claim needs here."""
        (fresh, surely), places, slack = told, self.places, self.plan.asked.slack * self.rows[at]
        part, met, place = self._off(at, slack), places.thresholds[:, at], places.thresholds[row, at]
        under = np.where((met >= 0) & (met <= place), part, -np.inf).max(axis=0)
        over = np.where(met >= place, part, np.inf).min(axis=0)
        unsized = (places.information[row, at] == 0) & (fresh * slack**2 > WIDE)
        high, low = Ladder.of(places, at).at(place)
        sides = ((places.above, 1, under, high), (places.below, -1, -over, low))
        for (won_, side, off, shown), (mean, information) in zip(sides, seen, strict=True):
            rate = np.where(unsized, 0.0, RATE * np.clip(FADE * (1 - off), 0, 1) * slack)
            held = won_[row, at]
            most = wholly(STAKE, partly(STAKE, held) + self._odds * UP - shown) - held
            won_[row, at] += won_at_most(most, side * mean, information, rate, surely)

    def _bet_on_sides(
        self, places: Places, at: Int64, row: Int64, fresh: Float64, seen: tuple[Float64, Float64]
    ) -> None:
        """Settle bets that the quantile is past the place, and that it is not."""
        mean, information = seen
        held = places.information[row, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(held > 0, places.totals[row, at] / held - self.goal[at], 0.0)
            for won_, side in ((places.past, 1), (places.before, -1)):
                rate = np.where(held > 0, np.maximum(-side * off, 0.0), GUESSED / np.sqrt(fresh))
                gained = won(side * mean, information, rate)
                won_[row, at] += np.where(held > 0, gained, partly(GUESSED_STAKE, gained))

    def _off(self, at: Int64, slack: Float64) -> Float64:
        """Return how many slacks off each place seems to be, as far as it is known; NaN where there is no place."""
        places = self.places
        held = places.information[:, at]
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(held > 0, places.totals[:, at] / held - self.goal[at], 0.0) / slack
        return np.where(places.thresholds[:, at] >= 0, off * held / (held + PRIOR / slack**2), np.nan)

    def _claim(self, at: Int64) -> None:
        """Say what all bets together have shown by now; what was shown before stays."""
        ladder, leaves = Ladder.of(self.places, at), self.plan.asked.leaves
        aside = len(self.aside.thresholds)
        if aside:
            self._narrow(at, Ladder.of(self.places.beside(self.aside), at))
        if not len(ladder.thresholds):
            return
        odds = self._odds
        most = np.where(ladder.seen & (ladder.high >= odds), ladder.thresholds, -1).max(axis=0)
        least = np.where(ladder.seen & (ladder.low >= odds), ladder.thresholds, leaves).min(axis=0)
        self.most[at], self.least[at] = np.maximum(self.most[at], most), np.minimum(self.least[at], least)
        if not aside:
            self._narrow(at, ladder)
        self.good[at] = (self.least[at] <= self.most[at] + 1) & bool(self.plan.asked.rank)
        good = at[self.good[at]]
        self.low[good] = np.minimum(self.low[good], self.most[good] + 1)
        self.high[good] = np.maximum(self.high[good], self.least[good])
        self.active[at] &= ~self.good[at] & (self.low[at] < self.high[at]) & ~self.within(at)

    def _narrow(self, at: Int64, ladder: Ladder) -> None:
        """Leave out leaves at both ends of the range that the quantile is not among."""
        leaves, outside = self.plan.asked.leaves, ladder.outside >= -np.log(self.plan.beta * self.plan.interval_share)
        upto = np.where(ladder.seen, ladder.thresholds, leaves - 1)
        ends, ones = np.vstack([upto, np.full((1, len(at)), leaves - 1)]), np.zeros((1, len(at)), np.int64)
        starts = np.vstack([ones, upto + 1])
        gone = np.logical_and.accumulate(outside | (ends < self.low[at]), axis=0)
        low = np.maximum(np.where(gone, ends + 1, 0).max(axis=0), self.low[at])
        gone = np.logical_and.accumulate((outside | (starts > self.high[at]))[::-1], axis=0)[::-1]
        high = np.minimum(np.where(gone, starts - 1, leaves - 1).min(axis=0), self.high[at])
        sane = low <= high
        self.low[at], self.high[at] = np.where(sane, low, self.low[at]), np.where(sane, high, self.high[at])

    @property
    def _odds(self) -> float:
        """The logarithm of what bets on a rank have to win; infinity without a rank target."""
        chance = self.plan.beta * (1 - self.plan.interval_share)
        return -float(np.log(chance)) if chance else np.inf

    def next(self, at: Int64) -> tuple[Int64, Int64, Int64]:
        """Return the next threshold of each group, and the grains of D and of the count there."""
        plan = self.plan
        place, grains = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        known, rows = self._clear(at), self._rough(at)
        if known.any():
            found = self._scouts(at[known]).next()
            wanted = np.maximum(np.ceil(found.information / plan.per_grain), 1)
            place[known] = found.place
            grains[known] = np.minimum(wanted, MOST_GRAINS // 2).astype(np.int64)
            rows[known] = np.where(found.bets, np.ceil(wanted * plan.count_share), 0)
        return place, grains, np.minimum(rows, MOST_GRAINS // 2).astype(np.int64)

    def _rough(self, at: Int64, ahead: int = AHEAD) -> Float64:
        """Return the grains of the next count of groups whose rows are not known yet."""
        held = np.round(self.counted[at] / self.plan.count_per_grain)
        usual = np.maximum(ahead * held, min(FIRST_GRAINS, max(self.plan.cap_grains // 8, 1)))
        return usual if self.plan.spend else next_count(held, usual, self._tells_none)

    @property
    def _tells_none(self) -> float:
        """The grains of a count by which a group is given up that seems to have no rows."""
        plan = self.plan
        by_one = HOPELESS * plan.beside_count * plan.count_per_grain / (NOISES * plan.asked.slack) ** 2
        return plan.cap_grains * plan.per_grain / by_one

    def _clear(self, at: Int64) -> Flags:
        """Return which groups' rows stand out from the noise."""
        return np.asarray(self.total[at] > CLEARLY * np.sqrt(self.counted[at]))

    def most_rows(self, at: Int64) -> Float64:
        """Return the rows of groups as far as the count tells, and `NOISES` more; NaN before any."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.maximum(self.total[at] / self.counted[at], 0) + NOISES / np.sqrt(self.counted[at]))

    def _hopeless(self, at: Int64) -> Flags:
        """Return which groups are too small for their target, as far as the count tells."""
        plan = self.plan
        with np.errstate(divide="ignore", invalid="ignore"):
            least = HOPELESS * plan.beside_count / (plan.asked.slack * self.most_rows(at)) ** 2 / plan.per_grain
        return np.asarray((self.counted[at] > 0) & ~(least <= plan.cap_grains) & (not plan.spend))

    def _scouts(self, at: Int64) -> Scouts:
        """Return what the searches of these groups see."""
        ladder, slack = Ladder.of(self.places, at), self.plan.asked.slack * self.rows[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(ladder.seen, ladder.totals / ladder.information - self.goal[at], np.nan)
            part = off / slack * ladder.information / (ladder.information + PRIOR / slack**2)
        up = np.where(self.most[at] >= ladder.thresholds, 0.0, self._needed(part, ladder.high))
        down = np.where(self.least[at] <= ladder.thresholds, 0.0, self._needed(-part, ladder.low))
        rows, asked = self.rows[at], self.plan.asked
        below = -(asked.lane_steps / WHOLE + asked.beside) * rows
        return Scouts(
            ladder, slack, rows, off, (below, below + rows), up / slack**2, down / slack**2, self.most[at], asked.leaves
        )

    def _needed(self, part: Float64, held: Float64) -> Float64:
        """Return the information, times the squared slack, until bets on ranks so far off have won enough."""
        rate = RATE * np.clip(FADE * (1 - part), 0.02, 1)
        return np.maximum(self._odds - held, 0) / np.maximum(rate * (1 - part) - rate**2 / 2, 1e-3) / STAKE


def started(
    plan: BisectionPlan, trail: Trail, settled: Flags, measure: Measure | None, measure_count: MeasureCount | None
) -> dict[str, Any]:
    """Return where each group stands at the start of a run: the whole range, nothing read."""
    groups, leaves = len(trail.paid), plan.asked.leaves
    none, nothing, no = np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.bool_)
    return {
        "plan": plan, "trail": trail, "measure": measure, "measure_count": measure_count,
        "low": none.copy(), "high": none + leaves - 1, "spent": none.copy(), "rows": nothing + np.nan,
        "goal": nothing.copy(), "active": ~settled, "waits": no.copy(), "good": no.copy(), "least": none + leaves - 1,
        "most": none - 1, "depth": none.copy(), "middle": none.copy(), "places": Places.none(groups),
        "aside": Places.none(groups), "counted": nothing.copy(), "total": nothing.copy(),
    }  # fmt: skip


def next_count(held: Float64, usual: Float64, tells: float) -> Float64:
    """Return the grains of the next count: as usual, but no more than tells of groups that they have no rows, or, once
    that was counted, little more than that.

    >>> next_count(np.array([16.0, 80.0, 100.0]), np.array([48.0, 240.0, 300.0]), 99.5).tolist()
    [48.0, 20.0, 50.0]
    """
    enough = np.ceil(tells * UP)
    return np.asarray(np.where(held < enough, np.minimum(usual, enough - held), np.ceil(SLOWLY * held)))


def surely(grains: Int64) -> Float64:
    """Return what the variance of looks, times the information that is told of them, is no less than."""
    return np.asarray(grains / (grains + 1.0) / _ROUNDED)  # a look at several is told in whole grains, rounded down


def _kind(plan: BisectionPlan) -> int:
    """Return what a trail says of the looks of a plan."""
    return made_for(plan.asked.steps, plan.asked.slack)
