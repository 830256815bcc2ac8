"""Renyi bounds to (epsilon, delta) and back: zCDP, truncated zCDP and single Renyi orders."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from farthing.privacy.balls import ball, lower, upper, working
from farthing.privacy.convert.search import log_of, minimise, most_farthings
from farthing.privacy.numbers import squared, within_unit
from farthing.rounding import FARTHING, coins_down, up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farthing.privacy.numbers import Number

LOG_EXCESS = (-40.0, 400.0)
"""Where the log of the best order less one is searched."""


def zcdp_epsilon(rho: Number, delta: Number, omega: Number | None = None) -> float:
    """Return an epsilon (rounded up) with rho-zCDP => (epsilon, delta)-DP, by the sharper conversion.

    With `omega` only orders up to it are used, which (rho, omega)-tCDP allows.

    Guarantee: rho-zCDP, or (rho, omega)-tCDP, implies (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13], solved for epsilon at one order a > 1; any order is safe, we take the best found.
    Assumes: 0 < delta < 1; omega > 1.
    Rounds: up.

    >>> round(zcdp_epsilon(0.1, 1e-6), 6)
    2.141939
    """
    r, d = squared(rho, "rho"), within_unit(delta)
    if r == 0:
        return 0.0
    rf, log_d = max(float(r), 1e-300), log_of(d)  # the search may look for another rho; the value is of this one

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        return (1 + excess) * rf - math.log1p(1 / excess) - (math.log1p(excess) + log_d) / excess

    best = _best_excess(minimise(at, *_range(omega)), omega)
    return _epsilon_at(best, r * (1 + best), d)


def zcdp_delta(rho: Number, epsilon: Number, omega: Number | None = None) -> float:
    """Return a delta (rounded up) with rho-zCDP => (epsilon, delta)-DP, by the sharper conversion.

    With `omega` only orders up to it are used, which (rho, omega)-tCDP allows.

    Guarantee: rho-zCDP, or (rho, omega)-tCDP, implies (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13]: delta = exp((a-1)(a rho - eps)) / (a-1) * (1 - 1/a)^a for any a > 1.
    Assumes: rho >= 0, epsilon >= 0, omega > 1.
    Rounds: up.

    >>> zcdp_delta(0.1, 2.14194) <= 1.0001e-6
    True
    """
    r, e = squared(rho, "rho"), squared(epsilon, "epsilon")
    if r == 0:
        return 0.0
    rf, ef = float(r), float(e)

    def log_delta(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return excess * (order * rf - ef - math.log1p(1 / excess)) - math.log1p(excess)

    best = _best_excess(minimise(log_delta, *_range(omega)), omega)
    return _delta_at(best, r * (1 + best), e)


def renyi_epsilon(orders: Iterable[tuple[Number, Number]], delta: Number) -> float:
    """Return an epsilon (rounded up) for a mechanism with D_a <= tau at each of the pairs (a, tau).

    Guarantee: the mechanism is (epsilon, delta)-DP.
    Proof: [CanonneKS20, Prop. 12] at each order; the least of several true statements is true.
    Assumes: 0 < delta < 1; every order > 1.
    Rounds: up.

    >>> 1.2 < renyi_epsilon([(10, 0.1)], 1e-6) < 1.3
    True
    """
    d = within_unit(delta)
    pairs = [(squared(order, "order"), squared(tau, "tau")) for order, tau in orders]
    return min(_epsilon_at(order - 1, tau, d) for order, tau in pairs)


def renyi_delta(orders: Iterable[tuple[Number, Number]], epsilon: Number) -> float:
    """Return a delta (rounded up) for a mechanism with D_a <= tau at each of the pairs (a, tau).

    Guarantee: the mechanism is (epsilon, delta)-DP.
    Proof: [CanonneKS20, Prop. 12] at each order; the least of several true statements is true.
    Assumes: epsilon >= 0; every order > 1.
    Rounds: up.

    >>> renyi_delta([(10, 0.1)], 1.3) < 1e-6
    True
    """
    e = squared(epsilon, "epsilon")
    pairs = [(squared(order, "order"), squared(tau, "tau")) for order, tau in orders]
    return min(_delta_at(order - 1, tau, e) for order, tau in pairs)


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
        r = ball(flint, squared(rho, "rho"))
        return up(upper(r + 2 * (r * (1 / ball(flint, within_unit(delta))).log()).sqrt()))


def zcdp_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """Return the greatest rho, in whole farthings, that the sharper conversion turns into (epsilon, delta)-DP.

    Guarantee: whatever is rho-zCDP for the returned rho is (epsilon, delta)-DP.
    Proof: [CanonneKS20, Cor. 13]; the bound grows with rho.
    Assumes: epsilon > 0, 0 < delta < 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(zcdp_from_epsilon(1, 1e-6))  # doctest: +ELLIPSIS
    0.02435...
    """
    return _most_rho(squared(epsilon, "epsilon"), within_unit(delta))


@lru_cache(maxsize=4096)
def _most_rho(wanted: Fraction, delta: Fraction) -> Fraction:
    """Return the greatest rho; remembered, since every session of a budget begins with it."""
    return most_farthings(lambda rho: Fraction(zcdp_epsilon(rho, delta)) <= wanted)


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
        log_term = (1 / ball(flint, within_unit(delta))).log()
        root = (log_term + ball(flint, squared(epsilon, "epsilon"))).sqrt() - log_term.sqrt()
        return coins_down(lower(root * root)) * FARTHING


def renyi_from_epsilon(epsilon: Number, delta: Number, order: Number) -> Fraction:
    """Return the greatest tau, in whole farthings, with which D_order <= tau is (epsilon, delta)-DP; 0 if none is.

    Guarantee: whatever has D_order at most the returned number is (epsilon, delta)-DP.
    Proof: [CanonneKS20, Prop. 12]; the bound grows with tau. Where the divergence is 0 the laws are the same.
    Assumes: epsilon > 0, 0 < delta < 1, order > 1.
    Rounds: down to a multiple of 2^-40.

    >>> float(renyi_from_epsilon(1, 1e-6, 24))  # doctest: +ELLIPSIS
    0.5800...
    """
    wanted, d, excess = squared(epsilon, "epsilon"), within_unit(delta), squared(order, "order") - 1
    return most_farthings(lambda tau: Fraction(_epsilon_at(excess, tau, d)) <= wanted)


def _top(omega: Number | None) -> Fraction:
    """Return how far the orders may rise above one."""
    return Fraction(math.exp(LOG_EXCESS[1])) if omega is None else squared(omega, "omega") - 1


def _range(omega: Number | None) -> tuple[float, float]:
    """Return where the log of the order's excess over one may lie."""
    low, high = LOG_EXCESS
    return (low, high) if omega is None else (low, max(low, min(high, math.log(_top(omega)))))


def _best_excess(log_excess: float, omega: Number | None) -> Fraction:
    """Return the order's excess over one as a fraction, never beyond what omega allows."""
    return min(Fraction(math.exp(log_excess)), _top(omega))


def _epsilon_at(excess: Fraction, tau: Fraction, delta: Fraction) -> float:
    """Return tau + log(1 - 1/a) - log(a delta)/(a - 1) at a = 1 + excess, rounded up, never below zero."""
    with working() as flint:
        x: Any = ball(flint, excess)
        a = 1 + x
        value = ball(flint, tau) - (1 / x).log1p() - (a * ball(flint, delta)).log() / x
        return max(0.0, up(upper(value)))


def _delta_at(excess: Fraction, tau: Fraction, epsilon: Fraction) -> float:
    """Return exp((a-1)(tau - epsilon)) / a * (1 - 1/a)^(a-1) at a = 1 + excess, rounded up, at most one."""
    with working() as flint:
        x: Any = ball(flint, excess)
        a = 1 + x
        log_value = x * (ball(flint, tau) - ball(flint, epsilon) - (1 / x).log1p()) - a.log()
        return min(1.0, up(upper(log_value.exp()))) if log_value < 0 else 1.0
