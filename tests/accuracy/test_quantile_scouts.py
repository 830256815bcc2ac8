"""A search that promises nothing chooses thresholds: what is said of them holds however badly it chooses."""

import numpy as np
import pytest
from accuracy.test_quantile_coverage import GROUPS, LEAVES_LOG2, misses
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy.quantile_bisection import CLOSING_SHARE, QuantileBisection
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_scouts import Scouts
from farthing.noise.bits import seeded

BETA, ROWS = 0.2, 10_000
NASTY = {  # places, and the part of the rows up to each
    "cliff": ([100, 500, 900], [0.4895, 0.5105, 1.0]),  # one value is right, all thresholds are just off
    "ledge": ([100, 500, 900], [0.4895, 0.4897, 1.0]),  # all thresholds between two values are just off
    "stairs": (list(range(90, 1000, 90)), [0.2, 0.4, 0.46, 0.48, 0.489, 0.511, 0.52, 0.54, 0.6, 0.8, 1.0]),
}


def plan(rank=0.01, beta=BETA, q=0.5):
    """The plan of a median by rank."""
    return QuantileBisection(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank), beta, 1 << 60)


def drawn(kind):
    """Return int64[1, rows], the leaves of every group: they are all alike."""
    places, parts = NASTY[kind]
    ends = np.rint(np.array(parts) * ROWS).astype(int)
    return np.repeat(places, np.diff(ends, prepend=0))[None].astype(np.int64)


def run(descent, leaf, seed):
    """Return what a run ends with, of groups that are all alike."""
    place, count = np.unique(leaf, return_counts=True)
    group = np.repeat(np.arange(GROUPS), len(place))
    ranks = Ranks.of(group, np.tile(place, GROUPS), np.tile(count, GROUPS), groups=GROUPS, leaves_log2=LEAVES_LOG2)
    noisy = NoisyRanks(ranks, descent.asked, seeded(seed))
    return descent.run(noisy.measure, noisy.measure_count, groups=GROUPS)


def blind(monkeypatch):
    """Plant a search that takes the first place that it comes to for the one to prove."""

    def judged(_self, at, *_rest):
        return np.ones(len(at), np.bool_), np.zeros(len(at), np.bool_)

    monkeypatch.setattr(Scouts, "judged", judged)


@pytest.mark.statistical
@pytest.mark.parametrize("seeing", [True, False])
@pytest.mark.parametrize("kind", ["cliff", "ledge", "stairs"])
def test_promises_are_kept_however_the_search_goes(kind, seeing, monkeypatch):
    """Beside data whose thresholds are all just off the target, with the search and with a blind one."""
    if not seeing:
        blind(monkeypatch)
    leaf, descent = drawn(kind), plan()

    state = run(descent, leaf, 71)

    assert misses(descent.asked, leaf, state).sum() <= binom.isf(ALPHA, GROUPS, BETA)
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert state.met.all()


@pytest.mark.statistical
def test_a_line_that_is_too_low_is_caught(monkeypatch):
    """The planted bug: bounds of a quarter of their width. Ranks miss more often than allowed."""
    line = QuantileBisection.line
    monkeypatch.setattr(QuantileBisection, "line", lambda *given: line(*given) / 4)
    blind(monkeypatch)
    leaf, descent = drawn("ledge"), plan()

    assert misses(descent.asked, leaf, run(descent, leaf, 72)).sum() > binom.isf(ALPHA, GROUPS, BETA)


@pytest.mark.statistical
@pytest.mark.parametrize("depth", [0, 3])
def test_noise_passes_the_line_no_more_often_than_its_share(depth):
    """Brownian noise at 400 informations, over a factor of a million: above the line at any of them in at most the
    share of runs; above seven tenths of it in more.
    """
    descent, slack = plan(beta=0.9), 50.0
    grains = np.unique(np.geomspace(1e-3, 1e3, 400) / (slack**2 * descent.per_grain)).astype(np.int64)
    information = grains * descent.per_grain
    steps = np.sqrt(np.diff(information, prepend=0.0))
    noise = np.cumsum(np.random.default_rng(73).standard_normal((6000, len(grains))) * steps, axis=1) / information
    line = descent.line(grains, slack, np.array(depth))
    chance = float(descent._share(depth)) * (1 - CLOSING_SHARE)

    assert (noise > line).any(axis=1).sum() <= binom.isf(ALPHA, 6000, chance)
    assert (noise > 0.7 * line).any(axis=1).sum() > binom.isf(ALPHA, 6000, chance)


def test_shares_of_thresholds_add_up():
    """However many thresholds a search chooses, together they use up no more than their part of beta."""
    shares = plan()._share(np.arange(100_000))

    assert 0.9999 * BETA * 0.9 < shares.sum() <= BETA * 0.9
    assert (np.diff(shares) < 0).all()


def test_a_search_costs_less_than_a_blind_one(monkeypatch):
    """On even data, for the ninth decile: the mean of what groups pay falls by a tenth at least."""
    rows = np.random.default_rng(74).integers(0, 1024, 1000)
    seeing = run(plan(0.02, q=0.9), rows, 75).paid.mean()
    blind(monkeypatch)

    assert seeing < 0.9 * run(plan(0.02, q=0.9), rows, 75).paid.mean()


def test_lost_searches_begin_again_with_what_is_sure():
    """Where what is sure leaves nothing of where the search was, it has all of that before it."""
    scouts, one = Scouts.of(1, 16), np.array([0])
    scouts.move(one, np.array([7]), np.array([5.0]))
    assert (scouts.left[0], scouts.right[0], scouts.over[0]) == (0, 7, 5.0)

    scouts.within(one, np.array([9]), np.array([12]))

    assert (scouts.left[0], scouts.right[0]) == (9, 12)
    assert np.isinf([scouts.under[0], scouts.over[0]]).all()
