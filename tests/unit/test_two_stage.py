"""TwoStage as a value: its policy, its limits by formula, tCDP regions, errors, targets, releases and refusals."""

import math

import numpy as np
import pytest

from farthing.errors import DataError, InvalidBudget, InvalidTarget, NoiseError
from farthing.mechanisms import TwoStage
from farthing.mechanisms.product import rounded_product
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

PROBLEM = TwoStage(sigma=10, relative=0.3)


def test_the_policy_is_the_first_stage_at_every_size():
    """Post-processing is all that strict zCDP gets: 1/(2 sigma^2), rounded up, for a group of 0 and of 10^9."""
    assert (PROBLEM.policy([0, 10**9]) >= 1 / 200).all()
    assert [1 / 200] * 2 == pytest.approx(PROBLEM.policy([0, 10**9]).tolist(), rel=1e-9)


@pytest.mark.parametrize(("x", "share"), [(0, 0.5), (32, 0.5), (32.5, 0.5 * (5 / 3 - 1) ** 2), (33, 0), (10**6, 0)])
def test_limits_by_hand(x, share):
    """s/r is 33.33: the way back has its limit rho/2 up to x + 1 = s/r, then a parabola, and 0 from s/r - 1/2 on."""
    assert share / 200 == pytest.approx(PROBLEM.limit(x, reverse=True), rel=1e-12, abs=1e-18)
    assert 1 / 400 == PROBLEM.limit(x)


@pytest.mark.parametrize("x", [100, 1000, 20_000])
def test_tcdp_holds_up_to_omega_and_not_far_beyond(x):
    """Below omega both directions stay under the line, at orders the sweep did not use; 2 % above one does not."""
    rho, omega = PROBLEM.tcdp(x)
    orders = np.geomspace(1.01, omega, 9)

    for reverse in (False, True):
        assert (PROBLEM.renyi(x, orders, reverse=reverse) <= rho * orders).all()
    assert max(PROBLEM.renyi(x, 1.02 * omega, reverse=way) for way in (False, True)) > rho * 1.02 * omega


def test_omega_grows_with_the_size_and_rho_falls_with_its_square():
    """Ten times the group: ten times the orders, a hundredth of the loss at them."""
    small, large = PROBLEM.tcdp(2_000), PROBLEM.tcdp(20_000)

    assert 10 == pytest.approx(large.omega / small.omega, rel=0.02)
    assert 100 == pytest.approx(small.rho / large.rho, rel=0.02)


def test_a_slope_of_the_first_stage_holds_at_every_order():
    """From 1/(2 sigma^2) on the region has no end; at half of it, it has one, at any size."""
    assert math.inf == PROBLEM.tcdp(50, rho=1 / 200).omega
    assert 1.2e5 > PROBLEM.tcdp(3000, rho=0.49 / 200).omega
    assert "Tcdp(rho=" in repr(PROBLEM.tcdp(1000).loss)


def test_the_region_promises_no_more_than_the_profile():
    """The (epsilon, delta) that tCDP implies is never better than the profile itself, and within a factor of two."""
    region = PROBLEM.tcdp(1000)
    epsilon = PROBLEM.epsilon(1000, 1e-6)

    assert epsilon <= region.loss.epsilon(1e-6) <= 2 * epsilon
    assert 1e-6 == pytest.approx(PROBLEM.delta(1000, epsilon), rel=0.05)
    assert PROBLEM.profile(1000, [0.0, 0.01, 0.1]).tolist() == sorted(PROBLEM.profile(1000, [0.0, 0.01, 0.1]))[::-1]


@pytest.mark.parametrize("x", [0, 5, 100, 10_000])
@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_expected_errors_are_those_of_samples(x, metric):
    """Both errors agree with what 400,000 releases show."""
    off = PROBLEM.release(np.full(400_000, x), seeded(4)) - x
    seen = np.abs(off).mean() if metric == "mae" else np.sqrt((off**2).mean())

    assert float(PROBLEM.expected_error(x, metric)) == pytest.approx(seen, rel=0.01)


def test_an_interval_holds_what_it_says():
    """95 of 100 errors are within the half-width."""
    off = np.abs(PROBLEM.release(np.full(400_000, 300), seeded(5)) - 300)

    assert 0.95 == pytest.approx((off <= PROBLEM.expected_error(300, ("ci", 0.95))).mean(), abs=0.003)


