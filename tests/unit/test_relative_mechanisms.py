"""Relative noise: transforms, policies, errors and chosen parameters, against ball arithmetic and closed forms."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtr, ndtri
from work import calls_of

from farthing import mechanisms
from farthing.errors import DataError, InvalidBounds, InvalidTarget, NoiseError
from farthing.mechanisms import Asinh, LinearLog, Log, PlainGaussian, Power
from farthing.mechanisms.transformed import ERROR
from farthing.noise.bits import seeded
from farthing.noise.transformed import rounded_around

pytestmark = pytest.mark.thorough

KINDS = (PlainGaussian, Log, LinearLog, Asinh, Power)
EACH = (
    PlainGaussian(3.0),
    Log(0.1, offset=0.75),
    Log(0.8, offset=30.0),
    LinearLog(0.1, x0=50.0),
    LinearLog(0.3, x0=0.7),
    Asinh(0.1, x0=10.0),
    Asinh(1.2, x0=1234.5),
    Power(0.5, sigma=0.4, offset=12.5),
    Power(1 / 3, sigma=0.2, offset=0.1),
    Power(1 / 8, sigma=0.01, offset=3.0),
)
RELATIVE = (0.01, 0.05, 0.1, 0.3, 0.5)
SIZES = np.unique(np.concatenate([np.arange(130), np.geomspace(100, 2**52, 400).astype(np.int64)]))


def name_of(value):
    """Return a short name of a case."""
    return getattr(value, "__name__", None) or type(value).__name__.lower()


def exact_gap(mechanism, low, high):
    """Return f(high) - f(low) as a float, computed at 400 bits."""
    with ctx.workprec(400):
        return float((mechanism.transform_ball(arb(high)) - mechanism.transform_ball(arb(low))).mid())


def ideal_sigma(relative, metric):
    """Return the sd, over x, of the Gaussian that knows x and has just the error."""
    if isinstance(metric, tuple):
        return relative / float(ndtri((1 + metric[1]) / 2))
    return relative * (math.sqrt(math.pi / 2) if metric == "mae" else 1)


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_the_float_transform_is_far_inside_its_margin(mechanism):
    """The error that the sampler allows is 16 times what any of thousands of counts shows."""
    floats = mechanism.transform(SIZES.astype(float))
    allowed = mechanism.error(floats)
    with ctx.workprec(200):
        off = [abs(arb(f) - mechanism.transform_ball(arb(int(x)))) for f, x in zip(floats, SIZES, strict=True)]
        assert all(each <= bound / 16 for each, bound in zip(off, allowed.tolist(), strict=True))


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_a_margin_that_was_too_small_would_be_seen(mechanism):
    """A transform that is off by the whole margin does not pass the test above."""
    wrong = mechanism.transform(SIZES.astype(float)) + ERROR * (1 + mechanism.transform(SIZES.astype(float)))
    off = np.abs(wrong - mechanism.transform(SIZES.astype(float)))
    assert (off > ERROR / 16).any()


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_the_policy_is_the_exact_one_rounded_up(mechanism):
    """The policy is (f(x) - f(x-1))^2 / (2 sigma^2), never below it and 10^-12 above it at most."""
    for x, rho, mu in zip(SIZES.tolist(), mechanism.policy(SIZES), mechanism.policy.mu(SIZES), strict=True):
        distance = exact_gap(mechanism, max(x, 1) - 1, max(x, 1)) / mechanism.sigma
        assert distance**2 / 2 <= rho <= distance**2 / 2 * (1 + 1e-12)
        assert distance <= mu <= distance * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_the_policy_covers_both_neighbours_and_never_grows(mechanism):
    """It has v(0) = v(1); v(x) covers x - 1 and x + 1; a planted policy that forgets x - 1 falls short of it."""
    policy = mechanism.policy(SIZES)
    assert policy[0] == policy[1]
    assert (np.diff(policy) <= 0).all()
    for x in (1, 2, 10, 49, 50, 51, 1000):
        promised = float(mechanism.policy(x))
        up, down = exact_gap(mechanism, x, x + 1), exact_gap(mechanism, x - 1, x)
        assert max(up, down) ** 2 / 2 / mechanism.sigma**2 <= promised
        forgetful = up**2 / 2 / mechanism.sigma**2
        assert forgetful < promised or math.isclose(up, down)


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
@pytest.mark.parametrize("records", [2, 7, 100])
def test_units_of_several_records_move_further(mechanism, records):
    """With sensitivity c, v(x) covers every neighbour within c, and below c it is the loss at c."""
    kind = type(mechanism)
    fields = {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}
    wide = kind(**{**fields, "sensitivity": records})
    for x in (0, 1, records - 1, records, records + 1, 5 * records, 10**6):
        ends = [y for y in (x - records, x - 1, x + 1, x + records) if y >= 0]
        most = max(abs(exact_gap(mechanism, x, y)) for y in ends) / mechanism.sigma
        assert most**2 / 2 <= float(wide.policy(x))
        top = max(x, records)
        exact = exact_gap(mechanism, top - records, top) / mechanism.sigma
        assert math.isclose(exact**2 / 2, float(wide.policy(x)), rel_tol=1e-12)


def test_errors_are_the_closed_forms():
    """The integrals agree with what can be written down: normal, lognormal, hyperbolic and squared normal laws."""
    x = np.array([0.0, 1.0, 49.0, 1000.0, 1e9])
    s = 0.4
    plain, log, asinh = PlainGaussian(7.0), Log(s, offset=2.0), Asinh(s, x0=20.0)
    root = Power(0.5, sigma=s, offset=3.0)
    np.testing.assert_allclose(np.full(5, 7 * math.sqrt(2 / math.pi)), plain.expected_error(x), rtol=1e-5)
    np.testing.assert_allclose(np.full(5, 7.0), plain.expected_error(x, "rmse"), rtol=1e-6)
    np.testing.assert_allclose((x + 2) * (4 * ndtr(s / 2) - 2), log.expected_error(x, "mae"), rtol=1e-5)
    np.testing.assert_allclose((x + 2) * math.sqrt(math.expm1(s**2)), log.expected_error(x, "rmse"), rtol=1e-6)
    hyperbolic = np.sqrt(x**2 * math.expm1(s**2) + 20**2 * math.sinh(s**2))
    np.testing.assert_allclose(hyperbolic, asinh.expected_error(x, "rmse"), rtol=1e-6)
    squared = np.sqrt(4 * (x + 3) * s**2 + 2 * s**4)
    np.testing.assert_allclose(squared, root.expected_error(x, "rmse"), rtol=1e-6)
    width = plain.expected_error(x, ("ci", 0.95))
    assert (1.959963984 * 7 <= width).all()
    assert (width <= 1.959963984 * 7 * 1.0011).all()


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_inverses_are_unbiased_where_one_exists(mechanism):
    """Only the linear-log mechanism has a bias, of less than a fifth of its error, and only near its kink."""
    x = np.array([0.0, 1.0, 10.0, 50.0, 1000.0, 1e9])
    bias, error = mechanism.bias(x), mechanism.expected_error(x)
    if isinstance(mechanism, LinearLog):
        assert (np.abs(bias) < 0.2 * error).all()
        assert abs(bias[-1]) < 1e-8 * error[-1]
    else:
        assert (np.abs(bias) < 1e-6 * error).all()


def test_a_biased_inverse_is_seen():
    """Without its factor e^(-sigma^2/2) the inverse of the logarithm is off by much more than the test allows."""

    class Biased(Log):
        __slots__ = ()
        shrink = 1.0

    honest, biased = Log(0.4, offset=2.0), Biased(0.4, offset=2.0)
    assert abs(float(honest.bias(100.0))) < 1e-6
    assert float(biased.bias(100.0)) > 0.08 * 100


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize("relative", RELATIVE)
@pytest.mark.parametrize("metric", ["mae", "rmse", ("ci", 0.95)], ids=str)
def test_the_target_holds_at_every_size(kind, relative, metric):
    """The error is at most relative * max(x, x0), at every size, and reaches it somewhere."""
    x = np.concatenate([np.arange(0, 45, 9), np.arange(45, 80), np.geomspace(80, 1e4, 25), [1e9]])
    mechanism = kind.for_relative_error(relative, x0=50, metric=metric)
    share = mechanism.expected_error(x, metric) / (relative * np.maximum(x, 50))
    assert share.max() <= 1
    assert share.max() > 0.998


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize(("relative", "metric"), [(0.6, "mae"), (0.6, "rmse"), (0.85, "mae"), (0.3, "mae")])
def test_the_target_holds_between_the_sizes_that_were_tried(kind, relative, metric):
    """On a fine grid from nothing to the largest sizes the promise is kept, also far above the kink."""
    x = np.concatenate([[0.0], np.geomspace(0.05, 4e15, 3_000)])
    share = kind.for_relative_error(relative, x0=1, metric=metric).expected_error(x, metric)
    assert 0.99 < (share / (relative * np.maximum(x, 1))).max() <= 1


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
@pytest.mark.parametrize(("relative", "x0"), [(0.01, 1), (0.99, 1), (1e-3, 1e6), (0.5, 2**30)])
@pytest.mark.parametrize("metric", ["mae", pytest.param(("ci", 1 - 1e-9), marks=pytest.mark.slow)], ids=str)
def test_far_targets_are_met_too(kind, relative, x0, metric):
    """From one percent of a group of 1 to almost all of any group, at any confidence."""
    x = x0 * np.array([0, 0.5, 1, 1.2, 3, 1000])
    share = kind.for_relative_error(relative, x0=x0, metric=metric).expected_error(x, metric)
    assert 0.9 < (share / (relative * np.maximum(x, x0))).max() <= 1


@pytest.mark.parametrize("relative", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("metric", ["mae", "rmse"])
@pytest.mark.parametrize(("kind", "start"), [(LinearLog, 1), (Asinh, 3)], ids=["linear-log", "asinh"])
def test_losses_are_near_that_of_a_gaussian_that_knows_the_size(kind, start, relative, metric):
    """At most 5 % more, from x0 on (linear-log) or from 3 x0 on (asinh)."""
    x0 = 50
    x = np.unique(np.geomspace(start * x0, 1e9, 200).astype(np.int64))
    mechanism = kind.for_relative_error(relative, x0=x0, metric=metric)
    ideal = 1 / (2 * (ideal_sigma(relative, metric) * x) ** 2)
    allowed = 1.05 if metric == "mae" else 1.05 * relative**2 / math.log1p(relative**2)
    assert (mechanism.policy(x) / ideal).max() <= allowed


@pytest.mark.parametrize("relative", RELATIVE)
@pytest.mark.parametrize("kind", [LinearLog, Asinh], ids=name_of)
def test_losses_of_large_groups_reach_the_lower_bound(kind, relative):
    """At a root mean square target, at most r^2/log(1+r^2) * 1.05 times log(1 + 1/(r^2 x^2))/2."""
    x = np.geomspace(1e4, 1e9, 20).astype(np.int64)
    policy = kind.for_relative_error(relative, x0=50, metric="rmse").policy(x)
    bound = np.log1p(1 / (relative * x) ** 2) / 2
    ratio = policy / bound
    assert ratio.min() >= 1
    assert ratio.max() <= 1.05 * relative**2 / math.log1p(relative**2)


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_outputs_lie_on_a_public_grid(mechanism):
    """Every value is the inverse of a whole number of grid steps; noise added in float is not, and is caught."""
    counts = np.arange(1000)
    released = mechanism.release(counts, seeded(3))
    steps = mechanism.indices(counts, seeded(3))

    def on_grid(values):
        grid = mechanism.value(np.ldexp(np.arange(steps.min(), steps.max() + 1.0), mechanism.grid_log2))
        return np.isin(values, grid).mean()

    leaky = mechanism.transform(counts.astype(float))
    leaky = mechanism.value(leaky + mechanism.sigma * ndtri((np.arange(1000) + 0.5) / 1000))
    assert np.int64 == steps.dtype
    assert 1 == on_grid(released)
    assert on_grid(leaky) < 0.9


@pytest.mark.parametrize("mechanism", EACH, ids=name_of)
def test_floats_and_balls_draw_the_same(mechanism):
    """With nothing left to float64 (an allowed error of one step), the same bits give the same draws."""
    counts = np.concatenate([np.arange(100), np.geomspace(100, 1e12, 100).astype(np.int64)])
    fast = mechanism.indices(counts, seeded(5))
    slow = rounded_around(
        math.ldexp(mechanism.sigma, -mechanism.grid_log2),
        np.ldexp(mechanism.transform(counts.astype(float)), -mechanism.grid_log2),
        error=np.ones(len(counts)),
        ball=lambda i: mechanism._exact_mean(int(counts[i])),
        bits=seeded(5),
    )
    assert fast.tolist() == slow.tolist()


def test_a_float_mean_that_is_wrong_does_not_reach_the_draw():
    """When the allowed error says so, the mean is the ball's, whatever the float says; trusted blindly it is off."""
    wrong, size = np.full(200, 0.4), 200
    told = rounded_around(1e-9, wrong, error=np.ones(size), ball=lambda _: arb(1) + arb(2).sqrt(), bits=seeded(1))
    blind = rounded_around(1e-9, wrong, error=np.zeros(size), ball=lambda _: arb(1) + arb(2).sqrt(), bits=seeded(1))
    assert {2} == set(told.tolist())
    assert {0} == set(blind.tolist())


