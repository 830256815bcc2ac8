"""Estimates are right on average, within a tenth of the half-width at every truth; values and plain means are not."""

import numpy as np
import pytest
from accuracy.runs import State, bench, follow
from levels import ALPHA

from farthing.accuracy import Schedule, reported
from farthing.accuracy.noise_laws import LAPLACE

pytestmark = pytest.mark.thorough

RUNS = 30_000
KINK = 1000.0
ALLOWED = 0.1
THETAS = (0.3, 1.1, 2.0, 300.0)


def bias(relative, theta, *, seed, signed=False):
    """Return how far value, mean and estimate are off on average, over the half-width, and what chance may do to it.

    Numbers are clipped to a truth and a half around it, or five floors: the band is that of Maurer and Pontil.
    """
    options = {"per_grain": 2.0**-56, "cap_grains": 2**60, "signed": signed}
    schedule = Schedule.plan(relative, relative * KINK, 0.05, **options)
    truth = theta * KINK * (-1 if signed else 1)
    state = follow(schedule, State(np.full(RUNS, truth)), np.random.default_rng(seed))
    report = reported(state.mean, state.paid, schedule, state.futile)
    half = max(schedule.relative * abs(truth), schedule.floor)
    reach = max(1.5 * abs(truth) / half, 5.0)
    off = np.clip((np.stack([report.value, state.mean, report.estimate]) - truth) / half, -reach, reach)
    rare = np.log(4 / (ALPHA / 100))
    band = np.sqrt(2 * off.var(axis=1, ddof=1) * rare / RUNS) + 7 * 2 * reach * rare / (3 * (RUNS - 1))
    return off.mean(axis=1) * np.sign(truth), band


@pytest.mark.statistical
@pytest.mark.parametrize("relative", [0.1, 0.3, 0.5])
def test_estimates_are_nearly_unbiased(relative):
    """At no truth is the bias surely more than a tenth of the half-width, nor can it be twice that."""
    for seed, theta in enumerate(THETAS):
        for signed in (False, True):
            (_, _, off), (_, _, band) = bias(relative, theta, seed=seed, signed=signed)
            assert abs(off) - band <= ALLOWED
            assert abs(off) + band <= 2 * ALLOWED


@pytest.mark.statistical
@pytest.mark.parametrize("relative", [0.1, 0.5])
def test_estimates_of_chains_are_nearly_unbiased(relative):
    """The same on Laplace chains, with runs of bench/accuracy/held.py; their values are surely off by more."""
    made = {"per_grain": 2.0**-40, "cap_grains": 2**50, "law": LAPLACE}
    schedule = Schedule.plan(relative, relative * KINK, 0.05, **made)
    for seed, theta in enumerate(THETAS):
        mean, paid = np.zeros(RUNS), np.zeros(RUNS, np.int64)
        bench("held").follow(schedule, theta * KINK, mean, paid, np.ones(RUNS, bool), np.random.default_rng(seed))
        report = reported(mean, paid, schedule, np.zeros(RUNS, bool))
        half = max(schedule.relative * theta * KINK, schedule.floor)
        off = np.clip((report.estimate - theta * KINK) / half, -8, 8)
        band = np.sqrt(2 * off.var(ddof=1) * np.log(4e2 / ALPHA) / RUNS) + 7 * 16 * np.log(4e2 / ALPHA) / (3 * RUNS)
        assert abs(off.mean()) - band <= ALLOWED
        assert abs(off.mean()) + band <= 2 * ALLOWED


@pytest.mark.statistical
@pytest.mark.parametrize(("relative", "theta"), [(0.3, 2.0), (0.5, 300.0)])
def test_values_and_means_are_caught(relative, theta):
    """The same test tells that at loose targets values are low and means of the measurements are high."""
    (value, mean, _), (first, second, _) = bias(relative, theta, seed=7)

    assert value + first < -ALLOWED
    assert mean - second > ALLOWED


def test_estimates_rank_as_the_measurements_do():
    """An estimate rises with the mean, never jumps, and has its sign; without a relative target it is the mean."""
    schedule = Schedule.plan(0.3, 30.0, 0.05, per_grain=2.0**-56, cap_grains=2**60, signed=True)
    mean = np.linspace(-500, 500, 100_001)
    going = np.zeros(mean.size, np.bool_)
    last = np.full(mean.size, schedule.looks[-1])
    estimate = reported(mean, last, schedule, going).estimate
    flat = Schedule.plan(0.0, 30.0, 0.05, per_grain=2.0**-56, cap_grains=2**60)

    assert (np.diff(estimate) >= 0).all()
    assert np.diff(estimate).max() < 0.0101
    assert np.allclose(estimate, -estimate[::-1], rtol=1e-9)
    assert (reported(mean, np.full(mean.size, flat.looks[-1]), flat, going).estimate == mean).all()
