"""Two-sided geometric releases: exact rates, half-widths and the least price of an absolute target."""

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.mechanisms.geometric import GeometricRelease, half_width, price_of, rate_of
from farthing.noise.bits import seeded
from farthing.rounding import FARTHING

ONE = 1 << 40  # epsilon = 1 in farthings


def miss(width, rate):
    """Return P[|noise| > width] of the law P[k] ~ exp(-rate |k|), by summing it."""
    q = math.exp(-rate)
    inside = sum(q**k for k in range(1, width + 1))
    return 1 - (1 - q) / (1 + q) * (1 + 2 * inside)


@pytest.mark.parametrize("farthings", [1, 12_345, ONE // 3, ONE, 7 * ONE])
@pytest.mark.parametrize("sensitivity", [1, 3, 400])
def test_the_rate_costs_at_most_its_farthings(farthings, sensitivity):
    """Exactly: rate times sensitivity is at most the epsilon that is booked, and hardly less."""
    spent = Fraction(rate_of(farthings, sensitivity)) * sensitivity

    assert farthings * FARTHING * (1 - Fraction(1, 2**50)) < spent <= farthings * FARTHING


@pytest.mark.parametrize("farthings", [ONE // 20, ONE // 3, ONE, 3 * ONE])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_half_width_is_the_least(farthings, beta):
    """The noise stays within it as often as asked, and one less would not do."""
    width, rate = half_width(farthings, 1, beta), rate_of(farthings, 1)

    assert miss(width, rate) <= beta * (1 + 1e-9)
    assert width == 0 or miss(width - 1, rate) > beta * (1 - 1e-9)


@pytest.mark.parametrize("sensitivity", [1, 5])
@pytest.mark.parametrize("absolute", [0.5, 1, 7.9, 100, 1e6])
def test_price_of_is_the_least(absolute, sensitivity):
    """One farthing less would miss the target."""
    price = price_of(absolute, sensitivity, 0.05)

    assert half_width(price, sensitivity, 0.05) <= absolute
    assert price == 1 or half_width(price - 1, sensitivity, 0.05) > absolute


def test_releases_are_whole_numbers_near_the_truth():
    """int64, one a group, unbiased; 99.9999 % of 10,000 draws within the half-width's law."""
    truth = np.full(10_000, 1_000)
    noisy = GeometricRelease(truth, bits=seeded(3)).release(ONE)

    assert np.int64 == noisy.dtype
    assert truth.shape == noisy.shape
    assert 0.1 > abs((noisy - truth).mean())
    width = half_width(ONE, 1, 0.05)
    assert miss(width, 1.0) == pytest.approx((abs(noisy - truth) > width).mean(), abs=0.01)


def test_sensitivity_stretches_the_noise():
    """A unit of five rows a group needs five times the noise for the same farthings."""
    spread = [
        abs(GeometricRelease(np.zeros(10_000, np.int64), sensitivity, bits=seeded(4)).release(ONE)).mean()
        for sensitivity in (1, 5)
    ]

    assert 5 == pytest.approx(spread[1] / spread[0], rel=0.2)
