"""The conversions of theory.md 2: its figures, independent references, and the direction of every rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from work import calls_of

from farthing.privacy import convert
from farthing.privacy.convert.search import least_float, most_farthings
from farthing.privacy.loss import Gdp
from farthing.rounding import FARTHING

DELTA = 1e-6
CHECKED = [
    # epsilon, rho by the classic conversion, sharper zCDP over it, exact GDP over it
    (0.1, 0.0001803, 1.781, 2.104),
    (0.5, 0.0044438, 1.495, 1.733),
    (1.0, 0.017469, 1.394, 1.604),
    (2.0, 0.067574, 1.305, 1.487),
    (5.0, 0.38535, 1.202, 1.351),
    (10.0, 1.353, 1.138, 1.262),
]


@pytest.mark.parametrize(("epsilon", "classic", "sharper", "exact"), CHECKED)
def test_what_the_same_epsilon_buys(epsilon: float, classic: float, sharper: float, exact: float) -> None:
    """The table of rho at delta 1e-6 comes out to every digit that the theory prints."""
    base = convert.zcdp_from_epsilon_classic(epsilon, DELTA)

    assert classic == pytest.approx(float(base), rel=5e-5)
    assert sharper == pytest.approx(float(convert.zcdp_from_epsilon(epsilon, DELTA) / base), abs=6e-4)
    assert exact == pytest.approx(float(convert.gdp_from_epsilon(epsilon, DELTA) / 2 / base), abs=6e-4)


@pytest.mark.parametrize(("rho", "exact", "classic", "sharper"), [
    (0.01, 0.575055, 0.753384, 0.621693),
    (0.1, 1.994527, 2.450788, 2.141939),
    (1.0, 7.286081, 8.433844, 7.766217),
    (2.0, 10.997151, 12.513044, 11.688596),
])  # fmt: skip
def test_epsilons_of_a_rho(rho: float, exact: float, classic: float, sharper: float) -> None:
    """Three roads from rho to epsilon agree with independently measured peers to six digits."""
    assert exact == pytest.approx(convert.gdp_epsilon(2 * Fraction(rho), DELTA), abs=6e-7)
    assert classic == pytest.approx(convert.zcdp_epsilon_classic(rho, DELTA), abs=6e-7)
    assert sharper == pytest.approx(convert.zcdp_epsilon(rho, DELTA), abs=6e-7)


def reference_gdp_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu), at 60 digits."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", [0.001, 0.03, 0.3, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5, 3.0, 40.0])
def test_gdp_delta_is_never_below_the_truth(mu: float, epsilon: float) -> None:
    """Delta is at least a 60-digit reference, and within 1e-9 of it."""
    with mp.workdps(60):
        truth = reference_gdp_delta(mp.mpf(mu), mp.mpf(epsilon))
        ours = mp.mpf(convert.gdp_delta(Fraction(mu) ** 2, epsilon))
        assert ours >= truth
        assert ours <= max(truth * (1 + mp.mpf("1e-9")), mp.mpf("1e-300"))


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_gdp_epsilon_keeps_its_promise(mu: float, delta: float) -> None:
    """The epsilon returned has at most that delta, and an epsilon 1e-9 lower has more."""
    epsilon = convert.gdp_epsilon(Fraction(mu) ** 2, delta)
    with mp.workdps(60):
        assert reference_gdp_delta(mp.mpf(mu), mp.mpf(epsilon)) <= delta
        if epsilon:
            assert reference_gdp_delta(mp.mpf(mu), mp.mpf(epsilon) * (1 - mp.mpf("1e-9"))) > delta


def test_gdp_budget_is_the_last_farthing_that_fits() -> None:
    """One farthing more than the budget would break (epsilon, delta)."""
    mu_squared = convert.gdp_from_epsilon(1, DELTA)

    assert convert.gdp_delta(mu_squared, 1) <= DELTA
    assert convert.gdp_delta(mu_squared + Fraction(1, 1 << 40), 1) > DELTA


def test_zcdp_delta_and_epsilon_agree() -> None:
    """Delta at the epsilon of delta is delta again, from above."""
    for rho in (0.001, 0.05, 1.5):
        epsilon = convert.zcdp_epsilon(rho, DELTA)
        assert pytest.approx(DELTA, rel=1e-6) == convert.zcdp_delta(rho, epsilon)


def test_pure_prices() -> None:
    """Pure and bounded-range prices match theory: tight tanh, randomised response, five per cent below eta^2/8."""
    with mp.workdps(90):
        for epsilon in (0.01, 1.0, 6.0):
            assert convert.pure_zcdp(epsilon) >= epsilon * mp.tanh(mp.mpf(epsilon) / 2)
            mu = mp.sqrt(mp.mpf(convert.pure_gdp(epsilon).numerator) / convert.pure_gdp(epsilon).denominator)
            total_variation = 2 * mp.ncdf(mu / 2) - 1
            assert total_variation >= mp.tanh(mp.mpf(epsilon) / 2)
            assert float(total_variation) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    assert 0.95 == pytest.approx(convert.bounded_range_zcdp(2) / 0.5, abs=0.01)
    assert convert.bounded_range_zcdp(0.3) <= 0.3**2 / 8
    # In a GDP ledger small pure mechanisms cost pi/2 times their zCDP price.
    assert math.pi / 2 == pytest.approx(float(convert.pure_gdp(1e-3)) / 2 / convert.pure_zcdp(1e-3), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_geometric_price_bounds_every_order(epsilon: float, steps: int) -> None:
    """The zCDP price of two-sided geometric noise bounds D_a / a for orders up to 2000, and order 1 attains it."""
    price = convert.geometric_zcdp(epsilon, steps)
    t = epsilon / steps
    k = range(-int(60 / t) - steps, int(60 / t) + steps)

    def divergence(order: float) -> float:
        log_mass = [-t * abs(i) for i in k]
        log_shift = [-t * abs(i - steps) for i in k]
        log_norm = math.log(math.tanh(t / 2))
        exponents = [order * p + (1 - order) * q + log_norm for p, q in zip(log_mass, log_shift, strict=True)]
        top = max(exponents)
        return (top + math.log(sum(math.exp(e - top) for e in exponents))) / (order - 1)

    ratios = [divergence(order) / order for order in (1.0001, 1.01, 1.5, 2, 8, 64, 2000)]
    assert max(ratios) <= price * (1 + 1e-9)
    assert price == pytest.approx(ratios[0], rel=1e-3)


def test_continuous_laplace_would_undercharge() -> None:
    """Pricing the integer noise as continuous Laplace undercharges by up to a third: the bug this formula prevents."""
    excess = [convert.geometric_zcdp(e, steps=1) / (e + math.exp(-e) - 1) - 1 for e in (0.5, 1, 1.5, 2, 2.5, 3, 4)]

    assert min(excess) > 0
    assert 0.34 == pytest.approx(max(excess), abs=0.01)


def test_extremes_do_not_overflow() -> None:
    """Tiny and huge losses convert without overflow, underflow or delay."""
    assert 0.0 == convert.gdp_delta(0, 1)
    assert 0.0 < convert.gdp_delta(1, 200) < 1e-300
    assert convert.gdp_epsilon(10**4, DELTA) == pytest.approx(5474.3655, abs=1e-3)
    assert math.isfinite(convert.zcdp_epsilon(1e6, DELTA))
    assert convert.pure_gdp(500) > 1000
    assert 0.0 == convert.pure_delta(1, 2)
    assert convert.pure_delta(1, 0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e), rel=1e-12)


def test_a_loss_that_was_converted_is_not_converted_again():
    """Every answer of a server tells the same few losses: the search runs once for each of them."""
    loss = Gdp(0.1234567)
    first = loss.epsilon(delta=DELTA)
    again = []

    assert calls_of(lambda: again.append(loss.epsilon(delta=DELTA))) < 300  # one search is 10,000 and more
    assert again == [first]


@pytest.mark.parametrize("most", [0, 1, 2, 1023, 1024, (1 << 40) + 7, (1 << 70) - 1])
def test_where_a_search_begins_changes_no_price(most: int) -> None:
    """Whatever the guess, far below, near or far above: the last farthing that fits is found."""
    guesses = (0, 1, most, most + 1, max(most - 1, 0), 3 * most, most // 1000, most + (most >> 40), 1 << 90)
    for near in guesses:
        assert most * FARTHING == most_farthings(lambda loss: loss <= most * FARTHING, near * FARTHING)


@pytest.mark.parametrize("near", [0.0, 1e-30, 0.1, 0.7 - 1e-14, 0.7, 0.7 + 1e-12, 0.69, 900.0, math.inf, math.nan])
def test_where_a_search_begins_changes_no_float_by_much(near: float) -> None:
    """The float that is found satisfies what is asked, and is the least one up to 1e-13."""
    found = least_float(lambda x: x >= 0.7, 0.0, 1000.0, near)

    assert 0.7 <= found <= 0.7 * (1 + 2e-13)
