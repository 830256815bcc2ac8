"""Leads have the law of the differences of noisy scores; what they settle is right with the confidence."""

import math

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom, laplace, norm

from farthing.mechanisms import NoisyMax, PermuteAndFlip, TopK
from farthing.mechanisms.leads import choose_with_leads
from farthing.noise.bits import seeded

N, APART = 3000, 1.2
LAWS = {"exponential": laplace(APART), "gaussian": norm(APART, math.sqrt(2))}
"""Of the first of two options less the second, in the noise's unit."""


def fits(count, chance, tests):
    """Tell whether a count of N lies between the exact binomial quantiles of its chance."""
    return binom.ppf(ALPHA / 2 / tests, N, chance) <= count <= binom.isf(ALPHA / 2 / tests, N, chance)


def drawn(mechanism, scores, seed):
    """Return the first less the second option, as winner and lead tell it, N times."""
    bits = seeded(seed)
    led = [choose_with_leads(mechanism, scores, monotone=True, moved=1, bits=bits) for _ in range(N)]
    return np.array([each.ahead[0] * (1 - 2 * each.places[0]) for each in led])


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["exponential", "gaussian"])
def test_leads_have_the_law_of_differences(noise):
    """At five places of the law; not at those of noise four tenths larger, or of a difference a third larger."""
    size = 1 if noise == "exponential" else 1 / (2 * math.sqrt(0.5))
    mechanism = PermuteAndFlip(1) if noise == "exponential" else NoisyMax(1, "gaussian")
    told = drawn(mechanism, [APART / size, 0.0], 91 if noise == "exponential" else 92) * size
    law, places = LAWS[noise], (-1.5, 0.0, 1.0, 2.0, 4.0)
    wide, far = (lambda x: law.cdf(APART + (x - APART) / 1.4)), (lambda x: law.cdf(x - APART / 3))

    def seen(cdf):
        """Tell whether the counts are those of a law."""
        return all(fits(int((told <= x).sum()), cdf(x), len(places)) for x in places)

    assert seen(law.cdf)
    assert not seen(wide)
    assert not seen(far)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["exponential", "gaussian"])
def test_what_leads_settle_is_right_with_the_confidence(noise):
    """Of two options, all but tied, the wrong one is settled as rarely as said; at 0.4 of the slack it is not."""
    bits, count = seeded(93), N // 2
    led = [choose_with_leads(TopK(1, 1, noise), [0.0, 1e-6], monotone=True, bits=bits) for _ in range(count)]
    worst = binom.isf(ALPHA, count, 0.05)

    assert sum(bool(each.settled[0]) and each.places[0] == 0 for each in led) <= worst
    assert sum(each.ahead[0] > 0.4 * each.slack and each.places[0] == 0 for each in led) > worst
