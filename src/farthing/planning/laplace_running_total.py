"""Plans of running totals under a pure budget: all groups are measured alike, once, and added up."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.target import Target
from farthing.errors import InvalidTarget
from farthing.mechanisms.laplace import MOST_FARTHINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.joint_prices import Floats
    from farthing.accuracy.running_sums import RunningSums
    from farthing.planning.laplace_count import Grid, LaplaceCountPricing
    from farthing.privacy.loss import Booked

    Ints = NDArray[np.int64]

_APART: Final = 1.02  # sums of about as many groups are told as surely as the largest of them


@dataclass(frozen=True, slots=True)
class LaplaceRunningTotalPricing:
    """One look at all groups, as fine as their largest sum needs.

    Attributes:
        cells: how the groups are measured.
        sums: which groups are added up for each number.
        factor: what is told is multiplied by it.
        beta: the failure probability of each number.
    """

    cells: LaplaceCountPricing
    sums: RunningSums
    factor: float
    beta: float

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (f"{self.cells.asked} of all groups with two-sided geometric noise, once; what they add up to is told",)

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early: all are measured alike."""
        return False

    def price(self, size: float) -> Booked:
        """Return about what the members of a group would pay."""
        return self.cells.price(size)

    def width(self, size: float) -> float:  # noqa: ARG002  # the noise does not depend on it
        """Return the half-width of the largest sum."""
        return self.widest(int(self.cells.schedule.looks[-1]))

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that this loss would reach for every sum; infinite if none."""
        level = min(remaining.farthings // len(self.cells.top), MOST_FARTHINGS)
        return self.widest(level) if level >= self.cells.grid.least else math.inf

    def widest(self, level: int) -> float:
        """Return the half-width of the largest sum, where each group is measured at a level."""
        return self.factor * self.cells.grid.half_width(level, self.beta)


def largest(sums: RunningSums) -> int:
    """Return how many groups the largest sum has, rounded up as `half_widths` does."""
    return _rounded(int(_powers(sums.many).max()))


def half_widths(many: Floats, grid: Grid, level: int, beta: float) -> Floats:
    """Return the half-widths of sums of so many groups, float64[sums], each group measured at one level.

    Guarantee: each sum misses its truth by more with probability beta at most.
    Proof: docs/proofs/session.answering.reuse.md: Chernoff's bound on independent two-sided geometric noise, which
        grows with the number of groups: one that is rounded up is on the safe side. The noise is a whole number of
        steps, so that a bound is as good as the whole number below it.
    Assumes: the level was fixed before anything of these groups was seen.
    Rounds: the number of groups up; then the bound down to whole steps, which loses nothing.
    """
    powers = _powers(many)
    found = {int(power): _half_width(_rounded(int(power)), grid, level, beta) for power in np.unique(powers)}
    return np.array([found[int(power)] for power in powers])


def _powers(many: Floats) -> Ints:
    """Return the powers of 1.02 that so many groups are rounded up to, int64[sums]."""
    return np.asarray(np.ceil(np.log(many) / math.log(_APART) - 1e-9), np.int64)


def _rounded(power: int) -> int:
    """Return 1.02^power groups, rounded up."""
    return 1 if power <= 0 else math.ceil(_APART**power * (1 + 1e-9))


@lru_cache(maxsize=4096)
def _half_width(many: int, grid: Grid, level: int, beta: float) -> float:
    """Return the half-width of a sum of so many groups."""
    return replace(grid, many=many).half_width(level, beta)


def target_of_largest(target: Target, factor: float) -> Target:
    """Return the target of the largest sum, before it is multiplied by a factor: the distance alone.

    Raises:
        InvalidTarget: the target is relative alone: what the groups hold would choose how they are measured.
    """
    if target.absolute <= 0:
        raise InvalidTarget(
            "a relative target of a total over groups under a pure budget",
            rule="all groups are measured alike, at a level that is fixed beforehand",
            got=str(target),
            next_step="name a distance, too: absolute=100 counts rows",
        )
    return Target(0.0, target.absolute / factor, target.confidence)
