"""One run of a search for a quantile by value under a pure budget: rounds of thresholds, shown by Laplace chains.

The thresholds of a round cut the range into bins; each row is in one, so that all bins together cost what one does. A
round gets finer for the price of its last look. What it shows is kept as it was shown, a row of the trail for each
threshold. A later run reads all of it in the same order, says what it proves at its own target, and goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.laplace_sums import weighted_reach
from farthing.accuracy.quantile_chain_run import CLEARLY, FIRST, HOPELESS, LEVELS, STEPS
from farthing.accuracy.quantile_rounds import NONE, SURE, NearPair, SeenPlaces
from farthing.accuracy.quantile_trail import ROUND, ShownBins
from farthing.accuracy.quantile_value import ValueTarget, within
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chain_run import ChainPlan
    from farthing.accuracy.quantile_trail import ShowBins, Trail

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

THRESHOLDS: Final = 7
"""A round that searches has so many thresholds."""

TOGETHER: Final = 0.8
"""The next round begins where the quantile is this likely in two bins,"""

STAND_OUT: Final = 4.0
"""one of which holds so many times the noise; until then this one goes on,"""

FASTER: Final = 2
"""by so many levels at once."""

PATIENT: Final = 2.0
"""A round that may prove something goes on where that costs no more than so many times what another one would."""

EAGER: Final = 0.9
"""A proof begins at this part of the epsilon that it is likely to need."""

MOST_PART: Final = 0.5
"""A round that may prove something gets this part of what is left of beta."""

MOST_ROUNDS: Final = 40
"""A group is given up after so many rounds,"""

LEAST_LEFT: Final = 2.0**-10
"""or when no more of beta is left."""

_TWO: Final = np.array([1, 2])
_LARGE: Final = 1e9


class Wish(NamedTuple):
    """What to look at next, one column a group: thresholds, -1 for none; the level; whether a round begins."""

    places: Int64
    level: Int64
    begins: Flags

    def of(self, some: Flags) -> Wish:
        """Return those of some groups."""
        return Wish(self.places[:, some], self.level[some], self.begins[some])


@dataclass(slots=True)
class QuantileRoundRun:
    """Where each group stands; all arrays have one entry a group where nothing else is said.

    Guarantee: with probability at least 1 - beta, the quantile is always in `low` to `high`.
    Proof: docs/proofs/accuracy.quantile_chains.md, "By value".
    Assumes: as `quantile_chains.QuantileChains`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    plan: ChainPlan
    trail: Trail
    show: ShowBins | None
    low: Int64
    high: Int64
    spent: Int64
    rows: Float64  # the count, as far as known
    goal: Float64
    active: Flags
    waits: Flags
    good: Flags
    least: Int64
    most: Int64
    middle: Int64
    depth: Int64  # rows of the trail that are behind
    number: Int64  # the present round; -1 before the first
    level: Int64
    began: Int64
    first: Int64  # the level from which on it may prove something
    part: Float64  # of beta that it may use up so
    left: Float64  # the part of beta that no round has yet
    places: Int64  # [thresholds, groups], those of the present round; -1 for none
    shown: Int64  # [thresholds + 1, groups], rows in its bins
    met: Int64  # [places, groups], all thresholds that still tell something
    off: Float64
    noise: Float64
    made: Int64  # by which round
    far: tuple[float, float]

    @classmethod
    def of(cls, plan: ChainPlan, held: Trail, settled: Flags, show: ShowBins | None) -> Self:
        """Return the start: the whole range, nothing read. Groups that are settled already are left alone."""
        groups, leaves = len(held.paid), plan.asked.leaves
        none, nothing, no = np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.bool_)
        wide, real = np.zeros((0, groups), np.int64), np.zeros((0, groups))
        trail = held.only(ROUND + plan.asked.lane_steps)
        made = cls(
            plan=plan, trail=trail, show=show, low=none.copy(), high=none + leaves - 1,
            spent=trail.dropped(), rows=nothing.copy(), goal=nothing.copy(), active=~settled,
            waits=no.copy(), good=no.copy(), least=none + leaves - 1, most=none - 1, middle=none.copy(),
            depth=none.copy(), number=none - 1, level=none - 1, began=none.copy(), first=none.copy(),
            part=nothing.copy(), left=nothing + 1, places=np.full((THRESHOLDS, groups), -1),
            shown=np.zeros((THRESHOLDS + 1, groups), np.int64), met=wide, off=real, noise=real, made=wide,
            far=_far(plan),
        )  # fmt: skip
        made.active &= ~made.within(np.arange(groups))
        return made

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle."""
        asked = self.plan.asked
        lower, upper = asked.least(self.low[at]), asked.most(self.high[at])
        return within(lower, upper, self.plan.relative, self.plan.absolute)

    def look(self, at: Int64) -> None:
        """Read one look of each of these groups, or take it where none is held; stop where the target is met."""
        self.trail.grow(int(self.depth[at].max()) + THRESHOLDS)
        at = self._bought(at)
        if not at.size:
            return
        trail, depth = self.trail, self.depth[at]
        many = trail.shown[depth, at].astype(np.int64) + 1
        level, begins = trail.starts[depth, at], trail.places[depth, at] == 0
        used = np.arange(THRESHOLDS)[:, None] < many
        rows = np.minimum(depth + np.arange(THRESHOLDS)[:, None], len(trail.thresholds) - 1)
        places = np.where(used, trail.thresholds[rows, at], -1)
        shown = np.zeros((THRESHOLDS + 1, len(at)), np.int64)
        shown[:-1] = np.where(used, trail.means[rows, at], 0)
        shown[many, np.arange(len(at))] = trail.counts[depth + many - 1, at]
        self._begin(at[begins], places[:, begins], level[begins])
        self.level[at], self.shown[:, at] = level, shown
        self.spent[at] += trail.grains[depth, at]
        self.depth[at] += many
        off, noise, scale = self._told(at, many)
        self._keep(at, off, noise)
        self._claim(at, many, off, scale)

    def _begin(self, at: Int64, places: Int64, level: Int64) -> None:
        """Begin rounds: what they may prove, and from which level on, follows from what was seen before."""
        if not at.size:
            return
        self.part[at], self.first[at] = 0.0, level
        some = np.flatnonzero(self.number[at] >= 0)
        if some.size:
            found = self._pairs(self._seen(at[some]), places[:, some])
            worth = (found.likely >= SURE) & np.isfinite(found.needs)
            self.part[at[some]] = part = np.where(worth, MOST_PART * self.left[at[some]], 0.0)
            self.left[at[some]] -= part
            self.first[at[some]] = np.maximum(level[some], self._level(EAGER * found.needs))
        self.number[at] += 1
        self.began[at], self.places[:, at] = level, places

    def _told(self, at: Int64, many: Int64) -> tuple[Float64, Float64, Float64]:
        """Return how far D is off at each threshold of the last look, its noise, and that of a bin."""
        share, upto = self.plan.centre, np.cumsum(self.shown[:, at], axis=0).astype(np.float64)
        off = (1 - share) * upto[:-1] - share * (upto[-1] - upto[:-1])
        scale = self.plan.asked.max_rows / (LEVELS[self.level[at]] * float(FARTHING))
        under = np.arange(THRESHOLDS)[:, None] + 1
        over = np.maximum(many - under + 1, 1)
        self.rows[at] = np.maximum(upto[-1], scale)
        self.goal[at] = self.plan.asked.beside * self.rows[at]
        return off, np.sqrt(2 * ((1 - share) ** 2 * under + share**2 * over)) * scale, scale

    def _keep(self, at: Int64, off: Float64, noise: Float64) -> None:
        """Keep what the last look told in place of what the round told before, and others more coarsely beside it."""
        places, met = self.places[:, at], self.met[:, at]
        finest = np.where(places < 0, np.inf, noise).min(axis=0)
        old = (met >= np.where(places < 0, NONE, places).min(axis=0)) & (met <= places.max(axis=0))
        old = (old & (self.noise[:, at] >= finest)) | (self.made[:, at] == self.number[at])
        self.met[:, at] = np.where(old, NONE, self.met[:, at])
        for place, each, doubt in zip(self.places[:, at], off, noise, strict=True):
            some = np.flatnonzero(place >= 0)
            here = at[some]
            free = self.met[:, here] == NONE
            if not free.any(axis=0).all():
                self._grow()
                free = self.met[:, here] == NONE
            if some.size:
                row = free.argmax(axis=0)
                self.met[row, here], self.off[row, here] = place[some], each[some]
                self.noise[row, here], self.made[row, here] = doubt[some], self.number[here]

    def _grow(self) -> None:
        """Make room for another threshold."""
        whole, real = np.zeros((1, len(self.low)), np.int64), np.zeros((1, len(self.low)))
        self.met, self.made = np.vstack([self.met, whole + NONE]), np.vstack([self.made, whole - 1])
        self.off, self.noise = np.vstack([self.off, real]), np.vstack([self.noise, real + 1])

    def _claim(self, at: Int64, many: Int64, off: Float64, each: Float64) -> None:
        """Say what the last looks prove; what was proved before stays."""
        plan, share = self.plan, self.plan.centre
        later, since = self.level[at] - self.first[at], self.level[at] - self.began[at]
        chance = np.where(later >= 0, plan.share(self.part[at], later), 0.0)
        chance = (chance + plan.beside(self.number[at], since)) / many
        for column in range(THRESHOLDS):
            some = np.flatnonzero(column < many)
            here, place, seen = at[some], self.places[column, at[some]], off[column, some]
            far = weighted_reach(share, 1 + 0 * place + column, many[some] - column, chance[some], each[some])
            low = np.where(seen <= -far, np.maximum(self.low[here], place + 1), self.low[here])
            high = np.where(seen >= far, np.minimum(self.high[here], place), self.high[here])
            sane = low <= high
            self.low[here], self.high[here] = np.where(sane, low, self.low[here]), np.where(sane, high, self.high[here])
        self.active[at] &= ~self.within(at) & (self.low[at] < self.high[at])

    def _bought(self, at: Int64) -> Int64:
        """Take looks that are not held; return the groups whose next look is held now."""
        new = self.trail.kinds[self.depth[at], at] < ROUND
        some = at[new]
        if not some.size:
            return at
        wish = self._wish(some)
        held = np.where(wish.begins, 0, LEVELS[np.maximum(self.level[some], 0)])
        price = LEVELS[wish.level] - held
        stops = (price > self.plan.cap - self.spent[some]) | self._hopeless(some) | (price <= 0)
        stops |= wish.begins & ((self.left[some] < LEAST_LEFT) | (self.number[some] + 1 >= MOST_ROUNDS))
        self.active[some[stops]] = False
        if self.show is None:
            self.waits[some[~stops]], self.active[some[~stops]] = True, False
            return np.asarray(at[~new])
        wish, some = wish.of(~stops), some[~stops]
        if some.size:
            self._take(some, wish, held[~stops], price[~stops])
        return np.asarray(at[self.active[at]])

    def _take(self, at: Int64, wish: Wish, held: Int64, price: Int64) -> None:
        """Show rounds, and keep each threshold as a row of the trail: the rows of its bin, and of the last one."""
        assert self.show is not None  # noqa: S101  # the caller shows
        before = np.where(wish.begins, 0, self.shown[:, at])
        shown = self.show(ShownBins(wish.places, before, held), LEVELS[wish.level], at)
        many, kind, trail = (wish.places >= 0).sum(axis=0), ROUND + self.plan.asked.lane_steps, self.trail
        for column in range(THRESHOLDS):
            some = column < many
            here, rows, none = at[some], self.depth[at[some]] + column, np.zeros(int(some.sum()), np.int64)
            after = np.where(column == many[some] - 1, shown[column + 1, some], 0).astype(np.float64)
            cost = price[some] if column == 0 else none
            trail.keep(
                rows,
                wish.places[column, some],
                (shown[column, some].astype(np.float64), cost),
                (after, none),
                here,
                kind,
            )
            trail.starts[rows, here] = wish.level[some]
            trail.places[rows, here] = np.where(wish.begins[some], 0, 1)
            trail.shown[rows, here] = many[some] - 1 - column

    def _seen(self, at: Int64) -> SeenPlaces:
        """Return what the searches of these groups see."""
        plan, asked = self.plan, self.plan.asked
        ends = np.zeros((1, len(at)), np.int64)
        below = -plan.centre * self.rows[at]
        places = np.vstack([ends - 1, self.met[:, at], ends + asked.leaves - 1])
        off = np.vstack([below, self.off[:, at], below + self.rows[at]])
        noise = np.vstack([ends + 1.0, self.noise[:, at], ends + 1.0])
        order = np.argsort(places, axis=0, kind="stable")
        places, off, noise = (np.take_along_axis(one, order, axis=0) for one in (places, off, noise))
        target = ValueTarget(asked, plan.relative, plan.absolute)
        return SeenPlaces(places, off, noise, self.low[at] - 1, self.high[at], target, self.far)

    def _pairs(self, seen: SeenPlaces, places: Int64) -> NearPair:
        """Return which two thresholds of rounds, near enough, are cheapest to prove; what is proved counts as one."""
        groups = places.shape[1]
        lows = np.vstack([seen.low[None], places])
        highs = np.vstack([np.where(places < 0, NONE, places), seen.high[None]])
        low, high = np.repeat(lows, len(highs), axis=0), np.tile(highs, (len(lows), 1))
        fits = (high <= seen.target.last(low)) & (high > low)
        fits[len(highs) :] &= low[len(highs) :] >= 0
        shape = np.minimum(high, self.plan.asked.leaves - 1)
        more = np.sqrt(((places >= 0).sum(axis=0) + 1) / (len(_TWO) + 1))  # the noise of bins beside two
        needs, likely = np.where(fits, seen.needs(low, shape), np.inf) * more, seen.likely(low, shape)
        best, columns = needs.argmin(axis=0), np.arange(groups)
        needs = needs * self.plan.asked.max_rows
        return NearPair(*(one[best, columns] for one in (low, high, needs, likely)))

    def _wish(self, at: Int64) -> Wish:
        """Return what to look at next: at first the middle, ever more finely until rows are known, then by `_aimed`."""
        plan, leaves = self.plan, self.plan.asked.leaves
        places = np.full((THRESHOLDS, len(at)), -1)
        places[0] = leaves // 2 - 1
        level = np.full(len(at), self._level(np.array(plan.cap * float(FARTHING) / 2**FIRST)))
        begins = self.number[at] < 0
        wish = Wish(places, level, begins)
        again = np.flatnonzero(~begins)
        known = self.rows[at[again]] > CLEARLY * self._noise(at[again])
        rough, aimed = again[~known], again[known]
        wish.places[:, again], wish.level[rough] = self.places[:, at[again]], self._rough(self.level[at[rough]])
        if aimed.size:
            for whole, part in zip(wish, self._aimed(at[aimed]), strict=True):
                whole[..., aimed] = part
        return wish._replace(level=np.minimum(wish.level, len(LEVELS) - 1))

    def _aimed(self, at: Int64) -> Wish:
        """Return what to look at next where rows are known."""
        seen, own, last = self._seen(at), self.places[:, at], self.level[at]
        found = seen.window
        needs, now = found.needs * self.plan.asked.max_rows, LEVELS[last] * float(FARTHING)
        mine = self._pairs(seen, own)
        next_ = LEVELS[np.minimum(last + 1, len(LEVELS) - 1)] * float(FARTHING)
        proves = (self.part[at] > 0) & (np.maximum(mine.needs, next_) - now <= PATIENT * needs)
        sure = (found.likely >= SURE) & np.isfinite(needs)
        together, rows = seen.parts
        searches = ~sure & (together >= TOGETHER) & (rows >= STAND_OUT * self._bin(at))
        places = np.where(sure & ~proves, self._both(found), np.where(searches, seen.spread(THRESHOLDS), own))
        places = _each_once(np.where((places > seen.low) & (places < seen.high), places, -1))
        begins = ((sure & ~proves) | searches) & (places != own).any(axis=0) & (places >= 0).any(axis=0)
        level = np.where(sure, last + 1, last + FASTER)
        level = np.where(begins, np.where(sure, np.maximum(self._level(EAGER * needs), last - 2 * STEPS), last), level)
        return Wish(np.where(begins, places, own), level, begins)

    def _both(self, found: NearPair) -> Int64:
        """Return the thresholds of a round that is to prove a window."""
        places = np.full((THRESHOLDS, len(found.low)), -1)
        places[0], places[1] = found.low, found.high
        return places

    def _rough(self, last: Int64) -> Int64:
        """Return the next level where rows are not known yet: no more than it takes to see that there are too few."""
        soon = np.maximum(self._level(np.array(self.plan.cap / HOPELESS * float(FARTHING))), last + STEPS // 2)
        return np.minimum(last + STEPS, soon)

    def _bin(self, at: Int64) -> Float64:
        """Return the standard deviation of D at the worst threshold of the last look."""
        share, many = self.plan.centre, (self.places[:, at] >= 0).sum(axis=0)
        most = np.maximum((1 - share) ** 2 + share**2 * many, (1 - share) ** 2 * many + share**2)
        return np.asarray(np.sqrt(2 * most) * self.plan.asked.max_rows / (LEVELS[self.level[at]] * float(FARTHING)))

    def _noise(self, at: Int64) -> Float64:
        """Return about the noise of the count."""
        many = (self.places[:, at] >= 0).sum(axis=0) + 1
        return np.asarray(np.sqrt(2.0 * many) * self.plan.asked.max_rows / (LEVELS[self.level[at]] * float(FARTHING)))

    def _level(self, epsilon: Float64) -> Int64:
        """Return the least levels of at least these epsilons."""
        farthings = np.minimum(np.nan_to_num(epsilon, nan=0.0, posinf=2.0**60) / float(FARTHING), MOST_FARTHINGS)
        return np.maximum(np.searchsorted(LEVELS, farthings), self.plan.lowest)

    def _hopeless(self, at: Int64) -> Flags:
        """Return which groups the rest of the cap most likely does not bring to their target."""
        stops = np.zeros(len(at), np.bool_)
        some = np.flatnonzero(self.number[at] >= 0)
        if self.plan.spend or not some.size:
            return stops
        here = at[some]
        seen = self._seen(here)
        left = (self.plan.cap - self.spent[here] + LEVELS[self.level[here]]) * float(FARTHING)
        sides = np.where((self.low[here] > 0) | (self.high[here] < self.plan.asked.leaves - 1), 1, 2)
        stops[some] = left / self.plan.asked.max_rows * seen.most < sides * min(self.far)
        return stops


def _each_once(places: Int64) -> Int64:
    """Return thresholds rising, each of them once; -1 for none, at the end."""
    places = np.sort(np.where(places < 0, NONE, places), axis=0)
    places[1:][places[1:] == places[:-1]] = NONE
    places = np.sort(places, axis=0)
    return np.where(places == NONE, -1, places)


def _far(plan: ChainPlan) -> tuple[float, float]:
    """Return by how many noises of a bin two thresholds have to be off to be proved, at the first attempt."""
    chance = plan.share(np.array([MOST_PART]), np.array([0])) / len(_TWO)
    under, over = (
        weighted_reach(plan.centre, np.array([u]), np.array([3 - u]), chance, np.array([_LARGE])) for u in _TWO
    )
    return float(under[0]) / _LARGE, float(over[0]) / _LARGE
