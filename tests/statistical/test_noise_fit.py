"""The noise has the law it claims: inside the band at the right scale, outside it with a planted bug."""

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy import stats
from scipy.special import ndtr

from farthing.noise import rounded_exponential, rounded_gaussian, rounded_gumbel, two_sided_geometric
from farthing.noise.bits import seeded

N = 400_000
OFF = (0.95, 1.05)


def gap(sample, cdf):
    """Return the largest distance between the sample's CDF and the exact one, over all integers."""
    values, counts = np.unique(sample, return_counts=True)
    seen = np.cumsum(counts) / len(sample)
    at, before = cdf(values), cdf(values - 1)
    return max(np.abs(seen - at).max(), np.abs(np.concatenate([[0], seen[:-1]]) - before).max())


def gaussian_cdf(sigma, offset=0.0):
    return lambda k: ndtr((k + 0.5 - offset) / sigma)


def geometric_cdf(rate):
    a = np.exp(-rate)
    return lambda k: np.where(k >= 0, 1 - a ** (np.abs(k) + (k >= 0)) / (1 + a), a ** np.abs(k) / (1 + a))


def exponential_cdf(scale, offset=0.0):
    return lambda k: -np.expm1(-np.maximum(k + 0.5 - offset, 0) / scale)


def gumbel_cdf(scale, offset=0.0):
    return lambda k: np.exp(-np.exp(-(k + 0.5 - offset) / scale))


@pytest.mark.statistical
@pytest.mark.parametrize(("sigma", "offset"), [(10.0, 0.25), (10_000.0, -1.0), (0.7, 0.5)])
def test_the_gaussian_fits(sigma, offset):
    """The rounded Gaussian is inside the band; 5 % off the scale, half a step off, or truncated is outside."""
    x = rounded_gaussian(sigma, offset=offset, size=N, bits=seeded(11))
    band = dkw_band(N)

    assert gap(x, gaussian_cdf(sigma, offset)) < band
    assert min(gap(x, gaussian_cdf(sigma * factor, offset)) for factor in OFF) > band


@pytest.mark.statistical
def test_biased_rounding_of_the_gaussian_is_caught():
    """Rounding down or toward zero, or forgetting the offset, is outside the band."""
    sigma, offset, band = 3.0, 0.25, dkw_band(N)
    real = np.random.default_rng(1).normal(offset, sigma, N)
    exact = gaussian_cdf(sigma, offset)

    assert gap(rounded_gaussian(sigma, offset=offset, size=N, bits=seeded(12)), exact) < band
    assert min(gap(bug, exact) for bug in (np.floor(real), np.trunc(real), np.rint(real - offset))) > band


@pytest.mark.statistical
def test_one_sigma_for_each_sample_fits():
    """Samples with different scales each have their own law: their probability transforms are uniform."""
    sigma = np.geomspace(500, 5e7, N)
    x = rounded_gaussian(sigma, bits=seeded(13))
    uniform = np.sort(ndtr(x / sigma))
    wrong = np.sort(ndtr(x / np.roll(sigma, N // 50)))
    grid, band = np.arange(N) / N, dkw_band(N) + 1e-3  # 1e-3: a grid step is at most sigma / 500

    assert np.abs(uniform - grid).max() < band
    assert np.abs(wrong - grid).max() > band


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.01, 0.1, 1.0])
def test_the_geometric_fits(rate):
    """The two-sided geometric is inside the band; 5 % off the rate is outside."""
    x = two_sided_geometric(rate, size=N, bits=seeded(14))
    band = dkw_band(N)

    assert gap(x, geometric_cdf(rate)) < band
    assert min(gap(x, geometric_cdf(rate * factor)) for factor in OFF) > band


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "offset"), [(20.0, 0.25), (5_000.0, 1.0)])
@pytest.mark.parametrize(
    ("draw", "cdf"),
    [(rounded_exponential, exponential_cdf), (rounded_gumbel, gumbel_cdf)],
    ids=["exponential", "gumbel"],
)
def test_the_races_fit(draw, cdf, scale, offset):
    """Exponential and Gumbel noise are inside the band; 5 % off the scale, or mirrored, is outside."""
    x = draw(scale, offset=offset, size=N, bits=seeded(15))
    band = dkw_band(N)

    assert gap(x, cdf(scale, offset)) < band
    assert min(gap(x, cdf(scale * factor, offset)) for factor in OFF) > band
    assert gap(-x, cdf(scale, offset)) > band


def two_sided(count, n, p):
    """Return the exact two-sided p-value of a binomial count, doubled from its smaller tail."""
    return 2 * min(stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p))


@pytest.mark.statistical
def test_the_gaussian_tails_have_their_share():
    """The counts beyond 4 sigma on each side are binomial with the exact chance; 5 % off the scale is caught."""
    n, sigma, edge = 3_000_000, 10_000.0, 40_000
    x = rounded_gaussian(sigma, size=n, bits=seeded(16))
    right, left = int((x > edge).sum()), int((x < -edge).sum())
    p = ndtr(-(edge + 0.5) / sigma)

    assert min(two_sided(right, n, p), two_sided(left, n, p)) > ALPHA / 2
    wider, narrower = (2 * ndtr(-(edge + 0.5) / (sigma * factor)) for factor in (1.05, 0.95))
    assert max(two_sided(right + left, n, wider), two_sided(right + left, n, narrower)) < ALPHA


class Far:
    """Bits whose U begins with 20 zeros more: draws from the law, given that they are beyond chance 2^-21."""

    def __init__(self, seed):
        self.bits = seeded(seed)

    def words(self, count, /):
        words = self.bits.words(count)
        return (words.view(np.int64) >> 20).view(np.uint64) if count > 64 else words


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "cdf"), [(rounded_gaussian, gaussian_cdf), (rounded_exponential, exponential_cdf)], ids=["gaussian", "exp"]
)
def test_the_far_tail_fits(draw, cdf):
    """Where float64 hands over to ball arithmetic the law is still the exact one; 2 % off the scale is caught."""
    n, scale = 40_000, 1000.0
    x = draw(scale, size=n, bits=Far(17))
    upper = x[x > scale]
    band = dkw_band(len(upper))

    def beyond(scale):
        return lambda k: 1 - np.minimum((1 - cdf(scale)(k)) * 2.0**21, 1)

    assert gap(upper, beyond(scale)) < band
    assert min(gap(upper, beyond(scale * factor)) for factor in (0.98, 1.02)) > band


@pytest.mark.statistical
def test_neighbouring_draws_are_independent():
    """Pairs of draws, also across a block, have the law of independent pairs; a reused word is caught."""
    x = rounded_gaussian(100.0, size=2 * N, bits=seeded(18))
    exact, band = gaussian_cdf(100 * np.sqrt(2)), dkw_band(N, ALPHA / 2) + 1e-5  # 1e-5: the sum of two roundings

    assert gap(x[:N] + x[N:], exact) < band
    assert gap(x[::2] + x[1::2], exact) < band
    assert gap(2 * x[:N], exact) > band
