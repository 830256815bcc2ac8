"""Where to look next for the value of a quantile: a guess from what was seen, which promises nothing.

Two thresholds that are as near as the target asks are a *window*. A search narrows down where D crosses 0: it looks at
a place until it is clear on which side it lies, or until it is as well known as a window there needs. Then the cheapest
window around that place is to be proved, each end by looks of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_bets import STAKE, partly, wholly
from farthing.accuracy.quantile_value_bets import still_inside
from farthing.normal import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_picture import RankPicture, ToldRank

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

CLEAR: Final = 1.3
"""A place is on one side where it is off by so many standard deviations."""

RIPE: Final = 2.4
"""It is known well enough at this information, times the square of how far D is off at the ends of a window there."""

START: Final = 2.5
"""The very first look has this information, times the squared rows;"""

SPAN: Final = 8.0
"""no look has less; another first one has this, times the squared span of D between the places beside it,"""

GROWTH: Final = 0.4
"""and each next one this part of what the place has."""

BEHIND: Final = 1.5
"""A place is looked at again only where those beside it have at least its information over this,"""

SURELY: Final = 4.0
"""or are off by so many standard deviations."""

RATE: Final = 0.8
"""A bet is the best one where D is off by this part of what it is thought to be off."""

FIRST: Final = 0.3
"""The first look that proves an end has this part of what is likely to be needed;"""

MOST_STEP: Final = 0.5
"""another one adds at most this part of what the place has,"""

LEAST_STEP: Final = 0.08
"""and at least this."""

NEW: Final = 2.0
"""An end that is not to be proved yet counts as so many times as expensive."""

DOUBT: Final = 0.5
"""A window counts as more expensive by this power of how likely it holds the quantile,"""

UNLIKELY: Final = 0.02
"""which counts as this at least."""

PARTS: Final = 8
"""A window around a place may have any of so many parts of it on one side."""

STRAIGHT: Final = 10.0
"""Where D rises by fewer times what it is off at the ends of a window, a new place lies on the straight line,"""

LEAST_PART: Final = 0.25
"""but has at least this part of the range on either side."""

USUAL: Final = 7.6
"""An end is proved by about this information, times the square of how far D is off there;"""

LUCKY: Final = 5.0
"""seldom by less than this."""

NEARLY: Final = 4
"""Between clear places that are at most so many windows apart, how far D is off at the ends is about known,"""

HOPE: Final = 1.5
"""give or take so many times, and a quarter of the noise there."""

CROWDED: Final = 0.25
"""Where there is room for more of them, D may be off as if all rows lay in one, over this power of their number."""

_EXACT: Final = 1e-9


class NextLook(NamedTuple):
    """Where to look next, how much information to add, and what for: one entry a group.

    Attributes:
        place: int64, the threshold.
        information: float64.
        side: int64, 1 to prove that the quantile is past the threshold, -1 that it is not, 0 to find a place.
        rate: float64, how far D is to be off there for a bet on it to be the best one.
        least: float64, no window is proved by less information than this, most likely, even if rows crowd at its ends.
        likely: float64, the same if they do not.
        ends: float64, how far D is likely to be off at the ends of the best window.
    """

    place: Int64
    information: Float64
    side: Int64
    rate: Float64
    least: Float64
    likely: Float64
    ends: Float64


class KnownBets(NamedTuple):
    """What was bet on, in the order of the ladder: float64[places, groups].

    Attributes:
        information: of looks that were to prove a side.
        past, before: log of what stakes have become on the claims that the quantile is past the place, and that it is
            not.
    """

    information: Float64
    past: Float64
    before: Float64


@dataclass(frozen=True, eq=False)
class Windows:
    """What the searches of some groups see.

    Attributes:
        picture: what is known of D, with the places that were looked at, and what was won there.
        known: what was bet on there.
        low, high: int64[groups], the last threshold that the quantile is past, and the first that it is not.
        odds: the logarithm of what has to be won to leave leaves out.
    """

    picture: RankPicture
    known: KnownBets
    low: Int64
    high: Int64
    odds: float

    def next(self) -> NextLook:
        """Return where to look next: at an end of the best window, or where D crosses 0."""
        columns, low, high = self.picture.columns, *self._windows
        from_, upto = self.picture.told(low), self.picture.told(high)
        costs = self._cost(-1, low, from_), self._cost(1, high, upto)
        likely = np.maximum(self._chance(high, upto) - self._chance(low, from_), UNLIKELY)
        deep = np.minimum(-from_.off, upto.off)
        ends, deepest = np.maximum(deep.max(axis=0), 1.0), deep.argmax(axis=0)
        wide = np.maximum(high[deepest, columns] - low[deepest, columns], 1)
        left, right, ripe, again = self._bracket(ends)
        beside = self.picture.told(left[None]), self.picture.told(right[None])
        centre = np.where(ripe >= 0, self.picture.places[ripe + 1, columns], -1)
        holds = (low <= np.where(ripe >= 0, centre, left)) & (high >= np.where(ripe >= 0, centre, right))
        best = np.where(holds, (costs[0] + costs[1]) / likely**DOUBT, np.inf).argmin(axis=0)
        below, above = (each[best, columns] for each in costs)
        proves = holds[best, columns] & np.isfinite(below + above) & (again < 0)
        start = np.where((below > 0) & (above > 0), below <= above, below > 0)
        end = np.where(start, low[best, columns], high[best, columns])
        found = self._search((left, right), beside, again, ends)
        proof = self._proof(end, np.where(start, below, above))
        place, information = (np.where(proves, mine, other) for mine, other in zip(proof, found, strict=True))
        side = np.where(proves, np.where(start, 1, -1), 0)
        rate = RATE * np.maximum(np.abs(self.picture.told(place[None]).off[0]), 1.0)
        return NextLook(place, information, side, rate, *self._least(right - left, beside, ends, wide), ends)

    def _chance(self, place: Int64, told: ToldRank) -> Float64:
        """Return how likely the quantile is not past thresholds."""
        chance = ndtr(told.off / np.sqrt(told.variance))
        return np.asarray(np.where(place <= self.low, 0.0, np.where(place >= self.high, 1.0, chance)))

    @cached_property
    def _windows(self) -> tuple[Int64, Int64]:
        """Windows to choose from: around where D crosses 0, and with an end that was looked at."""
        picture, parts = self.picture, np.arange(PARTS + 1)[:, None]
        places, target, nearest = picture.places, picture.target, picture.crossing
        if len(places) > 2:
            nearest = places[1 + np.abs(picture.known.off[1:-1]).argmin(axis=0), picture.columns]
        around = [each - (target.last(each) - each) * parts // PARTS for each in (picture.crossing, nearest)]
        ends = places[:-1]
        low = np.vstack([self.low[None], *around, ends, 2 * ends - target.last(ends)])
        low = np.clip(low, self.low, np.maximum(picture.last - 1, self.low))
        return low, np.minimum(target.last(low), self.high)

    @cached_property
    def _shown(self) -> tuple[Float64, Float64]:
        """What was won that the quantile is past all leaves up to each place, and before all from there on."""
        return still_inside(self.picture.ladder, self.low, self.high)

    def _cost(self, side: int, place: Int64, told: ToldRank) -> Float64:
        """Return what is likely to be needed, at one end of windows, to prove it; nothing where it is proved."""
        columns, known = self.picture.columns, self.known
        row = self.picture.row(told)
        segment = np.minimum(told.after + (told.here if side > 0 else 0), len(self.picture.ladder.thresholds))
        wins = self.odds - self._shown[0 if side < 0 else 1][segment, columns]
        held, gained = np.zeros(place.shape), np.zeros(place.shape)
        if len(known.information):
            at, mine = np.maximum(row, 0), known.past if side < 0 else known.before
            held, gained = (np.where(row >= 0, each[at, columns], 0.0) for each in (known.information, mine))
            wins = wins + partly(STAKE, gained)
        more = np.maximum(wholly(STAKE, np.maximum(wins, 0.0)) - gained, 0.0)
        off = side * told.off
        cost = np.where(off > 0, np.maximum(2 * more / np.maximum(off, _EXACT) ** 2, LEAST_STEP * held), np.inf)
        cost *= np.where(held > 0, 1.0, NEW)
        return np.asarray(np.where(place <= self.low if side < 0 else place >= self.high, 0.0, cost))

    def _bracket(self, ends: Float64) -> tuple[Int64, Int64, Int64, Int64]:
        """Return the clear places on both sides of where D crosses 0, and between them one that is known well enough
        and one that is not (rows of the ladder; -1 for none).
        """
        thresholds, columns = self.picture.ladder.thresholds, self.picture.columns
        if not len(thresholds):
            none = np.full(len(columns), -1)
            return self.low, self.high, none, none
        off, information = self.picture.known.off[1:-1], 1 / self.picture.known.variance[1:-1]
        inside = self.picture.seen & (thresholds > self.low) & (thresholds < self.high)
        clear = inside & (np.abs(off) * np.sqrt(information) >= CLEAR)
        left = np.where(clear & (off < 0), thresholds, self.low).max(axis=0)
        right = np.where(clear & (off > 0), thresholds, self.high).min(axis=0)
        unclear = inside & ~clear & (thresholds > left) & (thresholds < right)
        ripe = unclear & (information * ends**2 >= RIPE)
        nearest = (
            np.where(some.any(axis=0), np.where(some, np.abs(off), np.inf).argmin(axis=0), -1)
            for some in (ripe, unclear & ~ripe)
        )
        return left, right, *nearest

    def _search(
        self, clear: tuple[Int64, Int64], beside: tuple[ToldRank, ToldRank], again: Int64, ends: Float64
    ) -> tuple[Int64, Float64]:
        """Return another look at a place that is not known well enough, or a first one between two that are clear."""
        columns, floor = self.picture.columns, (START / self.picture.rows) ** 2
        (left, right), (below, above) = clear, (each.off[0] for each in beside)
        span = np.maximum(above - below, 1.0)
        part = np.where(span < STRAIGHT * ends, np.clip(-below / span, LEAST_PART, 1 - LEAST_PART), 0.5)
        place = left + np.maximum(np.rint((right - left) * part).astype(np.int64), 1)
        place = np.clip(place, left + 1, np.maximum(right - 1, left + 1))
        place = np.minimum(place, np.maximum(self.picture.last - 1, 0))
        information = np.maximum(np.minimum(SPAN / span**2, RIPE / ends**2), floor)
        if len(self.picture.ladder.thresholds):
            again = np.where(again >= 0, self._less_known(again), again)
            row = np.where(again >= 0, again, self.picture.row(self.picture.told(place[None]))[0])
            at = np.maximum(row, 0)
            place = np.where(row >= 0, self.picture.ladder.thresholds[at, columns], place)
            more = np.maximum(GROWTH * self.picture.ladder.information[at, columns], floor)
            information = np.where(row >= 0, more, information)
        return place, information

    def _less_known(self, row: Int64) -> Int64:
        """Return these rows of the ladder, or those of places beside them that are known less, and are not clear."""
        information, columns = self.picture.ladder.information, self.picture.columns
        least, found = information[row, columns] / BEHIND, row
        for beside in (row - 1, row + 1):
            at = np.clip(beside, 0, len(information) - 1)
            held = information[at, columns]
            clear = np.abs(self.picture.known.off[at + 1, columns]) * np.sqrt(held) >= SURELY
            worse = (held > 0) & (held < least) & ~clear
            least, found = np.where(worse, held, least), np.where(worse, at, found)
        return np.asarray(found)

    def _proof(self, place: Int64, cost: Float64) -> tuple[Int64, Float64]:
        """Return a look that is to prove an end: a first one, or another one."""
        row = self.picture.row(self.picture.told(place[None]))[0]
        held = np.zeros(len(place))
        if len(self.known.information):
            held = np.where(row >= 0, self.known.information[np.maximum(row, 0), self.picture.columns], 0.0)
        first = np.maximum(FIRST / NEW * cost, (START / self.picture.rows) ** 2)
        return place, np.where(held > 0, np.clip(cost, LEAST_STEP * held, MOST_STEP * held), first)

    def _least(
        self, room: Int64, beside: tuple[ToldRank, ToldRank], ends: Float64, wide: Int64
    ) -> tuple[Float64, Float64]:
        """Return the information below which no window is proved, most likely: if rows crowd at its ends, and if not.

        Far from it most rows between clear places may lie at its ends, fewer where there is room for many windows.
        """
        below, above = beside
        noise = np.sqrt(below.variance[0]) + np.sqrt(above.variance[0])
        rise = np.maximum(above.off[0] - below.off[0] + noise, _EXACT)
        alone = (self.low >= 0) | (self.high < self.picture.last)
        many = np.maximum(room / wide, 1.0)
        far = np.where(alone, rise, rise / 2) / many**CROWDED
        near = np.minimum(HOPE * ends + noise / 4, rise / 2)
        off, price = np.where(many <= NEARLY, near, far), np.where(alone, 1, 2) * LUCKY
        return np.asarray(price / off**2), np.asarray(price / near**2)
