"""Means, variances and formulas under a pure budget cover the truth at the stated confidence, and are paid in full."""

import math

import numpy as np
import pytest
from accuracy.runs import bench, surely_above
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import ALPHA

from farthing.accuracy import laplace_intervals, laplace_looks
from farthing.accuracy.formulas import FormulaStatistic
from farthing.accuracy.laplace_intervals import laplace_interval, laplace_quantile
from farthing.accuracy.laplace_looks import LaplaceLooks
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


LOOKS = {
    "a steep mean": (pure.MEAN, (20.0, 100.0), 0.3),
    "a variance": (pure.VARIANCE, (20.0, 100.0), 0.05),
    "a deviation": (pure.DEVIATION, (60.0, 800.0), 0.3),
}


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", [name if name == "a steep mean" else pytest.param(name, marks=pytest.mark.thorough) for name in LOOKS]
)
def test_looks_cover_and_cost_little(name):
    """One chain, of which the last look alone is paid: near the price of somebody who knows the truth."""
    statistic, shape, relative = LOOKS[name]
    truth = pure.lanes(*shape)[: len(statistic.reads)]
    asked = pure.question(statistic, len(truth), relative)
    state, _ = pure.played(asked, truth, GROUPS)
    assert not surely_above(pure.missed(asked, state, truth), GROUPS, 0.05, ALPHA / len(LOOKS))
    assert state.looked > 0
    assert asked.told(state)[3].all()
    assert state.paid.mean() / pure.ONE < 1.4 * pure.oracle(asked, truth)


@pytest.mark.thorough
def test_looks_that_are_told_too_narrow_are_seen(monkeypatch):
    """Planted: at three times the failure probability a mean misses far more than 5 %, though it stops sooner."""
    statistic, shape, relative = LOOKS["a steep mean"]
    truth = pure.lanes(*shape)[:2]
    monkeypatch.setattr(laplace_looks, "SINGLE", 3.0)
    asked = pure.question(statistic, 2, relative)
    state, _ = pure.played(asked, truth, GROUPS)
    assert surely_above(pure.missed(asked, state, truth), GROUPS, 0.05, ALPHA)


AROUND_ZERO = RatioStatistic(0, 1, 0.0, -50.0, 50.0)
ABSOLUTE = {
    "where both parts rule": ((0.15, 15.0), 40.0, 10_000),
    "of a small group": ((0.1, 15.0), 40.0, 30),
    "where the absolute part alone rules": ((0.02, 25.0), 40.0, 10_000),
}
"""Targets of a mean around 0, its value and the rows of its groups."""


def misses_more(name, groups):
    """Return whether groups surely miss a mean around 0 more often than 5 %."""
    target, mean, rows = ABSOLUTE[name]
    truth, asked = (rows, rows * mean), pure.question(AROUND_ZERO, 2, *target, cap=pure.ONE)
    state, _ = pure.played(asked, truth, groups)
    return surely_above(pure.missed(asked, state, truth), groups, 0.05, ALPHA / len(ABSOLUTE))


@pytest.mark.thorough
@pytest.mark.statistical
def test_a_mean_with_two_targets_covers():
    """A range around 0, where a relative target beside an absolute one rules near the ends or nowhere."""
    assert not any(misses_more(name, 20_000) for name in ABSOLUTE)


@pytest.mark.thorough
@pytest.mark.statistical
def test_a_bend_that_is_left_out_is_seen(monkeypatch):
    """Planted: what an absolute target allows is taken not to change within its width."""
    monkeypatch.setattr(laplace_looks, "_tilt", lambda *_: (0.0, laplace_looks.MOST_TILT))
    assert misses_more("where both parts rule", 40_000)


def test_a_relative_target_that_nowhere_rules_changes_nothing():
    """Looks are told at the failure probability of the absolute target alone."""
    for absolute, relatives in ((15.0, (1e-9, 0.02, 0.29)), (25.0, (1e-9, 0.02, 0.49))):
        told = [
            LaplaceLooks.of(pure.question(AROUND_ZERO, 2, relative, absolute), 1).told for relative in (0.0, *relatives)
        ]
        assert len(set(told)) == 1


@pytest.mark.thorough
@pytest.mark.statistical
def test_every_answer_of_a_chain_of_looks_covers():
    """From far too coarse to fine, then surer, then with another kind of target: each answer by itself."""
    truth, looks, state = pure.lanes(20.0, 100.0)[:2], None, None
    for relative, absolute, beta in ((0.6, 0.0, 0.05), (0.3, 0.0, 0.05), (0.25, 0.0, 0.05), (0.25, 0.0, 0.02)):
        asked = pure.question(pure.MEAN, 2, relative, absolute, beta=beta)
        state, looks = pure.played(asked, truth, GROUPS, state=state, looks=looks)
        assert not surely_above(pure.missed(asked, state, truth), GROUPS, beta, ALPHA / 5)
    assert state.looked > 0
    mixed = pure.question(pure.MEAN, 2, 0.3, 1.0, beta=0.05)
    state, _ = pure.played(mixed, truth, GROUPS, state=state, looks=looks)
    assert not surely_above(pure.missed(mixed, state, truth), GROUPS, 0.05, ALPHA / 5)
    assert mixed.told(state)[3].mean() > 0.95


def test_a_group_without_room_tells_little():
    """What it has paid is its whole cap: it is told as widely as ever it may be, not met, and pays no more."""
    truth = pure.lanes(60.0, 800.0)[:2]
    state, looks = pure.played(pure.question(pure.MEAN, 2, 0.1), truth, 100)
    paid = int(np.median(state.paid))
    asked = pure.question(pure.MEAN, 2, 0.03, cap=paid)
    after, _ = pure.played(asked, truth, 100, state=state, looks=looks)
    over = state.paid >= paid
    assert (after.paid[over] == state.paid[over]).all()
    assert after.paid[~over].max() <= paid
    assert not asked.told(after)[3].any()
    assert pure.missed(asked, after, truth) <= 8  # of 100, at 1 % at most


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
