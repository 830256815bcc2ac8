"""A straight line through what was seen of ranks near a quantile: where they may be right, which nothing promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

BENT: Final = 0.2
"""A rank that seems to be off by so many rows may be beside the line by this part of them."""


@dataclass(slots=True, eq=False)
class Line:
    """Sums over what was seen, each weighed by how sure it is; one entry a quantile and group.

    Attributes:
        weight, place, square, off, product: of 1, the place, its square, how far off it is, and the product of both.
    """

    weight: Float64
    place: Float64
    square: Float64
    off: Float64
    product: Float64

    @classmethod
    def of(cls, many: int) -> Line:
        """Return lines through nothing.

        >>> line = Line.of(1)
        >>> for place, off in ((10, -3.0), (20, 1.0)):
        ...     line.add(np.array([0]), np.array([place]), np.array([off]), np.array([1e6]))
        >>> 16 < line.root(np.array([0]))[0] < 18
        np.True_
        """
        return cls(*(np.zeros(many) for _ in range(5)))

    def add(self, at: Int64, place: Int64, off: Float64, information: Float64) -> None:
        """Add what was seen of entries at places."""
        weight = 1 / (1 / information + (BENT * off) ** 2)
        x = place.astype(np.float64)
        for total, one in (
            (self.weight, 1.0), (self.place, x), (self.square, x * x), (self.off, off), (self.product, x * off)
        ):  # fmt: skip
            total[at] += weight * one

    def forget(self, at: Int64) -> None:
        """Begin again with lines through nothing."""
        for total in (self.weight, self.place, self.square, self.off, self.product):
            total[at] = 0.0

    def root(self, at: Int64) -> Float64:
        """Return the places where the lines of entries say that the rank is right; where they fall, the mean place."""
        weight = np.maximum(self.weight[at], 1e-300)
        x, y = self.place[at] / weight, self.off[at] / weight
        spread = self.square[at] / weight - x * x
        joint = self.product[at] / weight - x * y
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(joint > 0, x - y * spread / joint, x))
