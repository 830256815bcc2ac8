"""Gaussian refinement: prices, scales and the running mean."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.mechanisms import gaussian
from farthing.mechanisms.gaussian import (
    GRAIN,
    ROUNDING_VARIANCE,
    Coin,
    GaussianMeasurements,
    Measured,
    sigma_of,
    worst_cost,
)
from farthing.noise.bits import seeded
from farthing.privacy.loss import Gdp, Zcdp

GRAINS = np.array([1, 3, 16, 17, (1 << 53) + 1, (1 << 56) - 1, 1 << 61, 123_456_789_012_345])


def refinement(truth, seed=1, **options):
    """Return a mechanism with fixed bits."""
    return GaussianMeasurements(np.asarray(truth, np.int64), bits=seeded(seed), **options)


@pytest.mark.parametrize("sensitivity", [1, 3, 400, 2**31 - 1])
def test_sigma_costs_at_most_its_grains(sensitivity):
    """Exactly: sensitivity^2 / sigma^2 is at most the grains that are booked, and hardly less."""
    for grains, sigma in zip(GRAINS.tolist(), sigma_of(GRAINS, sensitivity).tolist(), strict=True):
        cost = Fraction(sensitivity) ** 2 / Fraction(sigma) ** 2
        assert grains * GRAIN * (1 - Fraction(1, 2**48)) < cost <= grains * GRAIN


def test_worst_cost_is_the_sum_of_the_largest():
    """In exact integers, beyond 64 bits too."""
    large = np.array([1 << 62, 5, 1 << 62, (1 << 62) - 1])

    assert (1 << 62, 1 << 63, 3 * (1 << 62) - 1) == tuple(worst_cost(large, k) for k in (1, 2, 3))
    assert sum(large.tolist()) == worst_cost(large, 4) == worst_cost(large, 9)


def test_some_groups_are_measured_by_themselves():
    """The state of the listed groups goes in and comes out, about their own truths."""
    mechanism = refinement([500, 20_000, 7])
    middle = np.array([1])
    first = mechanism.measure(Measured.nothing(3), np.full(3, 1 << 50))
    second = mechanism.measure(first.take(middle), np.array([1 << 48]), middle)

    assert [(1 << 50) + (1 << 48)] == second.information.tolist()
    assert 20_000 == pytest.approx(second.values[0], abs=100)
    assert first.values[1] != second.values[0]


def test_the_shown_value_is_the_weighted_mean_of_the_measurements():
    """Information weighs: a measurement of three times the information counts three times."""
    alone = [refinement([1000], seed).measure(Measured.nothing(1), np.array([g])) for seed, g in ((1, 100), (2, 300))]
    both = refinement([1000], 2).measure(alone[0], np.array([300]))

    mean = (alone[0].values[0] + 3 * alone[1].values[0]) / 4
    assert mean == pytest.approx(both.values[0], rel=1e-9)


def test_many_small_measurements_are_one_large_one():
    """The mean of a hundred equal measurements has a hundredth of the variance: averaging is all there is."""
    groups, truth = 4_000, 12_345
    mechanism = refinement(np.full(groups, truth))
    state = Measured.nothing(groups)
    for _ in range(100):
        state = mechanism.measure(state, np.full(groups, 1 << 40))

    sd = 2.0**28 / np.sqrt(100.0 * (1 << 40))
    assert 1 == pytest.approx(((state.values - truth) ** 2).mean() / sd**2, abs=0.15)  # seeded
    assert 0 == pytest.approx((state.values - truth).mean() / sd, abs=0.06)


@pytest.mark.parametrize("grains", [16, 1 << 30, 1 << 56, 1 << 60])
def test_rounding_is_counted(grains):
    """Grid and guard bits add less than ROUNDING_VARIANCE says: grid steps are at most sigma / 2^10."""
    state = refinement([41]).measure(Measured.nothing(1), np.array([grains]))
    step = 2.0 ** (np.frexp(sigma_of(np.array([grains]), 1)[0])[1] - 11)

    assert 1 + (step / sigma_of(np.array([grains]), 1)[0]) ** 2 / 12 < ROUNDING_VARIANCE
    assert 0 == np.fmod(state.values[0], step)  # on the public grid, whatever the truth


def test_the_grid_does_not_tell_the_truth():
    """Answers of neighbouring truths lie on one and the same grid."""
    grains = np.full(64, 1 << 52)
    steps = 2.0 ** (np.frexp(sigma_of(grains[:1], 1)[0])[1] - 11)
    for truth in (0, 1, 2**31, 2**31 + 1):
        values = refinement(np.full(64, truth)).measure(Measured.nothing(64), grains).values
        assert not np.fmod(values, steps).any()


def test_a_measurement_by_itself_is_that_of_a_group_of_which_nothing_is_known():
    """From the same bits the same numbers, on every grid."""
    grains, groups = np.array([1 << 40, 3, 1 << 58]), np.array([2, 0, 1])
    for step in (-30, 0, 7):
        fresh, state = (refinement([5, 10**9, 70], 3, step_log2=step) for _ in range(2))

        shown = state.measure(Measured.nothing(3), grains, groups).values
        assert shown.tolist() == fresh.fresh(grains, groups).tolist()


def test_seeded_bits_repeat_and_system_bits_do_not():
    """Tests may fix the bits; without that, two measurements differ."""
    one = [refinement([5]).measure(Measured.nothing(1), np.array([1 << 40])).mean.tolist() for _ in range(2)]
    two = [
        GaussianMeasurements(np.array([5])).measure(Measured.nothing(1), np.array([1 << 40])).mean.tolist()
        for _ in range(2)
    ]

    assert one[0] == one[1]
    assert two[0] != two[1]


def test_a_finer_unit_is_exact():
    """Changing the unit of the mean changes no value."""
    state = Measured(np.array([3, -7]), np.array([1, 1]), -2)

    assert state.values.tolist() == state.in_unit(-9).values.tolist()


def test_answers_beyond_the_fixed_point_are_held():
    """Fixed point has an end far beyond any table: answers there are told as the end, and no row decides an error."""
    for grains in (1, 1 << 30, 1 << 60):
        shown = refinement([1 << 62, -(1 << 62)]).measure(Measured.nothing(2), np.full(2, grains)).values

        assert (shown[0] > 2.0**37) & (shown[1] < -(2.0**37))
        assert np.abs(shown).max() < 2.0**61 + 2.0**34


@pytest.mark.parametrize("step_log2", [-1000, -40, 0, 3, 17, 60, 300, 900])
def test_the_unit_of_the_values_changes_nothing(step_log2):
    """From the coarsest look to the finest, in steps of any size, what is shown is the same number of steps."""
    plain, scaled = ((refinement([100, -7], step_log2=step)) for step in (0, step_log2))
    states = [Measured.nothing(2), Measured.nothing(2)]
    for grains in (1, 16, 1 << 20, 1 << 40, 1 << 61):
        states = [each.measure(state, np.full(2, grains)) for each, state in zip((plain, scaled), states, strict=True)]

        assert states[0].mean.tolist() == states[1].mean.tolist()
        assert states[1].unit_log2 == states[0].unit_log2 + step_log2


def test_nothing_measured_is_nothing():
    """The state before any measurement: no information, value 0."""
    state = Measured.nothing(2)

    assert ([0.0, 0.0], [0, 0]) == (state.values.tolist(), state.information.tolist())


@pytest.mark.parametrize("currency", [Gdp, Zcdp])
def test_coins_turn_grains_into_loss_and_back(currency):
    """No grain is lost on the way, in either currency: mu^2 = 2 rho."""
    coin = Coin(currency, max_groups=2, sensitivity=3)

    assert 12_345 == coin.grains(coin.loss(12_345))
    assert 12_345 * GRAIN == coin.loss(12_345).amount * (1 if currency is Gdp else 2)


@pytest.mark.parametrize(("top", "level"), [((0,), 100), ((40,), 140), ((0, 0), 50), ((60, 0), 80), ((400, 0), 100)])
def test_the_level_that_a_loss_buys(top, level):
    """Raising every group to the level costs the K largest what they lack; the loss covers it, one more would not."""
    coin = Coin(Gdp, max_groups=len(top), sensitivity=1)

    assert level == coin.level(coin.loss(100), top)
    assert sum(max(level - has, 0) for has in top) <= 100 < sum(max(level + 1 - has, 0) for has in top)


@pytest.mark.parametrize("exponents", [(-30, -1), (0, 0), (0, 53), (-5, 5), (54, 60), (-61, 61), (61, 70)])
def test_truths_are_split_exactly_whatever_their_grids(exponents):
    """What is whole of a truth and the rest of it are the truth, on finer and coarser grids, and on both at once."""
    sizes = [0, 1, -1, 5, -7, 1023, -1024, 10**9 + 7, -(10**9), 2**52 + 1, -(2**53) + 1]
    low, high = exponents
    found = [(size, exponent) for exponent in range(low, high + 1) for size in sizes]
    found = [(size, exponent) for size, exponent in found if abs(size) << max(-exponent, 0) < 1 << 61]
    truth, exponent = (np.array(column) for column in zip(*found, strict=True))
    whole, rest = gaussian._split(truth, exponent)
    rest = np.broadcast_to(rest, whole.shape)

    assert (abs(rest) <= 1).all()
    for size, power, units, part in zip(truth.tolist(), exponent.tolist(), whole.tolist(), rest.tolist(), strict=True):
        unit = Fraction(2) ** power
        assert size == (units + Fraction(part)) * unit
    beside = gaussian._split(np.array([*truth, 3, 3, 3]), np.array([*exponent, -2, 0, 58]))
    assert whole.tolist() == beside[0][:-3].tolist()
    assert rest.tolist() == beside[1][:-3].tolist()
