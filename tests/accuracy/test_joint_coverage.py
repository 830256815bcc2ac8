"""Joint answers cover the truth at the stated confidence, whatever was looked at on the way."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import (
    DEVIATION,
    FIVE,
    LESS,
    MEAN,
    PER_GRAIN,
    SAMPLE,
    SUM,
    VARIANCE,
    in_claims,
    joint,
    lanes,
    misses,
    source,
    start,
)
from accuracy.runs import surely_above
from levels import ALPHA
from sweeps import sweep

from farthing.accuracy.joint_pivot import Pivot
from farthing.accuracy.statistics import RatioStatistic
from farthing.accuracy.stop_rule import two_sided
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query
from farthing.query.aggregates import NamedAggregate, Variance
from farthing.query.expressions import Column
from farthing.session.answering.joint_measures import JointMeasuresMethod, blob_of

pytestmark = pytest.mark.thorough

SHAPES = ((60.0, 800.0), (50.0, 2500.0), (99.0, 1e-3), (52.0, 30.0), (5.0, 100.0))
SIZES = sweep((0.0, 100.0, 1e6), (0.0, 3.0, 100.0, 1e4, 1e6))


def missed(question, shape, size, runs, *, seed, smaller=1.0):
    """Return the most misses among the outputs of `runs` groups that are alike."""
    truth = np.repeat(lanes(size, *shape)[:, None], runs, axis=1)
    state = question.run(start(question, runs), source(truth, np.random.default_rng(seed), smaller=smaller))
    return int(misses(question, state, truth).max())


@pytest.mark.statistical
@pytest.mark.parametrize(("made", "relative"), [(in_claims, 0.05), (joint, 0.3)], ids=["claims", "looks"])
def test_every_size_and_shape_is_covered(made, relative):
    """No output of any (size, shape) misses more than beta, by exact binomial bounds."""
    question, runs = made(FIVE, relative, cap=2**54), sweep(1_000, 2_000)
    cells = [(shape, size) for shape in SHAPES for size in SIZES]
    refuted = [
        cell
        for number, cell in enumerate(cells)
        if surely_above(missed(question, *cell, runs, seed=number), runs, 0.05, ALPHA / len(cells) / 6)
    ]

    assert [] == refuted


@pytest.mark.statistical
@pytest.mark.parametrize("statistic", [MEAN, VARIANCE, DEVIATION, SAMPLE, SUM], ids=lambda s: type(s).__name__)
def test_one_output_alone_is_covered(statistic):
    """Each kind of output by itself: its lanes are measured in very different proportions."""
    for number, (shape, size) in enumerate((s, n) for s in SHAPES[:4] for n in (1e3, 1e6)):
        runs = sweep(1_500, 3_000)
        count = missed(joint((statistic,), 0.1), shape, size, runs, seed=60 + number)
        assert not surely_above(count, runs, 0.05, ALPHA / 8)


def misses_by_looks(statistic, shape, runs=30_000, relative=0.3):
    """Return the misses of a mean or deviation alone, and of how many groups."""
    return missed(joint((statistic,), relative), shape, 1e4, runs, seed=70), runs


@pytest.mark.statistical
def test_a_deviation_by_looks_is_covered(monkeypatch):
    """Where its interval is exact c is needed: at the critical value of a single look it would miss too often."""
    shape = (80.0, 50.0)
    assert not surely_above(*misses_by_looks(DEVIATION, shape), 0.05, ALPHA)

    monkeypatch.setattr("farthing.accuracy.variance_looks.critical_value", lambda *known: two_sided(known[0]))
    assert surely_above(*misses_by_looks(DEVIATION, shape), 0.05, ALPHA)


@pytest.mark.statistical
def test_several_answers_by_looks_are_covered(monkeypatch):
    """A mean and a deviation together, told at the first look that suits both, would miss too often at a look's z."""
    question, shape, runs = joint((MEAN, DEVIATION), 0.3), (80.0, 50.0), 20_000
    assert not surely_above(missed(question, shape, 1e4, runs, seed=71), runs, 0.05, ALPHA / 2)

    monkeypatch.setattr("farthing.accuracy.joint_looks.critical_value", lambda *known: two_sided(known[0]))
    assert surely_above(missed(question, shape, 1e4, runs, seed=71), runs, 0.05, ALPHA)


