"""The attacks' own SQL through a farthing session: nothing is refused for its shape, and nothing is learned.

Every question is answered until the budget is spent; what is guessed is what the noise that was paid for allows.
"""

import math

import pytest

import farthing
from farthing import attacks
from farthing.attacks import tables, targets
from farthing.attacks.values import Hidden

pytestmark = pytest.mark.thorough

BUDGET = farthing.Budget(epsilon=1, delta=1e-6)
MU = 0.2367
PEOPLE = attacks.secrets(80, seed=6, attributes=20)
LOANS = tables.loans(seed=6, low=10_000, high=12_000)
RIDES = tables.rides(seed=6, known=60, rows=4_000)
FEW = attacks.secrets(12, seed=6)
SPENT = "the question does not fit in the budget"
OUTSIDE = {"refused: a subquery (line 1, column 30)", "refused: WITH (line 1, column 1)"}
"""Rewrites that are no single SELECT: the language has none for anybody."""


def over(questions=30, people=PEOPLE, **how):
    """Return a session over the people, divided by so many questions."""
    session = targets.FarthingSession.over(people, BUDGET).session
    return targets.FarthingSession(session, people, loss=targets.equal_share(session, questions), **how)


def of(table, questions=30, **how):
    """Return a session over a table of the published attacks."""
    return targets.FarthingSession.of_table(table, BUDGET, questions, **how)


def passengers():
    """Return the passenger counts of the known rides."""
    return Hidden.number("passenger_count", RIDES.of_known("passenger_count"), among=RIDES.among)


SHAPES = {
    "cohen-nissim": lambda: attacks.cohen_nissim(of(LOANS), queries=40),
    "dick-joseph-schutzman": lambda: attacks.dick_joseph_schutzman(of(RIDES), queries=40),
    "numbers": lambda: attacks.dick_joseph_schutzman(of(RIDES, lower=1, upper=6), passengers(), queries=40),
    "rewrites": lambda: attacks.averaging(over(lower=0, upper=1), 90, words="rewritten", victims=1),
    "membership": lambda: attacks.membership(over(15)),
    "single": lambda: attacks.single_target(over(), 2),
    **{
        f"linear, {name}": lambda name=name: attacks.linear(over(), 40, compiler=name)
        for name in ("ids", "hashes", "marginals")
    },
    "linear, equalities": lambda: attacks.linear(over(people=FEW), 40, compiler="equalities"),
    **{
        f"differencing, {trick}": lambda trick=trick: attacks.differencing(over(), trick=trick, victims=20)
        for trick in ("pair", "complement", "tracker", "range", "null")
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_no_question_is_refused_for_its_shape(name):
    """The only refusal is the ledger's, and it comes; no claim is refuted, no guess beats its noise."""
    result = SHAPES[name]()

    refusals = set(result.details.get("refusals", ())) - (OUTSIDE if name == "rewrites" else set())
    assert refusals <= {SPENT}
    assert "broken" != result.verdict
    assert 10 <= result.answered
    assert result.accuracy <= 0.5 + 6 * math.sqrt(0.25 / max(result.attempted, 1))


@pytest.mark.statistical
def test_cohen_and_nissim_learn_what_the_noise_allows():
    """The accuracy is the law's for the noise that was paid for, far below that for a fortieth of it."""
    people, questions = LOANS.people, 2 * LOANS.people.n
    result = attacks.cohen_nissim(of(LOANS, questions), queries=questions, method="least_squares")
    sigma = math.sqrt(questions) / MU
    band = 6 * math.sqrt(0.25 / people.n)

    assert (questions, 0) == (result.answered, result.refused)
    assert attacks.expected_accuracy(sigma, people.n, questions) == pytest.approx(result.accuracy, abs=band)
    assert result.accuracy < result.cap
    assert result.accuracy + 0.1 < attacks.expected_accuracy(sigma / 40, people.n, questions)
