"""The numbers of an answer: what each group was told, and what it paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farthing.tabular import Lines

if TYPE_CHECKING:
    from farthing.query.rounding import Rounding

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The numbers of one column of an answer, one entry a group.

    Attributes:
        value, lower, upper: float64[groups] in answer units.
        met: bool[groups], whether the asked target was reached.
        own_estimate: float64[groups], estimates where they are others than the values; None for none.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: NDArray[np.bool_]
    own_estimate: Float64 | None = None

    @property
    def estimate(self) -> Float64:
        """float64[groups], nearly unbiased; the values where nothing better is known."""
        return self.value if self.own_estimate is None else self.own_estimate

    def rounded(self, how: Rounding | None) -> Cells:
        """Return the cells as they are shown in fewer digits, ends outward."""
        if how is None:
            return self
        value, lower, upper = how.told(self.value, self.lower, self.upper)
        own = None if self.own_estimate is None else how.rounded(self.own_estimate)
        return Cells(value, lower, upper, self.met, own)

    def keep(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> Cells:
        """Return the cells of some groups only, or of all in another order."""
        own = None if self.own_estimate is None else self.own_estimate[where]
        return Cells(self.value[where], self.lower[where], self.upper[where], self.met[where], own)


@dataclass(frozen=True, slots=True, eq=False)
class GroupLoss(Lines):
    """What an ask costs the members of each group: as it was promised, and as it was paid.

    Attributes:
        strict: float64[groups], promised before anything was drawn. With `mechanism=`, each group's own value of the
            policy, at its released size; otherwise the worst price, the same for all.
        ex_post: float64[groups], what each group's members paid, given what was drawn; zero for an answer that was
            there already.
        parameter: what both are: "mu", "rho" or "epsilon".
        by_size: whether `strict` is a policy's.
    """

    strict: Float64
    ex_post: Float64
    parameter: str
    by_size: bool

    def __str__(self) -> str:
        strict, paid = (_span(self.parameter, column) for column in (self.strict, self.ex_post))
        if self.by_size:
            return (
                f"strict: {strict}, each group's own, by the policy at its released size (the true size is not told); "
                f"ex post: {paid}, since nothing was decided by what was drawn"
            )
        return (
            f"strict: {strict}, the worst price, promised to everybody before anything was drawn; "
            f"ex post: {paid}, what each group's members paid for what was drawn"
        )


def _span(parameter: str, column: Float64) -> str:
    """Return the least and the greatest of some losses."""
    low, high = float(column.min(initial=np.inf)), float(column.max(initial=0.0))
    return f"{parameter} {high:.4g}" if low >= high else f"{parameter} from {low:.4g} to {high:.4g}"
