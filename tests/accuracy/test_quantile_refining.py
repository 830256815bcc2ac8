"""A sharper quantile goes on from what a coarser one measured: it costs the difference, and keeps its promise alone."""

import numpy as np
import pytest
from accuracy.test_quantile_coverage import GROUPS, LEAVES_LOG2, misses, ranks_of, values
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import ALPHA
from scipy.stats import binom
from sweeps import sweep

from farthing.accuracy import quantile_value_bets
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_rank_run import RankRun
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_trail import LOOK, ROUND, Trail, made_by_value, made_for
from farthing.noise.bits import seeded

BETA, CAP = 0.2, 1 << 60
BETAS = [0.01, BETA]


def descent(q, beta=BETA, cap=CAP, rank=0.0, **targets):
    """The plan of a quantile of whole leaves."""
    return QuantileBisection(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank), beta, cap, **targets)


def chain(ranks, plans, seed):
    """Run plans one after the other on one trail; return the states."""
    states, held = [], None
    for number, plan in enumerate(plans):
        noisy = NoisyRanks(ranks, plan.asked, seeded(seed + number))
        states.append(plan.run(noisy.measure, noisy.measure_count, groups=ranks.groups, held=held))
        held = states[-1].trail
    return states


def same(one, other):
    """Whether two states tell the same."""
    pairs = zip(one[:6], other[:6], strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)


PLANS = st.tuples(
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.lists(
        st.tuples(st.floats(0.02, 0.5), st.sampled_from([0.0, 4.0, 60.0]), st.sampled_from(BETAS), st.integers(36, 58)),
        min_size=1, max_size=4,
    ),
)  # fmt: skip


@settings(max_examples=sweep(4, 25), deadline=None)
@given(PLANS, st.integers(0, 1 << 20))
def test_every_grain_is_paid_once_and_what_is_known_is_free(plans, seed):
    """Over chains of any targets, confidences and caps: paid is what was measured, no run reads beyond its cap, and
    the same run again measures nothing and tells the same.
    """
    q, wanted = plans
    ranks = ranks_of(values("skew", 200, np.random.default_rng(3))[:100])
    held = Trail.nothing(ranks.groups)
    for number, (rank, absolute, beta, cap) in enumerate(wanted):
        plan = descent(q, beta, 1 << cap, rank, absolute=absolute)
        noisy, bought = NoisyRanks(ranks, plan.asked, seeded(seed + number)), np.zeros(ranks.groups, np.int64)

        def measure(thresholds, grains, groups, noisy=noisy, bought=bought):
            np.add.at(bought, groups, grains)
            return noisy.measure(thresholds, grains, groups)

        def measure_count(grains, groups, noisy=noisy, bought=bought):
            np.add.at(bought, groups, grains)
            return noisy.measure_count(grains, groups)

        before, known = held.paid.copy(), plan.replayed(held, np.zeros(ranks.groups, np.bool_))
        state = plan.run(measure, measure_count, groups=ranks.groups, held=held)
        again = plan.replayed(state.trail, np.zeros(ranks.groups, np.bool_))

        assert np.array_equal(before, held.paid)  # what was handed in is left alone
        assert np.array_equal(bought, state.paid - before)
        assert (bought <= np.where(known.waits, np.maximum((1 << cap) - known.spent, 0), 0)).all()
        assert not again.waits.any()
        assert same(again, state)
        held = state.trail


CHAINS = [
    ("even", 300, 0.5, [{"rank": 0.2}, {"rank": 0.1}, {"rank": 0.05}]),
    ("skew", 500, 0.9, [{"absolute": 200.0}, {"rank": 0.1}, {"rank": 0.04}]),
    ("atoms", 400, 0.5, [{"rank": 0.3}, {"rank": 0.15}, {"rank": 0.15, "absolute": 16.0}]),
    ("skew", 500, 0.0, [{"rank": 0.4}, {"rank": 0.2}, {"rank": 0.1}]),
    ("skew", 1000, 0.5, [{"relative": 0.4}, {"relative": 0.2, "absolute": 4.0}, {"absolute": 2.0}]),
]


