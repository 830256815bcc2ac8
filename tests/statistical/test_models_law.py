"""Models under noise: what a row moves is hidden as priced, promises hold as often as promised, planted bugs show.

Rates are judged by exact binomial (Clopper-Pearson) bounds at ALPHA.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from levels import ALPHA
from scipy.special import ndtri
from scipy.stats import beta, binom

from farthing.mechanisms import AboveThreshold
from farthing.mechanisms.reduced_threshold import ReducedAboveThreshold
from farthing.models import bounds, regressions, stops
from farthing.models.bounds import StatisticsNoise, shown_bound
from farthing.models.looks import VectorLooks
from farthing.models.problems import Ridge
from farthing.models.purses import Purse
from farthing.models.rows import UnitBallFrame
from farthing.models.vectors import Statistics
from farthing.noise.bits import seeded
from farthing.privacy import Gdp, Pure

pytestmark = [pytest.mark.statistical, pytest.mark.thorough]

TRIALS = 40_000


@dataclass(frozen=True)
class Many:
    """One vector over and over: independent releases of the same statistics in one look."""

    one: Statistics
    part: float = 1.0  # of the sensitivity: below 1 is a planted bug

    @property
    def truth(self):
        """The vector, TRIALS times."""
        return np.tile(self.one.truth, TRIALS)

    @property
    def step_log2(self):
        """That of the vector."""
        return self.one.step_log2

    def sensitivity(self, norm):
        """That of one vector, or the planted part of it."""
        return int(self.one.sensitivity(norm) * self.part)


def scores(points, cap, part, norm, seed):
    """Return, for each release of the statistics of some rows, how much it looks as if a row e1 was there."""
    one = Statistics.of(Ridge(np.array(points), np.ones(len(points)), 10, 0.1), norm)
    purse = Purse(cap)
    looks = VectorLooks(Many(one, part), purse, fresh=False, bits=seeded(seed))
    levels = [purse.coins(cap.value / 2), purse.coins(cap.value)]
    for coins in levels:
        shown = looks.show(coins)
    table = shown.reshape(TRIALS, -1)
    if cap.currency == "pure":  # the likelihood ratio of a clipped move in each coordinate that a row moves
        return np.clip(table[:, [0, -len(points[0])]], 1.0, 2.0).sum(axis=1)
    return table[:, 0] + table[:, -len(points[0])]


def loss_lower(cap, part, norm="l2", row=1.0):
    """Return a lower bound on what two looks lose between 1 row and 2, from 40,000 releases of each."""
    base = [[1.0, 0.0]]
    without, present = (
        scores(points, cap, part, norm, seed) for seed, points in enumerate((base, [*base, [row, 0.0]]), 1)
    )
    half = TRIALS // 2
    bar = 3.999 if cap.currency == "pure" else (without[:half].mean() + present[:half].mean()) / 2
    alarms, hits = ((found[half:] > bar).sum() for found in (without, present))
    hit = beta.ppf(ALPHA / 2, hits, half - hits + 1)
    alarm = beta.isf(ALPHA / 2, alarms + 1, half - alarms)
    return float(ndtri(hit) - ndtri(alarm)) if cap.currency == "gdp" else float(np.log(hit / alarm))


@pytest.mark.parametrize("cap", [Gdp(1.5), Pure(2)], ids=repr)
def test_two_looks_hide_a_row_as_they_say_and_planted_bugs_show(cap):
    """No distinguisher beats the loss; with half the sensitivity, or a row that was not clamped, one does."""
    norm = "l2" if isinstance(cap, Gdp) else "l1"

    assert loss_lower(cap, 1.0, norm) <= cap.value
    assert loss_lower(cap, 0.5, norm) > cap.value
    assert loss_lower(cap, 1.0, norm, row=2.0) > cap.value


def rate_above(count, trials, rate):
    """Return the chance of at least that many in some trials, each with that rate."""
    return float(binom.sf(count - 1, trials, rate))


def test_the_hurdle_of_a_test_is_as_high_as_needed():
    """Scores at the edge of the target pass with the chance allowed, not with far less; a lower hurdle fails."""
    looks, failure, trials = 8, 0.2, 500

    def passed(level):
        """Count the runs in which one of some scores of 0 passes."""
        mechanism = AboveThreshold(level, 1)
        return sum(mechanism.first(np.zeros(looks), bits=bits) is not None for _ in range(trials))

    def reduced(level):
        """The same with levels that rise."""
        count = 0
        for _ in range(trials):
            run = ReducedAboveThreshold(0).start(bits)
            count += any(run.above(-level / epsilon, epsilon) for epsilon in (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6))
        return count

    bits = seeded(9)
    for count, hurdle in ((passed, stops.hurdle(looks, failure)), (reduced, stops.reduced_hurdle(looks, failure))):
        found = count(hurdle)
        assert rate_above(found, trials, failure) > ALPHA
        assert found > trials * failure / 3
        assert rate_above(count(hurdle - 6), trials, failure) < ALPHA


def problem_of(seed, rows=2000):
    """Return a small ridge problem."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 3))
    frame = UnitBallFrame(2.0, 2.0)
    points = frame.points(features)
    response = frame.responses(features @ [1.0, -0.5, 0.2] + rng.normal(size=rows) / 2, rows)
    return frame, Ridge(points, response, rows, 0.005)


