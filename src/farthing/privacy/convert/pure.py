"""Bounded losses: pure and approximate differential privacy, bounded range, and what they are in other measures."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from farthing.privacy.balls import PRECISION, ball, upper, working
from farthing.privacy.numbers import exact, squared
from farthing.rounding import up

if TYPE_CHECKING:
    from farthing.privacy.numbers import Number


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
        e = ball(flint, squared(epsilon, "epsilon"))
        return up(upper(e * (e / 2).tanh()))


def pure_renyi(epsilon: Number, order: Number) -> float:
    """Return the largest Renyi divergence of one order that an epsilon-DP mechanism can have, rounded up.

    Guarantee: epsilon-DP implies D_order <= the returned number; tight (randomised response).
    Proof: every epsilon-DP pair is a post-processing of randomised response [KairouzOV15].
    Assumes: epsilon >= 0, order > 1.
    Rounds: up.

    >>> round(pure_renyi(1, 2), 6) < 2 * 0.462117
    True
    """
    e, a = squared(epsilon, "epsilon"), squared(order, "order")
    if e == 0:
        return 0.0
    bits = PRECISION + 2 * (math.ceil(e).bit_length() + math.ceil(a).bit_length())
    with working(bits) as flint:
        x, order_ball = ball(flint, e), ball(flint, a)
        moment = (1 + ((1 - 2 * order_ball) * x).exp()) / (1 + (-x).exp())
        return min(up(e), up(upper(((order_ball - 1) * x + moment.log()) / (order_ball - 1))))


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
        e = ball(flint, squared(epsilon, "epsilon"))
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
    exact_eta = squared(eta, "eta")
    if exact_eta == 0:
        return 0.0
    with working() as flint:
        e = ball(flint, exact_eta)
        u = e / e.expm1()
        return up(upper(u - 1 - u.log()))


def bounded_range_renyi(eta: Number, order: Number) -> float:
    """Return the Renyi divergence that an eta-bounded-range mechanism has at most at one order, rounded up.

    Guarantee: D_order is at most the returned number, in both directions; tight at each order by itself.
    Proof: docs/proofs/privacy.convert.md: two outputs with log-ratios t and t - eta, at the worst t.
    Assumes: eta >= 0, order > 1.
    Rounds: up.

    >>> 0.99 < bounded_range_renyi(0.01, 2) / (2 * 0.01**2 / 8) <= 1, bounded_range_renyi(1, 1000) < 1
    (True, True)
    """
    exact_eta, a = squared(eta, "eta"), Fraction(order)
    if exact_eta == 0:
        return 0.0
    with working() as flint:
        e, power = ball(flint, exact_eta), ball(flint, a)
        high = -(-power * e).expm1()  # 1 - e^(-a eta)
        low = (-e).exp() * -(-(power - 1) * e).expm1()  # e^-eta - e^(-a eta)
        top = ((power - 1) * high / (power * low)).log()
        moment = (high / power).log() + (power - 1) * top - (-(-e).expm1()).log()
        return up(upper(moment / (power - 1)))


def pure_gdp(epsilon: Number) -> Fraction:
    """Return the GDP price of an epsilon-DP mechanism as an exact mu^2 (rounded up).

    Guarantee: epsilon-DP implies mu-GDP; tight (randomised response).
    Proof: mu = -2 ndtri(1/(1+exp(eps))) [LiuSJK22, bounded losses; docs/proofs/privacy.convert.md].
    Assumes: epsilon >= 0.
    Rounds: up.

    >>> 1.2 < math.sqrt(pure_gdp(1)) < 1.24
    True
    """
    e = squared(epsilon, "epsilon")
    if e == 0:
        return Fraction(0)
    with working(PRECISION + 2 * math.ceil(e).bit_length()) as flint:
        # Phi(-mu/2) = 1/(1+e^eps)  <=>  erfc(mu / (2 sqrt 2)) = 2/(1+e^eps)
        root = (2 / (1 + ball(flint, e).exp())).erfcinv()
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
    return pure_gdp(squared(eta, "eta") / 2)


def bounded_range_delta(eta: Number, target: Number) -> float:
    """Return the delta of an eta-bounded-range mechanism at epsilon `target`, rounded up.

    Guarantee: eta-bounded-range implies (target, delta)-DP with delta = (1 - e^((target-eta)/2))^2 / (1 - e^-eta).
    Proof: docs/proofs/privacy.convert.md, "Bounded range to (epsilon, delta)"; [DongDR20, k = 1]. Tight.
    Assumes: both >= 0.
    Rounds: up.

    >>> bounded_range_delta(1, 1), 0.24 < bounded_range_delta(1, 0) < 0.25
    (0.0, True)
    """
    width, epsilon = squared(eta, "eta"), squared(target, "epsilon")
    if epsilon >= width:
        return 0.0
    with working() as flint:
        n, e = ball(flint, width), ball(flint, epsilon)
        return min(1.0, up(upper(((e - n) / 2).expm1() ** 2 / -(-n).expm1())))


def bounded_range_epsilon(eta: Number, delta: Number) -> float:
    """Return the least epsilon of an eta-bounded-range mechanism at delta, rounded up.

    Guarantee: eta-bounded-range implies (epsilon, delta)-DP.
    Proof: `bounded_range_delta` solved: epsilon = eta + 2 log(1 - sqrt(delta (1 - e^-eta))).
    Assumes: eta >= 0, 0 <= delta < 1.
    Rounds: up.

    >>> bounded_range_epsilon(1, 0)
    1.0
    """
    width, slack = squared(eta, "eta"), exact(delta, "delta", most=1)
    if slack == 0 or width == 0:
        return up(width)
    with working() as flint:
        n = ball(flint, width)
        return max(0.0, up(upper(n + 2 * (-(-(-n).expm1() * ball(flint, slack)).sqrt()).log1p())))


def pure_delta(epsilon: Number, target: Number) -> float:
    """Return the delta of an epsilon-DP mechanism at a smaller epsilon `target`, rounded up.

    Guarantee: epsilon-DP implies (target, delta)-DP with delta = (e^eps - e^target)/(1 + e^eps), 0 when target >= eps.
    Proof: [KairouzOV15]: the pair with the largest profile is randomised response.
    Assumes: both >= 0.
    Rounds: up.

    >>> pure_delta(1, 1)
    0.0
    """
    return approx_delta(epsilon, 0, target)


def pure_epsilon(epsilon: Number, delta: Number) -> float:
    """Return the least epsilon of an epsilon-DP mechanism once a delta is allowed, rounded up.

    Guarantee: epsilon-DP implies (the returned epsilon, delta)-DP.
    Proof: [KairouzOV15]; `pure_delta` solved: log(e^eps - delta (1 + e^eps)).
    Assumes: epsilon >= 0, 0 <= delta < 1.
    Rounds: up.

    >>> pure_epsilon(1, 0)
    1.0
    """
    return approx_epsilon(epsilon, 0, delta)


def approx_delta(epsilon: Number, slack: Number, target: Number) -> float:
    """Return the delta of an (epsilon, slack)-DP mechanism at another epsilon `target`, rounded up.

    Guarantee: (epsilon, slack)-DP implies (target, delta)-DP at the returned delta,
        slack + (1 - slack) (e^eps - e^target)^+ / (1 + e^eps).
    Proof: [KairouzOV15]: the largest profile is that of randomised response that fails with chance slack.
    Assumes: epsilon, target >= 0; 0 <= slack < 1.
    Rounds: up.

    >>> approx_delta(1, 0.25, 2)
    0.25
    """
    own, aim, lost = squared(epsilon, "epsilon"), squared(target, "epsilon"), exact(slack, "delta", most=1)
    if aim >= own:
        return up(lost)
    with working() as flint:
        e, t = ball(flint, own), ball(flint, aim)
        return min(1.0, up(upper(ball(flint, lost) + ball(flint, 1 - lost) * -(t - e).expm1() / (1 + (-e).exp()))))


def approx_epsilon(epsilon: Number, slack: Number, delta: Number) -> float:
    """Return the least epsilon of an (epsilon, slack)-DP mechanism at a delta of at least slack, rounded up.

    Guarantee: (epsilon, slack)-DP implies (the returned epsilon, delta)-DP.
    Proof: [KairouzOV15]; `approx_delta` solved for the target.
    Assumes: epsilon >= 0, slack <= delta < 1.
    Rounds: up.

    >>> approx_epsilon(1, 0.25, 0.25)
    1.0
    """
    own, lost, allowed = squared(epsilon, "epsilon"), exact(slack, "delta", most=1), exact(delta, "delta", most=1)
    if allowed == lost:
        return up(own)
    with working() as flint:
        e, share = ball(flint, own), ball(flint, (allowed - lost) / (1 - lost))
        kept = upper(1 - share * (1 + (-e).exp()))
        return max(0.0, up(upper(e + ball(flint, kept).log()))) if kept > 0 else 0.0
