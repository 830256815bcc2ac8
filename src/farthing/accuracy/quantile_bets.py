"""Bets that the rank of a threshold is not too low, and not too high: what they win adds up over all thresholds.

A bet multiplies what was won by a factor whose mean is at most 1 where it is wrong, whatever was seen before. So what
is won on a wrong claim passes 1/chance, ever, with that chance at most: however often one looks, and wherever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

STAKE: Final = 0.75
"""The part of what was won that is staked at a place; the rest cannot be lost there."""

MOST: Final = 60.0
"""No bet needs more than this, as a logarithm."""

_WIDEST: Final = 20.0  # the largest spread of a factor's logarithm; at a larger one its mean is smaller
_HALVINGS: Final = 20

_NAMES: Final = ("information", "totals", "above", "below", "past", "before")


def won(mean: Float64, information: Float64, rate: Float64) -> Float64:
    """Return the logarithm of what a bet on a mean below 0 multiplies; where it is not below 0, 1 in the mean at most.

    >>> won(np.array([-2.0, 2.0]), np.array([1.0]), np.array([1.0])).tolist()
    [1.5, -2.5]
    """
    return np.asarray(-rate * mean * information - rate**2 * information / 2)


def won_at_most(
    most: Float64, mean: Float64, information: Float64, rate: Float64, surely: Float64 | float = 1.0
) -> Float64:
    """Return the same of a bet that never wins more than so much, as a logarithm; so it wins more where that is less.

    What is left over where it would win more raises the factor, until its mean is 1 again at a mean of 0. The variance
    may be less than the information tells, but times it no less than `surely`: the mean is at most 1 there as well.

    >>> needs, mean, one = np.array([1.0, 40.0, 0.0]), np.array([-0.5]), np.array([1.0])
    >>> won_at_most(needs, mean, one, one).round(2).tolist()
    [0.18, 0.0, 0.0]
    """
    from scipy.special import ndtr

    most = np.clip(most, 0.0, MOST)
    spread = np.clip(rate * np.sqrt(information), 1e-12, _WIDEST)
    low, high = np.zeros_like(most * spread), most + spread**2 / 2 + 8 * spread
    mean_at_most = np.sqrt(surely)  # a smaller variance makes noise denser by the inverse of this, at most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        room = (most - middle) / spread
        in_mean = np.exp(middle) * ndtr(room - spread / 2) + np.exp(most) * ndtr(-room - spread / 2)
        low, high = np.where(in_mean <= mean_at_most, middle, low), np.where(in_mean <= mean_at_most, high, middle)
    return np.asarray(np.minimum(low + won(mean, information, rate), most))


def partly(stake: float, gained: Float64) -> Float64:
    """Return the logarithm of what is there after a part was staked, and multiplied.

    >>> partly(0.5, np.array([-100.0, 0.0])).round(3).tolist()
    [-0.693, 0.0]
    """
    return np.asarray(np.logaddexp(np.log(1 - stake), np.log(stake) + gained))


def wholly(stake: float, there: Float64) -> Float64:
    """Return the logarithm by which a stake has to be multiplied so that this, as a logarithm, is there.

    >>> wholly(0.5, partly(0.5, np.array([-1.0, 2.0]))).round(3).tolist()
    [-1.0, 2.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        left = there + np.log1p(-(1 - stake) * np.exp(-there))
    return np.asarray(np.nan_to_num(left, nan=-np.inf) - np.log(stake))


@dataclass(slots=True, eq=False)
class Places:
    """What is known at the thresholds that were looked at: one row a place, one column a group.

    Attributes:
        thresholds: -1 for none.
        information: on D.
        totals: the mean of D times the information.
        above: log of what was won by bets that D is not too high.
        below: that it is not too low.
        past: that the quantile is past the threshold.
        before: that it is not.
        used: how many places each group has.
    """

    thresholds: Int64
    information: Float64
    totals: Float64
    above: Float64
    below: Float64
    past: Float64
    before: Float64
    used: Int64

    @classmethod
    def none(cls, groups: int) -> Places:
        """Return no places.

        >>> Places.none(2).used.tolist()
        [0, 0]
        """
        real = np.zeros((0, groups))
        whole = np.zeros((0, groups), np.int64)
        return cls(whole, real, real, real, real, real, real, np.zeros(groups, np.int64))

    def at(self, thresholds: Int64, groups: Int64) -> Int64:
        """Return the rows of thresholds of some groups, added where they are new."""
        here = self.thresholds[:, groups] == thresholds
        found = here.any(axis=0)
        row = np.where(found, here.argmax(axis=0) if len(here) else 0, self.used[groups])
        while len(self.thresholds) <= row.max(initial=-1):
            none = np.zeros(len(self.used))
            self.thresholds = np.vstack([self.thresholds, none.astype(np.int64) - 1])
            for name in _NAMES:
                setattr(self, name, np.vstack([getattr(self, name), none]))
        self.thresholds[row, groups] = thresholds
        self.used[groups] += ~found
        return np.asarray(row)

    def beside(self, other: Places) -> Places:
        """Return the places of both; a threshold may be there twice.

        >>> Places.none(2).beside(Places.none(2)).thresholds.shape
        (0, 2)
        """
        names = ("thresholds", *_NAMES)
        both = {name: np.vstack([getattr(self, name), getattr(other, name)]) for name in names}
        return Places(**both, used=self.used + other.used)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The places of some groups from the lowest to the highest, and what all bets together say there.

    Attributes:
        thresholds: int64[places, groups]; -1 for none, at the end.
        information, totals: of D at each.
        high: log of what was won that this threshold, and so no lower one, is too high.
        low: that this threshold, and so no higher one, is too low.
        outside: float64[places + 1, groups], that the quantile is not among the leaves between two places.
        order: int64[places, groups], the rows of the places before they were put in order.
    """

    thresholds: Int64
    information: Float64
    totals: Float64
    high: Float64
    low: Float64
    outside: Float64
    order: Int64

    @classmethod
    def of(cls, places: Places, at: Int64) -> Ladder:
        """Add up what was won: for a claim on high ranks at this place and above, on low ones at it and below.

        What was lost by the opposite bets, which cannot be wrong as well, is taken off.
        """
        raw = places.thresholds[:, at]
        order = np.argsort(np.where(raw < 0, np.iinfo(np.int64).max, raw), axis=0, kind="stable")

        def rising(values: Float64) -> Float64:
            return np.take_along_axis(values[:, at], order, axis=0)

        above = _from_above(partly(STAKE, rising(places.above)), np.add)
        below = np.add.accumulate(partly(STAKE, rising(places.below)), axis=0)
        zero = np.zeros((1, len(at)))
        lost_below = np.minimum.accumulate(np.vstack([zero, below[:-1]]), axis=0)
        lost_above = _from_above(np.vstack([above[1:], zero]), np.minimum)
        past, before = rising(places.past), rising(places.before)
        return cls(
            thresholds=np.take_along_axis(raw, order, axis=0),
            information=rising(places.information),
            totals=rising(places.totals),
            high=np.minimum.accumulate(above + np.minimum(lost_below, 0), axis=0),
            low=_from_above(below + np.minimum(lost_above, 0), np.minimum),
            outside=np.vstack([_from_above(past, np.add), zero]) + np.vstack([zero, np.add.accumulate(before, axis=0)]),
            order=order,
        )

    def at(self, thresholds: Int64) -> tuple[Float64, Float64]:
        """Return `high` and `low` at one place of each group."""
        row = (self.thresholds == thresholds).argmax(axis=0)
        columns = np.arange(len(row))
        return self.high[row, columns], self.low[row, columns]

    @property
    def seen(self) -> Flags:
        """Which places there are."""
        return np.asarray(self.thresholds >= 0)


def _from_above(values: Float64, combine: np.ufunc) -> Float64:
    """Return what accumulates from the highest place down."""
    return np.asarray(combine.accumulate(values[::-1], axis=0)[::-1])
