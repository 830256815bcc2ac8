"""Quantile intervals hold the truth, and ranks are met, at least as often as promised; louder noise is caught."""

from dataclasses import dataclass

import numpy as np
import pytest
from accuracy import runs
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal
from farthing.noise.bits import seeded

GROUPS = 600
LEAVES_LOG2 = 10
BETA = 0.2


def values(kind, rows, rng):
    """Return int64[groups, rows] leaves."""
    leaves = 1 << LEAVES_LOG2
    drawn = {
        "even": rng.random((GROUPS, rows)) * leaves,
        "skew": rng.lognormal(3.0, 1.5, (GROUPS, rows)),
        "atoms": rng.choice([5, 100, 101, 700, 1000], (GROUPS, rows), p=[0.3, 0.19, 0.02, 0.4, 0.09]),
    }[kind]
    return np.minimum(drawn, leaves - 1).astype(np.int64)


def ranks_of(leaf):
    """Return the histogram of many groups."""
    return runs.ranks_of(leaf, LEAVES_LOG2)


@dataclass(frozen=True)
class Louder:
    """A planted bug: measurements with several times the noise that their grains pay for."""

    inner: NoisyRanks
    times: float

    def measure(self, thresholds, grains, groups):
        return self.inner.measure(thresholds, np.maximum(grains // self.times**2, 1).astype(np.int64), groups)

    def measure_count(self, grains, groups):
        return self.inner.measure_count(np.maximum(grains // self.times**2, 1).astype(np.int64), groups)


def misses(asked, leaf, state):
    """Return which groups break a promise: the interval misses the quantile, or the rank is off."""
    ordered, rows = np.sort(leaf, axis=1), leaf.shape[1]
    truth = ordered[:, max(int(np.ceil(asked.steps / 2**20 * rows - 1e-9)), 1) - 1]
    step = (asked.upper - asked.lower) / asked.leaves
    outside = (state.lower > truth * step) | (state.upper < (truth + 1) * step)
    shown = np.ceil(state.value / step)[:, None] - 1  # the leaf that the value ends, or lies in
    low, high = (leaf < shown).mean(axis=1), (leaf <= shown).mean(axis=1)
    off = state.by_rank & ((low > asked.q + asked.rank + 1e-12) | (high < asked.q - asked.rank - 1e-12))
    return outside | off


CASES = [
    ("even", 300, QuantileGoal(0.5, 0.0, 1024.0, LEAVES_LOG2, rank=0.05), {}),
    ("skew", 1000, QuantileGoal(0.9, 0.0, 1024.0, LEAVES_LOG2, rank=0.03), {}),
    ("atoms", 400, QuantileGoal(0.5, 0.0, 1024.0, LEAVES_LOG2, rank=0.08), {}),
    ("skew", 500, QuantileGoal(0.0, 0.0, 1024.0, LEAVES_LOG2, rank=0.1), {}),
    ("skew", 2000, QuantileGoal(0.5, 0.0, 1024.0, LEAVES_LOG2), {"relative": 0.2, "absolute": 4.0}),
    ("even", 20, QuantileGoal(0.5, 0.0, 1024.0, LEAVES_LOG2, rank=0.05), {"absolute": 50.0}),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "rows", "asked", "targets"), CASES)
def test_promises_are_kept(kind, rows, asked, targets):
    """Over smooth, skewed and lumpy data, by rank and by value, capped and not: misses stay within beta."""
    leaf = values(kind, rows, np.random.default_rng(41))
    noisy = NoisyRanks(ranks_of(leaf), asked, seeded(42))

    cap = 1 << (52 if rows == 20 else 58)
    state = QuantileBisection(asked, BETA, cap, **targets).run(noisy.measure, noisy.measure_count, groups=GROUPS)

    assert misses(asked, leaf, state).sum() <= binom.isf(ALPHA, GROUPS, BETA)
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert state.met.mean() > 0.99 or rows == 20


@pytest.mark.statistical
def test_louder_noise_is_caught():
    """Noise four times what is paid for breaks the promise visibly."""
    kind, rows, asked, targets = CASES[4]
    leaf = values(kind, rows, np.random.default_rng(41))
    louder = Louder(NoisyRanks(ranks_of(leaf), asked, seeded(43)), 4.0)

    state = QuantileBisection(asked, BETA, 1 << 60, **targets).run(louder.measure, louder.measure_count, groups=GROUPS)

    assert misses(asked, leaf, state).sum() > binom.isf(ALPHA, GROUPS, BETA)
