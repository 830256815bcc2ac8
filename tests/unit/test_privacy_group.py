"""Group privacy: each rule against an independent computation on chains of neighbours, and the tighter road."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import pytest

from farthing.errors import InvalidBudget
from farthing.privacy import Approx, BoundedRange, Gdp, Pure, Rdp, Tcdp, Zcdp, convert
from farthing.privacy.group import approx_group_delta, generic_epsilon, guarantee, renyi_group

DELTA = 1e-6


def divergence(p, q, order):
    """Return the Renyi divergence of two finite laws."""
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


def chain(k, tilt):
    """Return k + 1 laws on five points, each a tilt of the one before: neighbours of neighbours."""
    laws = []
    for j in range(k + 1):
        weights = [math.exp(tilt * j * x + 0.1 * math.sin(3 * j + x)) for x in range(5)]
        laws.append([weight / sum(weights) for weight in weights])
    return laws


def test_the_formulas():
    """Groups cost k epsilon, k mu, k^2 rho, k eta, (k^2 rho, omega/k), and the geometric sum for delta."""
    assert Pure(3) == Pure(1).for_group(3)
    assert Gdp(3) == Gdp(1).for_group(3)
    assert Zcdp(9) == Zcdp(1).for_group(3)
    assert BoundedRange(3) == BoundedRange(1).for_group(3)
    assert Tcdp(9, 8) == Tcdp(1, 24).for_group(3)
    assert Fraction(3, 8) == approx_group_delta(0, Fraction(1, 8), 3)
    for kind in (Pure(1), Gdp(1), Zcdp(1), BoundedRange(1), Tcdp(1, 24), Approx(1, 1e-6), Rdp(8, 1)):
        assert kind == kind.for_group(1)


@pytest.mark.parametrize("k", [2, 3, 30])
def test_the_delta_of_a_group(k):
    """It is delta (e^(k eps) - 1)/(e^eps - 1) at 90 digits, never below."""
    with mp.workdps(90):
        for epsilon in (1e-9, 0.1, 1.0):
            e = mp.mpf(epsilon)
            truth = mp.mpf(1e-9) * mp.fsum(mp.exp(j * e) for j in range(k))
            ours = approx_group_delta(epsilon, 1e-9, k)
            assert 0 <= mp.mpf(ours.numerator) / ours.denominator - truth <= truth * mp.mpf("1e-40")


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("tilt", [0.05, 0.4])
def test_renyi_groups_hold_on_chains(k, tilt):
    """What the rule says of the ends of a chain is never below their divergence, with every step's curve exact."""
    laws = chain(k, tilt)

    def curve(order):
        return Fraction(max(max(divergence(p, q, order), divergence(q, p, order)) for p, q in pairwise(laws)))

    for top in (k + 1.5, 2.0 * k, 8.0 * k):
        order, tau = renyi_group(Fraction(top), k, lambda a: curve(float(a)))
        assert divergence(laws[0], laws[-1], float(order)) <= tau * (1 + Fraction(1, 10**9))
        assert divergence(laws[-1], laws[0], float(order)) <= tau * (1 + Fraction(1, 10**9))


def test_renyi_groups_are_exact_for_the_line():
    """For a line the rule gives k^2 rho a: what the Gaussian has; for one order it is near k tau, not 3^log2(k) tau."""
    assert (Fraction(8), 9 * Fraction(1, 10) * 8) == renyi_group(Fraction(24), 3, lambda a: a / 10)
    alone = Rdp(64, 1).for_group(4)
    assert Fraction(16) == alone.orders[0]
    assert 4 < alone.curve[0][1] < 4.2
    written, line = Gdp(0.3).to(Rdp).for_group(4), Gdp(0.3).for_group(4).to(Zcdp)
    assert line.amount * 8 <= written.bound(Fraction(8)) <= Fraction(101, 100) * line.amount * 8


@pytest.mark.parametrize("k", [2, 7, 30])
@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5])
def test_the_gaussian_curve_beats_the_generic_formula(mu, k):
    """The exact curve at k mu is never above the generic formula, and says the truth, to 50 digits."""
    said = guarantee(Gdp(mu), k, delta=DELTA)
    generic = generic_epsilon(Gdp(mu), k, DELTA)

    assert "curve" == said.road
    assert said.epsilon == Gdp(k * Fraction(mu)).epsilon(DELTA)
    assert generic is None or said.epsilon <= generic
    with mp.workdps(50):
        m, e = k * mp.mpf(mu), mp.mpf(said.epsilon)
        delta = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m) if e else 2 * mp.ncdf(m / 2) - 1
        assert delta <= mp.mpf(DELTA)


def test_a_group_of_a_month_by_two_roads():
    """What the curve saves over the generic formula, in figures; at 30 units the generic formula has nothing to say."""
    week = guarantee(Gdp(0.1), 7, delta=DELTA)

    assert week.epsilon == pytest.approx(3.270558, abs=1e-6)
    assert week.generic == pytest.approx(3.340437, abs=1e-6)
    assert "generic formula would say" in str(week)
    fixed = Approx(Gdp(0.1).epsilon(DELTA), DELTA).for_group(7)  # one unit's promise, at the same delta
    assert fixed.slack > 4 * DELTA


def test_the_generic_road_where_it_is_the_only_one():
    """An approximate loss goes by the generic formula, as does one whose curve says nothing of groups."""
    said = guarantee(Approx(0.1, 1e-9), 3, delta=1e-6)
    assert said.epsilon <= 0.3 * (1 + 1e-9)
    assert "generic" in guarantee(Zcdp(0.01, delta=1e-9), 2, delta=1e-3).road
    for loss in (Approx(1, 1e-3), Rdp(3, 0.01)):
        with pytest.raises(InvalidBudget):
            guarantee(loss, 4, delta=1e-6)


def test_no_group():
    """A group is a whole number of units, and one that is too large is told so."""
    for bad in (0, -1, 1.5, True, "3", None):
        for loss in (Pure(1), Gdp(1), Zcdp(1), Approx(1, 1e-6), BoundedRange(1), Tcdp(1, 8), Rdp(8, 1)):
            with pytest.raises(InvalidBudget, match="whole number"):
                loss.for_group(bad)
    for loss in (Approx(1, 1e-6), Tcdp(1, 8), Rdp(8, 1)):
        with pytest.raises(InvalidBudget, match="this large"):
            loss.for_group(20)
    with pytest.raises(InvalidBudget):
        guarantee(Gdp(1), 3, delta=0)


def test_composition_is_no_group_privacy():
    """Here k releases about one unit cost k rho; one release for k units costs k^2 rho."""
    k, one = 5, Gdp(0.2)

    assert (one * k).amount == k * one.amount
    assert one.for_group(k).amount == k * (one * k).amount
    assert convert.gdp_delta(one.for_group(k).amount, 1) > 10 * convert.gdp_delta((one * k).amount, 1)
