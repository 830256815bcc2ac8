"""Lower limits of one group, of released answers and of the mean of points."""

import math
from fractions import Fraction

import numpy as np
import pytest

import farthing
from farthing.errors import InvalidBudget
from farthing.limits import MeanPoint, chi_square, for_query, group_lower_bound
from farthing.privacy.loss import Approx, BoundedRange, Gdp, Pure, Zcdp

SIZES = np.array([1, 2, 5, 10, 100, 1e3, 1e6, 1e9])


def test_the_package_is_an_attribute():
    """farthing.limits is there without an import of its own."""
    assert group_lower_bound is farthing.limits.group_lower_bound


@pytest.mark.parametrize("relative", [0.01, 0.1, 0.3])
def test_group_bound_is_the_formula_from_below(relative):
    """log(1 + 1/(r x)^2)/2 in 60 digits is never below the bound, and hardly above."""
    import mpmath

    bound = group_lower_bound(SIZES, relative)
    with mpmath.workdps(60):
        exact = [mpmath.log(1 + 1 / (mpmath.mpf(relative) * mpmath.mpf(x)) ** 2) / 2 for x in SIZES]
        assert all(float(b) <= e <= float(b) * (1 + mpmath.mpf(10) ** -11) for b, e in zip(bound, exact, strict=True))


def test_group_bound_in_other_currencies():
    """The mu is sqrt(2 rho), and epsilon that of the worst chi-square of a pure mechanism."""
    rho = group_lower_bound(SIZES, 0.1)

    np.testing.assert_allclose(np.sqrt(2 * rho), group_lower_bound(SIZES, 0.1, kind=Gdp), rtol=1e-11)
    np.testing.assert_allclose(2 * np.arcsinh(5 / SIZES), group_lower_bound(SIZES, 0.1, kind=Pure), rtol=1e-11)


def test_group_bound_under_approximate_privacy_is_tight_in_its_inequality():
    """At the epsilon returned the proof's inequality is an equality; at delta near 0 it is asinh(1/(r x))."""
    delta, relative = 1e-6, 0.1
    epsilon = group_lower_bound(SIZES[3:6], relative, kind=Approx, delta=delta)
    s, above = relative * SIZES[3:6], relative * (SIZES[3:6] + 1)
    right = s * (np.sinh(epsilon) + np.exp(-epsilon) * 1e-3) + 1e-3 * np.hypot(above, 1)

    np.testing.assert_allclose(1, right, rtol=1e-10)
    assert bool((right <= 1).all())
    small = group_lower_bound([10.0], relative, kind=Approx, delta=1e-30)
    np.testing.assert_allclose(np.arcsinh(1.0), small[0], rtol=1e-12)
    assert 0 == group_lower_bound([1e9], relative, kind=Approx, delta=1e-6)[0]


def test_gaussian_noise_has_a_larger_epsilon_than_the_limit():
    """A count with Gaussian noise of relative error r at x costs more than every bound, at several deltas."""
    x, relative = 200.0, 0.05
    paid = Gdp(1 / (relative * x))
    for delta in (1e-9, 1e-6, 1e-3):
        assert group_lower_bound([x], relative, kind=Approx, delta=delta)[0] <= paid.epsilon(delta)
    assert group_lower_bound([x], relative, kind=Gdp)[0] <= paid.mu


def test_log_mechanism_is_within_the_known_factor():
    """The log mechanism's policy is at most r^2/log(1+r^2) times the bound at large sizes, and never below it."""
    relative, x = 0.3, np.array([10.0, 100.0, 1e4, 1e6])
    sigma2 = math.log(1 + relative**2)
    policy = np.log1p(1 / (x - 1)) ** 2 / (2 * sigma2)
    ratio = policy / group_lower_bound(x, relative)

    assert bool((ratio >= 1).all())
    assert abs(relative**2 / math.log(1 + relative**2) - ratio[-1]) < 1e-4


