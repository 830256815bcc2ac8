"""ReducedAboveThreshold: what each outcome of a run loses is within its price, by summing the series."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidBudget, NoiseError
from farthing.mechanisms import AboveThreshold, LaplaceRefinement, PrivateTest, ReducedAboveThreshold
from farthing.mechanisms.reduced_threshold import BAR_SHARE, MONOTONE_SHARE, stop_loss
from farthing.mechanisms.stopping import score_told
from farthing.noise.bits import seeded
from farthing.privacy.loss import Pure

STEPS = 4  # steps of the threshold's grid in a sensitivity of 1, here
Z = np.arange(-STEPS * 40, STEPS * 40 + 1)


def law(rate, k):
    """Return P[k] of the two-sided geometric law."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


def above(rate, x):
    """Return P[E > x] for exponential noise less its mean."""
    return np.exp(-np.maximum(rate * x + 1, 0))


def outcomes(scores, levels, share, doubled=2):
    """Return the probabilities of a stop at the first score, at the second, and of none, of a run with threshold 0."""
    first, second = (share * level / STEPS for level in levels)
    noisy, noisier = ((1 - share) * level / doubled for level in levels)
    w = (math.sinh(first / 2) / math.sinh(second / 2)) ** 2
    coarse, fine = np.meshgrid(Z, Z, indexing="ij")
    bar = law(second, fine) * (w * (coarse == fine) + (1 - w) * law(first, coarse - fine))
    one, two = above(noisy, coarse / STEPS - scores[0]), above(noisier, fine / STEPS - scores[1])
    return [(bar * chance).sum() for chance in (one, (1 - one) * two, (1 - one) * (1 - two))]


def losses(levels, share, moves, doubled=2):
    """Return the largest loss of each outcome over scores far from and near to the threshold, moved as `moves` say."""
    worst = np.zeros(3)
    for scores in itertools.product((-10.0, 0.0, 10.0), repeat=2):
        here = outcomes(scores, levels, share, doubled)
        for move in moves:
            there = outcomes(np.add(scores, move), levels, share, doubled)
            worst = np.maximum(worst, np.abs(np.log(np.divide(here, there))))
    return worst


TWICE, APART = (2.5, 2.5), (1.5, 2.5)
EITHER = [(1, 1), (-1, 1), (1, -1)]


@pytest.mark.parametrize("levels", [TWICE, APART])
def test_every_outcome_is_within_its_price(levels):
    """A stop costs what the level before it leaves, no stop the threshold's share; most of each is used up."""
    share = float(BAR_SHARE)
    price = np.array(
        [share * levels[0], stop_loss(share, levels[0] / levels[1], monotone=False) * levels[1], share * levels[1]]
    )
    worst = losses(levels, share, EITHER)

    assert (worst <= price + 1e-6).all()
    assert (worst[1:] > 0.85 * price[1:]).all()


def mean_of_moves(share, ratio, low, last, *, monotone):
    """Return by what a stop moves, float64[...], where the score before passes below `low`, the last above `-last`."""
    z = (np.arange(-7_500, 7_500) + 0.5) / 25
    rate = (1 - share) / (1 if monotone else 2)
    passes = np.where(z < low, (1 - ratio**2) / 2 * np.exp(np.minimum(share * ratio * (z - low), 0)),
                      1 - (1 - ratio**2) / 2 * np.exp(-np.maximum(share * ratio * (z - low), 0)))  # fmt: skip
    weights = passes * np.exp(-share * np.abs(z) - rate * np.maximum(z + last, 0))
    moves = share * np.sign(z) + (rate if monotone else 2 * rate) * (z >= -last)
    return (moves * weights).sum() / weights.sum()


PLACES = [*np.linspace(-12, 12, 9), -60, 60]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("ratio", [0.3, 0.5, 2**-0.5, 0.9])
def test_no_places_of_the_scores_lose_more_than_the_corners(ratio, monotone):
    """Over places of the score before and of the last one, the mean of what one unit moves is within the loss."""
    share = float(MONOTONE_SHARE if monotone else BAR_SHARE)
    told = stop_loss(share, ratio, monotone=monotone)
    found = max(mean_of_moves(share, ratio, low, last, monotone=monotone) for low in PLACES for last in PLACES)

    assert found <= told + 5e-3
    assert told == share or found > told - 1e-2


def test_less_noise_on_the_scores_would_pass_the_price():
    """Scores of both directions need noise for twice their sensitivity."""
    assert losses(TWICE, float(BAR_SHARE), EITHER, doubled=1)[1] > 1.2 * TWICE[1]


@pytest.mark.parametrize("levels", [TWICE, APART])
def test_scores_that_move_one_way_need_less_noise(levels):
    """Where one unit moves all scores alike, noise for their sensitivity is within the price."""
    share = float(MONOTONE_SHARE)
    price = np.array([levels[0], levels[1], share * levels[1]])

    assert (losses(levels, share, [(1, 1), (1, 0), (0, 1)], doubled=1) <= price + 1e-6).all()


