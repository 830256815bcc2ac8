"""Where a quantile may lie: a cheap noisy search that chooses the next threshold of a bisection, and promises nothing.

A bisection proves what it says at thresholds of its choice, with fresh noise; so whatever chose them, its promise is
the same. A search that may err costs a fraction of one that may not: it looks at each threshold until a side is likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LIKELY: Final = 2.4
"""The search moves to a side that is this many standard deviations away,"""

FARTHER: Final = 0.3
"""and by so many more for each doubling of how many slacks away: it costs less there, and an error costs more."""

ENOUGH: Final = 3.0
"""At this information, times the squared slack, it needs no more of a threshold."""

NEAR: Final = 0.45
"""Then a threshold that seems to be off by less than this part of the slack is the one to prove."""

GROWTH: Final = 1.6
"""A look has this many times the information of the one before."""

RESTART: Final = 0.25
"""The first look at a threshold has this part of the information at which the one before was left."""

STRAIGHT: Final = 8.0
"""Between two thresholds that are off by fewer slacks than this the search goes by the straight line."""

LEAP: Final = 5.0
"""Between two thresholds that are fewer slacks apart the straight line alone chooses the one to prove."""

_LEAST_STEP: Final = 0.1


@dataclass(slots=True, eq=False)
class Scouts:
    """Where each group's search stands; one entry a group.

    Attributes:
        left, right: the quantile lies most likely in leaves left to right.
        under, over: how far D seems to be off what is looked for just left of them, and at `right`, in rows.
        mean: of D, less what is looked for, at the present place.
        grains: that the mean holds.
        first: grains of the next threshold's first look.
        paid: grains read since a threshold was chosen.
        place: the present place.
        searching: whether the group looks for its next threshold.
    """

    left: Int64
    right: Int64
    under: Float64
    over: Float64
    mean: Float64
    grains: Int64
    first: Int64
    paid: Int64
    place: Int64
    searching: Flags

    @classmethod
    def of(cls, groups: int, leaves: int) -> Scouts:
        """Return the start: the whole range.

        >>> Scouts.of(2, 8).right.tolist()
        [7, 7]
        """
        none, far = np.zeros(groups, np.int64), np.full(groups, np.inf)
        fields = none.copy(), none + leaves - 1, -far, far, np.zeros(groups)
        return cls(*fields, none.copy(), none + 1, none.copy(), none.copy(), np.zeros(groups, np.bool_))

    def begin(self, at: Int64) -> None:
        """Let groups look for their next thresholds."""
        self.searching[at], self.paid[at] = True, 0

    def within(self, at: Int64, low: Int64, high: Int64) -> None:
        """Keep to leaves low to high; where nothing of them is left, begin again with all of them."""
        cut = self.left[at] < low
        self.left[at[cut]], self.under[at[cut]] = low[cut], -np.inf
        cut = self.right[at] > high
        self.right[at[cut]], self.over[at[cut]] = high[cut], np.inf
        lost = self.left[at] > self.right[at]
        self.left[at[lost]], self.right[at[lost]] = low[lost], high[lost]
        self.under[at[lost]], self.over[at[lost]] = -np.inf, np.inf

    def move(self, at: Int64, place: Int64, off: Float64) -> None:
        """Move on from places where D seems to be off by so many rows."""
        up = off < 0
        self.left[at[up]], self.under[at[up]] = place[up] + 1, off[up]
        self.right[at[~up]], self.over[at[~up]] = place[~up], off[~up]

    def aim(self, at: Int64, slack: Float64) -> Flags:
        """Choose the next place: the middle, or near the quantile where the straight line between the ends goes.

        Return where the ends are so near that this place may be the one to prove.
        """
        left, right = self.left[at], self.right[at]
        span = self.over[at] - self.under[at]
        with np.errstate(invalid="ignore"):
            part = np.where(span < 2 * STRAIGHT * slack, -self.under[at] / span, 0.5)
        part = np.clip(np.nan_to_num(part, nan=0.5), _LEAST_STEP, 1 - _LEAST_STEP)
        place = left + np.floor((right - left) * part).astype(np.int64)
        self.place[at] = np.minimum(place, np.maximum(right - 1, left))
        self.mean[at], self.grains[at] = 0.0, 0
        return np.asarray(span < LEAP * slack)

    def ahead(self, at: Int64) -> Int64:
        """Return how many grains the next look adds."""
        held = self.grains[at]
        more = np.maximum(np.ceil(held * (GROWTH - 1)), 1).astype(np.int64)
        return np.asarray(np.where(held == 0, np.maximum(self.first[at], 1), more))

    def read(self, at: Int64, fresh: Float64, grains: Int64) -> None:
        """Add what was measured at the present places."""
        held = self.grains[at] + grains
        self.mean[at] += (fresh - self.mean[at]) * (grains / held)
        self.grains[at] = held
        self.paid[at] += grains

    def judged(self, at: Int64, slack: Float64, per_grain: float) -> tuple[Flags, Flags]:
        """Return where the present place is the one to prove, and where the search moves on."""
        information, off = self.grains[at] * per_grain, np.abs(self.mean[at])
        enough = information * slack**2 >= ENOUGH
        found = enough & (off <= NEAR * slack)
        with np.errstate(divide="ignore", invalid="ignore"):
            likely = off * np.sqrt(information) >= LIKELY + FARTHER * np.log2(1 + off / slack)
        return found, ~found & (enough | likely)
