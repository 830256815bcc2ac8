"""Sums that may be negative are covered at both signs by the rule that stops by |Y|."""

import numpy as np
import pytest
from accuracy.runs import State, follow, missed, surely_above
from levels import ALPHA

from farthing.accuracy import Schedule, critical_value, doubling_cost, oracle_cost, reported
from farthing.accuracy.stored_promise import StoredPromise

pytestmark = pytest.mark.thorough

GRAIN = 2.0**-56


def plan(relative, absolute=100.0, beta=0.05, *, signed=True, cap=2**60):
    """Lay out a schedule for sums."""
    return Schedule.plan(relative, absolute, beta, per_grain=GRAIN, cap_grains=cap, signed=signed)


def misses(schedule, truth, *, runs=10_000, seed=1):
    """Return how many of `runs` groups of that truth were missed."""
    state = follow(schedule, State(np.full(runs, truth)), np.random.default_rng(seed))
    return int(missed(schedule, state).sum())


@pytest.mark.statistical
def test_both_signs_are_covered():
    """No cell of the (relative, truth, sign) grid misses more than beta, by exact binomial bounds."""
    cells = [(r, theta) for r in (0.1, 0.5, 0.8) for theta in (0.02, 1 - 0.9 * r, 1.0, 5.0)]
    cells = [(r, sign * theta) for r, theta in cells for sign in (1, -1)]
    refuted = [
        (r, theta)
        for number, (r, theta) in enumerate(cells)
        if surely_above(misses(plan(r), theta * 100 / r, runs=5_000, seed=number), 5_000, 0.05, ALPHA / len(cells))
    ]

    assert [] == refuted


@pytest.mark.statistical
def test_stopping_by_the_size_with_the_constant_of_counts_is_caught(monkeypatch):
    """At r = .9 as asked the one-sided constant leaves out stops on the wrong side of zero: it misses more."""
    monkeypatch.setattr("farthing.accuracy.schedule.tamed", lambda relative, *_: relative)
    monkeypatch.setattr("farthing.accuracy.jumps._LOWEST", 0.0)
    honest = plan(0.9)
    careless = Schedule.plan(0.9, 100.0, 0.05, per_grain=GRAIN, cap_grains=2**60)
    object.__setattr__(careless, "signed", True)

    assert surely_above(misses(careless, 1.0, runs=30_000), 30_000, 0.05, ALPHA)
    assert not surely_above(misses(honest, 1.0, runs=30_000), 30_000, 0.05, ALPHA)


def test_a_negative_sum_stops_early():
    """A large negative sum pays what its mirror image pays; by max(Y, 0) it would pay the last look."""
    truth = np.array([1e5, -1e5]).repeat(500)
    state = follow(plan(0.1), State(truth), np.random.default_rng(3))
    unsigned = follow(plan(0.1, signed=False), State(truth), np.random.default_rng(3))
    plus, minus = state.paid.reshape(2, -1).mean(axis=1)

    assert 1.0 == pytest.approx(plus / minus, rel=0.05)
    assert minus * GRAIN < 1.05 * oracle_cost(1e5, 0.1, 100.0)
    assert (unsigned.paid[500:] == plan(0.1, signed=False).looks[-1]).all()


def test_the_rule_is_odd():
    """Stopping, next looks, futility, prices and reports of -Y mirror those of Y."""
    schedule = plan(0.1, 0.0, cap=2**42)
    y = np.linspace(-3, 3, 601) * schedule.floor / 0.1
    information = np.full(y.size, schedule.looks[2000])
    report = reported(y, information, schedule, np.zeros(y.size, bool))

    assert schedule.stopped(information, y).tolist() == schedule.stopped(information, -y).tolist()
    assert schedule.next_look(information, y).tolist() == schedule.next_look(information, -y).tolist()
    assert schedule.futile(information, y).tolist() == schedule.futile(information, -y).tolist()
    assert schedule.typical(y).tolist() == schedule.typical(-y).tolist()
    assert report.value == pytest.approx(-report.value[::-1])
    assert doubling_cost(-500.0, 0.1, 10.0, first=1e-9) == doubling_cost(500.0, 0.1, 10.0, first=1e-9)


@pytest.mark.parametrize("relative", [0.05, 0.1, 0.3])
def test_the_constant_hardly_moves_for_small_targets(relative):
    """Far from zero the wrong side is out of reach: c of sums is that of counts."""
    c = critical_value(relative, 0.05, 640, 1.02)

    assert c == pytest.approx(critical_value(relative, 0.05, 640, 1.02, signed=True), abs=2e-4)


def test_old_promises_are_read_as_counts():
    """A stored promise without the word is one of counts; a signed one makes a signed schedule."""
    facts = {"relative": 0.1, "absolute": 50.0, "floor": 50.0, "beta": 0.05, "critical": 1.99, "grains": 1 << 50}

    assert not StoredPromise(**facts).schedule(GRAIN).signed
    assert StoredPromise(**facts, signed=True).schedule(GRAIN).signed
