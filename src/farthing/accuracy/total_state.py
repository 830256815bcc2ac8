"""What was released of groups and their totals, and what measurements add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.joint_prices import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class TotalState:
    """What was released of groups and their totals: public, and enough to go on from.

    Attributes:
        own, total: float64[2, groups], the values of each group and of its total: of the pilot, and of the claim.
        grains, shared: int64[2, groups], what members of a group paid for the two.
        repairs: int64[groups], how often a claim about a group's total fell short, and was made part of the pilot.
    """

    own: Floats
    total: Floats
    grains: Ints
    shared: Ints
    repairs: Ints

    @classmethod
    def nothing(cls, groups: int) -> TotalState:
        """Return the state before any measurement.

        >>> TotalState.nothing(2).paid.tolist()
        [0, 0]
        """
        numbers, whole = np.zeros((2, groups)), np.zeros((2, groups), np.int64)
        return cls(numbers, numbers, whole, whole, np.zeros(groups, np.int64))

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray((self.grains + self.shared).sum(axis=0), dtype=np.int64)

    @property
    def known(self) -> TotalState:
        """The same, with what was claimed as part of the pilot, and nothing claimed."""
        none = np.zeros_like(self.repairs)
        pairs = ((self.own, self.grains), (self.total, self.shared))
        own, total = (np.array([_mean(values, grains), none]) for values, grains in pairs)
        grains, shared = (np.array([paid.sum(axis=0), none]) for paid in (self.grains, self.shared))
        return TotalState(own, total, grains, shared, self.repairs + 1)

    def where(self, chosen: Flags, other: TotalState) -> TotalState:
        """Return the state of some groups, and another for the rest."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return TotalState(*(np.where(chosen, mine, theirs) for mine, theirs in pairs))


def measured(
    state: TotalState, lane: int, grains: Ints, shared: Ints, measure: Callable[[Ints, Ints], tuple[Floats, Floats]]
) -> TotalState:
    """Return the state with more measurements in one lane, averaged with what it held."""
    if not (grains.any() or shared.any()):
        return state
    own, total = measure(grains, shared)
    now = TotalState(state.own.copy(), state.total.copy(), state.grains.copy(), state.shared.copy(), state.repairs)
    for values, held, fresh, more in ((now.own, now.grains, own, grains), (now.total, now.shared, total, shared)):
        values[lane] = _mean(np.array([values[lane], fresh]), np.array([held[lane], more]))
        held[lane] += more
    return now


def _mean(values: Floats, grains: Ints) -> Floats:
    """Return the mean of two measurements, float64[2, n], weighted by their grains; 0 where there are none."""
    return np.asarray((values * grains).sum(axis=0) / np.maximum(grains.sum(axis=0, dtype=np.float64), 1.0))
