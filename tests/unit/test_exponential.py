"""The exponential mechanism: rates, edges of float64, runs, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidBudget, NoiseError
from farthing.mechanisms import exponential
from farthing.mechanisms.exponential import Exponential, choose_runs, uniform_below
from farthing.noise.bits import seeded
from farthing.privacy.loss import BoundedRange


class Script:
    """A bit source that says what it is told."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count, /):
        said, self.left = self.left[:count], self.left[count:]
        return np.array(said, np.uint64)


def test_the_rate_is_rounded_down():
    """Epsilon over the range of the score change: twice the sensitivity, or once for monotone scores."""
    third = Exponential(1).rate(3, monotone=True)

    assert Fraction(third) < Fraction(1, 3)
    assert math.isclose(third, 1 / 3)
    assert Exponential(0.5).rate(2) == 0.125
    assert BoundedRange(0.5) == Exponential(0.5).loss


def test_float64_and_balls_agree():
    """For the same words the fast path and the ball path choose the same options, whole and real scores alike."""
    rng = np.random.default_rng(4)
    weight = np.broadcast_to(np.array([1.0, 2, 0, 3, 0.5, 7, 1]), (600, 7))
    for table in (rng.integers(-40, 0, (600, 7)), rng.normal(0, 9, (600, 7))):
        words = seeded(9).words(600).tolist()

        fast = exponential._settle(table, weight, 0.3, seeded(9))

        assert [
            exponential._settle_one(table[i], weight[i], 0.3, words[i], seeded(3)) for i in range(600)
        ] == fast.tolist()


def test_what_is_near_a_border_is_settled_in_balls():
    """A word on the border of two equal options reads on in the same number, and both answers occur."""
    scores, border = np.array([0, 0]), 1 << 63
    lower = Exponential(1).choose(scores, bits=Script(border - 1, 2**64 - 1))
    upper = Exponential(1).choose(scores, bits=Script(border, 0, 1, 5))

    assert 0 == int(lower)
    assert 1 == int(upper)


def test_options_of_astronomic_odds_can_be_chosen():
    """An option of probability e^-800 has its own stretch of numbers, far below what float64 tells apart."""
    scores = np.array([[0, -1600]])
    ones = [2**64 - 1] * 64

    assert [[0]] == [Exponential(1).choose(scores, bits=seeded(1)).tolist()]
    assert [1] == Exponential(1).choose(scores, bits=Script(*ones)).tolist()
    assert 0 == Exponential(1).probabilities(scores)[0, 1]


def test_scores_far_apart_and_far_out():
    """Neither huge scores nor huge gaps overflow; only differences count."""
    mechanism = Exponential(1)
    scores = np.array([2**60, 2**60 - 3, -(2**60)])

    assert np.allclose(mechanism.probabilities(scores - 2**60), mechanism.probabilities(scores), atol=1e-15)
    assert 1 == mechanism.probabilities(scores).sum()
    assert {0, 1} == set(mechanism.choose(np.broadcast_to(scores, (500, 3)), bits=seeded(2)).tolist())


def test_weights_count_and_zero_weights_never():
    """P is proportional to weight * exp(rate * score), whatever the score of options without weight."""
    found = Exponential(2).probabilities(np.array([1, 0, 10**6]), weights=[1, 3, 0])

    assert np.allclose([math.e / (math.e + 3), 3 / (math.e + 3), 0], found)
    chosen = Exponential(2).choose(np.full((2000, 3), [1, 0, 10**6]), weights=[1, 3, 0], bits=seeded(3))
    assert {0, 1} == set(chosen.tolist())


def test_neighbours_stay_in_the_bounded_range():
    """Over random pairs of score vectors, the log-ratios of probabilities lie within an interval of length epsilon."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        scores = rng.integers(-20, 20, 12)
        moved, raised = scores + rng.integers(-1, 2, 12), scores + rng.integers(0, 2, 12)
        for other, monotone in ((moved, False), (raised, True)):
            mechanism = Exponential(0.7)
            ratio = np.log(mechanism.probabilities(scores, monotone=monotone)) - np.log(
                mechanism.probabilities(other, monotone=monotone)
            )
            assert np.ptp(ratio) <= 0.7 + 1e-12


def test_runs_of_any_length_choose_within_themselves():
    """Each run is a choice of its own, and the answer is a place of that run."""
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 70, 300)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    scores = rng.integers(-5, 5, int(lengths.sum()))
    scores[starts + lengths - 1] = 5_000  # the last of each run wins, surely enough

    chosen = choose_runs(Exponential(1), scores, np.ones(len(scores)), starts, spread=1, bits=seeded(4))

    assert (starts + lengths - 1).tolist() == chosen.tolist()


def test_uniform_numbers_are_below_their_bounds():
    """All values of small ranges occur, about equally often, and none outside."""
    drawn = uniform_below(np.full(30_000, 3), bits=seeded(5))

    assert np.bincount(drawn, minlength=3).min() > 9_500
    assert {0, 1, 2} == set(drawn.tolist())


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        ([], None),
        (3, None),
        ([np.nan, 1.0], None),
        ([np.inf, 1.0], None),
        (["a"], None),
        ([2**62, 0], None),
        ([0, 0], [-1, 1]),
        ([0, 0], [0, 0]),
        ([0, 0], [1e-300, 1]),
        ([0, 0], [math.nan, 1]),
        ([0, 0], ["x", "y"]),
        (np.zeros((2, 3), np.complex128), None),
    ],
)
def test_what_is_no_choice_is_refused(scores, weights):
    """No options, no numbers, no weight: refused, without telling a score."""
    with pytest.raises(NoiseError) as caught:
        Exponential(1).choose(np.asarray(scores), weights=weights)

    assert caught.value.rule


@pytest.mark.parametrize("make", [lambda: Exponential(0), lambda: Exponential(-1), lambda: Exponential(1).rate(0)])
def test_prices_of_nothing_are_refused(make):
    """Epsilon and sensitivity are positive."""
    with pytest.raises(InvalidBudget):
        make()


def test_bits_that_never_decide_fail_closed():
    """A source that always lies on the border ends in an error, not in a guess."""
    border = [1 << 63] + [0] * 400
    with pytest.raises(NoiseError):
        Exponential(1).choose(np.array([0, 0]), bits=Script(*border))
