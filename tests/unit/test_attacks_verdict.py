"""Verdicts: the one-run audit, its corner cases, and what a report says."""

import json
import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from farthing import attacks
from farthing.attacks import Claim, Guesses, People, targets
from farthing.attacks.target import Asked
from farthing.attacks.verdict import LOOKS, best_look, epsilon_lower, innocent, needed, p_value
from farthing.errors import DataError, InvalidBudget


def test_pure_bounds_invert_the_exact_interval():
    """Without delta the bound is the log odds of the lower end of Clopper and Pearson."""
    for right, attempted in [(455, 455), (428, 450), (130, 200), (911, 1000)]:
        low = beta.ppf(1e-3, right, attempted - right + 1)
        assert math.log(low / (1 - low)) == pytest.approx(epsilon_lower(right, attempted), abs=1e-9)


def test_published_counts():
    """The bounds and the largest innocent counts of the literature's examples."""
    assert [4.18, 2.33, 0.16, 0.0] == [
        round(epsilon_lower(right, of), 2) for right, of in [(455, 455), (428, 450), (130, 200), (120, 200)]
    ]
    assert [127, 145, 165, 189] == [innocent(200, Claim(epsilon)) for epsilon in (0.1, 0.5, 1, 2)]
    assert [574, 669, 774, 911] == [innocent(1000, Claim(epsilon)) for epsilon in (0.1, 0.5, 1, 2)]


def test_delta_is_paid_for():
    """The correction for delta is the one of the theorem, term by term, and never helps the attack."""
    right, attempted, epsilon, delta = 70, 80, 1.0, 1e-4
    chance = 1 / (1 + math.exp(-epsilon))
    total, steepest = 0.0, 0.0
    for step in range(1, right + 1):
        total += binom.pmf(right - step, attempted, chance)
        steepest = max(steepest, total / step)
    expected = binom.sf(right - 1, attempted, chance) + 2 * 200 * delta * steepest

    assert expected == pytest.approx(p_value(right, attempted, epsilon, delta=delta, n=200), rel=1e-9)
    bounds = [epsilon_lower(195, 200, delta=delta) for delta in (0, 1e-6, 1e-5, 1e-4)]
    assert bounds == sorted(bounds, reverse=True)
    assert 0.0 == epsilon_lower(200, 200, delta=0.01)


def test_a_lopsided_prior_is_no_news():
    """Guessing the likelier secret proves nothing; more than that does."""
    assert 0.0 == epsilon_lower(900, 1000, prior=0.1)
    assert epsilon_lower(990, 1000, prior=0.1) == pytest.approx(epsilon_lower(990, 1000) - math.log(9))
    with pytest.raises(DataError, match="fair bits"):
        p_value(9, 10, 1.0, delta=1e-6, prior=0.1)
    with pytest.raises(DataError, match="counts"):
        p_value(11, 10, 1.0)


def test_what_a_decision_needs():
    """The fewest perfect guesses that refute; none where delta forgives everything."""
    assert 23 == needed(Claim(1))
    assert innocent(22, Claim(1)) == 22
    assert innocent(23, Claim(1)) == 22
    assert needed(Claim(2, change="person")) == needed(Claim(4))
    assert needed(Claim(1, delta=0.01)) is None


