"""Choices through the session follow the law that was priced, and orders told as proved are right often enough.

Size: an exact binomial quantile at ALPHA, of the law's own probabilities. Power: scores that are ranked before they are
bounded, sums of both signs taken for monotone, one price paid for two choices, and intervals a third as wide are
refuted by the same numbers; half the price, the nearest of these, passes with a chance below 4e-8 (exact binomials).
"""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import Bounds, Budget, Gdp, Session
from farthing.accuracy.stop_rule import two_sided
from farthing.mechanisms.noisy_max import NoisyMax
from farthing.release import Cells
from farthing.session.choosing import proven_order

pytestmark = pytest.mark.thorough

DRAWS = 800
ORDERS, SURE = 800, 0.9
EPSILON = 6
ZONES = "abc"
BOUNDED, RAW = [6, 3, 4], [6, 3, 60]
ROWS = pa.table({
    "zone": ["a"] * 6 + ["b"] * 3 + ["c"] * 60,
    "who": [*range(6), *range(3), *([0] * 60)],  # one unit has all rows of c: at most four count
    "x": [1.0] * 69,
})  # fmt: skip


def refuted(chosen, law):
    """Return the options whose share among the draws no healthy farthing shows: two-sided, at ALPHA over all."""
    level = ALPHA / (2 * len(law))
    counts = np.bincount(chosen, minlength=len(law))
    return [
        place
        for place, (seen, chance) in enumerate(zip(counts, law, strict=True))
        if binom.sf(seen - 1, len(chosen), chance) < level or binom.cdf(seen, len(chosen), chance) < level
    ]


def law(scores, epsilon=EPSILON, *, monotone=False):
    """Return the probabilities of the priced mechanism, by its integral: four rows of one unit move a sum by 4."""
    return NoisyMax(epsilon, "exponential").probabilities(scores, 4, monotone=monotone)


@pytest.mark.statistical
def test_a_choice_follows_the_law_of_bounded_signed_sums():
    """Choices by a signed sum have the probabilities of the mechanism on bounded scores, at the wider range of change.

    Each draw asks under another condition that holds for every row, which makes it a choice of its own.
    """
    asked = {"keys": {"zone": list(ZONES)}, "epsilon": EPSILON, "value": "x", "lower": -1, "upper": 1}
    bounds = Bounds(max_groups=3, max_rows=4)
    with Session(ROWS, unit="who", budget=Budget(epsilon=EPSILON * DRAWS), bounds=bounds) as session:
        firsts = [next(iter(session.top_k("zone", 1, where=f"who >= {-draw}", **asked))) for draw in range(DRAWS)]
    chosen = np.array([ZONES.index(first) for first in firsts])

    assert [] == refuted(chosen, law(BOUNDED))
    assert refuted(chosen, law(RAW))  # ranked before it was bounded
    assert refuted(chosen, law(BOUNDED, monotone=True))  # sums of both signs taken for monotone
    assert refuted(chosen, law(BOUNDED, EPSILON / 2))  # half the price


class Counts:
    """Counts of two almost equal groups, refined in looks: plain Gaussian noise of the loss that is named."""

    def __init__(self, bits, narrower):
        self.bits, self.narrower = bits, narrower
        self.information, self.mean = 0.0, np.zeros(2)

    def plan(self, *_):
        """Return a plan that fits."""
        return SimpleNamespace(fits=True)

    def ask(self, context, query, request):
        """Return intervals of what was measured so far, at the confidence that is asked."""
        more = float(request.loss.amount) - self.information
        seen = np.array([30.0, 31.0]) + self.bits.normal(size=2) / np.sqrt(more)
        self.mean = (self.information * self.mean + more * seen) / (self.information + more)
        self.information += more
        half = two_sided(request.beta(query.groups)) / np.sqrt(self.information) / self.narrower
        cells = Cells(self.mean, self.mean - half, self.mean + half, np.ones(2, np.bool_))
        return SimpleNamespace(cells=cells, paid=context.loss(0), keys=query.keys.table)


def wrong_orders(monkeypatch, narrower):
    """Return how often the order of two almost equal groups was told as proved, and was wrong."""
    bits, wrong = np.random.default_rng(20), 0
    with Session(ROWS, budget=Budget(mu=0.1)) as session:
        for _ in range(ORDERS):
            monkeypatch.setattr(proven_order, "mixed_question", Counts(bits, narrower))
            chosen = session.top_k("zone", 1, keys={"zone": ["a", "b"]}, order_correct=SURE, cap=Gdp(0.05))
            wrong += chosen.proved and ["a"] == list(chosen)
    return wrong


@pytest.mark.statistical
def test_a_proved_order_is_right(monkeypatch):
    """At most a tenth of the orders of two almost equal groups is proved and wrong; with narrow intervals many are."""
    most = binom.isf(ALPHA, ORDERS, 1 - SURE)

    assert wrong_orders(monkeypatch, 1) <= most
    assert wrong_orders(monkeypatch, 3) > most
