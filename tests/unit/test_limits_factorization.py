"""Factorization norms: test vectors, closed forms, an independent solver, and what certifies them."""

import math

import numpy as np
import pytest

from farthing.limits import (
    bracket_2,
    bracket_f,
    factorization,
    gamma_2,
    gamma_f,
    identity_and_total,
    marginals,
    prefix_sums,
    unbiased_error,
)
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp

pytestmark = pytest.mark.thorough


def prefix(n):
    """Return the n running totals."""
    return np.tril(np.ones((n, n)))


def ranges(n):
    """Return all sums over ranges of n cells."""
    return np.array([[float(i <= k <= j) for k in range(n)] for i in range(n) for j in range(i, n)])


def with_total(n):
    """Return n counts and their total."""
    return np.vstack([np.eye(n), np.ones(n)])


def two_way(columns):
    """Return all 2-way marginals of binary columns."""
    cells = np.array(list(np.ndindex(*[2] * columns)))
    return np.array(
        [
            (cells[:, i] == a) & (cells[:, j] == b)
            for i in range(columns)
            for j in range(i + 1, columns)
            for a in (0, 1)
            for b in (0, 1)
        ],
        dtype=float,
    )


VECTORS = {
    "prefix 4": (prefix(4), 6.874, 1.3261),
    "prefix 8": (prefix(8), 17.866, 1.5105),
    "prefix 16": (prefix(16), 45.665, 1.7045),
    "prefix 32": (prefix(32), 114.560, 1.9054),
    "prefix 64": (prefix(64), 282.201, 2.1114),
    "ranges 8": (ranges(8), 80.464, 1.636),
    "ranges 16": (ranges(16), 413.140, 1.909),
    "total 8": (with_total(8), 12.5, 1.3333),
    "total 32": (with_total(32), 42.193, 1.3926),
    "two-way 4": (two_way(4), 59.118, 1.5695),
}


@pytest.mark.parametrize(("W", "f_squared", "two"), VECTORS.values(), ids=VECTORS)
def test_vectors(W, f_squared, two):
    """The norms that a semidefinite solver found, within 1e-3, in under a second."""
    f, g = bracket_f(W), bracket_2(W)

    assert f.lower**2 == pytest.approx(f_squared, abs=1e-3)
    assert g.lower == pytest.approx(two, abs=1e-3)
    assert max(f.gap, g.gap) <= factorization.TOLERANCE
    assert "close" == f.ended == g.ended


