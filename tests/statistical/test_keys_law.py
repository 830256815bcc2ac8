"""Groups are told as often as their chance says; a noise 5 % off is caught."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing.mechanisms.group_shares import ONE
from farthing.mechanisms.keys import GaussianKeys, OptimalKeys
from farthing.noise.bits import seeded

N = 400_000


def fits(told, chance, counts=1):
    """Tell whether a number of told groups of N lies between the exact binomial quantiles of its chance."""
    return binom.ppf(ALPHA / 2 / counts, N, chance) <= told <= binom.isf(ALPHA / 2 / counts, N, chance)


@pytest.mark.statistical
def test_gaussian_keys_are_told_as_often_as_they_say():
    """At several counts and an odd threshold; not as noise 5 % off, or a threshold half a unit off, would say."""
    keys = GaussianKeys(1 << 50, 12.375, bits=seeded(81))
    off = GaussianKeys(int((1 << 50) * 1.1025), 12.375)
    shifted = GaussianKeys(1 << 50, 12.875)
    counts = (1, 8, 30)
    told = {n: int(keys.found(np.full(N, n)).sum()) for n in counts}

    assert all(fits(told[n], keys.chance(n), len(counts)) for n in counts)
    assert not all(fits(told[n], off.chance(n), len(counts)) for n in counts)
    assert not all(fits(told[n], shifted.chance(n), len(counts)) for n in counts)


@pytest.mark.statistical
def test_units_of_few_groups_are_told_as_often_as_their_shares_say():
    """A unit alone in each of k groups, and many units with shares; not as units that count by 1 would be."""
    keys = replace(GaussianKeys.plan(12, confidence=0.9, delta=0.05, max_groups=4), bits=seeded(83))
    sums = (*(share for _, share in keys.shares), 9 * ONE + 517)
    told = {n: int(keys.found(np.full(N, n)).sum()) for n in sums}

    assert all(fits(told[n], keys.chance(n / ONE), len(sums)) for n in sums)
    assert not fits(told[sums[0]], keys.chance(1))


@pytest.mark.statistical
def test_optimal_keys_are_told_as_often_as_they_say():
    """At several counts; the chances at an epsilon 5 % higher are not."""
    keys = OptimalKeys(1 << 38, Fraction(1, 1000), bits=seeded(82))
    off = OptimalKeys(int((1 << 38) * 1.05), Fraction(1, 1000))
    counts = (3, 12, 20)
    told = {n: int(keys.found(np.full(N, n)).sum()) for n in counts}

    assert all(fits(told[n], keys.chance(n), len(counts)) for n in counts)
    assert not all(fits(told[n], off.chance(n), len(counts)) for n in counts)
