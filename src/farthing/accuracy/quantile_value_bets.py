"""Bets on which side of a threshold a quantile lies, on the looks that are taken to prove it.

A look says beforehand what it is for: to find a place, or to prove that the quantile is past a threshold, or that it is
not. Only on the latter is anything bet, as much as is best where D is as far off as was thought beforehand; and no bet
wins more than what is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_bets import STAKE, partly, wholly, won_at_most

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bets import Ladder

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

_NAMES: Final = ("information", "past", "before")


class Bet(NamedTuple):
    """How much is bet on looks: one entry a group, known before each look.

    Attributes:
        rate: how far D is to be off, in rows, for the bet to be the best one.
        needs: the logarithm of what is needed at the threshold, of all that was won there.
        surely: the variance of the noise, times the information, is no less than this.
    """

    rate: Float64
    needs: Float64
    surely: Float64


@dataclass(slots=True, eq=False)
class ValueBets:
    """What was bet on at thresholds: one row a place, in the order of `quantile_bets.Places`, one column a group.

    Attributes:
        information: on D, of the looks that are to prove a side.
        past: log of what a stake on the claim that the quantile is past the threshold has become.
        before: the same of the claim that it is not.
    """

    information: Float64
    past: Float64
    before: Float64

    @classmethod
    def none(cls, groups: int) -> ValueBets:
        """Return no places.

        >>> ValueBets.none(2).past.shape
        (0, 2)
        """
        return cls(*(np.zeros((0, groups)) for _ in _NAMES))

    def grow(self, places: int) -> None:
        """Make room for so many places."""
        more = np.zeros((max(places - len(self.past), 0), self.past.shape[1]))
        if len(more):
            for name in _NAMES:
                setattr(self, name, np.vstack([getattr(self, name), more]))

    def add(
        self, row: Int64, at: Int64, side: Int64, seen: tuple[Float64, Float64], bet: Bet
    ) -> tuple[Float64, Float64]:
        """Add looks of groups at these rows, each to prove a side; return what was won by both bets there so far.

        Guarantee: where the quantile is not past the threshold, the mean of the first is at most 1, at any time; where
            it is past it, that of the second is. (Both are returned as logarithms.)
        Proof: docs/proofs/accuracy.quantile_bisection.md, "By value".
        Assumes: each look has independent Gaussian noise of at most the variance that its information tells; how large
            it is, where, what it is for and how much is bet on it were named before it.
        Rounds: nothing; float64.
        """
        mean, information = seen
        self.grow(int(row.max(initial=-1)) + 1)
        self.information[row, at] += information
        for held, mine in ((self.past, 1), (self.before, -1)):
            some = np.flatnonzero(side == mine)
            here, group = row[some], at[some]
            most = np.maximum(wholly(STAKE, bet.needs[some]) - held[here, group], 0.0)
            rate = np.where(most > 0, bet.rate[some], 0.0)
            held[here, group] += won_at_most(most, mine * mean[some], information[some], rate, bet.surely[some])
        return partly(STAKE, self.past[row, at]), partly(STAKE, self.before[row, at])


def still_inside(ladder: Ladder, low: Int64, high: Int64) -> tuple[Float64, Float64]:
    """Return what was won, at the least, that the quantile is among none of the leaves that are still in the range.

    Args:
        ladder: the places, and what was won there.
        low: int64[groups], the last threshold that the quantile is past.
        high: int64[groups], the first that it is not past.

    Returns:
        float64[places + 1, groups] twice, the logarithms: of all leaves up to each place, and, first at the lowest, of
        all from each place on.
    """
    most = np.iinfo(np.int64).max
    thresholds = np.where(ladder.seen, ladder.thresholds, most)
    end = np.full((1, len(low)), most)
    past = np.where(np.vstack([thresholds, end]) <= low, np.inf, ladder.outside)
    before = np.where(np.vstack([-end, thresholds]) >= high, np.inf, ladder.outside)
    return np.minimum.accumulate(past, axis=0), np.minimum.accumulate(before[::-1], axis=0)[::-1]
