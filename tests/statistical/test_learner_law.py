"""Private learners keep their promises on drawn data; weaker ones, and 5 % less epsilon, do not."""

import math

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.stats import binom

from farthing.mechanisms import Exponential, FiniteClassLearner, GlobalStability, Points, Thresholds
from farthing.mechanisms.learner import samples_limit, samples_needed
from farthing.mechanisms.stable_learner import points_needed, stable_point
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

ERROR, FAILURE, EPSILON = 0.1, 0.05, 0.5


def surely_at_most(misses, runs):
    """Tell whether so many misses do not contradict a chance of at most FAILURE (exact binomial)."""
    return binom.sf(misses - 1, runs, FAILURE) >= ALPHA


def surely_more(misses, runs):
    """Tell whether so many misses contradict a chance of at most FAILURE."""
    return binom.sf(misses - 1, runs, FAILURE) < ALPHA


@pytest.mark.statistical
def test_choices_have_the_law_of_the_learner():
    """Inside the band; the learner of replaced rows, half the rate, and 10 % off are outside."""
    runs, bits = 20_000, seeded(61)
    features, labels = [1, 2, 3, 3, 5, 6, 8], [0, 0, 1, 0, 1, 1, 0]
    thresholds = Thresholds(range(9))
    learner = FiniteClassLearner(thresholds, 1, bits)
    seen = np.bincount([int(learner.fit(features, labels).hypothesis.at) for _ in range(runs)], minlength=9) / runs
    mistakes = thresholds.mistakes(features, np.array(labels))

    def gap(epsilon):
        law = Exponential(epsilon).probabilities(-mistakes, monotone=True)
        return np.abs(np.cumsum(seen) - np.cumsum(law)).max()

    assert gap(1) < dkw_band(runs)
    assert min(gap(0.5), gap(1.25), gap(0.75)) > dkw_band(runs)


@pytest.mark.statistical
def test_rows_promise_on_the_worst_table():
    """Least epsilon misses as allowed where one hypothesis is best and all others just too bad; 5 % less does not."""
    runs, size, samples = 20_000, 1000, 200
    learner = FiniteClassLearner.for_accuracy(Points(size), samples, within=0.1, confidence=0.95)
    scores = np.full((runs, size), -21)
    scores[:, 7] = 0

    def misses(epsilon, seed):
        return int((Exponential(epsilon).choose(scores, monotone=True, bits=seeded(seed)) != 7).sum())

    assert surely_at_most(misses(learner.epsilon, 62), runs)
    assert surely_more(misses(learner.epsilon * 95 / 100, 63), runs)


def drawn(rng, rows, agnostic):
    """Return one drawn table on which the point 0 is right (or right in 3 of 4 cases) where it matters."""
    informative = rng.random(rows) < (1.0 if agnostic else ERROR * 1.0001)
    labels = informative & (rng.random(rows) < 0.5 + ERROR * 0.50005) if agnostic else informative
    return np.where(informative, 0, 99), labels


@pytest.mark.statistical
@pytest.mark.parametrize("agnostic", [False, True])
def test_rows_needed_are_enough(agnostic):
    """On a hard population the learner fails no more often than allowed; with half of the rows far more often."""
    size, runs = 64, 2500
    rng, bits = np.random.default_rng(64), seeded(64)
    epsilon = 0.05 if agnostic else EPSILON
    rows = samples_needed(size, ERROR, FAILURE, epsilon, agnostic=agnostic)
    learner = FiniteClassLearner(Points(size), epsilon, bits)

    def misses(count):
        return sum(learner.fit(*drawn(rng, count, agnostic)).hypothesis.at != 0 for _ in range(runs))

    assert surely_at_most(misses(rows), runs)
    assert surely_more(misses(rows // 2), runs)
    assert surely_more(misses(samples_limit(size - 1, ERROR, FAILURE, epsilon)), runs)


@pytest.mark.statistical
def test_rows_for_points_by_agreement_are_enough_and_no_more():
    """At the least number of rows the point is found as often as promised; with a seventh less it is not."""
    runs = 1000
    rng = np.random.default_rng(65)
    learner = GlobalStability(stable_point, EPSILON, 1e-6, parts=1000, moves=1, bits=seeded(65))
    rows = points_needed(learner, ERROR, FAILURE)

    def misses(count):
        wrong = 0
        for _ in range(runs):
            ours = rng.random(count) < ERROR
            learned = learner.fit(np.where(ours, 2**61, 5), ours)
            wrong += learned is None or learned.hypothesis.at != 2**61
        return wrong

    assert surely_at_most(misses(rows), runs)
    assert surely_more(misses(rows * 6 // 7), runs)


@pytest.mark.statistical
def test_a_lone_row_is_told_as_seldom_as_booked():
    """One row's own hypothesis is told with chance delta: no more often, and not much more seldom."""
    runs = 20_000
    learner = GlobalStability(stable_point, 1, 0.02, parts=3, moves=1, bits=seeded(66))
    seen = sum(learner.fit([12], [1]) is not None for _ in range(runs))
    slack = float(learner.loss.slack)

    assert math.isclose(slack, math.exp(-(learner.threshold - 1)) / (1 + math.exp(-1)), rel_tol=1e-9)
    assert binom.sf(seen - 1, runs, slack) >= ALPHA / 2
    assert binom.cdf(seen, runs, slack) >= ALPHA / 2
    assert binom.sf(seen - 1, runs, slack / 2) < ALPHA
