"""Our conversions beside dp-accounting's and OpenDP's: where they differ, who is right and why."""

import math
from fractions import Fraction

import dp_accounting
import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import pld, rdp

from farthing.privacy import Approx, BoundedRange, Gdp, Pure, Zcdp, convert
from farthing.privacy.profile import randomised_response, two_sided_geometric

DELTA = 1e-6
RHOS = [0.01, 0.1, 1.0, 2.0]


@pytest.fixture(scope="module", autouse=True)
def _contrib():
    dp.enable_features("contrib")


def opendp_zcdp_epsilon(rho, delta):
    """Return OpenDP's epsilon for rho-zCDP at delta."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta)
    return fixed.map(1.0)[0]


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
def test_gaussian_epsilon_beside_dp_accounting(mu):
    """dp-accounting solves the same exact equation in floats, a hair below the root; ours is never below."""
    theirs, ours = dp_accounting.get_epsilon_gaussian(1 / mu, DELTA), Gdp(mu).epsilon(DELTA)

    assert theirs == pytest.approx(ours, rel=1e-6)
    assert ours >= theirs * (1 - 1e-15)


def test_gaussian_epsilon_beside_their_loss_distribution():
    """A discretised loss distribution, rounded the safe way, lies above the exact curve and closes in on it."""
    ours = Gdp(1).epsilon(DELTA)
    coarse, fine = (
        pld.privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=step)
        .get_epsilon_for_delta(DELTA)
        for step in (1e-2, 1e-3)
    )  # fmt: skip

    assert ours <= fine <= coarse
    assert fine == pytest.approx(ours, rel=1e-4)


@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_epsilon_beside_opendp(rho):
    """OpenDP minimises the same bound over all orders: equal up to its float search."""
    assert opendp_zcdp_epsilon(rho, DELTA) == pytest.approx(Zcdp(rho).epsilon(DELTA), rel=1e-6)


@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_epsilon_beside_their_renyi_accountant(rho):
    """dp-accounting's RDP accountant looks at a fixed list of orders: above ours, by up to a thousandth."""
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
    theirs, ours = accountant.get_epsilon(DELTA), Zcdp(rho).epsilon(DELTA)

    assert ours <= theirs * (1 + 1e-9)
    assert theirs == pytest.approx(ours, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pure_to_zcdp_beside_opendp(epsilon):
    """OpenDP prices pure loss at epsilon^2/2, which is safe and up to twice the tight epsilon tanh(epsilon/2)."""
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    theirs = dp.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=1 / epsilon)).map(1)

    assert theirs == pytest.approx(epsilon**2 / 2, rel=1e-9)
    assert Pure(epsilon).to(Zcdp).rho < theirs
    for order in (1.0001, 2, 16, 500):  # ours is a bound: randomised response itself stays below it
        assert convert.pure_renyi(epsilon, order) <= Pure(epsilon).to(Zcdp).rho * order * (1 + 1e-9)


def test_integer_noise_is_no_continuous_laplace():
    """dp-accounting prices continuous Laplace noise; for the integer noise that we draw that would undercharge."""
    accountant = rdp.RdpAccountant(orders=[1.001])
    accountant.compose(dp_accounting.LaplaceDpEvent(noise_multiplier=1.0))
    continuous = accountant._rdp[0] / 1.001

    assert continuous == pytest.approx(1 + math.exp(-1) - 1, rel=2e-3)
    assert convert.geometric_zcdp(1, steps=1) > 1.25 * continuous


@pytest.mark.parametrize("target", [0.0, 0.3, 0.9])
def test_pure_and_approximate_curves_beside_dp_accounting(target):
    """The worst pair of an (epsilon, delta) promise is the same four-point law in both libraries."""
    for epsilon, delta in ((1.0, 0.0), (1.0, 1e-3)):
        parameters = pld.common.DifferentialPrivacyParameters(epsilon, delta)
        law = pld.privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
        theirs, ours = law.get_delta_for_epsilon(target), Approx(epsilon, delta).delta(target)

        assert theirs == pytest.approx(ours, abs=1e-4)
        assert theirs >= ours * (1 - 1e-12)


@pytest.mark.parametrize("target", [0.0, 0.25, 0.5, 0.9])
def test_discrete_laplace_curve_beside_dp_accounting(target):
    """The two-sided geometric law, summed exactly, is at most their discretised one and within its step of it."""
    theirs = pld.privacy_loss_distribution.from_discrete_laplace_mechanism(
        0.25, sensitivity=4, value_discretization_interval=1e-4
    ).get_delta_for_epsilon(target)
    ours = two_sided_geometric(1, 4).hockey_stick(target)

    assert ours <= theirs * (1 + 1e-12)
    assert theirs == pytest.approx(ours, abs=1e-4)
    assert randomised_response(1).hockey_stick(target) == pytest.approx(Pure(1).delta(target), rel=1e-12)


def test_selection_beside_opendp():
    """OpenDP prices the exponential mechanism (Gumbel noise) in zCDP as we do: eta^2/8."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    select = dp.m.make_noisy_top_k(*space, dp.zero_concentrated_divergence(), k=1, scale=2.0)

    assert BoundedRange(1).to(Zcdp).rho == pytest.approx(select.map(1), rel=1e-9)


def test_we_and_they_against_fifty_digits():
    """Fifty digits say that ours is above the truth by at most 1e-9, and OpenDP's search within 1e-6 of it."""
    with mp.workdps(50):
        for rho in map(Fraction, RHOS):
            r, log_inverse = mp.mpf(rho.numerator) / rho.denominator, -mp.log(mp.mpf(DELTA))
            x = mp.findroot(lambda x, r=r, t=log_inverse: r * x * x + mp.log1p(x) - t, mp.sqrt(log_inverse / r))
            truth = (1 + x) * r - mp.log1p(1 / x) + (log_inverse - mp.log1p(x)) / x
            ours = mp.mpf(float(convert.zcdp_epsilons([float(rho)], DELTA)[0]))
            theirs = mp.mpf(opendp_zcdp_epsilon(float(rho), DELTA))

            assert 0 <= ours / truth - 1 <= mp.mpf("1e-9")
            assert abs(theirs / truth - 1) <= mp.mpf("1e-6")
    assert np.isfinite(float(truth))
