"""Quantiles: exact ranks, the plan of the bisection, one private choice, and refusals."""

import math

import numpy as np
import pytest

from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_choice import ExponentialQuantile, _Runs, compare
from farthing.accuracy.quantile_rank_run import next_count
from farthing.accuracy.quantile_ranks import WHOLE, NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_trail import FIRST_GRAINS
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded
from farthing.privacy.loss import Gdp, Pure, Zcdp

LEAVES_LOG2 = 6


def random_ranks(seed, groups=5):
    """Return a random histogram as (group, leaf, count) and its Ranks."""
    rng = np.random.default_rng(seed)
    key = np.unique(rng.integers(0, groups << LEAVES_LOG2, rng.integers(0, 60)))
    key = rng.permutation(key)
    count = rng.integers(1, 50, len(key))
    group, leaf = key >> LEAVES_LOG2, key & ((1 << LEAVES_LOG2) - 1)
    return (group, leaf, count), Ranks.of(group, leaf, count, groups=groups, leaves_log2=LEAVES_LOG2)


@pytest.mark.parametrize("seed", range(8))
def test_ranks_are_prefix_sums(seed):
    """Rows at or below any threshold of any group, and the lanes made of them, are the slow sums."""
    (group, leaf, count), ranks = random_ranks(seed)
    for g in range(5):
        mine = group == g
        assert count[mine].sum() == ranks.rows[g]
        for t in range(1 << LEAVES_LOG2):
            below = count[mine & (leaf <= t)].sum()
            at = np.array([t]), np.array([g])
            assert [below] == ranks.below(*at).tolist()
            assert [below * WHOLE - count[mine].sum() * 7] == ranks.lane(*at, 7).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_runs_cover_every_leaf_once(seed):
    """Runs of equal distance are whole, in order, and know the rows below and up to them."""
    (group, leaf, count), ranks = random_ranks(seed)
    runs = _Runs.of(ranks, 1 << ranks.leaves_log2)
    ends = [*runs.starts[1:].tolist(), len(runs.group)]
    for g, (start, end) in enumerate(zip(runs.starts.tolist(), ends, strict=True)):
        seen = []
        for i in range(start, end):
            for t in range(runs.first[i], runs.first[i] + runs.width[i]):
                seen.append(t)
                mine = group == g
                assert count[mine & (leaf < t)].sum() == runs.before[i]
                assert count[mine & (leaf <= t)].sum() == runs.upto[i]
        assert list(range(1 << LEAVES_LOG2)) == seen


def exact(ranks, asked):
    """Return the two functions a descent asks, without noise."""
    return (
        lambda t, _grains, g: ranks.lane(t, g, asked.steps) / WHOLE,
        lambda _grains, g: ranks.rows[g].astype(float),
    )


@pytest.mark.parametrize("q", [0.1, 0.5, 0.75])
def test_without_noise_the_leaf_is_found(q):
    """A value target finer than a leaf ends at the first leaf whose rank is not below q."""
    (group, leaf, count), _ = random_ranks(3)
    count = count * 1000 + 7  # far above what the cap leaves open
    ranks = Ranks.of(group, leaf, count, groups=5, leaves_log2=LEAVES_LOG2)
    asked = QuantileGoal(q, 0.0, 64.0, LEAVES_LOG2)
    state = QuantileBisection(asked, 0.05, 1 << 62, absolute=0.5).run(*exact(ranks, asked), groups=5)
    for g in np.flatnonzero(ranks.rows):
        values = np.sort(np.repeat(leaf[group == g], count[group == g]))
        first = np.flatnonzero(np.cumsum(np.ones(len(values))) * WHOLE >= asked.steps * len(values))[0]

        assert 0 <= values[first] - state.lower[g] < 1e-12  # outward, by what float64 rounds
        assert 0 <= state.upper[g] - values[first] - 1 < 1e-12
        assert values[first] + 0.5 == state.value[g]
    assert state.met[ranks.rows > 0].all()


