"""Counts, sums, means, variances and their roots together: looks at growing precision, as at a mean alone.

All measures are taken in one shape, and all answers have intervals of one critical value. The first look whose
intervals are all within their targets is the last: the most demanding answer says when, and the others are told there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_claims import PARTS
from farthing.accuracy.joint_prices import in_parts
from farthing.accuracy.ratio_looks import BETAS, RatioLooks
from farthing.accuracy.ratio_shapes import PILOT, tilt
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.accuracy.variance_looks import TILTED, critical_value, too_wide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices
    from farthing.accuracy.statistics import Statistic

SHARES: Final = {2: (0.55, 0.45), 3: (0.33, 0.4, 0.27)}
"""The parts of a tick that go to rows and sum, and to rows, sum and squares, where all groups have one shape."""

BESIDE: Final = {2: 0.4, 3: 0.16}
"""What a count of other rows takes beside these; all are made to add up to one."""

APART: Final = 2.0
"""Other shapes give none of them less than its part over this,"""

FEWEST, FEWEST_COARSE = 0.25, 0.5
"""nor rows less than these times what the sum of a mean gets: for fine targets and for coarse ones."""

ONE_SHAPE: Final = 0.1
"""Groups have one shape where a relative target is this or more, as a pilot costs more than it saves,"""

ALIKE: Final = 2.0
"""no relative target is so many times another, and none has an absolute part."""

UNEQUAL: Final = 3.0
"""Claims in stages cost less where the steepest answer's target is so many times another,"""

UNEQUAL_SPREAD: Final = (10.0, 4.0)
"""or, where that is a variance or root, so many times: without a mean beside it, and with one."""

LINEAR_MOST: Final = 1 / 3
"""The largest relative target of a count or sum: at coarser ones noise alone could pass for an answer."""

MORE: Final = 0.02
"""By how much c is larger than for one answer alone: the last look is more often bad luck for one of several."""

THIRD: Final = 2 / 3
"""Where no target is more than this part of what it was, c may be smaller than the looks had that are gone on from,"""

LESS: Final = 1.1
"""but not so many times: each of these looks would have gone on then, too."""

_NEARLY: Final = 1 + 1e-9
_TINY: Final = 1e-100


