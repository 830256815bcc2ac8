"""Where to look next for a quantile: a guess from what was seen, which promises nothing.

What is proved holds whatever thresholds were chosen (`quantile_bets`), so the choice may err. A place is left as soon
as it is likely on one side, or not worth proving; the next one lies in the middle of what is left, or where a straight
line through what is near crosses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_neighbours import Offset, on_a_step, pooled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bets import Ladder

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LIKELY: Final = 1.6
"""A place that is at least `SURE` slacks away is left when it is off by this many standard deviations,"""

FARTHER: Final = 0.2
"""and by so many more for each doubling of how many slacks away."""

SURE: Final = 1.1

LEAVE: Final = 0.4
"""A place is left where it and its neighbours tell that it is off by more than this part of the slack,"""

LEAVE_ODDS: Final = 0.8
"""and by so many standard deviations more of what they tell."""

EXACT: Final = 1e-4
"""The variance, in slacks, of D at the ends of the range."""

SPAN: Final = 4.0
"""A first look between two places has at most this information, times the squared span of D between them."""

NEARBY: Final = 1.1
"""Within this part of the slack a place is worth a bet."""

LEAP: Final = 5.0
"""So is a new place between two that are fewer slacks apart."""

STRAIGHT: Final = 16.0
"""Between two places that are fewer slacks apart the straight line chooses."""

AROUND: Final = 1.2
"""It is drawn through the places that are off by at most so many times what the ends of the range are."""

LEAST_PART: Final = 0.05
"""A new place has at least this part of the range on either side;"""

STUCK: Final = 0.25
"""where the last place on a side is nearer to the one before than this part of the range,"""

STUCK_PART: Final = 0.35
"""this part on that side: it may lie on a step, along which straight lines go leaf by leaf."""

OPENING: Final = 1.5
"""The first look at a place has at most this information, times the squared slack;"""

START: Final = 8.0
"""the very first one this, times the squared rows;"""

RESTART: Final = 0.12
"""another one this part of what the places on both sides have."""

GROWTH: Final = 0.6
"""The next look at a place far off adds this part of the information there,"""

LEAST_STEP: Final = 0.05
"""at a near one what is likely to be needed; at least this part,"""

MOST_STEP: Final = 0.15
"""and at most this part."""


EARLY: Final = 0.5
"""Up to this information, times the squared slack, the next look doubles it."""


class ScoutPace(NamedTuple):
    """How looks grow: the constants of these names, or others where noise is not paid for by its information."""

    likely: float = LIKELY
    growth: float = GROWTH
    opening: float = OPENING
    start: float = START


PACE: Final = ScoutPace()
"""That of Gaussian noise."""


class Next(NamedTuple):
    """Where to look next, how much information to add, and whether to bet on it."""

    place: Int64
    information: Float64
    bets: Flags


@dataclass(frozen=True, slots=True, eq=False)
class Scouts:
    """What some groups' searches see.

    Attributes:
        ladder: the places, and what was won there.
        slack, rows: of each group, as far as known.
        off: float64[places, groups], how far D seems to be off what is looked for; NaN where there is no place.
        ends: how far D is off before the first leaf and after the last one.
        up, down: information that is likely to be needed to show a place not too high, not too low.
        shown: the last threshold that is shown not to be too high.
        leaves: how many there are.
        pace: how looks grow.
    """

    ladder: Ladder
    slack: Float64
    rows: Float64
    off: Float64
    ends: tuple[Float64, Float64]
    up: Float64
    down: Float64
    shown: Int64
    leaves: int
    pace: ScoutPace = PACE

    def next(self) -> Next:
        """Return where to look next: where two places contradict each other, at an open one, or at a new one."""
        ladder, columns = self.ladder, np.arange(len(self.slack))
        if not len(ladder.thresholds):
            first = np.minimum((self.pace.start / self.rows) ** 2, self.pace.opening / self.slack**2)
            middle = np.full(len(columns), self.leaves // 2 - 1)
            return Next(middle, first, np.asarray(first * self.slack**2 >= self.pace.opening / 2))
        left = self._left()
        right_of, left_of = left & (self.off > 0), left & (self.off < 0)
        high = np.where(right_of.any(axis=0), right_of.argmax(axis=0), -1)
        low = np.where(left_of, np.arange(len(left))[:, None], -1).max(axis=0)
        right = np.where(high >= 0, ladder.thresholds[high, columns], self.leaves - 1)
        start = np.where(low >= 0, ladder.thresholds[low, columns], -1)
        against = (right_of & (ladder.thresholds <= start)) | (left_of & (ladder.thresholds >= right))
        odd = against.any(axis=0)
        between = ladder.seen & ~left & (ladder.thresholds > start) & (ladder.thresholds < right)
        one = ~odd & ~between.any(axis=0) & (right - start <= 1)
        own = self.shown >= start
        doubt = np.where(against, np.abs(self.off) * np.sqrt(ladder.information), np.inf).argmin(axis=0)
        nearest = np.where(between, np.abs(self.off), np.inf).argmin(axis=0)
        row = np.where(odd, doubt, np.where(one, np.maximum(np.where(own, high, low), 0), nearest))
        again = self._again(row, one, own)
        fresh = self._new(start, right, low, high)
        old = odd | one | between.any(axis=0)
        return Next(*(np.where(old, mine, other) for mine, other in zip(again, fresh, strict=True)))

    def _left(self) -> Flags:
        """Return which places are left: on one side most likely, or not worth proving."""
        slack, information, away = self.slack, self.ladder.information, np.abs(self.off)
        with np.errstate(divide="ignore", invalid="ignore"):
            likely = away * np.sqrt(information) >= self.pace.likely + FARTHER * np.log2(1 + away / slack)
            told = self._told()
            dear = (information * slack**2 >= 1) & (np.abs(told.off) >= LEAVE + LEAVE_ODDS * np.sqrt(told.variance))
        left = self.ladder.seen & ((likely & (away >= SURE * slack)) | dear)
        return left | self._steps(left)

    def _told(self) -> Offset:
        """Return what each place, all others and the ends of the range tell of it, in slacks."""
        ladder, seen, slack = self.ladder, self.ladder.seen, self.slack
        first, last = (end[None] / slack for end in self.ends)
        with np.errstate(divide="ignore"):
            variance = np.where(seen, 1 / (ladder.information * slack**2), np.inf)
        off = np.vstack([first, np.where(seen, self.off / slack, 0.0), last])
        exact = np.full_like(first, EXACT)
        thresholds = np.vstack([np.full_like(first, -1.0), ladder.thresholds, np.full_like(first, self.leaves - 1.0)])
        thresholds = np.where(np.vstack([exact > 0, seen, exact > 0]), thresholds, self.leaves - 1.0)
        told = pooled(thresholds, Offset(off, np.vstack([exact, variance, exact])))
        return Offset(told.off[1:-1], told.variance[1:-1])

    def _steps(self, left: Flags) -> Flags:
        """Return which places are as far off as one that was left beside them: on a step."""
        ladder, slack, off = self.ladder, self.slack, self.off / self.slack
        above = np.where(left & (off > 0), off, np.inf)[::-1]
        high = np.minimum(np.minimum.accumulate(above, axis=0)[::-1], self.ends[1] / slack)
        low = np.where(left & (off < 0), off, -np.inf)
        low = np.maximum(np.maximum.accumulate(low, axis=0), self.ends[0] / slack)
        return ladder.seen & on_a_step(off, ladder.information * slack**2, low, high)

    def _again(self, row: Int64, one: Flags, own: Flags) -> Next:
        """Return another look at places that were looked at before; at the one leaf that is left, for its missing half.

        Its own threshold has to be shown not too low, and the one before it not too high.
        """
        columns = np.arange(len(row))
        held, off = self.ladder.information[row, columns], self.off[row, columns]
        up, down = self.up[row, columns], self.down[row, columns]
        wanted = np.where(one, np.where(own, down, up), np.maximum(up, down))
        bets = (np.abs(off) <= NEARBY * self.slack) | one
        more = np.where(bets, np.clip(wanted, LEAST_STEP * held, MOST_STEP * held), self.pace.growth * held)
        more = np.where(held * self.slack**2 < EARLY, held, more)
        return Next(self.ladder.thresholds[row, columns], more, bets)

    def _new(self, start: Int64, right: Int64, low: Int64, high: Int64) -> Next:
        """Return a first look at new places, between these thresholds and their rows; -1 for the ends of the range."""
        columns, slack = np.arange(len(start)), self.slack
        over = np.where(high >= 0, self.off[high, columns], np.inf)
        under = np.where(low >= 0, self.off[low, columns], -np.inf)
        span = over - under
        crossing = self._crossing(start, right, over, under)
        least, most = self._parts(start, right, low, high)
        part = np.where(span < STRAIGHT * slack, np.clip(crossing, least, most), 0.5)
        place = start + 1 + np.floor((right - start - 1) * part).astype(np.int64)
        place = np.minimum(place, np.maximum(right - 1, start + 1))
        mine = np.where(high >= 0, self.ladder.information[high, columns], 0.0)
        theirs = np.where(low >= 0, self.ladder.information[low, columns], 0.0)
        opening, close = self.pace.opening / slack**2, span < LEAP * slack
        both = (high >= 0) & (low >= 0)
        usual = np.maximum(mine, theirs) * np.where(both, RESTART, 1.0)
        usual = np.minimum(usual, SPAN / np.where(both, span, slack) ** 2)
        usual = np.where((high < 0) & (low < 0), (self.pace.start / self.rows) ** 2, usual)
        return Next(place, np.where(close, opening, np.minimum(usual, opening)), close)

    def _parts(self, start: Int64, right: Int64, low: Int64, high: Int64) -> tuple[Float64, Float64]:
        """Return the least and the largest part of the range that lies before a new place."""
        thresholds, columns = self.ladder.thresholds, np.arange(len(start))
        last = len(thresholds) - 1
        before = np.where(low > 0, thresholds[np.maximum(low - 1, 0), columns], -1)
        after = thresholds[np.minimum(high + 1, last), columns]
        after = np.where((high >= 0) & (high < last) & (after >= 0), after, self.leaves - 1)
        room = STUCK * (right - start)
        least = np.where((low >= 0) & (start - before < room), STUCK_PART, LEAST_PART)
        most = np.where((high >= 0) & (after - right < room), 1 - STUCK_PART, 1 - LEAST_PART)
        return least, most

    def _crossing(self, start: Int64, right: Int64, over: Float64, under: Float64) -> Float64:
        """Return which part of the range lies before the place where a straight line through near places crosses."""
        ladder, slack = self.ladder, self.slack
        with np.errstate(divide="ignore", invalid="ignore"):
            around = np.minimum(AROUND * np.maximum(np.maximum(over, -under), slack / 2), STRAIGHT / 2 * slack)
            near = ladder.seen & (np.abs(self.off) <= around)
            weight = np.where(near, ladder.information, 0.0)
            along, off = ladder.thresholds - (start + right) / 2, np.where(near, self.off, 0.0)
            total = weight.sum(axis=0)
            middle, mean = (weight * along).sum(axis=0) / total, (weight * off).sum(axis=0) / total
            away = along - middle
            slope = (weight * away * (off - mean)).sum(axis=0) / (weight * away**2).sum(axis=0)
            fitted = (middle - mean / slope + (right - start) / 2) / (right - start)
            fits = (near.sum(axis=0) >= 2) & (slope > 0) & np.isfinite(fitted)
            part = np.where(fits, fitted, -under / (over - under))
        return np.nan_to_num(part, nan=0.5)