def test_claims():
    """A claim about persons is a claim of twice the epsilon about a secret; impossible claims are refused."""
    assert pytest.approx(0.7310586) == Claim(1).cap
    assert pytest.approx((math.e + 0.01) / (1 + math.e)) == Claim(1, 0.01).cap
    assert Claim(2, 1e-6 * (1 + math.e)) == Claim(1, 1e-6, change="person").of_a_bit
    assert pytest.approx(1.0) == Claim(5000, change="person").cap
    for wrong in [{"epsilon": 0}, {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": math.inf}]:
        with pytest.raises(InvalidBudget, match="the claim is out of range"):
            Claim(**wrong)
    with pytest.raises(InvalidBudget):
        Claim(1, delta=1)
    with pytest.raises(InvalidBudget, match="change"):
        Claim(1, change="row")


def test_the_surest_guesses_count_too():
    """A quarter of certain guesses breaks a claim that the average does not, at a twentieth of the level."""
    right = np.r_[np.ones(50, dtype=bool), np.tile([True, False], 75)]
    surety = np.r_[np.ones(50), np.full(150, 0.1)]

    look = best_look(right, surety, Claim(1), n=200)
    assert (50, 50, True) == (look.attempted, look.right, look.broken)
    assert not best_look(right, surety[::-1], Claim(1), n=200).broken
    assert 1.0 == pytest.approx(sum(part for _, part in LOOKS))


def judged(right, attempted, claim=None, least=1, answered=10):
    """Return the result of guesses of which so many are right."""
    target = targets.Function(lambda _: 0, np.ones(attempted or 1), claim=claim, name="it")
    asked = Asked(target, sent=20, answered=answered)
    surety = np.full(target.people.n, 0.5 if attempted else np.nan)
    bits = np.random.default_rng(0).permutation(np.arange(target.people.n) < right)
    return attacks.judged("made up", asked, Guesses(bits, surety), started=0.0, seed=0, least=least)


def test_verdicts():
    """Broken if refuted, holds if it could have been, undecided if not, with what is lacking."""
    assert "broken" == judged(200, 200).verdict
    assert "holds" == judged(120, 200).verdict
    assert "at least 1,045 guesses" in judged(200, 200, Claim(5)).needs
    few = judged(10, 10)
    assert ("undecided", "at least 23 guesses, were all of them right; it made 10") == (few.verdict, few.needs)
    lacking = judged(0, 0, least=11)
    assert ("undecided", "at least 11 answers; 10 of 20 questions got one") == (lacking.verdict, lacking.needs)
    assert "a smaller claim" in judged(200, 200, Claim(1, 0.1)).needs


def test_an_unstated_claim_is_epsilon_one():
    """A target that claims nothing is judged against epsilon 1 for one bit, and the report says so."""
    result = judged(170, 200)
    assert (Claim(1.0), False) == (result.claim, result.stated)
    assert "none was stated" in repr(result)


def test_results_are_plain():
    """A result is JSON, and its text names verdict, accuracy and seed."""
    result = judged(200, 200, Claim(1, 1e-6))
    plain = json.loads(json.dumps(result.to_dict()))

    assert plain["verdict"] == "broken"
    assert plain["claim"] == {"epsilon": 1, "delta": 1e-6, "change": "bit"}
    assert plain["accuracy"] == 1.0
    assert set(plain) == set(result.__slots__) - {"guesses"}
    for words in ("made up attack on it: BROKEN", "100.0%", "seed 0"):
        assert words in repr(result)


def test_the_picture_shows_the_limits():
    """Accuracy, interval, cap and baseline are in the chart."""
    pytest.importorskip("altair")
    text = json.dumps(judged(150, 200, Claim(2)).chart().to_dict())
    for words in ("secrets guessed right", "cap of the claim", "always the more frequent", "0.75"):
        assert words in text


def test_people_are_checked():
    """Secrets are bits, columns are as long, ids tell people apart."""
    for bits in ([0, 1, 2], [0.5], [], ["a"], [[0, 1]], [0.0, math.nan]):
        with pytest.raises(DataError, match="not bits"):
            People.of(bits)
    with pytest.raises(DataError, match="do not describe known people"):
        People(np.array([0, 1]), {"id": np.array([1, 1])})
    with pytest.raises(DataError, match="do not describe known people"):
        People(np.array([0, 1]), {"id": np.array([1, 2, 3])})
    with pytest.raises(DataError, match="prior"):
        People.of([0, 1], prior=1.0)


def test_drawn_secrets_go_to_a_file_and_back(tmp_path):
    """What the owner loads is what scores the guesses; without a seed nobody knows it before."""
    for name in ("people.csv", "people.parquet"):
        drawn = attacks.secrets(50, seed=3, path=tmp_path / name)
        read = People.read(tmp_path / name)
        assert np.array_equal(drawn.bits, read.bits)
        assert all(np.array_equal(drawn.columns[key], read.columns[key]) for key in drawn.columns)
    assert not np.array_equal(attacks.secrets(200).bits, attacks.secrets(200).bits)
    with pytest.raises(DataError, match="kind of file"):
        attacks.secrets(5, path=tmp_path / "people.txt")
    with pytest.raises(DataError, match="cannot be written"):
        attacks.secrets(5, path=tmp_path / "no" / "people.csv")
    with pytest.raises(DataError, match="cannot be read"):
        People.read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="column of secrets"):
        People.read(tmp_path / "people.csv", column="status")
    with pytest.raises(DataError, match="the number of people is out of range"):
        attacks.secrets(0)


def test_coins_can_be_tossed_again():
    """The same seed and labels give the same stream for ever; other labels give another one."""
    first, same, other = (attacks.Coins(7, label) for label in ("a", "a", "b"))
    assert np.array_equal(first.bits(3, 50), same.bits(3, 50))
    assert not np.array_equal(first.bits(200), other.bits(200))
    assert sorted(first.order(20)) == list(range(20))
    assert [0, 1, 1, 0, 0, 0, 0, 1] == attacks.Coins(0, "golden").bits(8).astype(int).tolist()
