"""The divergences of Algorithm 1: the values computed elsewhere, the limits that are proved, and planted bugs."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from sweeps import sweep

from farthing.mechanisms import TwoStage
from farthing.mechanisms.product import ProductPair
from farthing.privacy.evaluator import Divergences

pytestmark = pytest.mark.thorough

PROBLEM = TwoStage(sigma=10, relative=0.3)
RHO = 1 / 200
CHECKED = [
    (100, 2, ".109"), (100, 32, ".159"), (100, 300, ".404"), (100, 1e4, ".497"),
    (500, 8, ".0053"), (500, 100, ".008"), (500, 1000, ".300"), (500, 1e4, ".477"), (500, 1e5, ".498"),
    (1000, 8, ".0013"), (1000, 64, ".0015"),
]  # fmt: skip
"""Size, order, and D_a / a over rho to the digits that were printed; computed independently of this code."""


@pytest.mark.parametrize(("x", "order", "printed"), CHECKED)
def test_the_checked_values_are_reproduced(x, order, printed):
    """Each value agrees with the printed one to its last digit."""
    found = PROBLEM.renyi(x, order) / order / RHO

    assert printed == f"{found:.{len(printed) - 1}f}".removeprefix("0")


def density(y, x, sigma, relative):
    """Return the density of Y at y, by scipy, straight from Algorithm 1."""

    def joint(at):
        second = max(abs(relative * at), 1e-9)
        return np.exp(-(((at - x) / sigma) ** 2) / 2 - ((y - at) / second) ** 2 / 2) / (2 * np.pi * sigma * second)

    points = sorted({x - 12 * sigma, x - 3 * sigma, x, x + 3 * sigma, x + 12 * sigma, -1e-9, 1e-9, y / 2, y})
    return sum(quad(joint, a, b, epsabs=0, epsrel=1e-11, limit=300)[0] for a, b in pairwise(points))


@pytest.mark.parametrize("y", [0.5, 30.0, 130.0, 250.0, -5.0, -30.0])
def test_the_density_is_that_of_the_algorithm(y):
    """The density in log coordinates and the log-ratio agree with plain quadrature of the two stages as they stand."""
    x, sigma, relative = 60.0, 10.0, 0.3
    pair = ProductPair(x, sigma, relative)
    base, ratio = (float(each[0]) for each in pair._rows(np.array([np.log(abs(y) / pair.unit)]), int(np.sign(y))))
    here, there = density(y, x, sigma, relative), density(y, x + 1, sigma, relative)

    assert base == pytest.approx(np.log(here * abs(y)), abs=1e-8)
    assert ratio == pytest.approx(np.log(there / here), abs=1e-8)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", sweep([32.5, 33], [0, 20, 32.5, 32.6, 33, 500]))
def test_growing_orders_reach_the_limits_of_the_theorem(x, reverse):
    """D_a / a at orders 10^4 to 10^6 approaches the closed-form limit, at every kind of size and both ways."""
    limit = PROBLEM.limit(x, reverse=reverse)
    gaps = [abs(PROBLEM.renyi(x, order, reverse=reverse) / order - limit) / RHO for order in (1e4, 1e5, 1e6)]

    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]
    assert 4e-4 > gaps[2]


def test_a_wrong_direction_is_seen():
    """The two directions differ a hundredfold at high orders, and by the theorem only one of them vanishes."""
    there, back = (PROBLEM.renyi(500, 1e4, reverse=way) / 1e4 / RHO for way in (False, True))

    assert 0.47 < there < 0.5
    assert 2e-4 > back


def test_strict_loss_does_not_fall_with_the_size_while_bounded_orders_do():
    """At order 10^6 a group of 3,000 has lost as much as one of 30; at order 2 it has 1/6,000 of that."""
    strict = [PROBLEM.renyi(x, 1e6) / 1e6 / RHO for x in (30, 3000)]
    bounded = [PROBLEM.renyi(x, 2.0) / 2 / RHO for x in (30, 3000)]

    assert strict == pytest.approx([0.5, 0.5], abs=0.01)
    assert bounded[0] > 3000 * bounded[1]


@pytest.mark.parametrize("relative", [0.05, 0.3])
def test_bounded_orders_are_near_the_ideal(relative):
    """At x = 10^5 and order 2 the loss is 1 + 2 r^2 times that of a Gaussian that knew x: the scale tells a little."""
    x = 10**5
    ideal = 1 / (2 * (100 + relative**2 * (x**2 + 100)))

    assert 1 + 2 * relative**2 == pytest.approx(TwoStage(10, relative).renyi(x, 2.0) / 2 / ideal, rel=1e-3)


class ForgotSide(ProductPair):
    """A planted bug: the second stage's density divided by r, not by r |X|."""

    def _exponent(self, u, v, side, sign, centre):
        return super()._exponent(u, v, side, sign, centre) + v


def test_a_dropped_factor_is_seen():
    """Without |X| in the second density the laws no longer have mass one, and the checked values are missed."""
    right = Divergences(ProductPair(100.0, 10.0, 0.3).branches())
    wrong = Divergences(ForgotSide(100.0, 10.0, 0.3).branches())

    assert 0.159 == pytest.approx(right.renyi(32).value / 32 / RHO, abs=5e-4)
    assert abs(wrong.renyi(32).value / 32 / RHO - 0.159) > 0.01


def test_the_mass_is_one():
    """At epsilon 0 delta is the same both ways, which it is if and only if both laws have the same mass."""
    for x in (0.0, 5.0, 100.0, 1e6):
        laws = PROBLEM.divergences(x)
        there, back = laws.hockey_stick(0.0), laws.hockey_stick(0.0, reverse=True)
        assert there.value == pytest.approx(back.value, rel=1e-7)
