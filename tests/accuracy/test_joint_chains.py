"""Several quantiles together under a pure budget: each keeps its promise, also sharpened; what was paid adds up."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from accuracy.test_joint_quantiles import SHARES, alike, misses, small
from accuracy.test_quantile_coverage import BETA, GROUPS, LEAVES_LOG2, ranks_of, values
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy.joint_chains import JointChains, ShownJointRanks
from farthing.accuracy.laplace_sums import weighted_reach
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.noise.bits import seeded


@dataclass(frozen=True)
class Louder:
    """A planted bug: bins with several times the noise that is told."""

    inner: ShownJointRanks
    times: int

    def show(self, held, farthings, groups):
        coarse = held._replace(farthings=held.farthings // self.times)
        return self.inner.show(coarse, np.maximum(farthings // self.times, coarse.farthings + 1), groups)


def plan(rank=0.02, shares=SHARES, cap=1 << 44, **more):
    """The plan of several quantiles by rank."""
    return JointChains(tuple(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank) for q in shares), BETA, cap, **more)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["even", "skew", "atoms"])
def test_each_keeps_its_promise_and_keeps_it_sharpened(kind):
    """Beside several kinds of data, in one run and in a sharper one on the same trail."""
    leaf = values(kind, 3000, np.random.default_rng(11))
    show, most = ShownJointRanks(ranks_of(leaf), 1, seeded(12)).show, binom.isf(ALPHA, GROUPS, BETA)

    first = plan(0.04).run(show, groups=GROUPS)
    second = plan(0.02).run(show, groups=GROUPS, held=first.trail)

    assert misses(plan(0.04), leaf, first).sum(axis=0).max() <= most
    assert misses(plan(0.02), leaf, second).sum(axis=0).max() <= most
    assert first.met.mean() > 0.9
    assert (second.trail.paid >= first.trail.paid).all()


@pytest.mark.thorough
@pytest.mark.statistical
def test_bins_that_are_louder_than_told_are_caught():
    """The planted bug, beside data of which the thresholds near the median are all just off.

    Of 1,200 groups in other runs more than .7 of the medians are missed, surely but for 1e-8; then fewer misses than
    the limit of 200 groups have a chance below 1e-15. Honest bins missed .06, where .2 are allowed.
    """
    groups = 200
    leaf, ranks = alike("ledge", groups)
    made = plan(0.01, (0.25, 0.5, 0.75))

    honest = made.run(ShownJointRanks(ranks, 1, seeded(13)).show, groups=groups)
    state = made.run(Louder(ShownJointRanks(ranks, 1, seeded(13)), 6).show, groups=groups)

    limit = binom.isf(ALPHA, groups, BETA)
    assert misses(made, leaf, honest).sum(axis=0).max() <= limit
    assert misses(made, leaf, state).sum(axis=0).max() > limit


def test_a_threshold_beyond_all_rows_is_not_gone_on_with():
    """At a coarse rank it seems near the last decile, but no look can ever prove that: the cap is not spent on it."""
    leaf = np.arange(100).repeat(100)
    place, count = np.unique(leaf, return_counts=True)
    group = np.repeat(np.arange(20), len(place))
    ranks = Ranks.of(group, np.tile(place, 20), np.tile(count, 20), groups=20, leaves_log2=LEAVES_LOG2)

    state = plan(0.2, (0.1, 0.5, 0.9)).run(ShownJointRanks(ranks, 1, seeded(20)).show, groups=20)

    assert state.trail.paid.max() < (1 << 44) / 16


@settings(max_examples=15)
@given(st.floats(0, 1), st.integers(1, 12), st.integers(1, 12), st.floats(1e-6, 0.5), st.integers(0, 6))
def test_a_sum_of_bins_reaches_no_further_than_told(share, under, over, chance, scale_log2):
    """The chance that geometric noise goes beyond the reach, added up exactly, is no more than was allowed.

    At most four bins of each side in steps of a row, by their convolution, where shares are halves.
    """
    under, over, scale = min(under, 4), min(over, 4), 2.0**scale_log2
    half = weighted_reach(0.5, np.array([under]), np.array([over]), np.array([chance]), np.array([scale]))[0]
    any_ = weighted_reach(share, np.array([under]), np.array([over]), np.array([chance]), np.array([scale]))[0]
    far = np.arange(-(1 << 12), 1 << 12)
    law = np.fft.rfft(np.fft.ifftshift(np.exp(-np.abs(far) / scale) * np.tanh(0.5 / scale)))
    total = np.fft.fftshift(np.fft.irfft(law ** (under + over)))

    assert total[far / 2 >= half].sum() <= chance + 1e-9
    assert 0 <= any_ < np.inf


def test_a_round_costs_its_last_level_once():
    """What is paid is by how much the rounds rise, however many bins they have; a run without looks pays nothing."""
    _, ranks = small(groups=5)
    shown, paid, seen = ShownJointRanks(ranks, 1, seeded(15)), np.zeros(5, np.int64), []

    def show(held, farthings, groups):
        np.add.at(paid, groups, farthings - held.farthings)
        seen.append(int((held.places >= 0).sum(axis=0).max()))
        return shown.show(held, farthings, groups)

    state = plan(0.05).run(show, groups=5)
    again = plan(0.05).run(None, groups=5, held=state.trail)
    sharper = plan(0.02).run(None, groups=5, held=state.trail)

    assert state.met.all()
    assert max(seen) >= len(SHARES)
    assert state.trail.paid.tolist() == paid.tolist() == again.trail.paid.tolist()
    assert np.array_equal(again.value, state.value)
    assert not again.waits.any()
    assert sharper.waits.any()


@pytest.mark.parametrize("spend", [False, True])
@pytest.mark.parametrize("cap", [1, 1 << 30, 1 << 38])
def test_no_group_pays_more_than_its_cap(cap, spend):
    """Whatever the cap, also where a group is to spend it."""
    _, ranks = small(groups=6, rows=200)

    state = plan(0.05, cap=cap, spend=spend).run(ShownJointRanks(ranks, 1, seeded(17)).show, groups=6)

    assert (state.trail.paid <= cap).all()
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()


@pytest.mark.thorough
def test_ends_and_targets_of_their_own():
    """MIN and MAX stand beside others, each with its own target; and a sharper run goes on."""
    leaf, ranks = small()
    asked = tuple(
        QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank) for q, rank in ((0, 0.05), (0.5, 0.03), (1, 0.2))
    )
    made, show = replace(plan(), asked=asked), ShownJointRanks(ranks, 1, seeded(18)).show
    wide = replace(made, asked=tuple(replace(one, rank=2 * one.rank) for one in asked))

    state = made.run(show, groups=20, held=wide.run(show, groups=20).trail)

    assert state.met.mean() > 0.9
    assert misses(made, leaf, state).mean() < 0.1


def test_empty_groups_are_given_up():
    """Groups without rows pay a part of their cap, and are not met."""
    none = np.zeros(0, np.int64)
    ranks = Ranks.of(none, none, none, groups=12, leaves_log2=LEAVES_LOG2)

    state = plan(0.05, cap=1 << 40).run(ShownJointRanks(ranks, 1, seeded(19)).show, groups=12)

    assert not state.met.any()
    assert state.trail.paid.max() < 1 << 40
    assert state.trail.paid.mean() < 0.4 * (1 << 40)
