"""The suite against its targets: each broken one is broken by some attack, which says so; the honest one by none.

And against farthing itself, through its SQL door: it answers until the ledger refuses, and nothing is learned that the
budget does not allow.
"""

import json
import math
import os

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Gdp, Pure, Session, attacks
from farthing.attacks import Claim, People, targets
from farthing.noise.bits import system_bits

pytestmark = pytest.mark.thorough

N = 120
PEOPLE = attacks.secrets(N, seed=11)
BITS = PEOPLE.bits
MANY = attacks.secrets(600, seed=12).bits

BROKEN = {
    "exact": lambda: attacks.linear(targets.Exact(BITS)),
    "rounded": lambda: attacks.linear(targets.Rounded(BITS, 5), queries=8 * N),
    "suppressed": lambda: attacks.differencing(targets.Suppressed(BITS, 10)),
    "subsample": lambda: attacks.linear(targets.Subsample(MANY[:200]), method="least_squares"),
    "fresh noise, averaged": lambda: attacks.averaging(targets.FreshGaussian(BITS, math.sqrt(10)), 400),
    "fresh noise, linear": lambda: attacks.linear(targets.FreshGaussian(BITS, math.sqrt(10)), queries=16 * N),
    "float noise": lambda: attacks.precision(targets.each(targets.Floats, MANY, epsilon=1)),
    "leaky ledger": lambda: attacks.single_target(targets.LeakyLedger(BITS)),
    "sensitivity off by two": lambda: attacks.single_target(targets.each(targets.OffByTwo, MANY, epsilon=1)),
}

