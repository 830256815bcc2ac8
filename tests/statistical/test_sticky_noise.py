"""The noise of the simulated Diffix is standard normal, although it is a function of its seeds."""

from math import sqrt

import numpy as np
import pytest
from levels import dkw_band

from farthing.attacks.diffix import StickyNoise

N = 300_000


def gap(sample, sigma):
    """Return the largest distance of the empirical CDF from that of N(0, sigma^2)."""
    from scipy.special import ndtr

    cdf = ndtr(np.sort(sample) / sigma)
    steps = np.arange(len(sample) + 1) / len(sample)
    return max(np.max(steps[1:] - cdf), np.max(cdf - steps[:-1]))


@pytest.mark.statistical
def test_layers_are_standard_normal():
    """The right law is inside of the band; a deviation that is 5 % off is outside."""
    noise = StickyNoise(b"a key of the tests")
    sample = np.array([noise.normal("layer", index) for index in range(N)])

    assert dkw_band(N) > gap(sample, 1)
    assert dkw_band(N) < min(gap(sample, 0.95), gap(sample, 1.05))
    assert 6 / sqrt(N) > abs(np.corrcoef(sample[:-1], sample[1:])[0, 1])
