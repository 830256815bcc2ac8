"""The least loss of a group's members, for a relative error that does not depend on knowing the size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import InvalidBudget
from farthing.limits import checks
from farthing.limits.divergence import amounts
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp
from farthing.privacy.numbers import within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss

    Float64 = NDArray[np.float64]


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
    Assumes: unbiased at x and at the neighbouring size; neighbours add or remove one unit.
    Rounds: down, so that the bound is never over-stated.

    >>> group_lower_bound([10, 100, 1000], relative=0.1)
    array([3.46573590e-01, 4.97516543e-03, 4.99975002e-05])
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
        above = np.maximum(relative * (size + step), absolute)
        return np.asarray(_approximate(spread, above, step, up(within_unit(delta))))
    least = amounts(kind, 2 * (math.log(step) - np.log(spread)))
    return np.asarray(np.nextafter(np.sqrt(least), 0.0) if issubclass(kind, Gdp) else least)


def _approximate(here: Float64, above: Float64, step: float, delta: float) -> Float64:
    """Return the least epsilon at delta for deviations `here` at x and `above` at x + step; 0 where none follows.

    From step <= here (sinh e + exp(-e) sqrt(delta)) + sqrt(delta (above^2 + step^2)), a quadratic in y = exp(e).
    """
    root = math.sqrt(delta)
    pull = root * np.hypot(above, step)
    q = (step - pull) / here
    under = q * q + 1 - 2 * root
    y_less_one = np.where((q > 0) & (under > 0), q + np.sqrt(np.maximum(under, 0.0)) - 1, 0.0)
    noise = 2.0**-46 * (1 + (step + pull) / here)  # of all roundings above
    least: Float64 = np.nextafter(np.log1p(np.maximum(y_less_one - noise, 0.0)) * checks.SHAVE, 0.0)
    return np.maximum(least, 0.0)
