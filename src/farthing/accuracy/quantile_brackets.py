"""Where a search under a pure budget looks for a quantile by value: two thresholds that hold it between them.

What is proved holds whatever thresholds were chosen, so the choice may err. While the thresholds between which the
quantile most likely lies are too far apart for the target, the next one lies between them. Then a threshold on either
side is proved, as far apart as the target allows: the farther from the quantile, the cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LIKELY: Final = 1.6
"""A threshold is likely on one side of the quantile when it is off by this many standard deviations."""

CLOSER: Final = 0.2
"""A new threshold has a noise of this part of the rows between those on both sides,"""

LEAST_PART: Final = 0.2
"""and at least this part of the range between them on either side."""

FINE: Final = 0.5
"""Two thresholds around the likely place are proved once its noise is so many times the rows beside it, or fewer,"""

MOST_OPEN: Final = 6
"""More than so many open thresholds are alike: then the one that is known best is looked at again."""

LOPSIDED: Final = 3.0
"""Others are proved than those on both sides where these cost so many times what two around the middle do."""

NEEDS: Final = 3.5
"""About how many standard deviations a proof takes."""

AROUND: Final = 0.35
"""each at least this part of the target's width away."""

LEAST_ROWS: Final = 0.1
"""A threshold there is likely to be off by this part of the rows of the target's width, at least."""

DOUBLE: Final = 2.0
"""Another look at an open threshold has this part of the noise, turned over."""

SHRINK: Final = 0.95
"""Where a range that seemed narrow enough is not, it is to be this part of it."""

NEAR: Final = 4.0
"""A new threshold may prove something if those on both sides are so many targets apart, or fewer;"""

PART: Final = 0.5
"""then a proof there gets this part of what is left of beta, divided by how many they are;"""

MOST_PART: Final = 0.5
"""at most this part of it, which those get that the target needs."""

EAGER: Final = 0.8
"""A proof begins at this part of the epsilon that it is likely to need."""


class BracketLook(NamedTuple):
    """Where to look next, one entry a group.

    Attributes:
        place: int64, the threshold.
        noise: float64, the standard deviation that is wanted there, in rows.
        proves: bool, whether it is to be proved on one side of the quantile.
    """

    place: Int64
    noise: Float64
    proves: Flags


class ValueTarget(NamedTuple):
    """How near the value is to be: the goal with its range, and the errors allowed."""

    asked: QuantileGoal
    relative: float
    absolute: float

    def leaves(self, ends: tuple[Int64, Int64], middle: Float64) -> Float64:
        """Return how many leaves may lie between two thresholds that hold both of these and the middle."""
        asked = self.asked
        step = (asked.upper - asked.lower) / asked.leaves
        outer = np.minimum(*(np.abs(asked.edge(end + 1)) for end in ends))
        inner = np.abs(asked.lower + step * (middle + 1)) / (1 + self.relative)
        about = 2 * np.maximum(self.absolute, self.relative * inner) / step
        exact = 2 * np.maximum(self.absolute, self.relative * np.minimum(outer, inner)) / step
        return np.asarray(np.floor(np.where(ends[1] - ends[0] <= about, exact, about)))


