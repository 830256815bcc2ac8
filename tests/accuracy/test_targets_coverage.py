"""Shares, ratios, differences and rankings keep what they say; rules that look alike and are not valid are caught."""

import numpy as np
import pytest
from accuracy.runs import surely_above
from levels import ALPHA

from farthing.accuracy import Schedule, ranking_bounds, reported
from farthing.accuracy import ranking_places as places_module
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE
from farthing.accuracy.ranking import RankingContest
from farthing.accuracy.ranking_bounds import proved_leads
from farthing.accuracy.statistics import RatioStatistic
from farthing.accuracy.stop_rule import two_sided
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.mechanisms.laplace import LaplaceChain, Shown
from farthing.noise.bits import seeded
from farthing.normal import ndtri
from farthing.planning.laplace_count import Grid
from farthing.session.answering.laplace_count import _LaplaceLooks
from farthing.session.answering.share_of_groups import refine_share

pytestmark = pytest.mark.thorough

GRAIN = 2.0**-56


def shared(truth, share, *, seed, absolute=20.0, cap=1 << 60, law=GAUSSIAN):
    """Refine counts until a share of them is within 10 % or 20; return the schedule, the end, and who stopped alone."""
    if law is LAPLACE:
        grid = Grid(1, 1 << 14, -14)
        chain = LaplaceChain(truth << 14, grid.sensitivity, 1, seeded(seed), grid.step_log2)
        mechanism, before = _LaplaceLooks(chain), Measured(0 * truth, 0 * truth, grid.step_log2)
        per_grain, cap = grid.per_farthing, min(cap, grid.finest)
    else:
        mechanism, before, per_grain = (
            GaussianMeasurements(truth, bits=seeded(seed)),
            Measured.nothing(len(truth)),
            GRAIN,
        )
    schedule = Schedule.plan(0.1, absolute, 0.05, per_grain=per_grain, cap_grains=cap, meets=1, law=law)
    end = refine_share(mechanism, schedule, share, before)
    return schedule, end, schedule.stopped(end.information, end.values)


def outside(schedule, end, alone, truth):
    """Return which intervals miss."""
    _, lower, upper, *_ = reported(end.values, end.information, schedule, ~alone)
    return (truth < lower) | (truth > upper)


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "law"), [(0.3, GAUSSIAN), (0.6, GAUSSIAN), (0.9, GAUSSIAN), (0.6, LAPLACE)])
def test_groups_that_are_stopped_by_others_are_covered(share, law):
    """Over sizes that straddle the stop, no size misses more than beta, stopped by others or not."""
    sizes = np.array([20, 60, 150, 300, 500, 800, 1_200, 2_000, 5_000, 50_000])
    truth = sizes.repeat(1_500)
    schedule, end, alone = shared(truth, share, seed=int(100 * share), absolute=1.0, law=law)
    missed = outside(schedule, end, alone, truth).reshape(len(sizes), -1).sum(axis=1)

    assert share <= alone.mean() < share + 0.15
    assert not any(surely_above(int(count), 1_500, 0.05, ALPHA / len(sizes)) for count in missed)
    assert end.information[~alone].max(initial=0) == end.information.max()


@pytest.mark.statistical
def test_a_target_out_of_reach_and_a_share_together_are_covered():
    """Groups given up, stopped by others and stopped by themselves, side by side: none misses more than beta."""
    sizes = np.array([5, 300, 1_000, 3_000, 30_000])
    truth = sizes.repeat(2_000)
    schedule, end, alone = shared(truth, 0.55, seed=9, absolute=1.0, cap=1 << 46)
    missed = outside(schedule, end, alone, truth).reshape(len(sizes), -1).sum(axis=1)

    assert len(schedule.futility.indices) > 0
    assert not any(surely_above(int(count), 2_000, 0.05, ALPHA / len(sizes)) for count in missed)


@pytest.mark.statistical
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_reporting_stopped_groups_as_if_they_had_met_is_caught(law):
    """With the plain interval Y +- max(r|Y|, a) the groups that others stopped miss far more often than beta."""
    truth = np.full(6_000, 400).astype(np.int64)
    truth[:3_000] = 40_000
    schedule, end, alone = shared(truth, 0.5, seed=4, law=law)
    half = np.maximum(0.1 * np.abs(end.values), schedule.floor)
    plain = np.abs(end.values - truth) > half

    assert 3_000 <= (~alone).sum()
    assert surely_above(int(plain[~alone].sum()), int((~alone).sum()), 0.05, ALPHA)
    assert not surely_above(int(outside(schedule, end, alone, truth).sum()), 6_000, 0.05, ALPHA)


def noisy(truth, rng):
    """Return a `measure` on a statistical generator."""
    return lambda grains, groups: truth[groups] + rng.standard_normal(len(groups)) / np.sqrt(grains * GRAIN)


