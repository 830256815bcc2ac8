"""Numbers that add up: held against a dense least-squares solver, on random forests; whole ones and none below zero."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.publication.sums import Member, downward, fitted, joined, nonnegative, whole


def grown(seed: int) -> dict[str, Member]:
    """Return a random forest of four tables, two of them below the first and one below the second."""
    drawn = np.random.default_rng(seed)
    sizes, above = {"top": 3, "left": 8, "right": 5, "deep": 20}, {"left": "top", "right": "top", "deep": "left"}
    made = {}
    for name in drawn.permutation(list(sizes)):
        parent = above.get(name, "")
        places = drawn.permutation(np.arange(sizes[name]) % sizes[parent]) if parent else np.zeros(sizes[name], int)
        made[str(name)] = Member(
            drawn.normal(5, 20, sizes[name]), drawn.uniform(0.1, 9, sizes[name]), parent, places.astype(np.int64)
        )
    return made


def gaps(tables, numbers) -> float:
    """Return by how much the worst sum is off."""
    return max(
        float(np.abs(np.bincount(one.at, numbers[name], len(numbers[one.above])) - numbers[one.above]).max())
        for name, one in tables.items()
        if one.above
    )


def solved(tables) -> dict[str, np.ndarray]:
    """Return the least-squares solution by dense linear algebra."""
    starts, total = {}, 0
    for name, one in tables.items():
        starts[name], total = total, total + len(one.value)
    rows = []
    for name, one in tables.items():
        for parent in range(len(tables[one.above].value)) if one.above else ():
            row = np.zeros(total)
            row[starts[one.above] + parent] = -1
            row[starts[name] + np.flatnonzero(one.at == parent)] = 1
            rows.append(row)
    held, value = np.array(rows), np.concatenate([one.value for one in tables.values()])
    weight = np.concatenate([one.variance for one in tables.values()])
    best = value - weight * (held.T @ np.linalg.solve(held * weight @ held.T, held @ value))
    return {name: best[starts[name] : starts[name] + len(one.value)] for name, one in tables.items()}


@pytest.mark.parametrize("seed", range(20))
def test_two_passes_are_the_least_squares_solution(seed):
    """On any forest with any variances the numbers are those of a dense solver."""
    tables = grown(seed)
    found, expected = fitted(tables), solved(tables)

    assert gaps(tables, found) < 1e-9
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_none_is_below_zero_and_whole_ones_add_up_exactly(seed):
    """Raised to zero the sums still hold; whole numbers are less than one away and add up to the last unit."""
    tables = grown(seed)
    raised = nonnegative(tables, fitted(tables))
    round_ones = whole(tables, raised)

    assert gaps(tables, raised) < 1e-9
    assert gaps(tables, round_ones) == 0
    for name in tables:
        assert (raised[name] >= 0).all()
        assert (round_ones[name] >= 0).all()
        assert (round_ones[name] == np.round(round_ones[name])).all()
        assert (np.abs(round_ones[name] - raised[name]) < 1 + 1e-6).all()


def test_order_and_places():
    """Tables come after what they add up to; a part without a whole, or a whole without parts, is found."""
    assert downward(grown(1)).index("deep") > downward(grown(1)).index("left")
    assert joined([("a",), ("b",)], [("a",)]) is None
