"""Several quantiles together: each keeps its promise by itself, also when sharpened; noise that is louder shows."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from accuracy.test_quantile_coverage import BETA, GROUPS, LEAVES_LOG2, ranks_of, values
from accuracy.test_quantile_scouts import NASTY, ROWS
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy.joint_quantile_run import JointRun, JointTrail, NextLooks
from farthing.accuracy.joint_quantiles import JointQuantiles, NoisyJointRanks
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.noise.bits import seeded

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Louder:
    """A planted bug: measurements with several times the noise that their grains pay for."""

    inner: NoisyJointRanks
    times: int

    def measure(self, strategy, thresholds, grains, groups):
        return self.inner.measure(strategy, thresholds, np.maximum(grains // self.times**2, 1), groups)

    def measure_count(self, grains, groups):
        return self.inner.measure_count(np.maximum(grains // self.times**2, 1), groups)


def plan(rank=0.02, shares=SHARES, cap=1 << 61):
    """The plan of several quantiles by rank."""
    return JointQuantiles(tuple(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank) for q in shares), BETA, cap)


def run(plan, noisy, groups=GROUPS, **more):
    """Return what a run ends with."""
    return plan.run(noisy.measure, noisy.measure_count, groups=groups, **more)


def misses(plan, leaf, state):
    """Return bool[groups, quantiles]: the interval misses the quantile, or the rank is off."""
    ordered, rows, found = np.sort(leaf, axis=1), leaf.shape[1], []
    for number, one in enumerate(plan.asked):
        truth = ordered[:, max(int(np.ceil(one.steps / 2**20 * rows - 1e-9)), 1) - 1]
        outside = (state.lower[:, number] > truth) | (state.upper[:, number] < truth + 1)
        shown = np.ceil(state.value[:, number])[:, None] - 1
        low, high = (leaf < shown).mean(axis=1), (leaf <= shown).mean(axis=1)
        off = (low > one.q + one.rank + 1e-12) | (high < one.q - one.rank - 1e-12)
        found.append(outside | (state.met[:, number] & off))
    return np.stack(found, axis=1)


def alike(kind, groups=GROUPS):
    """Return leaves and ranks of groups that are all alike, whose thresholds near the median are all just off."""
    places, parts = NASTY[kind]
    leaf = np.repeat(places, np.diff(np.rint(np.array(parts) * ROWS).astype(int), prepend=0))
    place, count = np.unique(leaf, return_counts=True)
    group = np.repeat(np.arange(groups), len(place))
    ranks = Ranks.of(group, np.tile(place, groups), np.tile(count, groups), groups=groups, leaves_log2=LEAVES_LOG2)
    return np.broadcast_to(leaf, (groups, ROWS)), ranks


def small(groups=20, rows=2000):
    """Return leaves and ranks of a few groups."""
    leaf = values("even", rows, np.random.default_rng(3))[:groups]
    return leaf, ranks_of(leaf)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["even", "skew", "atoms"])
def test_each_keeps_its_promise_and_keeps_it_sharpened(kind):
    """Beside several kinds of data, in one run and in a sharper one on the same trail."""
    leaf = values(kind, 3000, np.random.default_rng(11))
    noisy, most = NoisyJointRanks(ranks_of(leaf), 1, seeded(12)), binom.isf(ALPHA, GROUPS, BETA)

    first = run(plan(0.04), noisy)
    second = run(plan(0.02), noisy, held=first.trail)

    assert misses(plan(0.04), leaf, first).sum(axis=0).max() <= most
    assert misses(plan(0.02), leaf, second).sum(axis=0).max() <= most
    assert first.met.mean() > 0.97
    assert (second.trail.paid >= first.trail.paid).all()


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("kind", NASTY)
def test_thresholds_that_are_just_off_are_not_told(kind):
    """Beside data where most thresholds are just off the target: neither is one called good too often."""
    leaf, ranks = alike(kind)
    made = plan(0.01, (0.25, 0.5, 0.75))

    assert misses(made, leaf, run(made, NoisyJointRanks(ranks, 1, seeded(13)))).sum(axis=0).max() <= binom.isf(
        ALPHA, GROUPS, BETA
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_that_is_louder_than_paid_for_is_caught():
    """The planted bug: a sixth of what is paid for is measured."""
    leaf, ranks = alike("ledge")
    made = plan(0.01, (0.25, 0.5, 0.75))

    state = run(made, Louder(NoisyJointRanks(ranks, 1, seeded(14)), 6))

    assert misses(made, leaf, state).sum(axis=0).max() > binom.isf(ALPHA, GROUPS, BETA)


def test_what_is_settled_is_asked_no_more():
    """Looks become cheaper: the last ones are at fewer quantiles than the first; the price is the sum of looks."""
    _, ranks = small()
    noisy, seen, paid = NoisyJointRanks(ranks, 1, seeded(15)), [], np.zeros(20, np.int64)

    def measure(strategy, thresholds, grains, groups):
        np.add.at(paid, groups, grains)
        seen.append(len(strategy.steps))
        return noisy.measure(strategy, thresholds, grains, groups)

    def measure_count(grains, groups):
        np.add.at(paid, groups, grains)
        return noisy.measure_count(grains, groups)

    state = plan(0.05).run(measure, measure_count, groups=20)

    assert max(seen) == len(SHARES)
    assert seen[-1] < len(SHARES)
    assert state.trail.paid.tolist() == paid.tolist()


def test_a_look_that_does_not_bet_is_kept_without_the_count_of_those_that_do():
    """The count beside a look is for those that asked for it: far off, a bet would only lose."""
    made, one = plan(0.05, (0.25, 0.75)), np.ones((1, 2))
    begun = JointRun.of(made, JointTrail.nothing(1, 2), np.zeros((1, 2), np.bool_))
    for each in begun.runs:
        each.trail.grow(0)
    far = NextLooks(np.array([[300, 700]]), one, np.array([[1 << 40, 0]]), one, one > 0)

    begun.look(far, lambda *_: np.full((1, 2), 5.0), lambda *_: np.full(1, 2000.0))

    first, second = begun.trail.each
    assert first.counts[0].tolist() == [2000.0]
    assert first.counted[0, 0] > 0
    assert (second.counts[0, 0], second.counted[0, 0]) == (0, 0)
    assert (second.means[0, 0], second.grains[0, 0] > 0) == (5.0, True)
    assert begun.paid[0] > first.counted[0, 0]


@pytest.mark.parametrize(("shares", "rows"), [((0.25, 0.5, 0.75), 1 << 29), ((0.1, 0.2, 0.3, 0.4, 0.5), 1 << 31)])
def test_looks_at_very_many_rows_tell_something(shares, rows):
    """Where a look costs a few grains, or less than one, each is told as one grain at least: so a search ends."""
    leaf = np.arange(0, 1024, 32)
    ranks = Ranks.of(0 * leaf, leaf, 0 * leaf + rows // 32, groups=1, leaves_log2=LEAVES_LOG2)
    noisy, looks = NoisyJointRanks(ranks, 1, seeded(21)), []

    def measure(strategy, *asked):
        looks.append(len(strategy.steps))
        assert len(looks) < 400, "the search goes on for ever"
        return noisy.measure(strategy, *asked)

    state = plan(0.05, shares).run(measure, noisy.measure_count, groups=1)

    assert state.met.all()
    for trail in state.trail.each:
        assert (trail.grains + trail.counted)[trail.kinds > 0].all()


def test_a_run_on_what_is_held_measures_nothing():
    """The same again, and without anything that measures, is the same answer; a group that is not done waits."""
    _, ranks = small()
    noisy = NoisyJointRanks(ranks, 1, seeded(16))
    done = run(plan(0.05), noisy, groups=20)

    again = plan(0.05).run(None, None, groups=20, held=done.trail)
    sharper = plan(0.03).run(None, None, groups=20, held=done.trail)

    assert np.array_equal(again.value, done.value)
    assert np.array_equal(again.met, done.met)
    assert not again.waits.any()
    assert sharper.waits.all()
    assert sharper.trail.paid.tolist() == done.trail.paid.tolist()


@pytest.mark.parametrize("cap", [1, 1 << 20, 1 << 40, 1 << 46])
def test_no_group_pays_more_than_its_cap(cap):
    """Whatever the cap: what it does not pay for is not met."""
    _, ranks = small()

    state = run(plan(0.05, cap=cap), NoisyJointRanks(ranks, 1, seeded(17)), groups=20)

    assert (state.trail.paid <= cap).all()
    assert not state.met.all(axis=1).any()
    assert (state.lower <= state.value).all()


def test_a_large_cap_is_kept_to_the_last_grain():
    """Where grains are beyond what a float tells apart, the last look still stops at the cap."""
    _, ranks = small(rows=40)
    cap = (1 << 56) + 1

    state = run(plan(0.05, cap=cap), NoisyJointRanks(ranks, 1, seeded(20)), groups=20)

    assert state.trail.paid.max() == cap


def test_ends_and_targets_of_their_own():
    """MIN and MAX stand beside others, each with its own target."""
    leaf, ranks = small()
    asked = tuple(
        QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank) for q, rank in ((0.0, 0.05), (0.5, 0.02), (1.0, 0.2))
    )
    made = replace(plan(), asked=asked)

    wide = replace(made, asked=tuple(replace(one, rank=2 * one.rank) for one in asked))
    noisy = NoisyJointRanks(ranks, 1, seeded(18))
    state = run(made, noisy, groups=20, held=run(wide, noisy, groups=20).trail)

    assert state.met.mean() > 0.95
    assert misses(made, leaf, state).mean() < 0.1


def test_empty_groups_are_not_met():
    """Groups without rows pay for a count and are given up."""
    none = np.zeros(0, np.int64)
    ranks = Ranks.of(none, none, none, groups=2, leaves_log2=LEAVES_LOG2)

    state = run(plan(0.05, cap=1 << 50), NoisyJointRanks(ranks, 1, seeded(19)), groups=2)

    assert not state.met.any()
    assert (state.trail.paid < 1 << 49).all()
