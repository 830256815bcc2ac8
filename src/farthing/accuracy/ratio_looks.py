"""A mean alone: looks at growing precision, until its exact interval fits into the target at a raised critical value.

The rows and their sum are measured in one *shape*, fixed beforehand. At every look of a fixed grid all that was
measured in that shape gives Fieller's set at the critical value c; the first look whose set fits into the target is the
last. c is larger than the z of a single look, by what choosing the look may cost. A sharper target goes on from there:
its rule would not have stopped earlier either, so it pays the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.fieller import fieller
from farthing.accuracy.joint_claims import PARTS
from farthing.accuracy.joint_prices import in_parts, turns
from farthing.accuracy.ratio_chances import CUT_FROM, eased, easy, helped, plain
from farthing.accuracy.ratio_shapes import BOUND, CLEAR, PILOT, chosen, cut_critical
from farthing.accuracy.reach import ENDS, GIVING_UP, Reach, about_one, judged_at
from farthing.accuracy.statistics import RatioStatistic

if TYPE_CHECKING:
    from farthing.accuracy.joint_claims import ClaimPurse
    from farthing.accuracy.joint_pivot import Pivot
    from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices

GROWTH: Final = 1.03
"""The growth of information from a look of the grid to the next."""

FUTILE_SHARE: Final = 0.02
"""The part of beta that the intervals of groups take which are given up or stopped by the cap."""

LATER_SHARE: Final = 0.01
"""The part of claims that follow for groups that were given up, at looser targets: each has half of the last one's."""

BETAS: Final = (1e-4, 0.2)
"""The least and largest failure probability that it is calibrated for."""

SHARPER: Final = 4.0
"""A target so many times as sharp begins again, in a shape of its own."""

