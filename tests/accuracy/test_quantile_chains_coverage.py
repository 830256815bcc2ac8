"""Ranks and intervals of searches under a pure budget hold as often as promised; those told too early do not."""

import numpy as np
import pytest
from accuracy.test_quantile_coverage import GROUPS, LEAVES_LOG2, misses, ranks_of, values
from accuracy.test_quantile_scouts import NASTY, drawn
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy import quantile_chain_run
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.noise.bits import seeded

BETA, CAP = 0.2, 1 << 46
SMOOTH = [("even", 0.5, 0.05, 1_000), ("skew", 0.9, 0.03, 1_000), ("atoms", 0.5, 0.02, 1_000), ("skew", 0.0, 0.1, 500)]
MARKS = dict.fromkeys(set(NASTY) - {"cliff"}, pytest.mark.thorough)


def alike(kind):
    """Return groups that are all alike, and their leaves."""
    leaf = drawn(kind, 2_000)
    place, count = np.unique(leaf, return_counts=True)
    group = np.repeat(np.arange(GROUPS), len(place))
    ranks = Ranks.of(group, np.tile(place, GROUPS), np.tile(count, GROUPS), groups=GROUPS, leaves_log2=LEAVES_LOG2)
    return ranks, leaf


def searched(q, rank, ranks, seed, held=None):
    """Return what a search comes to."""
    plan = QuantileChains(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank), BETA, CAP)
    return plan.asked, plan.run(ShownRanks(ranks, 1, seeded(seed)).show, groups=GROUPS, held=held)


def most():
    """The misses that a healthy search of so many groups stays below."""
    return binom.isf(ALPHA, GROUPS, BETA)


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "q", "rank", "rows"), SMOOTH)
def test_promises_are_kept(kind, q, rank, rows):
    """Over smooth, skewed and lumpy data, asked at once and after a wider target."""
    leaf = values(kind, rows, np.random.default_rng(3))
    ranks = ranks_of(leaf)

    asked, first = searched(q, 2 * rank, ranks, 1)
    _, state = searched(q, rank, ranks, 2, held=first.trail)

    assert state.met.all()
    assert misses(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=2 * rank), leaf, first).sum() <= most()
    assert misses(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank), leaf, state).sum() <= most()
    assert asked.rank == 2 * rank


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=MARKS.get(kind, ())) for kind in NASTY])
def test_promises_are_kept_beside_steps(kind):
    """Beside data whose thresholds are all just off the target, with ties, and with a gap at the rank."""
    ranks, leaf = alike(kind)

    asked, state = searched(0.5, 0.01, ranks, 4)

    assert state.met.all()
    assert misses(asked, leaf, state).sum() <= most()


def test_words_that_are_told_too_early_are_caught(monkeypatch):
    """Power: a reach that leaves out most of the noise misses on a step far more often than it may."""
    whole = quantile_chain_run.reach
    monkeypatch.setattr(quantile_chain_run, "reach", lambda share, chance: whole(share, chance) / 8)
    ranks, leaf = alike("cliff")

    asked, state = searched(0.5, 0.01, ranks, 5)

    assert misses(asked, leaf, state).sum() > most()
