"""What told prices say at one order: exact over all transcripts, after merging outcomes, and planted mistakes."""

import math
from fractions import Fraction
from itertools import product

import pytest

from farthing.errors import InvalidBudget
from farthing.privacy.ex_post import LinearBoundary, RenyiStatement
from farthing.privacy.loss import Gdp, Pure, Zcdp

STEPS = (0.2, 0.5, 1.0, 1.5)
ORDERS = (1.5, 2, 8, 64)


def transcripts():
    """Return (outputs, chance on D, chance on D', told rho): randomised responses that go on while they say yes."""
    found = []
    for bits in product((True, False), repeat=len(STEPS)):
        made = next((k + 1 for k, bit in enumerate(bits) if not bit), len(STEPS))
        if all(bits[made:]):  # one for each transcript
            chances = [math.exp(e) / (1 + math.exp(e)) for e in STEPS[:made]]
            p, q = (math.prod(c if bit == side else 1 - c for c, bit in zip(chances, bits, strict=False))
                    for side in (True, False))  # fmt: skip
            found.append((bits[:made], p, q, sum(float(Pure(e).to(Zcdp).amount) for e in STEPS[:made])))
    return found


def mean(law, order):
    """Return E exp((a-1)(Z - a rho)) over outcomes (chance on D, chance on D', rho)."""
    return sum(p * math.exp((order - 1) * (math.log(p / q) - float(RenyiStatement(order).at(Zcdp(rho)).value)))
               for p, q, rho in law)  # fmt: skip


def merged(told):
    """Return the law of whether the last answer was a yes, with one price for each, as `told` makes it of several."""
    law = []
    for last in (True, False):
        mine = [(p, q, rho) for outputs, p, q, rho in transcripts() if outputs[-1] == last]
        law.append((sum(p for p, _, _ in mine), sum(q for _, q, _ in mine), told([rho for _, _, rho in mine])))
    return law


@pytest.mark.parametrize("order", ORDERS)
def test_told_prices_hold_at_every_order_and_after_merging(order):
    """The mean is at most 1 over all transcripts, in both directions, and over outcomes merged at the largest price."""
    law = [(p, q, rho) for _, p, q, rho in transcripts()]

    assert math.isclose(1, sum(p for p, _, _ in law))
    assert math.isclose(1, sum(q for _, q, _ in law))
    for this in (law, merged(max)):
        assert mean(this, order) <= 1
        assert mean([(q, p, rho) for p, q, rho in this], order) <= 1


def test_merging_at_the_least_price_is_caught():
    """Planted: outcomes of several prices told at the least, and a price that forgets the last look."""
    forgot = [(p, q, rho - Pure(STEPS[len(out) - 1]).to(Zcdp).amount) for out, p, q, rho in transcripts()]

    assert any(mean(merged(min), order) > 1 or mean([(q, p, r) for p, q, r in merged(min)], order) > 1
               for order in ORDERS)  # fmt: skip
    assert any(mean([(p, q, max(0.0, float(rho))) for p, q, rho in forgot], order) > 1 for order in ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_a_told_epsilon_holds_and_the_rho_of_a_stopped_chain_does_not(order):
    """A chain at epsilon .5 and 1.5 that stops by what it shows: its last level holds after merging; its rho does not.

    The noise is two-sided geometric. Stopping where the coarse look's loss is at its highest is what refutes the rho.
    """
    law = stopped_chain()

    def told(statement):
        """Return the larger mean of both directions under a way to read the told level."""
        read = {level: statement(level) for level in {level for _, _, level in law}}
        return max(
            sum(p * math.exp((order - 1) * (math.log(p / q) - read[level])) for p, q, level in way)
            for way in (law, [(q, p, level) for p, q, level in law])
        )

    assert math.isclose(1, sum(p for p, _, _ in law), rel_tol=1e-9)
    assert told(lambda level: float(RenyiStatement(order).at(Pure(level)).value)) <= 1
    if order == ORDERS[0]:
        assert told(lambda level: order * float(Pure(level).to(Zcdp).amount)) > 1


def stopped_chain(low=0.5, high=1.5, reach=60):
    """Return (chance on D, chance on D', last level) of a chain at 0 and at 1 that stops where it shows at least 1."""
    keep = (math.sinh(low / 2) / math.sinh(high / 2)) ** 2

    def noise(rate, x):
        return math.tanh(rate / 2) * math.exp(-rate * abs(x))

    shown = range(-reach, reach + 1)
    law = [(noise(low, x - 1), noise(low, x), low) for x in shown if x >= 1]
    for x in (x for x in shown if x < 1):
        for y in shown:
            after = keep * (x == y) + (1 - keep) * noise(low, x - y)
            law.append((noise(high, y - 1) * after, noise(high, y) * after, high))
    return law


def test_statements_add():
    """Two releases one after the other: the mean of the sum is at most 1 where each one's is, and they are values."""
    first = merged(max)
    both = [(p * a, q * b, r + s) for p, q, r in first for a, b, s in first]

    assert all(mean(both, order) <= 1 for order in ORDERS)
    assert RenyiStatement(2) == RenyiStatement(2)
    with pytest.raises(InvalidBudget, match="order"):
        RenyiStatement(1)


def test_a_statement_is_the_linear_boundary_in_other_words():
    """At the order where the boundary is tightest both say the same of a run that stopped there."""
    variance, delta = 2862, Fraction(1, 10**8)
    order = 1 + math.sqrt(2 * variance * math.log(1e8))
    told = RenyiStatement(order).surely(Gdp.of_amount(Fraction(1, variance)), delta)

    assert told.value == pytest.approx(LinearBoundary(delta=delta, tight_at=variance).at(variance).value, rel=1e-9)
