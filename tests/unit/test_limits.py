"""Lower limits of one group, of released answers and of the mean of points."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import farthing
from farthing.errors import InvalidBudget
from farthing.limits import MeanPoint, chi_square, divergence, for_query, group_lower_bound
from farthing.limits.divergence import apart
from farthing.limits.groups import _epsilon_apart
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


def _least_epsilon_by_programs(x, relative, delta, units):
    """Return the least epsilon of any mechanism on a grid of outputs, unbiased from x to x + units: linear programs."""
    grid = np.concatenate([np.linspace(-400, -45, 12), np.linspace(-40, 40 + units, 28), np.linspace(45, 400, 12)])
    size, sets = len(grid), units + 1
    off = grid[None, :] - np.arange(sets)[:, None]
    whole = np.kron(np.eye(sets), np.ones((1, size)))
    cells, zero = np.eye(sets * size), np.zeros((sets * size, sets * size))
    before, after = cells[: units * size], cells[size:]
    left, right = zero[: units * size, : units * size], np.eye(units * size)
    mean, spread = (np.kron(np.eye(sets), np.ones((1, size))) * moment.ravel() for moment in (off, off**2))
    spread /= (relative * (x + np.arange(sets)) ** 1.0)[:, None] ** 2
    sums = np.kron(np.eye(units), np.ones((1, size)))
    low, high = 0.07, 0.11
    for _ in range(6):
        middle = (low + high) / 2
        ratio = math.exp(middle)
        rows = [
            np.hstack([before - ratio * after, -right, left, np.zeros((units * size, 1))]),
            np.hstack([after - ratio * before, left, -right, np.zeros((units * size, 1))]),
            np.hstack([np.zeros((units, sets * size)), sums, 0 * sums, np.zeros((units, 1))]),
            np.hstack([np.zeros((units, sets * size)), 0 * sums, sums, np.zeros((units, 1))]),
            np.hstack([spread, np.zeros((sets, 2 * units * size)), -np.ones((sets, 1))]),
        ]
        most = np.concatenate([np.zeros(2 * units * size), np.full(2 * units, delta), np.zeros(sets)])
        equal = np.hstack([np.vstack([whole, mean]), np.zeros((2 * sets, 2 * units * size + 1))])
        cost = np.zeros(equal.shape[1])
        cost[-1] = 1
        found = linprog(cost, np.vstack(rows), most, equal, np.repeat([1.0, 0.0], sets), (0, None), method="highs")
        low, high = (middle, high) if found.fun > 1 else (low, middle)
    return high


def test_group_bound_under_approximate_privacy_is_that_of_linear_programs():
    """No mechanism on a grid beats the bound for the data sets it is about; the best one for two of them reaches it."""
    x, relative, delta = 100, 0.1, 1e-3
    part = np.array([1 / (2 * (relative * x) ** 2 + 2 * (relative * (x + 1)) ** 2 + 1)])
    pair = float(_epsilon_apart(part, delta, 1)[0])

    assert 0.0767 == pytest.approx(pair, abs=1e-4)
    assert pair <= _least_epsilon_by_programs(x, relative, delta, 1) <= 1.015 * pair
    three = np.array([9 / (2 * (relative * x) ** 2 + 2 * (relative * (x + 3)) ** 2 + 9)])
    assert pair < _epsilon_apart(three, delta, 3)[0] <= _least_epsilon_by_programs(x, relative, delta, 3)
    assert 0.0913 == pytest.approx(float(group_lower_bound([x], relative, kind=Approx, delta=delta)[0]), abs=1e-4)


def test_group_bound_at_no_delta_is_the_pure_one():
    """As delta goes to 0 the bound is the pure one of deviations between those of the two sizes; far apart, asinh."""
    small = group_lower_bound([10.0, 1e3], 0.1, kind=Approx, delta=1e-30)
    between = 2 * np.arcsinh(1 / np.sqrt(2 * (1.0**2 + 1.1**2)))
    np.testing.assert_allclose(between, small[0], rtol=1e-9)
    np.testing.assert_allclose(np.arcsinh(1e4), group_lower_bound([1e-3], 0.1, kind=Approx, delta=1e-30), rtol=1e-9)
    assert 0 == group_lower_bound([1e9], 0.1, kind=Approx, delta=1e-6)[0]


@pytest.mark.parametrize("width", [16, 1_000, 10**6])
def test_uniform_noise_costs_no_epsilon_at_its_delta(width, monkeypatch):
    """Uniform noise has epsilon 0 at delta 1/width, so no bound is above 0; without the delta of groups one is."""
    relative, sd = 1e-9, width / math.sqrt(12)
    assert 0 == group_lower_bound([1], relative, absolute=sd, kind=Approx, delta=1 / width)[0]
    assert chi_square(Approx(1e-12, 1 / width)) >= 1 / sd**2

    monkeypatch.setattr(divergence, "slipped", lambda epsilon, delta, _units: np.full_like(epsilon, delta))
    assert group_lower_bound([1], relative, absolute=sd, kind=Approx, delta=1 / width)[0] > 0


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
    assert chi_square(Approx(1, 1e-30)) == pytest.approx(4 * math.sinh(0.5) ** 2)
    assert math.inf == chi_square(Zcdp(1000))


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.1])
def test_apart_is_reached_by_randomised_response_that_slips(delta):
    """A coin that tells all with chance delta, and else the truth with odds e^epsilon, has exactly 2 T and chi."""
    epsilon, right = 0.8, 1 / (1 + math.exp(-0.8))
    p = np.array([delta, 0, (1 - delta) * right, (1 - delta) * (1 - right)])
    q = p[[1, 0, 3, 2]]
    half = float(((p - q) ** 2 / (p + q)).sum()) / 2
    told = (p - q) / (p + q)
    moved, square = (told * (p - q)).sum(), (p * told**2).sum() - (p * told).sum() ** 2

    assert float(apart(np.array(epsilon), delta)) == pytest.approx(half, rel=1e-12)
    assert chi_square(Approx(epsilon, delta)) <= moved**2 / square * (1 + 1e-9)
    assert chi_square(Approx(epsilon, 1e-9)) == pytest.approx(4 * math.sinh(epsilon / 2) ** 2, rel=1e-6)


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