@pytest.mark.parametrize(("q", "name", "low", "high"), [(0.0, "MIN", 0.0, 0.1), (1.0, "MAX", 0.9, 1.0)])
def test_the_ends_are_ranks_and_say_so(q, name, low, high):
    """MIN and MAX end within their share of the rows at the end, not at the clamp."""
    values = np.arange(1000)
    ranks = Ranks.of(np.zeros(1000, np.int64), values, np.ones(1000, np.int64), groups=1, leaves_log2=10)
    asked = QuantileGoal(q, 0.0, 1024.0, 10, rank=0.1)
    noisy = NoisyRanks(ranks, asked, seeded(31))

    state = QuantileBisection(asked, 0.001, 1 << 60).run(noisy.measure, noisy.measure_count, groups=1)

    assert low <= (values < state.value[0]).mean() <= high
    assert bool(state.by_rank[0])
    assert str(asked).startswith(name)
    assert f"{100 * low:g} % to {100 * high:g} %" in str(asked)


def test_paid_is_the_sum_of_what_was_measured_and_the_cap_binds():
    """Every grain is counted once, for each group, and none beyond the cap; a capped group says that it missed."""
    (_, ranks), cap = random_ranks(5), 1 << 45
    asked = QuantileGoal(0.5, 0.0, 64.0, LEAVES_LOG2, rank=0.01)
    noisy, spent = NoisyRanks(ranks, asked, seeded(32)), np.zeros(5, np.int64)

    def measure(thresholds, grains, groups):
        assert (grains > 0).all()
        spent[groups] += grains
        return noisy.measure(thresholds, grains, groups)

    def measure_count(grains, groups):
        assert (grains > 0).all()
        spent[groups] += grains
        return noisy.measure_count(grains, groups)

    for relative, spend in ((0.0, False), (0.01, False), (0.01, True)):
        spent[:] = 0
        plan = QuantileBisection(asked, 0.05, cap, relative=relative, spend=spend)
        state = plan.run(measure, measure_count, groups=5)

        assert spent.tolist() == state.paid.tolist()
        assert state.paid.max() <= cap
        assert not state.met.any()
    assert 0.85 * cap < state.paid.max()  # the last of them went on for as long as it could


def test_hopeless_groups_are_given_up_early():
    """A group whose rank target costs far more than the cap pays for its count only."""
    ranks = Ranks.of(np.array([0, 1]), np.array([5, 5]), np.array([3, 10**6]), groups=2, leaves_log2=LEAVES_LOG2)
    asked, cap = QuantileGoal(0.5, 0.0, 64.0, LEAVES_LOG2, rank=0.02), 1 << 40
    noisy = NoisyRanks(ranks, asked, seeded(33))

    state = QuantileBisection(asked, 0.05, cap).run(noisy.measure, noisy.measure_count, groups=2)

    assert [False, True] == state.met.tolist()
    assert state.paid[0] <= cap // 4 + 1
    assert [0.0, 64.0] == [state.lower[0], state.upper[0]]


@pytest.mark.statistical
def test_groups_too_small_for_a_value_are_given_up_early():
    """Of 2,000 groups without rows most pay a part of the cap, none more than it; with `spend` they go on.

    They pay .093 of it, .125 if counts took more than it takes to see that there are none, and .99 without the rule;
    the standard error is .002. Noise alone meets a target in fewer than one of 6,000, where beta is .05.
    """
    asked, cap, groups = QuantileGoal(0.5, 0.0, 60.0, leaves_log2=10), 1 << 50, 2_000
    none = np.zeros(0, np.int64)
    empty = Ranks.of(none, none, none, groups=groups, leaves_log2=10)
    leaf = np.arange(1024)
    large = Ranks.of(0 * leaf, leaf, 1_000 + 9 * leaf, groups=1, leaves_log2=10)

    def ran(ranks, **how):
        noisy = NoisyRanks(ranks, asked, seeded(9))
        return QuantileBisection(asked, 0.05, cap, absolute=1.0, **how).run(
            noisy.measure, noisy.measure_count, groups=ranks.groups
        )

    early, late = ran(empty), ran(empty, spend=True)
    assert early.met.mean() < 0.01
    assert early.paid.max() <= cap
    assert early.paid.mean() < 0.108 * cap < 0.95 * cap < late.paid.mean()
    assert ran(large).met.all()


@pytest.mark.statistical
@pytest.mark.parametrize("rank", [0.1, 0.2, 0.4])
def test_groups_without_rows_pay_a_small_part_of_their_cap(rank):
    """They pay .03, .05 and .11 of it, with a deviation of less than .2 a group; .05, .14 and .38 if each count took
    three times what all before it did.
    """
    asked, cap, groups = QuantileGoal(0.5, 0.0, 60.0, leaves_log2=10, rank=rank), 1 << 50, 2_000
    none = np.zeros(0, np.int64)
    noisy = NoisyRanks(Ranks.of(none, none, none, groups=groups, leaves_log2=10), asked, seeded(10))

    state = QuantileBisection(asked, 0.05, cap).run(noisy.measure, noisy.measure_count, groups=groups)

    assert not state.met.any()
    assert state.paid.mean() < 0.38 * rank * cap


