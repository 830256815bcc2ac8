"""Strategies: exact sums on a grid, lengths that no row passes, factorizations near their certified bounds."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.limits import gamma_2, gamma_f
from farthing.limits.strategies import factorized, union_at_least
from farthing.mechanisms.strategy import Strategy, StrategyMeasurements, StrategyState, applied, on_grid

PREFIX = np.tril(np.ones((16, 16)))
RANGES = np.array([[float(i <= k <= j) for k in range(16)] for i in range(16) for j in range(i, 16)])


def matrices(draw, cells, many):
    """Draw a matrix of entries in [-1, 1] for some factors, None for the others."""
    entry = st.floats(-1, 1, width=32)
    found = []
    for size in cells:
        rows = st.lists(st.lists(entry, min_size=size, max_size=size), min_size=1, max_size=3)
        found.append(np.array(draw(rows)) if many > len(found) else None)
    return tuple(found)


@st.composite
def measured(draw):
    """A strategy of up to three factors, counts that it measures, small and huge ones, and a grid."""
    cells = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    strategy = Strategy.rounded(cells, matrices(draw, cells, draw(st.integers(0, len(cells)))))
    count = st.integers(0, 50) | st.integers(0, 2**45)
    size = int(np.prod(cells))
    table = np.array(draw(st.lists(count, min_size=size, max_size=size)), np.int64).reshape(cells)
    return strategy, table, draw(st.integers(-14, 52 - strategy.places))


def exactly(strategy, table):
    """Return what a strategy measures, as fractions in one row."""
    parts = [
        np.eye(size, dtype=int).astype(object) * 2 ** (0 if one is None else strategy.bits) if one is None else one
        for size, one in zip(strategy.sizes, strategy.matrices, strict=True)
    ]
    whole = reduce(np.kron, [one.astype(object) for one in parts], np.ones((1, 1), object))
    return [Fraction(int(one), 2**strategy.places) for one in whole @ table.reshape(-1).astype(object)]


@settings(max_examples=150, deadline=None)
@given(measured())
def test_sums_are_exact_on_every_grid(case):
    """Whole steps and rest are the exact sums, at counts up to 2^45 and on grids from 2^-14 on."""
    strategy, table, exponent = case
    whole, rest = on_grid(table, strategy, exponent)
    step = Fraction(2) ** exponent
    most = 2**61

    assert whole.shape == strategy.shape
    for exact, n, r in zip(
        exactly(strategy, table), whole.reshape(-1).tolist(), rest.reshape(-1).tolist(), strict=True
    ):
        if abs(exact / step) < most / 2:
            assert exact == (n + Fraction(r)) * step
            assert 0 <= r < 1
        else:
            assert abs(n) >= most / 4


@settings(max_examples=50, deadline=None)
@given(measured())
def test_no_row_moves_measurements_by_more_than_the_length(case):
    """Each cell's column is at most as long as is priced, in exact arithmetic, and one of them nearly is."""
    strategy, table, _ = case
    cells = np.eye(table.size, dtype=np.int64)
    squares = [sum(one**2 for one in exactly(strategy, cell.reshape(table.shape))) for cell in cells]

    assert max(squares) <= Fraction(strategy.length) ** 2
    assert Fraction(strategy.length) ** 2 <= max(squares) * (1 + Fraction(1, 2**40))


@pytest.mark.parametrize("W", [PREFIX, RANGES, np.array([[0.0, 1.0]]), np.ones((3, 5)), np.eye(7)], ids=len)
@pytest.mark.parametrize("largest", [False, True])
def test_strategies_are_near_the_norm(W, largest):
    """The error of a strategy, rounded as it is measured, is within 0.5 % of the certified bound."""
    found = factorized(W, largest=largest)
    strategy = Strategy.rounded((W.shape[1],), (found.strategy,))
    (A,) = strategy.floats
    used = abs(A).max(axis=0) > 0
    R = np.linalg.solve(A[:, used].T, W[:, used].T).T
    squares = (R**2).sum(axis=1) * strategy.length**2
    error = squares.max() if largest else squares.sum()

    assert pytest.approx(W, abs=1e-9) == R @ A
    norm = gamma_2(W) if largest else gamma_f(W)
    assert found.lower <= norm * (1 + 1e-6)
    assert 1 <= error / found.lower**2 < 1.005


def test_a_search_is_the_same_every_time(monkeypatch):
    """No clock decides how long is sought: a plan and an ask find the same strategy."""
    from farthing.limits import strategies

    monkeypatch.setattr("time.monotonic", lambda: (_ for _ in ()).throw(AssertionError("a clock was read")))
    one = strategies._factorized.__wrapped__(RANGES.shape, RANGES.tobytes(), largest=True, bits=24)
    other = strategies._factorized.__wrapped__(RANGES.shape, RANGES.tobytes(), largest=True, bits=24)
    assert np.array_equal(one.strategy, other.strategy)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_bound_of_a_union_is_that_of_the_joint_matrix_at_even_weights(k):
    """It equals the nuclear norm of all joint cells, which it never forms, and is at most gamma_F."""
    one = np.array([[0.0, 1.0], [1.0, 1.0]])
    even = np.array([0.5, 0.5])
    places = np.array(np.meshgrid(*[[0, 1]] * k, indexing="ij")).reshape(k, -1)
    joint = np.concatenate([one[:, place] for place in places])
    found = union_at_least([(one, even)] * k)

    assert found == pytest.approx(np.linalg.svd(joint / np.sqrt(2**k), compute_uv=False).sum(), rel=1e-5)
    assert found <= gamma_f(joint) * (1 + 1e-9)


def test_measurements_average_and_cost_their_grains():
    """Twice the grains have half the variance: the mean of two measurements is near the exact sums."""
    strategy = Strategy.rounded((16,), (factorized(PREFIX, largest=False).strategy,))
    counts = np.arange(16) * 100
    measuring = StrategyMeasurements({0: counts}, (strategy,), reach=2)
    state = StrategyState(0, np.zeros(16))
    for grains in (1 << 55, 1 << 55):
        state = measuring.measure(0, state, grains)

    assert state.grains == 1 << 56
    off = state.mean - applied(strategy.floats, counts)
    assert abs(off).max() < 8 * np.sqrt(strategy.variance(state.grains, 2))
    assert "100" not in repr(measuring)
