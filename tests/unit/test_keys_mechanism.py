"""Private keys: plans, prices, and refusals."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from farthing.errors import InvalidBounds, InvalidBudget, InvalidTarget
from farthing.mechanisms.gaussian import worst_cost
from farthing.mechanisms.group_shares import ONE
from farthing.mechanisms.keys import GaussianKeys, OptimalKeys
from farthing.noise.bits import seeded
from farthing.privacy.loss import Approx
from farthing.rounding import DELTA_COIN

PLANS = [(2, 0.5, 1e-3, 1), (20, 0.95, 1e-7, 1), (100, 0.95, 1e-9, 5), (5000, 0.999, 2**-60, 400)]


@pytest.mark.parametrize(("found_above", "confidence", "delta", "groups"), PLANS)
def test_the_gaussian_plan_meets_its_target_at_least_cost(found_above, confidence, delta, groups):
    """Both promises hold, and with a thousandth less information one of them breaks."""
    keys = GaussianKeys.plan(found_above, confidence=confidence, delta=delta, max_groups=groups)
    lean = GaussianKeys(int(keys.grains * 0.999), keys.threshold, groups)
    raised = GaussianKeys(lean.grains, 1 + (keys.threshold - 1) * lean.sigma / keys.sigma, groups)

    assert keys.delta <= Fraction(delta)
    assert keys.chance(found_above) >= confidence
    assert lean.delta > Fraction(delta)
    assert raised.delta <= Fraction(delta) * (1 + Fraction(1, 10**6))
    assert raised.chance(found_above) < confidence


@pytest.mark.parametrize("kind", [GaussianKeys, OptimalKeys])
@pytest.mark.parametrize("groups", [1, 2, 16, 17, 40, 5000])
def test_shares_fall_with_the_number_of_groups(kind, groups):
    """Shares end at max_groups, fall, and are never below what a unit of all its groups counts by."""
    keys = kind.plan(60, confidence=0.95, delta=1e-8, max_groups=groups)
    one, shares = ONE if kind is GaussianKeys else 1, keys.shares or ((groups, 0),)

    assert shares[-1][0] == groups
    assert len(shares) <= 17 + math.log(max(1, groups / 16), 1.1)
    assert all(before > after for (_, before), (_, after) in itertools.pairwise(shares))
    assert bool(keys.shares) == (groups > (1 if kind is GaussianKeys else 2))
    assert shares[-1][1] >= (one if keys.shares else 0)


@pytest.mark.parametrize("groups", [1, 7, 1000])
def test_delta_counts_every_new_group(groups):
    """Delta is 1 - Phi((threshold - 1)/sigma)^K, rounded up by less than a coin and a part in 10^12."""
    keys = GaussianKeys(1 << 50, 41.25, groups)
    with mpmath.workdps(60):
        truth = 1 - mpmath.ncdf((mpmath.mpf(41.25) - 1) / mpmath.mpf(keys.sigma)) ** groups
        coins = truth / mpmath.mpf(2) ** -80

        assert keys.delta_coins >= coins
        assert keys.delta_coins <= coins * (1 + mpmath.mpf(10) ** -12) + 1


def test_one_delta_a_key_would_be_far_too_small():
    """The figure for one new group, told as the whole, would understate delta threefold at K = 3."""
    one, three = (GaussianKeys(1 << 52, 12.0, k).delta for k in (1, 3))

    assert 2.9 < float(three / one) <= 3


def test_the_cost_is_that_of_all_its_groups():
    """A unit in K groups pays for K of them, as the books add grains up."""
    keys = GaussianKeys.plan(50, confidence=0.9, delta=1e-8, max_groups=6)

    assert worst_cost(np.full(10, keys.grains), 6) == keys.cost_grains
    assert math.isclose(6 / keys.sigma**2, float(keys.loss.amount), rel_tol=1e-9)


def test_certain_cases():
    """Far above the threshold groups are told, far below they are not, without units never."""
    keys = GaussianKeys(1 << 56, 50.5)

    assert [False, False, True] == keys.found(np.array([0, 1, 1000])).tolist()
    assert [] == keys.found(np.zeros(0, np.int64)).tolist()


def test_fractions_of_the_threshold_count():
    """With next to no noise the comparison is the plain one, whatever fraction the threshold has."""
    units = np.arange(1, 9)
    for threshold in (1.0, 3.25, 4.999999, 5.0000001, 6.5):
        keys = GaussianKeys(1 << 62, threshold, bits=seeded(1))
        far = np.abs(units - threshold) > 1.5

        assert ((units > threshold)[far] == keys.found(units)[far]).all()


@pytest.mark.parametrize(("found_above", "confidence", "delta", "groups"), PLANS)
def test_the_optimal_plan_meets_its_target_at_least_cost(found_above, confidence, delta, groups):
    """The chance is reached, and not at a thousandth less epsilon; delta is the one that was allowed."""
    keys = OptimalKeys.plan(found_above, confidence=confidence, delta=delta, max_groups=groups)
    lean = OptimalKeys(int(keys.farthings * 0.999), keys.delta, groups)

    assert keys.chance(found_above) >= confidence > lean.chance(found_above)
    assert Fraction(delta) - DELTA_COIN < keys.delta <= Fraction(delta)
    assert isinstance(keys.loss, Approx)
    assert keys.delta_coins * DELTA_COIN == keys.delta


def test_sure_and_impossible_draws():
    """Beyond the end of the table a group is surely told; a group of no units never is."""
    keys = OptimalKeys(1 << 40, Fraction(1, 1000), bits=seeded(2))
    units = np.array([0, 10**9] * 500)

    assert [False, True] * 500 == keys.found(units).tolist()


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (InvalidTarget, {"found_above": 1}),
        (InvalidTarget, {"found_above": 2.5}),
        (InvalidTarget, {"confidence": 1.0}),
        (InvalidTarget, {"confidence": 0.4}),
        (InvalidBudget, {"delta": 0}),
        (InvalidBudget, {"delta": 1.0}),
        (InvalidBudget, {"delta": 2.0**-90}),
        (InvalidBounds, {"max_groups": 0}),
        (InvalidBounds, {"max_groups": True}),
    ],
)
@pytest.mark.parametrize("rule", [GaussianKeys, OptimalKeys])
def test_plans_refuse(rule, kind, arguments):
    """What no rule can do is refused with the rule and the next step."""
    usual = {"found_above": 50, "confidence": 0.95, "delta": 1e-7}
    with pytest.raises(kind) as caught:
        rule.plan(**(usual | arguments))

    assert caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (InvalidTarget, lambda: GaussianKeys.plan(2, confidence=0.95, delta=1e-20)),
        (InvalidTarget, lambda: GaussianKeys.plan(20, confidence=0.95, delta=0.9)),
        (InvalidBudget, lambda: GaussianKeys(0, 5.0)),
        (InvalidTarget, lambda: GaussianKeys(1 << 50, 0.5)),
        (InvalidTarget, lambda: GaussianKeys(1 << 50, math.nan)),
        (InvalidBounds, lambda: GaussianKeys(1 << 50, 5.0, 4, shares=((1, 2049), (4, 1024)))),
        (InvalidBounds, lambda: GaussianKeys(1 << 50, 5.0, 4, shares=((1, 2048), (3, 1024)))),
        (InvalidBounds, lambda: GaussianKeys(1 << 50, 5.0, 4, shares=((2, 1400), (2, 1024), (4, 1024)))),
        (InvalidBudget, lambda: OptimalKeys(0, Fraction(1, 10))),
        (InvalidBudget, lambda: OptimalKeys(1 << 40, Fraction(1, 1 << 90))),
        (InvalidBudget, lambda: OptimalKeys(1 << 10, Fraction(1, 1 << 40))),
        (InvalidTarget, lambda: OptimalKeys.plan(1 << 20, confidence=0.95, delta=1e-7)),
    ],
)
def test_rules_refuse(kind, make):
    """Costs, thresholds and sizes out of range are refused."""
    with pytest.raises(kind):
        make()