def test_looks_for_a_much_wider_rank_tell_of_the_interval_alone():
    """Up to 2.5 times the slack they are bet on, beyond it not, and always in older books, which do not say.
    The interval and the rows are the same, and a cap counts what was put aside.
    """
    some = np.arange(12)
    leaf = np.arange(1 << LEAVES_LOG2)
    ranks = Ranks.of(np.repeat(some, len(leaf)), np.tile(leaf, 12), np.ones(12 * len(leaf), np.int64), groups=12,
                     leaves_log2=LEAVES_LOG2)  # fmt: skip
    (wide,) = chain(ranks, [descent(0.5, 0.4, rank=0.2)], 5)

    def read(rank, trail):
        run = RankRun.of(descent(0.5, 0.4, rank=rank), trail.copy(), np.zeros(12, np.bool_), None, None)
        while run.active.any():
            run.look(np.flatnonzero(run.active))
        return run

    near, far, unknown = read(0.1, wide.trail), read(0.07, wide.trail), wide.trail.copy()
    unknown.kinds &= (1 << 21) - 1
    older, same_ends = read(0.07, unknown), ~near.good

    assert read(0.2, wide.trail).good.all()
    assert near.places.above.any()
    assert not len(near.aside.thresholds) + len(older.aside.thresholds) + len(far.places.thresholds)
    assert (far.aside.information > 0).any()
    assert not np.vstack([far.aside.above, far.aside.below]).any()
    assert (far.high - far.low < len(leaf) - 1).any()
    assert same_ends.sum() > 3
    for name in ("low", "high", "rows", "spent"):
        assert np.array_equal(getattr(far, name)[same_ends], getattr(near, name)[same_ends])


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "rows", "q", "targets"), CHAINS)
def test_each_answer_of_a_chain_keeps_its_promise(kind, rows, q, targets):
    """Ever sharper, and surer in the end: of each answer no more miss than its beta allows."""
    leaf = values(kind, rows, np.random.default_rng(51))
    betas = [0.5, BETA, BETA / 4]
    plans = [descent(q, beta, **target) for beta, target in zip(betas, targets, strict=True)]

    for plan, state in zip(plans, chain(ranks_of(leaf), plans, 52), strict=True):
        assert misses(plan.asked, leaf, state).sum() <= binom.isf(ALPHA, GROUPS, plan.beta)


@pytest.mark.statistical
def test_told_again_at_more_confidence_it_would_not(monkeypatch):
    """Planted bugs: what was decided at little confidence is kept at much of it, unpaid; a bet wins far more
    than it may, and loses nothing. Both miss too often.
    """
    leaf = values("even", 200, np.random.default_rng(53))
    ranks, plans = ranks_of(leaf), [descent(0.5, 0.95, absolute=4.0), descent(0.5, 0.001, absolute=4.0)]
    coarse, sure = chain(ranks, plans, 54)
    limit = binom.isf(ALPHA, GROUPS, 0.001)

    assert misses(plans[1].asked, leaf, sure).sum() <= limit
    assert (sure.paid > coarse.paid).mean() > 0.8
    assert misses(plans[1].asked, leaf, coarse).sum() > limit
    monkeypatch.setattr(
        quantile_value_bets, "won_at_most",
        lambda most, mean, known, *_: np.where(mean < 0, np.minimum(2 * mean**2 * known, most), 0.0),
    )  # fmt: skip
    assert misses(plans[1].asked, leaf, chain(ranks, plans, 54)[1]).sum() > limit


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("targets", [{"rank": 0.08}, {"absolute": 8.0}], ids=str)
def test_a_sharper_one_costs_the_difference(targets):
    """Four steps from four times the width cost less than each of them asked afresh, and not much more than asking at
    once: for a rank, whose place moves, three fifths, for a value, whose ends are others each time, three tenths.
    """
    ranks = ranks_of(values("skew", 800, np.random.default_rng(55)))
    ((name, width),) = targets.items()
    steps = [descent(0.5, 0.05, **{name: width * 4 ** (k / 4)}) for k in range(4, -1, -1)]
    at_once = np.mean([chain(ranks, steps[-1:], seed)[-1].paid.mean() for seed in range(61, 63)])
    afresh = sum(chain(ranks, [plan], 66)[-1].paid.mean() for plan in steps)

    assert chain(ranks, steps, 67)[-1].paid.mean() < (1.75 if name == "rank" else 1.45) * at_once
    assert afresh > 1.5 * at_once


def test_the_place_of_an_end_goes_on():
    """MIN is looked for elsewhere when its rank is sharper: what was measured for another rank is kept, and bet on up
    to 1.5 times the slack, where the slack is known; a search by value begins again, and the price is kept.
    """
    trail, one = Trail.nothing(1), np.array([0])
    trail.grow(0)
    mine, counted = (np.array([5.0]), np.array([40])), (np.array([9.0]), np.array([10]))
    trail.keep(one, np.array([7]), mine, counted, one, made_for(300, 0.1))

    assert {7} == {int(trail.only(kind).thresholds[0, 0]) for kind in (LOOK + 300, LOOK + 200, made_for(200, 0.05))}
    for other in (ROUND, int(made_by_value(0, np.int64(0)))):
        assert trail.only(other).thresholds.tolist() == [[-1]]
        assert trail.only(other).counted.tolist() == [[0]]
        assert trail.only(other).paid.tolist() == [50]

    def aside(rank, kind):
        trail.kinds[:] = kind
        return RankRun.of(descent(0.0, rank=rank), trail, np.array([False]), None, None)._aside(one, one).item()

    steps = descent(0.0, rank=0.2).asked.steps
    assert [aside(0.2, made_for(steps + 9, slack)) for slack in (0.1, 0.149, 0.151)] == [False, False, True]
    assert [aside(0.2, made_for(steps, slack)) for slack in (0.151, 0.249, 0.251)] == [False, False, True]
    assert [aside(0.2, LOOK + other) for other in (steps, steps + 9)] == [False, True]
