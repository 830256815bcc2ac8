"""The least loss of a group's members, for a relative error that does not depend on knowing the size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBudget
from farthing.limits import checks
from farthing.limits.divergence import STEPS, amounts, apart
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp
from farthing.privacy.numbers import within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss

    Float64 = NDArray[np.float64]

_MOST: Final = 128.0  # no bound is above it: beyond, two data sets are told apart as far as floats can say
_HALVINGS: Final = 100


def group_lower_bound(
    x: ArrayLike,
    relative: float = 0.1,
    *,
    absolute: float = 0.0,
    moves: float = 1.0,
    kind: type[Loss] = Zcdp,
    delta: float | None = None,
) -> Float64:
    """Return the least loss that a member of a group of x pays to any unbiased mechanism of that error.

    The error is a root mean square: at most max(relative x, absolute) at every size x.

    Args:
        x: the sizes, any shape; above 0 unless an absolute error is named.
        relative: the error as a part of the size, in (0, 1).
        absolute: an error in units that is fine at every size; >= 0.
        moves: how much one unit can add to a group's number; 1 for counts of units.
        kind: the currency: Zcdp gives rho, Gdp mu, Pure epsilon, Approx epsilon at `delta`.
        delta: for Approx only, in (0, 1).

    Returns:
        float64 of the shape of x.

    Guarantee: no unbiased mechanism with that error at every size has a smaller group-wise loss at x.
    Proof: docs/proofs/limits.unbiased.md, sections 2 and 5.
    Assumes: unbiased at x and at the neighbouring size; neighbours add or remove one unit. For Approx: unbiased at all
        sizes from x on, at which members lose no more than at x.
    Rounds: down, so that the bound is never over-stated.

    >>> group_lower_bound([10, 100, 1000], relative=0.1)
    array([3.46573590e-01, 4.97516543e-03, 4.99975002e-05])
    >>> group_lower_bound([100], relative=0.1, kind=Approx, delta=1e-3)
    array([0.0913...])
    """
    relative = checks.relative_error(relative, absolute=absolute)
    size, step = checks.sizes(x, absolute=absolute), checks.moves(moves, "moves")
    spread = np.maximum(relative * size, absolute)
    if not issubclass(kind, Zcdp | Gdp | Pure | Approx) or (delta is None) is issubclass(kind, Approx):
        raise InvalidBudget(
            "the currency of the bound is unclear",
            rule="kind is Zcdp, Gdp or Pure without a delta, or Approx with one",
            got=f"kind={kind.__name__}, delta={delta}",
            next_step="kind=Zcdp, or kind=Approx with delta=1e-6",
        )
    if delta is not None:
        return _approximate(relative, size, absolute, step, up(within_unit(delta)))
    least = amounts(kind, 2 * (math.log(step) - np.log(spread)))
    return np.asarray(np.nextafter(np.sqrt(least), 0.0) if issubclass(kind, Gdp) else least)


def _approximate(relative: float, size: Float64, absolute: float, step: float, delta: float) -> Float64:
    """Return the least epsilon at delta for groups of `size` units; 0 where none follows.

    The best of many bounds, one for each number of units between two data sets: with deviations s and t there and
    means D apart, T is at least D^2/(2 s^2 + 2 t^2 + D^2). Where s is far below t, `_unequal` says more.
    """
    here = np.maximum(relative * size, absolute)
    least = _unequal(here, np.maximum(relative * (size + step), absolute), step, delta)
    for units in STEPS:
        moved = units * step
        there = np.maximum(relative * (size + moved), absolute)
        with np.errstate(over="ignore"):  # beyond all numbers, nothing is told apart
            part = 1 / (2 * (here / moved) ** 2 + 2 * (there / moved) ** 2 + 1)
        least = np.maximum(least, _epsilon_apart(part * checks.SHAVE, delta, units))
    return np.asarray(least)


def _epsilon_apart(part: Float64, delta: float, units: int) -> Float64:
    """Return the least epsilon with which T of data sets so many units apart reaches that part, rounded down."""
    low = np.zeros(part.shape)
    high = np.full(part.shape, _MOST / units)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = apart(middle, delta, units) < part
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return low


def _unequal(here: Float64, above: Float64, step: float, delta: float) -> Float64:
    """Return the least epsilon at delta for deviations `here` at x and `above` at x + step; 0 where none follows.

    From step <= here sqrt(sinh(e)^2 + delta) + sqrt(delta (above^2 + step^2)), rounded down.
    """
    pull = math.sqrt(delta) * np.hypot(above, step)
    over = (step - pull) / here - 2.0**-46 * (step + pull) / here  # of all roundings here
    sinh_squared = np.maximum(np.maximum(over, 0.0) ** 2 * checks.SHAVE - delta, 0.0)
    return np.asarray(np.arcsinh(np.sqrt(sinh_squared)) * checks.SHAVE)
