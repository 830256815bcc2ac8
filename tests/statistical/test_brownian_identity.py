"""Gaussian refinement, the Brownian mechanism by its definition, and f + B(t)/t: one joint law, one stopped loss."""

import itertools

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr

from farthing.mechanisms import BrownianMechanism, Doubling, GaussianRefinement, ReducedAboveThreshold
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

N = 1_000_000
SOME = 200_000
MUS = (0.1, 0.2, 0.5)
SIGMAS = tuple(1 / mu for mu in MUS)


def refined(kind=GaussianRefinement, seed=51):
    """Return the looks at N answers of 0, one row a look; each answer is a run of its own."""
    refinement = kind(np.zeros(N, np.int64), bits=seeded(seed))
    return np.array([refinement.refine(mu) for mu in MUS])


def by_definition():
    """Return the same from a path drawn from its fine end."""
    mechanism = BrownianMechanism(np.zeros(N, np.int64), bits=seeded(52))
    return np.array([look.values for look in mechanism.path(MUS)])


def in_information_time():
    """Return B(t)/t at t = mu^2, in plain floating point."""
    times = np.square(MUS)
    steps = np.random.default_rng(4).normal(size=(len(MUS), N)) * np.sqrt(np.diff(times, prepend=0))[:, None]
    return steps.cumsum(axis=0) / times[:, None]


def gap(sample, sigma):
    """Return the largest distance between the CDF of a sample and that of N(0, sigma^2)."""
    place, exact = np.arange(len(sample)) / len(sample), ndtr(np.sort(sample) / sigma)
    return max(np.abs(exact - place).max(), np.abs(exact - place - 1 / len(sample)).max())


def worst(looks):
    """Return the largest gap of looks, and of differences of looks, to the Gaussian law with Cov = the finer variance.

    For a Gaussian vector the variances of all looks and differences are all its covariances.
    """
    ones = [gap(look, sigma) for look, sigma in zip(looks, SIGMAS, strict=True)]
    pairs = itertools.combinations(range(len(MUS)), 2)
    both = [gap(looks[i] - looks[j], (SIGMAS[i] ** 2 - SIGMAS[j] ** 2) ** 0.5) for i, j in pairs]
    return max(*ones, *both)


def stopped(looks):
    """Return where a stopping function stops (at the first look above half its sigma), and the loss there.

    The loss is that of the last look, at the neighbour whose answers are less by one: 1/(2T) + B(T)/T.
    """
    where = np.argmax(np.vstack([looks[:-1] > np.array(SIGMAS)[:-1, None] / 2, np.ones(N, bool)]), axis=0)
    variances = np.square(SIGMAS)[where]
    return where, 1 / (2 * variances) + looks[where, np.arange(N)] / variances


def far(one, other):
    """Return the largest distance between the CDFs of two samples."""
    at = np.concatenate([one, other])
    at.sort()
    left, right = (np.searchsorted(np.sort(sample), at, side="right") for sample in (one, other))
    return np.abs(left - right).max() / len(one)


@pytest.mark.statistical
def test_the_constructions_have_one_joint_law():
    """All looks and all differences fit the Brownian law in three constructions; fresh noise each time does not."""
    band, ours = dkw_band(N, ALPHA / 24), refined()

    assert max(worst(looks) for looks in (ours, by_definition(), in_information_time())) < band
    assert min(worst(looks[:, :SOME]) for looks in (refined(Doubling), 1.05 * ours)) > band


@pytest.mark.statistical
def test_the_stopped_losses_have_one_law():
    """Where a run stops, and what it has lost there, is the same in three constructions; without memory it is not."""
    band = 2 * dkw_band(SOME, ALPHA / 16)
    runs = [stopped(looks) for looks in (refined(), by_definition(), in_information_time())]
    fresh = stopped(refined(Doubling))

    for one, other in itertools.combinations(runs, 2):
        assert max(far(one[k][:SOME], other[k][:SOME]) for k in (0, 1)) < band
    assert max(far(runs[0][k][:SOME], fresh[k][:SOME]) for k in (0, 1)) > band


@pytest.mark.statistical
def test_reduced_above_threshold_stops_as_often_as_its_law_says():
    """Runs end at the first, the second or neither score as the series says; not at half or twice the levels."""
    runs, levels = 5_000, (2.0, 5.0)
    bits, ends = seeded(53), np.zeros(3)
    for _ in range(runs):
        run = ReducedAboveThreshold(0).start(bits)
        ends[0 if run.above(1, levels[0]) else 1 if run.above(1, levels[1]) else 2] += 1
    band = dkw_band(runs)

    assert np.abs(ends.cumsum() / runs - chances(levels).cumsum()).max() < band
    assert min(np.abs(ends.cumsum() / runs - chances(np.multiply(levels, k)).cumsum()).max() for k in (0.5, 2)) > band


def chances(levels, share=0.4425, steps=16, score=1.0):
    """Return the chances of a stop at the first, the second or neither of two equal scores, threshold 0, on a grid."""
    z = np.arange(-steps * 30, steps * 30 + 1)
    first, second = (share * level / steps for level in levels)
    w = (np.sinh(first / 2) / np.sinh(second / 2)) ** 2
    coarse, fine = np.meshgrid(z, z, indexing="ij")
    bar = np.tanh(second / 2) * np.exp(-second * np.abs(fine))
    bar = bar * (w * (coarse == fine) + (1 - w) * np.tanh(first / 2) * np.exp(-first * np.abs(coarse - fine)))
    rates = [(1 - share) * level / 2 for level in levels]
    one, two = (np.exp(-np.maximum(r * (b / steps - score) + 1, 0)) for r, b in zip(rates, (coarse, fine), strict=True))
    return np.array([(bar * chance).sum() for chance in (one, (1 - one) * two, (1 - one) * (1 - two))])
