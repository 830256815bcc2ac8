"""What a claim leaves to the next one, which goes on from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices, in_blocks, run_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pivot:
    """What a claim leaves to the next one; arrays with one column a group.

    Attributes:
        shape: int64[lanes, groups], the grains of one tick; 0 in lanes not in use.
        shown: float64[lanes, groups], the weighted means.
        clock: float64[groups], C; 0 where nothing was claimed.
        guess: float64[lanes, groups], the lanes as the pilot told them, before anything was claimed.
        planned: float64[groups], the ticks that the claim was to come to, by the guess; 0 for an interval of a group
            that was given up beforehand, from which nothing goes on.
        base, begun: float64[lanes, groups] and float64[groups], weighted means and clock when the claim was paused:
            what came after is in its interval alone, and a later claim goes on from here. Else `shown` and `clock`.
        done: float64[groups], the part of the final variance that had been used up then; 1 where nothing was paused.
    """

    shape: Ints
    shown: Floats
    clock: Floats
    guess: Floats
    planned: Floats
    base: Floats
    begun: Floats
    done: Floats

    @classmethod
    def nothing(cls, lanes: int, groups: int) -> Pivot:
        """Return what there is before any claim."""
        rows = (lanes, groups)
        return cls(
            shape=np.zeros(rows, np.int64),
            shown=np.zeros(rows),
            clock=np.zeros(groups),
            guess=np.zeros(rows),
            planned=np.zeros(groups),
            base=np.zeros(rows),
            begun=np.zeros(groups),
            done=np.ones(groups),
        )

    @property
    def given_up(self) -> Flags:
        """bool[groups], which hold only the interval of a group that was given up: nothing goes on from it."""
        return np.asarray((self.clock > 0) & (self.planned == 0))

    def of(self, groups: Ints) -> Pivot:
        """Return that of some groups, in their order."""
        if len(groups) == len(self.clock):
            return self
        at = run_of(groups)
        return Pivot(*(getattr(self, name)[..., at] for name in self.__slots__))

    def copy(self) -> Pivot:
        """Return one with arrays of its own."""
        return Pivot(*(getattr(self, name).copy() for name in self.__slots__))

    def fill(self, groups: Ints, other: Pivot) -> None:
        """Replace some groups' in place."""
        at = run_of(groups)
        for name in self.__slots__:
            getattr(self, name)[..., at] = getattr(other, name)

    def put(self, groups: Ints, other: Pivot) -> Pivot:
        """Return the same with some groups' replaced."""
        if len(groups) == len(self.clock):
            return other

        def with_(mine: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            mine = mine.copy()
            mine[..., groups] = new
            return mine

        return Pivot(*(with_(getattr(self, name), getattr(other, name)) for name in self.__slots__))

    def only_told(self) -> Pivot:
        """Return the same as an interval from which no claim goes on: its shape was guessed from too little."""
        return replace(self, planned=np.zeros_like(self.planned))

    def intervals(self, prices: JointPrices, beta: float) -> tuple[Floats, Floats]:
        """Return the intervals that were claimed, read at this failure probability; infinite before any claim."""
        there = self.clock > 0
        variances = 1 / (np.maximum(self.shape, 1) * prices.worth * np.where(there, self.clock, 1.0) ** 2)
        low, high = in_blocks(lambda v, u: np.stack(prices.intervals(v, u, beta)), self.shown, variances)
        return np.where(there, low, -np.inf), np.where(there, high, np.inf)
