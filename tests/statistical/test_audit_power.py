"""The audit itself is audited: how often it accuses the innocent, and how surely it sees the guilty.

Outputs are drawn from exact laws with fixed seeds: two-sided geometric noise of a known epsilon, normals of a known mu.
"""

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import Gdp, Pure, audit


def geometric(rng, epsilon, runs):
    """Return outputs on D and D': a count of 0 and of 1, with two-sided geometric noise."""
    noise = rng.geometric(1 - np.exp(-epsilon), (4, runs)) - 1
    return noise[0] - noise[1], noise[2] - noise[3] + 1


def refuted(claim, true, runs, repeats, confidence=0.999):
    """Return how many of many audits refute a claimed epsilon."""
    rng = np.random.default_rng(20)
    found = (audit.two_samples(*geometric(rng, true, runs), confidence=confidence) for _ in range(repeats))
    return sum(bound.exceeds(Pure(claim)) for bound in found)


@pytest.mark.statistical
def test_the_innocent_are_not_accused():
    """A true claim is refuted no more often than the confidence allows; half of the loss would always be."""
    repeats, confidence = 100, 0.95
    wrong = refuted(1.0, 1.0, 1_000, repeats, confidence)

    assert binom.isf(ALPHA, repeats, 1 - confidence) >= wrong
    assert binom.isf(ALPHA, repeats, 1 - confidence) < refuted(0.5, 1.0, 2_000, repeats, confidence)


PLANNED = ((1, 2.0, 1_000), (1, 1.5, 2_000), (1, 1.25, 6_000), (0.1, 0.2, 40_000))


@pytest.mark.statistical
@pytest.mark.parametrize(("claim", "true", "runs"), PLANNED)
def test_planned_numbers_of_runs_are_enough(claim, true, runs):
    """A loss above the claim is seen with power 0.95 at the planned number of runs: 20 of 20 audits see it."""
    assert 20 == refuted(claim, true, runs, 20)
    assert 0 == refuted(true, true, runs, 10)


@pytest.mark.statistical
def test_the_bound_comes_close():
    """With many runs the bound is within a tenth of the truth, and never above it."""
    rng = np.random.default_rng(21)
    normal = audit.two_samples(rng.normal(0, 1, 200_000), rng.normal(1, 1, 200_000), aim="mu", confidence=1 - ALPHA)
    pure = audit.two_samples(*geometric(rng, 1.0, 200_000), confidence=1 - ALPHA)

    assert 0.9 < normal.mu_lower <= 1
    assert 0.9 < pure.epsilon_lower <= 1
    assert not normal.exceeds(Gdp(1))
    assert normal.exceeds(Gdp(0.9))


@pytest.mark.statistical
def test_renyi_bounds_are_bounds():
    """D_2 of two normals is mu^2: the histogram stays below it, and sees noise that is 1.6 times too narrow."""
    rng = np.random.default_rng(22)
    found = audit.renyi_lower(rng.normal(0, 1, 300_000), rng.normal(1, 1, 300_000), confidence=1 - ALPHA)
    double = audit.renyi_lower(rng.normal(0, 1, 300_000), rng.normal(1.6, 1, 300_000), confidence=1 - ALPHA)

    assert 0.6 < found.epsilon_lower <= 1
    assert 1 < double.epsilon_lower <= 1.6**2
