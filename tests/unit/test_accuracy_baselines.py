"""What others would pay."""

import numpy as np
import pytest

from farthing.accuracy import doubling_cost, oracle_cost
from farthing.accuracy.stop_rule import two_sided


def test_oracle_pays_the_single_gaussian():
    """mu^2 = z^2 D^2 / max(r x, a)^2."""
    expected = [(1.959964 * 2 / 100) ** 2, (1.959964 * 2 / 1000) ** 2]

    assert expected == pytest.approx(oracle_cost([500, 10_000], 0.1, 100.0, 0.05, sensitivity=2.0), rel=1e-6)


def test_oracle_cannot_answer_zero_relatively():
    """A truth of zero has no relative accuracy at any price."""
    assert np.isinf(oracle_cost(0, 0.1, 0.0))


def test_doubling_matches_a_simulation():
    """The expected spend is that of drawing fresh noise level by level."""
    rng, runs, first = np.random.default_rng(9), 20_000, 3e-9
    relative, absolute, z = 0.1, 100.0, two_sided(0.05)
    for truth in (0.0, 900.0, 5_000.0, 60_000.0):
        paid, going, level = np.zeros(runs), np.ones(runs, bool), first
        enough = (z / absolute) ** 2
        while going.any():
            level = min(level, enough)
            paid[going] += level
            shown = truth + rng.standard_normal(runs) / np.sqrt(level)
            going &= (z / np.sqrt(level) > relative * np.abs(shown)) & (level < enough)
            level *= 2
        expected = doubling_cost(truth, relative, absolute, first=first)
        assert float(expected) == pytest.approx(paid.mean(), rel=0.03)


def test_doubling_pays_two_to_four_times_the_oracle():
    """Above the kink, forgetting and overshooting cost a factor of 2 to 4."""
    truth = np.geomspace(5e3, 1e7, 50)
    ratio = doubling_cost(truth, 0.1, 100.0, first=1e-15) / oracle_cost(truth, 0.1, 100.0)

    assert 2 < ratio.min() < ratio.max() < 4


def test_doubling_stops_at_a_cap():
    """A cap ends it, also for a target that nothing meets; without relative part it pays every level."""
    assert 7.0 == pytest.approx(float(doubling_cost(0.0, 0.1, 0.0, first=1.0, last=4.0)))
    assert 7.0 == pytest.approx(float(doubling_cost(1e9, 0.0, 1e-9, first=1.0, last=4.0)))
