"""Arrays of private rows as doubles: each value by itself, whatever it is. Learners and models read rows by it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def entries(values: ArrayLike) -> NDArray[Any]:
    """Return an array; of a list, one of Python's own values: no entry decides what type the others have.

    >>> entries([1, "x"])
    array([1, 'x'], dtype=object)
    """
    return np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)


def numbers(name: str, values: ArrayLike, *, dimensions: int) -> NDArray[np.float64]:
    """Return an array of float64, NaN for each value that is not a number; refuse other shapes and types.

    Shape (but for the number of rows) and type are public; values decide nothing but themselves.

    >>> numbers("labels", [1, None, "x", "2.5"], dimensions=1).tolist()
    [1.0, nan, nan, 2.5]
    """
    rule = f"float64{'[rows, columns]' if dimensions == 2 else '[rows]'}"
    found = entries(values)
    if found.ndim != dimensions:
        way = "X[:, None] makes a table of one column" if dimensions == 2 else "y.ravel() makes a line of one column"
        raise DataError(f"{name} have {found.ndim} dimensions", rule=rule, next_step=f"{way}; rows are of one length")
    if dimensions == 2 and not found.shape[1]:
        raise DataError(f"{name} have no column", rule=rule, next_step="give at least one column")
    if found.dtype.kind in "biuf":
        return found.astype(np.float64)
    if found.dtype.kind not in "OUS":
        raise DataError(f"{name} are not numbers", rule=rule, got=found.dtype, next_step="code them as numbers")
    return np.array([_number(value) for value in found.ravel()], np.float64).reshape(found.shape)


def _number(value: Any) -> float:
    """Return a value as a double; NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
