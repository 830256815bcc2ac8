"""The conversions for whole arrays: float64 where its error is surely small enough, ball arithmetic where it is not.

Each result is at least the exact value and at most a relative 1e-9 above it (deltas below 1e-300: at most a few of the
least floats above it). Within one call results are monotone in an argument when the other is constant.

Why they are safe: each formula is computed together with a bound on its own relative error, the sum of what its
operations can lose when every elementary function is right to `ULPS` units in the last place, amplified by every
cancellation. The result is raised by that bound. Where the bound is more than `MARGIN` the scalar function decides.
scipy's erfcx, ndtr and numpy's exp and log were measured against 60 digits: they err by less than 8 units. The bound of
64 is meant to be far from that; it is measured, not proved.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from farthing.errors import InvalidBudget
from farthing.privacy.convert.gdp import gdp_delta, gdp_epsilon
from farthing.privacy.convert.zcdp import zcdp_delta, zcdp_epsilon
from farthing.privacy.numbers import LARGEST, within_unit
from farthing.rounding import down

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

ULPS: Final = 64 * 2.0**-53
"""What an elementary function, with the roundings around it, may lose: eight times what was measured."""

MARGIN: Final = 4e-10
"""The largest error bound that float64 is trusted with."""

NARROW: Final = 0.07
"""Below this mu the difference of two tails is integrated, since subtracting them would cancel."""

SMALLEST: Final = 1e-300
"""Deltas below are rounded up to within a few of the least floats, with no relative promise."""

ROOT2: Final = float(np.sqrt(2.0))
SLOPE: Final = float(2 / np.sqrt(np.pi))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)
STEPS: Final = 40
BLOCK: Final = 1 << 13

CLOSE: Final = 1e-6
"""How near the best order is near enough: what is lost by another order grows with the square of the distance."""

HOPELESS: Final = 39.0
"""Phi(-39) is below the least float, and no delta is larger than Phi(-near)."""

VANISHED: Final = -746.0
"""The logarithm of a number below the least float."""


def gdp_deltas(mu: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return the least deltas of mu-GDP at epsilon, rounded up; float64[...], broadcast.

    Guarantee: mu-GDP implies (epsilon, delta)-DP, for each element.
    Proof: [DongRS22, Cor. 2.13]; docs/proofs/privacy.convert.md, "Arrays".
    Assumes: every mu and epsilon is finite, from 0 to 2^40; elementary functions err by at most 64 units.
    Rounds: up, by at most a relative 1e-9.

    >>> gdp_deltas([1.0, 2.0], 1.0).round(4)
    array([0.1269, 0.5099])
    """
    mus, epsilons = np.broadcast_arrays(_given(mu, "mu"), _given(epsilon, "epsilon"))
    m, e = mus.ravel(), epsilons.ravel()
    out = np.zeros(m.shape)
    here = m > 0
    n, aim = m[here], e[here]
    with np.errstate(all="ignore"):
        near = aim / n - n / 2
        log_delta, error, slope = _log_gdp_delta(n, near)
        error -= ULPS * slope * (aim / n + n)  # what the roundings of `near` do to the logarithm
        log_delta[near > HOPELESS] = -np.inf
        values = _exp_up(log_delta, error)
    _settle(values, error, lambda i: gdp_delta(Fraction(n[i]) ** 2, float(aim[i])))
    out[here] = np.minimum(values, 1.0)
    return _in_order(out.reshape(mus.shape), (mus, 1), (epsilons, -1))


