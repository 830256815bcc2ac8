"""One run of a search for a quantile by value under a pure budget: chains prove a threshold on either side of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.quantile_brackets import MOST_PART, ValueBrackets, ValueTarget
from farthing.accuracy.quantile_chain_run import HOPELESS, LEVELS, STEPS, QuantileChainRun, reach
from farthing.accuracy.quantile_run import within
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chain_run import ChainPlan, Show
    from farthing.accuracy.quantile_trail import Trail

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

FARTHEST: Final = 0.75
"""A group is given up where a proof would not succeed if its place were this many of its noises farther off."""

COARSER: Final = 4 * STEPS
"""No look is coarser than the finest one by more than so many levels: it would tell nothing."""

_END = np.iinfo(np.int64).max


class BracketRun(QuantileChainRun):
    """Where each group stands; as `QuantileChainRun`, but that a range as narrow as the value target is an answer.

    Guarantee: with probability at least 1 - beta, the quantile is always in `low` to `high`, and what is said of ranks
        is as in `QuantileChainRun`.
    Proof: docs/proofs/accuracy.quantile_chains.md, "By value".
    Assumes: as `quantile_chains.QuantileChains`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    __slots__ = ()

    @classmethod
    def of(cls, plan: ChainPlan, held: Trail, settled: Flags, show: Show | None) -> Self:
        """Return the start: what is as narrow as the target from the beginning is an answer already."""
        made = super().of(plan, held, settled, show)
        made.active &= ~made.within(np.arange(len(held.paid)))
        return made

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle."""
        asked = self.plan.asked
        lower, upper = asked.edge(self.low[at]), asked.edge(self.high[at] + 1)
        return within(lower, upper, self.plan.relative, self.plan.absolute)

    def _begin(self, at: Int64, place: Int64, level: Int64, begins: Flags) -> None:
        """Begin chains: one can prove something where it would be on one side of a range that is narrow enough."""
        some, place, chains = at[begins], place[begins], self.chains
        if not some.size:
            return
        worth = np.zeros(len(some))
        if len(chains.thresholds):
            worth = self._brackets(some).worth(place)
        row, level = chains.row(place, some), level[begins]
        chains.number[row, some], chains.began[row, some] = self.begun[some], level
        chains.part[row, some] = part = self.left[some] * worth
        chains.first[row, some] = level
        self.begun[some] += 1
        self.left[some] -= part

    def _brackets(self, at: Int64) -> ValueBrackets:
        """Return what the searches of these groups see."""
        chains, asked = self.chains, self.plan.asked
        target = ValueTarget(asked, self.plan.relative, self.plan.absolute)
        met, none = chains.thresholds[:, at], np.zeros((1, len(at)))
        with np.errstate(divide="ignore"):
            noise = np.vstack([none, 1 / np.sqrt(self._information(at)), none])
        whole = none.astype(np.int64)
        below = -self.plan.centre * self.rows[at]
        thresholds = np.vstack([whole - 1, np.where(met < 0, _END, met), whole + asked.leaves - 1])
        off = np.vstack([below, np.nan_to_num(self._off(at)), below + self.rows[at]])
        trying = np.vstack([whole > 0, chains.part[:, at] > 0, whole > 0])
        trying &= np.vstack([whole, chains.levels[:, at] >= 0, whole]).astype(np.bool_)
        order = np.argsort(thresholds, axis=0, kind="stable")
        thresholds, off, noise, trying = (
            np.take_along_axis(one, order, axis=0) for one in (thresholds, off, noise, trying)
        )
        least = np.maximum.accumulate(off - noise, axis=0)  # D rises: a place is no lower than those before it
        most = np.minimum.accumulate((off + noise)[::-1], axis=0)[::-1]
        off = np.clip(off, least, np.maximum(most, least))
        return ValueBrackets(thresholds, off, noise, trying, self.low[at] - 1, self.high[at], target)

    @property
    def _needs(self) -> float:
        """How many standard deviations a threshold has to be off to be proved on its side, at the first attempt."""
        share = self.plan.centre
        chance = self.plan.share(np.array([MOST_PART]), np.array([0]))
        return float(reach(share, chance)[0]) / math.sqrt(2 * ((1 - share) ** 2 + share**2))

    def _scouted(self, at: Int64, known: Flags, place: Int64, level: Int64, begins: Flags) -> None:
        """Fill in where the search looks next."""
        some, chains, share = at[known], self.chains, self.plan.centre
        seen = self._brackets(some)
        found = seen.next(np.full(len(some), self._needs))
        here = chains.thresholds[:, some] == found.place
        old, row = here.any(axis=0), here.argmax(axis=0)
        tries = chains.part[row, some] > 0
        fresh = ~old | (found.proves & ~tries & (seen.worth(found.place) > 0))
        last = np.where(old, chains.levels[row, some], -1)
        with np.errstate(divide="ignore"):
            wanted = np.sqrt(2 * ((1 - share) ** 2 + share**2)) * self.plan.asked.max_rows / found.noise
        wish = np.maximum(self._level(wanted), chains.levels[:, some].max(axis=0) - COARSER)
        place[known], begins[known] = found.place, fresh
        level[known] = np.where(fresh, wish, np.where(found.proves & tries, last + 1, np.maximum(wish, last + 1)))

    def _rough(self, last: Int64) -> Int64:
        """Return the next level where rows are not known yet: no more than it takes to see that there are too few."""
        hopeless = self.plan.cap / HOPELESS
        soon = np.maximum(self._level(np.array(hopeless * float(FARTHING))), last + STEPS // 2)
        return np.minimum(last + 2 * STEPS, soon)

    def _claim(self, at: Int64, row: Int64) -> None:
        """Say what the last looks prove; what was proved before stays."""
        plan, chains, place = self.plan, self.chains, self.middle[at]
        level, below, above = chains.levels[row, at], chains.below[row, at], chains.above[row, at]
        scale = plan.asked.max_rows / (LEVELS[level] * float(FARTHING))
        later = level - chains.first[row, at]
        chance = plan.beside(chains.number[row, at], level - chains.began[row, at])
        chance = chance + np.where(later >= 0, plan.share(chains.part[row, at], later), 0.0)
        off = (1 - plan.centre) * below - plan.centre * above
        far = reach(plan.centre, chance) * scale + 1
        low = np.where(off <= -far, np.maximum(self.low[at], place + 1), self.low[at])
        high = np.where(off >= far, np.minimum(self.high[at], place), self.high[at])
        sane = low <= high
        self.low[at], self.high[at] = np.where(sane, low, self.low[at]), np.where(sane, high, self.high[at])
        self.active[at] &= ~self.within(at) & (self.low[at] < self.high[at])

    def _hopeless(self, at: Int64) -> Flags:
        """Return which groups the rest of the cap most likely does not bring to their target."""
        if self.plan.spend or not len(self.chains.thresholds):
            return np.zeros(len(at), np.bool_)
        found, share = self._brackets(at), self.plan.centre
        left = (self.plan.cap - self.spent[at]) * float(FARTHING) / self.plan.asked.max_rows
        left = left / np.sqrt(2 * ((1 - share) ** 2 + share**2))  # one over the noise that it buys
        with np.errstate(divide="ignore"):
            best = np.where(found.trying & found.seen, 1 / found.noise, 0.0).max(axis=0)
        sides = np.where((self.low[at] > 0) & (self.low[at] - 1 + found.leaves >= self.high[at]), 1, 4)
        few = (left + best) * found.most_rows < sides * self._needs
        return np.asarray((self.begun[at] > 0) & few)
