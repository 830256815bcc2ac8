"""Rows as the models read them: checked, clamped to public bounds, divided by them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from farthing.errors import DataError, InvalidBounds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Float64 = np.typing.NDArray[np.float64]
Norm = Literal["l1", "l2"]

INSIDE: Final = 1 - 2.0**-40
"""Clamped rows are shrunk by this, so that no rounding of their norm takes them out of the unit ball."""

MOST_ROWS: Final = 1 << 26
"""More rows than this would not fit the 64-bit sums on the grid of the statistics."""


@dataclass(frozen=True, slots=True)
class Frame:
    """How rows become points of the unit ball: bounds that everybody knows, never taken from the data.

    Attributes:
        bound_x: the norm that a row of features is clamped to, > 0, in the features' units.
        bound_y: the size that a response is clamped to, > 0, in its units.
        norm: which norm of a row: "l2", or "l1", which suits the noise of a pure budget.
        intercept: whether a constant is put beside the features.

    >>> Frame(bound_x=2.0).points([[3.0, 4.0]]).round(3).tolist()
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
            raise InvalidBounds("no such norm", rule='"l1" or "l2"', got=repr(self.norm), next_step='norm="l2"')

    @property
    def share(self) -> float:
        """What is left of the unit ball's radius for the features beside the constant, which takes as much."""
        if not self.intercept:
            return 1.0
        return 0.5 if self.norm == "l1" else math.sqrt(0.5)

    def points(self, features: ArrayLike) -> Float64:
        """Return the rows clamped and divided by their bound, float64[rows, columns], the constant last.

        Raises:
            DataError: features that are no table of finite numbers. The error tells no row.
        """
        table = numbers("features", features, dimensions=2)
        lengths = np.linalg.norm(table, ord=1 if self.norm == "l1" else 2, axis=1)
        kept = np.minimum(1.0, self.bound_x / np.maximum(lengths, np.finfo(np.float64).tiny))
        points: Float64 = table * (kept * (self.share * INSIDE / self.bound_x))[:, None]
        if not self.intercept:
            return points
        return np.column_stack([points, np.full(len(points), self.share * INSIDE)])

    def responses(self, values: ArrayLike, rows: int) -> Float64:
        """Return the responses clamped and divided by their bound, float64[rows]."""
        found = numbers("responses", values, dimensions=1)
        same_length(found, rows)
        return np.clip(found / self.bound_y, -1.0, 1.0)

    def coefficients(self, theta: Float64) -> tuple[Float64, float]:
        """Return a hypothesis in the units of features and responses: coefficients, and the intercept."""
        slope = theta * (self.bound_y * self.share * INSIDE)
        if not self.intercept:
            return slope / self.bound_x, 0.0
        return slope[:-1] / self.bound_x, float(slope[-1])


def signs(labels: ArrayLike, rows: int) -> Float64:
    """Return labels 0 and 1, or -1 and 1, as signs, float64[rows]; nothing else is a label.

    >>> signs([0, 1, 1], 3).tolist()
    [-1.0, 1.0, 1.0]
    """
    found = numbers("labels", labels, dimensions=1)
    same_length(found, rows)
    halves, whole = np.isin(found, (0.0, 1.0)).all(), np.isin(found, (-1.0, 1.0)).all()
    if not (halves or whole):
        raise DataError(
            "labels must be 0 and 1, or -1 and 1",
            rule="two classes, coded as numbers or bool",
            next_step="code one class as 1 and the other as 0: y == 'late', say",
        )
    return np.where(found > 0, 1.0, -1.0)


def numbers(name: str, values: ArrayLike, *, dimensions: int) -> Float64:
    """Return an array of finite float64; refuse others, without a word about any row."""
    rule = f"float64{'[rows, columns]' if dimensions == 2 else '[rows]'} with at least one row, without NaN"
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} are no numbers", rule=rule, next_step="code words as numbers, in equal rows") from None
    if found.ndim != dimensions:
        way = "X[:, None] makes a table of one column" if dimensions == 2 else "y.ravel() makes a line of one column"
        raise DataError(f"{name} have {found.ndim} dimensions", rule=rule, next_step=way)
    if not found.size:
        raise DataError(f"{name} are empty", rule=rule, next_step="give at least one row, of at least one column")
    if not np.isfinite(found).all():
        raise DataError(f"{name} are not all finite", rule=rule, next_step="drop or fill what is missing")
    if len(found) > MOST_ROWS:
        raise DataError("too many rows", rule=f"at most {MOST_ROWS} rows", next_step="fit on a part of the rows")
    return found


def same_length(found: Float64, rows: int) -> None:
    """Refuse columns of different lengths."""
    if len(found) != rows:
        raise DataError(
            "features and responses differ in length",
            rule="one response or label for each row",
            next_step="take both from one table",
        )


def positive(name: str, value: Any) -> float:
    """Return a finite number > 0; refuse others."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not math.isfinite(value) or value <= 0:
        raise InvalidBounds(
            f"{name} is no bound", rule=f"{name} is a finite number > 0", got=repr(value), next_step=f"{name}=1.0, say"
        )
    return float(value)
