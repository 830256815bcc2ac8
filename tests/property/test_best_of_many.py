"""The price of the best of many candidates, on random finite candidates and by exact enumeration."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.mechanisms import BestOfMany
from farthing.mechanisms.best_of_many import _factors
from farthing.privacy import Pure, Zcdp
from farthing.privacy.renyi import Rdp

ORDERS = (1.125, 1.5, 2, 4, 16, 64)


def counting(many):
    """Return the chances that 1 ... runs runs count, by the definition."""
    factors = [float(each) for each in _factors(many.runs, many.shape, many._fading)]
    weights = np.cumprod([1.0, *factors])
    return weights / weights.sum()


def best(law, chances):
    """Return the law of the best of many draws, whose number has these chances; outcomes rise in score."""
    ends = np.append(0.0, np.minimum(np.cumsum(law), 1))
    return np.diff(np.polynomial.polynomial.polyval(ends, np.append(0.0, chances)))


def neighbours(rng, epsilon):
    """Return two laws of a few outcomes whose log-ratios are within epsilon, often at its ends."""
    size = int(rng.integers(2, 7))
    first = rng.dirichlet(np.full(size, 10 ** rng.uniform(-1.5, 1))) + 1e-9
    lift = np.exp(epsilon * rng.choice([-0.5, 0.5, *rng.uniform(-0.5, 0.5, 2)], size))
    return first / first.sum(), first * lift / (first * lift).sum()


def renyi(first, second, order):
    """Return the Renyi divergence of one order."""
    terms = np.log(first) * order + np.log(second) * (1 - order)
    return (terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1)


@pytest.mark.parametrize("law", ["logarithmic", "steep", "uniform"])
def test_pure_runs_cost_two_and_the_shape_times(law):
    """Over random pairs the best of any number of runs keeps the price; whatever the fading."""
    rng, worst = np.random.default_rng(31), 0.0
    for _ in range(400):
        many = BestOfMany(int(rng.choice([1, 2, 7, 100, 700])), law, fading=Fraction(1, int(rng.choice([3, 50, 5000]))))
        chances, price = counting(many), float(many.price(Pure(1), Pure).amount)
        lost = np.log(np.divide(*(best(each, chances) for each in neighbours(rng, 1.0))))
        worst = max(worst, np.abs(lost).max() / price)

    assert worst <= 1 + 1e-9


@pytest.mark.parametrize(("law", "less"), [("uniform", 2.5), ("logarithmic", 1.7), ("steep", 1.25)])
def test_the_price_of_pure_runs_is_needed(law, less):
    """What is above a result is rarer by e where the result is likelier by e: nearly the whole price is lost."""
    many, above, there = BestOfMany(2000, law, fading=Fraction(1, 10**6)), 0.02, 1e-6
    chances, r = counting(many), np.e
    laws = [np.array([1 - above - r * there, r * there, above]), np.array([1 - r * above - there, there, r * above])]
    lost = np.log(np.divide(*(best(each, chances) for each in laws)))

    assert np.abs(lost).max() > less


def test_divergences_keep_the_curve_and_the_line():
    """Runs with a known curve: the best keeps the told one at every order, and the told zCDP."""
    rng = np.random.default_rng(32)
    for _ in range(250):
        first, second = neighbours(rng, float(10 ** rng.uniform(-1, 0.5)))
        pair = ((first, second), (second, first))
        curve = Rdp({order: max(renyi(*each, order) for each in pair) + 1e-12 for order in ORDERS})
        rho = max(renyi(*each, order) / order for each in pair for order in (*ORDERS, 1.0001, 1000)) + 1e-9
        many = BestOfMany(int(rng.choice([2, 30, 400])), str(rng.choice(["logarithmic", "steep", "uniform"])))
        chances = counting(many)
        told, line = many.renyi(curve), float(many.price(Zcdp(rho), Zcdp).amount)
        for one, other in pair:
            laws = best(one, chances), best(other, chances)
            for order in ORDERS:
                assert renyi(*laws, order) <= told.tau(order) + 1e-9
                assert renyi(*laws, order) <= order * line + 1e-9


def test_a_candidate_that_may_fail_costs_its_delta_as_often_as_it_counts():
    """Runs that tell all with chance delta: the best tells all as often as was said, and not twice as rarely."""
    many, delta = BestOfMany(50), 1e-3
    laws = [np.array([0.5 * (1 - delta), 0.5 * (1 - delta), *last]) for last in ((delta, 0.0), (0.0, delta))]
    seen = [best(law, counting(many)) for law in laws]
    over = max(0.0, float((seen[0] - np.exp(2 * 1e-9) * seen[1]).clip(0).sum()))
    told = many.counted * delta

    assert told / 2 < over <= told
