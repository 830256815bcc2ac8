"""Mechanisms on a histogram: the law of their noise and choices, and how often their promises fail, at several truths.

Size: every test shares ALPHA among what it looks at. Power: noise of two thirds of the size is seen.
"""

import contextlib

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import binom

from farthing.mechanisms import multiplicative_weights, projection, small_database
from farthing.mechanisms import noisy_answers as noisy
from farthing.mechanisms.adaptive_tables import CHOICE, SHARES, AdaptiveTables, MeasuredTables
from farthing.mechanisms.linear_queries import MatrixQueries, uniform
from farthing.mechanisms.multiplicative_weights import Mwem
from farthing.mechanisms.noisy_answers import chooser, deviation, noisy_answers, shared
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun
from farthing.mechanisms.projection import IndependentNoise, Projection, noisy_total
from farthing.mechanisms.small_database import SmallDatabase
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.sealed import sealed

RUNS = 10_000


def ranks(errors):
    """Return how far errors in standard deviations are from normal ones."""
    below = ndtr(np.sort(errors))
    steps = np.arange(1, len(errors) + 1) / len(errors)
    return float(max(abs(below - steps).max(), abs(below - steps + 1 / len(errors)).max()))


@pytest.mark.statistical
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


@pytest.mark.statistical
def test_pure_noise_falls_at_the_rate_that_is_priced():
    """P[|noise| >= m] = 2 q^m/(1 + q) for the rate of the loss over the sensitivity."""
    drawn = abs(noisy_answers(np.zeros(RUNS, np.int64), Pure(0.5), squares=4, total=2))
    q = np.exp(-0.25)
    for m in (1, 4, 9, 16):
        told = 2 * q**m / (1 + q)
        seen = int((drawn >= m).sum())
        assert min(binom.cdf(seen, RUNS, told), binom.sf(seen - 1, RUNS, told)) > ALPHA / 8


@pytest.mark.statistical
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


def first_choices(loss, runs=400):
    """Return how often each candidate is the first to be chosen, and its chance at the price that is told."""
    counts = {(0,): np.array([60, 40]), (1,): np.array([30, 70]), (0, 1): np.array([[30, 30], [0, 40]])}
    rule = AdaptiveTables(loss, ((0, 1),))
    shares = shared(shared(shared(loss, *SHARES)[1], 1, 7)[0], *CHOICE)

    class Known:
        """A model that knows each candidate but for some rows."""

        def counts(self, columns):
            """Return the table, off by rows that the first choice is to find."""
            return counts[columns] + {1: 9.0, 2: 12.0}[len(columns)]

        def cells(self, _):
            """Return that there is room."""
            return 0

    found = MeasuredTables((np.ones(2),) * 2, (np.arange(2),) * 2, ())
    truth = tuple(counts[one] for one in rule.candidates)
    scores = list(rule.scores(truth, Known(), 1.0, 1).values())
    seen = np.zeros(3)

    class Stopped(Exception):  # noqa: N818
        """The end of the first round."""

    def noted(_, columns, *__):
        """Note what was chosen."""
        seen[rule.candidates.index(columns)] += 1
        raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdaptiveTables, "_ones", lambda *_: (found, truth))
        patch.setattr(AdaptiveTables, "_measured", noted)
        patch.setattr(AdaptiveTables, "_deviation", lambda *_: 1.0)
        for _ in range(runs):
            with contextlib.suppress(Stopped):
                rule.run(counts, 2, lambda _: Known())
    return seen, chooser(shares[0]).probabilities(np.array(scores), 1 << 16)


@pytest.mark.statistical
def test_the_first_table_is_chosen_by_its_score():
    """Each candidate with the chance of the choice at the price of its round, one row moving a score by its weight."""
    seen, told = first_choices(Gdp(0.3))

    assert told.max() < 0.9
    for many, chance in zip(seen.tolist(), told.tolist(), strict=True):
        assert min(binom.cdf(many, 400, chance), binom.sf(many - 1, 400, chance)) > ALPHA / 6


def test_a_table_chosen_at_four_times_its_price_is_seen(monkeypatch):
    """Power: the same look at choices whose sensitivity is told too small fails."""
    monkeypatch.setattr(AdaptiveTables, "moves", property(lambda self: self.reach << 14))
    with pytest.raises(AssertionError):
        test_the_first_table_is_chosen_by_its_score()


@pytest.mark.statistical
@pytest.mark.parametrize("loss", [Gdp(0.2), Pure(0.4)], ids=["gdp", "pure"])
def test_the_projection_is_no_further_off_than_its_theorem(loss, monkeypatch):
    """The mean squared error over runs is below the bound, and below that of the noise.

    The bound leaves out what the total's own noise adds, which under a pure loss would exceed it in one try of twenty:
    so the number of rows is known here. Then eight runs are above it with a chance of about 1e-10.
    """
    monkeypatch.setattr(projection, "noisy_total", lambda *_: 500.0)
    rng = np.random.default_rng(1)
    queries = MatrixQueries(rng.choice([-1.0, 1.0], (400, 64)))
    counts = np.bincount(rng.choice(8, 500), minlength=64)
    truth = queries.exact(counts) * queries.step
    errors = [((queries.of(Projection(loss).run(counts, queries).weights) - truth) ** 2).mean() for _ in range(8)]

    assert np.sqrt(np.mean(errors)) < Projection(loss).error(queries, 400, 500)
    assert np.sqrt(np.mean(errors)) < IndependentNoise(loss).deviation(queries) / 2