@pytest.mark.parametrize("metric", ["mae", "rmse", ("ci", 0.95)])
@pytest.mark.parametrize("relative", [0.05, 0.3])
def test_targets_are_met_at_every_size_and_tight_at_one(relative, metric):
    """The error is at most r max(x, x0), and within 1 part in 1000 of it somewhere."""
    mechanism = TwoStage.for_relative_error(relative, x0=50, metric=metric)
    sizes = np.array([0, 1, 10, 30, 45, 50, 51, 55, 60, 100, 1e4, 1e8])
    used = mechanism.expected_error(sizes, metric) / (relative * np.maximum(sizes, 50))

    assert used.max() <= 1
    assert used.max() > 0.999


def test_a_small_overhead_buys_large_groups_at_the_expense_of_the_strict_loss():
    """With a smaller first stage the second is larger: orders that are bounded pay less, the strict loss pays more."""
    thrifty, usual = (TwoStage.for_relative_error(0.1, x0=50, overhead=k) for k in (1.05, 1.5))

    assert thrifty.policy([1])[0] > usual.policy([1])[0]
    assert thrifty.renyi(10**5, 2.0) < usual.renyi(10**5, 2.0)


def test_outputs_lie_on_one_grid_whatever_the_count():
    """The grid is public, at most sigma / 16, and every output is on it."""
    for count in (0, 1, 2**31, 2**31 + 1):
        assert not np.fmod(PROBLEM.release(np.full(64, count), seeded(6)), PROBLEM.step).any()
    assert PROBLEM.sigma / 32 < PROBLEM.step <= PROBLEM.sigma / 16


def test_float_and_ball_decide_alike():
    """Draws that are decided in float64 fall into the same cells when they are decided in balls."""
    from farthing.mechanisms.product import Product
    from farthing.noise import certified

    words = seeded(8).words(300).view(np.int64)
    law = Product(np.full(300, 1000.0), 10.0, 0.3, 0.5, words, seeded(9))
    own = seeded(10).words(300).view(np.int64)
    side = own * 2.0**-64
    place = np.abs(side)
    law.floats(place, side, slice(0, 300))
    cells = [certified._settle_one(law, int(own[i]), i, seeded(11)) for i in range(300)]

    assert np.rint(place).astype(int).tolist() == cells


def test_no_noise_is_no_noise():
    """With both stages next to nothing the count comes back."""
    assert [0, 7, 10**9] == rounded_product(np.array([0, 7, 10**9]), sigma=1e-12, relative=1e-12, step=1.0).tolist()


def test_system_bits_do_not_repeat():
    """Two releases differ; with seeded bits they do not."""
    one, two = (PROBLEM.release(np.full(9, 5000)).tolist() for _ in range(2))
    again = [PROBLEM.release(np.full(9, 5000), seeded(3)).tolist() for _ in range(2)]

    assert one != two
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: TwoStage(0.0, 0.3), NoiseError),
        (lambda: TwoStage(10.0, 0.0), InvalidTarget),
        (lambda: TwoStage(10.0, math.nan), InvalidTarget),
        (lambda: TwoStage(10.0, relative=True), InvalidTarget),
        (lambda: TwoStage.for_relative_error(1.0), InvalidTarget),
        (lambda: TwoStage.for_relative_error(0.1, x0=0), InvalidTarget),
        (lambda: TwoStage.for_relative_error(0.1, overhead=1), InvalidTarget),
        (lambda: TwoStage.for_relative_error(0.1, metric="median"), InvalidTarget),
        (lambda: PROBLEM.release([-1]), DataError),
        (lambda: PROBLEM.release([1.5]), DataError),
        (lambda: TwoStage(2.0**-10, 0.3).release([2**50]), DataError),
        (lambda: PROBLEM.renyi(-1, 2.0), InvalidTarget),
        (lambda: PROBLEM.renyi(10, 1.0), InvalidBudget),
        (lambda: TwoStage(0.01, 0.3).renyi(10, 2.0), InvalidBudget),
        (lambda: PROBLEM.tcdp(1000, rho=1e-9), InvalidBudget),
        (lambda: PROBLEM.delta(10, -0.1), InvalidBudget),
        (lambda: PROBLEM.epsilon(10, 0.0), InvalidBudget),
        (lambda: PROBLEM.expected_error([-1]), InvalidTarget),
        (lambda: PROBLEM.expected_error([1], "bias"), InvalidTarget),
    ],
)
def test_bad_input_is_refused_by_name(call, error):
    """Each refusal has a rule and a next step."""
    with pytest.raises(error) as caught:
        call()
    assert caught.value.rule
    assert caught.value.next_step