def gdp_epsilons(mu: ArrayLike, delta: float) -> Floats:
    """Return the least epsilons of mu-GDP at delta, rounded up; float64[...].

    Guarantee: mu-GDP implies (epsilon, delta)-DP, for each element.
    Proof: [DongRS22, Cor. 2.13]; docs/proofs/privacy.convert.md, "Arrays".
    Assumes: every mu is finite, from 0 to 2^40; 0 < delta < 1; elementary functions err by at most 64 units.
    Rounds: up, by at most a relative 1e-9.

    >>> gdp_epsilons([0.5, 1.0], 1e-6).round(4)
    array([2.2541, 4.8866])
    """
    mus, wanted = _given(mu, "mu"), _delta(delta)
    m = mus.ravel()
    out = np.zeros(m.shape)
    with np.errstate(all="ignore"):
        log_wanted = np.log(wanted)
        at_zero, doubt, _ = _log_gdp_delta(m, -m / 2)
        here = (m > 0) & ~(at_zero + doubt + ULPS * abs(log_wanted) < log_wanted)
        n = m[here]
        near = np.empty(n.shape)
        for start in range(0, n.size, BLOCK):
            near[start : start + BLOCK] = _root(n[start : start + BLOCK], log_wanted, float(-ndtri(wanted)))
        log_delta, error, slope = _log_gdp_delta(n, near)
        epsilons = n * (near + n / 2)
        # log delta is concave in `near`: to the right of the point it falls at least as fast as there.
        fall = -slope * MARGIN * epsilons / n
        error += np.abs(log_delta - log_wanted) + ULPS * (2 + abs(log_wanted))
        proved = (error < fall / 2) & (ULPS * n * (np.abs(near) + n) < MARGIN * epsilons)
        values = epsilons * (1 + 2 * MARGIN)
    _settle(values, np.where(proved, 0.0, np.inf), lambda i: gdp_epsilon(Fraction(n[i]) ** 2, wanted))
    out[here] = values
    return _in_order(out.reshape(mus.shape), (mus, 1))


def zcdp_epsilons(rho: ArrayLike, delta: float) -> Floats:
    """Return epsilons of rho-zCDP at delta by the sharper conversion, rounded up; float64[...].

    Guarantee: rho-zCDP implies (epsilon, delta)-DP, for each element.
    Proof: [CanonneKS20, Cor. 13]; docs/proofs/privacy.convert.md, "Arrays".
    Assumes: every rho is finite, from 0 to 2^40; 0 < delta < 1; elementary functions err by at most 64 units.
    Rounds: up, by at most a relative 1e-9.

    >>> zcdp_epsilons([0.1, 1.0], 1e-6).round(4)
    array([2.1419, 7.7662])
    """
    rhos, wanted = _given(rho, "rho"), _delta(delta)
    r = rhos.ravel()
    out = np.zeros(r.shape)
    here = r > 0
    n = r[here]
    with np.errstate(all="ignore"):
        log_inverse = -np.log(wanted)
        x = np.sqrt(log_inverse / n)
        for _ in range(STEPS):  # the best order solves rho x^2 = log(1/delta) - log(1 + x)
            step = (n * x * x + np.log1p(x) - log_inverse) / (2 * n * x + 1 / (1 + x))
            x = np.maximum(x - step, x / 8)
            if np.all(np.abs(step) <= 1e-9 * x):
                break
        x[~(np.abs(step) <= CLOSE * x)] = np.nan
        terms = (n, n * x, log_inverse / x, -np.log1p(x) / x, -np.log1p(1 / x))
        value, size = sum(terms, np.zeros(n.shape)), sum(map(np.abs, terms), np.zeros(n.shape))
        nothing = value + ULPS * size < 0
        error = np.where(nothing, 0.0, np.where(value > 0, ULPS * size / value, np.inf))
        values = np.where(nothing, 0.0, value * (1 + error))
    _settle(values, error, lambda i: zcdp_epsilon(float(n[i]), wanted))
    out[here] = values
    return _in_order(out.reshape(rhos.shape), (rhos, 1))


