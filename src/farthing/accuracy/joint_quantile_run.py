"""One run of a joint search for several quantiles: every look is at one threshold of each that is still looked for.

Entries are quantiles of groups: entry e is quantile e % k of group e // k. An entry is searched first: cheap looks that
may err bring it near its quantile. Then it proves: the noise at a threshold, from its first look on, stays below a line
at every information except with the threshold's chance, so it may be looked at whenever others are, and left again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_quantile_line import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.joint_quantile_state import JointPlan, JointTrail
    from farthing.mechanisms.joint_ranks import RankStrategy

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[RankStrategy, Int64, Int64, Int64], Float64]

FIRST: Final = 64.0
"""The first look of a search has this much information, over the square of the rows."""

LIKELY: Final = 2.2
"""A search moves to a side that is this many standard deviations away,"""

FARTHER: Final = 0.3
"""and by so many more for each doubling of how many slacks away."""

ENOUGH: Final = 2.5
"""At this information, times the squared slack, it needs no more of a threshold."""

GROWTH: Final = 0.7
"""The next look of a search adds this part of what is held."""

RESTART: Final = 0.25
"""The first look at a threshold has this part of the information at which the one before was left."""

NEAR: Final = 5.0
"""Between thresholds that are fewer slacks apart the straight line chooses the one to prove."""

STRAIGHT: Final = 3
"""It chooses so many of them; then it is the middle, since ranks seem to jump."""

FOUND: Final = 0.7
"""A place that seems to be off by less than this part of the slack is the one to prove."""

LEAST_STEP: Final = 0.06
"""A look at thresholds to prove adds at least this part of what is held,"""

MOST_STEP: Final = 0.3
"""and at most this part."""

OPENING: Final = 1.5
"""Their first look has this information, times the squared slack."""

LEAVE: Final = 0.35
"""A threshold is left where it seems to be off by more than this part of the slack,"""

LEAVE_ODDS: Final = 3.5
"""and by so much more, divided by the information times the slack."""

TOGETHER: Final = 3.0
"""Searches are looked at together where their looks ask for less than so many times the least."""

MOST_THRESHOLDS: Final = 40
"""So many thresholds are tried; then a quantile is given up."""

_UP: Final = 1 + 1e-9


@dataclass(slots=True)
class JointRun:
    """Where each entry stands; one entry a quantile and group, but for `rows`, `spare` and `paid`.

    Attributes:
        plan: what is looked for.
        trail: what was measured; its own.
        slack, goal: as for one quantile, in rows.
        low, high: the quantile surely lies in leaves low to high.
        left, right: the quantile lies most likely in leaves left to right.
        under, over: how far the rank seems to be off just left of them, and at `right`, in rows.
        sure_under, sure_over: the information that these have.
        place: the present thresholds.
        mean, held: how far the rank there seems to be off, in rows, and the information that this has.
        first, start: the information of a next threshold's first look, and of a search's.
        line: how far off ranks seem to be, as a straight line through what was seen.
        depth: thresholds that are behind.
        proving: whether the present threshold is to be proven; else it is one of a search.
        least, most: the first threshold that is not too low, and the last that is not too high.
        active, good, waits: not done yet; within the target; for a measurement that cannot be made.
    """

    plan: JointPlan
    trail: JointTrail
    slack: Float64
    goal: Float64
    low: Int64
    high: Int64
    left: Int64
    right: Int64
    under: Float64
    over: Float64
    sure_under: Float64
    sure_over: Float64
    place: Int64
    mean: Float64
    held: Float64
    first: Float64
    start: Float64
    line: Line
    depth: Int64
    proving: Flags
    least: Int64
    most: Int64
    active: Flags
    good: Flags
    waits: Flags

    @classmethod
    def of(cls, plan: JointPlan, trail: JointTrail, rows: Float64, least: Float64, active: Flags) -> JointRun:
        """Return the start of all entries, once the rows of their groups are known.

        Args:
            plan: what is looked for.
            trail: what is held; added to.
            rows: float64[groups], of each group.
            least: float64[groups], how many these are at least.
            active: bool[groups, quantiles], what is looked for.
        """
        slack = (least[:, None] * [one.slack for one in plan.asked]).ravel()
        goal = (least[:, None] * [one.beside for one in plan.asked]).ravel()
        active = (active & (least > 0)[:, None]).ravel()
        many = len(slack)
        none, nothing, no = np.zeros(many, np.int64), np.zeros(many), np.zeros(many, np.bool_)
        start = FIRST / np.repeat(np.maximum(rows, 1.0), plan.many) ** 2
        run = cls(
            plan=plan, trail=trail, slack=slack, goal=goal, low=none.copy(), high=none + plan.leaves - 1,
            left=none.copy(), right=none + plan.leaves - 1, under=nothing - np.inf, over=nothing + np.inf,
            sure_under=nothing.copy(), sure_over=nothing.copy(), place=none.copy(), mean=nothing.copy(),
            held=nothing.copy(), first=start.copy(), start=start, line=Line.of(many), depth=none.copy(),
            proving=no.copy(), least=none + plan.leaves - 1, most=none - 1, active=active, good=no.copy(),
            waits=no.copy(),
        )  # fmt: skip
        run._meet(np.flatnonzero(active))
        return run

    def _meet(self, at: Int64) -> None:
        """Let entries meet the thresholds that they proved before at this depth; else let them search."""
        tired = self.depth[at] >= MOST_THRESHOLDS
        self.active[at[tired]] = False
        at = at[~tired]
        place = self.trail.threshold(self.depth[at], at)
        known = place >= 0
        again = at[known]
        self.place[again], self.proving[again] = place[known], True
        means, self.held[again] = self.trail.at(self.depth[again], again)
        self.mean[again] = means - self.goal[again]
        self._aim(at[~known])

    def _aim(self, at: Int64) -> None:
        """Let searches go to their next places, or to the thresholds to prove."""
        lost = at[self.left[at] > self.right[at]]
        self.left[lost], self.right[lost] = 0, self.plan.leaves - 1
        self.under[lost], self.over[lost], self.first[lost] = -np.inf, np.inf, self.start[lost]
        self.line.forget(lost)
        left, right = self.left[at], self.right[at]
        middle = left + (right - left) // 2
        one, near = left >= right, self.over[at] - self.under[at] < NEAR * self.slack[at]
        begins = at[near & (self.line.weight[at] == 0)]
        for place, off, held in ((self.left - 1, self.under, self.sure_under), (self.right, self.over, self.sure_over)):
            self.line.add(begins, place[begins], off[begins], held[begins])
        straight = np.clip(np.rint(self.line.root(at)), left, np.maximum(right - 1, left)).astype(np.int64)
        own = one & (left < self.least[at])
        place = np.where(near & (self.depth[at] < STRAIGHT), straight, middle)
        place = np.where(one & ~own, np.maximum(left - 1, 0), place)
        self._go(at, place, one | near, np.where(one, left, -1))

    def _go(self, at: Int64, place: Int64, proving: Flags, leaf: Int64) -> None:
        """Let entries look at new places, some of which are to be proven, of those some beside the one leaf left."""
        self.place[at], self.mean[at], self.held[at], self.proving[at] = place, 0.0, 0.0, proving
        self.trail.meet(self.depth[at[proving]], place[proving], leaf[proving], at[proving])

    def judge(self) -> None:
        """Settle what is held: searches move, thresholds are proven or left, until nothing changes."""
        fresh = np.flatnonzero(self.active & (self.held > 0))
        while fresh.size:
            proving = self.proving[fresh]
            moved = np.concatenate([self._searched(fresh[~proving]), self._proved(fresh[proving])])
            fresh = moved[self.active[moved] & (self.held[moved] > 0)]

    def _searched(self, at: Int64) -> Int64:
        """Move searches on where a side is likely, or enough was seen; return those that moved."""
        off, slack = np.abs(self.mean[at]), self.slack[at]
        enough = self.held[at] * slack**2 >= ENOUGH
        sure = off * np.sqrt(self.held[at]) >= LIKELY + FARTHER * np.log2(1 + off / slack)
        here = enough & ~sure & (off <= FOUND * slack)
        on = at[(enough | sure) & ~here]
        self._move(on)
        self._aim(on)
        found = at[here]
        self._go(found, self.place[found], np.ones(len(found), np.bool_), np.full(len(found), -1))
        return np.concatenate([on, found])

    def _move(self, at: Int64) -> None:
        """Narrow down where the quantiles lie most likely, by what was seen at the present places."""
        off, place = self.mean[at], self.place[at]
        up, down = at[off < 0], at[off >= 0]
        self.left[up], self.under[up] = place[off < 0] + 1, off[off < 0]
        self.right[down], self.over[down] = place[off >= 0], off[off >= 0]
        self.sure_under[up], self.sure_over[down] = self.held[up], self.held[down]
        self.first[at] = self.held[at] * RESTART
        goes = self.line.weight[at] > 0
        self.line.add(at[goes], place[goes], off[goes], self.held[at[goes]])

    def _proved(self, at: Int64) -> Int64:
        """Say of thresholds what the line allows; return those that were left.

        What is said of a threshold is read from its last look alone, so that a later run, which reads that, agrees.
        """
        mean, slack, place = self.mean[at], self.slack[at], self.place[at]
        least, most = self._ranks(at)
        good = least <= most + 1
        with np.errstate(divide="ignore"):
            far = np.abs(mean) >= LEAVE * slack + LEAVE_ODDS / (slack * self.held[at])
        leaf = self.trail.leaves[self.depth[at], at]
        one = leaf >= 0
        wrong = ~one | ((mean < 0) == (place == leaf))  # at one leaf: where the quantile is not there after all
        gone = ~good & far & wrong
        side = ~good & ~gone & one & np.where(place == leaf, least == place, most == place)
        self.conclude(at[good | gone | side])
        self.good[at[good]], self.active[at[good]] = True, False
        self._move(at[gone])
        left = at[gone | side]
        self.depth[left] += 1
        self._meet(left)
        return np.asarray(left)

    def _ranks(self, at: Int64) -> tuple[Int64, Int64]:
        """Return the first thresholds that are not too low, and the last that are not too high, with present ones."""
        mean, half, slack, place = self.mean[at], self.half(at), self.slack[at], self.place[at]
        least = np.where(mean - half >= -slack, np.minimum(self.least[at], place), self.least[at])
        return least, np.where(mean + half <= slack, np.maximum(self.most[at], place), self.most[at])

    def conclude(self, at: Int64) -> None:
        """Keep what the present thresholds say for good."""
        mean, half, place = self.mean[at], self.half(at), self.place[at]
        self.least[at], self.most[at] = self._ranks(at)
        self.high[at] = np.where(mean > half, np.minimum(self.high[at], place), self.high[at])
        self.low[at] = np.where(mean < -half, np.maximum(self.low[at], place + 1), self.low[at])

    def half(self, at: Int64) -> Float64:
        """Return the half-widths that the noise at present thresholds passes at no information."""
        slope, offset = self.plan.line(self.slack[at], self.depth[at])
        return np.asarray(slope / self.held[at] + offset)

    def wanted(self) -> Float64:
        """Return how much information each entry asks for in the next look; infinite for those that are done."""
        want = np.full(len(self.slack), np.inf)
        at = np.flatnonzero(self.active)
        new, proving = self.held[at] == 0, self.proving[at]
        search = np.where(new, self.first[at], GROWTH * self.held[at])
        slope, offset = self.plan.line(self.slack[at], self.depth[at])
        with np.errstate(divide="ignore", invalid="ignore"):
            goal = slope / (self.slack[at] - offset - np.abs(self.mean[at])) * _UP - self.held[at]
        goal = np.where(goal > 0, goal, np.inf)
        prove = np.clip(goal, LEAST_STEP * self.held[at], MOST_STEP * self.held[at])
        prove = np.where(new, OPENING / self.slack[at] ** 2, prove)
        want[at] = np.where(proving, prove, search)
        return want

    def chosen(self, want: Float64) -> Flags:
        """Return which entries the next look of each group is at: its searches while there are any, then all."""
        many = self.plan.many
        searching = (self.active & ~self.proving).reshape(-1, many)
        some: Flags = np.asarray(searching.any(axis=1))
        mine: Flags = np.where(some[:, None], searching, self.active.reshape(-1, many))
        slack = np.where(self.active, self.slack, 1.0)
        each: Float64 = np.where(searching, (want * slack**2).reshape(-1, many), np.inf)
        least = each.min(axis=1)
        return np.asarray(mine & (~some[:, None] | (each <= TOGETHER * least[:, None])))

    def read(self, at: Int64, fresh: Float64, information: Float64) -> None:
        """Add what a look showed of entries."""
        held = self.held[at] + information
        self.mean[at] += (fresh - self.goal[at] - self.mean[at]) * (information / held)
        self.held[at] = held
        kept = at[self.proving[at]]
        self.trail.keep(self.depth[kept], self.mean[kept] + self.goal[kept], self.held[kept], kept)
