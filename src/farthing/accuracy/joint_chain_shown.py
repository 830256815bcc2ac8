"""Where a joint search under a pure budget looks next: a guess from what all rounds showed, which promises nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.joint_chain_guess import EXACT, LUMP, Guess, guessed
from farthing.accuracy.laplace_sums import weighted_reach
from farthing.accuracy.quantile_chain_run import LEVELS, STEPS
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chains import QuantileChains

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

FIRST: Final = 18
"""The first look of all costs one part in 2^18 of the cap."""

AHEAD: Final = STEPS
"""Until rows are roughly known each look is so many levels above the last: at twice its epsilon."""

CLEARLY: Final = 4.0
"""Rows are roughly known when there are this many times their noise."""

READY: Final = 0.6
"""A round may prove something where D is known within so many slacks,"""

PROVES: Final = 0.5
"""and its first look has so many slacks of noise,"""

FINER: Final = 0.8
"""this part of it after each round that failed,"""

FINEST: Final = 0.3
"""and no less than this part of it."""

CLOSER: Final = 0.3
"""Other rounds have a noise of so large a part of how well D is known."""

STAYS: Final = 0.6
"""A round goes on while a threshold seems to be off by fewer slacks than this,"""

LONGER: Final = 0.08
"""by so many more after each that failed,"""

LONGEST: Final = 0.85
"""and no more than this;"""

NEED: Final = 2.2
"""to where it is sure by about so many standard deviations,"""

NEXT: Final = STEPS // 2
"""by at least so many levels, and twice as many at most."""

HOPELESS: Final = 3.0
"""A group is given up where this epsilon over the slack, times the noise of all ranks, is more than its cap."""

TOGETHER: Final = STEPS
"""Those that are not ready are looked at together where they ask for no more levels than so many above the least."""

PART: Final = 0.3
"""A look at several is at the level that so large a part of them asks for, or less."""

MORE: Final = 3
"""So many thresholds more may be for a quantile that is not ready, if there is room."""

FAILED: Final = 2.0**-3
"""Where no more of beta is left, rounds have failed, and what lies between places is not trusted any more."""

_END: Final = np.iinfo(np.int64).max


class Sides(NamedTuple):
    """What a round showed last on both sides of one threshold: rows, of how many bins, with which scale of noise."""

    place: Int64
    below: Float64
    above: Float64
    under: Int64
    over: Int64
    scale: Float64

    def off(self, share: float) -> Float64:
        """Return how many rows more than a share of all lie at or below it."""
        return np.asarray((1 - share) * self.below - share * self.above)

    def reach(self, share: float, chance: Float64) -> Float64:
        """Return how far that is off its truth, with these chances on either side."""
        return weighted_reach(share, self.under, self.over, chance, self.scale)


class JointWish(NamedTuple):
    """What the next looks are to be.

    Attributes:
        places, owners: int64[thresholds, n], those of another round, where one begins.
        level, goes_on: the place in `LEVELS` of the look, and whether the last round goes on.
    """

    places: Int64
    owners: Int64
    level: Int64
    goes_on: Flags


class RoundAhead(NamedTuple):
    """The round that is looked at next: all of it is of one round.

    Attributes:
        number: which round it is.
        places, owners: int64[thresholds, n], its thresholds, and which quantile each is for.
        shown, farthings: int64[thresholds + 1, n], what its bins showed last, and at how many; 0 where it begins.
    """

    number: Int64
    places: Int64
    owners: Int64
    shown: Int64
    farthings: Int64


@dataclass(slots=True, eq=False)
class SeenRounds:
    """What every round showed last.

    Attributes:
        plans: the plan of each quantile alone.
        newest: int64[groups], the last round; -1 before any.
        levels: int64[rounds, groups], the place in `LEVELS` of its last look; -1 for no round.
        places: int64[rounds, thresholds, groups], rising; -1 for none, at the end.
        owners: int64[rounds, thresholds, groups], which quantile each is for.
        shown: int64[rounds, thresholds + 1, groups], rows in the bins.
        below: float64[rounds, thresholds, groups], rows at or below each threshold.
        whole: float64[rounds, groups], all rows.
        bins: int64[rounds, groups], how many there are.
    """

    plans: tuple[QuantileChains, ...]
    newest: Int64
    levels: Int64
    places: Int64
    owners: Int64
    shown: Int64
    below: Float64
    whole: Float64
    bins: Int64

    @classmethod
    def nothing(cls, plans: tuple[QuantileChains, ...], groups: int, wide: int) -> SeenRounds:
        """Return what is seen before any look, in rounds of so many thresholds at most."""
        none, table = np.zeros((0, groups)), np.zeros((0, wide, groups))
        count, whole = none.astype(np.int64), table.astype(np.int64)
        shown = np.zeros((0, wide + 1, groups), np.int64)
        return cls(plans, np.full(groups, -1), count, whole, whole, shown, table, none, count)

    @property
    def reach(self) -> int:
        """The most rows of one unit in a group."""
        return self.plans[0].asked.max_rows

    def level_of(self, at: Int64) -> Int64:
        """Return the level of the last look of some groups; 0 before any."""
        if not len(self.levels):
            return np.zeros(len(at), np.int64)
        return self.levels[np.maximum(self.newest[at], 0), at]

    def ahead(self, at: Int64, wish: JointWish) -> RoundAhead:
        """Return the rounds that are looked at next.

        Guarantee: where a round goes on, its thresholds and owners are those it began with, whatever was wished.
        Proof: `see` keeps the places and owners of a round with what their bins showed, and all is taken from there.
        Assumes: nothing.
        Rounds: nothing.
        """
        begins = ~wish.goes_on | (self.newest[at] < 0)
        if not len(self.levels):
            none = np.zeros((self.shown.shape[1], len(at)), np.int64)
            return RoundAhead(np.zeros(len(at), np.int64), wish.places, wish.owners, none, none[0])
        newest = np.maximum(self.newest[at], 0)
        places, owners, shown = (one[newest, :, at].T for one in (self.places, self.owners, self.shown))
        return RoundAhead(
            self.newest[at] + begins, np.where(begins, wish.places, places), np.where(begins, wish.owners, owners),
            np.where(begins, 0, shown), np.where(begins, 0, LEVELS[self.levels[newest, at]]),
        )  # fmt: skip

    def see(  # noqa: PLR0917  # one look, as it is kept
        self, at: Int64, rounds: Int64, level: Int64, places: Int64, owners: Int64, shown: Int64
    ) -> None:
        """Keep what the next look at each of some groups showed, in place of the last one of its round."""
        while len(self.levels) <= rounds.max():
            for name in ("levels", "places", "owners", "shown", "below", "whole", "bins"):
                table = getattr(self, name)
                setattr(self, name, np.concatenate([table, np.full((1, *table.shape[1:]), -1, table.dtype)]))
        bins = (places >= 0).sum(axis=0) + 1
        added = np.cumsum(np.where(np.arange(len(shown))[:, None] < bins, shown, 0), axis=0)
        self.newest[at] = rounds
        self.levels[rounds, at], self.bins[rounds, at], self.whole[rounds, at] = level, bins, added[-1]
        self.places[rounds, :, at], self.shown[rounds, :, at] = places.T, shown.T
        self.owners[rounds, :, at], self.below[rounds, :, at] = owners.T, added[:-1].T

    def sides(self, at: Int64, column: int) -> Sides:
        """Return what the last look at some groups showed on both sides of one of its thresholds."""
        newest = self.newest[at]
        below = self.below[newest, column, at]
        scale = self.reach / (LEVELS[self.levels[newest, at]] * float(FARTHING))
        under = np.full(len(at), column + 1)
        return Sides(
            self.places[newest, column, at], below, self.whole[newest, at] - below, under,
            self.bins[newest, at] - under, scale,
        )  # fmt: skip

    def rows(self, at: Int64) -> tuple[Float64, Float64]:
        """Return the rows, and their noise."""
        if not len(self.levels) or not at.size:
            return np.zeros(len(at)), np.full(len(at), np.inf)
        rate = np.where(self.levels[:, at] >= 0, LEVELS[np.maximum(self.levels[:, at], 0)], 0) * float(FARTHING)
        weight = rate**2 / (2 * np.maximum(self.bins[:, at], 1)) / self.reach**2
        total = weight.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (weight * self.whole[:, at]).sum(axis=0) / total, 1 / np.sqrt(total)

    def hopeless(self, at: Int64, active: Flags, cap: int) -> Flags:
        """Return which quantiles of some groups are too small for their target, as far as the count tells."""
        rows, noise = self.rows(at)
        out = np.zeros((len(self.plans), len(at)), np.bool_)
        for number, plan in enumerate(self.plans):
            with np.errstate(invalid="ignore"):
                most = plan.asked.slack * (np.maximum(rows, 0) + 2 * noise)
                need = HOPELESS * _units(plan.centre, active.sum(axis=0)) * self.reach / most / float(FARTHING)
            out[number] = need > cap
        return out & (self.newest[at] >= 0)

    def guess(self, at: Int64, left: Float64) -> Guess:
        """Return where each quantile of some groups seems to be, [quantiles, n]; so much of beta is left to each."""
        goals = np.array([plan.centre for plan in self.plans])
        slack = np.array([_room(plan) for plan in self.plans])
        rows = np.maximum(self.rows(at)[0], 1.0)
        told = zip(at.tolist(), rows, (left <= FAILED).T, strict=True)
        each = [self._one(one, (goals, slack), float(many), failed) for one, many, failed in told]
        return Guess(*(np.stack(column, axis=1) for column in zip(*each, strict=True)))

    def _one(
        self, group: int, wanted: tuple[Float64, Float64], rows: float, failed: Flags
    ) -> tuple[Float64 | Int64, ...]:
        """Return the guesses for one group: what rises with the thresholds and is nearest to what was shown."""
        places, below = self.places[:, :, group], self.below[:, :, group]
        met = (places >= 0) & (self.levels[:, group] >= 0)[:, None]
        bins = np.broadcast_to(self.bins[:, group, None], met.shape)[met]
        under = np.broadcast_to(np.arange(met.shape[1]) + 1, met.shape)[met]
        scale = self.reach / (LEVELS[np.maximum(self.levels[:, group], 0)] * float(FARTHING))
        scale = np.broadcast_to(scale[:, None], met.shape)[met]
        whole = np.maximum(np.broadcast_to(self.whole[:, group, None], met.shape)[met], 1.0)
        share = np.clip(below[met] / whole, 0.0, 1.0)
        variance = 2 * scale**2 * ((1 - share) ** 2 * under + share**2 * (bins - under))
        last = self.plans[0].asked.leaves - 1
        place = np.concatenate([[-1], places[met], [last]]).astype(np.float64)
        shown = np.concatenate([[0.0], below[met] / whole * rows, [rows]])
        weight = np.concatenate([[EXACT], 1 / variance, [EXACT]])
        order = np.argsort(place, kind="stable")
        place, shown, weight = place[order], shown[order], weight[order]
        return guessed((place, shown, weight), wanted[0] * rows, wanted[1] * rows, failed)

    def _pair(self, found: Guess, slack: Float64) -> Flags:
        """Return where one leaf seems to hold so many rows that it is the quantile's, whatever its rank."""
        return (found.right - found.left <= 1) & (found.gap > LUMP * slack)

    def worth(self, at: Int64, left: Float64) -> Flags:
        """Return where a round may prove something: where the quantile's place is well enough known before it."""
        if not len(self.levels) or not at.size:
            return np.zeros((len(self.plans), len(at)), np.bool_)
        found, slack = self.guess(at, left), self._slack(at)
        return (self.newest[at] >= 0) & self._ready(found, slack)

    def _slack(self, at: Int64) -> Float64:
        """Return the slack of each quantile in rows, as far as known."""
        rows = np.maximum(self.rows(at)[0], 1.0)
        return np.array([[_room(plan)] for plan in self.plans]) * rows

    def _ready(self, found: Guess, slack: Float64) -> Flags:
        """Return which quantiles are known well enough for a proof."""
        return (found.doubt <= READY * slack) | self._pair(found, slack)

    def fine(self, at: Int64, thresholds: Int64) -> Int64:
        """Return the levels from which on a round of so many thresholds is fine enough for a proof."""
        noise = np.stack([_alone(plan.centre) * _units(plan.centre, thresholds) for plan in self.plans])
        return self._level(noise * self.reach / (PROVES * self._slack(at)))

    def next(self, at: Int64, active: Flags, part: Float64, left: Float64, cap: int) -> JointWish:
        """Return the next looks at some groups, of which all else is [quantiles, n].

        Args:
            at: the groups.
            active: which quantiles are looked for.
            part: of beta that the present round may use up for each.
            left: the part of it that no round has yet.
            cap: the farthings that a group may pay.
        """
        rows, noise = self.rows(at)
        known, newest = rows > CLEARLY * noise, self.newest[at]
        goes_on = (newest >= 0) & ~known
        places, owners = np.full((2, self.places.shape[1], len(at)), -1)
        for number, plan in enumerate(self.plans):
            start = min(max(int(plan.asked.leaves * plan.centre) - 1, 0), plan.asked.leaves - 2)
            places[number], owners[number] = start, number
        order = np.argsort(places[: len(self.plans)], axis=0, kind="stable")
        places[: len(order)], owners[: len(order)] = (
            np.take_along_axis(one[: len(order)], order, axis=0) for one in (places, owners)
        )
        first = self._level(np.full(len(at), cap * float(FARTHING) / 2**FIRST))
        level = np.where(goes_on, self._rough(at, active.sum(axis=0), cap), first)
        if (some := np.flatnonzero(known)).size:
            wish = self._sought(at[some], active[:, some], part[:, some] > 0, -np.log2(left[:, some]))
            places[:, some], owners[:, some], level[some], goes_on[some] = wish
        return JointWish(places, owners, np.minimum(level, len(LEVELS) - 1), goes_on)

    def _rough(self, at: Int64, thresholds: Int64, cap: int) -> Int64:
        """Return the next level where rows are not known: no more than it takes to see that there are too few."""
        last, slack = self.level_of(at), max(plan.asked.slack for plan in self.plans)
        alone = 3 * np.sqrt(2 * (thresholds + 1)) * slack / HOPELESS / _units(0.5, thresholds) * cap * float(FARTHING)
        return np.asarray(np.minimum(last + AHEAD, np.maximum(self._level(alone), last + AHEAD // 4)))

    def _sought(self, at: Int64, active: Flags, proves: Flags, failed: Float64) -> JointWish:
        """Return the next looks where rows are known: the present round goes on, or another one begins."""
        slack, found = self._slack(at), self.guess(at, 2.0**-failed)
        need = self._needs(at, slack, np.minimum(STAYS + LONGER * (failed - 1), LONGEST))
        stays = active & proves & self._ready(found, slack) & np.isfinite(need)
        goes_on, last = np.asarray(stays.any(axis=0)), self.level_of(at)
        wished = np.where(stays, self._level(np.where(stays, need, 0.0)), 0)
        more = last + NEXT * np.clip(-(-(self._lowest(wished, stays) - last) // NEXT), 1, 2)
        ready, aim = self._ready(found, slack), PROVES * np.maximum(FINER**failed, FINEST) * slack
        ask = np.where(ready, aim, np.maximum(CLOSER * found.doubt, aim))
        noise = np.stack([_alone(plan.centre) * _units(plan.centre, active.sum(axis=0)) for plan in self.plans])
        level = self._level(noise * self.reach / ask)
        least = np.where(active & ~ready, level, _END - TOGETHER).min(axis=0)
        waits = (active & ~ready).any(axis=0)
        entries = active & np.where(waits, ~ready & (level <= least + TOGETHER), ready)
        places, owners = self._placed(found, entries, ready, self._pair(found, slack))
        return JointWish(places, owners, np.where(goes_on, more, self._lowest(level, entries)), goes_on)

    def _lowest(self, level: Int64, entries: Flags) -> Int64:
        """Return the level that a part of these quantiles asks for, or less."""
        row = np.floor(PART * np.maximum(entries.sum(axis=0) - 1, 0)).astype(np.int64)
        return np.asarray(np.sort(np.where(entries, level, len(LEVELS)), axis=0)[row, np.arange(level.shape[1])])

    def _needs(self, at: Int64, slack: Float64, most: Float64) -> Float64:
        """Return the epsilon at which the present round is likely to prove what it is for; infinite where it is not."""
        newest, wide = self.newest[at], self.places.shape[1]
        now, owned, need = self.places[newest, :, at].T, self.owners[newest, :, at].T, np.full(slack.shape, np.inf)
        epsilon = LEVELS[self.levels[newest, at]] * float(FARTHING)
        for number, plan in enumerate(self.plans):
            own, off, share = owned == number, self._offs(number, at), plan.centre
            column = np.where(own, np.abs(off), np.inf).argmin(axis=0)
            away = np.abs(np.take_along_axis(off, column[None], axis=0)[0])
            under, over = column + 1, self.bins[newest, at] - column - 1
            noise = np.sqrt(2 * ((1 - share) ** 2 * under + share**2 * over)) * self.reach
            ends = np.stack([own.argmax(axis=0), wide - 1 - own[::-1].argmax(axis=0)])
            apart = np.diff(np.take_along_axis(now, ends, axis=0), axis=0)[0]
            lower, upper = np.take_along_axis(off, ends, axis=0)
            both = (own.sum(axis=0) == 2) & (apart == 1) & (lower <= 0) & (upper >= 0)
            near = own.any(axis=0) & (away <= most[number] * slack[number])
            fine = noise / epsilon <= 1.5 * PROVES * slack[number]
            side = np.where(both, np.minimum(away, np.where(near, away, np.maximum(lower, -upper))), away)
            room = np.maximum(slack[number] - side, 0.1 * slack[number])
            need[number] = np.where(fine & (near | both), NEED * noise / room, np.inf)
        return need

    def _placed(self, found: Guess, entries: Flags, ready: Flags, pairs: Flags) -> tuple[Int64, Int64]:
        """Return the thresholds of new rounds, rising, and which quantile each is for.

        One that is ready gets one, or those on both sides of its leaf; another the likeliest and a few around it.
        """
        wide, groups = self.places.shape[1], entries.shape[1]
        places, owners = np.full((wide, groups), _END), np.full((wide, groups), -1)
        used, spare = np.zeros(groups, np.int64), wide - entries.sum(axis=0)
        extra = np.minimum(spare // np.maximum(entries.sum(axis=0), 1), MORE)
        for number in range(len(self.plans)):
            one = Guess(*(each[number] for each in found))
            pair = pairs[number] & ready[number] & (one.left >= 0) & (spare > 0)
            many = np.where(entries[number], 1 + np.where(ready[number], pair, extra), 0)
            spare = spare - np.where(entries[number] & pair, 1, 0)
            for step in range(int(many.max(initial=0))):
                here = np.flatnonzero(many > step)
                spread = one.first[here] + (one.last - one.first)[here] * (step + 1) // (many[here] + 1)
                where = np.where(step == many[here] // 2, one.place[here], spread)
                where = np.where(pair[here], one.right[here] - step, where)
                where = np.where(
                    many[here] == 1, np.where(pairs[number, here], one.right[here], one.place[here]), where
                )
                places[used[here], here] = np.clip(where, 0, self.plans[number].asked.leaves - 2)
                owners[used[here], here] = number
                used[here] += 1
        order = np.argsort(places, axis=0, kind="stable")
        places, owners = np.take_along_axis(places, order, axis=0), np.take_along_axis(owners, order, axis=0)
        return np.where(places == _END, -1, places), owners

    def _offs(self, number: int, at: Int64) -> Float64:
        """Return how far D seems to be off at each threshold of the newest round."""
        share, newest = self.plans[number].centre, self.newest[at]
        below = self.below[newest, :, at].T
        return (1 - share) * below - share * (self.whole[newest, at] - below)

    def _level(self, epsilon: Float64) -> Int64:
        """Return the least levels of at least these epsilons."""
        farthings = np.minimum(np.nan_to_num(epsilon, nan=0.0, posinf=2.0**60) / float(FARTHING), MOST_FARTHINGS)
        return np.maximum(np.searchsorted(LEVELS, farthings), self.plans[0].lowest)


def _room(plan: QuantileChains) -> float:
    """Return how far a rank may be off where a proof of it can end: what is beyond all rows is never proved."""
    return min(plan.upper - plan.centre, plan.centre - plan.lower)


def _alone(share: float) -> float:
    """Return the noise of a rank of which both sides are shown, over the scale of a bin."""
    return float(np.sqrt(2 * ((1 - share) ** 2 + share**2)))


def _units(share: float, thresholds: Int64) -> Float64:
    """About how much more noise a rank has than alone, beside so many thresholds that lie evenly around it."""
    bins = np.maximum(thresholds, 1) + 1
    under = np.clip(np.rint(share * bins), 1, np.maximum(bins - 1, 1))
    return np.asarray(np.sqrt(((1 - share) ** 2 * under + share**2 * (bins - under)) / ((1 - share) ** 2 + share**2)))
