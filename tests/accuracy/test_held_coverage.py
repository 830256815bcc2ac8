"""Targets of another kind after a first one: intervals told from what is held miss as rarely as they say."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.runs import bench, surely_above
from levels import ALPHA

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE

BETA, RUNS, TRUTHS = 0.05, 20_000, 11

KINDS = {
    "gaussian": (GAUSSIAN, False),
    "laplace": (LAPLACE, False),
    "whole steps": (LAPLACE, True),
}
PAIRS = {
    "absolute, then relative": ((0.0, 1000.0), (0.1, 0.0)),
    "absolute, then loose": ((0.0, 1000.0), (0.3, 200.0)),
    "relative, then absolute": ((0.1, 100.0), (0.0, 5_000.0)),
    "relative, then both": ((0.1, 1000.0), (0.05, 2_000.0)),
}


@pytest.fixture(scope="module")
def held():
    """The functions of bench/accuracy/held.py, which follow pairs of targets as a session does."""
    return bench("held")


def missed(held, pair, truth, *, seed, runs=RUNS, **planted):
    """Return how many of the runs miss after the second ask."""
    share, *_ = held.misses(*pair, BETA, truth, runs, np.random.default_rng(seed), **planted)
    return round(share * runs)


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_truth_is_missed_more_often_than_it_says(held, kind, pair):
    """At eleven truths about the places where either rule changes its interval: at most beta, by the exact binomial."""
    law, whole = KINDS[kind]
    first, second = PAIRS[pair]
    if whole and first[0]:
        pytest.skip("whole steps follow an absolute target alone")
    made = held.schedules(first, second, BETA, law, whole=whole)
    for seed, truth in enumerate(held.places(*made)):
        count = missed(held, made, truth, seed=seed)
        assert not surely_above(count, RUNS, BETA, ALPHA / TRUTHS), (truth, count / RUNS)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_rule_that_forgets_what_chose_its_groups_is_caught(held, kind):
    """Who looks was chosen by what was shown first: to begin as if nothing had been shown misses 8 % of 5 %."""
    first, second = PAIRS["relative, then absolute"]
    made = held.schedules(first, second, BETA, KINDS[kind][0])
    truth = 1.11 * second[1] / first[0]

    assert surely_above(missed(held, made, truth, seed=1, forgets=True), RUNS, BETA, ALPHA)
    assert not surely_above(missed(held, made, truth, seed=1), RUNS, BETA, ALPHA)


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "runs"), [("gaussian", 60_000), ("laplace", 400_000)])
def test_the_constant_of_one_look_is_caught(held, kind, runs):
    """A relative rule that keeps the critical value of the absolute target before it misses too often."""
    law, _ = KINDS[kind]
    first, second = held.schedules(*PAIRS["absolute, then loose"], BETA, law)
    plain = first.critical
    least = replace(second.jumps, boundary=plain / second.relative, near=0.0, zone=0)
    looks = np.maximum(1, np.rint(second.looks * (plain / second.critical) ** (1 if law is LAPLACE else 2)))
    wrong = replace(second, critical=plain, jumps=least, looks=looks.astype(np.int64))
    kink = wrong.floor / wrong.relative
    counts = [missed(held, (first, wrong), kink * at, seed=3, runs=runs) for at in (1 - wrong.relative, 1.0)]

    assert any(surely_above(count, runs, BETA, ALPHA / 2) for count in counts)