def test_absolute_error_and_steps():
    """Below absolute/relative the bound is that of the absolute error, also for an empty group; steps scale it."""
    assert group_lower_bound([0, 10, 50], 0.1, absolute=5).tolist() == [group_lower_bound([50], 0.1)[0]] * 3
    np.testing.assert_allclose(group_lower_bound([50], 0.1), group_lower_bound([100], 0.1, moves=2), rtol=1e-12)


def test_chi_square_by_enumeration():
    """Two-point laws that use up the loss attain the bound; that of Gaussian noise is exact."""
    epsilon = 0.7
    p = np.array([math.exp(epsilon), 1]) / (1 + math.exp(epsilon))
    attained = float(((p - p[::-1]) ** 2 / p[::-1]).sum())

    assert chi_square(Pure(epsilon)) == pytest.approx(attained, rel=1e-10)
    assert chi_square(Pure(epsilon)) >= attained
    assert chi_square(Gdp(1)) == pytest.approx(math.e - 1)
    assert chi_square(Zcdp(0.5)) == pytest.approx(math.e - 1)
    assert chi_square(BoundedRange(1)) == pytest.approx(math.sinh(0.5) ** 2)
    assert chi_square(Approx(1, 1e-30)) == pytest.approx(math.sinh(1) ** 2)
    assert math.inf == chi_square(Zcdp(1000))


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.1])
def test_chi_under_approximate_privacy_solves_the_inequality(delta):
    """Chi is where D = a + sqrt(delta (1 + D^2)), a = sinh eps + e^-eps sqrt(delta), for one deviation of 1."""
    a = math.sinh(0.8) + math.exp(-0.8) * math.sqrt(delta)
    D = math.sqrt(chi_square(Approx(0.8, delta)))

    assert D == pytest.approx(a + math.sqrt(delta * (1 + D * D)), rel=1e-10)


def test_bounded_range_by_search():
    """No law whose likelihood ratio stays in an interval of length eta has a larger chi-square."""
    eta, low = 0.8, np.linspace(math.exp(-0.8), 1, 2001)
    found = ((1 - low) * (low * math.exp(eta) - 1)).max()

    assert found <= chi_square(BoundedRange(eta)) <= found * (1 + 1e-5)


@pytest.mark.parametrize("loss", [Zcdp(0), Zcdp(0.1, 1e-6), Pure(0)])
def test_losses_that_bound_nothing_are_refused(loss):
    """Nothing lost, and a delta beside rho, are refused with the kinds that do."""
    with pytest.raises(InvalidBudget, match="rule: the loss is Zcdp"):
        chi_square(loss)


def test_for_query_of_disjoint_groups():
    """With one group a unit the most accurate group decides: log(1 + 1/s^2), and Gaussian noise pays hardly more."""
    limit = for_query(Gdp(0.1), sds=[10, 20, 1000])

    assert 1 == limit.groups
    assert limit.least.amount == pytest.approx(math.log(1.01))
    assert limit.ratio == pytest.approx(0.01 / math.log(1.01))
    assert "you paid 1.005 times that (in mu squared" in str(limit)
    assert for_query(Zcdp(0.005), sds=[10, 20]).ratio == pytest.approx(limit.ratio)
    assert for_query(Pure(0.1 * math.sqrt(2)), sds=[10]).ratio == pytest.approx(math.sqrt(2), rel=1e-3)


def test_for_query_with_signs_is_what_gaussian_noise_pays():
    """The K largest precisions add up, each with its own sensitivity."""
    sds, steps = np.array([5.0, 8.0, 20.0]), np.array([1.0, 2.0, 1.0])
    precise = 1 / 25 + 4 / 64
    limit = for_query(Zcdp(precise / 2), sds=sds, sensitivity=steps, max_groups=2, signed=True)

    assert 2 == limit.groups
    assert limit.ratio == pytest.approx(precise / math.log1p(precise))


