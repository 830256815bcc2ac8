"""How far apart a loss lets neighbours be, as a chi-square divergence, and back.

Every bound of this package is the one of Hammersley, Chapman and Robbins: an unbiased number that moves by D between
neighbours has a variance of at least D^2/chi^2, chi^2 being the divergence of its laws at the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

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


def chi_square(loss: Loss) -> float:
    """Return a bound on chi^2 between the outputs of neighbours, rounded up; inf where floats end.

    Guarantee: no mechanism of this loss has a larger chi-square divergence between neighbours, either way.
    Proof: docs/proofs/limits.unbiased.md, section 1; [BunS16] for the order 2, [DongRS22] for GDP.
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
    """Return what stands for chi^2 under (epsilon, delta), where both neighbours have the same variance.

    Proof: docs/proofs/limits.unbiased.md, section 5: D <= a s + sqrt(delta (s^2 + D^2)), solved for D^2/s^2.
    """
    if delta <= 0:
        return 4 * math.sinh(epsilon / 2) ** 2
    a = math.sinh(epsilon) + math.exp(-epsilon) * math.sqrt(delta)
    most = (a + math.sqrt(delta) * math.sqrt(max(0.0, a * a + 1 - delta))) / (1 - delta)
    return most * most


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
