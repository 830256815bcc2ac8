"""A curve through looks at ranks: it tells what a fine grid of slopes tells, and steps are not taken for one."""

import numpy as np
import pytest
from accuracy.runs import ranks_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing.accuracy import quantile_picture
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_curve import (
    LEVEL,
    LUMP,
    MANY,
    NEAR,
    SLOPE,
    TURN,
    Curve,
    RankCrossing,
    crossing_of,
    curve_of,
)
from farthing.accuracy.quantile_neighbours import Offset
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded

LEAVES_LOG2 = 16
LEAVES = 1 << LEAVES_LOG2
ENDS = (np.array([-100.0]), np.array([100.0]))
ONE = RankCrossing(np.array([0.0]), np.array([1.0]), np.array([1.0]))  # all in half windows, and in D at their ends


def looked(places, off, variance, last=1_000):
    """Return looks at places, with both ends of the range."""
    told = Offset(*(np.concatenate([[end], each, [end]])[:, None] for end, each in ((0.0, off), (1e-9, variance))))
    return np.concatenate([[-1_000], places, [last]])[:, None], told


def by_slopes(places, off, variance, parts=40):
    """Return the level at places, and its covariance: a slope and a lump, each drawn anew, for each part of a leaf."""
    edges = np.arange(-12 * parts, 12 * parts + 1) / parts
    middles = (edges[1:] + edges[:-1]) / 2
    turns = np.sqrt(TURN / 100 / parts)
    columns = []
    for place in places:
        between = np.sign(place) * ((np.sign(place) * middles > 0) & (np.abs(middles) < abs(place)))
        turned = between * turns * (place - middles)
        columns.append(np.concatenate([[LEVEL, SLOPE * place], turned, between * np.sqrt(LUMP / parts)]))
    made = np.array(columns)
    before = made @ made.T
    gain = before @ np.linalg.inv(before + np.diag(variance))
    return places + gain @ (off - places), before - gain @ before


@settings(max_examples=sweep(20, 200), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-10, 10), st.floats(-12, 12), st.floats(0.05, 9)),
        min_size=2, max_size=MANY, unique_by=lambda look: look[0],
    )
)  # fmt: skip
def test_a_curve_is_what_slopes_that_are_drawn_leaf_by_leaf_tell(looks):
    """The closed form agrees with its slow and obvious oracle: levels, variances and covariances."""
    places, off, variance = (np.array(each) for each in zip(*sorted(looks), strict=True))
    told = curve_of(*looked(places, off, variance), ONE, ENDS)
    level, covariance = by_slopes(places, off, variance)

    assert np.allclose(told.off[1:-1, 0], level, atol=0.02)
    assert np.allclose(told.variance[1:-1, 0], np.diag(covariance), rtol=0.01, atol=1e-3)
    assert np.allclose(told.shared[1:-2, 0], np.diag(covariance, 1), rtol=0.01, atol=1e-2)


