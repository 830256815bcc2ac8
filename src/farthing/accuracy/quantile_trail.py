"""What a search for a quantile measured on its way: released, and enough for a sharper question to go on from.

Each look is kept as it was measured, with what it was made for; a later run reads them in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    ShowBins = Callable[["ShownBins", Int64, Int64], Int64]

FIRST_GRAINS: Final = 16
"""The first look where nothing is known: 2^-52 of mu^2, enough to see a sum of 10^8."""


LOOK: Final = 1
"""What `kinds` says, with the rank in steps of 2^-20 that was looked for added, of one look of a search by rank. The
bits above tell the slack that it was made for, in steps of 2^-20; 0 where that is not known."""

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

VALUE: Final = 1 << 61
"""The same, without a slack, of one look of a search by value that is to find a place;"""

PAST: Final = 1 << 59
"""with this, of one that is to prove that the quantile is past its threshold,"""

BEFORE: Final = 1 << 60
"""and with this, that it is not."""

MORE: Final = 4
"""Room for one look more is made with every so many of those that there are."""

_LOOKS: Final = ("counts", "counted", "thresholds", "starts", "kinds", "means", "grains", "places", "shown")
_NOWHERE: Final = {"thresholds", "places"}

_KIND: Final = ROUND | VALUE | _SOUGHT
"""The bits by which rows are of one kind: those of the slack, and of what a look is to prove, do not matter."""


def _looks(kinds: Int64 | int) -> Flags:
    """Return which kinds are of looks of a search by rank."""
    return np.asarray((np.asarray(kinds) >= LOOK) & (np.asarray(kinds) < VALUE))


def made_by_value(steps: int, side: Int64 | int, target: int = 0) -> Int64:
    """Return the kinds of looks by value, for this rank in steps of 2^-20, each to prove a side: 1, -1, or 0 for none.

    The code of the target that they are made for, of 20 bits, is kept where looks by rank keep their slack.

    >>> (made_by_value(3, np.array([0, 1, -1])) - VALUE - LOOK - 3).tolist() == [0, PAST, BEFORE]
    True
    """
    toward = np.where(np.asarray(side) > 0, PAST, 0) + np.where(np.asarray(side) < 0, BEFORE, 0)
    return np.asarray(VALUE + LOOK + steps + (target << _SLACK_BIT) + toward)


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
        counts: float64[looks, groups], the rows that were counted with each look.
        counted: int64[looks, groups], the grains of that.
        thresholds: int64[looks, groups], where was looked; -1 for nowhere.
        kinds: int64[looks, groups], what it was made for: `made_for`, `made_by_value`, or a round.
        means: float64[looks, groups], D at the threshold, in rows; of a round, rows in a bin.
        grains: int64[looks, groups], the grains of that.
        starts, places, shown: what rounds say more; 0, -1 and 0 elsewhere. Of a look that is to prove a side of a value
            `shown` is the rate of the bet on it.
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
                getattr(made, name)[:, gone] = -1 if name in _NOWHERE else 0
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

    def targets(self, rows: Int64, groups: Int64) -> Int64:
        """Return the codes of the targets that looks by value of some groups, at these depths, were made for."""
        return np.asarray(self.kinds[rows, groups] >> _SLACK_BIT & (1 << 20) - 1)

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
        kind: int | Int64,
    ) -> None:
        """Keep one look of each of some groups: a fresh D at a threshold and a fresh count, each with its grains."""
        self.thresholds[rows, groups], self.kinds[rows, groups] = thresholds, kind
        self.means[rows, groups], self.grains[rows, groups] = ranks
        self.counts[rows, groups], self.counted[rows, groups] = counts
        self.paid[groups] += ranks[1] + counts[1]

    def grow(self, depth: int) -> None:
        """Make room for a look, and for some more where there is none."""
        for name in _LOOKS:
            column = getattr(self, name)
            if len(column) <= depth:
                usual = -1 if name in _NOWHERE else 0
                room = np.full((depth + 1 + depth // MORE - len(column), len(self.paid)), usual, column.dtype)
                setattr(self, name, np.vstack([column, room]))

    def trimmed(self) -> Trail:
        """Return it without the room after the last look."""
        looks = np.flatnonzero((self.thresholds >= 0).any(axis=1))
        counts = np.flatnonzero((self.counted > 0).any(axis=1))
        last = 1 + max(looks.max(initial=-1), counts.max(initial=-1))
        return replace(self, **{name: getattr(self, name)[:last] for name in _LOOKS})