def test_means_beyond_64_bits_are_refused():
    """The grid is too fine for such a count."""
    with pytest.raises(NoiseError, match="64 bits"):
        PlainGaussian(2.0**-10).release([2**52])


def test_a_million_groups_are_drawn_in_vectors():
    """One call, any shape: no function is called for each group, except where float64 does not decide a draw."""
    counts = np.random.default_rng(1).integers(0, 10**9, (1000, 1000))
    mechanism = LinearLog.for_relative_error(0.1, x0=50)
    done = []
    assert calls_of(lambda: done.append(mechanism.release(counts))) < 100_000
    (released,) = done
    assert (1000, 1000) == released.shape
    assert np.float64 == released.dtype


@pytest.mark.parametrize("counts", [[], 7, [[1, 2], [3, 4]], np.array([3, 4], np.uint8), [5.0, 6.0]])
def test_shapes_and_types_of_counts(counts):
    """Any shape of whole numbers, also written as floats."""
    assert np.shape(counts) == Asinh(0.1, x0=50).release(counts).shape


@pytest.mark.parametrize("counts", [[-1], [1.5], [math.nan], [math.inf], ["3"], [2**53], [None], [True]])
def test_counts_that_are_none_are_refused_without_their_value(counts):
    """Counts are private: the refusal says the rule, and nothing of the count."""
    with pytest.raises(DataError) as refused:
        Log(0.1, offset=1).release(counts)
    assert "" == refused.value.got
    assert str(counts[0]) not in str(refused.value)