def noisy_leads(truth, rng):
    """Return the same for leads."""
    return lambda grains, first, second: noisy(truth[first] - truth[second], rng)(grains, np.arange(len(grains)))


def ranked(truth, k, runs, *, seed, apart=0.0, relative=0.0, cap=1 << 52):
    """Rank the same groups many times; return how often a place told as settled is wrong, and an interval misses."""
    rng, wrong, missed, settled = np.random.default_rng(seed), 0, 0, 0
    for _ in range(runs):
        contest = RankingContest(k, 0.05, GRAIN, cap, apart, relative)
        end = contest.run(None, len(truth), noisy(truth, rng), lead=noisy_leads(truth, rng))
        unsettled = set(contest.unsettled(end))
        wrong += told_wrong(truth, end.blocks, unsettled, k, apart=apart, relative=relative)
        settled += not unsettled
        width = contest.places(end).half_widths(end.information)
        missed += bool((np.abs(end.means - truth) > width).any())
    return wrong, missed, settled


def line(truth, bits):
    """Return a line of looks at a Laplace chain, in steps of 2^-8, that gets finer."""
    mechanism = LaplaceChain(np.rint(truth * 256).astype(np.int64), 256, bits=bits, step_log2=-8)
    last = [np.zeros(len(truth), np.int64), np.zeros(len(truth), np.int64)]

    def measure(farthings, groups):
        """Return what is shown of some groups, each of which has paid so much more."""
        now = mechanism.measure(Shown(last[0][groups], last[1][groups], -8), last[1][groups] + farthings, groups)
        last[0][groups], last[1][groups] = now.value, now.farthings
        return now.value / 256.0

    return measure


@pytest.mark.statistical
def test_a_pure_ranking_is_right_and_one_whose_looks_share_no_beta_is_caught(monkeypatch):
    """Close groups under Laplace noise are in the order told; with the whole chance at each look they are not."""

    def wrong(apart, runs, seed):
        """Return in how many runs an order that is told as settled is wrong, or an interval misses."""
        truth, bits, found, missed = 1_000 - apart * np.arange(8.0), seeded(seed), 0, 0
        for _ in range(runs):
            contest = RankingContest(8, 0.05, 2.0**-40, 1 << 40, law=LAPLACE)
            end = contest.run(None, 8, line(truth, bits), line(truth, bits))
            found += told_wrong(truth, end.blocks, set(contest.unsettled(end)), 8, apart=0, relative=0)
            missed += bool((np.abs(end.means - truth) > contest.places(end).half_widths(end.information)).any())
        return found, missed

    right, covered = wrong(0.01, 120, 1)
    monkeypatch.setattr(ranking_bounds, "_part", lambda chances, *_: np.minimum(20 * chances, 0.4))
    whole, missed = wrong(0.01, 120, 2)

    assert not surely_above(right, 120, 0.05, ALPHA / 2)
    assert not surely_above(covered, 120, 0.05, ALPHA / 2)
    assert surely_above(whole, 120, 0.05, ALPHA / 2)
    assert surely_above(missed, 120, 0.05, ALPHA / 2)


def told_wrong(truth, blocks, unsettled, k, *, apart, relative):
    """Return whether some cut is wrong, or groups told as tied are too far apart in the wrong order."""
    start = 0
    for number, block in enumerate(blocks):
        after = np.concatenate([*blocks[number + 1 :], np.empty(0, np.int64)]).astype(np.int64)
        if start < k and len(after) and truth[block].min() < truth[after].max():
            return True
        if start < k and number not in unsettled:
            mine = truth[block]
            later = np.maximum.accumulate(mine[::-1])[::-1]
            if (mine < later * (1 - relative) - apart)[: k - start].any():
                return True
        start += len(block)
    return False


CLOSE = 10_000 - np.array([0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 500.0, 503.0, *[2_000.0] * 20])


@pytest.mark.statistical
@pytest.mark.parametrize("case", [(0.0, 0.0), (4.0, 0.0), (0.0, 0.0005)])
def test_what_a_ranking_tells_as_settled_is_right(case):
    """Very close groups, told apart or tied: in no more than beta of the runs is anything wrong, or an interval off."""
    apart, relative = case
    wrong, missed, settled = ranked(CLOSE, 6, 100, seed=3, apart=apart, relative=relative, cap=1 << 62)

    assert not surely_above(wrong, 100, 0.05, ALPHA / 2)
    assert not surely_above(missed, 100, 0.05, ALPHA / 2)
    assert settled == 100


def passed(bound, *, runs, groups, seed, doublings=20):
    """Return in how many runs the lead of any of some equal groups over another passes a bound, at any look."""
    rng, sums, begun = np.random.default_rng(seed), np.zeros((runs, groups)), 0.0
    wrong = np.zeros(runs, bool)
    for information in 1.05 ** np.arange(doublings * 14):
        sums += rng.standard_normal(sums.shape) * np.sqrt(2 * (information - begun))
        begun = information
        wrong |= (sums > bound(information) * information).any(axis=1)
    return int(wrong.sum())


