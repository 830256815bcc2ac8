"""Answers that are refined in turn: every interleaving passes the same ledger, and loses what its books say."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from sweeps import sweep

from farthing import Budget, Session

TABLE = pa.table({"one": np.repeat([0, 1], [300, 200]), "other": np.repeat([0, 1, 0, 1], 125)})
LEVELS = (0.3, 0.9)
SHOWN = range(-40, 41)
ORDERS = sorted(set(permutations(("one", "one", "other", "other"))))


def asked(budget, order):
    """Return what is spent after each ask of two answers in some order, each once refined."""
    spent, widths = [], {"one": [400, 200], "other": [300, 150]}
    with Session(TABLE, budget=budget) as session:
        for column in order:
            session.count(column, keys={column: [0, 1]}, absolute=widths[column].pop(0), cap="all")
            spent.append(session.spent.amount)
        session.verify()
    return spent


@pytest.mark.parametrize("budget", [Budget(mu=1), Budget(rho=1), Budget(epsilon=1)], ids=["mu", "rho", "epsilon"])
def test_every_interleaving_of_two_answers_costs_the_same(budget):
    """Six orders of two answers, each refined once (two in the quick tier): one sum at the end, never falling."""
    found = [asked(budget, order) for order in sweep((ORDERS[0], ORDERS[1]), ORDERS)]

    assert 6 == len(ORDERS)
    assert all(sorted(spent) == spent for spent in found)
    assert 1 == len({spent[-1] for spent in found})
    assert 0 < found[0][-1] <= 1


@pytest.mark.parametrize("budget", [Budget(mu=1), Budget(epsilon=1)], ids=["mu", "epsilon"])
def test_analysts_who_refine_in_turn_draw_on_one_sum(budget, tmp_path):
    """Two sessions on one ledger, each with a share, refine two answers look by look: both pay, and one total rises."""
    ledger, shares = tmp_path / "books.ledger", []
    with Session(TABLE, budget=budget, ledger=ledger) as owner:
        for name in ("ann", "ben"):
            owner.allot(name, Fraction(1, 2))
    with (
        Session(TABLE, budget=budget, ledger=ledger, allotment="ann") as ann,
        Session(TABLE, budget=budget, ledger=ledger, allotment="ben") as ben,
    ):
        for session, column, width in ((ann, "one", 400), (ben, "other", 300), (ann, "one", 200), (ben, "other", 150)):
            before = session.remaining.amount
            answer = session.count(column, keys={column: [0, 1]}, absolute=width, cap="all")
            assert answer.paid
            shares.append(before - session.remaining.amount)
            assert shares[-1] == answer.paid.amount
    with Session(TABLE, budget=budget, ledger=ledger) as owner:
        assert owner.spent.amount == sum(shares) == asked(budget, ORDERS[1])[-1]
        assert owner.guarantee(of="spent").loss == owner.spent
        owner.verify()


def geometric(rate):
    """The law of two-sided geometric noise."""
    return {x: math.tanh(rate / 2) * math.exp(-rate * abs(x)) for x in range(-120, 121)}


def chain(truth, *, fresh):
    """Return the law of a coarse and then a finer look at one count: of the chain, or of looks drawn afresh."""
    low, high = LEVELS
    keep = (math.sinh(low / 2) / math.sinh(high / 2)) ** 2
    fine, coarse = geometric(high), geometric(low)
    law = {}
    for x in SHOWN:
        for y in SHOWN:
            after = keep * (x == y) + (1 - keep) * coarse[x - y]
            law[x, y] = fine[y - truth] * (coarse[x - truth] if fresh else after)
    return law


def first(law):
    """Return the law of the coarse look alone."""
    return {(x,): math.tanh(LEVELS[0] / 2) * math.exp(-LEVELS[0] * abs(x - law)) for x in SHOWN}


def most_lost(order, *, fresh=False):
    """Return by how much any outcome of any prefix of an interleaving loses more than the last levels."""
    worst = -math.inf
    for length in range(1, len(order) + 1):
        booked, lost = 0.0, 0.0
        for column in ("one", "other"):
            looks = order[:length].count(column)
            if looks:
                booked += LEVELS[looks - 1]
                laws = [first(truth) if looks == 1 else chain(truth, fresh=fresh) for truth in (0, 1)]
                lost += max(abs(math.log(laws[0][out] / laws[1][out])) for out in laws[0])
        worst = max(worst, lost - booked)
    return worst


@pytest.mark.parametrize("order", ORDERS[:3], ids="-".join)
def test_interleaved_chains_lose_their_last_levels_on_every_path(order):
    """One unit in both counts: at every stop of every interleaving the worst outcome loses the sum of last levels.

    The other three orders are these with the counts' names exchanged.
    """
    assert abs(most_lost(order)) < 1e-9


def test_looks_without_a_common_chain_lose_more():
    """Planted: finer noise that does not depend on the coarser. The sum of last levels is passed by the first ones."""
    assert most_lost(ORDERS[0], fresh=True) == pytest.approx(2 * LEVELS[0])
