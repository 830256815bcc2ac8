"""How far apart a loss lets neighbours be, as a chi-square divergence, and back.

Every bound of this package is the one of Hammersley, Chapman and Robbins: an unbiased number that moves by D between
neighbours has a variance of at least D^2/chi^2, chi^2 being the divergence of its laws at the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBudget
from farthing.limits.checks import SHAVE
from farthing.privacy.base import ZERO
from farthing.privacy.loss import Approx, BoundedRange, Gdp, Pure, Zcdp
from farthing.rounding import down, up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.privacy.base import Loss

RULE = "the loss is Zcdp, Gdp, Pure, BoundedRange or Approx, without a delta of its own but for Approx, and above 0"

STEPS: Final = tuple(dict.fromkeys(int(1.15**power) for power in range(64)))
"""How many units apart data sets are compared under (epsilon, delta); any choice gives a valid bound."""

_CLOSE: Final = 0.5  # the most that may slip between data sets several units apart
_FAR: Final = 300.0  # the most of epsilon/2 between them


def chi_square(loss: Loss) -> float:
    """Return a bound on chi^2 between the outputs of neighbours, rounded up; inf where floats end.

    Guarantee: no mechanism of this loss has a larger chi-square divergence between neighbours, either way; for Approx:
        none of the same variance s^2 on all data has a mean that moves by more than chi s between neighbours.
    Proof: docs/proofs/limits.unbiased.md, section 1; [BunS16] for the order 2, [DongRS22] for GDP; 5 for Approx.
    Assumes: nothing else of the mechanism.
    Rounds: up.

    >>> chi_square(Zcdp(0.5)), chi_square(Pure(1))
    (1.71828..., 1.08616...)
    """
    if not loss or (loss.slack and not isinstance(loss, Approx)):
        raise _unknown(loss)
    x = up(loss.amount)
    try:
        match loss:
            case Zcdp():
                value = math.expm1(2 * x)
            case Gdp():
                value = math.expm1(x)
            case Pure():
                value = 4 * math.sinh(x / 2) ** 2
            case BoundedRange():
                value = math.sinh(x / 2) ** 2
            case Approx():
                value = _approximate(x, up(loss.slack))
            case _:
                raise _unknown(loss)
    except OverflowError:
        return math.inf
    return value / SHAVE


def _approximate(epsilon: float, delta: float) -> float:
    """Return what stands for chi^2 under (epsilon, delta), where all data sets have the same variance.

    Proof: docs/proofs/limits.unbiased.md, section 5: D^2/s^2 <= 4 T/(1 - T) at the best number of units apart.
    """
    found = []
    for units in STEPS:
        half, mass = units * epsilon / 2, float(slipped(np.array(epsilon), delta, units))
        if units > 1 and (mass > _CLOSE or half > _FAR):
            break
        odds = math.inf if mass >= 1 else mass / (1 - mass)
        found.append(4 * (math.sinh(half) ** 2 + odds * math.cosh(half) ** 2) / units**2)
    return min(found)


def slipped(epsilon: NDArray[np.float64], delta: float, units: int) -> NDArray[np.float64]:
    """Return the delta of data sets that are so many units apart, at most 1.

    >>> float(slipped(np.array(0.5), 1e-6, 2))
    2.6487...e-06
    """
    if units == 1:
        return np.full_like(epsilon, delta)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond all numbers, anything may slip
        return np.asarray(np.fmin(delta * (np.expm1(units * epsilon) / np.expm1(epsilon)), 1.0))


def apart(epsilon: NDArray[np.float64], delta: float, units: int = 1) -> NDArray[np.float64]:
    """Return T, by how much an (epsilon, delta) mechanism may tell data sets apart that are so many units apart.

    Guarantee: the sum of (p - q)^2/(p + q) is at most 2 T for its laws p and q on two such data sets.
    Proof: docs/proofs/limits.unbiased.md, section 5.
    Assumes: epsilon > 0; the mechanism is (epsilon, delta)-private from each data set between the two to the next.
    Rounds: to nearest, within a part in 2^44 of itself.

    >>> float(apart(np.array(1.0), 0.0)), float(apart(np.array(1.0), 0.25))
    (0.21355..., 0.41016...)
    """
    mass = slipped(epsilon, delta, units)
    return np.asarray(mass + (1 - mass) * np.tanh(units * epsilon / 2) ** 2)


def least_amount(kind: type[Loss], chi: float) -> Fraction:
    """Return the least amount (rho, mu^2 or epsilon) of a loss whose chi^2 can reach this, rounded down.

    >>> float(least_amount(Zcdp, chi_square(Zcdp(0.25))))
    0.2499...
    """
    if not issubclass(kind, Zcdp | Gdp | Pure):
        raise InvalidBudget(
            f"no least loss is known in {kind.__name__}",
            rule="the kinds are Zcdp, Gdp and Pure",
            got=kind.__name__,
            next_step="state the loss in one of these",
        )
    return Fraction(down(max(ZERO, Fraction(float(amounts(kind, np.log(np.array([chi])))[0])))))


def amounts(kind: type[Loss], log_chi_square: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least amounts for many chi^2, given by their logarithms, rounded down: float64, same shape."""
    if issubclass(kind, Pure):
        half = log_chi_square / 2 - math.log(2)
        least = 2 * np.where(half > 20, half + math.log(2), np.arcsinh(np.exp(np.minimum(half, 20))))
    else:
        least = np.logaddexp(0.0, log_chi_square)
        least = least / 2 if issubclass(kind, Zcdp) else least
    found: NDArray[np.float64] = np.nextafter(least * SHAVE, 0.0)
    return found


def _unknown(loss: Loss) -> InvalidBudget:
    """Return the refusal of a loss that says nothing about chi^2."""
    return InvalidBudget(
        "no bound on unbiased errors is known for this loss",
        rule=RULE,
        got=repr(loss),
        next_step="state it as Approx: loss.to(Approx, delta=1e-6)",
    )
