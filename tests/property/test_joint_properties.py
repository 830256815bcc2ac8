"""Laws of joint questions."""

import numpy as np
import pytest
from accuracy.lanes import COUNT, DEVIATION, MEAN, PER_GRAIN, SAMPLE, SUM, VARIANCE, lanes, source
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farthing.accuracy.formulas import FormulaStatistic
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.stop_rule import two_sided

STATISTICS = (SUM, MEAN, VARIANCE, DEVIATION, SAMPLE)
subsets = st.lists(st.sampled_from((COUNT, *STATISTICS)), min_size=1, max_size=3, unique=True).map(tuple)
FORMULA = FormulaStatistic(MEAN, -1.0, product=True, scales=(1.0, 50.0, 1250.0))
fractions = st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.5])
widths = st.sampled_from([0.0, 1.0, 1e3])
caps, seeds = st.integers(0, 2**58), st.integers(0, 2**32)


@settings(deadline=None, max_examples=25)
@given(subsets, st.lists(st.tuples(fractions, widths), min_size=3, max_size=3), caps, st.booleans(), seeds)
@example(statistics=(SUM, MEAN, COUNT), targets=[(0.1, 1.0), (0.5, 0.001), (0.0, 1.0)], cap=2**46, spend=True, seed=1)
@example(statistics=(MEAN, SUM), targets=[(3.0, 0.0), (1.0, 0.0)], cap=13_312, spend=False, seed=1)
def test_any_question_ends_with_ordered_intervals_within_the_cap(statistics, targets, cap, spend, seed):
    """Whatever is asked of whatever groups: within the cap, lower <= value <= upper, and free when asked again."""
    rng, log = np.random.default_rng(seed), []
    sizes = np.concatenate([[0.0, 1.0, -3.0], 10 ** rng.uniform(0, 7, 5)])
    truth = np.stack([lanes(size, rng.uniform(0, 100), rng.uniform(0, 900)) for size in sizes], axis=1)
    question = JointMeasures(statistics, tuple(targets[: len(statistics)]), 0.05, PER_GRAIN, cap, spend)
    state = question.run(JointState.nothing(3, len(statistics), len(sizes)), source(truth, rng, log=log))

    assert all((grains >= 0).all() for grains, _ in log)
    assert state.paid.max(initial=0) <= cap
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert question.worst(state) >= state.paid.max()


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(STATISTICS), st.floats(-10, 1e6), st.floats(-1e7, 1e7), st.floats(-1e9, 1e9), st.floats(1e-6, 1e9)
)
def test_a_smaller_beta_never_narrows_an_interval(statistic, count, total, squares, noise):
    """Intervals are nested in beta, and hold their estimate."""
    values = np.array([[count], [total], [squares]])
    variances = np.array([[noise], [noise * 50**2], [noise * 50**4]])
    (low, high), (lower, higher) = (statistic.interval(values, variances, beta) for beta in (0.1, 0.01))
    slack = 1e-9 * (1 + np.abs(low) + np.abs(high))

    assert (lower <= low + slack).all()
    assert (high <= higher + slack).all()
    assert (low <= high + slack).all()


def some_groups(seed):
    """Return lanes and grains of groups from nothing to very many rows, measured a little or a lot."""
    rng = np.random.default_rng(seed)
    truth = np.stack([lanes(10**size, rng.uniform(0, 100), rng.uniform(0, 900)) for size in rng.uniform(-1, 6, 40)], 1)
    grains = (2.0 ** rng.uniform(0, 60, truth.shape)).astype(np.int64) * (rng.random(truth.shape) < 0.9)
    worth = np.array(PER_GRAIN)[:, None]
    spread = np.where(grains > 0, 1 / np.sqrt(np.maximum(grains, 1) * worth), 0.0)
    return truth + spread * rng.standard_normal(truth.shape), grains


def plainly_wanted(prices, means, variances, straight, beta=0.05):
    """Return the cheapest grains from every slope of every output in every lane, zeros too, as the proof has them."""
    values, z, needs = prices._doubted(means, variances), two_sided(beta), []
    for statistic, (relative,), (absolute,) in zip(prices.statistics, prices.relative, prices.absolute, strict=True):
        size = statistic.size(values)
        slopes = statistic.slopes(values, statistic.width(size, relative, absolute))
        spread = np.sqrt((slopes**2 * variances).sum(axis=0))
        width = statistic.width(np.maximum(size, 2.0 * spread), relative, absolute)
        if prices.named_loss:
            width = z * (np.abs(statistic.slopes(values, width)) / np.sqrt(prices.worth * prices.cap)).sum(axis=0)
        needs.append((z * statistic.slopes(values, width * straight) / width) ** 2 / prices.worth)
    needs, price = np.array(needs), np.sqrt(needs).sum(axis=1) ** 2
    for _ in range(8):
        grains = np.sqrt((price[:, None] * needs).sum(axis=0))
        loads = (needs / np.maximum(grains, 1e-100)).sum(axis=1)
        price = price * loads**2
    grains = grains * loads.max(axis=0)
    return grains * (prices.cap / grains.sum(axis=0)) if prices.named_loss else grains


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.sampled_from((COUNT, *STATISTICS)), min_size=2, max_size=4, unique=True).map(tuple),
    st.lists(st.sampled_from([(0.0, 5.0), (0.1, 0.0), (0.02, 30.0)]), min_size=4, max_size=4),
    st.booleans(),
    st.sampled_from([1.0, 0.7]),
    st.integers(0, 2**32),
)
def test_prices_from_the_lanes_that_are_read_are_those_from_all_lanes(statistics, targets, loss, straight, seed):
    """The wanted grains, the excess of intervals and who is beyond the cap are as their plain formulas have them."""
    means, grains = some_groups(seed)
    asked = tuple((0.0, 0.0) if loss else target for target in targets[: len(statistics)])
    prices = JointMeasures(statistics, asked, 0.05, PER_GRAIN, 2**50).prices
    variances = prices.variances(grains)
    wanted = prices.wanted(means, variances, 0.05, straight)
    ends = 1 / (np.maximum(grains, 1 << 40) * prices.worth)
    low, high = prices.intervals(means, ends, 0.05)
    price = wanted.sum(axis=0)

    assert np.minimum(plainly_wanted(prices, means, variances, straight), 1e59) == pytest.approx(
        np.minimum(wanted, 1e59), rel=1e-6, abs=1e-200
    )
    assert prices.ratio(low, high).max(axis=0) == pytest.approx(prices.excess(means, ends, 0.05), rel=1e-9)
    if not loss:
        beyond = price * prices.hope(means, grains) > prices.cap
        assert beyond.tolist() == prices.beyond(price, means, grains, prices.cap).tolist()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from((COUNT, *STATISTICS, FORMULA)), st.floats(0, 1e3), st.integers(0, 2**32))
def test_squares_of_slopes_are_squares_of_slopes(statistic, width, seed):
    """In the lanes that are read; the others have none."""
    values, _ = some_groups(seed)
    slopes, squares = statistic.slopes(values, np.full(40, width)), statistic.squared_slopes(values, np.full(40, width))

    assert set(statistic.reads) == set(squares)
    for lane, slope in enumerate(slopes):
        assert slope**2 == pytest.approx(np.broadcast_to(squares.get(lane, 0.0), 40), rel=1e-9)
