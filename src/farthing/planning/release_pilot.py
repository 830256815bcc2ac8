"""Relative targets of tables: a coarse pilot tells how large the cells of each table are, and nothing else.

What is measured for the answer gets its precision from the pilot alone, never from what it measures itself. So its
errors are normal whatever the pilot said, and intervals hold as often as those of a target that was fixed beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.residuals import put_together, residual_table
from farthing.planning.release import ReleaseDesign, design_for
from farthing.planning.release_shaped import ShapedDesign, ShapeProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from farthing.limits.tables import Residuals
    from farthing.mechanisms.gaussian import Coin
    from farthing.planning.release_plan import Goal

    Float64 = NDArray[np.float64]
    Contrasts = Mapping[tuple[int, ...], Float64]

MOST: Final = 64
"""The pilot costs at most one part in so many of what every cell at the absolute target costs."""

ENOUGH: Final = 6
"""It is enough once it has cost one part in so many of what it says is needed."""

STEP: Final = 4
"""Each look of it costs so many times as much as all before."""

USEFUL: Final = 0.9
"""A finer pilot takes one look more, where it says that so much of the absolute target's price is enough."""

_FIRST: Final = 4.0**10
_SEEN: Final = 2.0
"""Cells of fewer such deviations are taken for empty, where it is asked how many members there are."""

SURE: Final = 3.0
"""Cells are taken for as small as the pilot's value less so many standard deviations."""


def next_look(total: float, most: float, needed: Callable[[], int]) -> float | None:
    """Return what a pilot is to have cost after its next look, in grains; None where it has told enough.

    Args:
        total: what it has cost so far.
        most: what it may cost.
        needed: returns what the answer takes, by what the pilot told.

    >>> next_look(0, 2.0**30, lambda: 0), next_look(4, 100, lambda: 25), next_look(4, 100, lambda: 24)
    (1024.0, 16, None)
    """
    if total >= most or (total > 0 and total * ENOUGH >= needed()):
        return None
    return min(most, max(total * STEP, most / _FIRST))


@dataclass(frozen=True, eq=False)
class Pilot:
    """What a pilot is allowed, and what it has told so far.

    Attributes:
        basis: the residuals of the workload.
        coin: how information turns into loss.
        goal: the relative and the absolute target.
        reach: the most rows that one unit adds.
        held: float64[subsets], the grains that were measured for answers before.
        finer: whether it goes on where that lowers the price: noise by cell follows from it.
    """

    basis: Residuals
    coin: Coin
    goal: Goal
    reach: int
    held: Float64
    finer: bool = False

    def floor(self, held: Float64 | None = None) -> ReleaseDesign:
        """Return the design that has every cell within the absolute target, on top of what is held; by default of all.

        Args:
            held: float64[subsets], or None for what is held.
        """
        return design_for(self.basis, self.coin, self.goal, self.held if held is None else held, self.reach)

    @property
    def nothing(self) -> Float64:
        """float64[subsets], no grains."""
        return np.zeros_like(self.held)

    @property
    def most(self) -> Float64:
        """float64[subsets], what the pilot costs at most."""
        return self.level(self.floor(self.nothing).total / MOST)

    def level(self, grains: float) -> Float64:
        """Return float64[subsets], the grains of a pilot that costs about so much in all."""
        return np.ceil(self.basis.least_largest()[0] * grains)

    def next(self, paid: Float64, contrasts: Contrasts) -> Float64 | None:
        """Return the grains of the next look of the pilot, None where it has told enough.

        Args:
            paid: float64[subsets], what it has cost so far.
            contrasts: what it told, where anything was measured.
        """
        most, total = self.most, float(paid.sum())
        if total >= most.sum():
            every = self.floor(self.nothing).total
            more = self.level(every / MOST * STEP)
            useful = self.finer and self.design(paid, contrasts, self.nothing).total <= USEFUL * every
            return np.maximum(paid, more) if useful and total < more.sum() else None
        wanted = next_look(total, float(most.sum()), lambda: self.design(paid, contrasts, self.nothing).total)
        if wanted is None:
            return None
        return np.maximum(paid, most if wanted >= most.sum() else self.level(wanted))

    def aimed(self, paid: Float64, contrasts: Contrasts) -> Residuals:
        """Return the basis with weights by which the absolute target means each table's own: that of its least cell."""
        assert self.goal.absolute is not None  # noqa: S101  # a relative target has a floor
        variances = ReleaseDesign(self.basis, self.reach, paid).variances
        residuals = {subset: residual_table(mean) for subset, mean in contrasts.items()}
        sizes, weights = dict(enumerate(self.basis.sizes)), []
        for table, variance, weight in zip(self.basis.tables, variances, self.basis.weights, strict=True):
            least = float(abs(put_together(table, sizes, residuals)).min()) - SURE * float(np.sqrt(variance))
            wide = max(self.goal.relative * least, self.goal.absolute)
            weights.append(weight * self.goal.absolute / wide)
        return replace(self.basis, weights=tuple(weights))

    def shaped(self, paid: Float64, contrasts: Contrasts, most: int) -> ShapedDesign | None:
        """Return the design whose noise differs by cell, going by the pilot; None where a unit would pay above `most`.

        Args:
            paid: float64[subsets], what the pilot has cost.
            contrasts: what it told.
            most: grains.
        """
        return self.program(paid, contrasts).best(most)

    def program(self, paid: Float64, contrasts: Contrasts) -> ShapeProgram:
        """Return what noise by cell is chosen from: about how large cells are, and how roughly each may be known."""
        assert self.goal.absolute is not None  # noqa: S101  # a relative target has a floor
        told = ReleaseDesign(self.basis, self.reach, paid)
        residuals = {subset: residual_table(mean) for subset, mean in contrasts.items()}
        sizes, widest, counts, deviations = dict(enumerate(self.basis.sizes)), [], {}, {}
        for table, variance, weight in zip(self.basis.tables, told.variances, self.basis.weights, strict=True):
            least = abs(put_together(table, sizes, residuals)) - SURE * float(np.sqrt(variance))
            wide = np.maximum(self.goal.relative * least, self.goal.absolute)
            widest.append((wide / weight / self.goal.critical) ** 2)
        for subset in self.basis.subsets:
            seen = put_together(subset, sizes, residuals)
            deviations[subset] = math.sqrt(told.variance_of(subset))
            counts[subset] = np.where(seen > _SEEN * deviations[subset], seen, 0.0)
        return ShapeProgram(self.basis, self.reach, counts, tuple(widest), deviations)

    def design(self, paid: Float64, contrasts: Contrasts, held: Float64 | None = None) -> ReleaseDesign:
        """Return the cheapest design that has every cell within its own target, going by the pilot.

        Guarantee: its grains depend on the pilot and not on any answer, and are at most the floor's in all.
        Proof: docs/proofs/planning.release_pilot.md.
        Assumes: `contrasts` are the pilot's alone.
        Rounds: grains up.

        Args:
            paid: float64[subsets], what the pilot has cost.
            contrasts: what it told.
            held: float64[subsets] on top of which it is; None for what is held.
        """
        held = self.held if held is None else held
        made = design_for(self.aimed(paid, contrasts), self.coin, self.goal, held, self.reach)
        every = self.floor(held)
        return ReleaseDesign(self.basis, self.reach, made.grains if made.total < every.total else every.grains)
