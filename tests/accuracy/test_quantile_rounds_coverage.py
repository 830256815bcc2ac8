"""Intervals of searches by value under a pure budget hold as often as promised; those told too early do not."""

import numpy as np
import pytest
from accuracy.test_quantile_chains_coverage import BETA, CAP, most
from accuracy.test_quantile_coverage import GROUPS, LEAVES_LOG2, ranks_of, values

from farthing.accuracy import quantile_round_run
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.quantile_chains import QuantileChains
from farthing.accuracy.quantile_ranks import QuantileGoal
from farthing.noise.bits import seeded

TARGETS = [("skew", 0.9, 0.2, 0.0), ("atoms", 0.5, 0.0, 20.0)]


def missed(kind, q, relative, absolute, seed=1):
    """Return how many intervals miss, asked at once and after a wider target, and how many met it."""
    leaf, held, counted = values(kind, 1_000, np.random.default_rng(3)), None, []
    ranks, place = ranks_of(leaf), max(int(np.ceil(q * leaf.shape[1] - 1e-9)) - 1, 0)
    truth = np.sort(leaf, axis=1)[:, place] * 1024.0 / 2**LEAVES_LOG2
    for times in (2, 1):
        goal = QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2)
        plan = QuantileChains(goal, BETA, CAP, relative=relative * times, absolute=absolute * times)
        state = plan.run(ShownJointRanks(ranks, 1, seeded(seed + times)).show, groups=GROUPS, held=held)
        held = state.trail
        counted.append(int(((state.lower > truth + 1024.0 / 2**LEAVES_LOG2) | (state.upper < truth)).sum()))
    return counted, state.met.mean()


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("cell", TARGETS)
def test_intervals_hold_as_often_as_promised(cell):
    """Over skewed and lumpy data, asked at once and after a wider target."""
    counted, met = missed(*cell)

    assert max(counted) <= most()
    assert met > 0.9


@pytest.mark.thorough
@pytest.mark.statistical
def test_sides_that_are_told_too_early_are_caught(monkeypatch):
    """Power: a reach that leaves out most of the noise misses far more often than it may."""
    whole = quantile_round_run.weighted_reach
    monkeypatch.setattr(quantile_round_run, "weighted_reach", lambda *facts: whole(*facts) / 8)

    counted, _ = missed("even", 0.5, 0.1, 0.0)

    assert max(counted) > most()