@pytest.mark.parametrize("relative", [0, 1, -0.1, 1.5, math.nan, "0.1", True, None])
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_relative_errors_out_of_range_are_refused(kind, relative):
    """0 < relative < 1."""
    with pytest.raises(InvalidTarget, match="relative"):
        kind.for_relative_error(relative, x0=50)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_a_size_of_zero_is_refused_with_the_reason(kind):
    """Relative accuracy down to an empty group would need an infinite loss."""
    for x0 in (0, -5, math.nan, math.inf, "50", True):
        with pytest.raises(InvalidTarget, match="no finite loss can pay for"):
            kind.for_relative_error(0.1, x0=x0)


@pytest.mark.parametrize("metric", ["median", "bias", ("ci", 0.2), ("ci", 1.0), ("ci", 1 - 1e-12), ("ci",), 3])
def test_unknown_metrics_are_refused(metric):
    """A metric is mae, rmse or a confidence."""
    with pytest.raises(InvalidTarget):
        Asinh.for_relative_error(0.1, x0=50, metric=metric)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", True])
def test_offsets_and_kinks_must_be_positive(value):
    """At an offset of 0 nothing protects a group of one."""
    for build in (
        lambda: Log(0.1, offset=value),
        lambda: LinearLog(0.1, x0=value),
        lambda: Asinh(0.1, x0=value),
        lambda: Power(0.5, sigma=0.1, offset=value),
    ):
        with pytest.raises(InvalidTarget, match="unprotected"):
            build()


