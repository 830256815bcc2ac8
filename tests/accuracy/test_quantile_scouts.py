"""A guess that promises nothing chooses thresholds; bets on what they show hold their promise however it chooses."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from accuracy.test_quantile_coverage import GROUPS, LEAVES_LOG2, misses
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy import quantile_rank_run, quantile_scouts
from farthing.accuracy.quantile_bets import Ladder, Places, won_at_most
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_rank_run import RankRun
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_scouts import Next, Scouts
from farthing.noise.bits import seeded

BETA, ROWS = 0.2, 10_000
NASTY = {  # places, and the part of the rows up to each
    "cliff": ([100, 500, 900], [0.4895, 0.5105, 1.0]),  # one value is right, all thresholds are just off
    "ledge": ([100, 500, 900], [0.4895, 0.4897, 1.0]),  # all thresholds between two values are just off
    "stairs": (list(range(90, 1000, 90)), [0.2, 0.4, 0.46, 0.48, 0.489, 0.511, 0.52, 0.54, 0.6, 0.8, 1.0]),
    "two values, a gap at the rank": ([100, 900], [0.5, 1.0]),
    "ties": ([500], [1.0]),
}
MARKS = dict.fromkeys(("cliff", "stairs", "ties"), pytest.mark.thorough)


def plan(rank=0.01, beta=BETA, q=0.5, cap=1 << 60):
    """The plan of a median by rank."""
    return QuantileBisection(QuantileGoal(q, 0.0, 1024.0, LEAVES_LOG2, rank=rank), beta, cap)


def drawn(kind, rows=ROWS):
    """Return int64[1, rows], the leaves of every group: they are all alike."""
    places, parts = NASTY[kind]
    ends = np.rint(np.array(parts) * rows).astype(int)
    return np.repeat(places, np.diff(ends, prepend=0))[None].astype(np.int64)


def run(descent, leaf, seed, groups=GROUPS):
    """Return what a run ends with, of groups that are all alike."""
    place, count = np.unique(leaf, return_counts=True)
    group = np.repeat(np.arange(groups), len(place))
    ranks = Ranks.of(group, np.tile(place, groups), np.tile(count, groups), groups=groups, leaves_log2=LEAVES_LOG2)
    noisy = NoisyRanks(ranks, descent.asked, seeded(seed))
    return descent.run(noisy.measure, noisy.measure_count, groups=groups)


def blind(monkeypatch):
    """Plant a guess that looks anywhere, at six thresholds of which most are just off."""
    rng = np.random.default_rng(7)

    def anywhere(self):
        groups = len(self.slack)
        return Next(rng.choice([99, 100, 499, 500, 899, 900], groups), 1 / self.slack**2, np.ones(groups, np.bool_))

    monkeypatch.setattr(Scouts, "next", anywhere)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=MARKS.get(kind, ())) for kind in NASTY])
def test_promises_are_kept_beside_steps(kind):
    """Beside data whose thresholds are all just off the target, with ties, and with a gap at the rank."""
    leaf, descent = drawn(kind), plan()

    state = run(descent, leaf, 71)

    assert misses(descent.asked, leaf, state).sum() <= binom.isf(ALPHA, GROUPS, BETA)
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert state.met.all()


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["cliff", "ledge"])
def test_promises_are_kept_however_the_guess_goes(kind, monkeypatch):
    """With a guess that looks anywhere."""
    blind(monkeypatch)
    leaf, descent = drawn(kind), plan(cap=1 << 48)

    assert misses(descent.asked, leaf, run(descent, leaf, 72)).sum() <= binom.isf(ALPHA, GROUPS, BETA)


@pytest.mark.statistical
def test_bets_that_are_told_as_won_too_early_are_caught(monkeypatch):
    """The planted bug: a quarter of the odds suffices. Beside a step ranks miss more often than allowed."""
    honest = RankRun._odds.fget
    monkeypatch.setattr(RankRun, "_odds", property(lambda run: honest(run) / 4))
    leaf, descent = drawn("ledge"), plan(rank=0.0102)

    assert misses(descent.asked, leaf, run(descent, leaf, 73)).sum() > binom.isf(ALPHA, GROUPS, BETA)


@pytest.mark.statistical
def test_wrong_bets_win_no_more_often_than_their_chance():
    """Over 400 looks of growing size, bets at rates that follow what was seen, half of which win just what they need:
    what is won where D is just too high passes 1/chance in at most the chance of runs; its square root in more.
    """
    rng, runs, chance = np.random.default_rng(74), 6000, 0.1
    information, total, best = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    gained, most = np.zeros(runs), np.where(np.arange(runs) % 2, -np.log(chance), 50.0)
    for size in np.geomspace(0.01, 20.0, 400):
        part = np.where(information > 0, total / (information + 1.0), 0.0)
        mean, rate = 1.0 + rng.standard_normal(runs) / np.sqrt(size), 0.7 * np.clip(1 - part, 0, 1)
        gained += won_at_most(most - gained, mean - 1.0, np.full(runs, size), rate)
        information, total = information + size, total + size * mean
        best = np.maximum(best, gained + 1e-6)

    assert (best >= -np.log(chance)).sum() <= binom.isf(ALPHA, runs, chance)
    assert (best >= -0.5 * np.log(chance)).sum() > binom.isf(ALPHA, runs, chance)


def test_a_bet_that_wins_no_more_than_it_needs_is_fair():
    """Its mean by quadrature, where the mean is 0: at most 1, and as near to it as it is computed; less above."""
    draws = np.linspace(-9.0, 9.0, 20_001)
    weight = np.exp(-(draws**2) / 2) / np.sqrt(2 * np.pi) * (draws[1] - draws[0])
    for most, information, rate in product((0.1, 4.0), (1.0, 100.0), (0.3, 1.0)):
        size, rates, needs = (np.full(len(draws), each) for each in (information, rate, most))
        in_mean = [
            np.exp(won_at_most(needs, mean + draws / np.sqrt(information), size, rates)) @ weight for mean in (0.0, 0.2)
        ]
        assert 0.999 <= in_mean[0] <= 1 + 1e-6
        assert in_mean[1] <= in_mean[0] + 1e-12


@pytest.mark.parametrize("surely", [0.25, 0.5, 0.9, 0.999])
def test_a_bet_is_fair_however_much_better_a_look_was_than_told(surely):
    """Its mean by quadrature at variances down to the least that there may be: at most 1; without that bound, above."""
    draws = np.linspace(-9.0, 9.0, 20_001)
    weight = np.exp(-(draws**2) / 2) / np.sqrt(2 * np.pi) * (draws[1] - draws[0])
    size, careless = np.ones(len(draws)), []
    for most, rate, variance in product((0.05, 0.5, 2.0), (0.3, 0.7, 2.0), np.linspace(surely, 1.0, 6)):
        seen, needs, rates = draws * np.sqrt(variance), most * size, rate * size
        assert np.exp(won_at_most(needs, seen, size, rates, surely)) @ weight <= 1 + 1e-6
        careless.append(np.exp(won_at_most(needs, seen, size, rates)) @ weight)
    assert max(careless) > 1 + 1e-5


def test_bets_know_how_much_better_a_look_may_have_been_than_told(monkeypatch):
    """A look at several is told in whole grains of a look at one, rounded down: one may have been two."""
    known = []

    def noted(most, mean, information, rate, surely):
        known.append(surely)
        return won_at_most(most, mean, information, rate, surely)

    monkeypatch.setattr(quantile_rank_run, "won_at_most", noted)
    asked = QuantileGoal(0.5, 0.0, 1024.0, LEAVES_LOG2, rank=0.05)
    noisy = NoisyRanks(
        Ranks.of(*np.array([[0], [500], [1 << 31]]), groups=1, leaves_log2=LEAVES_LOG2), asked, seeded(1)
    )
    state = QuantileBisection(asked, BETA, 1 << 60).run(noisy.measure, noisy.measure_count, groups=1)
    grains = state.trail.grains[state.trail.grains > 0]

    assert [float(each[0]) for each in known[::2]] == pytest.approx((grains / (grains + 1)).tolist(), rel=1e-5)
    assert all(each[0] < one / (one + 1) for each, one in zip(known[::2], grains.tolist(), strict=True))


def test_what_is_won_counts_where_it_is_a_proof():
    """A bet that D is not too high at a place says so of all below, not of those above; a lost one counts too."""
    places, one = Places.none(1), np.array([0])
    for threshold, above, below in ((7, 4.0, 0.0), (3, 0.0, 0.0), (9, -50.0, 0.0), (1, 0.0, -50.0)):
        row = places.at(np.array([threshold]), one)
        places.above[row, one], places.below[row, one] = above, below
    ladder = Ladder.of(places, one)
    lost, gained = np.log(0.25), np.log(0.25 + 0.75 * np.exp(4.0))

    assert ladder.thresholds.ravel().tolist() == [1, 3, 7, 9]
    assert np.allclose(ladder.high.ravel(), [gained + lost, gained + 2 * lost, gained + 2 * lost, 2 * lost])
    assert np.allclose(ladder.low.ravel(), [2 * lost, 2 * lost, 2 * lost, lost])


@pytest.mark.thorough
def test_the_guess_costs_less_than_a_blind_one(monkeypatch):
    """On even data, for the ninth decile: the mean of what groups pay falls by a tenth at least."""
    rows = np.random.default_rng(75).integers(0, 1024, 1000)
    descent = plan(0.05, q=0.9, cap=1 << 50)
    seeing = run(descent, rows, 76).paid.mean()
    blind(monkeypatch)

    assert seeing < 0.9 * run(descent, rows, 76).paid.mean()


def test_groups_that_are_too_small_are_given_up_early():
    """Five rows, whose target costs hundreds of caps, and no rows: all but a few, whose first count misled, pay at most
    a tenth of the cap; to spend it, a quarter at least.
    """
    descent = plan(rank=0.05, cap=1 << 50)
    for rows in (np.array([500] * 5), np.array([], np.int64)):
        state = run(descent, rows, 77)
        assert (state.paid <= descent.cap_grains / 10).mean() > 0.97
        assert run(replace(descent, spend=True), rows, 77).paid.min() >= descent.cap_grains / 4


@pytest.mark.thorough
def test_large_groups_are_not_given_up():
    """A cap of several times the price lets all but a few meet their target."""
    descent = plan(rank=0.05)
    cap = 6 * descent.typical(1000)

    state = run(replace(descent, cap_grains=cap), np.random.default_rng(78).integers(0, 1024, 1000), 78)

    assert state.met.mean() > 0.9


@pytest.mark.thorough
def test_a_search_along_a_step_bisects(monkeypatch):
    """Beside one lump, where all thresholds are just off, straight lines would go leaf by leaf.

    What is paid is told as information times the squared slack.
    """
    descent, dear = plan(beta=0.05), []
    for stuck in (quantile_scouts.STUCK, 0.0):
        monkeypatch.setattr(quantile_scouts, "STUCK", stuck)
        paid = run(descent, drawn("cliff"), 71, groups=60).paid.mean()
        dear.append(paid * descent.per_grain * (descent.asked.slack * ROWS) ** 2)
    assert dear[0] < 57 < dear[1]
