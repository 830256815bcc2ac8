"""Rows as the models read them: checked, clamped to public bounds, divided by them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from farthing.errors import DataError, InvalidBounds
from farthing.mechanisms.columns import numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Float64 = np.typing.NDArray[np.float64]
Norm = Literal["l1", "l2"]

INSIDE: Final = 1 - 2.0**-40
"""Clamped rows are shrunk by this, so that no rounding of their norm takes them out of the unit ball."""

MOST_ROWS: Final = 1 << 26
"""The largest public number of rows. The statistics of 2^10 times as many still fit their 64-bit sums."""

LEAST_BOUND: Final = 2.0**-500
"""Bounds are from here to its inverse: quotients of two of them and a coefficient stay in float64."""

TAPER: Final = 2.0**-10
"""How much more than 1/N a row may move a problem: rows beyond N weigh less, and the problem's size is bounded."""


def weight(found: int, rows: int) -> float:
    """Return what each row weighs in a problem for N rows: 1/N for up to N of them, then falling to 0.

    Guarantee: with one row more, the weights of the others change by at most c/n each and its own is w, with
        c + w <= (1 + TAPER)/N; all weights together are at most 257.
    Proof: docs/proofs/models.regressions.md, "More rows than N".
    Assumes: nothing of the number of rows.
    Rounds: in float64, by less than 2^-50 of 1/N.

    >>> weight(50, 100) * 100, weight(100, 100) * 100, weight(10**6, 100)
    (1.0, 1.0, 0.0)
    """
    return min(1.0, max(0.0, 1 + TAPER - TAPER * found / rows)) / rows


@dataclass(frozen=True, slots=True)
class UnitBallFrame:
    """How rows become points of the unit ball: bounds that everybody knows, never taken from the data.

    Attributes:
        bound_x: the norm that a row of features is clamped to, > 0, in the features' units.
        bound_y: the size that a response is clamped to, > 0, in its units.
        norm: which norm of a row: "l2", or "l1", which suits the noise of a pure budget.
        intercept: whether a constant is put beside the features.

    >>> UnitBallFrame(bound_x=2.0).points([[3.0, 4.0]]).round(3).tolist()
    [[0.424, 0.566, 0.707]]
    """

    bound_x: float
    bound_y: float = 1.0
    norm: Norm = "l2"
    intercept: bool = True

    def __post_init__(self) -> None:
        positive("bound_x", self.bound_x)
        positive("bound_y", self.bound_y)
        if self.norm not in get_args(Norm):
            raise InvalidBounds("the norm is unknown", rule='"l1" or "l2"', got=repr(self.norm), next_step='norm="l2"')

    @property
    def share(self) -> float:
        """What is left of the unit ball's radius for the features beside the constant, which takes as much."""
        if not self.intercept:
            return 1.0
        return 0.5 if self.norm == "l1" else math.sqrt(0.5)

    def points(self, features: ArrayLike) -> Float64:
        """Return the rows clamped and divided by their bound, float64[rows, columns], the constant last.

        A row with a value that is not a finite number is NaN throughout: it counts nowhere.

        Raises:
            DataError: features that are not a table of numbers, by shape and type. No row decides that.

        Guarantee: each row is NaN, or within the unit ball of the norm; none depends on another.
        Proof: a row is divided by its own largest value before its norm is taken, so that nothing leaves float64.
        Assumes: nothing.
        Rounds: norms by a few units in the last place, which `INSIDE` covers.
        """
        table = numbers("features", features, dimensions=2)
        there = np.asarray(np.isfinite(table).all(axis=1))
        found = np.where(there[:, None], table, 0.0)
        largest = np.abs(found).max(axis=1)
        unit = found / np.where(largest > 0, largest, 1.0)[:, None]
        lengths = np.linalg.norm(unit, ord=1 if self.norm == "l1" else 2, axis=1)
        with np.errstate(over="ignore"):  # what overflows is beyond the bound, and clamped
            inside, within = np.asarray(largest * lengths <= self.bound_x), found / self.bound_x
        points: Float64 = np.where(inside[:, None], within, unit / np.maximum(lengths, 1.0)[:, None])
        points = np.where(there[:, None], points * (self.share * INSIDE), np.nan)
        if not self.intercept:
            return points
        return np.column_stack([points, np.full(len(points), self.share * INSIDE)])

    def responses(self, values: ArrayLike, rows: int) -> Float64:
        """Return the responses clamped and divided by their bound, float64[rows]; NaN for what is not a number."""
        found = numbers("responses", values, dimensions=1)
        same_length(found, rows)
        return np.clip(found, -self.bound_y, self.bound_y) / self.bound_y

    def coefficients(self, theta: Float64) -> tuple[Float64, float]:
        """Return a hypothesis in the units of features and responses: coefficients, and the intercept."""
        slope = theta * (self.bound_y * self.share * INSIDE)
        if not self.intercept:
            return slope / self.bound_x, 0.0
        return slope[:-1] / self.bound_x, float(slope[-1])


def signs(labels: ArrayLike, rows: int) -> Float64:
    """Return labels as signs, float64[rows]: 1 is one class, 0 and -1 the other, and all else is NaN, no label.

    Each row by itself: whether the other class is written 0 or -1 need not be known.

    >>> signs([0, 1, 1], 3).tolist()
    [-1.0, 1.0, 1.0]
    """
    found = numbers("labels", labels, dimensions=1)
    same_length(found, rows)
    return np.where(np.isin(found, (-1.0, 0.0, 1.0)), np.where(found > 0, 1.0, -1.0), np.nan)


def together(points: Float64, values: Float64) -> tuple[Float64, Float64]:
    """Return the rows that have both a point and a value: the others are left out, each by itself."""
    there = np.isfinite(points).all(axis=1) & np.isfinite(values)
    return points[there], values[there]


def same_length(found: Float64, rows: int) -> None:
    """Refuse columns of different lengths."""
    if len(found) != rows:
        raise DataError(
            "features and responses differ in length",
            rule="one response or label for each row",
            next_step="take both from one table",
        )


def positive(name: str, value: Any) -> float:
    """Return a number > 0 by which float64 can be divided and multiplied; refuse others."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not LEAST_BOUND <= value <= 1 / LEAST_BOUND:
        raise InvalidBounds(
            f"{name} is not a bound",
            rule=f"{name} is a number > 0, from 2^-500 to 2^500",
            got=repr(value)[:80],
            next_step=f"{name}=1.0, say; measure in other units",
        )
    return float(value)
