"""Means, variances and formulas under a pure budget cover the truth at the stated confidence, and are paid in full."""

import math

import numpy as np
import pytest
from accuracy.runs import bench, surely_above
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import ALPHA

from farthing.accuracy import laplace_intervals
from farthing.accuracy.formulas import FormulaStatistic
from farthing.accuracy.laplace_intervals import laplace_interval, laplace_quantile
from farthing.accuracy.laplace_state import LaplaceState
from farthing.accuracy.statistics import Linear, RatioStatistic

pure = bench("pure_measures")
GROUPS = 2_000
APART = FormulaStatistic(
    RatioStatistic(0, 1, 5.0, 0.0, 10.0),
    FormulaStatistic(-1.0, RatioStatistic(2, 3, 5.0, 0.0, 10.0), product=True),
    scales=(1.0, 5.0, 1.0, 5.0),
)


def drawn(statistic, truth, scales, runs, seed):
    """Return the misses of the interval of a statistic, of so many groups that are alike."""
    rng, column = np.random.default_rng(seed), np.array(scales)[:, None]
    values = np.array(truth)[:, None] + column * rng.laplace(size=(len(truth), runs))
    steps = np.zeros((len(truth), 1))
    low, high = laplace_interval(statistic, values, np.broadcast_to(column, values.shape), steps, 0.05)
    exact = statistic.estimate(np.array(truth)[:, None])[0]
    return int(((low > exact) | (high < exact)).sum())


CASES = {
    "a count": (Linear((0,)), (100.0,), (20.0,)),
    "a sum of two": (Linear((0, 1), (1.0, 2.0)), (100.0, 7.0), (20.0, 10.0)),
    "a mean": (pure.MEAN, (1000.0, 5000.0), (20.0, 1000.0)),
    "a mean of few": (pure.MEAN, (10.0, -300.0), (9.0, 450.0)),
    "a variance": (pure.VARIANCE, tuple(pure.lanes(60.0, 800.0, 1_000)), (5.0, 250.0, 6250.0)),
    "a deviation": (pure.DEVIATION, tuple(pure.lanes(60.0, 10.0, 1_000)), (2.0, 100.0, 2500.0)),
    "a difference": (APART, (1000.0, 2000.0, 500.0, 500.0), (15.0, 75.0, 15.0, 75.0)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_an_interval_covers(name):
    """No kind of output misses more than it may."""
    assert not surely_above(drawn(*CASES[name], 20_000, 1), 20_000, 0.05, ALPHA / len(CASES))


@pytest.mark.statistical
def test_a_count_that_is_taken_to_be_exact_is_seen(monkeypatch):
    """Planted: without the noise of the count a mean off the middle misses more than it may."""
    statistic, truth, scales = pure.MEAN, (1000.0, 40_000.0), (60.0, 1500.0)
    assert not surely_above(drawn(statistic, truth, scales, 20_000, 2), 20_000, 0.05, ALPHA)
    honest = laplace_intervals.laplace_quantile
    monkeypatch.setattr(laplace_intervals, "laplace_quantile", lambda found, beta: honest(found[:1], beta))
    assert surely_above(drawn(statistic, truth, scales, 20_000, 2), 20_000, 0.05, ALPHA)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0, 1e3).map(lambda x: 0.0 if x < 1e-6 else x), min_size=1, max_size=5),
    st.sampled_from([0.3, 0.05, 1e-4]),
)
def test_a_quantile_is_none_too_small(scales, beta):
    """By Chernoff's bound from above it is near, and below the largest scale's own quantile it never is."""
    found, largest = float(laplace_quantile(np.array(scales)[:, None], beta)[0]), max(scales)
    assert found >= largest * math.log(1 / beta) * (1 - 1e-12)
    assert found <= sum(scales) * math.log(len(scales) / beta) * 1.3 + 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("pair", [(0.1, 0.05), (0.2, 0.2)])
def test_a_run_and_a_sharper_one_cover(pair):
    """Whichever rung a group stops at, it misses no more than it may; and so after a sharper ask."""
    truth = pure.lanes(60.0, 800.0, 2_000)[:2]
    first = pure.question(pure.MEAN, 2, pair[0])
    state, looks = pure.played(first, truth, GROUPS)
    assert not surely_above(pure.missed(first, state, truth), GROUPS, 0.05, ALPHA / 4)
    assert first.free(state)
    sharper = pure.question(pure.MEAN, 2, pair[1], beta=0.02)
    assert not sharper.free(state)
    after, _ = pure.played(sharper, truth, GROUPS, state=state, looks=looks)
    assert not surely_above(pure.missed(sharper, after, truth), GROUPS, 0.02, ALPHA / 4)
    assert (after.paid >= state.paid).all()
    assert first.told(state)[3].mean() > 0.95


@pytest.mark.statistical
def test_noise_that_is_larger_than_it_says_is_seen():
    """Planted: of noise half as large again as its level says, a mean misses far more than 5 %."""
    truth, asked = pure.lanes(60.0, 800.0, 20_000)[:2], pure.question(pure.MEAN, 2, 0.05)
    state, _ = pure.played(asked, truth, GROUPS, looks=pure.sources(truth, GROUPS, smaller=0.5))
    assert surely_above(pure.missed(asked, state, truth), GROUPS, 0.05, ALPHA)


def test_groups_that_are_too_small_are_given_up():
    """They cost a part of the cap, and tell a wide interval."""
    truth, asked = pure.lanes(60.0, 800.0, 3)[:2], pure.question(pure.MEAN, 2, 0.01, cap=1 << 38)
    state, _ = pure.played(asked, truth, 50)
    assert state.paid.max() < 1 << 38
    assert not asked.told(state)[3].any()
    assert asked.worst(LaplaceState.nothing(2, 1, 50)) == 1 << 38


def test_no_group_pays_more_than_its_cap():
    """Whatever comes, levels of both chains add up to the cap at most; a named loss is used up."""
    truth = pure.lanes(60.0, 800.0, 200)[:2]
    for asked in (pure.question(pure.MEAN, 2, 0.02, cap=1 << 39), pure.question(pure.MEAN, 2, 0.0, cap=1 << 39)):
        state, _ = pure.played(asked, truth, 100)
        assert state.paid.max() <= 1 << 39
    assert state.paid.min() > 0.99 * (1 << 39)
