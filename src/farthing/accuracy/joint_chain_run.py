"""One run of a joint search under a pure budget: rows in the bins between a few thresholds, shown by Laplace chains.

Each row is in one bin, so that all bins together cost what one of them does, and the rows at or below a threshold are a
sum of bins, with the noise of each. A *round* is a set of thresholds, each of which is for one of the quantiles; its
bins are shown ever finer for the price of the last look. What each round showed last tells where to look next.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.accuracy.joint_chain_shown import JointWish, RoundAhead, SeenRounds
from farthing.accuracy.quantile_chain_run import LEVELS, STEPS
from farthing.accuracy.quantile_trail import ShownBins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chains import QuantileChains
    from farthing.accuracy.quantile_trail import ShowBins

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

MOST_PART: Final = 0.5
"""A round that may prove something gets this part of what is left of beta;"""

FINER: Final = 0.5
"""its levels get halves, quarters and so on of it:"""

EVERY: Final = STEPS // 2
"""each of so many, from the first that is fine enough."""

LEAST_LEFT: Final = 2.0**-8
"""Where no more of beta than this is left to a quantile, no other round begins for it: it is given up, not met;"""

MOST_ROUNDS: Final = 40
"""and so are all of a group after so many rounds."""

INTERVAL_SHARE: Final = 0.1
"""Part of beta that the words of the interval may use up."""

_END: Final = np.iinfo(np.int64).max


class JointChainPlan(Protocol):
    """What a run knows of its plan."""

    @property
    def many(self) -> int:
        """How many quantiles there are."""

    @property
    def beta(self) -> float:
        """The allowed chance of a miss of each."""

    @property
    def cap(self) -> int:
        """The farthings that a group may pay, at most."""

    @property
    def spend(self) -> bool:
        """Whether groups that are too small for their target go on."""

    @property
    def plans(self) -> tuple[QuantileChains, ...]:
        """The plan of each quantile alone."""


@dataclass(slots=True, eq=False)
class JointChainTrail:
    """Everything that was shown of the groups of one question: one row a look, one column a group.

    Attributes:
        rounds: int64[looks, groups], which round the look belongs to, counted from 0; -1 for no look.
        levels: int64[looks, groups], its place in `LEVELS`.
        places: int64[looks, thresholds, groups], those of the round, rising; -1 for none, at the end.
        owners: int64[looks, thresholds, groups], which quantile each is for.
        shown: int64[looks, thresholds + 1, groups], rows in the bins between them, from the lowest.
        paid: int64[groups], all farthings that a member of the group has ever paid.
    """

    rounds: Int64
    levels: Int64
    places: Int64
    owners: Int64
    shown: Int64
    paid: Int64

    @classmethod
    def nothing(cls, groups: int, many: int) -> JointChainTrail:
        """Return the trail before any look at so many quantiles.

        >>> JointChainTrail.nothing(2, 9).places.shape
        (0, 12, 2)
        """
        none, wide = np.zeros((0, groups), np.int64), columns(many)
        places, shown = np.zeros((0, wide, groups), np.int64), np.zeros((0, wide + 1, groups), np.int64)
        return cls(none, none, places, places, shown, np.zeros(groups, np.int64))

    def copy(self) -> JointChainTrail:
        """Return a trail that may be added to."""
        return JointChainTrail(*(getattr(self, one.name).copy() for one in fields(self)))

    def grow(self, depth: int) -> None:
        """Make room for a look."""
        while len(self.rounds) <= depth:
            for name in ("rounds", "levels", "places", "owners", "shown"):
                table = getattr(self, name)
                none = np.full((1, *table.shape[1:]), 0 if name == "shown" else -1, np.int64)
                setattr(self, name, np.concatenate([table, none]))


def columns(many: int) -> int:
    """Return how many thresholds a round has at most: one of each quantile, and a few more where some need two."""
    return many + 3


@dataclass(slots=True, eq=False)
class JointChainRun:
    """Where the search for each quantile stands; of shape [quantiles, groups] where nothing else is said.

    Guarantee: for each quantile by itself, with probability at least 1 - beta: no threshold that is too high is ever in
        `most` or below, none that is too low in `least` or above, and the quantile is always in `low` to `high`.
    Proof: docs/proofs/accuracy.joint_chains.md.
    Assumes: as `joint_chains.JointChains`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    plan: JointChainPlan
    trail: JointChainTrail
    depth: Int64  # [groups], looks that are behind
    spent: Int64  # [groups], what they cost
    waits: Flags  # [groups]
    active: Flags
    low: Int64
    high: Int64
    least: Int64
    most: Int64
    middle: Int64
    left: Float64  # the part of beta that no round has yet
    part: Float64  # what the present round may use up
    first: Int64  # the level from which on the present round may prove something
    began: Int64  # [groups], the level at which it began
    seen: SeenRounds

    @classmethod
    def of(cls, plan: JointChainPlan, held: JointChainTrail, settled: Flags) -> JointChainRun:
        """Return the start: what is held is not read yet. bool[groups, quantiles] are left alone."""
        groups, leaves = len(held.paid), plan.plans[0].asked.leaves
        whole, each = np.zeros(groups, np.int64), np.zeros((plan.many, groups), np.int64)
        return cls(
            plan=plan, trail=held.copy(), depth=whole.copy(), spent=whole.copy(), waits=np.zeros(groups, np.bool_),
            active=~settled.T, low=each.copy(), high=each + leaves - 1, least=each + leaves - 1, most=each - 1,
            middle=each.copy(),
            left=np.ones(each.shape), part=np.zeros(each.shape), first=each.copy(), began=whole.copy(),
            seen=SeenRounds.nothing(plan.plans, groups, columns(plan.many)),
        )  # fmt: skip

    @property
    def open(self) -> Flags:
        """bool[groups], where something is looked for."""
        return np.asarray(self.active.any(axis=0))

    @property
    def good(self) -> Flags:
        """Whether a threshold, or a leaf, has surely the rank that is asked for."""
        return np.asarray(self.least <= self.most + 1)

    def look(self, at: Int64, show: ShowBins | None) -> None:
        """Read one look of each of these groups, or take it where none is held."""
        self.trail.grow(int(self.depth[at].max()))
        self._take(at[self.trail.rounds[self.depth[at], at] < 0], show)
        at = at[self.trail.rounds[self.depth[at], at] >= 0]
        if at.size:
            self._tell(at)

    def _tell(self, at: Int64) -> None:
        """Read the next looks of some groups: begin their rounds, and say what they prove."""
        trail, depth = self.trail, self.depth[at]
        rounds, level = trail.rounds[depth, at], trail.levels[depth, at]
        places, owners = trail.places[depth, :, at].T, trail.owners[depth, :, at].T
        begins = rounds > self.seen.newest[at]
        before = np.where(begins, 0, LEVELS[self.seen.level_of(at)])
        self._begin(at[begins], places[:, begins], owners[:, begins], level[begins])
        self.seen.see(at, rounds, level, places, owners, trail.shown[depth, :, at].T)
        self.spent[at] += LEVELS[level] - before
        self.depth[at] += 1
        for number in range(self.plan.many):
            self._claim(number, at, (rounds, level), owners == number)

    def _begin(self, at: Int64, places: Int64, owners: Int64, level: Int64) -> None:
        """Give rounds their parts of beta and their first levels, from what was seen before them."""
        found, fine = self.seen.worth(at, self.left[:, at]), self.seen.fine(at, (places >= 0).sum(axis=0))
        self.began[at] = level
        for number in range(self.plan.many):
            mine = (owners == number) & (places >= 0)
            worth = found[number] & mine.any(axis=0)
            self.part[number, at] = part = np.where(worth, MOST_PART * self.left[number, at], 0.0)
            self.left[number, at] -= part
            self.first[number, at] = level + EVERY * np.maximum(-(-(fine[number] - level) // EVERY), 0)

    def _claim(self, number: int, at: Int64, look: tuple[Int64, Int64], own: Flags) -> None:
        """Say of one quantile what its own thresholds of a round prove; what was proved before stays."""
        plan = self.plan.plans[number]
        many = np.maximum(own.sum(axis=0), 1)
        (rounds, level), part = look, self.part[number, at]
        later, since = level - self.first[number, at], level - self.began[at]
        tries = (1 - FINER) * FINER ** np.maximum(later // EVERY, 0)
        proof = self.plan.beta * (1 - INTERVAL_SHARE) * part * tries / many
        proof = np.where((later >= 0) & (later % EVERY == 0), proof, 0.0)
        each = 1.0 / ((rounds + 1) * (rounds + 2)) / ((since + 1) * (since + 2))
        beside = self.plan.beta * INTERVAL_SHARE * each / many
        for column in np.flatnonzero(own.any(axis=1)).tolist():
            some = own[column] & self.active[number, at]
            here, side = at[some], self.seen.sides(at[some], column)
            place = side.place
            self.middle[number, here] = place
            for share, up in ((plan.upper, True), (plan.lower, False)):
                off, far = side.off(share), side.reach(share, proof[some])
                if up:
                    self.most[number, here] = np.where(
                        off <= -far, np.maximum(self.most[number, here], place), self.most[number, here]
                    )
                else:
                    self.least[number, here] = np.where(
                        off >= far, np.minimum(self.least[number, here], place), self.least[number, here]
                    )
            off, far = side.off(plan.centre), side.reach(plan.centre, beside[some])
            low = np.where(off <= -far, np.maximum(self.low[number, here], place + 1), self.low[number, here])
            high = np.where(off >= far, np.minimum(self.high[number, here], place), self.high[number, here])
            sane = low <= high
            self.low[number, here] = np.where(sane, low, self.low[number, here])
            self.high[number, here] = np.where(sane, high, self.high[number, here])
        good = at[self.good[number, at] & self.active[number, at]]
        self.low[number, good] = np.minimum(self.low[number, good], self.most[number, good] + 1)
        self.high[number, good] = np.maximum(self.high[number, good], self.least[number, good])
        self.active[number, good] = False
        self.active[number, at] &= self.low[number, at] < self.high[number, at]

    def _take(self, at: Int64, show: ShowBins | None) -> None:
        """Take looks that are not held, where they fit into the cap."""
        at = at[self.open[at]]
        if not at.size:
            return
        if not self.plan.spend:
            hopeless = self.seen.hopeless(at, self.active[:, at], self.plan.cap)
            self.active[:, at] &= ~hopeless
            at = at[self.open[at]]
        at, wish = self._wish(at)
        ahead = self.seen.ahead(at, wish)
        price = LEVELS[wish.level] - ahead.farthings
        stops = (price > self.plan.cap - self.spent[at]) | (price <= 0)  # the last level of all is never shown again
        self.active[:, at[stops]] = False
        if show is None:
            self.waits[at[~stops]] = True
            self.active[:, at] = False
            return
        at, level = at[~stops], wish.level[~stops]
        if not at.size:
            return
        ahead = RoundAhead(*(one[..., ~stops] for one in ahead))
        shown = show(ShownBins(ahead.places, ahead.shown, ahead.farthings), LEVELS[level], at)
        depth, trail = self.depth[at], self.trail
        trail.rounds[depth, at], trail.levels[depth, at] = ahead.number, level
        trail.places[depth, :, at], trail.owners[depth, :, at] = ahead.places.T, ahead.owners.T
        trail.shown[depth, :, at] = shown.T
        trail.paid[at] += LEVELS[level] - ahead.farthings

    def _wish(self, at: Int64) -> tuple[Int64, JointWish]:
        """Return the next looks, of the groups that go on: for some quantiles no other round may begin."""
        wish = self._wished(at)
        ends = (self.left[:, at] <= LEAST_LEFT) | (self.seen.newest[at] + 1 >= MOST_ROUNDS)
        ends &= self.active[:, at] & ~wish.goes_on
        if not ends.any():
            return at, wish
        self.active[:, at] &= ~ends
        at = at[self.open[at]]
        return at, self._wished(at)

    def _wished(self, at: Int64) -> JointWish:
        """Return what would be best to look at next, for the quantiles that are looked for."""
        return self.seen.next(at, self.active[:, at], self.part[:, at], self.left[:, at], self.plan.cap)
