"""What a noisy bisection measured on its way: released, and enough for a sharper question to go on from.

Two kinds of things are measured of a group: its rows, in a few lanes (a rough count, then one lane for each try to
count as well as the target is worth), and, at each threshold that was met, the rows below it. Each has a running mean
and the information that it holds. At a threshold, looks are taken at *levels* that are the same for every question; so
a later one takes them where an earlier one did, or beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.mechanisms.gaussian import MOST_GRAINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    ShowBins = Callable[["ShownBins", Int64, Int64], Int64]

FIRST_GRAINS: Final = 16
"""The first look where nothing is known: 2^-52 of mu^2, enough to see a sum of 10^8."""


LEVEL: Final = 0
"""What `kinds` says of a threshold of a bisection, whose measurements are added up;"""

LOOK: Final = 1
"""and, with the rank in steps of 2^-20 that was looked for added, of one look of a search by rank. The bits above
tell the slack that it was made for, in steps of 2^-20; 0 where that is not known."""

_SLACK_BIT: Final = 21
_SOUGHT: Final = (1 << _SLACK_BIT) - 1


def made_for(steps: int, slack: float) -> int:
    """Return the kind of a look for this rank, in steps of 2^-20, with this slack, as a share of the rows.

    >>> made_for(3, 0.25) == LOOK + 3 + (1 << 18 << 21)
    True
    """
    return LOOK + steps + (max(1, round(slack * (1 << 20))) << _SLACK_BIT)


ROUND: Final = 1 << 62
"""The same, without a slack, of a threshold of a round, of a search by value; `shown` says how many more follow."""

_KIND: Final = ROUND | _SOUGHT
"""The bits by which rows are of one kind: those of the slack do not matter."""


def _looks(kinds: Int64 | int) -> Flags:
    """Return which kinds are of looks of a search by rank."""
    return np.asarray((np.asarray(kinds) >= LOOK) & (np.asarray(kinds) < ROUND))


def _levels() -> Int64:
    """Return the levels: each one and a half times the one before, down to whole grains; the last is all there are."""
    levels = [FIRST_GRAINS]
    while levels[-1] + levels[-1] // 2 < MOST_GRAINS:
        levels.append(levels[-1] + levels[-1] // 2)
    return np.array([*levels, MOST_GRAINS], np.int64)


LEVELS: Final = _levels()
"""The grains at which a threshold is looked at, whatever is asked."""


def level_below(grains: Int64) -> Int64:
    """Return the places in LEVELS of the largest levels that are no larger than these grains; 0 for fewer.

    >>> level_below(np.array([3, 16, 30, 1 << 62])).tolist() == [0, 0, 1, len(LEVELS) - 1]
    True
    """
    return np.asarray(np.maximum(np.searchsorted(LEVELS, grains, "right") - 1, 0))


class ShownBins(NamedTuple):
    """Thresholds of some groups, and what the bins between them have shown last.

    Attributes:
        places: int64[thresholds, n], rising; -1 for none, at the end.
        shown: int64[thresholds + 1, n], rows in the bins, from the lowest; those after the last are 0.
        farthings: int64[n], at how many farthings; 0 before any look.
    """

    places: Int64
    shown: Int64
    farthings: Int64


@dataclass(slots=True, eq=False)
class Trail:
    """Everything that was measured of the groups of one quantile, one column a group.

    Attributes:
        counts: float64[lanes, groups], means of the rows; the first lane is the rough count.
        counted: int64[lanes, groups], the grains that they hold.
        thresholds: int64[depths, groups], the threshold that was met after so many others; -1 for none.
        starts: int64[depths, groups], the place in LEVELS of the threshold's first look.
        kinds: int64[depths, groups], `LEVEL`, or what `made_for` says: the rank that was looked for, and its slack.
        means: float64[depths, groups], of D at the threshold, in rows.
        grains: int64[depths, groups], the grains that they hold.
        places: int64[depths, groups], the place in LEVELS of the last look at a level; -1 for none.
        shown: float64[depths, groups], the mean at that look.
        paid: int64[groups], all grains that a member of the group has ever paid, also for what is here no more.
    """

    counts: Float64
    counted: Int64
    thresholds: Int64
    starts: Int64
    kinds: Int64
    means: Float64
    grains: Int64
    places: Int64
    shown: Float64
    paid: Int64

    @classmethod
    def nothing(cls, groups: int) -> Trail:
        """Return the trail before any measurement.

        >>> Trail.nothing(2).paid.tolist()
        [0, 0]
        """
        whole, real = np.zeros((0, groups), np.int64), np.zeros((0, groups))
        return cls(real, whole, whole, whole, whole, real, whole, whole, real, np.zeros(groups, np.int64))

    def copy(self) -> Trail:
        """Return a trail that may be added to."""
        return Trail(*(getattr(self, name).copy() for name in self.__slots__))

    def count(self, lane: int, fresh: Float64, grains: Int64, groups: Int64) -> None:
        """Add fresh counts of some groups, each at so many grains, to a lane."""
        self.grow_counts(lane)
        held = self.counted[lane, groups] + grains
        self.counts[lane, groups] += (fresh - self.counts[lane, groups]) * (grains / held)
        self.counted[lane, groups] = held
        self.paid[groups] += grains

    def look(self, rows: Int64, fresh: Float64, grains: Int64, groups: Int64) -> None:
        """Add fresh values of D at the thresholds of some groups, at these depths, each at so many grains."""
        held = self.grains[rows, groups] + grains
        self.means[rows, groups] += (fresh - self.means[rows, groups]) * (grains / held)
        self.grains[rows, groups] = held
        self.paid[groups] += grains
        place = level_below(held)
        at_level = LEVELS[place] == held
        self.places[rows[at_level], groups[at_level]] = place[at_level]
        self.shown[rows[at_level], groups[at_level]] = self.means[rows[at_level], groups[at_level]]

    def meet(self, rows: Int64, thresholds: Int64, starts: Int64, groups: Int64) -> None:
        """Let some groups meet thresholds at these depths; one that is new there takes the place of what was below.

        What was measured on another way is dropped, not what was paid for it.
        """
        self._grow(int(rows.max(initial=-1)))
        new = self.thresholds[rows, groups] != thresholds
        for depth in range(int(rows[new].min(initial=len(self.thresholds))), len(self.thresholds)):
            gone = groups[new & (rows <= depth)]
            self.thresholds[depth, gone], self.starts[depth, gone] = -1, 0
            self.kinds[depth, gone] = LEVEL
            self.means[depth, gone], self.grains[depth, gone] = 0.0, 0
            self.shown[depth, gone], self.places[depth, gone] = 0.0, -1
        self.thresholds[rows[new], groups[new]] = thresholds[new]
        self.starts[rows[new], groups[new]] = starts[new]

    def only(self, kind: int) -> Trail:
        """Return a trail that may be added to: of groups that hold rows of another kind, only the price is kept.

        Looks for another rank are of the same kind: the place of MIN and MAX moves with the target, and each look tells
        of D at its own place, whatever it was made for.
        """
        made, bare = self.copy(), self.counted[len(self.kinds) :] > 0
        other = (self.thresholds >= 0) & ((self.kinds ^ kind) & _KIND != 0) & ~(_looks(self.kinds) & _looks(kind))
        gone = other.any(axis=0) | ((kind >= LOOK) & bare.any(axis=0))
        for name in self.__slots__:
            if name != "paid":
                getattr(made, name)[:, gone] = -1 if name in {"thresholds", "places"} else 0
        return made

    def dropped(self) -> Int64:
        """Return the grains that were paid for what is held no more; they count towards a cap all the same.

        >>> held, first = Trail.nothing(1), np.zeros(1, np.int64)
        >>> held.grow(0)
        >>> held.keep(first, first, (first + 0.0, first + 16), (first + 0.0, first), first, LOOK + 5)
        >>> held.only(LOOK + 5).dropped().tolist(), held.only(ROUND + 5).dropped().tolist()
        ([0], [16])
        """
        return np.asarray(self.paid - self.grains.sum(axis=0) - self.counted.sum(axis=0))

    def slacks(self, rows: Int64, groups: Int64) -> Float64:
        """Return the slack that looks of some groups, at these depths, were made for; 0 where that is not known."""
        return np.asarray((self.kinds[rows, groups] >> _SLACK_BIT) / (1 << 20))

    def moved(self, rows: Int64, groups: Int64, kind: int) -> Flags:
        """Return which looks of some groups, at these depths, were made for another rank than this kind's."""
        return np.asarray((self.kinds[rows, groups] ^ kind) & _SOUGHT != 0)

    def keep(  # noqa: PLR0917  # one look, as it was taken
        self,
        rows: Int64,
        thresholds: Int64,
        ranks: tuple[Float64, Int64],
        counts: tuple[Float64, Int64],
        groups: Int64,
        kind: int,
    ) -> None:
        """Keep one look of each of some groups: a fresh D at a threshold and a fresh count, each with its grains."""
        self.thresholds[rows, groups], self.kinds[rows, groups] = thresholds, kind
        self.means[rows, groups], self.grains[rows, groups] = ranks
        self.counts[rows, groups], self.counted[rows, groups] = counts
        self.paid[groups] += ranks[1] + counts[1]

    def grow(self, depth: int) -> None:
        """Make room for a look."""
        self.grow_counts(depth)
        self._grow(depth)

    def grow_counts(self, lane: int) -> None:
        """Make room for a lane."""
        while len(self.counts) <= lane:
            self.counts = np.vstack([self.counts, np.zeros(len(self.paid))])
            self.counted = np.vstack([self.counted, np.zeros(len(self.paid), np.int64)])

    def _grow(self, depth: int) -> None:
        """Make room for thresholds at a depth."""
        while len(self.thresholds) <= depth:
            none = np.zeros(len(self.paid), np.int64)
            self.thresholds = np.vstack([self.thresholds, none - 1])
            self.starts = np.vstack([self.starts, none])
            self.kinds = np.vstack([self.kinds, none])
            self.means = np.vstack([self.means, np.zeros(len(self.paid))])
            self.grains = np.vstack([self.grains, none])
            self.places = np.vstack([self.places, none - 1])
            self.shown = np.vstack([self.shown, np.zeros(len(self.paid))])
