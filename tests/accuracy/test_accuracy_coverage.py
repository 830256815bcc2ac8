"""Stated intervals and values cover the truth at the stated confidence, on the schedule that is really run."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.runs import State, follow, missed, surely_above
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy import Schedule, oracle_cost, reported
from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.stop_rule import two_sided

pytestmark = pytest.mark.thorough

GRAIN = 2.0**-56
RUNS = 20_000


def plan(relative, absolute, beta, **options):
    """Lay out a schedule for counts, far from any cap unless one is given."""
    return Schedule.plan(relative, absolute, beta, per_grain=GRAIN, **{"cap_grains": 2**60, **options})


def misses(schedule, truth, *, runs=RUNS, seed=1):
    """Return how many of `runs` groups of that size were missed."""
    state = follow(schedule, State(np.full(runs, truth)), np.random.default_rng(seed))
    return int(missed(schedule, state).sum())


def cusps(relative):
    """Return truths over the kink where the miss rate peaks, and some others."""
    return (0.05, 1 - 0.9 * relative, 0.97, 1.0, 1 + 0.8 * relative, 1.5, 5.0, 300.0)


@pytest.mark.statistical
def test_every_truth_is_covered():
    """No cell of the (relative, truth, beta) grid misses more than beta, by exact binomial bounds."""
    cells = [(r, beta, x) for r in (0.02, 0.1, 0.3, 0.5) for beta in (0.05, 0.01) for x in cusps(r)]
    refuted = [
        (r, beta, theta)
        for number, (r, beta, theta) in enumerate(cells)
        if surely_above(
            misses(plan(r, 100.0, beta), theta * 100 / r, runs=10_000, seed=number), 10_000, beta, ALPHA / len(cells)
        )
    ]

    assert [] == refuted


@pytest.mark.statistical
def test_coverage_is_not_wasted():
    """At the worst truth the miss rate is close to beta: a third more confidence than promised would show."""
    schedule = plan(0.1, 100.0, 0.05)

    assert not surely_above(misses(schedule, 1070.0, runs=60_000), 60_000, 0.05, ALPHA)
    assert surely_above(misses(schedule, 1070.0, runs=60_000), 60_000, 0.04, ALPHA)


@pytest.mark.statistical
def test_the_uncalibrated_rule_is_caught():
    """With c = z and Y reported as it is, r = .5 misses far more than 5 %."""
    honest = plan(0.5, 100.0, 0.05)
    z = two_sided(0.05)
    plain = replace(honest, critical=z, jumps=JumpMap(z / 0.5, honest.jumps.ratio))
    truth = 2_000.0
    state = follow(plain, State(np.full(RUNS, truth)), np.random.default_rng(5))
    off = int((np.abs(state.mean - truth) > 0.5 * truth).sum())

    assert surely_above(off, RUNS, 0.05, ALPHA)
    assert surely_above(misses(plain, 150.0, runs=80_000), 80_000, 0.05, ALPHA)
    assert not surely_above(misses(honest, 150.0, runs=80_000), 80_000, 0.05, ALPHA)


@pytest.mark.statistical
def test_reporting_the_mean_itself_is_caught(monkeypatch):
    """With the right c but Y in place of (1 - r^2) Y, r = .5 as it is asked misses more than 5 %."""
    monkeypatch.setattr("farthing.accuracy.schedule.tamed", lambda relative, *_: relative)
    monkeypatch.setattr("farthing.accuracy.jumps._LOWEST", 0.0)
    schedule = plan(0.5, 100.0, 0.05)
    truth = 2_000.0
    state = follow(schedule, State(np.full(RUNS, truth)), np.random.default_rng(6))
    value = reported(state.mean, state.paid, schedule, state.futile).value

    assert surely_above(int((np.abs(state.mean - truth) > 0.5 * truth).sum()), RUNS, 0.05, ALPHA)
    assert not surely_above(int((np.abs(value - truth) > 0.5 * truth).sum()), RUNS, 0.05, ALPHA)


@pytest.mark.statistical
def test_coverage_holds_under_a_cap_that_gives_groups_up():
    """Futility is paid for inside beta, for hopeless groups and for those that are nearly hopeless."""
    for relative, cap in ((0.1, 2**42), (0.3, 2**38)):
        schedule = plan(relative, 0.0, 0.05, cap_grains=cap)
        for theta in (0.0, 0.5, 0.8, 1.0, 1 + 0.8 * relative, 2.0):
            count = misses(schedule, theta * schedule.floor / relative, runs=10_000, seed=12)
            assert not surely_above(count, 10_000, 0.05, ALPHA / 12)


def test_hopeless_groups_stop_early():
    """Where the cap binds, a group of zero pays a tenth of the cap and is marked as not met."""
    schedule = plan(0.1, 0.0, 0.05, cap_grains=2**42)
    state = follow(schedule, State(np.zeros(2_000)), np.random.default_rng(2))

    assert state.futile.mean() > 0.95
    assert state.paid.mean() < 0.12 * 2**42
    assert not reported(state.mean, state.paid, schedule, state.futile).met[state.futile].any()


@pytest.mark.statistical
@pytest.mark.parametrize(
    "steps",
    [
        ((0.1, 100.0), (0.05, 50.0)),
        ((0.1, 100.0), (0.099, 99.0)),
        ((0.3, 300.0), (0.3, 200.0), (0.3, 100.0)),
        ((0.5, 100.0), (0.4, 100.0)),
    ],
)
def test_a_refined_answer_is_covered(steps):
    """An answer that was refined, once or twice, is covered like one that was asked for at once."""
    relative, absolute = steps[-1]
    for number, theta in enumerate((0.9, 1 - 0.9 * relative, 1.0, 1 + 0.8 * relative, 3.0)):
        state, rule = State(np.full(10_000, theta * absolute / relative)), None
        rng = np.random.default_rng(40 + number)
        for r, a in steps:
            schedule = plan(r, a, 0.05, after=rule)
            rule = follow(schedule, state, rng) and schedule.rule
        assert not surely_above(int(missed(schedule, state).sum()), 10_000, 0.05, ALPHA / 20)


def test_asking_again_is_free():
    """A group that stopped under a schedule has stopped under the same schedule."""
    schedule = plan(0.1, 100.0, 0.05)
    state = follow(schedule, State(np.geomspace(1, 1e7, 500)), np.random.default_rng(3))
    paid = state.paid.copy()

    follow(plan(0.1, 100.0, 0.05, after=schedule.rule), state, np.random.default_rng(4))

    assert paid.tolist() == state.paid.tolist()


@pytest.mark.parametrize(("relative", "limit"), [(0.01, 1.04), (0.05, 1.04), (0.1, 1.04), (0.2, 1.08), (0.3, 1.11)])
def test_cost_is_close_to_that_of_knowing_the_truth(relative, limit):
    """Well above the kink the mean paid is within a few percent of the oracle's."""
    schedule = plan(relative, 100.0, 0.05)
    for truth in (2e3 / relative, 1e7):
        state = follow(schedule, State(np.full(10_000, truth)), np.random.default_rng(8))
        oracle = oracle_cost(truth, relative, 100.0, 0.05)
        assert 1 <= state.paid.mean() * GRAIN / oracle < limit


def test_looks_stay_few():
    """A large table needs about ten looks a group at r = .1, fewer than twenty near the boundary."""
    schedule = plan(0.1, 100.0, 0.05)
    for truth, most in ((0.0, 10), (500.0, 10), (1_000.0, 17), (1e5, 18)):
        state = follow(schedule, State(np.full(2_000, truth)), np.random.default_rng(8))
        assert state.looks.mean() < most


def test_the_binomial_bound_is_the_exact_one():
    """`surely_above` is the binomial tail: it fires at the stated level and not before."""
    threshold = int(binom.isf(1e-6, 10_000, 0.05)) + 2

    assert surely_above(threshold, 10_000, 0.05, 1e-6)
    assert not surely_above(threshold - 3, 10_000, 0.05, 1e-6)
