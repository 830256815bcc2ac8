"""What every selection shares: scores that are scores, the rate that a price buys, prices in the ledger's currency."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from farthing.errors import InvalidBudget, NoiseError
from farthing.noise.races import Field
from farthing.privacy.loss import BoundedRange, Gdp, Zcdp
from farthing.privacy.numbers import exact, within_unit
from farthing.privacy.residue import choices
from farthing.rounding import down

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss
    from farthing.privacy.numbers import Number

    Float64 = NDArray[np.float64]

B = TypeVar("B", bound="Loss")

LARGEST: Final = 1 << 62
"""Scores are below it in size, so that their differences fit in 64 bits."""

SMALLEST_RANGE: Final = Fraction(1, 1 << 500)


def checked_scores(scores: ArrayLike, *, at_least: int = 1, one_row: bool = False) -> NDArray[Any]:
    """Return scores as int64 or float64[..., options], or refuse them. No error tells a score."""
    table = np.asarray(scores)
    if table.dtype.kind not in "iuf" or table.dtype.itemsize > 8 or table.ndim == 0:
        raise refused("scores are an array of int64 or float64, at least one-dimensional", table.dtype)
    if one_row and table.ndim > 1:
        raise refused("one score for each option", f"{table.ndim} dimensions")
    if table.shape[-1] < at_least:
        raise refused(f"at least {at_least} option{'s' * (at_least > 1)}", table.shape[-1])
    if table.size and not (np.isfinite(table).all() and _small(table)):
        raise refused("scores are finite and below 2^62 in size", "other scores")
    return table.astype(np.float64 if table.dtype.kind == "f" else np.int64, copy=False)


def _small(table: NDArray[Any]) -> bool:
    """Tell whether all numbers are below 2^62 in size."""
    return bool(table.min() > -LARGEST and table.max() < LARGEST)


def refused(rule: str, got: object) -> NoiseError:
    """Return the refusal of scores."""
    return NoiseError("nothing to choose from", rule=rule, got=got, next_step="give one score for each option")


def priced(epsilon: Number, name: str = "epsilon") -> Fraction:
    """Return the price of a choice as an exact number, or refuse it."""
    price = exact(epsilon, name)
    if not price:
        raise InvalidBudget(f"{name} is zero", rule=f"{name} > 0", got=epsilon, next_step=f"{name}=0.5, say")
    return price


def whole(count: object, name: str, *, least: int = 1) -> int:
    """Return a count, or refuse it."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
        raise InvalidBudget(
            f"{name} is not a usable count",
            rule=f"{name} is a whole number >= {least}",
            got=repr(count),
            next_step=f"for example {name}={max(least, 10)}",
        )
    return int(count)


def spread_of(sensitivity: Number, *, monotone: bool) -> Fraction:
    """Return R, the range of the score change: how far apart the changes of two scores can be for one unit.

    >>> spread_of(3, monotone=False), spread_of(3, monotone=True)
    (Fraction(6, 1), Fraction(3, 1))
    """
    moves = exact(sensitivity, "sensitivity")
    if moves < SMALLEST_RANGE:
        raise InvalidBudget(
            "sensitivity is zero or next to it",
            rule="sensitivity > 0, at least 2^-500",
            got=sensitivity,
            next_step="scores that never move cost nothing to show",
        )
    return moves if monotone else 2 * moves


def rate_of(epsilon: Number, spread: Fraction) -> float:
    """Return epsilon/R, rounded down: standard noise added to rate * score is noise of size R/epsilon on the score."""
    return down(exact(epsilon, "epsilon") / spread)


def field_of(table: NDArray[Any], rate: float, noise: str, lift: Float64 | None = None) -> Field:
    """Return the race of rows of scores: centres rate * (score - best of the row), plus a public lift of each."""
    rows = table.reshape(-1, table.shape[-1])
    best = rows.max(axis=1, keepdims=True)
    centres = (rows - best).astype(np.float64)  # exact for integers, within 2^-53 of itself for floats
    centres *= rate
    if lift is not None:
        centres += lift

    def centre(race: int, place: int) -> Fraction:
        behind = Fraction(rows[race, place].item()) - Fraction(best[race, 0].item())
        return Fraction(rate) * behind + (0 if lift is None else Fraction(float(lift[place])))

    return Field(noise, centres, centre, 0.0 if lift is None else float(np.abs(lift).max()) * 2.0**-49)


def restated(loss: Loss, currency: type[B]) -> B:
    """Return the tightest known price of a loss in a ledger's currency.

    Guarantee: whatever has the loss has the price.
    Proof: docs/proofs/privacy.convert.md; of two true statements the smaller.
    Assumes: nothing.
    Rounds: up.

    >>> restated(BoundedRange(2), Zcdp).rho < 2**2 / 8
    True
    """
    usual = loss.to(currency)
    if currency is Zcdp and isinstance(loss, BoundedRange):
        return min(usual, loss.to(currency, route="tight"))
    return usual


def repeated(loss: BoundedRange, many: int, currency: type[B]) -> B:
    """Return the tightest known price of several choices of one bounded range, each made after those before it.

    Guarantee: the choices together have the price.
    Proof: docs/proofs/privacy.residue.md, "Several choices as one loss", in Gaussian DP; elsewhere prices add.
    Assumes: each choice is of that bounded range given the past.
    Rounds: up.

    >>> repeated(BoundedRange(1), 2, Zcdp).rho < 0.25, repeated(BoundedRange(1), 2, Gdp) < BoundedRange(1).to(Gdp) * 2
    (True, True)
    """
    if currency is Gdp:
        return cast("B", choices(loss, many, Gdp))
    return restated(loss, currency) * many


def chance(delta: Number) -> Fraction:
    """Return a delta that a mechanism may use up, or refuse it."""
    return within_unit(delta)


def require_threshold(threshold: Any) -> None:
    """Refuse what no score can be held against."""
    usable = isinstance(threshold, int | float | Fraction) and not isinstance(threshold, bool)
    if not (usable and -LARGEST < threshold < LARGEST):
        raise InvalidBudget(
            "the threshold is not a usable number",
            rule="a finite number below 2^62 in size",
            got=repr(threshold),
            next_step="name the score to be passed",
        )
