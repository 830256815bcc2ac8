"""What TwoStage releases is Algorithm 1: its law and its profile, with planted bugs outside the band."""

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import beta

from farthing.mechanisms import TwoStage
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

N = 400_000


def cdf(y, x, sigma, relative):
    """Return P[Y <= y] of Algorithm 1: given X the output is normal; the trapezoidal rule over X does the rest."""
    z = np.linspace(-9, 9, 20_000)
    weights = np.exp(-z * z / 2)
    first = x + sigma * z
    return np.array([(weights / weights.sum()) @ ndtr((each - first) / np.abs(relative * first)) for each in y])


def gap(sample, x, sigma, relative, step):
    """Return how far the sample's CDF is from the exact one, at 200 points between grid points."""
    at = np.unique(np.floor(np.quantile(sample, np.linspace(0.002, 0.998, 200)) / step)) * step + step / 2
    seen = np.searchsorted(np.sort(sample), at) / len(sample)
    return np.abs(seen - cdf(at, x, sigma, relative)).max()


@pytest.mark.statistical
@pytest.mark.parametrize(("x", "relative"), [(0, 0.3), (25, 0.3), (10_000, 0.3), (1_000_000, 0.05)])
def test_the_release_has_the_law_of_the_algorithm(x, relative):
    """The released values are inside the band; a stage 5 % off in scale is outside, where it matters."""
    mechanism = TwoStage(10.0, relative)
    sample, band = mechanism.release(np.full(N, x), seeded(21)), dkw_band(N)
    bugs = [(10 * factor, relative) for factor in (0.95, 1.05)] if x < 30 else []
    bugs += [(10.0, relative * factor) for factor in (0.95, 1.05)] if x > 30 else [(10.0, 1e-3)]

    assert gap(sample, x, 10.0, relative, mechanism.step) < band
    assert min(gap(sample, x, *bug, mechanism.step) for bug in bugs) > band


@pytest.mark.statistical
def test_the_second_stage_is_about_the_noisy_count():
    """At x = 20 noise in proportion to the true count, or without |X|, has another law, outside the band."""
    x, step, band = 20, 0.5, dkw_band(N)
    rng = np.random.default_rng(3)
    first = x + 10 * rng.standard_normal(N)
    w = rng.standard_normal(N)
    sample = TwoStage(10.0, 0.3).release(np.full(N, x), seeded(22))

    assert gap(sample, x, 10.0, 0.3, step) < band
    assert gap(np.rint((first + 0.3 * x * w) / step) * step, x, 10.0, 0.3, step) > band
    assert gap(np.rint((first + 0.3 * 10 * w) / step) * step, x, 10.0, 0.3, step) > band
    assert gap(np.rint((first * (1 + 0.3 * np.abs(w))) / step) * step, x, 10.0, 0.3, step) > band


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_the_profile_holds_for_what_is_released(epsilon):
    """P[S] - e^epsilon P'[S] of the best half-line is at most delta; a delta for a loss a third less is broken."""
    mechanism, x = TwoStage(1.0, 0.05), 10
    far, near = (mechanism.release(np.full(2 * N, x + k), seeded(23 + k)) for k in (1, 0))
    cut = x + 0.5
    hits, base = int((far > cut).sum()), int((near > cut).sum())
    low = beta.ppf(ALPHA / 2, hits, 2 * N - hits + 1) - np.exp(epsilon) * beta.ppf(
        1 - ALPHA / 2, base + 1, 2 * N - base
    )

    assert low <= mechanism.delta(x, epsilon)
    assert low > TwoStage(1.5, 0.05).delta(x, epsilon)


@pytest.mark.statistical
def test_draws_read_further_have_the_same_law():
    """With a grid so fine that float64 decides nothing, every draw goes through balls, and the law is the same."""
    from farthing.mechanisms.product import rounded_product

    n, step = 4_000, 2.0**-34
    sample = rounded_product(np.full(n, 25), sigma=10.0, relative=0.3, step=step, bits=seeded(29)) * step

    assert gap(sample, 25, 10.0, 0.3, step) < dkw_band(n)
    assert gap(sample, 25, 15.0, 0.3, step) > dkw_band(n)
