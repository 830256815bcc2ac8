"""The laws of the attacks: how much they get right against known noise, and how often a verdict is wrong.

Size: a healthy suite fails with probability at most ALPHA a test (exact binomial). Power: noise of another width and a
mechanism at twice its epsilon are caught.
"""

import math

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import attacks
from farthing.attacks import Claim, Coins, targets
from farthing.attacks.verdict import best_look

pytestmark = pytest.mark.thorough

N = 100
WIDTHS = (0.1, 0.2, 0.35, 0.5, 1.0, 2.0)


def right(sigma_in_rootn, factor, runs, seed):
    """Return the right guesses of least squares over several runs, and how many guesses there were."""
    total = 0
    for run in range(runs):
        bits = attacks.secrets(N, seed=1000 * seed + run).bits
        target = targets.FreshGaussian(bits, sigma_in_rootn * math.sqrt(N), seed=run)
        found = attacks.linear(target, queries=factor * N, seed=run, method="least_squares", intercept=False)
        total += int((found.guesses.bits == bits).sum())
    return total, runs * N


@pytest.mark.statistical
@pytest.mark.parametrize("width", WIDTHS)
def test_least_squares_has_its_law(width):
    """The accuracy is Phi(sqrt(k - 1) / (4 c)), within the binomial band and a point; other noise is outside of it."""
    good, tried = right(width, 4, 40, seed=int(100 * width))
    expected = attacks.expected_accuracy(width * math.sqrt(N), N, 4 * N)
    low, high = (binom.ppf(level, tried, expected) / tried for level in (ALPHA / 2, 1 - ALPHA / 2))

    assert low - 0.01 <= good / tried <= high + 0.01
    if width in (0.35, 0.5):
        others = [attacks.expected_accuracy(width * math.sqrt(N) * k, N, 4 * N) for k in (0.6, 1.6)]
        assert all(not low - 0.01 <= other <= high + 0.01 for other in others)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_kept_claim_is_seldom_called_broken(epsilon):
    """Guesses exactly as good as the cap are called broken at most once in a thousand; at twice epsilon, mostly."""
    runs, n = 500, 400
    coins = Coins(int(10 * epsilon), "size")
    claim = Claim(epsilon)
    broken = [best_look(coins.uniform(n) < claim.cap, coins.uniform(n), claim, n=n).broken for _ in range(runs)]
    assert sum(broken) <= int(binom.isf(ALPHA, runs, 1e-3)) < runs / 20
    if epsilon > 0.1:
        twice = [best_look(coins.uniform(n) < Claim(2 * epsilon).cap, coins.uniform(n), claim, n=n) for _ in range(50)]
        assert sum(look.broken for look in twice) > 25


@pytest.mark.statistical
def test_the_cap_is_reached_by_the_single_target_attack_and_not_passed():
    """The whole budget on one person is right with chance e^epsilon / (1 + e^epsilon), with half the noise more."""
    runs = 4000
    bits = attacks.secrets(runs, seed=9).bits
    honest, wrong = (
        attacks.single_target(targets.each(kind, bits, epsilon=1), questions=3)
        for kind in (targets.Honest, targets.OffByTwo)
    )
    low, high = (binom.ppf(level, runs, Claim(1).cap) / runs for level in (ALPHA / 2, 1 - ALPHA / 2))

    assert low <= honest.accuracy <= high < wrong.accuracy
    assert ("holds", "broken") == (honest.verdict, wrong.verdict)
    assert runs == honest.answered
    assert runs == honest.refused


@pytest.mark.statistical
@pytest.mark.parametrize("repeats", [10, 100])
def test_differences_have_their_law(repeats):
    """The accuracy of a pair with noise of variance 10 each is Phi(sqrt(K) / (2 sqrt 20))."""
    good = tried = 0
    for run in range(200 // repeats):
        bits = attacks.secrets(100, seed=run).bits
        target = targets.FreshGaussian(bits, math.sqrt(10), seed=run)
        good += attacks.differencing(target, repeats, trick="range", seed=run).accuracy * 100
        tried += 100
    expected = attacks.pair_accuracy(10, repeats)

    assert binom.ppf(ALPHA / 2, tried, expected) <= good <= binom.ppf(1 - ALPHA / 2, tried, expected)
    assert not binom.ppf(ALPHA / 2, tried, attacks.pair_accuracy(2, repeats)) <= good


@pytest.mark.statistical
def test_correlated_refinements_gain_nothing():
    """Chains that share their noise have a ratio of about 1.5 or more, chains with fresh noise of a half."""
    chains, looks = 400, 7
    steps = 2.0 ** -np.arange(looks)  # variances, each half of the one before
    draws = Coins(3, "chains").normal(chains, looks)
    gaps = np.sqrt(np.r_[steps[-1], -np.diff(steps)[::-1]])  # from the last answer backwards, noise is added
    shared = np.cumsum(draws * gaps, axis=1)[:, ::-1]

    assert 1.2 < attacks.refinement_gain(shared, 0)
    assert attacks.refinement_gain(draws * np.sqrt(steps), 0) < 0.7