def misses_near_ends(number, runs=30_000):
    """Return the misses of means where an end of the range nearly helps, of how many: an absolute part, a far range."""
    around, beyond = RatioStatistic(0, 1, 0.0, -50.0, 50.0), RatioStatistic(0, 1, 75.0, 25.0, 125.0)
    statistic, absolute, offset = ((around, 10.0, 24.5), (beyond, 0.0, -27.0))[number]
    return missed(joint((statistic,), 0.3, absolute), (50 + offset, 800.0), 1e4, runs, seed=72), runs


@pytest.mark.statistical
def test_looks_that_end_where_the_range_does_are_covered(monkeypatch):
    """A mean just below those that the end of the range helps is told too high at c; at the larger c it is not."""
    shape = (53.0, 800.0)
    assert not surely_above(*misses_by_looks(MEAN, shape), 0.05, ALPHA / 4)
    assert not surely_above(*misses_by_looks(MEAN, (39.5, 800.0), relative=0.42), 0.05, ALPHA / 4)
    assert not any(surely_above(*misses_near_ends(number), 0.05, ALPHA / 4) for number in (0, 1))

    monkeypatch.setattr("farthing.accuracy.ratio_looks.cut_critical", lambda *known, **_: known[0])
    assert surely_above(*misses_by_looks(MEAN, shape), 0.05, ALPHA)
    assert all(surely_above(*misses_near_ends(number), 0.05, ALPHA) for number in (0, 1))


@pytest.mark.statistical
def test_noise_that_is_larger_than_it_says_is_caught():
    """Had measurements a quarter more noise than they say, a mean would miss far more than 5 %: the test sees it."""
    assert surely_above(
        missed(joint((MEAN,), 0.02), (60.0, 800.0), 1e5, 8_000, seed=5, smaller=0.8), 8_000, 0.05, ALPHA
    )
    assert not surely_above(missed(joint((MEAN,), 0.02), (60.0, 800.0), 1e5, 8_000, seed=5), 8_000, 0.05, ALPHA)


