"""The exponential mechanism has the law it claims; an epsilon 5 % off and forgotten weights are caught."""

import numpy as np
import pytest
from levels import dkw_band

from farthing.mechanisms import exponential
from farthing.mechanisms.exponential import Exponential
from farthing.noise.bits import seeded

N = 400_000
SCORES = np.array([0, -4, -1, 3, -900, 2, -2])
WEIGHTS = np.array([2.0, 40.0, 1.0, 1.0, 5.0, 0.0, 8.0])


def gap(chosen, law):
    """Return the largest distance between the CDFs of draws and of a law over the options."""
    seen = np.bincount(chosen, minlength=len(law)) / len(chosen)
    return np.abs(np.cumsum(seen) - np.cumsum(law)).max()


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_choices_fit(epsilon):
    """Inside the band; 5 % off, without the weights, or with the rate of monotone scores is outside."""
    mechanism = Exponential(epsilon)
    chosen = mechanism.choose(np.broadcast_to(SCORES, (N, 7)), 2, weights=WEIGHTS, bits=seeded(91))
    band = dkw_band(N)

    assert gap(chosen, mechanism.probabilities(SCORES, 2, weights=WEIGHTS)) < band
    assert gap(chosen, Exponential(epsilon * 1.1).probabilities(SCORES, 2, weights=WEIGHTS)) > band
    assert gap(chosen, mechanism.probabilities(SCORES, 2)) > band
    assert gap(chosen, mechanism.probabilities(SCORES, 2, monotone=True, weights=WEIGHTS)) > band


@pytest.mark.statistical
def test_balls_alone_fit():
    """Draws that are all settled in ball arithmetic have the same law; half of the words have another."""
    count = 20_000
    bits = seeded(92)
    words = bits.words(count).tolist()
    chosen = np.array([exponential._settle_one(SCORES, WEIGHTS, 0.25, word, bits) for word in words])
    law = Exponential(1).probabilities(SCORES, 2, weights=WEIGHTS)

    assert gap(chosen, law) < dkw_band(count)
    assert gap(chosen[np.array(words) < 2**63], law) > dkw_band(count // 2)
