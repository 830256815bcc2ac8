"""What is added up of the groups of a total, in an order: each group with those before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Floats, Ints


@dataclass(frozen=True, slots=True)
class RunningSums:
    """Running sums within totals.

    Attributes:
        order: int64[groups], the groups, those of a total beside each other, in the order in which they are added up.
        first: int64[groups], for each group the place in that order where its total begins.
        last: int64[groups], for each group the place of the last one that is added up: its own, or that of its last
            equal.
    """

    order: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, places: Ints, ranks: Ints) -> RunningSums:
        """Return the sums of groups in the order of their ranks; groups of equal rank are added up together.

        Args:
            places: int64[groups], which total each group is part of.
            ranks: int64[groups], the order within it.

        >>> sums = RunningSums.of(np.array([0, 1, 0, 0]), np.array([2, 1, 1, 2]))
        >>> sums.summed(np.array([1.0, 5.0, 2.0, 4.0])).tolist()
        [7.0, 5.0, 2.0, 7.0]
        """
        order = np.lexsort((ranks, places)).astype(np.int64)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        ends = np.stack([places, ranks])[:, order]
        new = np.concatenate([[True], (ends[0, 1:] != ends[0, :-1])])
        closing = np.concatenate([(ends[:, 1:] != ends[:, :-1]).any(axis=0), [True]])
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        last = np.flatnonzero(closing)[np.cumsum(closing) - closing]
        return cls(order, first[back].astype(np.int64), last[back].astype(np.int64))

    @property
    def many(self) -> Floats:
        """How many groups are added up for each, float64[groups]."""
        return np.asarray(self.last - self.first + 1, np.float64)

    def summed(self, values: Floats) -> Floats:
        """Return the sums of values, float64[groups]."""
        before = np.concatenate([[0.0], np.cumsum(values[self.order])])
        return np.asarray(before[self.last + 1] - before[self.first])