@dataclass(frozen=True, eq=False)
class ValueBrackets:
    """What the searches of some groups see; thresholds rise, and both ends of the range are among them.

    Attributes:
        thresholds: int64[places, groups]; unused ones last.
        off: float64[places, groups], how far D seems to be off what is looked for.
        noise: float64[places, groups], its standard deviation; infinite where there is no threshold.
        trying: bool[places, groups], whether the chain there may prove something.
        low, high: int64[groups], the thresholds that are proved to lie below the quantile, and not below it.
        target: what is looked for.
    """

    thresholds: Int64
    off: Float64
    noise: Float64
    trying: Flags
    low: Int64
    high: Int64
    target: ValueTarget

    @cached_property
    def seen(self) -> Flags:
        """Whether there is a threshold."""
        return np.isfinite(self.noise)

    @cached_property
    def _last(self) -> Int64:
        """The last threshold of the range."""
        return np.asarray(self.thresholds[self.seen.sum(axis=0) - 1, np.arange(len(self.low))])

    @cached_property
    def _odds(self) -> Float64:
        """How many standard deviations each is off."""
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.where(self.noise > 0, self.off / self.noise, np.sign(self.off) * np.inf)
        return np.where(self.seen, odds, 0.0)

    @cached_property
    def _left(self) -> Flags:
        """Whether the quantile is likely to lie above it."""
        likely = (self._odds <= -LIKELY) & (self.thresholds < self.high)
        return self.seen & (likely | (self.thresholds <= self.low))

    @cached_property
    def _right(self) -> Flags:
        """Whether the quantile is likely to lie below it, or at it."""
        likely = (self._odds >= LIKELY) & (self.thresholds > self.low)
        return self.seen & (likely | (self.thresholds >= self.high))

    @cached_property
    def ends(self) -> tuple[Int64, Int64]:
        """The rows of the last threshold that is likely below the quantile, and of the first that is not."""
        rows = np.arange(len(self.thresholds))[:, None]
        return np.where(self._left, rows, -1).max(axis=0), self._right.argmax(axis=0)

    @cached_property
    def _near(self) -> tuple[Int64, Int64]:
        """The thresholds of `ends`."""
        columns = np.arange(len(self.low))
        return self.thresholds[self.ends[0], columns], self.thresholds[self.ends[1], columns]

    @cached_property
    def odd(self) -> Flags:
        """Where thresholds contradict each other."""
        return np.asarray(self._near[0] >= self._near[1])

    @cached_property
    def fits(self) -> Flags:
        """Where the thresholds on both sides are near enough for the target."""
        return np.asarray(~self.odd & (self._near[1] - self._near[0] <= self.leaves))

    @cached_property
    def leaves(self) -> Int64:
        """How many leaves may lie between both thresholds: fewer than are left, which are too many."""
        wide = self.target.leaves(self._near, self._middle)
        left = self.high - self.low
        return np.asarray(np.maximum(np.minimum(wide, np.where(left <= wide, SHRINK * left, wide)), 1)).astype(np.int64)

    def worth(self, place: Int64) -> Float64:
        """Return how much of what is left of beta a proof at thresholds is worth: whether it may be one of the two."""
        low, high = self._near
        below = (place <= low) & (place >= high - self.leaves)
        above = (place >= high) & (place <= low + self.leaves)
        span = np.maximum(high - low, 1)
        new = np.where(span <= NEAR * self.leaves, np.minimum(PART * self.leaves / span, MOST_PART), 0.0)
        return np.asarray(np.where(self.fits, np.where(below | above, MOST_PART, 0.0), np.where(self.odd, 0.0, new)))

    def at(self, place: Int64) -> Float64:
        """Return how far D is likely to be off at thresholds: a straight line between those that were looked at."""
        columns = np.arange(len(place))
        last = (self.seen & (self.thresholds <= place)).sum(axis=0) - 1
        next_ = np.minimum(last + 1, self.seen.sum(axis=0) - 1)
        left, right = self.thresholds[last, columns], self.thresholds[next_, columns]
        part = (place - left) / np.maximum(right - left, 1)
        low, high = self.off[last, columns], self.off[next_, columns]
        return np.asarray(low + part * np.maximum(high - low, 0.0))

    @cached_property
    def rows(self) -> Float64:
        """The rows that are likely between the thresholds on both sides, and a noise of theirs more."""
        columns = np.arange(len(self.low))
        low, high = self.ends
        apart = self.off[high, columns] - self.off[low, columns]
        return np.asarray(np.maximum(apart, 0.0) + self.noise[high, columns] + self.noise[low, columns])

    @cached_property
    def most_rows(self) -> Float64:
        """The same of those that are as far apart as the target allows."""
        low, high = self._near
        spare = np.maximum(self.leaves - (high - low), 0)
        wide = self.at(np.minimum(high + spare, self._last)) - self.at(np.maximum(low - spare, -1))
        return np.asarray(np.maximum(self.rows, wide))

    @cached_property
    def _slope(self) -> Float64:
        """Rows a leaf, between the thresholds on both sides."""
        columns, (low, high) = np.arange(len(self.low)), self.ends
        apart = np.maximum(self.off[high, columns] - self.off[low, columns], 0.0)
        return np.asarray(apart / np.maximum(self._near[1] - self._near[0], 1))

    @cached_property
    def _open(self) -> Flags:
        """The thresholds of which neither side is likely."""
        low, high = self._near
        return np.asarray(self.seen & (self.thresholds > low) & (self.thresholds < high))

    @cached_property
    def _best(self) -> Int64:
        """The row of the open threshold that is known best."""
        return np.asarray(np.where(self._open, self.noise, np.inf).argmin(axis=0))

    @cached_property
    def _middle(self) -> Float64:
        """Where the quantile is likely to be: where a straight line crosses, through what is known best."""
        columns, (low, high) = np.arange(len(self.low)), self.ends
        below, above = np.minimum(self.off[low, columns], 0.0), np.maximum(self.off[high, columns], 0.0)
        part = np.where(above > below, -below / np.maximum(above - below, 1e-300), 0.5)
        straight = self._near[0] + part * (self._near[1] - self._near[0])
        row, slope = self._best, np.maximum(self._slope, 1e-300)
        about = self.thresholds[row, columns] - self.off[row, columns] / slope
        there = np.clip(about, self._near[0], np.maximum(self._near[1], self._near[0]))
        return np.asarray(np.where(self._open.any(axis=0), there, straight))

    def next(self, needs: Float64) -> BracketLook:
        """Return where to look next; a proof takes a noise of what it is off, over `needs`."""
        columns, (low, high) = np.arange(len(self.low)), self._near
        many = self._open.sum(axis=0)
        fine = (many > 0) & (many <= MOST_OPEN)
        fine &= self.noise[self._best, columns] <= FINE * self._slope * self.leaves / 2
        about = np.rint(self._middle - AROUND * self.leaves), np.rint(self._middle + AROUND * self.leaves)
        lopsided = self._lopsided()
        left, right = (one.astype(np.int64) for one in about)
        left = np.where(self.fits, np.where(lopsided, left, low), np.maximum(left, low))
        right = np.where(self.fits, np.where(lopsided, right, high), np.minimum(right, high))
        doubt, search, proof = self._doubted(), self._search(), self._proof(left, right, needs)
        chosen = (
            np.where(self.odd, one, np.where(self.fits | fine, three, two))
            for one, two, three in zip(doubt, search, proof, strict=True)
        )
        place, noise, proves = chosen
        return BracketLook(np.clip(place, 0, self._last - 1), noise, proves)

    def _lopsided(self) -> Flags:
        """Return where thresholds around the likely place would be cheaper to prove than those on both sides."""
        columns, (low, high) = np.arange(len(self.low)), self.ends
        with np.errstate(divide="ignore", invalid="ignore"):
            price = np.zeros(len(self.low))
            for row, known in ((low, self._near[0] <= self.low), (high, self._near[1] >= self.high)):
                each = 1 / np.abs(self.off[row, columns])
                held = np.where(self.trying[row, columns], 1 / self.noise[row, columns], 0.0)
                price = price + np.where(known, 0.0, np.maximum(each - held / NEEDS, 0.0))
            centred = 4 / (self._slope * self.leaves)
        return np.asarray(price > LOPSIDED * centred)

    def _doubted(self) -> BracketLook:
        """Return another look at the place that is less sure, of those that contradict each other."""
        low, high = self._near
        against = (self._left & (self.thresholds >= high)) | (self._right & (self.thresholds <= low))
        open_ = against & (self.noise > 0) & (self.thresholds > self.low) & (self.thresholds < self.high)
        return self._again(np.where(open_, np.abs(self._odds), np.inf).argmin(axis=0))

    def _again(self, row: Int64) -> BracketLook:
        """Return another look at a place."""
        columns = np.arange(len(row))
        return BracketLook(
            self.thresholds[row, columns], self.noise[row, columns] / DOUBLE, np.zeros(len(row), np.bool_)
        )

    def _search(self) -> BracketLook:
        """Return where to look between the places on both sides."""
        low, high = self._near
        apart = np.maximum(high - low, 1)
        place = np.clip(self._middle, low + LEAST_PART * apart, high - LEAST_PART * apart)
        place = np.clip(np.rint(place).astype(np.int64), low + 1, np.maximum(high - 1, low + 1))
        again, some = self._again(self._best), self._open.any(axis=0)
        noise = np.where(some, again.noise, CLOSER * self.rows)
        return BracketLook(np.where(some, again.place, place), noise, again.proves)

    def _proof(self, low: Int64, high: Int64, needs: Float64) -> BracketLook:
        """Return a look at one of the two places that are to be proved: at `low` or below, and at `high` or above."""
        columns, wide = np.arange(len(self.low)), self.leaves
        last = self._last
        spare = np.maximum(wide - (high - low), 0)
        one, two = self.low + wide >= high, self.high - wide <= low  # whether a side is proved
        up = one | (~two & (self._near[0] >= high - wide) & (self._near[1] > low + wide))
        least = np.where(up, high, np.maximum(high - wide, self.low + 1))
        most = np.where(up, np.where(one, np.minimum(self.low + wide, self.high - 1), low + wide), low)
        least = np.where(~up & two, np.maximum(self.high - wide, self.low + 1), least)
        centred = np.rint(np.where(up, high + spare / 2, low - spare / 2)).astype(np.int64)
        wished = np.where(one, most, np.where(two, least, centred))
        most = np.clip(most, 0, last - 1)
        least = np.clip(least, 0, most)
        wished = np.clip(wished, least, most)
        inside = self.trying & self.seen & (self.thresholds >= least) & (self.thresholds <= most)
        inside &= np.where(up, self.off > 0, self.off < 0)
        rows = np.maximum(np.abs(self.at(wished)), self._slope * wide * LEAST_ROWS)
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(inside, needs / np.abs(self.off) - 1 / self.noise, np.inf)
            row = cost.argmin(axis=0)
            old = cost[row, columns] <= needs / rows
            noise = np.where(old, np.abs(self.off[row, columns]), rows) / needs / EAGER
        return BracketLook(np.where(old, self.thresholds[row, columns], wished), noise, np.ones(len(low), np.bool_))
