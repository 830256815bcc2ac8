"""From one measure of privacy loss to another, each by its theorem, each rounded against the user.

Every function returns a float that is certified to lie on the safe side of the exact value (ball arithmetic, then one
directed rounding): a loss or a delta is never understated, what a budget buys is never overstated.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from farthing.privacy.balls import PRECISION, ball, lower, upper, working
from farthing.rounding import FARTHING, coins_down, up

if TYPE_CHECKING:
    from collections.abc import Callable

Number = Fraction | float | int


def _normal_tail(flint: Any, x: Any) -> Any:
    """Return P[N(0,1) <= x] as a ball."""
    return (-x / flint.arb(2).sqrt()).erfc() / 2


def gdp_delta(mu_squared: Number, epsilon: Number) -> float:
    """Return the least delta for which sqrt(mu_squared)-GDP gives (epsilon, delta)-DP, rounded up.

    Guarantee: mu-GDP implies (epsilon, delta)-DP at the returned delta, and no smaller delta would do.
    Proof: [DongRS22, Cor. 2.13]: delta = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu).
    Assumes: mu_squared >= 0, epsilon >= 0.
    Rounds: up; enclosed by ball arithmetic, then to the next float.

    >>> 0.126 < gdp_delta(1, 1) < 0.127
    True
    """
    mu2, eps = Fraction(mu_squared), Fraction(epsilon)
    if mu2 == 0:
        return 0.0
    bits = PRECISION + 2 * max(0, math.ceil(eps))
    while True:
        with working(bits) as flint:
            mu, e = ball(flint, mu2).sqrt(), ball(flint, eps)
            delta = _normal_tail(flint, mu / 2 - e / mu) - e.exp() * _normal_tail(flint, -mu / 2 - e / mu)
            top, bottom = upper(delta), lower(delta)
        # Below 2^-1000 nobody asks for more digits; above it we want a relative error far under a float's.
        if top < Fraction(1, 1 << 1000) or top - bottom <= top / (1 << 60):
            return max(0.0, up(top))
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
    mu2, wanted = Fraction(mu_squared), Fraction(delta)
    if mu2 == 0:
        return 0.0
    # P[Z > eps] <= delta suffices, and Phi(-z) <= exp(-z^2/2): a point that is surely high enough.
    top = float(mu2) / 2 + math.sqrt(float(mu2)) * (math.sqrt(-2 * math.log(float(wanted))) + 1) + 1e-9
    return _least_float(lambda epsilon: Fraction(gdp_delta(mu2, epsilon)) <= wanted, 0.0, top)


def gdp_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """Return the greatest mu^2, in whole farthings, for which mu-GDP implies (epsilon, delta)-DP.

    Guarantee: whatever is mu-GDP for the returned mu^2 is (epsilon, delta)-DP.
    Proof: [DongRS22, Cor. 2.13]; delta grows with mu.
    Assumes: epsilon > 0, 0 < delta < 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(gdp_from_epsilon(1, 1e-6) / 2)  # doctest: +ELLIPSIS
    0.02801...
    """
    wanted = Fraction(delta)
    eps = Fraction(epsilon)
    return _most_farthings(lambda mu2: Fraction(gdp_delta(mu2, eps)) <= wanted)


def zcdp_epsilon(rho: Number, delta: Number) -> float:
    """Return an epsilon (rounded up) with rho-zCDP => (epsilon, delta)-DP, by the sharper conversion.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13], solved for epsilon at one order a > 1; any order is safe, we take the best found.
    Assumes: 0 < delta < 1.
    Rounds: up.

    >>> round(zcdp_epsilon(0.1, 1e-6), 6)
    2.141939
    """
    r, d = Fraction(rho), Fraction(delta)
    if r == 0:
        return 0.0
    rf, log_d = float(r), _log(d)
    if not 0 < rf < math.inf:
        return zcdp_epsilon_classic(r, d)

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return (1 + excess) * (rf + (math.log(excess) - math.log1p(excess)) / excess) - (
            math.log(excess) + log_d
        ) / excess

    best = _minimise(at)
    with working() as flint:
        excess = ball(flint, Fraction(math.exp(best)))
        order = 1 + excess
        value = order * ball(flint, r) + (order * (excess / order).log() - excess.log() - ball(flint, d).log()) / excess
        return max(0.0, up(upper(value)))


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    """Return a delta (rounded up) with rho-zCDP => (epsilon, delta)-DP, by the sharper conversion.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13]: delta = exp((a-1)(a rho - eps)) / (a-1) * (1 - 1/a)^a for any a > 1.
    Assumes: rho >= 0, epsilon >= 0.
    Rounds: up.

    >>> zcdp_delta(0.1, 2.14194) <= 1.0001e-6
    True
    """
    r, e = Fraction(rho), Fraction(epsilon)
    if r == 0:
        return 0.0
    rf, ef = float(r), float(e)

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return excess * (order * rf - ef) - math.log(excess) + order * (math.log(excess) - math.log1p(excess))

    best = _minimise(log_delta)
    with working() as flint:
        excess = ball(flint, Fraction(math.exp(best)))
        order = 1 + excess
        value = (
            (excess * (order * ball(flint, r) - ball(flint, e))).exp() / excess * (order * (excess / order).log()).exp()
        )
        return min(1.0, up(upper(value)))


def zcdp_epsilon_classic(rho: Number, delta: Number) -> float:
    """Return rho + 2 sqrt(rho log(1/delta)), rounded up: the conversion of the first zCDP papers.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP.
    Proof: [BunS16, Prop. 1.3].
    Assumes: 0 < delta < 1.
    Rounds: up.

    >>> round(zcdp_epsilon_classic(0.1, 1e-6), 6)
    2.450788
    """
    with working() as flint:
        r = ball(flint, Fraction(rho))
        return up(upper(r + 2 * (r * (1 / ball(flint, Fraction(delta))).log()).sqrt()))


def zcdp_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """Return the greatest rho, in whole farthings, that the sharper conversion turns into (epsilon, delta)-DP.

    Guarantee: whatever is rho-zCDP for the returned rho is (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13]; the bound grows with rho.
    Assumes: epsilon > 0, 0 < delta < 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(zcdp_from_epsilon(1, 1e-6))  # doctest: +ELLIPSIS
    0.02435...
    """
    wanted = Fraction(epsilon)
    d = Fraction(delta)
    return _most_farthings(lambda rho: Fraction(zcdp_epsilon(rho, d)) <= wanted)


def zcdp_from_epsilon_classic(epsilon: Number, delta: Number) -> Fraction:
    """Return the greatest rho, in whole farthings, with rho + 2 sqrt(rho log(1/delta)) <= epsilon.

    Guarantee: whatever is rho-zCDP for the returned rho is (epsilon, delta)-DP.
    Proof: [BunS16, Prop. 1.3], solved for rho: (sqrt(log(1/delta) + eps) - sqrt(log(1/delta)))^2.
    Assumes: epsilon > 0, 0 < delta < 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(zcdp_from_epsilon_classic(1, 1e-6))  # doctest: +ELLIPSIS
    0.017468...
    """
    with working() as flint:
        log_term = (1 / ball(flint, Fraction(delta))).log()
        root = (log_term + ball(flint, Fraction(epsilon))).sqrt() - log_term.sqrt()
        return coins_down(lower(root * root)) * FARTHING


def pure_zcdp(epsilon: Number) -> float:
    """Return the zCDP price of an epsilon-DP mechanism, eps tanh(eps/2), rounded up.

    Guarantee: epsilon-DP implies rho-zCDP; tight (randomised response).
    Proof: theory of bounded losses, [BunS16, Prop. 3.3] sharpened; docs/proofs/privacy.convert.md.
    Assumes: epsilon >= 0.
    Rounds: up.

    >>> round(pure_zcdp(1), 6)
    0.462117
    """
    with working() as flint:
        e = ball(flint, Fraction(epsilon))
        return up(upper(e * (e / 2).tanh()))


def geometric_zcdp(epsilon: Number, steps: int = 1) -> float:
    """Return the zCDP price of integer two-sided geometric noise, rounded up.

    Args:
        epsilon: the pure price of the release, > 0.
        steps: how many grid steps one privacy unit can move the answer, >= 1 (noise rate epsilon/steps a step).

    Guarantee: the release is rho-zCDP.
    Proof: docs/proofs/privacy.convert.md: rho = eps - (t/sinh t)(1 - exp(-eps)), t = eps/steps; order 1 is the worst.
    Assumes: noise drawn exactly on the grid.
    Rounds: up.

    >>> abs(geometric_zcdp(1, steps=1) - pure_zcdp(1)) < 1e-12
    True
    """
    with working() as flint:
        e = ball(flint, Fraction(epsilon))
        t = e / steps
        return up(upper(e - t / t.sinh() * (1 - (-e).exp())))


def bounded_range_zcdp(eta: Number) -> float:
    """Return the zCDP price of an eta-bounded-range mechanism, rounded up; a little below eta^2/8.

    Guarantee: eta-bounded-range implies rho-zCDP.
    Proof: [DongDR20; CesarR21]: u = eta/(e^eta - 1), rho = u - 1 - log u.
    Assumes: eta >= 0.
    Rounds: up.

    >>> 0.94 < bounded_range_zcdp(2) / (2**2 / 8) < 0.96
    True
    """
    if eta == 0:
        return 0.0
    with working() as flint:
        e = ball(flint, Fraction(eta))
        u = e / e.expm1()
        return up(upper(u - 1 - u.log()))


def pure_gdp(epsilon: Number) -> Fraction:
    """Return the GDP price of an epsilon-DP mechanism as an exact mu^2 (rounded up).

    Guarantee: epsilon-DP implies mu-GDP; tight (randomised response).
    Proof: mu = -2 ndtri(1/(1+exp(eps))) [LiuSJK22, bounded losses; docs/proofs/privacy.convert.md].
    Assumes: epsilon >= 0.
    Rounds: up.

    >>> 1.2 < math.sqrt(pure_gdp(1)) < 1.24
    True
    """
    if epsilon == 0:
        return Fraction(0)
    bits = PRECISION + 2 * math.ceil(Fraction(epsilon))
    with working(bits) as flint:
        e = ball(flint, Fraction(epsilon))
        # Phi(-mu/2) = 1/(1+e^eps)  <=>  erfc(mu / (2 sqrt 2)) = 2/(1+e^eps)
        root = (2 / (1 + e.exp())).erfcinv()
        return upper(8 * root * root)


def bounded_range_gdp(eta: Number) -> Fraction:
    """Return the GDP price of an eta-bounded-range mechanism as an exact mu^2 (rounded up).

    Guarantee: eta-bounded-range implies mu-GDP.
    Proof: the worst interval is centred, so the mechanism is as hard to test as an (eta/2)-DP one.
    Assumes: eta >= 0.
    Rounds: up.

    >>> bounded_range_gdp(2) == pure_gdp(1)
    True
    """
    return pure_gdp(Fraction(eta) / 2)


def pure_delta(epsilon: Number, target: Number) -> float:
    """Return the delta of an epsilon-DP mechanism at a smaller epsilon `target`, rounded up.

    Guarantee: epsilon-DP implies (target, delta)-DP with delta = (e^eps - e^target)/(1 + e^eps), 0 when target >= eps.
    Proof: [KairouzOV15]: the pair with the largest profile is randomised response.
    Assumes: both >= 0.
    Rounds: up.

    >>> pure_delta(1, 1)
    0.0
    """
    if target >= epsilon:
        return 0.0
    with working() as flint:
        e, t = ball(flint, Fraction(epsilon)), ball(flint, Fraction(target))
        return up(upper((1 - (t - e).exp()) / (1 + (-e).exp())))


def _log(x: Fraction) -> float:
    """Return log(x) for a positive fraction that may be far below the least float."""
    return math.log(x.numerator) - math.log(x.denominator)


def _minimise(f: Callable[[float], float], low: float = -40.0, high: float = 80.0) -> float:
    """Return a point near the minimum of a unimodal function by golden section; any point it returns is safe."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    x1, x2 = b - ratio * (b - a), a + ratio * (b - a)
    f1, f2 = _finite(f, x1), _finite(f, x2)
    for _ in range(90):
        if f1 <= f2:
            b, x2, f2 = x2, x1, f1
            x1 = b - ratio * (b - a)
            f1 = _finite(f, x1)
        else:
            a, x1, f1 = x1, x2, f2
            x2 = a + ratio * (b - a)
            f2 = _finite(f, x2)
    return (a + b) / 2


def _finite(f: Callable[[float], float], x: float) -> float:
    """Return f(x), with an overflow read as +infinity."""
    try:
        value = f(x)
    except (OverflowError, ValueError):
        return math.inf
    return math.inf if math.isnan(value) else value


def _least_float(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return a float at which a monotone condition holds, within a relative 1e-13 above the least such float."""
    if holds(low):
        return low
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _most_farthings(holds: Callable[[Fraction], bool]) -> Fraction:
    """Return the greatest whole number of farthings at which a condition that fails for good somewhere still holds."""
    high = 1
    while holds(high * FARTHING):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle * FARTHING) else (low, middle)
    return low * FARTHING


__all__ = [
    "bounded_range_gdp",
    "bounded_range_zcdp",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_from_epsilon",
    "geometric_zcdp",
    "pure_delta",
    "pure_gdp",
    "pure_zcdp",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_epsilon_classic",
    "zcdp_from_epsilon",
    "zcdp_from_epsilon_classic",
]