@pytest.mark.statistical
@pytest.mark.parametrize("shape", ["one cell", "even", "few"])
@pytest.mark.parametrize("loss", [Gdp(0.02), Pure(0.02), Pure(1)], ids=["gdp", "pure", "much"])
def test_a_small_database_is_no_further_off_than_its_theorem(loss, shape):
    """The mean of the largest error over runs is below the bound, which is of its expectation, at each truth."""
    counts = np.array({"one cell": [2_000, 0, 0, 0], "even": [500] * 4, "few": [1_200, 800, 0, 0]}[shape])
    assert mean_error(loss, counts) < SmallDatabase(loss, rows=5).error(SIGNS, 2_000)


SIGNS = MatrixQueries(np.random.default_rng(2).choice([-1.0, 1.0], (16, 4)))


def mean_error(loss, counts, runs=12):
    """Return the mean over runs of the largest error of a query."""
    truth = SIGNS.exact(counts) * SIGNS.step
    found = [SmallDatabase(loss, rows=5).run(counts, SIGNS).weights for _ in range(runs)]
    return float(np.mean([abs(SIGNS.of(weights) - truth).max() for weights in found]))


SHAPES = {"one cell": [3_000] + [0] * 31, "even": [94] * 32, "few": [1_500, 900, 600] + [0] * 29}
RANDOM_SIGNS = MatrixQueries(np.random.default_rng(3).choice([-1.0, 1.0], (60, 32)))


@pytest.mark.statistical
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("passes", [0, 2])
@pytest.mark.parametrize("loss", [Pure(0.5), Gdp(0.2)], ids=["pure", "gdp"])
def test_the_mean_of_histograms_is_no_further_off_than_its_theorem(loss, passes, shape):
    """The mean over runs of the largest error is below MWEM's bound, which is of its expectation, at each truth."""
    found, bound = mwem_error(Mwem(loss, rounds=12, passes=passes, averaged=True), np.array(SHAPES[shape]))

    assert found < bound


def mwem_error(rule, counts, runs=5):
    """Return the mean over runs of the largest error of a query, and the bound."""
    truth = RANDOM_SIGNS.exact(counts) * RANDOM_SIGNS.step
    found = [abs(RANDOM_SIGNS.of(rule.run(counts, RANDOM_SIGNS).weights) - truth).max() for _ in range(runs)]
    return float(np.mean(found)), rule.error(RANDOM_SIGNS, counts.sum())


@pytest.mark.parametrize("planted", ["learned the wrong way", "noise at a millionth of its price"])
def test_an_error_above_the_theorem_of_mwem_is_seen(monkeypatch, planted):
    """Power: a histogram that moves away from what was measured, and much wider noise, are above the bound."""
    if planted == "learned the wrong way":
        right = multiplicative_weights.reweighed
        monkeypatch.setattr(multiplicative_weights, "reweighed", lambda held, tilt, total: right(held, -tilt, total))
    else:
        noise = multiplicative_weights.noisy_answers
        monkeypatch.setattr(
            multiplicative_weights,
            "noisy_answers",
            lambda answers, loss, **how: noise(answers, shared(loss, 1, 10**6)[0], **how),
        )
    rule = Mwem(Pure(4), rounds=30, passes=0, averaged=True)
    found, bound = mwem_error(rule, np.array(SHAPES["one cell"]) * 10)

    assert found > bound


@pytest.mark.parametrize(("loss", "slope"), [(Pure(1), -1 / 3), (Gdp(1), -1 / 2)], ids=["pure", "gdp"])
def test_the_bound_of_mwem_falls_with_the_exponent_of_the_table(loss, slope):
    """At the best number of rounds, each learned once: by 1/3 in the rows under pure DP, by 1/2 under Gaussian DP."""
    rules = [Mwem(loss, rounds=round(2**at), passes=0, averaged=True) for at in range(2, 18)]
    few, many = (min(rule.error(RANDOM_SIGNS, rows) / rows for rule in rules) for rows in (10**4, 10**6))

    assert slope * 1.1 < np.log10(many / few) / 2 < slope * 0.9


def test_a_choice_that_is_nearly_blind_is_seen(monkeypatch):
    """Power: at a millionth of the price, the error is far above what the choice and the total may add."""
    loss, counts = Pure(1), np.array([20_000, 0, 0, 0])
    bound = 20 * (SmallDatabase(loss, rows=5).error(SIGNS, 20_000) - 20_000 * np.sqrt(2 * np.log(32) / 5))
    truth = SIGNS.exact(counts) * SIGNS.step
    assert abs(SIGNS.of(SmallDatabase(loss, rows=5).run(counts, SIGNS).weights) - truth).max() < bound
    monkeypatch.setattr(small_database, "chooser", lambda _: chooser(Pure(1e-6)))
    found = [SmallDatabase(loss, rows=5).run(counts, SIGNS).weights for _ in range(6)]
    assert np.mean([abs(SIGNS.of(weights) - truth).max() for weights in found]) > bound


def asked(rule, counts, bits=None):
    """Return whether any of adaptive queries missed, and how many runs ended."""
    rng, truth = np.random.default_rng(4), sealed(counts)
    total = noisy_total(truth, rule.opening, 1, bits)
    weights, run, ended, missed = uniform(rule.cells, total), None, 0, False
    for _ in range(rule.queries):
        if run is None or run.ended:
            run = OnlineRun(rule, truth, weights, total, bits)
        query = MatrixQueries(np.sign(rng.normal(size=(1, rule.cells)) + (weights > total / rule.cells)))
        off = abs(run.ask(query) - float(query.exact(counts)[0] * query.step))
        missed |= off > (rule.margin if run.ended else rule.absolute)
        weights, ended = run.weights, ended + run.ended
    return missed, ended


@pytest.mark.statistical
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
