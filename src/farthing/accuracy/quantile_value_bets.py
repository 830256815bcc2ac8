"""Bets on which side of a threshold a quantile lies, on the looks that are taken to prove it.

A look says beforehand what it is for: to find a place, or to prove that the quantile is past a threshold, or that it is
not. Only on the latter is anything bet. All such looks at a threshold make one bet, on their mean: on how far it is off
an average is taken over all that it may be. So it does not matter how many looks there were, nor how large each was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

STAKE: Final = 0.95
"""The part that is staked on the side that the first look at a threshold is to prove; the rest is on the other side."""

LIKELY: Final = 3.0
"""The first look at a threshold is likely to have this times the information at which D is off by one deviation."""

_ROUNDS: Final = 4
_NAMES: Final = ("information", "totals", "first", "side")


def averaged(total: Float64, information: Float64, prior: Float64) -> Float64:
    """Return the logarithm of what a bet on a mean below 0 multiplies, in the average over how far it is below.

    Args:
        total: the mean times the information.
        information: of the looks.
        prior: one over the square of how far it is likely off: as much information as counts for 0.

    >>> averaged(np.array([-6.0, 6.0]), np.array([4.0]), np.array([1.0])).round(2).tolist()
    [3.48, -2.13]
    """
    from scipy.special import log_ndtr

    both = information + prior
    far = total / np.sqrt(both)
    return np.asarray(np.log(2.0) + np.log(prior / both) / 2 + far**2 / 2 + log_ndtr(-far))


def needed(wins: Float64, off: Float64, prior: Float64) -> Float64:
    """Return about the information at which looks whose mean is off by so much have won this, as a logarithm.

    >>> found = needed(np.array([3.0]), np.array([2.0]), np.array([4.0]))
    >>> averaged(-2.0 * found, found, np.array([4.0])).round(2).tolist()
    [2.83]
    """
    wins = np.maximum(wins, 0.02)
    with np.errstate(divide="ignore", over="ignore"):
        found: Float64 = np.asarray(2 * wins / off**2)
        for _ in range(_ROUNDS):
            alone = np.maximum(wins - np.log(2.0) + np.log1p(found / prior) / 2, 0.02)
            found = np.asarray(2 * alone * (1 + prior / found) / off**2)
    return found


def of_stake(there: Float64, stake: Float64) -> Float64:
    """Return the logarithm by which a stake has to be multiplied so that this is there; 0 where it is there already.

    >>> of_stake(np.array([0.0, 1.0]), np.array([0.5, 0.5])).round(2).tolist()
    [0.0, 1.49]
    """
    return np.asarray(np.log1p(np.maximum(np.expm1(np.clip(there, 0.0, 500.0)), 0.0) / stake))


@dataclass(slots=True, eq=False)
class ValueBets:
    """What was bet on at thresholds: one row a place, in the order of `quantile_bets.Places`, one column a group.

    Attributes:
        information: on D, of the looks that are to prove a side.
        totals: the mean of D times it.
        first: the information of the first one; 0 for none.
        side: 1 where the first one is to prove that the quantile is past the threshold, -1 that it is not.
    """

    information: Float64
    totals: Float64
    first: Float64
    side: Float64

    @classmethod
    def none(cls, groups: int) -> ValueBets:
        """Return no places.

        >>> ValueBets.none(2).first.shape
        (0, 2)
        """
        return cls(*(np.zeros((0, groups)) for _ in _NAMES))

    def grow(self, places: int) -> None:
        """Make room for so many places."""
        more = np.zeros((max(places - len(self.first), 0), self.first.shape[1]))
        if len(more):
            for name in _NAMES:
                setattr(self, name, np.vstack([getattr(self, name), more]))

    def add(self, row: Int64, at: Int64, side: Int64, seen: tuple[Float64, Float64]) -> tuple[Float64, Float64]:
        """Add looks of groups at these rows, each to prove a side; return what was won by both bets there so far.

        Guarantee: where the quantile is not past the threshold, the mean of the first is at most 1, at any time; where
            it is past it, that of the second is. (Both are returned as logarithms.)
        Proof: docs/proofs/accuracy.quantile_bisection.md, "By value".
        Assumes: each look has independent Gaussian noise of at most the variance that its information tells; how large
            it is, where, and what it is for were named before it.
        Rounds: nothing; float64.
        """
        mean, information = seen
        self.grow(int(row.max(initial=-1)) + 1)
        new = self.first[row, at] == 0
        self.first[row, at] = np.where(new, information, self.first[row, at])
        self.side[row, at] = np.where(new, side, self.side[row, at])
        self.information[row, at] += information
        self.totals[row, at] += information * mean
        total, held, prior = self.totals[row, at], self.information[row, at], self.first[row, at] / LIKELY
        past = np.where(self.side[row, at] > 0, STAKE, 1 - STAKE)
        return _staked(past, averaged(total, held, prior)), _staked(1 - past, averaged(-total, held, prior))


def _staked(stake: Float64, won: Float64) -> Float64:
    """Return the logarithm of what is there where a part was staked."""
    return np.asarray(np.logaddexp(np.log1p(-stake), np.log(stake) + won))
