"""Noise on whole-number answers of any sensitivity, in whatever currency: Gaussian, or two-sided geometric if pure."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.exponential import Exponential
from farthing.mechanisms.gaussian import ROUNDING_VARIANCE, on_own_grid
from farthing.mechanisms.noisy_max import PermuteAndFlip
from farthing.mechanisms.residuals import UP
from farthing.noise.laplace import two_sided_geometric
from farthing.privacy.loss import Booked, Gdp, Pure
from farthing.rounding import down, sqrt_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

_SEARCHES: Final = 60
_FINEST: Final = Fraction(1, 1 << 60)


def noisy_answers(truth: Int64, loss: Booked, *, squares: int, total: int, bits: BitSource | None = None) -> Float64:
    """Return whole-number answers with noise, float64 as they are shaped.

    Args:
        truth: int64, the exact answers in steps.
        loss: what this costs.
        squares: the most that one unit moves all of them, squared: their squared L2 sensitivity.
        total: the most that one unit moves them together: their L1 sensitivity, for a pure loss.
        bits: where random bits come from.

    Guarantee: what is returned costs at most `loss`: Gaussian noise in GDP and zCDP, geometric noise in pure DP.
    Proof: docs/proofs/mechanisms.linear_queries.md, section 2.
    Assumes: the sensitivities as stated; exact samplers.
    Rounds: noise up.

    >>> noisy_answers(np.array([500]), Pure(1), squares=1, total=1).shape
    (1,)
    """
    if isinstance(loss, Pure):
        flat = np.asarray(truth, np.int64).reshape(-1)
        noisy = flat + two_sided_geometric(down(loss.amount / total), flat.size, bits)
        return noisy.astype(np.float64).reshape(np.shape(truth))
    sigma = deviation(loss, squares=squares, total=total)
    released, exponent = on_own_grid(np.asarray(truth, np.int64), np.full(np.shape(truth), sigma * UP), bits)
    return np.ldexp(released.astype(np.float64), exponent)


def deviation(loss: Booked, *, squares: int, total: int) -> float:
    """Return the standard deviation of the noise on each answer, in steps; arguments as of `noisy_answers`.

    Rounds: up.

    >>> deviation(Gdp(0.5), squares=4, total=4)
    4.000003...
    """
    if isinstance(loss, Pure):
        rate = float(loss.amount) / total
        return float(np.sqrt(2 * np.exp(-rate)) / -np.expm1(-rate))
    mu_squared = loss.amount if isinstance(loss, Gdp) else 2 * loss.amount
    return sqrt_up(Fraction(squares) / mu_squared) * UP * ROUNDING_VARIANCE


def shared(loss: Booked, *parts: Fraction | int) -> tuple[Booked, ...]:
    """Return a loss in parts, in proportion: they add up to it, exactly.

    >>> shared(Gdp(1), 1, 3)
    (Gdp(mu=0.5), Gdp(mu=0.866025))
    """
    total = sum(map(Fraction, parts), Fraction(0))
    return tuple(type(loss).of_amount(loss.amount * Fraction(part) / total) for part in parts)


def chooser(loss: Booked) -> Exponential | PermuteAndFlip:
    """Return the best known choice among options at a price: permute and flip if pure, else by its bounded range.

    Guarantee: one choice costs at most `loss`.
    Proof: docs/proofs/mechanisms.select.md; docs/bounded-range.md; the price itself is computed and compared.
    Assumes: as the choices.
    Rounds: epsilon down.

    >>> from farthing.privacy.loss import Zcdp
    >>> chooser(Zcdp(0.5)).price(Zcdp) <= Zcdp(0.5)
    True
    """
    return PermuteAndFlip(loss.amount) if isinstance(loss, Pure) else drawer(loss)


def drawer(loss: Booked) -> Exponential:
    """Return the exponential mechanism at a price, where its law matters and not the best option alone.

    Guarantee: one draw costs at most `loss`.
    Proof: docs/proofs/mechanisms.exponential.md; the price itself is computed and compared.
    Assumes: as the mechanism.
    Rounds: epsilon down.
    """
    return Exponential(loss.amount if isinstance(loss, Pure) else _epsilon_for(loss))


@lru_cache(maxsize=256)
def _epsilon_for(loss: Booked) -> Fraction:
    """Return the largest epsilon, nearly, of a choice whose price is at most the loss."""
    low, high = _FINEST, Fraction(64)
    for _ in range(_SEARCHES):
        middle = (low + high) / 2
        fits = Exponential(middle).price(type(loss)).amount <= loss.amount
        low, high = (middle, high) if fits else (low, middle)
        if high - low < low / (1 << 20):
            break
    return Fraction(down(low))
