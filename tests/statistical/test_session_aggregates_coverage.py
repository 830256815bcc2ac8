"""Coverage of sums, means, variances and quantiles, through the Session: intervals hold the bounded truth.

Size: a cell (all copies of a size, all asks) is refuted when its misses exceed the exact binomial quantile at the
stated rate; the cells of a test share ALPHA. Power: with noise of twice the scale that is believed, some cell is
refuted (`test_planted_noise_is_caught`); the misses are then above 30 % in the cells that the noise decides.
"""

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

import farthing.mechanisms.gaussian
from farthing import Bounds, Budget, Session

pytestmark = pytest.mark.thorough

SIZES = (0, 30, 300, 3_000)
COPIES = 40
ASKS = 10
GROUPS = len(SIZES) * COPIES
SIZE = np.repeat(SIZES, COPIES)
KEYS = {"by": "k", "keys": {"k": range(GROUPS)}}
PLENTY = Budget(mu=8)
LOW, HIGH = -4.0, 8.0


@pytest.fixture(scope="module")
def table():
    """One group a size and copy; values on a grid of 1/8, some beyond the clamps, around a mean of each group's own."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(GROUPS), SIZE)
    shift = rng.uniform(-3, 5, GROUPS)[group]
    return pa.table({"k": group, "x": np.round((rng.normal(shift, 2.0)) * 8) / 8, "u": np.arange(len(group)) // 2})


def truths(table):
    """Return each group's clamped values."""
    group, x = table["k"].to_numpy(), np.clip(table["x"].to_numpy(), LOW, HIGH)
    return np.split(x, np.searchsorted(group, np.arange(1, GROUPS)))


def asked(table, method, *, by_unit=False, **how):
    """Return the answers to the same question about the same rows, each measured again."""
    options = {"unit": "u", "bounds": Bounds(max_groups=2, max_rows=2)} if by_unit else {}
    with Session(table, budget=PLENTY, **options) as session:
        return [
            getattr(session, method)(*(["x"] if method != "quantile" else ["x", 0.5]), lower=LOW, upper=HIGH, **KEYS,
                                     where=f"k >= -{i}", **how)
            for i in range(ASKS)
        ]  # fmt: skip


def refuted(answers, truth, known):
    """Return the sizes whose misses refute a miss rate of at most 5 %."""
    missed = np.array([(answer.lower > truth) | (answer.upper < truth) for answer in answers])
    cells = {size: missed[:, (size == SIZE) & known] for size in SIZES}
    return [
        size
        for size, cell in cells.items()
        if cell.size and binom.sf(int(cell.sum()) - 1, cell.size, 0.05) < ALPHA / len(SIZES)
    ]


def statistic(table, method):
    """Return the truth of every group, and whether it has one."""
    values = truths(table)
    some = SIZE > 0
    functions = {"sum": np.sum, "mean": np.mean, "variance": np.var}
    return np.array([functions[method](group) if len(group) else 0.0 for group in values]), some | (method == "sum")


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "how"), [
    ("sum", {"relative": 0.1, "absolute": 100}),
    ("mean", {"absolute": 0.5}),
    ("mean", {"relative": 0.2, "absolute": 0.2}),
    ("variance", {"absolute": 2}),
], ids=str)  # fmt: skip
def test_coverage(table, method, how):
    """Each row a unit: signed sums, means and variances miss at most as often as was promised."""
    assert [] == refuted(asked(table, method, **how), *statistic(table, method))


@pytest.mark.statistical
def test_coverage_with_units(table):
    """A unit column, with bounds that cut nothing: the noise is larger, the promise is the same."""
    assert [] == refuted(asked(table, "mean", by_unit=True, absolute=0.5), *statistic(table, "mean"))


@pytest.mark.statistical
def test_coverage_of_quantiles(table):
    """The interval of a median holds a value with half of the rows on either side."""
    answers = asked(table, "quantile", rank=0.05)
    values = truths(table)
    step = (HIGH - LOW) / 2**16
    for size in SIZES[1:]:
        here = np.flatnonzero(size == SIZE)
        missed = sum(
            not (np.mean(values[g] <= a.upper[g] + step) >= 0.5 and np.mean(values[g] < a.lower[g] - step) <= 0.5)
            for a in answers
            for g in here
        )
        assert binom.sf(missed - 1, len(here) * ASKS, 0.05) >= ALPHA / len(SIZES)


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["sum", "mean"])
def test_planted_noise_is_caught(table, method, monkeypatch):
    """Noise of twice the scale that is believed is refuted."""
    believed = farthing.mechanisms.gaussian.sigma_of
    monkeypatch.setattr(farthing.mechanisms.gaussian, "sigma_of", lambda *facts: 2 * believed(*facts))

    assert [] != refuted(asked(table, method, absolute=0.5 if method == "mean" else 100), *statistic(table, method))
