"""The noise of a release: its law in every residual, and how often intervals miss, at every truth.

Size: every test shares ALPHA among what it looks at. Power: noise of two thirds of the size is seen, and so are
intervals of half the width.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import binom, chi2
from sweeps import sweep

from farthing import Bounds, Budget, Session
from farthing.mechanisms import residuals
from farthing.mechanisms.residuals import Residual, ResidualMeasurements, contrasts, lengths_of, precision_of
from farthing.workloads import marginals

COUNTS = np.array([[0, 3, 70_000], [1, 900, 12]])
RUNS = 3_000
SIZES = {"a": 2, "b": 3, "c": 4}
TRUTH = np.array([0, 1, 5, 40, 0, 900, 20_000, 3, 0, 0, 17, 2, 8, 1, 0, 0, 300, 6, 0, 50, 9, 0, 1, 2]).reshape(2, 3, 4)
ASKS = sweep(80, 150)


def draws(grains, reach=1):
    """Return [runs, contrasts] the errors of a residual of all columns, in standard deviations."""
    exact = contrasts(COUNTS) / lengths_of(COUNTS.shape)
    measuring = ResidualMeasurements({(0, 1): COUNTS}, reach)
    nothing = Residual.nothing(COUNTS.shape)
    errors = np.array([(measuring.measure((0, 1), nothing, grains).mean - exact).reshape(-1) for _ in range(RUNS)])
    return errors * np.sqrt(precision_of(grains, COUNTS.shape, reach))


def furthest(errors):
    """Return how far the errors of any contrast are from normal ones."""
    ranks = np.arange(1, len(errors) + 1)[:, None] / len(errors)
    normal = ndtr(np.sort(errors, axis=0))
    return float(max(abs(normal - ranks).max(), abs(normal - ranks + 1 / len(errors)).max()))


@pytest.mark.statistical
@pytest.mark.parametrize("grains", [1 << 44, 1 << 58])
def test_contrasts_have_normal_errors_of_the_size_that_is_told(grains):
    """Each contrast by itself, at coarse noise and at noise below one."""
    assert furthest(draws(grains, reach=3)) < dkw_band(RUNS, ALPHA / COUNTS.size) + 2.0**-10


@pytest.mark.statistical
def test_contrasts_are_independent():
    """Products of errors of two contrasts are zero on average: variances of sums and differences are alike."""
    errors = draws(1 << 46)
    for one, other in combinations(range(errors.shape[1]), 2):
        for sign in (1, -1):
            total = float(((errors[:, one] + sign * errors[:, other]) ** 2).sum() / 2)
            assert ALPHA / 4 < chi2.cdf(total, RUNS) < 1 - ALPHA / 4


def test_smaller_noise_is_seen(monkeypatch):
    """Planted: two thirds of the noise are refuted by the law."""
    real = residuals.sigma_of
    monkeypatch.setattr(residuals, "sigma_of", lambda *given: real(*given) * 2 / 3)

    assert furthest(draws(1 << 44)) > dkw_band(RUNS, ALPHA / COUNTS.size) + 2.0**-10


def session_of(**options):
    """Return a session on rows with these counts."""
    places = np.repeat(np.arange(TRUTH.size), TRUTH.reshape(-1))
    columns = {name: pa.array(at) for name, at in zip(SIZES, np.unravel_index(places, TRUTH.shape), strict=True)}
    units = {"u": pa.array(np.arange(len(places)) // 2)}
    return Session(pa.table(columns | units), budget=Budget(mu=8), name="data", **options)


def misses(session, asks=ASKS, **how):
    """Return, by table, [asks, cells] whether an interval missed the truth; each ask is a question of its own."""
    found = {}
    workload = marginals(list(SIZES), ways=2) + 2 * marginals(["a"], ways=1)
    for at in range(asks):
        keys = {name: range(size) for name, size in SIZES.items()}
        release = session.release(workload, keys=keys, where=f"a >= -{at}", cap="all", **how)
        for table in [*release, (), ("b",)]:
            truth = TRUTH.sum(axis=tuple(i for i, name in enumerate(SIZES) if name not in table))
            outside = abs(release[table].value - truth) > release[table].half_width
            found.setdefault(table, []).append(np.atleast_1d(outside).reshape(-1))
    return {table: np.array(missed) for table, missed in found.items()}


def refuted(found, rate):
    """Return the tables whose misses, summed over asks of independent noise, refute a rate for one of their cells."""
    return [
        table
        for table, missed in found.items()
        if any(binom.sf(int(cell.sum()) - 1, len(cell), rate) < ALPHA / (len(found) * 24) for cell in missed.T)
    ]


@pytest.mark.statistical
@pytest.mark.thorough
def test_intervals_hold_the_truth():
    """Each cell of each table misses at most as often as was asked, at counts of 0, 1 and 20,000 alike."""
    assert [] == refuted(misses(session_of(), absolute=60), 0.05)


@pytest.mark.statistical
@pytest.mark.thorough
def test_all_intervals_hold_at_once():
    """Simultaneous intervals all hold, in at least the share of asks that was named."""
    found = misses(session_of(), absolute=120, simultaneous=True, confidence=0.8)
    any_missed = np.concatenate([found[table] for table in found if len(table) > 1 or table == ("a",)], axis=1).any(
        axis=1
    )

    assert binom.sf(int(any_missed.sum()) - 1, ASKS, 0.2) > ALPHA


@pytest.mark.statistical
@pytest.mark.slow
def test_intervals_hold_the_truth_of_bounded_units():
    """With units of two rows and bounds that cut nothing, the same holds at the price of their reach."""
    session = session_of(unit="u", bounds=Bounds(max_groups=2, max_rows=2))

    assert [] == refuted(misses(session, absolute=240), 0.05)


@pytest.mark.statistical
@pytest.mark.thorough
def test_intervals_of_a_relative_target_hold_the_truth():
    """The pilot decides how precise a table is, and its noise is not part of the answer: misses stay within it."""
    assert [] == refuted(misses(session_of(), asks=sweep(30, 80), relative=0.3, absolute=60), 0.05)


@pytest.mark.thorough
def test_intervals_that_are_too_narrow_are_seen(monkeypatch):
    """Planted: half of the half-width, which misses every third time, is refuted."""
    from farthing.planning.release_plan import Goal

    real = Goal.critical.fget
    monkeypatch.setattr(Goal, "critical", property(lambda goal: real(goal) / 2))

    assert refuted(misses(session_of(), absolute=60), 0.05)
