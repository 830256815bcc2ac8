"""Where a joint search under a pure budget looks next: a guess from what all rounds showed, which promises nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from farthing.accuracy.quantile_chain_run import LEVELS, STEPS
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chains import QuantileChains

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

CLEARLY: Final = 4.0
AHEAD: Final = 4
FIRST: Final = 18
LIKELY: Final = 2.0
GAP: Final = 0.15
CLOSER: Final = 0.3
PROVES: Final = 0.5
STAYS: Final = 0.6
READY: Final = 0.6
NEED: Final = 2.2
NEXT: Final = 2
TOGETHER: Final = STEPS
HOPELESS: Final = 1.5
PART: Final = 0.3
LINE: Final = 2.5
STRAIGHT: Final = 3.0
LUMP: Final = 0.7
WINDOW: Final = 1.5
WINDOW_NOISE: Final = 2.0
FITS: Final = 1.8
INNER: Final = 0.6
FINER: Final = 0.8
FINEST: Final = 0.3
LONGER: Final = 0.08
LONGEST: Final = 0.85
_END: Final = np.iinfo(np.int64).max


class Sides(NamedTuple):
    """What a round showed last on both sides of one threshold."""

    place: Int64
    below: Float64
    above: Float64
    under: Int64
    over: Int64
    scale: Float64


class JointWish(NamedTuple):
    """What the next looks are to be."""

    places: Int64
    owners: Int64
    level: Int64
    goes_on: Flags


class Guess(NamedTuple):
    """Where a quantile seems to be: between which thresholds, in leaves and rows, and how surely."""

    left: Int64  # the last threshold that seems to lie below
    right: Int64
    first: Int64  # the last that is likely to
    last: Int64
    place: Int64
    gap: Float64
    noise: Float64
    doubt: Float64  # how far D may be off at `place`


@dataclass(slots=True, eq=False)
class Sight:
    """What every round showed last: [rounds, thresholds, groups] where nothing else is said."""

    plans: tuple[QuantileChains, ...]
    newest: Int64  # [groups]
    levels: Int64  # [rounds, groups]
    places: Int64
    owners: Int64
    shown: Int64
    below: Float64
    whole: Float64  # [rounds, groups]
    bins: Int64  # [rounds, groups]
    stays: Flags  # [quantiles, groups]

    @classmethod
    def nothing(cls, plans: tuple[QuantileChains, ...], groups: int, wide: int) -> Sight:
        none, table = np.zeros((0, groups)), np.zeros((0, wide, groups))
        whole = np.zeros((0, groups), np.int64)
        return cls(
            plans, np.full(groups, -1), whole, table.astype(np.int64), table.astype(np.int64), np.zeros((0, wide + 1, groups), np.int64),
            table, none, whole, np.zeros((len(plans), groups), np.bool_),
        )  # fmt: skip

    @property
    def reach(self) -> int:
        return self.plans[0].asked.max_rows

    def level_of(self, at: Int64) -> Int64:
        """Return the level of the last look of some groups; 0 before any."""
        if not len(self.levels):
            return np.zeros(len(at), np.int64)
        return self.levels[np.maximum(self.newest[at], 0), at]

    def last_shown(self, at: Int64) -> Int64:
        if not len(self.levels):
            return np.zeros((self.shown.shape[1], len(at)), np.int64)
        return self.shown[np.maximum(self.newest[at], 0), :, at].T

    def see(self, at: Int64, rounds: Int64, level: Int64, places: Int64, owners: Int64, shown: Int64) -> None:
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
        if not len(self.levels):
            return np.zeros(len(at)), np.full(len(at), np.inf)
        rate = np.where(self.levels[:, at] >= 0, LEVELS[np.maximum(self.levels[:, at], 0)], 0) * float(FARTHING)
        weight = rate**2 / (2 * np.maximum(self.bins[:, at], 1)) / self.reach**2
        total = weight.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (weight * self.whole[:, at]).sum(axis=0) / total, 1 / np.sqrt(total)

    def hopeless(self, at: Int64, active: Flags, cap: int) -> Flags:
        rows, noise = self.rows(at)
        out = np.zeros((len(self.plans), len(at)), np.bool_)
        for number, plan in enumerate(self.plans):
            with np.errstate(invalid="ignore"):
                most = plan.asked.slack * (np.maximum(rows, 0) + 2 * noise)
                need = HOPELESS * _units(plan.centre, active.sum(axis=0)) * self.reach / most / float(FARTHING)
            out[number] = need > cap
        return out & (self.newest[at] >= 0)

    def guess(self, at: Int64) -> Guess:
        """Return where each quantile of some groups seems to be, [quantiles, n]."""
        goals = np.array([plan.centre for plan in self.plans])
        slack = np.array([plan.asked.slack for plan in self.plans])
        rows = np.maximum(self.rows(at)[0], 1.0)
        each = [self._one(one, goals, slack, float(many)) for one, many in zip(at.tolist(), rows, strict=True)]
        return Guess(*(np.stack(column, axis=1) for column in zip(*each, strict=True)))

    def _one(self, group: int, goals: Float64, slack: Float64, rows: float) -> tuple[Float64, ...]:
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
        weight = np.concatenate([[1e9], 1 / variance, [1e9]])
        order = np.argsort(place, kind="stable")
        place, shown, weight = place[order], shown[order], weight[order]
        fitted = isotonic_regression(shown, weights=weight)
        first = fitted.blocks[:-1]
        held = np.add.reduceat(weight, first)
        centre, mean = np.add.reduceat(weight * place, first) / held, fitted.x[first]
        low, high, noise = place[first], place[fitted.blocks[1:] - 1], 1 / np.sqrt(held)
        goal = goals * rows
        a, b = _around(mean, noise, goal)
        gap = np.maximum(mean[b] - mean[a], 1e-9)
        part = np.clip((goal - mean[a]) / gap, 0.0, 1.0)
        near = gap <= STRAIGHT * slack * rows
        left, right = np.where(near, centre[a], high[a]), np.where(near, centre[b], low[b])
        guess = np.rint(left + part * (right - left))
        mixed = np.hypot((1 - part) * noise[a], part * noise[b])
        apart = np.where(low[b] - high[a] > 1, gap * np.minimum(part, 1 - part) * 2, 0.0)
        inner = (np.arange(len(mean)) > a[:, None]) & (np.arange(len(mean)) < b[:, None])
        best = np.where(inner, noise, np.inf).argmin(axis=1)
        here = inner.any(axis=1) & (noise[best] <= INNER * slack * rows)
        guess = np.where(here, np.rint(centre[best]), guess)
        mixed, apart = np.where(here, noise[best], mixed), np.where(here, 0.0, apart)
        f, l = _around(mean, LIKELY * noise, goal)
        line, sure, good = _line(place, shown, weight, goal, slack * rows)
        good &= (line > -1) & (line < last) & ~((gap > LUMP * slack * rows) & (low[b] - high[a] <= 1))
        good &= (line >= np.minimum(high[f], high[a])) & (line <= np.maximum(low[l], low[b]))
        guess = np.where(good, np.rint(line), guess)
        mixed, apart = np.where(good, sure, mixed), np.where(good, 0.0, apart)
        return (
            high[a].astype(np.int64), low[b].astype(np.int64), np.minimum(high[f], high[a]).astype(np.int64), np.maximum(low[l], low[b]).astype(np.int64), guess.astype(np.int64), gap, mixed,
            np.hypot(mixed, GAP * apart),
        )  # fmt: skip

    def _pair(self, found: Guess, slack: Float64) -> Flags:
        """Return where one leaf seems to hold so many rows that it is the quantile's, whatever its rank."""
        return (found.right - found.left <= 1) & (found.gap > LUMP * slack)

    def worth(self, at: Int64) -> Flags:
        """Return where a round may prove something: where the quantile's place is well enough known before it."""
        if not len(self.levels) or not at.size:
            return np.zeros((len(self.plans), len(at)), np.bool_)
        found, slack = self.guess(at), self._slack(at)
        return (self.newest[at] >= 0) & self._ready(found, slack)

    def _slack(self, at: Int64) -> Float64:
        rows = np.maximum(self.rows(at)[0], 1.0)
        return np.array([[plan.asked.slack] for plan in self.plans]) * rows

    def _ready(self, found: Guess, slack: Float64) -> Flags:
        return (found.doubt <= READY * slack) | self._pair(found, slack)

    def fine(self, number: int, at: Int64) -> Flags:
        """Return where the last look is fine enough for a proof."""
        plan = self.plans[number]
        newest = self.newest[at]
        scale = self.reach / (LEVELS[self.levels[newest, at]] * float(FARTHING))
        noise = scale * _units(plan.centre, self.bins[newest, at] - 1) * _alone(plan.centre)
        return noise <= 1.05 * PROVES * plan.asked.slack * self.rows(at)[0]

    def next(self, at: Int64, active: Flags, part: Float64, left: Float64, cap: int) -> JointWish:
        """Return the next looks."""
        wide, many = self.places.shape[1], len(self.plans)
        rows, noise = self.rows(at)
        known = rows > CLEARLY * noise
        places, owners = np.full((wide, len(at)), -1), np.full((wide, len(at)), -1)
        level = np.full(len(at), self._level(cap * float(FARTHING) / 2**FIRST))
        goes_on = (self.newest[at] >= 0) & ~known
        level = np.where(goes_on, self.level_of(at) + AHEAD, level)
        for number, plan in enumerate(self.plans):
            start = min(max(int(plan.asked.leaves * plan.centre) - 1, 0), plan.asked.leaves - 2)
            places[number], owners[number] = start, number
        if len(self.levels):
            places[:, goes_on] = self.places[self.newest[at[goes_on]], :, at[goes_on]].T
            owners[:, goes_on] = self.owners[self.newest[at[goes_on]], :, at[goes_on]].T
        some = np.flatnonzero(known)
        if some.size:
            wish = self._sought(at[some], active[:, some], part[:, some] > 0, -np.log2(left[:, some]))
            places[:, some], owners[:, some], level[some], goes_on[some] = wish
        return JointWish(places, owners, np.minimum(level, len(LEVELS) - 1), goes_on)

    def _sought(self, at: Int64, active: Flags, proves: Flags, failed: Float64) -> JointWish:
        wide, many = self.places.shape[1], len(self.plans)
        shape = (many, len(at))
        slack, found = self._slack(at), self.guess(at)
        doubt, pair, ready = found.doubt, self._pair(found, slack), self._ready(found, slack)
        newest = self.newest[at]
        now, last = self.places[newest, :, at].T, self.levels[newest, at]
        owned = self.owners[newest, :, at].T
        epsilon = LEVELS[last] * float(FARTHING)
        # who stays
        stays = np.zeros(shape, np.bool_)
        need = np.full(shape, np.inf)
        for number, plan in enumerate(self.plans):
            own = owned == number
            off = self._offs(number, at)
            column = np.where(own, np.abs(off), np.inf).argmin(axis=0)
            side = np.take_along_axis(off, column[None], axis=0)[0]
            unit = _alone(plan.centre) * np.sqrt(
                ((1 - plan.centre) ** 2 * (column + 1) + plan.centre**2 * (self.bins[newest, at] - column - 1))
                / ((1 - plan.centre) ** 2 + plan.centre**2)
            )
            two = own.sum(axis=0) == 2
            first, second = own.argmax(axis=0), wide - 1 - own[::-1].argmax(axis=0)
            lower, upper = (np.take_along_axis(off, one[None], axis=0)[0] for one in (first, second))
            beside = np.take_along_axis(now, second[None], axis=0)[0] - np.take_along_axis(now, first[None], axis=0)[0]
            both = two & (beside == 1) & (lower <= 0) & (upper >= 0)
            near = own.any(axis=0) & (
                np.abs(side) <= np.minimum(STAYS + LONGER * (failed[number] - 1), LONGEST) * slack[number]
            )
            noise = unit * self.reach / epsilon
            stays[number] = active[number] & proves[number] & (near | both) & (noise <= 1.5 * PROVES * slack[number])
            far = np.where(both, np.maximum(lower, -upper), np.abs(side))
            room = slack[number] - np.where(both & ~near, far, np.minimum(np.abs(side), np.where(both, far, np.inf)))
            need[number] = NEED * unit * self.reach / np.maximum(room, 0.1 * slack[number])
        goes_on = stays.any(axis=0)
        wanted = np.where(stays, need, np.inf)
        rank = np.floor(PART * np.maximum(stays.sum(axis=0) - 1, 0)).astype(np.int64)
        go = np.sort(wanted, axis=0)[rank, np.arange(len(at))]
        go = np.clip(self._level(np.where(goes_on, go, 0)), last + NEXT, last + 2 * NEXT)
        # a new round
        aim = PROVES * np.maximum(FINER**failed, FINEST) * slack
        ask = np.where(ready, aim, np.maximum(CLOSER * doubt, aim))
        count = active.sum(axis=0)
        each = np.stack(
            [
                _alone(plan.centre) * _units(plan.centre, count) * self.reach / ask[number]
                for number, plan in enumerate(self.plans)
            ]
        )
        level = np.where(active, self._level(each), _END)
        far = active & ~ready & (level <= level.min(axis=0) + TOGETHER)
        waiting = (active & ~ready).any(axis=0)
        entries = np.where(waiting, far, active)
        top = np.floor(PART * np.maximum(entries.sum(axis=0) - 1, 0)).astype(np.int64)
        fresh = np.sort(np.where(entries, level, _END), axis=0)[top, np.arange(len(at))]
        places, owners = self._placed(found, entries, ready, pair, wide)
        places = np.where(goes_on, now, places)
        owners = np.where(goes_on, self.owners[newest, :, at].T, owners)
        return JointWish(places, owners, np.where(goes_on, go, fresh), goes_on)

    def _placed(self, found: Guess, entries: Flags, ready: Flags, pairs: Flags, wide: int) -> tuple[Int64, Int64]:
        n = entries.shape[1]
        places, owners = np.full((wide, n), _END), np.full((wide, n), -1)
        used = np.zeros(n, np.int64)
        spare = wide - entries.sum(axis=0)
        count = entries.sum(axis=0)
        extra = np.where(count > 0, spare // np.maximum(count, 1), 0)
        for number in range(len(self.plans)):
            one = Guess(*(each[number] for each in found))
            pair = pairs[number]
            mine = np.flatnonzero(entries[number])
            m = np.where(ready[number], np.where(pair & (one.left >= 0) & (spare > 0), 2, 1), 1 + np.minimum(extra, 3))
            spare = spare - np.where(entries[number] & ready[number], m - 1, 0)
            for step in range(int(m[mine].max(initial=0))):
                here = mine[m[mine] > step]
                spread = one.first[here] + (one.last - one.first)[here] * (step + 1) // (m[here] + 1)
                crossing = np.where(m[here] == 1, True, step == (m[here]) // 2)
                where = np.where(crossing, one.place[here], spread)
                where = np.where(
                    pair[here] & ready[number, here], np.where(step == 0, one.right[here], one.left[here]), where
                )
                leaves = self.plans[number].asked.leaves
                places[used[here], here] = np.clip(where, 0, leaves - 2)
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
        farthings = np.minimum(np.nan_to_num(epsilon, nan=0.0, posinf=2.0**60) / float(FARTHING), MOST_FARTHINGS)
        return np.maximum(np.searchsorted(LEVELS, farthings), self.plans[0].lowest)


def _around(mean: Float64, spare: Float64, goal: Float64) -> tuple[Int64, Int64]:
    """Return the last place that lies below each goal by more than is spare, and the first after it that lies above."""
    place = np.arange(len(mean))
    first = np.where(mean + spare < goal[:, None], place, 0).max(axis=1)
    above = (mean - spare > goal[:, None]) & (place > first[:, None])
    return first, np.where(above, place, len(mean) - 1).min(axis=1)


def _line(
    place: Float64, shown: Float64, weight: Float64, goal: Float64, slack: Float64
) -> tuple[Float64, Float64, Flags]:
    """Return where a straight line through what is near each goal crosses it, how surely, and whether it fits."""
    off = shown - goal[:, None]
    near = np.abs(off) <= WINDOW * slack[:, None] + WINDOW_NOISE / np.sqrt(weight)
    near[:, [0, -1]] = False
    used = np.where(near, weight, 0.0)
    total = used.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, mean = (used * place).sum(axis=1) / total, (used * off).sum(axis=1) / total
        away = place - middle[:, None]
        spread = (used * away**2).sum(axis=1)
        slope = (used * away * off).sum(axis=1) / spread
        line = middle - mean / slope
        left = off - mean[:, None] - slope[:, None] * away
        worse = (used * left**2).sum(axis=1)
        noise = np.sqrt(1 / total + (line - middle) ** 2 / spread)
        fits = (near.sum(axis=1) >= 3) & (slope > 0) & np.isfinite(line) & (worse <= FITS * near.sum(axis=1))
        fits &= (np.where(near, off, 0).min(axis=1) < 0) & (np.where(near, off, 0).max(axis=1) > 0)
    return np.nan_to_num(line), np.where(fits, noise, 0.0), fits & (noise <= 2 * slack)


def _alone(share: float) -> float:
    return float(np.sqrt(2 * ((1 - share) ** 2 + share**2)))


def noise_beside(share: float, many: int) -> float:
    """Return about the noise of a rank beside so many others, over that of a bin of the same price.

    >>> [round(noise_beside(0.5, many), 2) for many in (1, 9)]
    [1.0, 2.24]
    """
    return _alone(share) * float(_units(share, np.array(many)))


def _units(share: float, thresholds: Int64) -> Float64:
    """About how much more noise a rank has than alone, beside so many thresholds that lie evenly around it."""
    bins = np.maximum(thresholds, 1) + 1
    under = np.clip(np.rint(share * bins), 1, np.maximum(bins - 1, 1))
    return np.asarray(np.sqrt(((1 - share) ** 2 * under + share**2 * (bins - under)) / ((1 - share) ** 2 + share**2)))