@pytest.mark.statistical
def test_claiming_by_all_measurements_is_caught():
    """Stopping when the interval of *all* measurements is narrow enough, look after look, misses too often."""
    question, runs = joint((MEAN,), 0.5), 10_000
    truth = np.repeat(lanes(1e5, 30.0, 800.0)[:, None], runs, axis=1)
    measure = source(truth, np.random.default_rng(8))
    shape = np.array([1, 2, 0])[:, None]
    information, means, active = np.zeros((3, runs), np.int64), np.zeros((3, runs)), np.arange(runs)
    lower, upper, ticks = np.zeros((1, runs)), np.zeros((1, runs)), 1 << 16
    while len(active):
        grains = np.repeat(shape * ticks, len(active), axis=1)
        total = information[:, active] + grains
        means[:, active] += (measure(grains, active) - means[:, active]) * grains / np.maximum(total, 1)
        information[:, active] = total
        variances = question.prices.variances(total)
        low, high = question.prices.intervals(means[:, active], variances, 0.05)
        lower[:, active], upper[:, active] = low, high
        active = active[question.prices.ratio(low, high)[0] > 1]
        ticks = max(1, int(total[0, 0]) // 40)
    naive = replace(start(question, runs), lower=lower, upper=upper)

    assert surely_above(int(misses(question, naive, truth)[0]), runs, 0.05, ALPHA)


@pytest.mark.statistical
def test_a_sharpened_answer_is_covered():
    """Asked at 20 %, then 10 %, then 5 %, each choice made after the last answer, intervals cover like a first one."""
    runs = 4_000
    truth = np.repeat(lanes(2e4, 60.0, 800.0)[:, None], runs, axis=1)
    measure = source(truth, np.random.default_rng(9))
    state = start(joint((MEAN, VARIANCE), 0.2), runs)
    for relative in (0.2, 0.1, 0.05):
        question = joint((MEAN, VARIANCE), relative)
        state = question.run(state, measure)
        assert not surely_above(int(misses(question, state, truth).max()), runs, 0.05, ALPHA / 6)


@pytest.mark.statistical
def test_a_binding_cap_and_a_named_loss_are_covered():
    """Groups that stop at the cap, are given up, or were given a loss, have honest intervals."""
    for number, (relative, cap) in enumerate(((0.1, 2**36), (0.1, 2**30), (0.0, 2**36))):
        for size in (100.0, 3_000.0, 3e4):
            count = missed(joint(FIVE, relative, cap=cap), (60.0, 800.0), size, 3_000, seed=90 + number)
            assert not surely_above(count, 3_000, 0.05, ALPHA / 9 / len(FIVE))


@pytest.mark.statistical
@pytest.mark.parametrize("spend", [False, True])
def test_groups_that_are_given_up_are_covered(spend):
    """Given up after the pilot, between stages, or never: whatever a group may pay, its interval is honest."""
    kinds = ((joint, (MEAN,)), (in_claims, (MEAN, DEVIATION)), (joint, (MEAN, DEVIATION)))
    cells = [(*kind, times) for kind in kinds for times in (1.2, 1.6, 2.5, 5.0, 40.0)]
    for number, (made, kind, times) in enumerate(cells):
        question, runs = replace(made(kind, 0.1, cap=int(2**41.6 / times)), spend=spend), sweep(1_500, 3_000)
        count = missed(question, (60.0, 800.0), 3_000.0, runs, seed=200 + number)
        assert not surely_above(count, runs, 0.05, ALPHA / len(cells) / 3 / 2)


def misses_after_a_cap(spend, kind=(MEAN,), runs=4_000):
    """Return the misses of claims that a cap stopped: there, under a larger cap, and at a sharper target."""
    truth = np.repeat(lanes(1e4, 60.0, 800.0)[:, None], runs, axis=1)
    measure, found = source(truth, np.random.default_rng(31)), []
    once = in_claims(kind, 0.05).run(
        start(in_claims(kind, 0.05), 200), source(truth[:, :200], np.random.default_rng(1))
    )
    for part in (0.4, 0.6):
        capped = replace(in_claims(kind, 0.05, cap=int(once.paid.mean() * part)), spend=spend)
        state = start(capped, runs)
        for question in (capped, in_claims(kind, 0.05), in_claims(kind, 0.04)):
            state = question.run(state, measure)
            found.append((int(misses(question, state, truth).max()), runs))
    return found


@pytest.mark.statistical
def test_a_claim_that_a_cap_paused_is_covered(monkeypatch):
    """Each answer of a paused claim keeps its confidence; not if what came after the pause counted twice."""
    cells = [cell for spend in (False, True) for cell in misses_after_a_cap(spend)]
    assert not any(surely_above(*cell, 0.05, ALPHA / len(cells)) for cell in cells)

    monkeypatch.setattr("farthing.accuracy.joint_claims._Pause.left", with_what_came_after)
    assert any(surely_above(*cell, 0.05, ALPHA / 6) for cell in misses_after_a_cap(spend=False))


def with_what_came_after(pause, now, shape, guess, planned):
    """Leave a paused claim as if all of it were yet to be shared."""
    shown = now.weighted / now.time
    return Pivot(shape, shown, now.time, guess, planned, shown, now.time, pause.done)


def misses_after_plain_squares(kept, runs=6_000):
    """Return the misses of a variance at 1.8 % that goes on from one at 2 % of squares that were not re-centred.

    With `kept` the claim stays, as if the errors of squares and rows were still independent.
    """
    plain, rng = replace(VARIANCE, less=0.0), np.random.default_rng(12)
    worth = (*PER_GRAIN[:2], PER_GRAIN[2] / 4)
    truth = np.repeat(lanes(2e4, 50.0, 833.0)[:, None], runs, axis=1)
    squares = truth + np.array([[0], [0], [LESS]]) * truth[:1]
    state = replace(joint((plain,), 0.02), per_grain=worth).run(
        start(joint((plain,), 0.02), runs), source(squares, rng, per_grain=worth)
    )
    query = Query("t", (), None, None, (NamedAggregate("v", Variance(Column("x"), 0, 100)),), PrivacyUnit(), Bounds())
    read = JointMeasuresMethod.of(query, blob_of(state)).state
    if kept:
        shown, guess = (old - np.array([[0], [0], [LESS]]) * old[:1] for old in (state.pivot.shown, state.pivot.guess))
        read = replace(read, pivot=replace(state.pivot, shown=shown, guess=guess, base=shown))
    question = joint((VARIANCE,), 0.018)
    return int(misses(question, question.run(read, source(truth, rng)), truth).max()), runs


@pytest.mark.statistical
def test_a_variance_that_goes_on_from_plain_squares_is_covered():
    """What an older version measured is a pilot: a sharper answer keeps its confidence; with its claim it would not."""
    assert not surely_above(*misses_after_plain_squares(kept=False), 0.05, ALPHA)
    assert surely_above(*misses_after_plain_squares(kept=True), 0.05, ALPHA)


def chained_misses(ladder, seed, made=in_claims, runs=6_000, shape=(60.0, 800.0)):
    """Return the most misses among outputs after each ask of a ladder of (relative, absolute, beta)."""
    truth = np.repeat(lanes(2e4, *shape)[:, None], runs, axis=1)
    measure = source(truth, np.random.default_rng(seed))
    state, found = start(made((MEAN, DEVIATION), 0.2), runs), []
    for relative, absolute, beta in ladder:
        question = made((MEAN, DEVIATION), relative, absolute, beta=beta)
        state = question.run(state, measure)
        found.append((int(misses(question, state, truth).max()), beta))
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("ladder", [
    [(0.1, 0.0, 0.05), (0.099, 0.0, 0.05), (0.097, 0.0, 0.05), (0.09, 0.0, 0.05)],
    [(0.3, 0.0, 0.05), (0.02, 0.0, 0.05), (0.0, 0.5, 0.05)],
    [(0.05, 0.0, 0.1), (0.05, 0.0, 0.05), (0.05, 0.0, 0.01), (0.1, 2.0, 0.002)],
    [(0.0, 8.0, 0.05), (0.0, 2.0, 0.05), (0.02, 2.0, 0.05), (0.02, 0.4, 0.05)],
], ids=["slightly", "far", "surer", "mixed"])  # fmt: skip
def test_every_answer_of_a_chain_is_covered_by_itself(ladder):
    """Slightly sharper, much sharper, surer, and from one kind of target to another: each by itself."""
    for made in (in_claims, joint):
        for count, beta in chained_misses(ladder, len(ladder), made):
            assert not surely_above(count, 6_000, beta, ALPHA / 16)


@pytest.mark.statistical
def test_a_claim_that_counts_what_it_holds_twice_is_caught(monkeypatch):
    """Did a sharper claim keep all of the old one's clock, beside its fresh stages, it would miss far more than 5 %."""
    honest = np.sqrt

    class Doubled:
        """numpy, but for the root of what is kept."""

        def __getattr__(self, name):
            return getattr(np, name)

        @staticmethod
        def sqrt(x):
            kept = isinstance(x, np.ndarray) and x.ndim == 1 and ((x > 0) & (x < 0.5)).all()
            return honest(4 * x) if kept else honest(x)

    monkeypatch.setattr("farthing.accuracy.joint_claims.np", Doubled())
    count, beta = chained_misses([(0.1, 0.0, 0.05), (0.05, 0.0, 0.05)], seed=3)[-1]

    assert surely_above(count, 6_000, beta, ALPHA)