@pytest.mark.statistical
def test_leads_are_proved_over_all_looks_and_groups_at_once():
    """Shared by 20 groups, beta holds over 280 looks; all of it for each, or a bound of one look, is caught."""
    beta, groups, likely = 0.05, 20, np.array([0.05])
    how = {"runs": 2_000, "groups": groups, "seed": 5}
    chance = np.array([beta / groups])
    right = passed(lambda t: proved_leads(chance, likely, t), **how)
    whole = passed(lambda t: proved_leads(chance * groups, likely, t), **how)
    peeked = passed(lambda t: -ndtri(chance) * np.sqrt(2 / t), **how)

    assert 0.01 < right / 2_000
    assert not surely_above(right, 2_000, beta, ALPHA)
    assert surely_above(whole, 2_000, beta, ALPHA / 2)
    assert surely_above(peeked, 2_000, beta, ALPHA / 2)


@pytest.mark.statistical
def test_ties_that_leave_no_room_for_noise_are_caught(monkeypatch):
    """Told as tied as soon as what is shown is near enough, groups are too far apart in the wrong order too often."""

    def careless(self, block, start, values, _):
        """Judge ties by what is shown, without the reach of the noise."""
        shown = values[block]
        return bool(self.ties and (shown[:-1] > shown[1:] - self.apart)[: self.k - start].all())

    truth = np.array([1_000.0, 994.0, 988.0, 982.0, 976.0, 100.0])
    right, _, _ = ranked(truth, 4, 100, seed=6, apart=5.0, cap=1 << 56)
    monkeypatch.setattr(places_module.RankingPlaces, "tied", careless)
    wrong, _, _ = ranked(truth, 4, 100, seed=6, apart=5.0, cap=1 << 56)

    assert not surely_above(right, 100, 0.05, ALPHA / 2)
    assert surely_above(wrong, 100, 0.05, ALPHA / 2)


def quotients(top, bottom, runs, *, seed, relative=0.1, interval=None):
    """Return how often the ratio of two lanes is missed, and how often its target was met."""
    question = JointMeasures(
        (RatioStatistic(0, 1, 0.0, 0.0, np.inf, (1.0, 1.0)),), ((relative, 0.0),), 0.05, (GRAIN, GRAIN), 1 << 56
    )
    truth = np.repeat(np.array([[bottom], [top]]), runs, axis=1)
    rng = np.random.default_rng(seed)

    def measure(grains, groups):
        """Return both lanes with Gaussian noise."""
        return truth[:, groups] + rng.standard_normal(grains.shape) / np.sqrt(np.maximum(grains, 1) * GRAIN)

    state = question.run(JointState.nothing(2, 1, runs), measure)
    lower, upper = (state.lower[0], state.upper[0]) if interval is None else interval(state)
    return int(((top / bottom < lower) | (top / bottom > upper)).sum()), float(state.met.mean())


@pytest.mark.statistical
@pytest.mark.parametrize("top", [0.0, 40.0, 2_000.0, 30_000.0])
def test_a_ratio_of_two_sums_is_covered(top):
    """At small and large ratios, above and below one, Fieller's interval misses no more than beta."""
    for number, bottom in enumerate((30.0, 1_000.0, 20_000.0)):
        missed, _ = quotients(top, bottom, 2_000, seed=number)

        assert not surely_above(missed, 2_000, 0.05, ALPHA / 3)


@pytest.mark.statistical
def test_a_ratio_that_ignores_the_noise_below_is_caught():
    """With the error of the top alone an interval of a large ratio is far too narrow."""

    def careless(state):
        """Return the top's interval over the bottom."""
        bottom, top = state.means
        half = two_sided(0.05) / np.sqrt(state.information[1] * GRAIN)
        return (top - half) / bottom, (top + half) / bottom

    missed, met = quotients(60_000.0, 20_000.0, 3_000, seed=8, interval=careless)

    assert met > 0.99
    assert surely_above(missed, 3_000, 0.05, ALPHA)


@pytest.mark.statistical
def test_a_difference_is_a_signed_sum():
    """One signed sum covers at the width of its own noise; that of two counts at as much information each does not."""
    runs, information = 20_000, 1 << 50
    rng = np.random.default_rng(2)
    half = two_sided(0.05) / np.sqrt(information * GRAIN)
    noise = rng.standard_normal((2, runs)) / np.sqrt(information * GRAIN)

    assert not surely_above(int((np.abs(noise[0]) > half).sum()), runs, 0.05, ALPHA / 2)
    assert surely_above(int((np.abs(noise[0] - noise[1]) > half).sum()), runs, 0.05, ALPHA / 2)
