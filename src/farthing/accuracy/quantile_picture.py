"""What is told of D at all thresholds: by looks, by places on a step, by a curve, and by straight lines between.

A guess, which promises nothing: `quantile_windows` chooses by it where to look next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_curve import Curve, RankCrossing, crossing_of, curve_of
from farthing.accuracy.quantile_neighbours import Offset, between, on_steps, rising

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bets import Ladder
    from farthing.accuracy.quantile_value import ValueTarget

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_EXACT: Final = 1e-9


class ToldRank(NamedTuple):
    """What is told of thresholds: the last of the picture's places before each, whether a place is there, and D."""

    after: Int64
    here: Flags
    off: Float64
    variance: Float64


@dataclass(frozen=True, eq=False)
class RankPicture:
    """What the searches of some groups know of D.

    Attributes:
        ladder: the places that were looked at.
        rows: float64[groups], the count, as far as known.
        share: which part of the rows D is counted from.
        beside: which part of the rows D is to be; 0 but near the ends.
        target: how near the value is to be.
    """

    ladder: Ladder
    rows: Float64
    share: float
    beside: float
    target: ValueTarget

    @property
    def columns(self) -> Int64:
        """int64[groups], their numbers."""
        return np.arange(len(self.rows))

    @property
    def last(self) -> int:
        """The last threshold of the range."""
        return self.target.asked.leaves - 1

    @property
    def seen(self) -> Flags:
        """Which places there are."""
        return np.asarray(self.ladder.information > 0)

    @cached_property
    def places(self) -> Int64:
        """int64[places + 2, groups], the places with both ends of the range; none lies at the end."""
        end = np.zeros((1, len(self.rows)), np.int64)
        return np.vstack([end - 1, np.where(self.seen, self.ladder.thresholds, self.last), end + self.last])

    @cached_property
    def _ends(self) -> tuple[Float64, Float64]:
        """How far D is off before the first leaf and after the last one."""
        least = -(self.share + self.beside) * self.rows
        return least, least + self.rows

    @cached_property
    def _looks(self) -> Offset:
        """What each place's own looks tell of it."""
        ladder = self.ladder
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(self.seen, ladder.totals / ladder.information - self.beside * self.rows, self._ends[1])
            return Offset(off, np.where(self.seen, 1 / ladder.information, np.inf))

    def _with_ends(self, told: Offset) -> Offset:
        """Return what is told of the places, with both ends of the range: they are known."""
        known = np.full((1, len(self.rows)), _EXACT)
        least, most = self._ends
        return Offset(np.vstack([least[None], told.off, most[None]]), np.vstack([known, told.variance, known]))

    def _risen(self, told: Offset) -> Offset:
        """Return what is told of all places, so that D rises: what is known better decides."""
        off, variance = np.clip(told.off, *self._ends), told.variance + _EXACT
        falls = np.flatnonzero((np.diff(off, axis=0) < 0).any(axis=0))
        off[:, falls] = rising(off[:, falls], variance[:, falls])
        return Offset(off, variance)

    @cached_property
    def _steps(self) -> Offset:
        """What is told of all places by those on a step with them, if there is no curve."""
        steps = on_steps(self.ladder.thresholds, self._looks, self._ends)
        return self._risen(self._with_ends(Offset(steps.off, np.where(self.seen, steps.variance, 0.0))))

    @cached_property
    def _curve(self) -> Curve:
        """What is told of all places by a curve through the looks near where D crosses 0."""
        place, slope = crossing_of(self.places, self._steps)
        at = np.rint(place).astype(np.int64)
        half = np.maximum((self.target.last(at) - at) / 2, 0.5)
        return curve_of(self.places, self._with_ends(self._looks), RankCrossing(place, slope, half), self._ends)

    @cached_property
    def known(self) -> Offset:
        """How far D seems to be off at all places, and the variance of that."""
        return self._risen(self._curve.or_(self._steps))

    @cached_property
    def _in_line(self) -> Int64:
        """The places of all groups, one group after the other."""
        return (self.places + (self.last + 3) * self.columns).T.ravel()

    def told(self, place: Int64) -> ToldRank:
        """Return what is told of thresholds: a straight line between places, and what it may be off."""
        columns, (many, groups) = self.columns[None], self.places.shape
        counted = np.searchsorted(self._in_line, place + (self.last + 3) * columns, "left") - many * columns
        after = np.clip(counted - 1, 0, many - 2)
        from_ = after * groups + columns  # as `take` counts, which is faster than rows and columns
        left, right = self.places.take(from_), self.places.take(from_ + groups)
        part = np.clip((place - left) / np.maximum(right - left, 1), 0.0, 1.0)
        below, above = (Offset(*(each.take(at) for each in self.known)) for at in (from_, from_ + groups))
        told = between(below, above, part)
        return ToldRank(after, place == right, told.off, self._curve.between(from_, right - left, part, told.variance))

    @cached_property
    def crossing(self) -> Int64:
        """Where D crosses 0, as the straight line between the two places around it tells."""
        return np.asarray(np.rint(crossing_of(self.places, self.known)[0]).astype(np.int64))

    def row(self, told: ToldRank) -> Int64:
        """Return the rows of the ladder at thresholds; -1 where none was looked at."""
        many = len(self.ladder.thresholds)
        if not many:
            return np.full(told.after.shape, -1)
        row = np.minimum(told.after, many - 1)
        return np.where(told.here & (told.after == row) & self.seen[row, self.columns], row, -1)
