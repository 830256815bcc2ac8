"""What may be a workload, an ellipsoid, a list of sizes or of deviations: arrays of finite numbers, or a refusal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption, InvalidTarget

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]

LARGEST_ENTRY: Final = 1e100
"""Entries beyond it, or all of them below its inverse, would overflow when squared."""

SHAVE: Final = 1 - 2.0**-40
"""Takes more off a value than some thousand roundings of float64 can have put on."""


def matrix(values: ArrayLike, name: str) -> Float64:
    """Return a matrix as float64[rows, columns]; refuse what is not finite, and what is empty.

    >>> matrix([[1, 2], [3, 4]], "W").shape
    (2, 2)
    """
    array = _numbers(values, name)
    rule = f"{name} is a matrix: two dimensions, none of them empty"
    if array.ndim != 2 or array.size == 0:
        raise InvalidOption(
            f"{name} is not a matrix",
            rule=rule,
            got=f"shape {array.shape}",
            next_step=f"write {name} as a list of rows",
        )
    largest = float(np.abs(array).max())
    if largest > LARGEST_ENTRY or 0 < largest < 1 / LARGEST_ENTRY:
        raise InvalidOption(
            f"{name} is out of range",
            rule=f"the largest entry of {name} is 0, or from {1 / LARGEST_ENTRY:g} to {LARGEST_ENTRY:g} in size",
            got=largest,
            next_step="choose another unit of measurement",
        )
    return array


def positive(values: ArrayLike, name: str) -> Float64:
    """Return numbers above 0 as float64, any shape; refuse others, and an empty list."""
    array = _numbers(values, name)
    wrong = array[~(array > 0)] if array.size else np.array(["nothing"])
    if wrong.size:
        raise InvalidOption(
            f"{name} must be above 0", rule=f"every entry of {name} > 0", got=wrong.flat[0], next_step="leave it out"
        )
    return array


def sizes(values: ArrayLike, *, absolute: float) -> Float64:
    """Return group sizes as float64; refuse what has no error to speak of, and say why."""
    array = _numbers(values, "sizes")
    if array.size == 0 or not bool((array >= 0).all()):
        raise InvalidTarget(
            "a group's size is a number of units",
            rule="every size >= 0, at least one size",
            got="nothing" if array.size == 0 else array.min(),
            next_step="leave negative and missing sizes out",
        )
    if not absolute and not bool((array > 0).all()):
        raise InvalidTarget(
            "an empty group has no relative error",
            rule="a relative error of 0 units means no noise at all, which no finite loss allows",
            got=0,
            next_step="leave empty groups out, or name the error that is fine for small groups: absolute=5",
        )
    return array


def relative_error(value: float, *, absolute: float) -> float:
    """Return a relative error strictly between 0 and 1, beside an absolute one that is 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise InvalidTarget(
            "the relative error is out of range", rule="0 < relative < 1", got=value, next_step="0.1 means 10 %"
        )
    if isinstance(absolute, bool) or not isinstance(absolute, int | float) or not 0 <= absolute < math.inf:
        raise InvalidTarget(
            "the absolute error is out of range",
            rule="absolute is a finite number >= 0",
            got=absolute,
            next_step="absolute=5 means: five units off is fine for small groups",
        )
    return float(value)


def whole(value: int, name: str) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidOption(
            f"{name} is not a whole number", rule=f"{name} is a whole number >= 1", got=value, next_step=f"try {name}=1"
        )
    return int(value)


def moves(value: float, name: str) -> float:
    """Return how far one unit moves a number: finite, above 0."""
    return float(positive([value], name)[0])


def choice(value: str, name: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    if value not in allowed:
        raise InvalidOption(
            f"unknown {name}", rule=f"{name} is {' or '.join(allowed)}", got=value, next_step=f"try {allowed[0]}"
        )
    return value


def _numbers(values: Any, name: str) -> Float64:
    """Return an array of finite float64; refuse text, missing values, complex numbers, ragged lists."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.array("rows of different lengths")
    if array.dtype.kind not in "iuf":
        raise InvalidOption(
            f"{name} is not numeric",
            rule=f"{name} holds integers or floats",
            got="rows of different lengths or types" if array.dtype.kind in "OU" else array.dtype,
            next_step="convert it with numpy.asarray(..., dtype=float)",
        )
    numbers: Float64 = np.ascontiguousarray(array, dtype=np.float64)
    if not bool(np.isfinite(numbers).all()):
        raise InvalidOption(
            f"{name} is not finite",
            rule=f"every entry of {name} is a finite number",
            got=f"{int((~np.isfinite(numbers)).sum())} infinite or missing entries",
            next_step="leave them out, or say what they are",
        )
    return numbers
