"""Mechanisms on a histogram: the law of their noise and choices, and how often their promises fail, at several truths.

Size: every test shares ALPHA among what it looks at. Power: noise of two thirds of the size is seen.
"""

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import binom

from farthing.mechanisms import noisy_answers as noisy
from farthing.mechanisms import small_database
from farthing.mechanisms.linear_queries import MatrixQueries, uniform
from farthing.mechanisms.noisy_answers import chooser, deviation, noisy_answers, shared
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun
from farthing.mechanisms.projection import IndependentNoise, Projection, noisy_total
from farthing.mechanisms.small_database import SmallDatabase
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.sealed import sealed

pytestmark = pytest.mark.statistical

RUNS = 10_000


def ranks(errors):
    """Return how far errors in standard deviations are from normal ones."""
    below = ndtr(np.sort(errors))
    steps = np.arange(1, len(errors) + 1) / len(errors)
    return float(max(abs(below - steps).max(), abs(below - steps + 1 / len(errors)).max()))


@pytest.mark.parametrize("loss", [Gdp(0.02), Zcdp(3)], ids=["gdp", "zcdp"])
def test_noise_has_the_size_that_is_priced(loss):
    """Normal errors of the deviation that is told, at much and at little noise."""
    drawn = noisy_answers(np.full(RUNS, 1 << 20), loss, squares=9 << 32, total=3 << 16)
    errors = (drawn - (1 << 20)) / deviation(loss, squares=9 << 32, total=3 << 16)

    assert ranks(errors) < dkw_band(RUNS, ALPHA) + 2.0**-10


def test_noise_of_two_thirds_is_seen(monkeypatch):
    """Power: the same look at noise of two thirds of its size fails."""
    real = noisy.on_own_grid
    monkeypatch.setattr(noisy, "on_own_grid", lambda truth, sigma, bits: real(truth, sigma * 2 / 3, bits))
    with pytest.raises(AssertionError):
        test_noise_has_the_size_that_is_priced(Gdp(0.02))


def test_pure_noise_falls_at_the_rate_that_is_priced():
    """P[|noise| >= m] = 2 q^m/(1 + q) for the rate of the loss over the sensitivity."""
    drawn = abs(noisy_answers(np.zeros(RUNS, np.int64), Pure(0.5), squares=4, total=2))
    q = np.exp(-0.25)
    for m in (1, 4, 9, 16):
        told = 2 * q**m / (1 + q)
        seen = int((drawn >= m).sum())
        assert min(binom.cdf(seen, RUNS, told), binom.sf(seen - 1, RUNS, told)) > ALPHA / 8


@pytest.mark.parametrize("loss", [Gdp(0.05), Pure(0.1)], ids=["gdp", "pure"])
def test_a_small_database_is_chosen_by_its_score(loss, monkeypatch):
    """Each database with the chance of the choice at the price that is left, where the number of rows is known."""
    monkeypatch.setattr(small_database, "noisy_total", lambda *_: 100.0)
    queries, counts, runs, seen = MatrixQueries(np.eye(2)), np.array([60, 40]), 400, np.zeros(3)
    for _ in range(runs):
        found = SmallDatabase(loss, rows=2).run(counts, queries)
        seen[round(float(found.weights[0] / 50))] += 1
    scores = -np.array([60, 10, 40]) << 16
    told = chooser(shared(loss, 1, 15)[1]).probabilities(scores, 1 << 16)

    for many, chance in zip(seen.tolist(), told.tolist(), strict=True):
        assert 0.02 < chance < 0.98
        assert min(binom.cdf(many, runs, chance), binom.sf(many - 1, runs, chance)) > ALPHA / 6


@pytest.mark.parametrize("loss", [Gdp(0.2), Pure(0.4)], ids=["gdp", "pure"])
def test_the_projection_is_no_further_off_than_its_theorem(loss):
    """The mean squared error over runs is below the bound, and below that of the noise."""
    rng = np.random.default_rng(1)
    queries = MatrixQueries(rng.choice([-1.0, 1.0], (400, 64)))
    counts = np.bincount(rng.choice(8, 500), minlength=64)
    truth = queries.exact(counts) * queries.step
    errors = [((queries.of(Projection(loss).run(counts, queries).weights) - truth) ** 2).mean() for _ in range(8)]

    assert np.sqrt(np.mean(errors)) < Projection(loss).error(queries, 400, 500)
    assert np.sqrt(np.mean(errors)) < IndependentNoise(loss).deviation(queries) / 2


def asked(rule, counts, bits=None):
    """Return whether any of adaptive queries missed, and how many runs ended."""
    rng, truth = np.random.default_rng(4), sealed(counts)
    total = noisy_total(truth, rule.opening, 1, bits)
    weights, run, ended, missed = uniform(rule.cells, total), None, 0, False
    for _ in range(rule.queries):
        if run is None or run.ended:
            run = OnlineRun(rule, truth, weights, total, bits)
        query = MatrixQueries(np.sign(rng.normal(size=(1, rule.cells)) + (weights > total / rule.cells)))
        missed |= abs(run.ask(query) - float(query.exact(counts)[0] * query.step)) > rule.absolute
        weights, ended = run.weights, ended + run.ended
    return missed, ended


@pytest.mark.parametrize("shape", ["one cell", "even", "few"])
def test_online_answers_hold_together(shape):
    """At each truth all answers are within the error, and no more runs end than the theorem allows."""
    rows = 3_000
    counts = {"one cell": [rows] + [0] * 15, "even": [rows // 16] * 16, "few": [rows // 2, rows // 3] + [0] * 14}[shape]
    rule = OnlineRule(600, 60, 16, rows, confidence=0.9, currency=Gdp)
    runs = 15
    found = [asked(rule, np.array(counts)) for _ in range(runs)]
    misses = sum(missed for missed, _ in found)

    assert binom.sf(misses - 1, runs, 0.1) > ALPHA
    assert max(ended for _, ended in found) <= rule.updates
