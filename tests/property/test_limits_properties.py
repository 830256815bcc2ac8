"""Limits keep their order: no mechanism is below them, and they move as theory says."""

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from farthing.limits import bracket_2, bracket_f, for_query, gamma_2, gamma_f, group_lower_bound, unbiased_error
from farthing.limits.divergence import apart
from farthing.privacy.loss import Gdp, Pure, Zcdp

LOOSE = 1e-4
workloads = st.tuples(st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-4, 4).map(float))
)
rhos = st.floats(1e-4, 2)


@settings(deadline=None, max_examples=40)
@given(workloads, st.integers(0, 10**6))
def test_any_factorization_is_above_the_norms(W, seed):
    """W = R A for a random invertible A: no product of norms is below the certified sides."""
    A = np.random.default_rng(seed).normal(size=(W.shape[1], W.shape[1])) + 2 * np.eye(W.shape[1])
    R = np.linalg.solve(A.T, W.T).T
    column = np.linalg.norm(A, axis=0).max()

    assert gamma_f(W, tolerance=LOOSE) <= np.linalg.norm(R) * column * (1 + 1e-9)
    assert gamma_2(W, tolerance=LOOSE) <= np.linalg.norm(R, axis=1).max() * column * (1 + 1e-9)


@settings(deadline=None, max_examples=40)
@given(workloads, st.integers(0, 10**6))
def test_norms_do_not_see_order_signs_or_copies(W, seed):
    """Permuted, negated and repeated columns leave both norms; turned answers leave gamma_f; the transpose gamma_2."""
    rng = np.random.default_rng(seed)
    m, n = W.shape
    mixed = (W * rng.choice([-1, 1], size=n))[:, rng.permutation(n)]
    twice = np.hstack([mixed, W[:, :1]])
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    f, two = bracket_f(W, tolerance=LOOSE), bracket_2(W, tolerance=LOOSE)

    for same in (mixed, twice, turn @ W):
        assert bracket_f(same, tolerance=LOOSE).lower <= f.upper * (1 + 1e-9)
        assert f.lower <= bracket_f(same, tolerance=LOOSE).upper * (1 + 1e-9)
    for same in (mixed, twice, W.T):
        assert bracket_2(same, tolerance=LOOSE).lower <= two.upper * (1 + 1e-9)
        assert two.lower <= bracket_2(same, tolerance=LOOSE).upper * (1 + 1e-9)


@settings(deadline=None, max_examples=40)
@given(workloads)
def test_norms_lie_between_their_simple_bounds(W):
    """Singular values and single columns from below, plain Gaussian noise from above; gamma_f <= sqrt(m) gamma_2."""
    m, n = W.shape
    f, two = bracket_f(W, tolerance=LOOSE), bracket_2(W, tolerance=LOOSE)
    nuclear = np.linalg.svd(W, compute_uv=False).sum()
    column = np.linalg.norm(W, axis=0).max()
    slack = 1 + 1e-9

    assert max(nuclear / math.sqrt(n), column) <= f.upper * slack
    assert f.lower <= min(np.linalg.norm(W), math.sqrt(m) * column) * slack
    assert max(nuclear / math.sqrt(n * m), np.abs(W).max()) <= two.upper * slack
    assert two.lower <= column * slack
    assert f.lower <= math.sqrt(m) * two.upper * slack


@settings(deadline=None, max_examples=25)
@given(workloads, workloads)
def test_kronecker_products_are_products(A, B):
    """The norm of a product lies between the products of the sides."""
    assume(A.size * B.size <= 400)
    for bracket in (bracket_f, bracket_2):
        whole, parts = bracket(np.kron(A, B), tolerance=1e-3), bracket(A, B, tolerance=1e-3)
        assert whole.lower <= parts.upper * (1 + 1e-9)
        assert parts.lower <= whole.upper * (1 + 1e-9)


@settings(deadline=None, max_examples=30)
@given(workloads, rhos)
def test_gaussian_noise_is_never_below_the_limit(W, rho):
    """Independent noise on every answer, and on every cell: both err at least as much as the bound."""
    least = unbiased_error(W, Zcdp(rho), tolerance=LOOSE)
    plain = np.linalg.norm(W, axis=0).max() ** 2 / (2 * rho)
    cells = np.linalg.norm(W, axis=1) ** 2 / (2 * rho)

    assert least.total <= min(len(W) * plain, cells.sum()) * (1 + 1e-9)
    assert least.worst <= min(plain, cells.max()) * (1 + 1e-9)


@given(rhos, st.lists(st.floats(0.1, 1e4), min_size=1, max_size=8), st.integers(1, 10), st.booleans())
def test_gaussian_answers_never_paid_less_than_the_least(rho, shape, most, signed):
    """Gaussian noise with these deviations pays the K largest precisions; that is never below the bound."""
    sds = np.array(shape) / math.sqrt(rho)
    paid = np.sort(1 / sds**2)[::-1][:most].sum() / 2

    assert for_query(Zcdp(paid), sds=sds, max_groups=most, signed=signed).ratio >= 1 - 1e-12


@given(st.lists(st.floats(1, 1e4), min_size=2, max_size=8), st.integers(1, 5))
def test_more_accuracy_never_costs_less(sds, most):
    """Halving every deviation, or letting a unit be in more groups, never lowers the least loss."""
    for kind in (Zcdp(1), Gdp(1), Pure(1)):
        least = for_query(kind, sds=sds, max_groups=most).least
        assert least <= for_query(kind, sds=np.array(sds) / 2, max_groups=most).least
        assert least.amount <= for_query(kind, sds=sds, max_groups=most + 1).least.amount * (1 + 1e-12)


@given(st.floats(1, 1e9), st.floats(0.01, 0.9), st.floats(1.01, 3))
def test_group_bound_falls_with_size_and_error(x, relative, factor):
    """A larger group, or a larger error, never has a larger bound, in any currency."""
    for kind in (Zcdp, Gdp, Pure):
        here = group_lower_bound([x], relative, kind=kind)[0]
        assert here >= group_lower_bound([x * factor], relative, kind=kind)[0]
        assert here >= group_lower_bound([x], min(0.99, relative * factor), kind=kind)[0]
    assert here > 0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6), st.floats(0.001, 3))
def test_no_two_laws_are_further_apart_than_their_loss_says(pairs, epsilon):
    """For any two laws, with the delta that they have at epsilon, half the triangular discrimination is at most T."""
    p, q = (np.array(weights) + 1e-9 for weights in zip(*pairs, strict=True))
    p, q = p / p.sum(), q / q.sum()
    ratio = math.exp(epsilon)
    delta = max(np.maximum(p - ratio * q, 0).sum(), np.maximum(q - ratio * p, 0).sum())

    assert ((p - q) ** 2 / (p + q)).sum() / 2 <= float(apart(np.array(epsilon), delta)) + 1e-12