@dataclass(frozen=True, slots=True)
class JointLooks(RatioLooks):
    """How several answers are measured together.

    Attributes:
        prices: their targets.
        beta: the failure probability of each interval.
        critical: c; intervals are those of a single look whose chance of a miss is that of c.
        least: not used.
        public: whether all groups have one shape.
        cut: whether looks may end where a variance can be no larger.

    Guarantee: each interval of every group misses its answer with probability beta at most, whatever that is.
    Proof: docs/proofs/accuracy.joint_looks.md.
    Assumes: fresh, independent Gaussian noise of variance 1/(grains * worth); targets that do not depend on earlier
        answers of the question.
    Rounds: looks are whole numbers of ticks; c is held against simulations of this code.
    """

    cut: bool = True

    @classmethod
    def of(cls, prices: JointPrices, beta: float, held: float = 0.0) -> JointLooks | None:
        """Return the rule of a question, or None: its answers or targets are not of those that c is calibrated for.

        Args:
            prices: the targets.
            beta: the failure probability.
            held: the critical value of the looks that are gone on from; it is not lowered.
        """
        if not _fits(prices) or prices.patience > 1 or not BETAS[0] <= beta <= BETAS[1]:
            return None
        public = _alike(prices)
        most = steepest(prices, public=public)
        if most > TILTED * _NEARLY or (not held and _unequal(prices, most, public=public)):
            return None
        return cls(prices, beta, max(critical_value(beta, most) + MORE, held), 0.0, public, _coarse(prices))

    def shape(self, means: Floats, information: Ints) -> Ints:
        """Return the grains of one tick, int64[lanes, groups], by what a pilot told, or the public ones."""
        even = _even(self.prices)
        wanted = np.broadcast_to(even, means.shape)
        if not self.public:
            best = self.prices.wanted_of(means, information, self.told)
            wanted = np.maximum(best / np.maximum(best.sum(axis=0), _TINY), even / APART)
            for mean in (one for one in self.prices.statistics if isinstance(one, RatioStatistic)):
                least = _fewest(self.prices, mean, public=False) * wanted[mean.total]
                wanted[mean.count] = np.maximum(wanted[mean.count], least)
        return in_parts(wanted, self.prices.used, PARTS)

    @property
    def overhead(self) -> float:
        """About what a pilot, or the one shape of all groups, adds to the price."""
        return PILOT

    def intervals(self, values: Floats, variances: Floats) -> tuple[Floats, Floats, Flags]:
        """Return lower and upper ends, float64[outputs, n], and where all are within their targets, bool[n]."""
        low, high = self.prices.intervals(values, variances, self.told)
        return low, high, self._excess(values, variances) <= 1

    def _excess(self, values: Floats, variances: Floats) -> Floats:
        """Return by what factor the widest interval of a look is too wide to be the last."""
        most = np.zeros(values.shape[1])
        for one, relative, absolute in _asked(self.prices):
            np.maximum(most, self._excess_of(one, (relative, absolute), values, variances), out=most)
        return most

    def _excess_of(
        self, statistic: Statistic, target: tuple[float, float], values: Floats, variances: Floats
    ) -> Floats:
        """Return that of one answer; an end of a range does not help it, but for the largest variance."""
        if isinstance(statistic, VarianceStatistic):
            return too_wide(statistic, target, values, variances, self.told, cut=self.cut)
        if isinstance(statistic, RatioStatistic):
            statistic = replace(statistic, lower=-np.inf, upper=np.inf)
        low, high = statistic.interval(values, variances, self.told)
        known = np.isfinite(high - low)
        low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
        allowed = sum(np.maximum(target[0] * np.abs(end), target[1]) for end in (low, high))
        return np.where(known, (high - low) / np.maximum(allowed, _TINY), np.inf)

    def _near_end(self, values: Floats, variances: Floats, growth: float) -> Flags:  # noqa: ARG002  # none is helped
        """Return none: the end of a range ends no look."""
        return np.zeros(values.shape[1], np.bool_)