def test_a_count_takes_no_more_than_tells_of_no_rows():
    """Whatever was counted, the next count ends there, or takes half as much again."""
    held, tells = np.arange(0.0, 400.0), 99.5

    after = held + next_count(held, 3 * held + 16, tells)

    assert (after > held).all()
    assert (after[held < 100] <= 100).all()
    assert (after[held >= 100] == np.ceil(1.5 * held[held >= 100])).all()


def test_targets_met_beforehand_cost_nothing():
    """Bounds narrower than the target are the answer."""
    asked = QuantileGoal(0.5, 10.0, 12.0, LEAVES_LOG2)
    state = QuantileBisection(asked, 0.05, 1 << 50, relative=0.1).run(
        lambda *_: np.zeros(0), lambda *_: np.zeros(0), groups=2
    )

    assert [0, 0] == state.paid.tolist()
    assert [11.0, 11.0] == state.value.tolist()
    assert state.met.all()


def test_relative_targets_hold_for_every_value_in_the_interval():
    """Where a relative target is met, the value is within it of both ends, also across zero by the absolute one."""
    rng = np.random.default_rng(8)
    leaf = rng.integers(0, 1024, 20_000)
    key, count = np.unique(leaf, return_counts=True)
    ranks = Ranks.of(np.zeros(len(key), np.int64), key, count, groups=1, leaves_log2=10)
    for q in (0.02, 0.5, 0.9):
        asked = QuantileGoal(q, -100.0, 924.0, 10)
        noisy = NoisyRanks(ranks, asked, seeded(34))
        state = QuantileBisection(asked, 0.05, 1 << 62, relative=0.05, absolute=3.0).run(
            noisy.measure, noisy.measure_count, groups=1
        )
        for x in (state.lower[0], state.upper[0]):
            assert bool(state.met[0])
            assert abs(state.value[0] - x) <= max(0.05 * abs(x), 3.0) + 1e-11  # outward, by what float64 rounds


def test_progress_is_told():
    """Progress is called after each round with what was released."""
    (_, ranks), said = random_ranks(6), []
    asked = QuantileGoal(0.5, 0.0, 64.0, LEAVES_LOG2, rank=0.1)
    noisy = NoisyRanks(ranks, asked, seeded(35))

    QuantileBisection(asked, 0.05, 1 << 55).run(
        noisy.measure, noisy.measure_count, groups=5, progress=lambda *each: said.append(each)
    )

    assert list(range(1, len(said) + 1)) == [each[0] for each in said]
    assert 5 == said[-1][2]


def test_sensitivities_are_reached_and_never_passed():
    """Adding max_rows rows moves D by at most the stated sensitivity, and a score range by at most R."""
    rng = np.random.default_rng(7)
    for q in (0.1, 0.5, 0.99):
        asked = QuantileGoal(q, 0.0, 64.0, LEAVES_LOG2, max_rows=3)
        moved, spread = 0, 0
        for _ in range(300):
            counts = rng.integers(0, 6, 64)
            extra = np.bincount(rng.integers(0, 64, rng.integers(1, 4)), minlength=64)
            before, after = (np.cumsum(c) * WHOLE - c.sum() * asked.steps for c in (counts, counts + extra))
            moved = max(moved, np.abs(after - before).max())
            one, two = (distance(c, asked.steps) for c in (counts, counts + extra))
            spread = max(spread, np.ptp(two - one))
        assert 0.9 * asked.sensitivity < moved <= asked.sensitivity
        assert 0.5 * ExponentialQuantile(asked).spread < spread <= ExponentialQuantile(asked).spread


def distance(counts, steps):
    """Return each leaf's distance from the quantile in 2^-20 rows, slowly."""
    upto = np.cumsum(counts)
    goal = counts.sum() * steps
    return np.maximum(np.maximum((upto - counts) * WHOLE - goal, goal - upto * WHOLE), 0)


def test_the_range_of_the_scores_is_reached():
    """Many rows on both sides, and new ones that end on one: the range of the score change is R itself."""
    asked = QuantileGoal(0.5, 0.0, 64.0, LEAVES_LOG2, max_rows=4)
    counts, extra = np.zeros((2, 64), np.int64)
    counts[[10, 50]], extra[5] = 1000, 4

    change = distance(counts + extra, asked.steps) - distance(counts, asked.steps)

    assert np.ptp(change) == ExponentialQuantile(asked).spread


