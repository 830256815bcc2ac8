"""The evaluator against closed forms: Gaussians of any distance and width, Laplace, at any order and epsilon."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from farthing.errors import InvalidBudget
from farthing.privacy.evaluator import Branch, Divergences

orders = st.floats(1.01, 1e5)
HALF_LOG = math.log(2 * math.pi) / 2


def gaussians(mu, wide=1.0, reach=12.0):
    """Return N(mu, wide^2) against N(0, 1)."""

    def terms(u):
        base = -u * u / 2 - HALF_LOG
        return base, -(((u - mu) / wide) ** 2) / 2 - math.log(wide) - HALF_LOG - base

    return Divergences((Branch(terms, (-reach, 0.0, mu, mu + reach)),))


@settings(max_examples=40)
@given(orders, st.floats(1e-6, 3.0))
def test_shifted_gaussians_of_every_order(order, mu):
    """D_a of N(mu, 1) against N(0, 1) is a mu^2 / 2, to nine digits, within the stated error, and both ways."""
    top = order * mu
    laws = gaussians(mu, reach=12 + top)
    mirrored = Divergences((Branch(laws.branches[0].terms, (-12 - top, 0.0, mu, 12 + mu)),))
    for reverse in (False, True):
        found = (laws, mirrored)[reverse].renyi(order, reverse=reverse)
        exact = order * mu * mu / 2
        assert exact == pytest.approx(found.value, rel=1e-9)
        assert abs(found.value - exact) <= found.error + 1e-10 * exact * max(1, 1e-3 / mu)


@settings(max_examples=25)
@given(st.floats(1.01, 30.0), st.floats(-3.0, 3.0), st.floats(0.3, 0.99))
def test_gaussians_of_different_widths(order, mu, wide):
    """N(mu, w^2) against N(0, 1) with w < 1 has the textbook divergence."""
    mixed = order + (1 - order) * wide**2
    exact = order * mu**2 / (2 * mixed) - math.log(wide) - math.log(mixed) / (2 * (order - 1))
    centre = order * mu / mixed
    terms = gaussians(mu, wide).branches[0].terms
    found = Divergences((Branch(terms, (-20 + min(centre, 0), 0.0, 20 + max(centre, 0))),)).renyi(order)

    assert exact == pytest.approx(found.value, rel=1e-8, abs=1e-12)


@settings(max_examples=25)
@given(st.floats(0.05, 3.0), st.floats(0.0, 6.0))
def test_the_profile_of_gaussians(mu, epsilon):
    """Delta is that of Gaussian differential privacy, and the stated error covers the difference."""
    exact = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    found = gaussians(mu, reach=30 + epsilon / mu).hockey_stick(epsilon)

    assert exact == pytest.approx(found.value, rel=1e-6, abs=1e-15)


@given(st.floats(0.1, 4.0), st.floats(1.05, 200.0))
@settings(max_examples=25)
def test_laplace_with_its_kinks(epsilon, order):
    """Laplace noise of rate epsilon has the known divergence; kinks on edges or between them."""

    def terms(u):
        return np.log(epsilon / 2) - epsilon * np.abs(u), epsilon * (np.abs(u) - np.abs(u - 1))

    weights = (order - 1) * epsilon + math.log(order), math.log(order - 1) - order * epsilon
    exact = (np.logaddexp(*weights) - math.log(2 * order - 1)) / (order - 1)
    far = 60 / epsilon
    for edges in ((-far, 0.0, 1.0, far), (-far, -1.0, 0.3, 2.0, far)):
        found = Divergences((Branch(terms, edges),)).renyi(order)
        assert exact == pytest.approx(found.value, rel=1e-7)


def test_a_log_singularity_is_cornered():
    """A density -log|u|/2 on [-1, 1], which is infinite at 0, tilted by 1 + u/2: chi^2 = E[u^2]/4 = 1/36."""

    def terms(u):
        return np.log(-np.log(np.abs(u)) / 2), np.log1p(u / 2)

    laws = Divergences((Branch(terms, (-1 + 1e-15, 0.0, 1 - 1e-15)),))

    assert math.log(1 + 1 / 36) == pytest.approx(laws.renyi(2).value, rel=1e-8)


def test_a_peak_between_the_nodes_is_found():
    """A peak of width 10^-4, far higher than all nodes of the first panels, is reached by its slope."""

    def terms(u):
        base = -(((u - 7.123456) / 1e-4) ** 2) / 2 - HALF_LOG - math.log(1e-4)
        return base, np.full_like(u, 0.5)

    found = Divergences((Branch(terms, (-1000.0, 1000.0)),)).renyi(2)

    assert math.log(1 + math.exp(1) - 1 - 2 * (math.exp(0.5) - 1)) == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 0.5, 2e6, math.nan, math.inf])
def test_orders_that_are_none_are_refused(order):
    """Orders from 1 down and beyond the digits of a float have no value here."""
    with pytest.raises(InvalidBudget, match="the order is out of range"):
        gaussians(1.0).renyi(order)