def by_sdp(W, *, rows):
    """Return gamma_f^2 or gamma_2 from a semidefinite program."""
    cp = pytest.importorskip("cvxpy")
    m, n = W.shape
    block = cp.Variable((m + n, m + n), PSD=True)
    left = cp.diag(block)[:m]
    t = cp.Variable()
    rule = [block[:m, m:] == W]
    rule += [left <= t, cp.diag(block)[m:] <= t] if rows else [cp.diag(block)[m:] <= 1]
    return float(cp.Problem(cp.Minimize(t if rows else cp.sum(left)), rule).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("seed", range(3))
def test_a_semidefinite_solver_agrees(seed):
    """On random workloads, one of low rank among them, an independent program finds the same norms."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 6)) if seed == 0 else rng.integers(-2, 3, size=(5, 6)) * 1.0

    assert gamma_f(W) ** 2 == pytest.approx(by_sdp(W, rows=False), rel=1e-4)
    assert gamma_2(W) == pytest.approx(by_sdp(W, rows=True), rel=1e-4)


@pytest.mark.slow
def test_a_semidefinite_solver_agrees_on_larger_ones():
    """Prefix sums of 32 cells, where the solver takes seconds."""
    assert gamma_f(prefix(32)) ** 2 == pytest.approx(by_sdp(prefix(32), rows=False), rel=1e-5)
    assert gamma_2(prefix(32)) == pytest.approx(by_sdp(prefix(32), rows=True), rel=1e-5)


def test_closed_forms_agree_with_the_iteration():
    """Identity with total and marginals are exact; prefix sums are bounded, within 4 % below."""
    for n in (1, 2, 8):
        norms = identity_and_total(n)
        assert norms.gamma_f == pytest.approx(gamma_f(with_total(n)), rel=2e-6)
        assert norms.gamma_2 == pytest.approx(gamma_2(with_total(n)), rel=2e-6)
    table = marginals([2, 2, 2, 2], 2)
    assert table.gamma_f == pytest.approx(gamma_f(two_way(4)), rel=2e-6)
    assert table.gamma_2 == pytest.approx(gamma_2(two_way(4)), rel=2e-6)
    for n, squared in ((4, 6.412), (64, 266.376)):
        assert prefix_sums(n).gamma_f ** 2 == pytest.approx(squared, abs=1e-3)
        assert 0.96 * gamma_f(prefix(n)) <= prefix_sums(n).gamma_f <= gamma_f(prefix(n))
        assert prefix_sums(n).gamma_2 <= gamma_2(prefix(n))


def test_marginals_of_unequal_columns():
    """All one-way tables over 2 and 3 values: gamma_f exact, gamma_2 a bound and said to be one."""
    W = np.vstack([np.kron(np.eye(2), np.ones(3)), np.kron(np.ones(2), np.eye(3))])
    norms = marginals([2, 3], 1)

    assert norms.gamma_f == pytest.approx(gamma_f(W), rel=2e-6)
    assert norms.gamma_2 <= gamma_2(W) * (1 + 1e-6)
    assert (True, False) == (norms.exact_f, norms.exact_2)
    assert math.sqrt(6) == pytest.approx(marginals([2, 3], 2).gamma_f)
    assert 1 == pytest.approx(marginals([2, 3], 0).gamma_f)


def test_kronecker_products_multiply():
    """Factors give the norm of the product that is never formed."""
    A, B = prefix(4), with_total(3)

    assert gamma_f(A, B) == pytest.approx(gamma_f(np.kron(A, B)), rel=5e-6)
    assert gamma_2(A, B) == pytest.approx(gamma_2(np.kron(A, B)), rel=5e-6)
    assert 6.874**3 == pytest.approx(gamma_f(A, A, A) ** 2, rel=1e-3)


def test_easy_norms():
    """A row, a column, the identity, nothing at all, and a scaled matrix."""
    assert gamma_f(np.eye(5)) == pytest.approx(math.sqrt(5))
    assert gamma_2(np.eye(5)) == pytest.approx(1)
    assert gamma_f([[1, 2, 3]]) == pytest.approx(3)
    assert gamma_f([[3], [4]]) == pytest.approx(5)
    assert gamma_2([[3], [4]]) == pytest.approx(4, rel=1e-5)
    assert 0 == gamma_f(np.zeros((2, 3))) == gamma_2(np.zeros((2, 3)))
    assert gamma_f(1e90 * prefix(4)) == pytest.approx(1e90 * gamma_f(prefix(4)))


def test_the_certificate_never_passes_the_exact_norm():
    """Where the norm is known in closed form the certified side is at most it, at any early stop and scale."""
    exact = math.sqrt(12.5)
    for size in (1.0, 1e-30, 1 / 3):
        W = size * with_total(8)
        assert exact * size * 0.99999 <= gamma_f(W) <= exact * size * (1 + 1e-15)


def test_the_certificate_notices_bad_vectors(monkeypatch):
    """Singular vectors that are wrong, too long or not orthogonal never raise the bound above the norm."""
    true_svd = np.linalg.svd

    def poor(spoil):
        return lambda G, **kw: tuple(map(spoil, true_svd(G, **kw)))

    W, columns = prefix(6), np.full(6, 1 / 6)
    norm = true_svd(W / math.sqrt(6), compute_uv=False).sum()
    noise = np.random.default_rng(3).normal(size=(6, 6)) * 0.01
    monkeypatch.setattr(np.linalg, "svd", poor(lambda part: part + noise if part.ndim == 2 else part))
    assert 0 <= factorization.certified(W, None, columns) <= norm
    monkeypatch.setattr(np.linalg, "svd", poor(lambda part: part * 2))
    with pytest.raises(np.linalg.LinAlgError):
        factorization.certified(W, None, columns)


def test_swapped_norms_are_caught():
    """gamma_f and gamma_2 of W and of its transpose tell row norms from column norms."""
    W = np.vstack([prefix(4), np.ones((3, 4))])

    assert gamma_2(W.T) == pytest.approx(gamma_2(W), rel=3e-6)
    assert abs(gamma_f(W.T) - gamma_f(W)) > 0.1
    assert gamma_f(W) ** 2 == pytest.approx(by_sdp(W, rows=False), rel=1e-4)


def test_unbiased_error_beside_gaussian_noise():
    """The gap between the bound and the best Gaussian noise is (e^(2 rho) - 1)/(2 rho)."""
    for rho, gap in ((0.005, 1.005), (0.05, 1.0517), (0.1, 1.107), (0.5, 1.718)):
        found = unbiased_error(prefix(8), Zcdp(rho))
        assert found.gaussian_total / found.total == pytest.approx(gap, abs=1e-3)
        assert found.gaussian_worst / found.worst == pytest.approx(gap, abs=1e-3)
    by_mu = unbiased_error(prefix(8), Gdp(math.sqrt(0.2)))
    assert by_mu.total == pytest.approx(unbiased_error(prefix(8), Zcdp(0.1)).total)


def test_unbiased_error_rests_on_the_certified_side():
    """Stopped early, the limits use the lower sides and the Gaussian noise the upper ones."""
    early = unbiased_error(prefix(8), Zcdp(0.05), progress=lambda _: False)
    least = unbiased_error(prefix(8), Zcdp(0.05))

    assert early.total < 0.97 * least.total
    assert early.worst < 0.99 * least.worst
    assert early.gaussian_total > least.gaussian_total * 1.01
    assert "ended by request" in str(early)


def test_unbiased_error_under_pure_privacy():
    """One count: 1/(4 sinh^2(eps/2)), below the variance of Laplace and of two-sided geometric noise."""
    for epsilon in (0.1, 1.0, 3.0):
        q = math.exp(-epsilon)
        found = unbiased_error([[1]], Pure(epsilon)).total

        assert found == pytest.approx(1 / (4 * math.sinh(epsilon / 2) ** 2))
        assert found <= 2 * q / (1 - q) ** 2 <= 2 / epsilon**2


def test_unbiased_error_under_approximate_privacy():
    """Gaussian noise of the exact (eps, delta) has more than the least largest variance, and delta 0 is no jump."""
    for delta in (1e-9, 1e-6, 1e-3):
        sigma2 = 1 / Gdp.from_epsilon(1, delta=delta).mu ** 2
        assert unbiased_error([[1]], Approx(1, delta)).worst <= sigma2
    assert "on all data" in str(unbiased_error([[1]], Approx(1, 1e-6)))


def test_replace_one_is_about_differences():
    """Two cells: the counts differ by (1, -1), and the Gaussian that hides it needs half of twice the variance."""
    loss = Zcdp(0.005)
    add, replace = (unbiased_error(np.eye(2), loss, neighbours=kind) for kind in ("add-remove", "replace-one"))

    assert add.total == pytest.approx(2 / math.expm1(0.01), rel=1e-5)
    assert replace.total == pytest.approx(2 / math.expm1(0.01), rel=1e-5)
    wide = unbiased_error(np.eye(20), loss, neighbours="replace-one").total / unbiased_error(np.eye(20), loss).total
    assert wide == pytest.approx(19 / 10, rel=1e-4)
    assert unbiased_error([[1, -1]], loss, neighbours="replace-one").total == pytest.approx(4 / math.expm1(0.01))


def test_a_difference_of_opposite_cells_costs_four_times():
    """Replacing -1 by 1 moves a sum by 2: four times the variance of adding either. Forgetting it is caught."""
    W = np.array([[1.0, -1.0]])
    loss = Zcdp(0.01)
    ratio = (
        unbiased_error(W, loss, neighbours="replace-one").total / unbiased_error(W, loss, neighbours="add-remove").total
    )

    assert ratio == pytest.approx(4)


def test_time_limits_and_requests_leave_a_bound():
    """Stopped after one round the lower side is the bound by singular values, and it says why it stopped."""
    seen = []
    W = prefix(16)
    asked = bracket_f(W, progress=lambda bracket: seen.append(bracket) or False)
    timed = bracket_f(W, seconds=1e-4, tolerance=1e-15)

    assert "request" == asked.ended
    assert 1 == len(seen) == asked.rounds
    assert asked.lower == pytest.approx(prefix_sums(16).gamma_f, rel=1e-9)
    assert "time" == timed.ended
    assert timed.lower <= gamma_f(W) * (1 + 1e-6) <= timed.upper * (1 + 1e-6)
    assert "ended by request after 1 rounds" in str(asked)


def test_a_failed_decomposition_falls_back(monkeypatch):
    """Without singular values the largest column, or entry, is the bound, and the result says so."""

    def fail(*_args, **_options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    f, two = bracket_f(prefix(4)), bracket_2(prefix(4))

    assert factorization.FAILED == f.ended == two.ended
    assert (2, 1) == (pytest.approx(f.lower), pytest.approx(two.lower))
    assert f.upper >= math.sqrt(6.874)
    assert "only known to lie between" in str(unbiased_error(prefix(4), Zcdp(0.1)))


def test_an_interrupt_is_an_interrupt():
    """Ctrl-C in the middle goes through."""

    def interrupt(_bracket):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gamma_f(prefix(8), progress=interrupt)
