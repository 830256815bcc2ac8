"""Composition and group privacy estimated from outputs alone: what each promises holds, and neither is the other."""

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import beta

from farthing.noise import rounded_gaussian
from farthing.noise.bits import seeded
from farthing.privacy import Gdp

N, K, SIGMA, STEP = 200_000, 4, 320, 64
ONE = Gdp(STEP / SIGMA)  # one unit moves the answer by STEP


def released(shift, seed, *, times=1):
    """Return N sums of `times` releases about an answer that has moved by `shift` in each."""
    draws = rounded_gaussian(float(SIGMA), size=(N, times), bits=seeded(seed))
    return draws.sum(axis=1) + times * shift


def delta_bounds(near, far, epsilon):
    """Return (lower, upper) bounds on P[S] - e^epsilon P'[S] for the best half-line, each wrong with chance ALPHA.

    The half-line is chosen on one half of the draws and measured on the other.
    """
    half = N // 2
    cuts = np.quantile(np.concatenate([near[:half], far[:half]]), np.linspace(0.02, 0.98, 97))
    gains = [np.mean(far[:half] > cut) - np.exp(epsilon) * np.mean(near[:half] > cut) for cut in cuts]
    cut = cuts[int(np.argmax(gains))]
    hits, base = int(np.sum(far[half:] > cut)), int(np.sum(near[half:] > cut))

    def ends(count):
        low = beta.ppf(ALPHA / 4, count, half - count + 1) if count else 0.0
        return low, beta.ppf(1 - ALPHA / 4, count + 1, half - count)

    (hits_low, hits_high), (base_low, base_high) = ends(hits), ends(base)
    return hits_low - np.exp(epsilon) * base_high, hits_high - np.exp(epsilon) * base_low


@pytest.mark.statistical
def test_composition_and_group_privacy_are_two_things():
    """Releases about one unit stay within k mu^2 and pass mu^2; one about k units passes k mu^2, within k^2 mu^2."""
    epsilon = 0.25
    composed = delta_bounds(released(0, 1, times=K), released(STEP, 2, times=K), epsilon)
    grouped = delta_bounds(released(0, 3), released(K * STEP, 4), epsilon)
    single, sum_of_k, group_of_k = ONE.delta(epsilon), (ONE * K).delta(epsilon), ONE.for_group(K).delta(epsilon)

    assert composed[0] <= sum_of_k  # size: what is promised is not broken
    assert grouped[0] <= group_of_k
    assert composed[0] > single  # power: a forgotten factor k would be seen
    assert grouped[0] > sum_of_k  # power: taking composition for group privacy would be seen
    assert composed[1] < group_of_k  # and the other way
    assert composed[1] == pytest.approx(sum_of_k, abs=0.03)
    assert grouped[1] == pytest.approx(group_of_k, abs=0.03)


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_the_estimate_sees_a_mu_that_is_too_small(factor):
    """A group loss that is understated by a fifth in mu is broken by the outputs; the stated one is not."""
    epsilon = 0.25
    low, _ = delta_bounds(released(0, 5), released(K * STEP, 6), epsilon)
    claimed = Gdp(factor * ONE.for_group(K).mu).delta(epsilon)

    assert (low > claimed) == (factor < 1)