HONEST = {
    "linear": lambda: attacks.linear(targets.Honest(BITS, 1, 4 * N)),
    "linear, few questions": lambda: attacks.linear(targets.Honest(BITS, 1, 3 * N)),
    "least squares": lambda: attacks.linear(targets.Honest(BITS, 1, 4 * N), method="least_squares"),
    "averaging": lambda: attacks.averaging(targets.Honest(BITS, 1, 4 * N), 4),
    "differencing": lambda: attacks.differencing(targets.Honest(BITS, 1, 2 * N)),
    "range": lambda: attacks.differencing(targets.Honest(BITS, 1, 2 * N), trick="range"),
    "single target": lambda: attacks.single_target(targets.Honest(BITS, 1, 100), 1),
    "single target, many": lambda: attacks.single_target(targets.each(targets.Honest, MANY, epsilon=1)),
    "precision": lambda: attacks.precision(targets.each(targets.Honest, MANY, epsilon=1)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_called_broken(name):
    """Some attack refutes the claim, or epsilon 1 where there is none."""
    result = BROKEN[name]()
    assert "broken" == result.verdict
    assert result.claim.epsilon < result.epsilon_lower


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honest_holds(name):
    """No attack calls the correct mechanism broken, and each says how it ended."""
    result = HONEST[name]()
    assert ("holds", "") == (result.verdict, result.needs)


class OneGenerator:
    """Noise from a generator in memory, started once and for all."""

    speaks, name, claim, people = "vector", "one generator", Claim(1), People.of(BITS)

    def __init__(self):
        self.generator = np.random.default_rng(5)

    def ask(self, question):
        return int((question.chosen & BITS).sum()) + self.generator.normal(0, 50)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_forked_workers_that_share_their_noise_are_broken():
    """The noise of two forks is the same, so that a difference has none, however large it is."""
    assert "holds" == attacks.differencing(OneGenerator(), victims=30).verdict
    forked = attacks.differencing(targets.Forked(OneGenerator()), victims=30)
    assert (1.0, "broken") == (forked.accuracy, forked.verdict)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_forks_fail_in_plain_words():
    """A fork that hangs is ended, one that dies is noticed, a refusal comes through as it is."""
    hangs = targets.Forked(targets.Function(lambda _: __import__("time").sleep(30), BITS), timeout_s=0.2)
    dies = targets.Forked(targets.Function(lambda _: os._exit(1), BITS))
    refuses = targets.Forked(targets.Honest(BITS, 1, 1))
    ask = attacks.Question(chosen=np.ones(N, dtype=bool))

    assert "no answer in 0.2 s" == hangs.ask(ask).reason
    assert "the fork died" == dies.ask(ask).reason
    refuses.target.ask(ask)
    assert "budget" == refuses.ask(ask).why


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_our_noise_is_new_in_every_fork():
    """A stream of noise bits that was in use before the forks gives each of them other bits."""
    stream = system_bits()
    stream.words(3)
    target = targets.Forked(targets.Function(lambda _: int(stream.words(1)[0] >> np.uint64(12)), BITS))
    ask = attacks.Question(chosen=np.ones(N, dtype=bool))

    assert 12 == len({target.ask(ask) for _ in range(12)})


def test_the_linear_attack_on_farthing_learns_what_the_budget_allows():
    """As many questions as it likes, at the loss that is left for each: near a coin toss, far below the cap."""
    queries = N + 40
    ours = targets.FarthingSession.over(PEOPLE, Budget(epsilon=1, delta=1e-6), loss=Gdp(0.2367 / math.sqrt(queries)))
    result = attacks.linear(ours, queries=queries, method="least_squares")
    sigma = math.sqrt(queries) / 0.2367
    expected = attacks.expected_accuracy(sigma, N, queries)

    assert "holds" == result.verdict
    assert 0.9 * queries <= result.answered
    assert abs(result.accuracy - expected) < 6 * math.sqrt(0.25 / N)


def test_the_ledger_stops_every_attack_on_farthing():
    """Averaging, differences, rewrites and one person alone: the budget ends them all, and none breaks the claim."""
    for attack, options in [
        (attacks.averaging, {"repeats": 4}),
        (attacks.averaging, {"repeats": 30, "words": "rewritten"}),
        (attacks.differencing, {"repeats": 3}),
        (attacks.single_target, {"questions": 4}),
    ]:
        ours = targets.FarthingSession.over(PEOPLE, Budget(epsilon=2), loss=Pure(0.1))
        result = attack(ours, **options)
        assert "broken" != result.verdict
        assert 0 < result.refused
        assert ours.session.spent <= Pure(2)
        assert Claim(4.0) == result.claim


def test_asking_farthing_again_is_free_and_useless():
    """The same question has the same answer in one session and costs once: repetitions average nothing."""
    ours = targets.FarthingSession.over(PEOPLE, Budget(epsilon=1), loss=Pure(0.5))
    ask = attacks.Question(text=PEOPLE.count("id = 7"))
    assert 1 == len({ours.ask(ask) for _ in range(10)})
    assert Pure(0.5) == ours.session.spent


def test_our_refinements_gain_nothing():
    """The average of a chain of refinements is no better than its last answer: four hundred groups, a chain each."""
    groups, size = 400, 30
    table = pa.table({"g": np.repeat(np.arange(groups), size)})
    session = Session(table, budget=Budget(mu=50))
    answer = session.count(by="g", keys={"g": range(groups)}, absolute=40, cap="all")
    looks = [answer.value]
    for halvings in range(1, 6):
        answer = answer.refine(absolute=40 * 2 ** (-halvings / 2), cap="all")
        looks.append(answer.value)
    chains = np.column_stack(looks)

    assert np.all(np.diff(np.std(chains, axis=0)) < 0)
    assert 0.85 < attacks.refinement_gain(chains, truth=size)


def test_results_of_every_attack_are_json():
    """Reports can be stored, whatever the details are."""
    results = [
        attacks.linear(targets.Exact(BITS)),
        attacks.exhaustive(targets.Exact(BITS[:8])),
        attacks.precision(targets.each(targets.Floats, MANY[:30])),
        attacks.before_after([targets.Exact(BITS[:k]) for k in (5, 6, 7)]),
    ]
    assert [result.attack for result in results] == [json.loads(json.dumps(r.to_dict()))["attack"] for r in results]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX")
def test_a_forked_session_does_not_answer():
    """A fork of a process with open books in memory may not spend from them: it refuses, in words."""
    ours = targets.FarthingSession.over(PEOPLE, Budget(epsilon=1), loss=Pure(0.1))
    said = targets.Forked(ours, timeout_s=60).ask(attacks.Question(text=PEOPLE.count("id < 9")))
    assert "forked" in said.reason