_JUMPS: Final = (46, 23, 12, 5)  # looks of the grid
_HOPE: Final = 2.0  # standard deviations that the rows may grow by, where the end of the range may end a look
_FAR: Final = 4.0  # standard deviations that a jump stays short of a stop
_STEP: Final = 2.0  # growth of a pilot, over what it holds
_ENOUGH: Final = 0.8  # of what a pilot is to hold
_BEGIN: Final = 16  # grains a lane
_BEGIN_SHIFT: Final = 44  # the first grains are no less than the cap shifted by this
_FOREVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class RatioLooks:
    """How a mean alone is measured.

    Attributes:
        prices: its target.
        beta: the failure probability of its interval.
        critical: c.
        least: the least precision of the rows over that of the sum, in units of a row and of half the range.
        public: whether all groups have that one shape: a pilot would cost more than it saves.

    Guarantee: the interval of every group misses its mean with probability beta at most, whatever that is.
    Proof: docs/proofs/accuracy.ratio_looks.md.
    Assumes: fresh, independent Gaussian noise of variance 1/(grains * worth); targets that do not depend on earlier
        answers of the question.
    Rounds: looks are whole numbers of ticks; c is computed by quadrature, with a margin of half a percent of beta.
    """

    prices: JointPrices
    beta: float
    critical: float
    least: float
    public: bool

    @classmethod
    def of(cls, prices: JointPrices, beta: float, held: float = 0.0) -> RatioLooks | None:
        """Return the rule of a question, or None: it is not one mean of a bounded range, or its target is too coarse.

        Args:
            prices: the targets.
            beta: the failure probability.
            held: the critical value of the looks that are gone on from; it is not lowered.
        """
        only = prices.statistics[0]
        if len(prices.statistics) > 1 or not isinstance(only, RatioStatistic) or prices.named_loss:
            return None
        if not only.centred or prices.patience > 1 or not BETAS[0] <= beta <= BETAS[1]:
            return None
        relative, absolute = float(prices.relative[0, 0]), float(prices.absolute[0, 0]) / only.half
        found = chosen(relative, absolute, only.centre / only.half, beta)
        if found is None:
            return None
        critical, least, public = found
        return cls(prices, beta, max(critical, held), least, public)

    @property
    def half(self) -> float:
        """Half of the range."""
        return self._only.half

    @property
    def count(self) -> int:
        """The lane of the rows."""
        return self._only.count

    @property
    def _only(self) -> RatioStatistic:
        """The mean."""
        (only,) = self.prices.statistics
        assert isinstance(only, RatioStatistic)  # noqa: S101  # `of` makes sure
        return only

    def shape(self, means: Floats, information: Ints) -> Ints:
        """Return the grains of one tick, int64[lanes, groups], by what a pilot told, or the public ones."""
        wanted = np.zeros(means.shape)
        count, total = self._only.count, self._only.total
        worth = float(self.prices.worth[count, 0] / (self.prices.worth[total, 0] * self.half**2))  # about 1
        wanted[count], wanted[total] = self.least, worth
        if not self.public:
            best = self.prices.wanted_of(means, information, self.told)
            wanted[count] = np.clip(best[count] / np.maximum(best[total], 1e-100), self.least / worth, 1 / worth)
            wanted[total] = 1.0
        made = in_parts(wanted, self.prices.used, PARTS)
        short = made[count] < self.least / worth * made[total]  # whole numbers may fall just below
        made[count] += short
        return made

    @property
    def overhead(self) -> float:
        """About what a pilot, or the one shape of all groups, adds to the price."""
        return BOUND if self.public else PILOT

    @property
    def told(self) -> float:
        """The failure probability of a single look whose critical value is c."""
        return math.erfc(self.critical / math.sqrt(2))

    def intervals(self, values: Floats, variances: Floats) -> tuple[Floats, Floats, Flags]:
        """Return lower and upper ends, float64[1, n], and where they are within the target, bool[n].

        They are those at c, but for looks that are the last by the ends of the range alone: there c is larger.
        """
        low, high = self._told(values, variances)
        wide, cut = self._excess_at(values, variances), self._excess_cut(values, variances)
        ended = (cut <= 1) & (wide > 1)
        if ended.any():
            least, most, _ = self._cut(values, variances)
            low, high = np.where(ended, least, low), np.where(ended, most, high)
        return low, high, np.minimum(wide, cut) <= 1

    def _excess(self, values: Floats, variances: Floats) -> Floats:
        """Return by what factor a look's set is too wide to be the last; infinite where it is the whole line."""
        return np.minimum(self._excess_at(values, variances), self._excess_cut(values, variances))

    def _told(self, values: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """Return the intervals that looks tell at c, float64[1, n]."""
        return self._within(*self._uncut(values, variances, self._critical(values, variances)))

    def _easy(self, variances: Floats) -> Flags:
        """Return which groups have the shape and target of which c is smaller near the end of the range."""
        only, targets = self._only, (float(self.prices.relative[0, 0]), float(self.prices.absolute[0, 0]))
        shape = variances[only.total] / (variances[only.count] * self.half**2)
        return easy(shape, *targets, only.centre / self.half)

    def _critical(self, values: Floats, variances: Floats) -> Floats:
        """Return c by where groups seem to lie; it may be smaller where the end of the range helps for sure."""
        only, less = self._only, self._easy(variances)
        rows = values[only.count]
        place = values[only.total] / np.where(rows > 0, rows * self.half, np.inf)
        return np.where(less, eased(self.critical, place), self.critical)

    def _uncut(self, values: Floats, variances: Floats, critical: Floats | float) -> tuple[Floats, Floats]:
        """Return the set of a mean whose range has no ends: where they cut it, chance would end looks early."""
        only = self._only
        ends = fieller(values[only.total], values[only.count], variances[only.total], variances[only.count], critical)
        return only.centre + ends[0], only.centre + ends[1]

    def _excess_at(self, values: Floats, variances: Floats) -> Floats:
        """Return by what factor sets at c that are not cut are too wide; infinite where they are the whole line."""
        low, high = self._uncut(values, variances, self._critical(values, variances))
        known = np.isfinite(high - low)
        low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
        return np.where(known, self.prices.ratio(low[None, :], high[None, :])[0], np.inf)

    def _excess_cut(self, values: Floats, variances: Floats) -> Floats:
        """Return the same of sets that are cut to the range, at the larger c; infinite where none is cut."""
        if self.prices.relative[0, 0] < CUT_FROM:
            return np.full(values.shape[1], np.inf)
        low, high, known = self._cut(values, variances)
        return np.where(known & (low[0] < high[0]), self.prices.ratio(low, high)[0], np.inf)

    def _near_end(self, values: Floats, variances: Floats, growth: float) -> Flags:
        """Return which groups may be bounded by the end of the range when that many times as much is known."""
        only, relative = self._only, float(self.prices.relative[0, 0])
        if relative < CUT_FROM:
            return np.zeros(values.shape[1], np.bool_)
        rows = values[only.count] / np.sqrt(variances[only.count])
        needed = self._ended(variances)
        high = values[only.total] > helped(relative, only.centre / self.half) * self.half * values[only.count]
        return np.asarray(high & (rows * math.sqrt(growth) + _HOPE * math.sqrt(growth - 1) >= needed))

    def _cut(self, values: Floats, variances: Floats) -> tuple[Floats, Floats, Flags]:
        """Return the sets at the larger c, cut to the range, float64[1, n], and where they have ends without."""
        low, high = self._uncut(values, variances, self._ended(variances))
        return *self._within(low, high), np.isfinite(high)

    def _ended(self, variances: Floats) -> Floats:
        """Return the c at which sets are cut to the range, float64[n]."""
        simple = plain(float(self.prices.absolute[0, 0]), self._only.centre / self.half)
        return cut_critical(self.critical, self.beta, self._easy(variances), simple=simple)

    def _within(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return sets cut to the range, float64[1, n]."""
        only = self._only
        return np.clip(low, only.lower, only.upper)[None, :], np.clip(high, only.lower, only.upper)[None, :]

    def pilot(self, purse: ClaimPurse, groups: Ints) -> None:
        """Measure groups until it is clear in what shape; nothing where the shape is public."""
        if self.public:
            return
        rows, even = self.prices.counts, (self.prices.used * _BEGIN)[:, None]
        first = np.maximum(even, (self.prices.cap >> _BEGIN_SHIFT) * self.prices.used[:, None])
        while len(groups):
            means, information = purse.means[:, groups], purse.information[:, groups]
            held, variances = information.sum(axis=0), self.prices.variances(information)
            price = self.prices.price(means, information, self.told)
            clear = (means[rows] >= CLEAR * np.sqrt(variances[rows])).all(axis=0)
            goal = PILOT * np.minimum(price, self.prices.cap)
            going = (held < _ENOUGH * goal) | ~clear
            going &= (held < self.prices.cap // GIVING_UP[0]) & ~self.prices.beyond(
                price, means, information, self.prices.cap
            )
            going |= held == 0
            groups = groups[going]
            if len(groups):
                wished = np.where(clear, np.minimum(goal - held, _STEP * held), held)[going]
                grains = np.maximum(first, np.ceil(even / even.sum() * wished))
                purse.buy(grains.astype(np.int64), groups)

    def follow(
        self, purse: ClaimPurse, groups: Ints, shape: Ints, shown: Floats, held: Ints, *, again: Flags, asks: int
    ) -> tuple[Floats, Floats, Floats, Ints]:
        """Look at groups until each is within its target, given up, or at the cap.

        Args:
            purse: what is known, and how to learn more.
            groups: int64[n], which groups.
            shape: int64[lanes, n], the grains of a tick.
            shown: float64[lanes, n], the means of what was measured in that shape before.
            held: int64[n], its ticks.
            again: bool[n], which groups the last ask did not meet; they may be given up where they stand.
            asks: how many asks these looks have served, with this one; each had its looks to give up at.

        Returns:
            (lower, upper) float64[1, n], and the means and ticks that the next ask goes on from.
        """
        told, reach = self.beta * FUTILE_SHARE / (ENDS * asks), self.reach
        pieces = [
            self._followed(
                purse, groups[at], shape[:, at], shown[:, at], held[at], reach=reach, again=again[at], told=told
            )
            for at in turns(len(groups))
        ]
        lower, upper, after, ticks = zip(*pieces, strict=True)
        return (
            np.concatenate(lower, axis=1), np.concatenate(upper, axis=1), np.concatenate(after, axis=1),
            np.concatenate(ticks),
        )  # fmt: skip

    @property
    def reach(self) -> Reach:
        """What groups have to hold to be within their targets."""
        few = replace(self, prices=about_one(self.prices))
        return Reach.of(few.prices, few.told, few.shape, few._excess)  # noqa: SLF001  # its own

    def _followed(
        self,
        purse: ClaimPurse,
        groups: Ints,
        shape: Ints,
        shown: Floats,
        held: Ints,
        *,
        reach: Reach,
        again: Flags,
        told: float,
    ) -> tuple[Floats, Floats, Floats, Ints]:
        """Do the same with groups whose arrays fit in cache together."""
        mine, size, active = purse.of(groups), shape.sum(axis=0), np.arange(len(groups))
        paid = mine.information.sum(axis=0)
        most = held + np.maximum(self.prices.cap - paid, 0) // size
        first = np.maximum(paid // size, 1)  # as much as the pilot
        limit = np.where(again & (held > 0), held, _limit(most, held - 1))
        lower = np.full((len(self.prices.statistics), len(groups)), -np.inf)
        upper = -lower
        values, ticks, after_all, held_all = shown, held, shown.copy(), held.copy()
        while len(active):
            variances = 1 / (np.maximum(shape * ticks, 0.5) * self.prices.worth)
            low, high, fits = self.intervals(values, variances)
            fits &= ticks > 0
            ends = (ticks == limit) & ~fits & (ticks > 0)
            if len(public := np.flatnonzero(ends)):
                spent = shape[:, public] * ticks[public]
                ends[public] = self.given_up(values[:, public], spent, most[public] * size[public], reach)
                ends[public] |= ticks[public] == most[public]
                limit[public] = _limit(most[public], ticks[public])
                some = np.flatnonzero(ends)
                low[:, some], high[:, some] = self.prices.intervals(values[:, some], variances[:, some], told)
            done = ends | fits | (ticks >= most)
            if done.any():
                over, on = active[done], ~done
                lower[:, over], upper[:, over] = low[:, done], high[:, done]
                after_all[:, over], held_all[over] = values[:, done], ticks[done]
                active, shape, values, variances = active[on], shape[:, on], values[:, on], variances[:, on]
                ticks, most, size, first, limit = (each[on] for each in (ticks, most, size, first, limit))
            if len(active):
                after = self._next(values, variances, ticks, limit, first)
                bought = after - ticks
                fresh = mine.buy(shape * bought, active)
                values, ticks = values + (fresh - values) * (bought / after), after
        purse.put(groups, mine)
        return lower, upper, after_all, held_all

    def given_up(self, values: Floats, information: Ints, most: Ints, reach: Reach) -> Flags:
        """Return which groups surely need more than so many grains."""
        information = np.maximum(information, 1)
        price = self.prices.price(values, information, self.told)
        small = self.prices.beyond(price, values, information, most)
        doubtful = np.flatnonzero(~small & (price > most))
        held = information[:, doubtful] * self.prices.worth
        spent = information[:, doubtful].sum(axis=0)
        small[doubtful] = reach.too_small(values[:, doubtful], held, most[doubtful], self.beta, spent)
        return small

    def left(self, pivot: Pivot, room: Ints) -> Flags:
        """Return which groups surely hold too little where they stand, if so many grains more may be spent on them."""
        spent = pivot.shape * np.rint(pivot.clock**2)
        held = spent.sum(axis=0)
        small = self.reach.too_small(pivot.shown, spent * self.prices.worth, held + room, self.beta, held)
        return np.asarray(small & (pivot.clock > 0))

    def _next(self, values: Floats, variances: Floats, ticks: Ints, limit: Ints, first: Ints) -> Ints:
        """Return the ticks of the next looks: of the grid, farther where none between would stop, none past a limit."""
        index = np.floor(np.log(np.maximum(ticks, 1)) / math.log(GROWTH) + 1e-6).astype(np.int64)
        doubt, steps, rest = self.prices.doubt(values, variances), np.ones(len(ticks), np.int64), np.arange(len(ticks))
        for jump in _JUMPS:
            growth = GROWTH**jump
            spread = _FAR * doubt[rest] * math.sqrt(1 - 1 / growth)
            short = self._excess(values[:, rest], variances[:, rest] / growth) > 1 + spread
            short &= ~self._near_end(values[:, rest], variances[:, rest], growth)
            steps[rest[short]], rest = jump, rest[~short]
        after = np.where(ticks > 0, _grid()[index + steps], first)
        return np.asarray(np.minimum(np.maximum(after, ticks + 1), limit))


@cache
def _grid() -> Ints:
    """Return the ticks of all looks that there can be."""
    looks = math.ceil(62 * math.log(2) / math.log(GROWTH)) + 1
    ticks = np.floor(GROWTH ** np.arange(looks) + 0.5)
    return np.concatenate([ticks[ticks < 2.0**62].astype(np.int64), np.full(max(_JUMPS) + 2, _FOREVER)])


def _limit(most: Ints, ticks: Ints) -> Ints:
    """Return after how many more ticks than these a group may be given up, or at the end of what it may pay."""
    futile = judged_at(most)
    return np.asarray(np.where(futile > ticks, futile, _FOREVER).min(axis=0))


def goes_on(old: tuple[float, ...], new: tuple[float, ...]) -> bool:
    """Return whether all looks of one promise would have gone on at another, too, and are worth it.

    Args:
        old: its beta, its cap as a negative number, and its targets.
        new: the same of the other.

    >>> goes_on((0.05, -9, 0.1, 0.0), (0.01, -9, 0.05, 0.0)), goes_on((0.05, -9, 0.1, 1.0), (0.05, -9, 0.05, 2.0))
    (True, False)
    """
    if len(old) != len(new) or new[0] > old[0]:
        return False
    pairs = list(zip(new[2:], old[2:], strict=True))
    return all(mine <= theirs < max(SHARPER * mine, 1e-300) for mine, theirs in pairs if mine or theirs)