def zcdp_deltas(rho: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return deltas of rho-zCDP at epsilon by the sharper conversion, rounded up; float64[...], broadcast.

    Guarantee: rho-zCDP implies (epsilon, delta)-DP, for each element.
    Proof: [CanonneKS20, Cor. 13]; docs/proofs/privacy.convert.md, "Arrays".
    Assumes: every rho and epsilon is finite, from 0 to 2^40; elementary functions err by at most 64 units.
    Rounds: up, by at most a relative 1e-9.

    >>> zcdp_deltas([0.1], 2.2) < 1e-6
    array([ True])
    """
    rhos, epsilons = np.broadcast_arrays(_given(rho, "rho"), _given(epsilon, "epsilon"))
    r, e = rhos.ravel(), epsilons.ravel()
    out = np.zeros(r.shape)
    here = r > 0
    n, aim = r[here], e[here]
    with np.errstate(all="ignore"):
        x = _best_order(n, aim)
        terms = (-x * aim, x * n, x * x * n, -np.log1p(x), -x * np.log1p(1 / x))
        log_delta = sum(terms, np.zeros(n.shape))
        error = ULPS * (1 + sum(map(np.abs, terms), np.zeros(n.shape)))
        values = _exp_up(log_delta, error)
    _settle(values, error, lambda i: zcdp_delta(float(n[i]), float(aim[i])))
    out[here] = np.minimum(values, 1.0)
    return _in_order(out.reshape(rhos.shape), (rhos, 1), (epsilons, -1))


def _given(values: ArrayLike, name: str) -> Floats:
    """Return an array of losses; refuse what is not a finite number from 0 to 2^40."""
    array = np.asarray(values)
    rule = f"every {name} is a finite number, 0 <= {name} <= {float(LARGEST):.3g}"
    if array.dtype.kind not in "fiu":
        raise InvalidBudget(f"{name} is not an array of numbers", rule=rule, got=array.dtype, next_step="pass float64")
    floats = array.astype(np.float64)
    wrong = ~((floats >= 0) & (floats <= LARGEST))
    if wrong.any():
        got = floats[wrong].flat[0]
        raise InvalidBudget(
            f"a {name} is out of range", rule=rule, got=got, next_step=f"name a {name} within the range"
        )
    return floats


def _delta(delta: float) -> float:
    """Return delta as a float, rounded down: asking for less is safe."""
    wanted = down(within_unit(delta))
    if not wanted:
        raise InvalidBudget(
            "delta is below the least float", rule="delta >= 5e-324", got=delta, next_step="1e-6 is usual"
        )
    return wanted


def _log_gdp_delta(mu: Floats, near: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log delta of mu-GDP at epsilon = mu (near + mu/2), its absolute error, and its slope in `near`.

    With y = near/sqrt2, h = mu/sqrt2 it is log(exp(-y^2)/2 (erfcx(y) - erfcx(y + h))). The slope is
    -mu exp(epsilon) Phi(-far)/delta.
    """
    facts = np.empty((3, *mu.shape))
    narrow = mu < NARROW
    for part, bulk in ((narrow, _narrow), (~narrow, _wide)):
        if part.all():
            return bulk(mu, near)
        if part.any():
            facts[:, part] = bulk(mu[part], near[part])
    return facts[0], facts[1], facts[2]


def _narrow(mu: Floats, near: Floats) -> tuple[Floats, Floats, Floats]:
    """Integrate -erfcx' = 2/sqrt(pi) - 2 y erfcx(y) over [y, y + h] with four Gauss nodes; for small mu."""
    y, h = near / ROOT2, mu / ROOT2
    total = np.zeros(mu.shape)
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        at = y + h * ((1 + node) / 2)
        total += weight * (SLOPE - 2 * at * erfcx(at))
    bulk = total * h / 2
    # Four nodes are exact to order 7; over h <= 0.05 the rest is below 2^-50 of the whole.
    log_delta, error = _logged(y, bulk, ULPS * (4 * SLOPE / total))
    return log_delta, error, -mu * erfcx(y + h) / bulk


def _wide(mu: Floats, near: Floats) -> tuple[Floats, Floats, Floats]:
    """Subtract the two tails; for mu that is not small, so that little cancels."""
    y, far = near / ROOT2, (near + mu) / ROOT2
    left = y < 0
    first, second = erfcx(np.maximum(y, 0.0)), erfcx(far)
    if left.any():
        first[left], second[left] = 2 * ndtr(-near[left]), second[left] * np.exp(-(y[left] ** 2))
    bulk = first - second
    error = ULPS * (first + second * (1 + y * y * left)) / bulk
    log_delta, error = _logged(np.maximum(y, 0.0), bulk, error)
    return log_delta, error, -mu * second / bulk


def _logged(y: Floats, bulk: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return log(exp(-y^2) bulk / 2) and its absolute error, from the relative error of `bulk`."""
    log_bulk, square = np.log(bulk / 2), y * y
    return log_bulk - square, error + ULPS * (2 + square + np.abs(log_bulk))


def _root(mu: Floats, log_wanted: float, start: float) -> Floats:
    """Return where log delta meets log_wanted, by Newton from the right: it is concave, so no step overshoots."""
    near = np.full(mu.shape, start)
    for _ in range(STEPS):
        log_delta, _, slope = _log_gdp_delta(mu, near)
        step = (log_delta - log_wanted) / slope
        near = np.maximum(near - step, -mu / 2)
        if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(near))):
            break
    return near


def _best_order(rho: Floats, epsilon: Floats) -> Floats:
    """Return x = a - 1 of the best order for delta: the root of the rising (2x+1) rho - eps - log(1+1/x); NaN if lost.

    Newton on log x, kept between two ends that move in: log(1+1/x) <= 1/x bounds the root above, and that one below.
    """
    short = rho - epsilon
    beyond = np.maximum(-short, 0) / (2 * rho) + 1 / np.sqrt(2 * rho)
    least = np.maximum(np.maximum(-short, 0) / (2 * rho), 1 / np.expm1(np.minimum(short + 2 * rho * beyond, 700.0)))
    low, high = np.log(least) - 1e-9, np.log(beyond) + 1e-9
    at = high
    for _ in range(STEPS):
        x = np.exp(at)
        above = 2 * rho * x + short - np.log1p(1 / x)
        low, high = np.where(above > 0, low, at), np.where(above > 0, at, high)
        aimed = at - above / (2 * rho * x + 1 / (1 + x))
        following = np.where((aimed > low) & (aimed < high), aimed, (low + high) / 2)
        moved, at = np.abs(following - at), following
        if np.all(moved <= 1e-9):
            break
    return np.where(moved <= CLOSE, np.exp(at), np.nan)


def _exp_up(logs: Floats, error: Floats) -> Floats:
    """Return exp(logs) raised by its error, never zero; where it vanishes or passes one no more need be known."""
    error[np.isneginf(logs) | (logs + error < VANISHED) | (logs - error > 0)] = 0.0
    values = np.exp(logs) * (1 + 2 * error)
    tiny = values < SMALLEST
    values[tiny] = np.nextafter(np.nextafter(np.exp(logs + error)[tiny], 1.0), 1.0)
    return values


def _settle(values: Floats, error: Floats, exactly: Callable[[int], float]) -> None:
    """Overwrite the values whose error bound is too large by what the scalar function says."""
    for i in np.flatnonzero(~(error <= MARGIN)).tolist():
        values[i] = exactly(i)


def _in_order(values: Floats, *arguments: tuple[Floats, int]) -> Floats:
    """Raise values by their last digits so that they are monotone in an argument when the others are constant."""
    for i, (argument, direction) in enumerate(arguments):
        others = [other for j, (other, _) in enumerate(arguments) if j != i]
        if values.size > 1 and all(np.ptp(other) == 0 for other in others):
            flat = values.reshape(-1)
            order = np.argsort(direction * argument.reshape(-1), kind="stable")
            flat[order] = np.maximum.accumulate(flat[order])
    return values
