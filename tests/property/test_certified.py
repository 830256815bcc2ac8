"""Certified divergences: Gaussians against closed forms, the product against what is measured, and planted bugs."""

import math

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from farthing.errors import InvalidBudget
from farthing.mechanisms import TwoStage
from farthing.mechanisms.product import ProductPair
from farthing.mechanisms.product_balls import ProductBalls
from farthing.privacy.certified import CertifiedDivergences, Cover


class Shifted:
    """N(mu, 1) as P against N(0, 1) as Q; `lost` times what is beyond the ends is owned up to."""

    def __init__(self, mu, lost=1):
        self.mu, self.lost = flint.arb(mu), lost

    def densities(self, u, _piece, _bits):
        scale = 1 / (2 * flint.arb.pi()).sqrt()
        return (-u * u / 2).exp() * scale, (-((u - self.mu) ** 2) / 2).exp() * scale

    def cover(self, order, least, *, reverse):
        """The moment has its mass around a mu, or (1 - a) mu; both laws around 0 and mu."""
        a, mu = flint.arb(order), self.mu
        tilted = (1 - a) * mu if reverse else a * mu
        reach = math.sqrt(2 * max(1.0, -math.log(least) + float(a * a * mu * mu)))
        ends = float((min(tilted, flint.arb(0)) - reach).mid()), float((max(tilted, mu) + reach).mid())
        outside = flint.arb(0)
        for mean in (tilted, flint.arb(0), mu):
            for gap in (mean - flint.arb(ends[0]), flint.arb(ends[1]) - mean):
                outside += (gap / flint.arb(2).sqrt()).erfc()
        steps = math.ceil(ends[1] - ends[0])
        edges = tuple(ends[0] + (ends[1] - ends[0]) * i / steps for i in range(steps + 1))
        return Cover((edges,), outside * (a * (a - 1) * mu * mu / 2).exp() * self.lost)


@settings(max_examples=5)
@given(st.floats(1.01, 12.0), st.floats(1e-3, 1.0), st.booleans())
def test_the_ends_hold_the_divergence_of_gaussians(order, mu, reverse):
    """D_a of N(mu, 1) against N(0, 1) is a mu^2/2; the ends are a part in 10^7 apart where that was expected."""
    exact = order * mu * mu / 2
    for near in (exact, 2 * exact):
        found = CertifiedDivergences(Shifted(mu)).renyi(order, reverse=reverse, near=near)
        assert found.lower <= exact * (1 + 1e-15)
        assert exact * (1 - 1e-15) <= found.upper
        assert near > exact or found.upper - found.lower <= 1e-7 * exact


@settings(max_examples=5)
@given(st.floats(0.05, 2.0), st.floats(0.0, 3.0), st.booleans())
def test_the_ends_hold_the_profile_of_gaussians(mu, epsilon, reverse):
    """Delta is that of Gaussian differential privacy, in both directions, however small."""
    exact = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    found = CertifiedDivergences(Shifted(mu)).hockey_stick(epsilon, reverse=reverse, near=max(exact, 1e-30))

    assert found.lower <= exact + 1e-15
    assert exact - 1e-15 <= found.upper
    assert found.upper - found.lower <= 1e-7 * max(exact, 1e-30)


@pytest.mark.parametrize("order", [1.0, 0.5, math.nan, math.inf])
def test_orders_that_are_none_are_refused(order):
    """Orders from 1 down have no value, and neither has infinity."""
    with pytest.raises(InvalidBudget, match="the order is out of range"):
        CertifiedDivergences(Shifted(1.0)).renyi(order, near=1.0)


def test_orders_of_too_large_moments_have_no_certificate():
    """A product at sigma 1 has no certificate at order 100, and the measured value is named in its place."""
    with pytest.raises(InvalidBudget, match="too high for a certificate") as error:
        ProductBalls(10.0, 1.0, 0.3).cover(100.0, 1e-9, reverse=False)

    assert "the measured value" in str(error.value)


@pytest.mark.parametrize(("u", "piece"), [(0.05, 0), (-0.8, 0), (-3.0, 0), (-0.5, 1), (-4.0, 1)])
def test_densities_of_the_product_are_those_that_are_measured(u, piece):
    """Balls of both densities hold what float64 finds, to twelve digits; those of wide balls hold those of points."""
    balls = ProductBalls(100.0, 10.0, 0.3)
    base, ratio = (float(each[0]) for each in ProductPair(100.0, 10.0, 0.3)._rows(np.array([u]), 1 - 2 * piece))
    with flint.ctx.workprec(120):
        here, there = balls.densities(flint.acb(u), piece, 60)
        wide = balls.densities(flint.acb(flint.arb(u, 0.02), flint.arb(0, 0.02)), piece, 60)
        assert math.exp(base) == pytest.approx(float(here.real), rel=1e-11)
        assert math.exp(base + ratio) == pytest.approx(float(there.real), rel=1e-11)
        assert float(here.real.rad()) < 1e-16 * float(here.real.mid())
        assert wide[0].contains(here)
        assert wide[1].contains(there)


def test_outside_the_strip_a_density_has_no_value():
    """Where the bounds of the trapezoids do not hold, nothing is claimed."""
    balls = ProductBalls(100.0, 10.0, 0.3)

    assert not balls.densities(flint.acb(0, 0.31), 0, 60)[0].is_finite()
    assert not balls.densities(flint.acb(flint.arb(0, 0.6)), 0, 60)[0].is_finite()


def test_what_is_left_out_of_the_product_is_bounded():
    """The bounds of the mass near zero and far out are above the shares of draws, and not idle."""
    rng = np.random.default_rng(7)
    balls = ProductBalls(30.0, 10.0, 0.3)
    drawn = np.abs((30 + 10 * rng.standard_normal(400_000)) * (1 + 0.3 * rng.standard_normal(400_000)))
    for bound, share in ((balls._near, (drawn < 3).mean()), (balls._far, (drawn > 75).mean())):
        size = flint.arb(3 if bound == balls._near else 75)
        least = min(float(bound(flint, size, (cut, 30.0)).upper()) for cut in np.geomspace(1, 100, 60))
        assert share < least < 40 * share + 0.01


@pytest.mark.slow
def test_the_measured_divergence_of_the_product_is_certified():
    """The ends hold what the quadrature measures, 10^-8 of it apart: its value lies on neither side of the truth."""
    mechanism = TwoStage(sigma=10, relative=0.3)
    found, measured = mechanism.certified_renyi(100.0, 8.0), mechanism.renyi(100.0, 8.0)

    assert found.lower <= measured <= found.upper
    assert found.upper - found.lower <= 1e-8 * measured


@pytest.mark.slow
def test_the_measured_delta_of_the_product_is_certified():
    """So do those of delta at an epsilon, in the worse direction."""
    mechanism = TwoStage(sigma=10, relative=0.3)
    found, measured = mechanism.certified_delta(100.0, 0.1), mechanism.delta(100.0, 0.1)

    assert found.lower <= measured <= found.upper
    assert found.upper - found.lower <= 3e-8 * measured


def test_forgetting_what_is_outside_is_seen():
    """Ends that are too near together, and not owned up to, make the upper end too low."""

    class Short(Shifted):
        def cover(self, order, least, *, reverse):
            whole = super().cover(order, least, reverse=reverse)
            return Cover(tuple(tuple(u for u in edges if -3 < u < 3) for edges in whole.edges), whole.outside)

    exact = 2 * 1.0 / 2
    found = CertifiedDivergences(Short(1.0, lost=0)).renyi(2.0, near=exact)

    assert found.upper < exact
