"""One run of a search for a quantile by rank under a pure budget: rows on both sides of thresholds, by Laplace chains.

A chain shows the rows at or below a threshold and those above it, finer from look to look, for the price of its last
look. Each look is kept as it was shown. A later run reads them all in the same order, says what they prove at its own
target, and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from farthing.accuracy.laplace_intervals import laplace_quantile
from farthing.accuracy.quantile_bets import Ladder
from farthing.accuracy.quantile_scouts import ScoutPace, Scouts
from farthing.accuracy.quantile_trail import LOOK, Trail
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Show = Callable[[Int64, "ShownSides", Int64, Int64], tuple[Float64, Float64]]

STEPS: Final = 4
"""Each so many levels epsilon doubles."""

LEVELS: Final = np.unique(np.round(2.0 ** (np.arange(50 * STEPS + 1) / STEPS))).astype(np.int64)
"""The farthings at which a chain may be looked at, whatever is asked."""

CLEARLY: Final = 3.0
"""Rows are roughly known when there are this many times their noise."""

AHEAD: Final = 4
"""Until then, each look is at this many times the epsilon of the one before, or less (`_rough`)."""

FIRST: Final = 18
"""The first look of all costs one part in 2^18 of the cap."""

PACE: Final = ScoutPace(likely=2.5, growth=1.0, opening=0.5, start=4.0)
"""A look costs its last level, so that coarse ones are not worth as much as where information is paid for."""

NEAR: Final = 5.0
"""A chain may prove something if the places on both sides are fewer slacks apart,"""

NEARBY: Final = 0.4
"""or if its place seems to be off by fewer,"""

SURE: Final = 4.0
"""or by less than one, with this information, times the squared slack."""

MOST_PART: Final = 0.5
"""A proof gets at most this part of what is left of beta,"""

PART: Final = 1.0
"""at a new place this, divided by how many slacks those on both sides are apart."""

PROVES: Final = 3.2
"""Nothing is proved below this epsilon times the slack."""

HOPELESS: Final = 4.0
"""A group is given up where this epsilon, over the slack, is more than its cap."""


class ShownSides(NamedTuple):
    """What chains have shown last: rows on both sides, and at how many farthings; 0 before any look."""

    below: Float64
    above: Float64
    farthings: Int64


class ChainPlan(Protocol):
    """What a run knows of its plan: the same for all groups of a question."""

    @property
    def asked(self) -> QuantileGoal:
        """Which quantile is asked for, and how near in rank."""

    @property
    def cap(self) -> int:
        """The farthings that a group may pay, at most."""

    @property
    def spend(self) -> bool:
        """Whether groups that are too small for their target go on."""

    @property
    def relative(self) -> float:
        """The error allowed, in parts of the value; 0 for none."""

    @property
    def absolute(self) -> float:
        """The error allowed, in units of the value; 0 for none."""

    @property
    def centre(self) -> float:
        """The share of the rows that is looked for."""

    @property
    def upper(self) -> float:
        """The largest share of the rows that may lie at or below the answer."""

    @property
    def lower(self) -> float:
        """The least share."""

    @property
    def lowest(self) -> int:
        """The first of `LEVELS` at which the noise can be drawn."""

    def share(self, part: Float64, later: Int64) -> Float64:
        """Return the chance of a miss that a chain may use up at a level."""

    def beside(self, chain: Int64, later: Int64) -> Float64:
        """Return the same for the interval."""


@dataclass(slots=True, eq=False)
class Chains:
    """The newest chain of each threshold that was looked at: one row a threshold, one column a group.

    Attributes:
        thresholds: -1 for none.
        levels: the place in `LEVELS` of the last look.
        below, above: the rows that it showed.
        number: how many chains of the group were begun before.
        part: of beta that it may use up to prove something; 0 if it can not.
        first: the least level at which it can.
        began: the level of its first look.
    """

    thresholds: Int64
    levels: Int64
    below: Float64
    above: Float64
    number: Int64
    part: Float64
    first: Int64
    began: Int64

    @classmethod
    def none(cls, groups: int) -> Chains:
        """Return no chains."""
        whole, real = np.zeros((0, groups), np.int64), np.zeros((0, groups))
        return cls(whole, whole, real, real, whole, real, whole, whole)

    def row(self, thresholds: Int64, groups: Int64) -> Int64:
        """Return the rows of thresholds of some groups, added where they are new."""
        here = self.thresholds[:, groups] == thresholds
        found = here.any(axis=0)
        used = (self.thresholds[:, groups] >= 0).sum(axis=0)
        row = np.where(found, here.argmax(axis=0) if len(here) else 0, used)
        while len(self.thresholds) <= row.max(initial=-1):
            for name in self.__slots__:
                table = getattr(self, name)
                none = np.zeros((1, table.shape[1]), table.dtype)
                setattr(self, name, np.vstack([table, none - 1 if table.dtype == np.int64 else none]))
        self.thresholds[row, groups] = thresholds
        return np.asarray(row)


@dataclass(slots=True)
class QuantileChainRun:
    """Where each group stands; all arrays have one entry a group, and mean the same as those of `quantile_run.Run`.

    Guarantee: with probability at least 1 - beta, no threshold that is too high is ever in `most` or below, none that
        is too low in `least` or above, and the quantile is always in `low` to `high`.
    Proof: docs/proofs/accuracy.quantile_chains.md.
    Assumes: as `quantile_chains.QuantileChains`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    plan: ChainPlan
    trail: Trail
    show: Show | None
    low: Int64
    high: Int64
    spent: Int64
    rows: Float64  # the count, as far as known
    goal: Float64  # the D that is looked for, in rows: 0 but near the ends
    active: Flags
    waits: Flags
    good: Flags
    least: Int64
    most: Int64
    depth: Int64  # looks that are behind
    middle: Int64  # the last threshold that was looked at
    chains: Chains
    begun: Int64  # chains
    left: Float64  # the part of beta that no chain has yet

    @classmethod
    def of(cls, plan: ChainPlan, held: Trail, settled: Flags, show: Show | None) -> Self:
        """Return the start: the whole range, nothing read. Groups that are settled already are left alone."""
        groups, leaves = len(held.paid), plan.asked.leaves
        none, nothing, no = np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.bool_)
        trail = held.only(LOOK + plan.asked.lane_steps)
        return cls(
            plan=plan, trail=trail, show=show, low=none.copy(), high=none + leaves - 1,
            spent=trail.dropped(), rows=nothing + np.nan, goal=nothing.copy(),
            active=~settled, waits=no.copy(), good=no.copy(), least=none + leaves - 1, most=none - 1,
            depth=none.copy(), middle=none.copy(), chains=Chains.none(groups), begun=none.copy(), left=nothing + 1,
        )  # fmt: skip

    def within(self, at: Int64) -> Flags:
        """Return no group: there is no value target."""
        return np.zeros(len(at), np.bool_)

    def look(self, at: Int64) -> None:
        """Read one look of each of these groups, or take it where none is held; stop where the target is met."""
        self.trail.grow(int(self.depth[at].max()))
        at = self._bought(at)
        depth, trail, chains = self.depth[at], self.trail, self.chains
        place, level = trail.thresholds[depth, at], trail.starts[depth, at]
        self._begin(at, place, level, trail.places[depth, at] == 0)
        row = chains.row(place, at)
        chains.levels[row, at] = level
        chains.below[row, at], chains.above[row, at] = trail.means[depth, at], trail.counts[depth, at]
        self.spent[at] += trail.grains[depth, at]
        self.depth[at] += 1
        self.middle[at] = place
        self._count(at)
        self._claim(at, row)

    def _begin(self, at: Int64, place: Int64, level: Int64, begins: Flags) -> None:
        """Begin chains: whether one can prove something, and from which level on, follows from what was seen before."""
        some, place, chains = at[begins], place[begins], self.chains
        wants, off = self._near(some, place)
        row, level = chains.row(place, some), level[begins]
        chains.number[row, some], chains.began[row, some] = self.begun[some], level
        chains.part[row, some] = part = self.left[some] * wants
        with np.errstate(divide="ignore", invalid="ignore"):
            slack = self.plan.asked.slack * self.rows[some]
            wanted = PROVES * self.plan.asked.max_rows / (slack + np.where(off > slack, off, 0.0))
        chains.first[row, some] = self._level(wanted)
        self.begun[some] += 1
        self.left[some] -= part

    def _near(self, at: Int64, place: Int64) -> tuple[Float64, Float64]:
        """Return how much of what is left a proof at thresholds is worth, and how far off each seems to be, if known.

        It is worth something near what is looked for, by itself or by those on both sides; or where only one leaf is
        left, between this threshold and another.
        """
        if not len(self.chains.thresholds):
            return np.zeros(len(at)), np.zeros(len(at))
        slack = self.plan.asked.slack * self.rows[at]
        met, off = self.chains.thresholds[:, at], self._off(at)
        with np.errstate(invalid="ignore"):
            here = met == place
            itself = np.where(here, np.abs(off), -np.inf).max(axis=0)
            sure = np.where(here, self._information(at), 0.0).max(axis=0) * slack**2 >= SURE
            over = np.where((met > place) & (met >= 0), off, np.inf).min(axis=0)
            under = np.where((met < place) & (met >= 0), off, -np.inf).max(axis=0)
        alone = (np.abs(met - place) == 1).any(axis=0) & (itself >= 0)
        near = (itself <= NEARBY * slack) | (sure & (itself < slack))
        known = np.where(near | alone, MOST_PART, 0.0)
        span = np.maximum(over - under, slack)  # below it where the two contradict each other
        new = np.where(span <= NEAR * slack, np.minimum(PART * slack / span, MOST_PART), 0.0)
        return np.where(itself >= 0, known, new), np.maximum(itself, 0.0)

    def _off(self, at: Int64) -> Float64:
        """Return how far D seems to be off what is looked for at each threshold; NaN where there is none."""
        chains, share = self.chains, self.plan.centre
        off = (1 - share) * chains.below[:, at] - share * chains.above[:, at]
        return np.where(chains.levels[:, at] >= 0, off, np.nan)

    def _information(self, at: Int64) -> Float64:
        """Return one over the variance of what was shown of D at each threshold; 0 where there is none."""
        levels, share = self.chains.levels[:, at], self.plan.centre
        rate = LEVELS[np.maximum(levels, 0)] * float(FARTHING) / self.plan.asked.max_rows
        return np.asarray(np.where(levels >= 0, rate**2 / (2 * ((1 - share) ** 2 + share**2)), 0.0))

    def _count(self, at: Int64) -> None:
        """Say how many rows there seem to be, from all thresholds together."""
        weight = self._information(at)
        counted = self.chains.below[:, at] + self.chains.above[:, at]
        total = (weight * counted).sum(axis=0) / weight.sum(axis=0)
        self.rows[at] = np.maximum(total, self._noise(at))
        self.goal[at] = self.plan.asked.beside * self.rows[at]

    def _noise(self, at: Int64) -> Float64:
        """Return about the noise of the count."""
        finest = LEVELS[np.maximum(self.chains.levels[:, at].max(axis=0, initial=0), 0)]
        return np.asarray(2 * self.plan.asked.max_rows / (finest * float(FARTHING)))

    def _bought(self, at: Int64) -> Int64:
        """Take looks that are not held; return the groups whose next look is held now."""
        depth = self.depth[at]
        new = self.trail.kinds[depth, at] < LOOK
        some = at[new]
        place, level, begins = self.next(some)
        row = self.chains.row(place, some)
        held = np.where(begins, 0, LEVELS[np.maximum(self.chains.levels[row, some], 0)])
        price = LEVELS[level] - held
        stops = (price > self.plan.cap - self.spent[some]) | self._hopeless(some)
        stops |= price <= 0  # the last level of all is never shown again
        self.active[some[stops]] = False
        if self.show is None:
            self.waits[some[~stops]], self.active[some[~stops]] = True, False
            return np.asarray(at[~new])
        some, place, level, row, held, price = (
            np.asarray(each[~stops], np.int64) for each in (some, place, level, row, held, price)
        )
        begins = begins[~stops]
        if some.size:
            before = ShownSides(self.chains.below[row, some], self.chains.above[row, some], held)
            below, above = self.show(place, before, LEVELS[level], some)
            rows = self.depth[some]
            kind = LOOK + self.plan.asked.lane_steps
            self.trail.keep(rows, place, (below, price), (above, np.zeros(len(some), np.int64)), some, kind)
            self.trail.starts[rows, some], self.trail.places[rows, some] = level, np.where(begins, 0, 1)
        return np.asarray(at[self.active[at]])

    def next(self, at: Int64) -> tuple[Int64, Int64, Flags]:
        """Return the next threshold of each group, the level of the look, and whether a chain begins there."""
        plan, chains = self.plan, self.chains
        place = np.full(len(at), plan.asked.leaves // 2 - 1)
        level = np.full(len(at), self._level(np.array(plan.cap * float(FARTHING) / 2**FIRST)))
        begins = self.begun[at] == 0
        if not len(chains.thresholds):
            return place, level, begins
        rows = self.rows[at]
        known = rows > CLEARLY * self._noise(at)
        rough = ~known & ~begins
        place[rough] = chains.thresholds[0, at[rough]]
        level[rough] = self._rough(chains.levels[0, at[rough]])
        if known.any():
            self._scouted(at, known, place, level, begins)
        return place, np.minimum(level, len(LEVELS) - 1), begins

    def _rough(self, last: Int64) -> Int64:
        """Return the next level where rows are not known yet: no more than it takes to see that there are none."""
        hopeless = 4 * self.plan.asked.slack * self.plan.cap / HOPELESS  # there a group that shows noise alone is left
        soon = np.maximum(self._level(np.array(hopeless * float(FARTHING))), last + STEPS // 2)
        wanted: Float64 = np.asarray(AHEAD * LEVELS[last] * float(FARTHING))
        return np.minimum(self._level(wanted), soon)

    def _scouted(self, at: Int64, known: Flags, place: Int64, level: Int64, begins: Flags) -> None:
        """Fill in where the search looks next."""
        some, chains, plan = at[known], self.chains, self.plan
        found = self._scouts(some).next()
        here = chains.thresholds[:, some] == found.place
        old, row = here.any(axis=0), here.argmax(axis=0)
        share, columns = plan.centre, np.arange(len(some))
        held = np.where(old, self._information(some)[row, columns], 0.0)
        wanted = np.sqrt((held + found.information) * 2 * ((1 - share) ** 2 + share**2)) * plan.asked.max_rows
        tries = chains.part[row, some] > 0
        near, _ = self._near(some, found.place)
        fresh = ~old | (found.bets & (near > 0) & ~tries)
        last = np.where(old, chains.levels[row, some], -1)
        rises = np.where(tries & ~fresh, last + 1, np.maximum(self._level(wanted), last + 1))
        place[known], begins[known] = found.place, fresh
        level[known] = np.where(fresh, np.maximum(self._level(wanted), last), rises)

    def _level(self, epsilon: Float64) -> Int64:
        """Return the least levels of at least these epsilons."""
        farthings = np.minimum(np.nan_to_num(epsilon, nan=0.0, posinf=2.0**60) / float(FARTHING), MOST_FARTHINGS)
        return np.maximum(np.searchsorted(LEVELS, farthings), self.plan.lowest)

    def _scouts(self, at: Int64) -> Scouts:
        """Return what the searches of these groups see."""
        chains, slack = self.chains, self.plan.asked.slack * self.rows[at]
        met = chains.thresholds[:, at]
        order = np.argsort(np.where(met < 0, np.iinfo(np.int64).max, met), axis=0, kind="stable")
        information, off = (np.take_along_axis(each, order, axis=0) for each in (self._information(at), self._off(at)))
        none, ends = np.zeros_like(off), np.zeros((len(off) + 1, len(at)))
        met = np.take_along_axis(met, order, axis=0)
        ladder = Ladder(met, information, np.nan_to_num(off) * information, none, none, ends, order)
        rows, below = self.rows[at], -self.plan.centre * self.rows[at]
        ends_off, leaves = (below, below + rows), self.plan.asked.leaves
        return Scouts(ladder, slack, rows, off, ends_off, none, none, self.most[at], leaves, PACE)

    def _claim(self, at: Int64, row: Int64) -> None:
        """Say what the last looks prove; what was proved before stays."""
        plan, chains, place = self.plan, self.chains, self.middle[at]
        level, below, above = chains.levels[row, at], chains.below[row, at], chains.above[row, at]
        scale = plan.asked.max_rows / (LEVELS[level] * float(FARTHING))
        later = level - chains.first[row, at]
        chance = np.where(later >= 0, plan.share(chains.part[row, at], later), 0.0)
        for share, side in ((plan.upper, 1), (plan.lower, -1)):
            off = (1 - share) * below - share * above
            shown = -side * off >= reach(share, chance) * scale + 1
            if side > 0:
                self.most[at] = np.where(shown, np.maximum(self.most[at], place), self.most[at])
            else:
                self.least[at] = np.where(shown, np.minimum(self.least[at], place), self.least[at])
        off = (1 - plan.centre) * below - plan.centre * above
        far = reach(plan.centre, plan.beside(chains.number[row, at], level - chains.began[row, at])) * scale + 1
        low = np.where(off <= -far, np.maximum(self.low[at], place + 1), self.low[at])
        high = np.where(off >= far, np.minimum(self.high[at], place), self.high[at])
        sane = low <= high
        self.low[at], self.high[at] = np.where(sane, low, self.low[at]), np.where(sane, high, self.high[at])
        self.good[at] = self.least[at] <= self.most[at] + 1
        good = at[self.good[at]]
        self.low[good] = np.minimum(self.low[good], self.most[good] + 1)
        self.high[good] = np.maximum(self.high[good], self.least[good])
        self.active[at] &= ~self.good[at] & (self.low[at] < self.high[at])

    def _hopeless(self, at: Int64) -> Flags:
        """Return which groups are too small for their target, as far as the count tells."""
        if self.plan.spend or not len(self.chains.thresholds):
            return np.zeros(len(at), np.bool_)
        most = self.plan.asked.slack * (self.rows[at] + self._noise(at))
        least = HOPELESS * self.plan.asked.max_rows / most / float(FARTHING)
        return np.asarray((self.begun[at] > 0) & (least > self.plan.cap))


def reach(share: float, chance: Float64) -> Float64:
    """Return how far (1 - share) X - share Y goes beyond zero with these chances, for standard Laplace X and Y.

    >>> [round(float(reach(share, np.array([0.025]))[0]), 2) for share in (0.5, 1.0)]
    [2.1, 3.0]
    """
    scales = np.array([[share], [1 - share]]) * np.ones(np.shape(chance))
    found = laplace_quantile(scales, np.where(chance > 0, 2 * chance, 0.1))  # both sides of it have the same chance
    return np.where(chance > 0, found, np.inf)
