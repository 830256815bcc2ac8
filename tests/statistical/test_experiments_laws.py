"""The simulated chains have the laws that the theorems say, and ours covers as often as it promises."""

import math

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.stats import binom

from farthing.experiments import METHODS, chains, laws
from farthing.experiments.chance import stream
from farthing.experiments.runner import played
from farthing.experiments.setting import Setting

pytestmark = [pytest.mark.statistical, pytest.mark.thorough]

RUNS = 200_000
METHOD = {method.name: method for method in METHODS}


def laplace_gap(noise, epsilon):
    """Return the largest distance between the empirical CDF of noise and that of Laplace noise."""
    ordered = np.sort(noise)
    expected = np.where(ordered < 0, np.exp(epsilon * ordered) / 2, 1 - np.exp(-epsilon * np.abs(ordered)) / 2)
    place = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.abs(expected - place[1:]).max(), np.abs(expected - place[:-1]).max())


def wrong_kernel(noise, before, after, rng):
    """Sharpen Laplace noise without its sign: the planted bug of a published implementation."""
    return chains.finer(np.abs(noise), before, after, rng)


def test_sharpened_laplace_noise_is_laplace():
    """The finer noise has the right scale, not one 5 % off, and the planted kernel is outside of the band."""
    rng = stream(11, "kernel")
    before, after = np.full(RUNS, 0.4), np.full(RUNS, 1.0)
    coarse = rng.laplace(size=RUNS) / 0.4
    fine = chains.finer(coarse, before, after, rng)
    band = dkw_band(RUNS)

    assert laplace_gap(fine, 1.0) < band
    assert laplace_gap(fine, 1.05) > band
    assert laplace_gap(wrong_kernel(coarse, before, after, rng), 1.0) > band


def test_sharpened_laplace_noise_keeps_its_past():
    """Coarse minus fine is zero with chance (o/n)^2, else Laplace noise of the coarse scale."""
    rng = stream(12, "joint")
    before, after = np.full(RUNS, 0.4), np.full(RUNS, 1.0)
    coarse = rng.laplace(size=RUNS) / 0.4
    added = coarse - chains.finer(coarse, before, after, rng)
    moved = added[added != 0]
    stayed = RUNS - len(moved)
    half = ALPHA / 2

    assert binom.ppf(half, RUNS, 0.16) <= stayed <= binom.isf(half, RUNS, 0.16)
    assert stayed < binom.ppf(half, RUNS, 0.17)
    assert laplace_gap(moved, 0.4) < dkw_band(len(moved))
    assert laplace_gap(moved, 0.42) > dkw_band(len(moved))


def missed(relative, *, calibrated):
    """Return how many of many Gaussian releases miss the target by the calibrated rule, or by the plain one."""
    kind = chains.calibrated_schedule if calibrated else chains.plain_schedule
    truth = np.full(RUNS // 4, 1e5)
    runs = chains.refined(kind(relative, 0.05, 0.05), truth, stream(13, str(calibrated)), centred=calibrated)
    return int((np.abs(runs.value - truth) > relative * truth).sum())


def test_calibrated_refinement_covers():
    """At 30 % the calibrated rule misses at most one time in twenty; the plain one is caught."""
    most = binom.isf(ALPHA, RUNS // 4, 0.05)

    assert missed(0.3, calibrated=True) <= most
    assert missed(0.3, calibrated=False) > most


def test_calibrated_laplace_chains_cover():
    """The share of misses is at most beta on runs that the calibration did not see; log(1/beta) alone is caught."""
    critical, most = chains.laplace_critical(0.3, 0.05), binom.isf(ALPHA, RUNS, 0.05)

    assert RUNS * chains.laplace_miss(0.3, critical, RUNS, seed=14) <= most
    assert RUNS * chains.laplace_miss(0.3, math.log(20), RUNS, seed=14) > most


def test_what_ours_returns_is_within_the_target():
    """The share within the target is at least the confidence; sessions promised 80 % only are caught."""
    where = Setting(laws.equal(), 1.0, 1e-6, 0.1, 0.95)
    choice = METHOD["farthing"].choices(where)[0]
    found = played(where, METHOD["farthing"], choice, 200, seed=15, role="test")
    total, misses = int(found.returned.sum()), int((found.returned - found.within).sum())
    most = binom.isf(ALPHA, total, 0.05)
    narrower = Setting(laws.equal(), 1.0, 1e-6, 0.1, 0.8)
    looser = played(narrower, METHOD["farthing"], choice, 200, seed=15, role="test")

    assert misses <= most
    assert int((looser.returned - looser.within).sum()) > binom.isf(ALPHA, int(looser.returned.sum()), 0.05)
