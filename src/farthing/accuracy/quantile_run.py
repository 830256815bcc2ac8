"""One run of a noisy bisection: from what is held, threshold by threshold, measuring only what is not known yet.

A run reads the same thing of every group as if it were the first: means at levels that do not depend on what was asked
before. What is held was read there already, so it is not measured again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.quantile_trail import FIRST_GRAINS, LEVEL, LEVELS, Trail, level_below

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_plan import BisectionPlan

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[Int64, Int64, Int64], Float64]
    MeasureCount = Callable[[Int64, Int64], Float64]

CLEARLY: Final = 4.0
"""A count is roughly known when it is this many times its noise."""

RESTART: Final = 0.25
"""A threshold's first look has this part of the information at which the one before was settled."""

START: Final = 4.0
"""The first look with a count has this part of it as its half-width, turned over."""

COUNT_CAP: Final = 8
"""Each of the two measurements of the count may pay a group's cap divided by this."""

FARTHEST: Final = 0.75
"""A value target is given up where a threshold could not be settled if it were this many of its noises farther off."""


@dataclass(slots=True)
class Run:
    """Where each group stands; all arrays have one entry a group.

    Without functions that measure, it goes as far as what is held leads: then `waits` says which groups need more.
    """

    plan: BisectionPlan
    trail: Trail  # its own: what was held, and what it adds
    measure: Measure | None
    measure_count: MeasureCount | None
    low: Int64
    high: Int64
    spent: Int64  # the grains that are read on this way
    rows: Float64
    slack: Float64  # rows by which D may be off what is looked for; 0 without a rank target
    goal: Float64  # the D that is looked for, in rows: 0 but near the ends
    active: Flags
    waits: Flags  # for a measurement that cannot be made
    good: Flags  # leaf `least` is within the rank target
    least: Int64  # the first threshold that is not too low for the rank target
    most: Int64  # the last one that is not too high
    depth: Int64  # thresholds that are behind
    here: Int64  # grains of the last look at the present threshold
    first: Int64  # grains of a threshold's first look
    middle: Int64  # the present thresholds

    @classmethod
    def of(
        cls,
        plan: BisectionPlan,
        held: Trail,
        settled: Flags,
        measure: Measure | None,
        measure_count: MeasureCount | None,
    ) -> Run:
        """Return the start: the whole range, nothing read. Groups that are settled already are left alone."""
        groups = len(held.paid)
        none, nothing, no = np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.bool_)
        run = cls(
            plan=plan, trail=held.only(LEVEL), measure=measure, measure_count=measure_count,
            low=none.copy(), high=none + plan.asked.leaves - 1, spent=none.copy(), rows=nothing + np.nan,
            slack=nothing.copy(), goal=nothing.copy(), active=~settled, waits=no.copy(), good=no.copy(),
            least=none + plan.asked.leaves, most=none - 2, depth=none.copy(), here=none.copy(),
            first=none + min(FIRST_GRAINS, plan.cap_grains), middle=none.copy(),
        )  # fmt: skip
        run.active &= ~run.narrow(np.arange(groups))
        return run

    def begin(self) -> None:
        """Count where a rank is asked for, and meet the first threshold."""
        if self.plan.asked.rank:
            self._count()
        self._meet(np.flatnonzero(self.active))

    def _count(self) -> None:
        """Measure the rows of each group: roughly, then as well as the rough count says is worth it.

        Only the last lane is read, so its own critical value covers it, however its size was chosen.
        """
        plan = self.plan
        most = plan.cap_grains // COUNT_CAP
        if not most:
            self.active[:] = False
            return
        rough = self._rough_count(most)
        self._begin_at(rough)
        self.rows, half = np.zeros(len(self.low)), np.full(len(self.low), np.inf)
        active, attempt = np.flatnonzero(self.active), 0
        while active.size:
            z = plan.z_count(attempt)
            wanted = (z / (plan.count_width * rough[active])) ** 2 / plan.count_per_grain
            active = self._counted(attempt + 1, np.clip(wanted, 1, most).astype(np.int64), active)
            grains = self.trail.counted[attempt + 1, active]
            self.rows[active] = self.trail.counts[attempt + 1, active]
            self.spent[active] += grains
            half[active] = z / np.sqrt(grains * plan.count_per_grain)
            again = (half[active] > 2 * plan.count_width * self.rows[active]) & (grains < most)
            rough[active] = np.maximum(np.minimum(rough[active] / 2, self.rows[active]), half[active] / z)
            active, attempt = active[again & (self.spent[active] + most <= plan.cap_grains // 2)], attempt + 1
        least, asked = np.maximum(self.rows - half, 0.0), plan.asked
        self.slack, self.goal = asked.slack * least, asked.beside * least

    def _rough_count(self, most: int) -> Float64:
        """Return the rows as they are first seen clearly above the noise, at least one noise each."""
        ahead, active = min(FIRST_GRAINS, most), np.flatnonzero(self.active)
        self.trail.grow_counts(0)
        while True:
            active = self._counted(0, np.full(len(active), ahead), active)
            held = np.maximum(self.trail.counted[0], 1)
            noise = 1 / np.sqrt(held * self.plan.count_per_grain)
            active = active[self.trail.counts[0, active] < CLEARLY * noise[active]]
            if not active.size or ahead == most:
                self.spent[self.active] = self.trail.counted[0, self.active]
                return np.asarray(np.maximum(self.trail.counts[0], noise))
            ahead = min(2 * ahead, most)

    def _counted(self, lane: int, level: Int64, at: Int64) -> Int64:
        """Bring a lane of some groups up to a level; return the groups where that could be done."""
        self.trail.grow_counts(lane)
        grains = np.maximum(level - self.trail.counted[lane, at], 0)
        stuck = (grains > 0) & (level > self.plan.cap_grains - self.spent[at])
        self.active[at[stuck]] = False
        at, grains = at[~stuck], grains[~stuck]
        at, grains = self._without_those_that_wait(at, grains > 0, grains)
        buys = grains > 0
        if buys.any() and self.measure_count is not None:
            self.trail.count(lane, self.measure_count(grains[buys], at[buys]), grains[buys], at[buys])
        return at

    def _begin_at(self, rows: Float64) -> None:
        """Choose the first look by what the rough count says: a later run, which counts better, chooses the same."""
        plan = self.plan
        first = (START * plan.z_last / rows) ** 2 / plan.per_grain
        self.first = np.clip(first, min(FIRST_GRAINS, plan.cap_grains), plan.cap_grains).astype(np.int64)

    def _meet(self, at: Int64) -> None:
        """Let groups meet their next thresholds, where a look may have been taken before."""
        self.here[at] = 0
        self.middle[at] = (self.low[at] + self.high[at]) // 2
        self.trail.meet(self.depth[at], self.middle[at], level_below(self.first[at]), at)

    def look(self, at: Int64) -> None:
        """Take one look at the present threshold of the groups `at`; move on where it settles them."""
        ahead, place, last, at = self._ahead(at)
        grains = ahead - self.trail.grains[self.depth[at], at]
        buys = grains > 0
        if buys.any() and self.measure is not None:
            some = at[buys]
            fresh = self.measure(self.middle[some], grains[buys], some)
            self.trail.look(self.depth[some], fresh, grains[buys], some)
        self.spent[at] += ahead - self.here[at]
        self.here[at] = ahead
        self._settle(at, self._half(at, ahead, place, last), last)

    def _half(self, at: Int64, ahead: Int64, place: Int64, last: Flags) -> Float64:
        """Return the half-widths of looks."""
        plan, depth = self.plan, self.depth[at]
        z = np.where(last, plan.z_last, plan.z(place - self.trail.starts[depth, at]))
        return np.asarray(z / np.sqrt(ahead * plan.per_grain))

    def _ahead(self, at: Int64) -> tuple[Int64, Int64, Flags, Int64]:
        """Return the grains of the next look, its place in LEVELS, and whether it is the last one at its threshold.

        Groups that cannot pay for it stop; those that would have to wait do. The others are returned, too.
        """
        plan, here, depth = self.plan, self.here[at], self.depth[at]
        held, start = self.trail.grains[depth, at], self.trail.starts[depth, at]
        room = plan.cap_grains - self.spent[at] + here
        most = np.minimum(plan.last_grains(self.slack[at]), room)
        place = np.searchsorted(LEVELS, np.maximum(np.maximum(held, here + 1), LEVELS[start]))
        seen = self.trail.places[depth, at]
        place = np.where((seen >= start) & (LEVELS[seen] > here), seen, place)
        level = LEVELS[np.minimum(place, len(LEVELS) - 1)]
        last = (here < most) & (held <= most) & (most <= level)
        ahead = np.where(last, most, level)
        stuck = ~last & ((ahead > np.maximum(room, held)) | (place >= len(LEVELS)))
        self.active[at[stuck]] = False
        at, ahead, place, last = at[~stuck], ahead[~stuck], place[~stuck], last[~stuck]
        buys = ahead > self.trail.grains[self.depth[at], at]
        at, ahead, place, last = self._without_those_that_wait(at, buys, ahead, place, last)
        return ahead, place, last, at

    def _without_those_that_wait(self, at: Int64, buys: Flags, *others: Any) -> tuple[Any, ...]:
        """Return the groups, and what goes with them, that need no measurement, where none can be made."""
        if self.measure is not None:
            return at, *others
        self.waits[at[buys]], self.active[at[buys]] = True, False
        return at[~buys], *(each[~buys] for each in others)

    def _settle(self, at: Int64, half: Float64, last: Flags) -> None:
        """Move to the next threshold where the sign is sure; stop where a target or the cap is reached."""
        depth = self.depth[at]
        held = self.trail.grains[depth, at] == self.here[at]
        mean = np.where(held, self.trail.means[depth, at], self.trail.shown[depth, at]) - self.goal[at]
        middle = self.middle[at]
        good, least, most = self._within_rank(at, mean, half)
        left, right = ~good & (mean > half), ~good & (mean < -half)
        self.high[at[left]], self.low[at[right]] = middle[left], middle[right] + 1
        moved = left | right
        self.active[at] = ~good & (moved | ~last) & (self.spent[at] < self.plan.cap_grains)
        self.active[at] &= ~self.narrow(at) & (good | moved | ~self._hopeless(at, mean))
        gone = good | moved
        self.good[at], self.least[at[gone]], self.most[at[gone]] = good, least[gone], most[gone]
        on = at[moved]
        self.first[on] = np.maximum((self.here[on] * RESTART).astype(np.int64), 1)
        self.depth[on] += 1
        self._meet(on[self.active[on]])

    def _hopeless(self, at: Int64, mean: Float64) -> Flags:
        """Return which thresholds the rest of the cap most likely does not settle; none where a rank may do instead."""
        plan, here = self.plan, self.here[at]
        if plan.spend or plan.asked.rank:
            return np.zeros(len(at), np.bool_)
        farthest = np.abs(mean) + FARTHEST / np.sqrt(here * plan.per_grain)
        room = plan.cap_grains - self.spent[at] + here
        return np.asarray(farthest * np.sqrt(room * plan.per_grain) < plan.z_last)

    def _within_rank(self, at: Int64, mean: Float64, half: Float64) -> tuple[Flags, Int64, Int64]:
        """Return where a leaf is surely within the rank target, and what `least` and `most` are with this look.

        A threshold is not too low if D >= -slack, and then no later one is; not too high if D <= slack, and then no
        earlier one is. A leaf is right if its own threshold is not too low, and the one before it not too high.
        """
        middle, slack = self.middle[at], self.slack[at]
        least = np.where(mean - half >= -slack, np.minimum(self.least[at], middle), self.least[at])
        most = np.where(mean + half <= slack, np.maximum(self.most[at], middle), self.most[at])
        return (least <= most + 1) & bool(self.plan.asked.rank), least, most

    def narrow(self, at: Int64) -> Flags:
        """Return which ranges need no further bisection: one leaf, or within the value target."""
        return np.asarray((self.low[at] == self.high[at]) | self.within(at))

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle."""
        plan = self.plan
        lower, upper = plan.asked.least(self.low[at]), plan.asked.most(self.high[at])
        return within(lower, upper, plan.relative, plan.absolute)


def within(lower: Float64, upper: Float64, relative: float, absolute: float) -> Flags:
    """Return where every number between two ends is within max(relative |number|, absolute) of their middle.

    >>> within(np.array([9.0, -1.0]), np.array([11.0, 1.0]), 0.12, 0.5).tolist()
    [True, False]
    """
    least: Float64 = np.where((lower <= 0) & (upper >= 0), 0.0, np.minimum(np.abs(lower), np.abs(upper)))
    return np.asarray((upper - lower) / 2 <= np.maximum(relative * least, absolute))
