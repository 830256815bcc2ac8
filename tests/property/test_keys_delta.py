"""The delta of private keys, by enumeration: never above what is booked, and no less where it counts."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from farthing.mechanisms.group_shares import ONE
from farthing.mechanisms.keys import GaussianKeys, OptimalKeys
from farthing.privacy import convert

EPSILONS = (0.0, 0.05, 0.3, 1.0, 3.0, 30.0)


def outcomes(chances):
    """Return the exact law of which groups are told, one probability an outcome."""
    return [
        math.prod(p if told else 1 - p for p, told in zip(chances, each, strict=True))
        for each in itertools.product((True, False), repeat=len(chances))
    ]


def hockey_stick(one, other, epsilon):
    """Return sum max(0, P - e^eps Q)."""
    return sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(one, other, strict=True))


def worst(chance, counts, epsilon):
    """Return the larger divergence between neighbours: a unit joins groups that have `counts` others."""
    before, after = outcomes([chance(n) for n in counts]), outcomes([chance(n + 1) for n in counts])
    return max(hockey_stick(before, after, epsilon), hockey_stick(after, before, epsilon))


def booked(keys, delta, epsilon):
    """Return the delta that the books promise at epsilon: mu-GDP but for events of chance delta."""
    return delta + (1 - delta) * convert.gdp_delta(keys.loss.amount, epsilon)


@given(
    grains_log2=st.integers(48, 58),
    threshold=st.floats(1.0, 30.0),
    counts=st.lists(st.sampled_from([0, 0, 1, 2, 5, 9, 20, 31]), min_size=1, max_size=4),
    epsilon=st.sampled_from(EPSILONS),
)
@settings(max_examples=300, deadline=None)
def test_gaussian_keys_keep_what_they_book(grains_log2, threshold, counts, epsilon):
    """For every number of others in each group and every epsilon, neighbours are as close as booked."""
    keys = GaussianKeys(1 << grains_log2, threshold, max_groups=len(counts))

    assert worst(keys.chance, counts, epsilon) <= booked(keys, float(keys.delta), epsilon) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_gaussian_delta_is_reached(groups):
    """A unit alone in all its groups reaches the booked delta itself: a factor of 1, whatever epsilon."""
    keys = GaussianKeys(1 << 54, 3.5, max_groups=groups)

    truth = worst(keys.chance, [0] * groups, 30.0)

    assert truth == pytest.approx(float(keys.delta), rel=1e-9)


@dataclass(frozen=True)
class OneNewGroup:
    """The classic mistake: delta as if a unit could create one group only."""

    keys: GaussianKeys

    @property
    def delta(self):
        return float(ndtr((1 - self.keys.threshold) / self.keys.sigma))


@dataclass(frozen=True)
class EmptyGroup:
    """The other mistake: the threshold measured from 0 units, where a new group has 1."""

    keys: GaussianKeys

    @property
    def delta(self):
        return -math.expm1(self.keys.max_groups * math.log1p(-float(ndtr(-self.keys.threshold / self.keys.sigma))))


@pytest.mark.parametrize("bug", [OneNewGroup, EmptyGroup])
def test_planted_deltas_are_caught(bug):
    """The enumeration sees a delta for one new group, and one that forgets the unit itself."""
    keys = GaussianKeys(1 << 56, 3.5, max_groups=3)

    truth = worst(keys.chance, [0, 0, 0], 30.0)

    assert truth <= booked(keys, float(keys.delta), 30.0) * (1 + 1e-9)
    assert truth > 2 * booked(keys, bug(keys).delta, 30.0)


def share(keys, groups):
    """Return what a unit of so many groups counts by in each, in units."""
    one = ONE if isinstance(keys, GaussianKeys) else 1
    return next((Fraction(share, one) for most, share in keys.shares if groups <= most), Fraction(1))


def worst_shared(keys, counts, epsilon):
    """Return the larger divergence between neighbours: a unit of these groups joins what others count by there."""
    mine = share(keys, len(counts))
    step = float(mine) if isinstance(keys, GaussianKeys) else int(mine)
    before, after = ([keys.chance(n + more) for n in counts] for more in (0, step))
    one, other = outcomes(before), outcomes(after)
    return max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))


SHARED = [
    GaussianKeys.plan(size, confidence=0.9, delta=delta, max_groups=4)
    for size, delta in ((20, 1e-3), (3, 0.05), (5, 0.05), (20, 0.4))
]


@given(
    keys=st.sampled_from(SHARED),
    counts=st.lists(st.sampled_from([0, 0, 1, 2.25, 7.5, 19, 30]), min_size=1, max_size=4),
    epsilon=st.sampled_from(EPSILONS),
)
@settings(max_examples=150, deadline=None)
def test_gaussian_shares_keep_what_is_booked(keys, counts, epsilon):
    """A unit of k <= K groups counts by its share in each, and moves the answer no more than one of K groups."""
    assert share(keys, 1) > 1 == share(keys, 4)
    assert worst_shared(keys, counts, epsilon) <= booked(keys, float(keys.delta), epsilon) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("keys", SHARED)
def test_the_delta_of_shares_is_reached(keys):
    """Of all numbers of groups one reaches the booked delta; the plan keeps what it was allowed, at the same price."""
    truth = max(worst_shared(keys, [0] * groups, 30.0) for groups in range(1, 5))
    plain = GaussianKeys(keys.grains, keys.threshold, 4)

    assert truth == pytest.approx(float(keys.delta), rel=1e-9)
    assert plain.loss == keys.loss
    assert plain.delta == pytest.approx(keys.delta, rel=1e-6)


def test_shares_as_large_as_the_price_allows_are_caught():
    """Planted: sqrt(K/k) in each of k groups keeps mu, but a unit alone is told more often than delta says."""
    keys = GaussianKeys.plan(3, confidence=0.9, delta=0.05, max_groups=4)
    roots = tuple((k, math.isqrt(4 * ONE**2 // k)) for k in range(1, 5))
    planted = GaussianKeys(keys.grains, keys.threshold, 4, shares=roots)

    truth = max(worst_shared(planted, [0] * groups, 30.0) for groups in range(1, 5))

    assert truth > 1.2 * float(keys.delta)
    assert truth == pytest.approx(float(planted.delta), rel=1e-9)  # the books see it: the rule's own delta is honest


@given(
    epsilon=st.sampled_from([0.05, 0.5, 4.0]),
    counts=st.lists(st.sampled_from([0, 0, 1, 2, 4, 7, 12, 20]), min_size=1, max_size=6),
)
@settings(max_examples=150, deadline=None)
def test_optimal_shares_keep_epsilon_and_delta(epsilon, counts):
    """A unit of k <= K groups counts by a whole share in each, and (epsilon, delta) holds."""
    keys = OptimalKeys(int(epsilon * 2**40), Fraction(1, 1000), max_groups=6)

    assert share(keys, 1) > 1 == share(keys, 6)
    assert worst_shared(keys, counts, epsilon) <= 1e-3 * (1 + 1e-9)


def test_optimal_shares_of_k_groups_in_k_are_caught():
    """Planted: K/k in each of k groups keeps epsilon, but delta grows with e^epsilon."""
    keys = OptimalKeys(4 * 2**40, Fraction(1, 1000), max_groups=6)

    assert keys.chance(6) > 4e-3
    assert share(keys, 1) == 2


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (2, 1e-6), (0.125, 2**-40)])
def test_optimal_keys_obey_exactly(epsilon, delta):
    """In whole numbers: both inequalities of (epsilon, delta) hold between all neighbouring counts, none is wasted."""
    keys = OptimalKeys(int(epsilon * 2**40), Fraction(delta))
    table = [Fraction(each, 2**128) for each in keys._table]
    with mpmath.workprec(300):
        growth = Fraction(int(mpmath.floor(mpmath.exp(epsilon) * mpmath.mpf(2) ** 250)), 2**250)  # below e^eps
    slack = Fraction(delta)

    for before, after in itertools.pairwise(table):
        most = min(growth * before + slack, 1 - (1 - before - slack) / growth, Fraction(1))
        assert before <= after <= growth * before + slack
        assert 1 - before <= growth * (1 - after) + slack
        assert most - after < Fraction(1, 2**120)
    assert table[0] == 0
    assert table[1] == pytest.approx(delta, rel=1e-12)
    assert table[-1] == 1


@given(
    epsilon=st.sampled_from([0.5, 1.0, 4.0]),
    counts=st.lists(st.sampled_from([0, 0, 1, 2, 4, 7, 12, 20]), min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_optimal_keys_add_up_over_groups(epsilon, counts):
    """K groups of a unit together keep (epsilon, delta), and reach delta where all are new."""
    keys = OptimalKeys(int(epsilon * 2**40), Fraction(1, 1000), max_groups=len(counts))

    assert worst(keys.chance, counts, epsilon) <= 1e-3 * (1 + 1e-9)
    assert worst(keys.chance, [0] * len(counts), epsilon) == pytest.approx(1e-3, rel=1e-6)


def test_the_whole_delta_a_group_is_caught():
    """A planted rule that gives each of K groups the whole delta fails the enumeration."""
    alone = OptimalKeys(2**38, Fraction(1, 1000), max_groups=1)

    assert worst(alone.chance, [0, 0, 0], 0.75) > 2.9e-3


def test_chances_are_those_of_the_paper():
    """The table is the paper's closed form: geometric growth, then its mirror image, then 1."""
    epsilon, delta = 0.25, 1e-4
    keys = OptimalKeys(int(epsilon * 2**40), Fraction(delta))
    cross = 1 + math.floor(math.log((math.exp(epsilon) + 2 * delta - 1) / ((math.exp(epsilon) + 1) * delta)) / epsilon)
    n = np.arange(1, cross + 1)

    rising = np.expm1(n * epsilon) / math.expm1(epsilon) * delta

    assert np.allclose(rising, [keys.chance(int(k)) for k in n], rtol=1e-12)
    m = 3
    later = -math.expm1(-m * epsilon) * (1 + delta / math.expm1(epsilon)) + math.exp(-m * epsilon) * rising[-1]
    assert math.isclose(later, keys.chance(cross + m), rel_tol=1e-12)
