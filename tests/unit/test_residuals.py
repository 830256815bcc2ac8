"""Residuals of tables: whole contrasts, a price for whatever a unit does, tables that agree; and each bug planted."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.mechanisms import residuals
from farthing.mechanisms.residuals import (
    Residual,
    ResidualMeasurements,
    contrasts,
    lengths_of,
    price_of,
    put_together,
    residual_table,
    sigma_of,
)

SIZES = {0: 3, 1: 1, 2: 4, 3: 2}
shapes = st.lists(st.integers(2, 5), min_size=0, max_size=3).map(tuple)


def summed(counts, subset):
    """Return the counts by some columns."""
    return counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in subset))


def subsets(columns):
    """Return all subsets."""
    return [subset for many in range(len(columns) + 1) for subset in combinations(columns, many)]


def costs(shape, rows, reach):
    """Return what a unit with these rows pays of mu^2: the squared moves of all that is drawn, over their variances."""
    counts = np.random.default_rng(3).integers(0, 1000, shape)
    more = counts.copy()
    for row in rows:
        more[tuple(place % size for place, size in zip(row, shape, strict=True))] += 1
    drawn = []

    def record(truth, sigma, _):
        """Note what would be drawn around what."""
        drawn.append((truth, sigma))
        return truth, np.zeros_like(truth)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(residuals, "on_own_grid", record)
        for table in (counts, more):
            subset = tuple(range(len(shape)))
            ResidualMeasurements({subset: table}, reach).measure(subset, Residual.nothing(shape), 1 << 56)
    (here, sigma), (there, _) = drawn
    return float((((there - here) / sigma) ** 2).sum())


def check_price():
    """A unit that adds `reach` rows, wherever they are, pays at most the grains; in one cell exactly that."""
    random = np.random.default_rng(5)
    for shape in [(), (2,), (7,), (3, 4), (2, 3, 5), (50, 40)]:
        for many in (1, 2, 5):
            for spread_out in (1, 9):
                rows = random.integers(0, spread_out, (many, len(shape)))
                paid = costs(shape, rows, many)
                assert paid <= 1
                if spread_out == 1:
                    assert paid == pytest.approx(1, rel=1e-9)


def test_a_unit_pays_at_most_the_grains():
    """Whatever rows a unit has, what it moves of all that is drawn costs at most what is booked."""
    check_price()


BUGS = {
    "a reach of one": ("sigma_of", lambda grains, sizes, _: sigma_of(grains, sizes, 1)),
    "a price that is squared": ("price_of", lambda sizes: price_of(sizes) ** 2),
    "half the noise": ("sigma_of", lambda grains, sizes, reach: sigma_of(grains, sizes, reach) / 2),
    "lengths of one": ("lengths_of", lambda sizes, _: np.ones([size - 1 for size in sizes])),
    "lengths of k": ("lengths_of", lambda sizes, _: np.floor(lengths_of(sizes))),
    "rounded down": ("UP", 1 - 2.0**-40),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_scale_is_seen(bug, monkeypatch):
    """Planted: noise that is too small for what a unit does fails the test above."""
    name, wrong = BUGS[bug]
    monkeypatch.setattr(residuals, name, wrong)
    with pytest.raises(AssertionError):
        check_price()


@settings(max_examples=60)
@given(shape=shapes, data=st.data())
def test_contrasts_are_exact_and_orthogonal(shape, data):
    """They are whole numbers, their residual is the mean-zero part, and no length is lost."""
    entries = st.integers(0, 2**40)
    table = np.array(data.draw(st.lists(entries, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    table = table.astype(np.int64).reshape(shape)
    flat = table.astype(np.float64)
    for axis in range(flat.ndim):
        flat = flat - flat.mean(axis=axis, keepdims=True)
    found = contrasts(table)

    assert found.dtype == np.int64
    assert found.shape == tuple(size - 1 for size in shape)
    assert residual_table(found / lengths_of(shape)) == pytest.approx(flat, abs=2**-10)
    assert ((found / lengths_of(shape)) ** 2).sum() == pytest.approx((flat**2).sum(), rel=1e-9, abs=1e-3)


def test_residuals_put_a_table_together():
    """Without noise every table comes back exactly, those with a column of one value too."""
    counts = np.random.default_rng(1).integers(0, 100, tuple(SIZES.values()))
    real = [column for column, size in SIZES.items() if size > 1]
    parts = {
        subset: residual_table(contrasts(summed(counts, subset)) / lengths_of([SIZES[i] for i in subset]))
        for subset in subsets(real)
    }
    for table in subsets(range(4)):
        assert put_together(table, SIZES, parts) == pytest.approx(summed(counts, table).astype(float))


def test_tables_agree_whatever_the_noise():
    """Noisy residuals give tables that share every total, down to the rounding of float64."""
    random = np.random.default_rng(2)
    parts = {
        subset: residual_table(random.normal(size=[SIZES[i] - 1 for i in subset])) for subset in subsets([0, 2, 3])
    }
    joint = put_together((0, 1, 2, 3), SIZES, parts)
    for table in subsets(range(4)):
        assert put_together(table, SIZES, parts) == pytest.approx(summed(joint, table), abs=1e-12)


def test_measurements_are_averaged_by_their_grains():
    """Two measurements of a residual are one of both prices; what was measured is not lost."""
    counts = {(0,): np.array([10_000, 200, 30])}
    measuring = ResidualMeasurements(counts)
    first = measuring.measure((0,), Residual.nothing((3,)), 1 << 44)
    second = measuring.measure((0,), first, 3 << 60)
    exact = contrasts(counts[0,]) / lengths_of((3,))

    assert first.grains + (3 << 60) == second.grains
    assert second.mean == pytest.approx(exact, abs=2.0)
    assert abs(first.mean - exact).max() > 2.0


def test_absurd_counts_are_held():
    """Counts that no table has wrap around nowhere: contrasts keep their size, and a row more moves them as little."""
    table = np.array([[2**62, 5], [0, 2**62]])
    held = residuals._held(table)

    assert held.max() <= 2**61 // 16
    assert abs(contrasts(held).astype(float) - contrasts(held.astype(object)).astype(float)).max() <= 0


def test_nothing_shows_the_counts():
    """Neither the text nor the fields of the mechanism hold an exact number."""
    measuring = ResidualMeasurements({(): np.array(73_913)})

    assert "73913" not in f"{measuring!r} {measuring.tables!r}"
