"""Boosting for queries: what a row moves, what a release costs, and the error that its theorem promises."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidOption
from farthing.mechanisms import boosted_queries
from farthing.mechanisms.boosted_queries import BoostedQueries, rounds_for
from farthing.mechanisms.linear_queries import MatrixQueries, TableQueries, uniform
from farthing.mechanisms.noisy_answers import drawer, noisy_answers
from farthing.privacy.loss import Gdp, Pure, Zcdp

RANDOM = np.random.default_rng(8)
QUERIES = MatrixQueries(RANDOM.choice([-1.0, 1.0], (12, 8)))
TABLES = TableQueries((4, 2), ((0,), (0, 1)))
COUNTS = RANDOM.integers(0, 400, 8)


@pytest.mark.parametrize("loss", [Gdp(0.5), Zcdp(0.1), Pure(1)], ids=["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("queries", [QUERIES, TABLES], ids=["matrix", "tables"])
def test_all_that_is_drawn_costs_at_most_the_loss(loss, queries, monkeypatch):
    """The total, every draw of a round by itself, and every measurement; and nearly all of the loss is used."""
    spent = []

    def measuring(truth, loss, **how):
        """Note a measurement."""
        spent.append(loss.amount)
        return noisy_answers(truth, loss, **how)

    class Noted:
        """Draws of which each is noted."""

        def __init__(self, loss):
            self.made, self.rate = drawer(loss), drawer(loss).rate
            self.price = self.made.price(type(loss)).amount

        def choose(self, scores, *how, **more):
            """Draw once a row."""
            spent.extend([self.price] * len(scores))
            return self.made.choose(scores, *how, **more)

    monkeypatch.setattr(boosted_queries, "noisy_answers", measuring)
    monkeypatch.setattr(boosted_queries, "drawer", Noted)
    first = boosted_queries.noisy_total
    monkeypatch.setattr(
        boosted_queries, "noisy_total", lambda c, loss, *how: spent.append(loss.amount) or first(c, loss, *how)
    )
    BoostedQueries(loss, error=5, rounds=3, drawn=4).run(COUNTS, queries)
    assert 0.999 * loss.amount <= sum(spent, Fraction(0)) <= loss.amount


@pytest.mark.parametrize("reach", [1, 3])
def test_a_unit_moves_what_queries_are_drawn_by_no_more_than_is_priced(reach, monkeypatch):
    """With the same histograms, scores of neighbours are at most the priced sensitivity apart, and that is reached."""
    seen = []

    class Noted:
        """Draws that note scores and sensitivity."""

        def choose(self, scores, sensitivity, **_):
            """Draw the first query."""
            seen.append((scores[0].copy(), sensitivity))
            return np.zeros(len(scores), np.int64)

        def rate(self, _):
            """Return a small rate, so that the margin is wide."""
            return 1e-12

    monkeypatch.setattr(boosted_queries, "drawer", lambda _: Noted())
    monkeypatch.setattr(BoostedQueries, "_made", lambda *_: uniform(8, 10.0))
    monkeypatch.setattr(boosted_queries, "noisy_total", lambda *_: 10.0)
    more = COUNTS + 500
    more[2] += reach
    for counts in (COUNTS + 500, more):
        BoostedQueries(Gdp(1), error=0, rounds=4, reach=reach).run(counts, QUERIES)
    (before, sensitivity), (after, _) = seen[3], seen[7]
    assert sensitivity == 4 * reach * QUERIES.total(QUERIES.groups[0])
    assert abs(after - before).max() == sensitivity * 3 // 4  # three rounds were scored before the fourth draw


def test_every_answer_is_within_the_theorem():
    """With a large loss each histogram serves its queries, and all answers are within error and margin."""
    made = BoostedQueries(Gdp(10**6), error=60, rounds=rounds_for(12), drawn=24, passes=60)
    answers = made.run(COUNTS, QUERIES)
    assert made.margin(QUERIES) < 20
    assert abs(answers - np.asarray(QUERIES.weights) @ COUNTS).max() <= 60 + made.margin(QUERIES)


def test_the_margin_falls_with_the_loss():
    """Slope -1 in the loss, +1.5 in the rounds and +0.5 in the draws, as the page on proofs says."""

    def margin(mu, rounds, drawn):
        """Return the margin in rows."""
        return BoostedQueries(Gdp(mu), error=1, rounds=rounds, drawn=drawn).margin(QUERIES)

    base = margin(0.1, 40, 16)
    assert margin(0.05, 40, 16) == pytest.approx(2 * base, rel=1e-3)
    assert margin(0.1, 160, 16) == pytest.approx(8 * base, rel=1e-3)
    assert margin(0.1, 40, 64) == pytest.approx(2 * base, rel=1e-3)


def test_badly_answered_queries_are_drawn_more_often(monkeypatch):
    """A query that every histogram answers badly is drawn nearly always in the end."""
    drawn = []

    def made(*given):
        """Note what was drawn; answer all queries well but the last."""
        drawn.append(given[4][0])
        return COUNTS.astype(float) + 1e6 * np.eye(8)[7]

    queries = MatrixQueries(np.vstack([np.eye(8)[:7], np.eye(8)[7]]))
    monkeypatch.setattr(BoostedQueries, "_made", made)
    BoostedQueries(Gdp(1), error=1, rounds=12, drawn=8).run(COUNTS, queries)
    assert (drawn[0] == 7).mean() < 0.7
    assert (np.concatenate(drawn[-3:]) == 7).mean() > 0.9


@pytest.mark.parametrize("bad", [{"error": float("nan")}, {"error": -1}, {"error": "5"}])
def test_an_error_that_is_none_is_refused(bad):
    """A finite number of rows, or zero."""
    with pytest.raises(InvalidOption, match="not a number of rows"):
        BoostedQueries(Gdp(1), **bad)
