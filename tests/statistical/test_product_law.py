"""The noise of sums of cells: its law in every measurement, and how often intervals miss.

Size: every test shares ALPHA among what it looks at. Power: noise of two thirds of the size is seen by each of them.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import binom, chi2
from sweeps import sweep

from farthing import Budget, Session
from farthing.limits.strategies import factorized
from farthing.mechanisms.strategy import Strategy, StrategyMeasurements, StrategyState, applied
from farthing.workloads import conditions, prefixes, ranges

RUNS = 2_000
COUNTS = np.array([[0, 3, 70_000], [1, 900, 12]])
STRATEGY = Strategy.rounded((2, 3), (None, factorized(np.tril(np.ones((3, 3))), largest=False).strategy))
ASKS = sweep(80, 120)
AGES = np.repeat(np.arange(6), [0, 1, 900, 20, 5, 0])


def draws(grains, reach=1):
    """Return [runs, measurements] the errors of a strategy, in standard deviations."""
    exact = applied(STRATEGY.floats, COUNTS)
    measuring = StrategyMeasurements({0: COUNTS}, (STRATEGY,), reach)
    nothing = StrategyState(0, np.zeros(STRATEGY.shape))
    errors = np.array([(measuring.measure(0, nothing, grains).mean - exact).reshape(-1) for _ in range(RUNS)])
    return errors / np.sqrt(STRATEGY.variance(grains, reach))


def furthest(errors):
    """Return how far the errors of any measurement are from normal ones."""
    ranks = np.arange(1, len(errors) + 1)[:, None] / len(errors)
    normal = ndtr(np.sort(errors, axis=0))
    return float(max(abs(normal - ranks).max(), abs(normal - ranks + 1 / len(errors)).max()))


@pytest.mark.statistical
@pytest.mark.parametrize("grains", [1 << 44, 1 << 58])
def test_measurements_have_normal_errors_of_the_size_that_is_told(grains):
    """Each measurement by itself, at coarse noise and at noise below one."""
    assert furthest(draws(grains, reach=3)) < dkw_band(RUNS, ALPHA / COUNTS.size) + 2.0**-10


@pytest.mark.statistical
def test_measurements_are_independent():
    """Variances of sums and differences of two errors are alike."""
    errors = draws(1 << 46)
    for one, other in combinations(range(errors.shape[1]), 2):
        for sign in (1, -1):
            total = float(((errors[:, one] + sign * errors[:, other]) ** 2).sum() / 2)
            assert ALPHA / 60 < chi2.cdf(total, RUNS) < 1 - ALPHA / 60


def test_smaller_noise_is_seen(monkeypatch):
    """Planted: two thirds of the noise are refuted by the law."""
    real = Strategy.sigma
    monkeypatch.setattr(Strategy, "sigma", lambda *given: real(*given) * 2 / 3)

    assert furthest(draws(1 << 44)) > dkw_band(RUNS, ALPHA / COUNTS.size) + 2.0**-10


def missed():
    """Return [asks, answers] whether an interval missed the truth; each ask is a question of its own."""
    workload = prefixes("age", range(7)) + 2 * ranges("age", range(7)) + conditions(["age > 2"])
    counts = np.bincount(AGES, minlength=6)
    low, high = np.triu_indices(6)
    sums = np.concatenate([[0], np.cumsum(counts)])
    truth = np.concatenate([sums[1:], sums[high + 1] - sums[low], [counts[3:].sum()]])
    found = []
    with Session(pa.table({"age": AGES}), budget=Budget(mu=8), name="data") as session:
        for at in range(ASKS):
            table = session.release(workload, where=f"age >= -{at}", absolute=60, cap="all").to_arrow()
            lower, upper = (table.column(name).to_numpy() for name in ("count_lower", "count_upper"))
            found.append((truth < lower) | (upper < truth))
    return np.array(found)


def refuted(found, rate):
    """Return whether misses, summed over asks of independent noise, refute a rate for one of the answers."""
    return any(binom.sf(int(one.sum()) - 1, len(one), rate) < ALPHA / found.shape[1] for one in found.T)


@pytest.mark.statistical
@pytest.mark.thorough
def test_intervals_hold_the_truth():
    """Each answer misses at most as often as was asked, at sums of 0, 1 and 926 alike."""
    assert not refuted(missed(), 0.05)


@pytest.mark.thorough
def test_intervals_that_are_too_narrow_are_seen(monkeypatch):
    """Planted: half of the half-width is refuted."""
    from farthing.planning.products import ProductPlan

    widths = ProductPlan.half_widths.fget
    monkeypatch.setattr(ProductPlan, "half_widths", property(lambda plan: tuple(one / 2 for one in widths(plan))))

    assert refuted(missed(), 0.05)