def test_the_run_has_the_rates_of_its_proof():
    """At high levels the answer is the truth; the means of the noises are taken off."""
    mechanism = ReducedAboveThreshold(100, sensitivity=2)
    answers = [mechanism.start(seeded(k)).above(score, 400) for k, score in enumerate((99, 101, 90, 110))]

    assert [False, True, False, True] == answers


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64])
def test_scores_above_2_to_the_53_keep_their_units(kind):
    """Whole numbers of any type stay whole: as floats, one unit above 2^53 would be lost, or moved by two."""
    assert score_told(kind(2**53 + 1)) == 2**53 + 1
    assert isinstance(score_told(kind(2**60 + 1)), int)
    answers = [ReducedAboveThreshold(2**53).start(seeded(k)).above(kind(2**53 + k), 400) for k in (1, 2, 3)]
    assert [True, True, True] == answers


def test_a_stop_costs_more_the_less_its_level_rose():
    """From the threshold's share, for the first score, to the whole level, for a level that was asked before."""
    for mechanism in (ReducedAboveThreshold(0), ReducedAboveThreshold(0, monotone=True)):
        prices = [mechanism.price(Fraction(3), Fraction(before, 16)) for before in range(49)]

        assert mechanism.share * 3 <= prices[0] < prices[40] < prices[48] == 3
        assert prices == sorted(prices)
        assert 80 == mechanism.price(Fraction(80), Fraction(80))


def test_levels_may_stay_but_not_fall():
    """The same level again asks against the same noisy threshold; a run that has stopped is over."""
    run = ReducedAboveThreshold(0).start(seeded(1))

    assert [False, False] == [run.above(-1000, 1), run.above(-1000, 1)]
    assert Pure(BAR_SHARE) == run.loss
    with pytest.raises(InvalidBudget, match="level falls"):
        run.above(0, 0.5)
    assert run.above(1000, 2)
    assert Pure(ReducedAboveThreshold(0).price(Fraction(2), Fraction(1))) == run.loss
    assert 0.5 * 2 < run.loss.amount < 0.57 * 2
    with pytest.raises(NoiseError, match="has ended"):
        run.above(1000, 3)


@pytest.mark.parametrize("options", [{"threshold": math.nan}, {"threshold": "x"}, {"threshold": 1, "sensitivity": 0}])
def test_bad_mechanisms_are_refused(options):
    """A threshold is a finite number, a sensitivity above 0."""
    with pytest.raises(InvalidBudget, match="rule"):
        ReducedAboveThreshold(**options)


@pytest.mark.parametrize(("score", "epsilon"), [(math.nan, 1), (1, 0), (1, math.inf), (1e30, 1)])
def test_bad_scores_and_levels_are_refused(score, epsilon):
    """Scores are finite and below 2^62, levels above 0; the run is where it was."""
    run = ReducedAboveThreshold(0).start()
    with pytest.raises((NoiseError, InvalidBudget), match="rule"):
        run.above(score, epsilon)

    assert Pure(0) == run.loss


def test_the_number_of_prices_is_that_of_the_looks():
    """One price of the test for each look; they may stay, but not fall: refused before anything is shown."""
    refinement, test = LaplaceRefinement(5), PrivateTest(lambda _: -1e9)
    with pytest.raises(InvalidBudget, match="one price"):
        ReducedAboveThreshold(0).run(refinement, [1, 2], [1], test)
    with pytest.raises(InvalidBudget, match="level falls"):
        ReducedAboveThreshold(0).run(refinement, [1, 2], [1, 0.5], test)

    assert 0 == refinement.looks
    assert Pure(BAR_SHARE) == ReducedAboveThreshold(0).run(refinement, [1, 2], [Pure(1), 1], test).own


@pytest.mark.parametrize("refinement", [5, None, "x", [1.0]])
def test_a_private_stop_needs_a_refinement(refinement):
    """A number in the place of the refinement is refused by name."""
    for run in (AboveThreshold(0, 1).run, ReducedAboveThreshold(0).run):
        prices = {"prices": [0.1]} if run.__self__.__class__ is ReducedAboveThreshold else {}
        with pytest.raises(InvalidBudget, match="LaplaceRefinement"):
            run(refinement, [0.25], test=PrivateTest(lambda _: 1.0), **prices)


@pytest.mark.parametrize("given", [None, "4242", [4242, 2], 4242j, {}])
def test_a_score_that_is_no_number_is_refused_and_not_told(given):
    """The message holds the rule, and nothing of what a private score gave."""
    for mechanism, prices in ((AboveThreshold(0, 1), []), (ReducedAboveThreshold(0), [[1]])):
        with pytest.raises(NoiseError, match="one finite number") as refused:
            mechanism.run(LaplaceRefinement(5), [1], *prices, PrivateTest(lambda _: given))
        assert "4242" not in str(refused.value)
        assert refused.value.__cause__ is refused.value.__context__ is None