def test_for_query_of_counts_in_many_groups():
    """A unit in 5 of 1000 equal groups: nearly the loss of Gaussian noise; in all of 5: within a factor of 4."""
    sds = np.full(1000, 30.0)
    rho = Fraction(5, 2 * 900)

    assert 1 <= for_query(Zcdp(rho), sds=sds, max_groups=5).ratio < 1.2
    assert 1 <= for_query(Zcdp(rho), sds=sds[:5], max_groups=5).ratio < 4


def test_for_query_never_passes_what_the_norm_says():
    """The closed bound for counts is below gamma_2 of all 0/1 columns with at most K ones, rows over their sd's."""
    from itertools import combinations

    from farthing.limits import bracket_2

    sds = np.array([3.0, 4.0, 4.0, 7.0, 9.0])
    for most in (1, 2, 3, 5):
        columns = [c for k in range(1, most + 1) for c in combinations(range(5), k)]
        W = np.array([[(i in c) / sds[i] for c in columns] for i in range(5)])
        chi = math.expm1(2 * float(for_query(Zcdp(1), sds=sds, max_groups=most).least.amount))

        assert bracket_2(W, tolerance=1e-4).upper ** 2 >= chi


def test_half_widths_are_normal_ones():
    """A half-width at 95 % is 1.96 deviations."""
    by_width = for_query(Zcdp(0.1), half_widths=[19.59963984540054], confidence=0.95).least.amount
    by_sd = for_query(Zcdp(0.1), sds=[10.0]).least.amount

    assert float(by_width) == pytest.approx(float(by_sd))


def test_less_than_the_least_is_called_out():
    """Deviations that the loss cannot have bought are said to be so."""
    assert "do not belong together" in str(for_query(Zcdp(0.001), sds=[1.0]))


def test_mean_point_errors():
    """The figures of the mechanisms are those of their formulas, and the Gaussian is twice the limit at small rho."""
    U = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    problem, size = MeanPoint(U, records=50), math.sqrt(8)

    assert problem.size == pytest.approx(size)
    assert problem.gaussian(Zcdp(0.02)).error == pytest.approx(2 / 50 * size / 0.2)
    assert problem.laplace(Pure(0.5)).error == pytest.approx(math.sqrt(8 * 2) / (50 * 0.5) * size)
    assert problem.ball(Pure(0.5)).error == pytest.approx(math.sqrt(4 * 3) / (50 * 0.5) * size)
    assert problem.gaussian(Zcdp(1e-6)).ratio == pytest.approx(2, rel=1e-5)
    assert problem.gaussian(Gdp(0.2)).error == pytest.approx(problem.gaussian(Zcdp(0.02)).error)
    assert problem.least_error(Pure(0.5)) == pytest.approx(size / (2 * 50 * math.sinh(0.25)))
    np.testing.assert_allclose(problem.gaussian(Zcdp(0.5)).error ** 2, np.trace(problem.gaussian(Zcdp(0.5)).covariance))


def test_flat_ellipsoids_work():
    """A rank-deficient U is an ellipsoid of fewer dimensions: Laplace noise is needed along those only."""
    flat = MeanPoint([[1, 1, 2], [1, 1, 2]], records=10)

    assert 1 == flat.rank
    assert flat.laplace(Pure(1)).error == pytest.approx(math.sqrt(8) / 10 * math.sqrt(12))


def test_the_ellipsoid_bound_is_the_norm_of_its_points():
    """For K the hull of the semi-axes +-U e_i, whose least ellipsoid is K itself, gamma_f is sqrt(tr U'U)."""
    U = np.diag([3.0, 2.0, 1.0])
    grid = np.random.default_rng(5).normal(size=(3, 4000))
    points = U @ (grid / np.linalg.norm(grid, axis=0))

    assert farthing.limits.gamma_f(points, tolerance=1e-3) <= MeanPoint(U, 1).size
    assert farthing.limits.gamma_f(points, tolerance=1e-3) == pytest.approx(MeanPoint(U, 1).size, rel=5e-3)
