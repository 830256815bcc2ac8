"""Gaussian differential privacy to (epsilon, delta) and back: exact, so nothing is lost for Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from farthing.privacy.balls import PRECISION, ball, lower, upper, working
from farthing.privacy.convert.search import least_float, log_of, most_farthings
from farthing.privacy.numbers import squared, within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from farthing.privacy.numbers import Number


FAR = 1 << 10
"""Where the series of the Mills ratio takes over from the tail itself."""

_LARGEST_EXPONENT: Final = 700.0
_ROOT: Final = math.sqrt(0.5)


def normal_tail(flint: Any, x: Any) -> Any:
    """Return P[N(0,1) <= x] as a ball."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def _lifted_tail(flint: Any, near: Any, far: Any, epsilon: Any) -> Any:
    """Return exp(epsilon) Phi(-far) as a ball, where near^2 / 2 + epsilon = far^2 / 2.

    Far out exp(epsilon) and the tail are both astronomic. There it is phi(near) times the Mills ratio of `far`, which
    lies between any two neighbouring partial sums of 1/x - 1/x^3 + 3/x^5 - ...
    """
    if not far > FAR:
        return epsilon.exp() * normal_tail(flint, -far)
    term = 1 / far
    total = term
    for k in range(1, 24, 2):
        term = -term * k / far**2
        total += term
    ratio = total.union(total - term)
    return (-near * near / 2).exp() / (2 * flint.arb.pi()).sqrt() * ratio


def gdp_delta(mu_squared: Number, epsilon: Number) -> float:
    """Return the least delta for which sqrt(mu_squared)-GDP gives (epsilon, delta)-DP, rounded up.

    Guarantee: mu-GDP implies (epsilon, delta)-DP at the returned delta, and no smaller delta would do.
    Proof: [DongRS22, Cor. 2.13]: delta = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu).
    Assumes: mu_squared >= 0, epsilon >= 0.
    Rounds: up; enclosed by ball arithmetic, then to the next float.

    >>> 0.126 < gdp_delta(1, 1) < 0.127
    True
    """
    mu2, target = squared(mu_squared, "mu^2"), squared(epsilon, "epsilon")
    if mu2 == 0:
        return 0.0
    # exp(epsilon) and the tails lose as many bits as their arguments have before the point.
    bits = PRECISION + 2 * (math.ceil(target).bit_length() + math.ceil(mu2).bit_length())
    while True:
        with working(bits) as flint:
            mu, e = ball(flint, mu2).sqrt(), ball(flint, target)
            near, far = e / mu - mu / 2, e / mu + mu / 2
            delta = normal_tail(flint, -near) - _lifted_tail(flint, near, far, e)
            top, bottom = (upper(delta), lower(delta)) if delta.is_finite() else (Fraction(2), Fraction(0))
        # Below 2^-1000 nobody asks for more digits; above it we want a relative error far under a float's.
        if top < Fraction(1, 1 << 1000) or top - bottom <= top / (1 << 60):
            return min(1.0, max(0.0, up(top)))
        bits *= 2


def gdp_epsilon(mu_squared: Number, delta: Number) -> float:
    """Return the least epsilon (a float, rounded up) with sqrt(mu_squared)-GDP => (epsilon, delta)-DP.

    Guarantee: mu-GDP implies (epsilon, delta)-DP.
    Proof: [DongRS22, Cor. 2.13]; delta falls in epsilon, so bisection on the certified upper bound is safe.
    Assumes: 0 < delta < 1.
    Rounds: up.

    >>> round(gdp_epsilon(1, 1e-6), 6)
    4.886554
    """
    mu2, wanted = squared(mu_squared, "mu^2"), within_unit(delta)
    if mu2 == 0:
        return 0.0
    return _least_epsilon(mu2, wanted)


@lru_cache(maxsize=4096)
def _least_epsilon(mu2: Fraction, wanted: Fraction) -> float:
    """Return the least epsilon; remembered, since every answer tells the same few losses again."""
    # P[Z > eps] <= delta suffices, and Phi(-z) <= exp(-z^2/2): a point that is surely high enough.
    top = float(mu2) / 2 + math.sqrt(float(mu2)) * (math.sqrt(-2 * log_of(wanted)) + 1) + 1e-9
    about = float(wanted)
    near = least_float(lambda epsilon: _about(float(mu2), epsilon) <= about, 0.0, top)
    return least_float(lambda epsilon: Fraction(gdp_delta(mu2, epsilon)) <= wanted, 0.0, top, near)


def _about(mu2: float, epsilon: float) -> float:
    """Return about the delta of `gdp_delta`, in floats: exact numbers are sought around it; far out it is of no use."""
    if mu2 == 0:
        return 0.0
    mu = math.sqrt(mu2)
    lifted = math.exp(epsilon) if epsilon < _LARGEST_EXPONENT else 0.0
    return (math.erfc((epsilon / mu - mu / 2) * _ROOT) - lifted * math.erfc((epsilon / mu + mu / 2) * _ROOT)) / 2


def gdp_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """Return the greatest mu^2, in whole farthings, for which mu-GDP implies (epsilon, delta)-DP.

    Guarantee: whatever is mu-GDP for the returned mu^2 is (epsilon, delta)-DP.
    Proof: [DongRS22, Cor. 2.13]; delta grows with mu.
    Assumes: epsilon > 0, 0 < delta < 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(gdp_from_epsilon(1, 1e-6) / 2)  # doctest: +ELLIPSIS
    0.02801...
    """
    target, wanted = squared(epsilon, "epsilon"), within_unit(delta)
    return _most_squared(target, wanted)


@lru_cache(maxsize=4096)
def _most_squared(target: Fraction, wanted: Fraction) -> Fraction:
    """Return the greatest mu^2; remembered, since every session of a budget begins with it."""
    about = float(wanted)
    if target > _LARGEST_EXPONENT or about == 1:  # floats are of no use
        return most_farthings(lambda mu2: Fraction(gdp_delta(mu2, target)) <= wanted)
    epsilon = float(target)
    near = most_farthings(lambda mu2: _about(float(mu2), epsilon) <= about)
    return most_farthings(lambda mu2: Fraction(gdp_delta(mu2, target)) <= wanted, near)
