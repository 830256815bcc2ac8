"""The rows of each group, for rank targets of several quantiles: roughly, then as well as that says is worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.joint_quantile_state import JointTrail

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    MeasureCount = Callable[[Int64, Int64], Float64]

CLEARLY: Final = 4.0
"""A count is roughly known when it is this many times its noise."""

COUNT_CAP: Final = 8
"""Each measurement of the count may pay a group's cap divided by this."""

FIRST_GRAINS: Final = 16
"""The first look at a count of which nothing is known."""


class CountPlan(Protocol):
    """What a count knows of its plan."""

    @property
    def cap_grains(self) -> int:
        """The most that a group may pay."""

    @property
    def count_per_grain(self) -> float:
        """Information on a count that one grain buys."""

    @property
    def count_width(self) -> float:
        """How far a count may be off, as a share of it."""

    def z_count(self, attempt: int) -> float:
        """Return the critical value of an attempt."""


@dataclass(slots=True)
class JointCount:
    """One run of the count of every group; only the last lane is read, so its own critical value covers it.

    Attributes:
        plan: how well it is to be counted.
        trail: what was measured; added to.
        measure: fresh noisy rows; None where nothing may be measured.
        active: bool[groups], which groups go on.
        waits: bool[groups], which would, if anything could be measured.
    """

    plan: CountPlan
    trail: JointTrail
    measure: MeasureCount | None
    active: Flags
    waits: Flags

    def run(self) -> tuple[Float64, Float64]:
        """Return the rows, and how far they may be off, float64[groups] each."""
        plan, most = self.plan, self.plan.cap_grains // COUNT_CAP
        rows, half = np.zeros(len(self.active)), np.full(len(self.active), np.inf)
        if not most:
            self.active[:] = False
            return rows, half
        rough = self._roughly(most)
        at, attempt = np.flatnonzero(self.active), 0
        while at.size:
            z = plan.z_count(attempt)
            wanted = (z / (plan.count_width * rough[at])) ** 2 / plan.count_per_grain
            at = self._counted(attempt + 1, np.clip(wanted, 1, most).astype(np.int64), at)
            grains = self.trail.counted[attempt + 1, at]
            rows[at] = self.trail.counts[attempt + 1, at]
            half[at] = z / np.sqrt(grains * plan.count_per_grain)
            again = (half[at] > 2 * plan.count_width * rows[at]) & (grains < most)
            rough[at] = np.maximum(np.minimum(rough[at] / 2, rows[at]), half[at] / z)
            lanes = self.trail.counted[:, at].sum(axis=0)
            at, attempt = at[again & (lanes + most <= plan.cap_grains // 2)], attempt + 1
        return rows, half

    def _roughly(self, most: int) -> Float64:
        """Return the rows as they are first seen clearly above the noise, at least one noise each."""
        ahead, at = min(FIRST_GRAINS, most), np.flatnonzero(self.active)
        self.trail.grow_counts(0)
        while True:
            at = self._counted(0, np.full(len(at), ahead), at)
            held = np.maximum(self.trail.counted[0], 1)
            noise = 1 / np.sqrt(held * self.plan.count_per_grain)
            at = at[self.trail.counts[0, at] < CLEARLY * noise[at]]
            if not at.size or ahead == most:
                return np.asarray(np.maximum(self.trail.counts[0], noise))
            ahead = min(2 * ahead, most)

    def _counted(self, lane: int, level: Int64, at: Int64) -> Int64:
        """Bring a lane of some groups up to a level; return the groups where that could be done."""
        self.trail.grow_counts(lane)
        grains = np.maximum(level - self.trail.counted[lane, at], 0)
        stuck = (grains > 0) & (grains > self.plan.cap_grains - self.trail.paid[at])
        self.active[at[stuck]] = False
        at, grains = at[~stuck], grains[~stuck]
        buys = grains > 0
        if self.measure is None:
            self.active[at[buys]], self.waits[at[buys]] = False, True
            return np.asarray(at[~buys])
        if buys.any():
            self.trail.count(lane, self.measure(grains[buys], at[buys]), grains[buys], at[buys])
        return at