@pytest.mark.parametrize("stop", ["test", "reduced", "shown"])
def test_a_fit_that_ends_as_met_is_within_its_target(stop, monkeypatch):
    """At most a tenth of the fits miss the target that they say is met; with the noise forgotten most of them do."""
    frame, problem = problem_of(1)
    cap = Gdp(8) if stop == "shown" else Pure(100)
    vector = Statistics.of(problem, "l2")
    fits = 70

    def misses():
        """Count the fits that end as met, and miss."""
        asked = regressions.FitRequest(0.002, 0.002, 0.9, Purse(cap), "reduction", None, bits)
        missed = 0
        for _ in range(fits):
            fitted = regressions._fitted(asked, frame, problem, vector, stop)
            theta = np.append(fitted.coefficients * 2.0, fitted.intercept) / (2.0 * frame.share)
            missed += fitted.met and problem.excess(theta) > 0.002
        return missed

    bits = seeded(10)
    assert rate_above(misses(), fits, 0.1) > ALPHA
    monkeypatch.setattr(stops, "hurdle", lambda *_: 0.05)
    monkeypatch.setattr(stops, "reduced_hurdle", lambda *_: 0.05)
    monkeypatch.setattr(stops, "shown_bound", lambda *_: 0.0)
    assert rate_above(misses(), fits, 0.1) < ALPHA


def test_the_bound_from_shown_numbers_covers_the_excess():
    """It is above the excess at least as often as promised, within a small factor; a twentieth of it is not."""
    _, problem = problem_of(2, rows=20_000)
    vector = Statistics.of(problem, "l2")
    purse, trials, failure = Purse(Gdp(8)), 400, 0.2
    bits = seeded(11)
    ratios = []
    for _ in range(trials):
        values = VectorLooks(vector, purse, fresh=False, bits=bits).show(purse.coins(1.0))
        bound = shown_bound(vector, values, StatisticsNoise.of(vector, purse, purse.coins(1.0), 1), failure)
        ratios.append(problem.excess(vector.hypothesis(values)) / bound)
    ratios = np.array(ratios)

    assert np.isfinite(ratios).all()
    assert rate_above(int((ratios > 1).sum()), trials, failure) > ALPHA
    assert rate_above(int((ratios > 1 / 20).sum()), trials, failure) < ALPHA


@pytest.mark.parametrize("cap", [Gdp(8), Pure(500)], ids=repr)
def test_the_noise_that_theory_asks_for_keeps_its_promise(cap):
    """At the level of theory the excess is within the target as often as promised; far below that level it is not."""
    frame, problem = problem_of(3, rows=20_000)
    vector = Statistics.of(replace(problem, regularisation=0.05), "l2")
    problem = replace(problem, regularisation=0.05)
    purse, trials, failure, target = Purse(cap), 300, 0.2, 0.0005
    coins = bounds.theory_coins(problem, vector, purse, target, failure)
    bits = seeded(12)

    def missed(level):
        """Count the releases at a level that miss the target."""
        shown = [VectorLooks(vector, purse, fresh=False, bits=bits).show(level) for _ in range(trials)]
        return sum(problem.excess(vector.hypothesis(values)) > target for values in shown)

    assert frame.intercept
    assert rate_above(missed(coins), trials, failure) > ALPHA
    assert rate_above(missed(coins // 3000), trials, failure) < ALPHA
