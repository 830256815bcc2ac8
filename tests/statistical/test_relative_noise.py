"""Relative noise, from its outputs alone: the law, the error, and the Renyi divergence between neighbours."""

from math import log, sqrt

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from scipy.special import ndtr
from scipy.stats import beta

from farthing.mechanisms import Asinh, LinearLog, Log, PlainGaussian, Power
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

N = 400_000
EACH = [
    PlainGaussian(3.0),
    Log(0.25, offset=0.75),
    LinearLog(0.25, x0=50.0),
    Asinh(0.25, x0=10.0),
    Power(0.5, sigma=0.4, offset=12.5),
]
OFF = (0.95, 1.05)


def gap(steps, mechanism, size, stretch=1.0):
    """Return the largest distance between the CDF of released grid steps and that of rounded f(size) + noise."""
    values, counts = np.unique(steps, return_counts=True)
    seen = np.cumsum(counts) / len(steps)
    mean = float(mechanism.transform(np.array([float(size)]))[0])

    def cdf(k):
        return ndtr((np.ldexp(k + 0.5, mechanism.grid_log2) - mean) / (mechanism.sigma * stretch))

    return max(np.abs(seen - cdf(values)).max(), np.abs(np.append(0, seen[:-1]) - cdf(values - 1)).max())


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", [0, 1, 2, 3, 4])
def test_the_noise_fits(mechanism):
    """Inside the band at the right scale and size; 5 % off the scale, or at a size 5 % off, outside."""
    mechanism, size = EACH[mechanism], 777
    steps = mechanism.indices(np.full(N, size), seeded(21))
    band = dkw_band(N)

    assert gap(steps, mechanism, size) < band
    assert min(gap(steps, mechanism, size, stretch) for stretch in OFF) > band
    assert min(gap(steps, mechanism, size * factor) for factor in OFF) > band


def surely_above(mechanism, metric, size, seed):
    """Return what the mean of the error, clipped at 6 times the target, surely is at least (Hoeffding)."""
    target = 0.1 * max(size, 50)
    top, n = 6.0 ** (1 if metric == "mae" else 2), 4 * N
    error = np.abs(mechanism.release(np.full(n, size), seeded(seed)) - size) / target
    error = error if metric == "mae" else error**2
    return np.minimum(error, top).mean() - top * sqrt(log(1 / ALPHA) / (2 * n))


def noisier(mechanism, factor):
    """Return the mechanism with more noise."""
    values = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    return type(mechanism)(**{**values, "sigma": mechanism.sigma * factor})


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [PlainGaussian, Log, LinearLog, Asinh, Power])
def test_the_measured_error_is_at_most_the_target(kind):
    """At x0, where every mechanism is closest to its target; 5 % more noise is caught."""
    mechanism = kind.for_relative_error(0.1, x0=50)

    assert surely_above(mechanism, "mae", 50, 31) <= 1
    assert surely_above(noisier(mechanism, 1.05), "mae", 50, 31) > 1


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [LinearLog, Asinh])
def test_the_measured_root_mean_square_error_is_at_most_the_target(kind):
    """The same for the root mean square; 10 % more noise is caught."""
    mechanism = kind.for_relative_error(0.1, x0=50, metric="rmse")

    assert surely_above(mechanism, "rmse", 50, 32) <= 1
    assert surely_above(noisier(mechanism, 1.1), "rmse", 50, 32) > 1


def divergence_surely_above(here, there, order):
    """Return what D_order(here || there) surely is at least, from samples: the divergence of one event.

    The event is a tail of `here`, chosen on half of the samples; on the other half its chances are bounded by
    Clopper and Pearson, each at half the level. An event is post-processing, so its divergence is never the larger.
    """
    choose, test = slice(None, None, 2), slice(1, None, 2)
    n = len(here[test])
    sign = 1 if here[choose].mean() > there[choose].mean() else -1
    ends = np.quantile(sign * here[choose], np.linspace(0.3, 0.9995, 120))

    def bound(end, part, tilt):
        hits = int((sign * here[part] >= end).sum()), int((sign * there[part] >= end).sum())
        p = beta.ppf(tilt, hits[0], n - hits[0] + 1) if hits[0] else 0
        q = beta.ppf(1 - tilt, hits[1] + 1, n - hits[1])
        return (order * log(p) - (order - 1) * log(q)) / (order - 1) if p else -np.inf

    best = max(ends, key=lambda end: bound(end, choose, ALPHA / 2))
    return bound(best, test, ALPHA / 2)


# A mechanism of about this mu between its two sizes lets one event show the most of its divergence at the order.
PAIRS = [(2, 1.2, 60), (8, 0.5, 60), (32, 0.12, 60), (8, 0.5, 1)]
CASES = [(0, 0), (1, 1), (2, 2), (0, 3)]
OTHERS = [(0, 1), (0, 2), (1, 0), (1, 2), (1, 3), (2, 0), (2, 1), (2, 3)]
SHAPES = [lambda s: Log(s, offset=0.75), lambda s: LinearLog(s, x0=50.0), lambda s: Asinh(s, x0=10.0)]


@pytest.mark.statistical
@pytest.mark.parametrize(("shape", "place"), CASES)
def test_measured_divergences_are_never_above_the_policy(shape, place):
    """Both directions; noise of half the size under the same policy is caught."""
    build, (order, mu, size) = SHAPES[shape], PAIRS[place]
    sigma = float(build(1.0).policy.mu(size)) / mu
    promised = order * float(build(sigma).policy(size))

    def seen(honest, seed):
        drawn = [build(honest).indices(np.full(2 * N, x), seeded(seed + x)) for x in (size, size - 1)]
        # Two mechanisms of one grid: their steps are compared as numbers.
        return [divergence_surely_above(*pair, order) for pair in (drawn, drawn[::-1])]

    assert max(seen(sigma, 51)) <= promised
    assert min(seen(sigma / 2, 52)) > promised


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("shape", "place"), OTHERS)
def test_no_measured_divergence_is_above_the_policy(shape, place):
    """The other pairs of a shape and an order."""
    test_measured_divergences_are_never_above_the_policy(shape, place)


@pytest.mark.statistical
def test_a_policy_that_forgets_the_smaller_neighbour_is_caught():
    """The last member of a group leaves more than a new one adds: at x = 1 the difference is plain to see."""
    mechanism = Log(2.5, offset=0.1)
    forgetful = log((1.1 + 1) / 1.1) ** 2 / (2 * 2.5**2)
    drawn = [mechanism.indices(np.full(2 * N, x), seeded(70 + x)) for x in (1, 0)]
    seen = divergence_surely_above(*drawn, 8)

    assert seen <= 8 * float(mechanism.policy(1))
    assert seen > 8 * forgetful