@settings(max_examples=sweep(20, 200), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_curve_between_two_looks_is_as_sure_as_its_grid_of_slopes(seed):
    """What is told half way between two looks varies about as much as if there were a look there that tells nothing."""
    rng = np.random.default_rng(seed)
    places = 2 * np.sort(rng.choice(np.arange(-5, 6), 4, replace=False))
    variance, off = rng.uniform(0.05, 3, 4), places + rng.normal(size=4)
    row = rng.integers(3)
    middle = (places[row] + places[row + 1]) // 2
    assume(min(middle * places[row], middle * places[row + 1]) >= 0)  # slopes are drawn from the crossing on
    all_, told = looked(places, off, variance)
    found = curve_of(all_, told, ONE, ENDS)._replace(weight=np.ones(all_.shape))
    part = np.array([[(middle - places[row]) / (places[row + 1] - places[row])]])
    mine = found.between(np.array([[row + 1]]), np.diff(all_, axis=0)[[row + 1]], part, np.zeros((1, 1)))[0, 0]
    full = (np.insert(each, row + 1, one) for each, one in ((places, middle), (off, 0.0), (variance, 1e9)))
    true = by_slopes(*full)[1][row + 1, row + 1]

    assert mine == pytest.approx(true, rel=0.2)


def test_steps_are_not_taken_for_a_curve():
    """Looks on a line are on a curve, most likely; those on two steps, well known, are not."""
    places, exact = np.arange(-4, 5), np.full(9, 0.01)  # one more than are near
    shown = (1.1 * places, np.sign(places - 0.5) * 3)
    line, steps = (curve_of(*looked(places, off, exact), ONE, ENDS) for off in shown)

    assert (line.weight > 0.99).sum() == MANY
    assert (steps.weight < 0.01).all()
    assert steps.or_(Offset(np.zeros((11, 1)), np.ones((11, 1)))).off == pytest.approx(0.0, abs=0.02)


def test_looks_that_tell_nothing_make_no_curve():
    """However little they tell: no variance is lost in rounding."""
    told = curve_of(*looked(np.arange(-2, 3), np.ones(5), np.array([1e9, 1e17, 1.0, 1e30, 1.0])), ONE, ENDS)

    assert told.weight.astype(bool).ravel().tolist() == [False, True, False, True, False, True, False]
    assert (told.variance[told.weight > 0] > 0).all()


def test_one_look_and_looks_far_away_are_on_no_curve():
    """Nothing is told of them, whatever they showed."""
    far = int(NEAR) + 1
    alone = curve_of(*looked(np.array([0]), np.zeros(1), np.ones(1)), ONE, ENDS)
    apart = curve_of(*looked(np.array([-far, 0, 1, far]), np.zeros(4), np.ones(4)), ONE, ENDS)

    assert not alone.weight.any()
    assert apart.weight.ravel().astype(bool).tolist() == [False, False, True, True, False, False]


@pytest.mark.parametrize("last", [1_000, 4])
def test_other_groups_make_no_difference(last):
    """Of two groups that are looked at together, one with more places, each is told what it is told alone, also where
    the end of the range is near.
    """
    many = looked(np.arange(-2, 3), np.ones(5), np.ones(5), last)
    places, told = looked(np.array([0, 1]), np.array([0.0, 1.1]), np.ones(2), last)
    parts = (np.insert(each, [3] * 3, [[value]] * 3, axis=0) for each, value in zip(told, (0.0, np.inf), strict=True))
    padded = np.insert(places, [3] * 3, [[last]] * 3, axis=0), Offset(*parts)
    together = curve_of(
        np.hstack([padded[0], many[0]]),
        Offset(*(np.hstack(pair) for pair in zip(padded[1], many[1], strict=True))),
        RankCrossing(*(np.repeat(each, 2) for each in ONE)),
        (np.repeat(ENDS[0], 2), np.repeat(ENDS[1], 2)),
    )

    alone, bare = (curve_of(*one, ONE, ENDS) for one in (many, (places, told)))
    assert all(np.allclose(mine[:, 1], its[:, 0]) for mine, its in zip(together, alone, strict=True))
    rows, part = np.arange(3)[:, None], np.full((3, 1), 0.5)
    of_two = [curve.between(rows, np.diff(where, axis=0)[:3], part, np.zeros((3, 1))) for curve, where in (
        (curve_of(*padded, ONE, ENDS), padded[0]), (bare, places),
    )]  # fmt: skip
    assert np.allclose(*of_two)
    columns, gaps = np.arange(2), np.diff(np.hstack([padded[0], many[0]]), axis=0)[:3]
    beside = together.between(2 * rows + columns, gaps, np.full((3, 2), 0.5), np.zeros((3, 2)))
    assert np.allclose(beside[:, :1], of_two[0])
    assert np.allclose(beside[:, 1:], alone.between(rows, gaps[:, 1:], part, np.zeros((3, 1))))
    kept = [0, 1, 2, 6]
    assert all(np.allclose(mine[kept, 0], its[:, 0]) for mine, its in zip(together[:4], bare[:4], strict=True))


def test_where_a_line_crosses_is_found_with_its_slope():
    """Between the two places around the crossing; the slope is that between clear ones, past those in doubt."""
    told = Offset(np.array([[-50.0], [-20.0], [-1.0], [2.0], [30.0]]), np.array([[0.0], [9.0], [9.0], [9.0], [9.0]]))
    place, slope = crossing_of(np.array([[0], [30], [48], [51], [80]]), told)

    assert place.tolist() == pytest.approx([49.0])
    assert slope.tolist() == pytest.approx([1.0])


def paid(leaf):
    """Return what the groups of these leaves pay for a median within 5 %."""
    groups = len(leaf)
    ranks = ranks_of(leaf, LEAVES_LOG2)
    plan = QuantileBisection(QuantileGoal(0.5, 0.0, float(LEAVES), LEAVES_LOG2), 0.05, 1 << 60, relative=0.05)
    noisy = NoisyRanks(ranks, plan.asked, seeded(3))
    state = plan.run(noisy.measure, noisy.measure_count, groups=groups)
    assert state.met.all()
    return state.paid * float(GRAIN)


@pytest.mark.statistical
def test_a_curve_makes_smooth_data_cheaper_and_lumps_hardly_more_expensive(monkeypatch):
    """Without one a median of even data costs at least a twelfth more; beside lumps it makes little difference."""
    rng = np.random.default_rng(2)
    even = rng.integers(0, LEAVES, (400, 4_000))
    lumps = rng.choice(rng.integers(0, LEAVES, 11), (200, 10_000))
    with_ = paid(even), paid(lumps)
    monkeypatch.setattr(quantile_picture, "curve_of", lambda places, *_: Curve.none(*places.shape))
    without = paid(even), paid(lumps)

    assert np.log(with_[0] / without[0]).mean() < -np.log(1 + 1 / 12)
    assert abs(np.log(with_[1] / without[1]).mean()) < np.log(1.2)
