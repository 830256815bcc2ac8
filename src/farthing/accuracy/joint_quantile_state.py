"""What a joint search for several quantiles measured, and what it comes to: released, and enough to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]


class JointPlan(Protocol):
    """What a run knows of its plan."""

    @property
    def asked(self) -> tuple[QuantileGoal, ...]:
        """The quantiles, with their rank targets."""

    @property
    def many(self) -> int:
        """How many there are."""

    @property
    def leaves(self) -> int:
        """How many leaves the range has."""

    def line(self, slack: Float64, depth: Int64 | int) -> tuple[Float64, Float64]:
        """Return slope and offset of the half-widths that noise passes nowhere."""


@dataclass(slots=True, eq=False)
class JointTrail:
    """Everything that is kept of the groups of one question; an entry is one quantile of one group.

    Attributes:
        counts: float64[lanes, groups], means of the rows; the first lane is the rough count.
        counted: int64[lanes, groups], the grains that they hold.
        thresholds: int64[depths, entries], the threshold that was to be proven after so many others; -1 for none.
        leaves: int64[depths, entries], the one leaf that a search had come to; -1 for none.
        means: float64[depths, entries], of the rows up to it less their share q of all, in rows.
        held: float64[depths, entries], the information that they have.
        paid: int64[groups], all grains that a member of the group has ever paid.
    """

    counts: Float64
    counted: Int64
    thresholds: Int64
    leaves: Int64
    means: Float64
    held: Float64
    paid: Int64

    @classmethod
    def nothing(cls, groups: int, many: int) -> JointTrail:
        """Return the trail before any measurement.

        >>> JointTrail.nothing(2, 9).thresholds.shape
        (0, 18)
        """
        counts, entries = np.zeros((0, groups)), np.zeros((0, groups * many))
        whole = entries.astype(np.int64)
        return cls(counts, counts.astype(np.int64), whole, whole, entries, entries, np.zeros(groups, np.int64))

    def copy(self) -> JointTrail:
        """Return a trail that may be added to."""
        return JointTrail(*(getattr(self, name).copy() for name in self.__slots__))

    def count(self, lane: int, fresh: Float64, grains: Int64, groups: Int64) -> None:
        """Add fresh counts of some groups, each at so many grains, to a lane."""
        held = self.counted[lane, groups] + grains
        self.counts[lane, groups] += (fresh - self.counts[lane, groups]) * (grains / held)
        self.counted[lane, groups] = held
        self.paid[groups] += grains

    def grow_counts(self, lane: int) -> None:
        """Make room for a lane."""
        while len(self.counts) <= lane:
            self.counts = np.vstack([self.counts, np.zeros(len(self.paid))])
            self.counted = np.vstack([self.counted, np.zeros(len(self.paid), np.int64)])

    def threshold(self, depth: Int64, at: Int64) -> Int64:
        """Return the thresholds that entries met at these depths; -1 for none."""
        self._grow(int(depth.max(initial=-1)))
        return np.asarray(self.thresholds[depth, at])

    def at(self, depth: Int64, at: Int64) -> tuple[Float64, Float64]:
        """Return the means of entries at these depths, and the information that they have."""
        return self.means[depth, at], self.held[depth, at]

    def meet(self, depth: Int64, place: Int64, leaf: Int64, at: Int64) -> None:
        """Let entries meet new thresholds at these depths."""
        self._grow(int(depth.max(initial=-1)))
        self.thresholds[depth, at], self.leaves[depth, at] = place, leaf

    def keep(self, depth: Int64, means: Float64, held: Float64, at: Int64) -> None:
        """Keep what is known at thresholds."""
        self.means[depth, at], self.held[depth, at] = means, held

    def _grow(self, depth: int) -> None:
        """Make room for thresholds at a depth."""
        while len(self.thresholds) <= depth:
            none = np.zeros(self.thresholds.shape[1])
            self.thresholds = np.vstack([self.thresholds, none.astype(np.int64) - 1])
            self.leaves = np.vstack([self.leaves, none.astype(np.int64) - 1])
            self.means, self.held = np.vstack([self.means, none]), np.vstack([self.held, none])


class JointQuantilesState(NamedTuple):
    """What a run ends with, int64 and so on [groups, quantiles]; all of it released.

    Attributes:
        value: float64, the quantiles.
        lower, upper: float64, an interval that holds each.
        met: bool, whether the rank of `value` is surely within the target.
        waits: bool[groups], whether what is held does not suffice, and nothing more could be measured.
        trail: what was measured, for a later run.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    waits: Flags
    trail: JointTrail