def least_critical(held: float, old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """Return the least c of looks that go on from others, by c and promise of these and by the promise of the former.

    >>> least_critical(2.2, (0.05, -9, 0.2, 0.0), (0.05, -9, 0.1, 0.0)), least_critical(2.2, (0.1,) * 3, (0.1,) * 3)
    (2.0, 2.2)
    """
    sharp = all(mine <= THIRD * theirs for mine, theirs in zip(new[2:], old[2:], strict=True))
    return held / LESS if sharp else held


def steepest(prices: JointPrices, *, public: bool) -> float:
    """Return the largest part of itself by which a target changes within its own width, of those that end looks.

    A root beside a variance that is asked as sharply ends none, and neither a mean beside a sum of values of one sign.
    Infinite: a count or sum is asked too coarsely.
    """
    return max(_tilt(prices, *each, public=public) for each in _asked(prices))


def _unequal(prices: JointPrices, most: float, *, public: bool) -> bool:
    """Return whether c is that of a coarse answer which would rarely be the last, beside much sharper ones."""
    near, mean = most / _NEARLY, any(isinstance(one, RatioStatistic) for one in prices.statistics)
    least = float(prices.relative.min()) / _NEARLY
    return all(
        relative >= least * (UNEQUAL_SPREAD[mean] if isinstance(one, VarianceStatistic) else UNEQUAL)
        for one, relative, absolute in _asked(prices)
        if _tilt(prices, one, relative, absolute, public=public) >= near
    )


def _tilt(prices: JointPrices, one: Statistic, relative: float, absolute: float, *, public: bool) -> float:
    """Return that of one output; less where another output ends looks later for sure."""
    sharp = [other for other, asked, wide in _asked(prices) if asked <= relative and not wide]
    if isinstance(one, VarianceStatistic):
        plain = replace(one, root=False, sample=False)
        spread = any(isinstance(two, VarianceStatistic) and replace(two, sample=False) == plain for two in sharp)
        return relative * (2 if one.root and not spread else 1)
    if isinstance(one, RatioStatistic):
        half = one.half
        if not absolute and abs(one.centre) * _NEARLY >= half and any(_is_sum_of(two, one) for two in sharp):
            return relative
        return tilt(relative, absolute / half, _fewest(prices, one, public=public), one.centre / half)
    return relative if relative <= LINEAR_MOST else math.inf


def _asked(prices: JointPrices) -> Iterator[tuple[Statistic, float, float]]:
    """Give every output with its relative and absolute target."""
    return zip(prices.statistics, prices.relative[:, 0].tolist(), prices.absolute[:, 0].tolist(), strict=True)


def _is_sum_of(one: Statistic, mean: RatioStatistic) -> bool:
    """Return whether that is the sum of the values of a mean."""
    if not isinstance(one, Linear):
        return False
    return dict(zip(one.lanes, one.weights, strict=True)) == {mean.total: 1.0, mean.count: mean.centre}


def _fits(prices: JointPrices) -> bool:
    """Return whether there are several outputs, of kinds and targets that looks are calibrated for."""
    return len(prices.statistics) > 1 and bool(prices.counts) and all(_known(*each) for each in _asked(prices))


def _known(one: Statistic, relative: float, absolute: float) -> bool:
    """Return whether that is a count or sum, a mean of a bounded range, or a variance or root; relatively."""
    if isinstance(one, VarianceStatistic):
        return bool(relative and one.centred) and not (one.root and absolute)
    if isinstance(one, RatioStatistic):
        return bool(relative) and one.centred
    return bool(relative) and isinstance(one, Linear)


def _alike(prices: JointPrices) -> bool:
    """Return whether all groups may have one shape: one column, and targets that are about as sharp."""
    others = _others(prices)
    counts = [one.lanes for one in prices.statistics if isinstance(one, Linear) and one.row == 1]
    one_column = len(prices.counts) == 1 and all((lane,) in counts for lane in others) and len(others) <= 1
    near = bool(prices.relative.max() < ALIKE * prices.relative.min())
    return one_column and near and _coarse(prices) and not prices.absolute.any()


def _coarse(prices: JointPrices) -> bool:
    """Return whether the coarsest relative target is coarse; never of a sharper ask alone."""
    return bool(prices.relative.max() >= ONE_SHAPE / _NEARLY)


def _column(prices: JointPrices) -> list[int]:
    """Return the lanes of the first mean or variance, in their order: rows, sum and squares."""
    several: list[tuple[int, ...]] = [one.reads for one in prices.statistics if not isinstance(one, Linear)]
    longest = max(several, key=len)
    return list(longest)


def _others(prices: JointPrices) -> list[int]:
    """Return the other lanes in use."""
    column = _column(prices)
    return [int(lane) for lane in np.flatnonzero(prices.used) if lane not in column]


def _even(prices: JointPrices) -> Floats:
    """Return the parts of a tick that lanes have where all groups have one shape, float64[lanes, 1]."""
    even, column = np.zeros((len(prices.worth), 1)), _column(prices)
    even[column, 0] = SHARES[len(column)]
    even[_others(prices), 0] = BESIDE[len(column)]
    return np.asarray(even / even.sum())


def _fewest(prices: JointPrices, mean: RatioStatistic, *, public: bool) -> float:
    """Return the least precision of rows over that of a mean's sum: the fewer rows, the steeper its target."""
    if public:
        even = _even(prices)[:, 0]
        return float(even[mean.count] / even[mean.total])
    return FEWEST_COARSE if _coarse(prices) else FEWEST