@pytest.mark.parametrize("sigma", [0, -1.0, math.nan, math.inf, 2.0**-21, "1", True])
def test_sigmas_out_of_range_are_refused(sigma):
    """No noise, or none that can be drawn."""
    for build in (lambda: PlainGaussian(sigma), lambda: Log(sigma, offset=1), lambda: Asinh(sigma, x0=1)):
        with pytest.raises(NoiseError, match="sigma"):
            build()


@pytest.mark.parametrize("sensitivity", [0, -1, 1.5, True, 2**53])
def test_sensitivities_are_whole_numbers(sensitivity):
    """A member adds at least one record."""
    with pytest.raises(InvalidBounds):
        PlainGaussian(1.0, sensitivity=sensitivity)


@pytest.mark.parametrize("power", [0, 1.0, 0.75, 0.4, -0.5, 1 / 9, math.nan, "0.5"])
def test_powers_without_an_unbiased_inverse_are_refused(power):
    """The root 1/power is whole, from 2 to 8."""
    with pytest.raises(InvalidTarget, match="unbiased inverse"):
        Power(power, sigma=1.0, offset=1.0)


@pytest.mark.parametrize("overhead", [1, 0.5, math.nan, math.inf, "2", True])
def test_overheads_are_above_one(overhead):
    """The ideal itself leaves small groups unprotected."""
    for kind in (Log, Asinh, Power):
        with pytest.raises(InvalidTarget, match="overhead"):
            kind.for_relative_error(0.1, x0=50, overhead=overhead)


def test_overhead_moves_loss_from_large_groups_to_small():
    """A larger overhead costs large groups more and small ones less."""
    tight, loose = (Asinh.for_relative_error(0.1, x0=50, overhead=o) for o in (1.04, 2.0))
    assert float(tight.policy(10**6)) < float(loose.policy(10**6))
    assert 10 * float(loose.policy(1)) < float(tight.policy(1))


def test_mechanisms_are_imported_when_used():
    """The names are public, and unknown ones are refused as Python does."""
    assert {"PlainGaussian", "TwoStage", "Log", "LinearLog", "Asinh", "Power"} <= set(mechanisms.__all__)
    with pytest.raises(AttributeError, match="Cube"):
        _ = mechanisms.Cube