def test_one_choice_keeps_its_rank():
    """The chosen leaf's distance is below what the price promises, in nearly every group."""
    rng = np.random.default_rng(9)
    groups, rows = 300, 400
    leaf = np.minimum(rng.lognormal(2.0, 1.0, (groups, rows)), 63).astype(np.int64)
    key, count = np.unique(np.arange(groups)[:, None] * 64 + leaf, return_counts=True)
    ranks = Ranks.of(key >> 6, key & 63, count, groups=groups, leaves_log2=6)
    picked = ExponentialQuantile(QuantileGoal(0.5, 0.0, 64.0, LEAVES_LOG2))
    price = picked.price(40.0, beta=0.05)

    chosen = picked.choose(ranks, price, seeded(36))
    off = [distance(np.bincount(leaf[g], minlength=64), WHOLE // 2)[chosen[g]] / WHOLE for g in range(groups)]

    assert np.mean(np.array(off) <= 40.0) > 0.95
    assert ((chosen >= 0) & (chosen < 64)).all()
    assert (chosen + 0.5).tolist() == picked.values(chosen).tolist()
    assert picked.rows_off(price, beta=0.05) <= 40.0 < picked.rows_off(price - price // 1000, beta=0.05)


def test_the_cheaper_road_depends_on_currency_and_leaves():
    """A pure budget has one road, a value target the other; with few leaves the choice is cheaper under zCDP."""
    few = QuantileBisection(QuantileGoal(0.5, 0.0, 1.0, 3, rank=0.1), 0.05, 1 << 60)
    value = QuantileBisection(QuantileGoal(0.5, 0.0, 1.0, 10), 0.05, 1 << 60, absolute=0.01)

    assert ["exponential"] * 2 == [compare(few, kind, rows=5000).cheaper for kind in (Pure, Zcdp)]
    assert "descent" == compare(value, Gdp, rows=5000).cheaper
    found = compare(few, Gdp, rows=5000)
    assert found.cheaper == "descent"
    assert found.descent < found.exponential
    with pytest.raises(InvalidTarget):
        compare(value, Pure, rows=5000)


def test_prices_fall_with_rows_and_targets():
    """Twice the rows cost a quarter; the worst is the cap."""
    fine = QuantileBisection(QuantileGoal(0.5, 0.0, 1.0, 12, rank=0.02), 0.05, 1 << 60)
    many, few = fine.typical(40_000), fine.typical(10_000)

    assert 12 < few / many < 20
    assert 1 << 60 == fine.worst
    assert FIRST_GRAINS * float(GRAIN) < 1e-14


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuantileGoal(-0.1, 0.0, 1.0),
        lambda: QuantileGoal(math.nan, 0.0, 1.0),
        lambda: QuantileGoal(0.0, 0.0, 1.0),
        lambda: QuantileGoal(1.0, 0.0, 1.0),
        lambda: QuantileGoal(0.5, 0.0, 1.0, rank=0.6),
        lambda: QuantileGoal(0.5, 0.0, 1.0, rank=-0.1),
        lambda: QuantileBisection(QuantileGoal(0.5, 0.0, 1.0), 0.05, 1 << 50),
        lambda: QuantileBisection(QuantileGoal(0.5, 0.0, 1.0), 0.05, 1 << 50, relative=1.0),
        lambda: QuantileBisection(QuantileGoal(0.5, 0.0, 1.0), 0.05, 1 << 50, absolute=-1.0),
        lambda: QuantileBisection(QuantileGoal(0.5, 0.0, 1.0), 0.0, 1 << 50, absolute=1.0),
        lambda: QuantileBisection(QuantileGoal(0.5, 0.0, 1.0), 0.05, 0, absolute=1.0),
        lambda: ExponentialQuantile(QuantileGoal(0.5, 0.0, 1.0)).price(0, beta=0.05),
        lambda: ExponentialQuantile(QuantileGoal(0.5, 0.0, 1.0)).price(10, beta=1.0),
    ],
)
def test_targets_are_refused(make):
    """Targets that no answer could meet, or none at all, name the rule and the next step."""
    with pytest.raises(InvalidTarget) as caught:
        make()

    assert caught.value.rule
    assert caught.value.next_step
