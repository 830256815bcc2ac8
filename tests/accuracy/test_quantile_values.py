"""A search for a quantile by value: its bets lose on wrong claims, its intervals hold, no threshold costs any price."""

import ast
from pathlib import Path

import numpy as np
import pytest
from accuracy.runs import ranks_of
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import ALPHA
from scipy.stats import binom, norm
from sweeps import sweep

from farthing.accuracy import quantile_neighbours, quantile_value_bets
from farthing.accuracy.quantile_bets import STAKE, partly, won_at_most
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_neighbours import LEND, Offset, on_steps, rising
from farthing.accuracy.quantile_rank_run import UP, surely
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal
from farthing.accuracy.quantile_trail import BEFORE, PAST
from farthing.accuracy.quantile_value import ValueTarget
from farthing.accuracy.quantile_value_bets import Bet, ValueBets
from farthing.accuracy.quantile_value_run import ValueRun
from farthing.accuracy.quantile_windows import NextLook, Windows
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded

BETA, LEAVES_LOG2 = 0.05, 16
LEAVES = 1 << LEAVES_LOG2


def searched(leaf, q=0.5, *, beta=BETA, cap=1 << 60, seed=3, held=None, **target):
    """Return the plan of a search among groups of leaves, and what it comes to."""
    groups = len(leaf)
    ranks = ranks_of(leaf, LEAVES_LOG2)
    plan = QuantileBisection(QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2), beta, cap, **target)
    noisy = NoisyRanks(ranks, plan.asked, seeded(seed))
    return plan, plan.run(noisy.measure, noisy.measure_count, groups=groups, held=held)


def gained(seen, rate, needs, *, before, told, side):
    """Return what one look, to prove a side, adds to what was won at a threshold, as logarithms."""
    mean, information = seen
    runs = len(mean)
    bets = ValueBets(*np.full((3, 1, runs), before))
    full = np.full(runs, information), *(np.full(runs, each) for each in (rate, needs, told))
    row, at, sides = np.zeros(runs, np.int64), np.arange(runs), np.full(runs, side)
    won = bets.add(row, at, sides, (mean, full[0]), Bet(*full[1:]))[0 if side > 0 else 1]
    return won - partly(STAKE, np.full(runs, before))


@settings(max_examples=sweep(20, 200), deadline=None)
@given(
    st.tuples(*(st.floats(*ends) for ends in ((-3, 3), (-1, 1), (0, 2), (0.5, 1.0), (0.1, 9), (-4, 4)))), st.booleans()
)
def test_a_bet_on_a_wrong_claim_wins_nothing_in_the_mean(drawn, past):
    """By quadrature, for any information, rate and need: at 0 and above, with as little noise as may be."""
    size, rate, off, told, needs, before = drawn
    information, side = 10**size, 1 if past else -1
    for variance in (told, 1.0):
        mean = off + np.linspace(-9, 9, 20_001) * np.sqrt(variance / information)
        density = norm.pdf(mean, off, np.sqrt(variance / information))
        rates = 10**rate / np.sqrt(information)
        more = gained((side * mean, information), rates, needs, before=before, told=told, side=side)

        assert np.trapezoid(np.exp(more) * density, mean) <= 1 + 1e-5
        assert (more <= max(needs - partly(STAKE, np.array(before)), 0) + 1e-9).all()


@pytest.mark.statistical
def test_an_end_costs_less_than_a_test():
    """Where D is off as was thought, small looks prove it for two thirds of 10.8, the price of a test without luck."""
    assert 6.8 < stopped(-1.0)[2] < 7.3


def unpaid(most, mean, information, _rate, surely=1.0):
    """The planted bug: how far a threshold is off is chosen after the looks."""
    return won_at_most(most, mean, information, np.maximum(-mean, 0.0), surely)


def stopped(off, looks=60, runs=20_000):
    """Return how often bets that the quantile is past a threshold, off by so many rows, ever win 1/beta; of how many;
    and the information that those took in the mean.
    """
    rng, bets = np.random.default_rng(11), ValueBets.none(runs)
    row, at, side = np.zeros(runs, np.int64), np.arange(runs), np.ones(runs, np.int64)
    ever, paid = np.zeros(runs, np.bool_), np.zeros(runs)
    bet = Bet(np.ones(runs), np.full(runs, -np.log(BETA) * UP), surely(np.full(runs, 1 << 30)))
    for look in range(looks):
        information = np.full(runs, 0.5 * 1.1**look)
        paid += information * ~ever
        seen = (off + rng.normal(size=runs) / np.sqrt(information), information)
        past, _ = bets.add(row, at, side, seen, bet)
        ever |= past >= -np.log(BETA)
    return int(ever.sum()), runs, paid.mean()


@pytest.mark.statistical
def test_a_side_that_is_wrong_is_proved_as_rarely_as_told(monkeypatch):
    """On the very edge at most beta of all runs ever prove it, and not far fewer; a true one is proved. A bet that does
    not pay for choosing how far a threshold is off proves it too often.
    """
    wrong, runs, _ = stopped(0.0)
    assert 0.3 * BETA * runs < wrong <= binom.isf(ALPHA, runs, BETA)
    assert stopped(1.0)[0] < wrong
    assert stopped(-1.0)[0] > 0.99 * runs

    monkeypatch.setattr(quantile_value_bets, "won_at_most", unpaid)
    assert stopped(0.0)[0] > binom.isf(ALPHA, runs, BETA)


@pytest.mark.statistical
@pytest.mark.parametrize("below", [4_999, 5_001])
def test_an_interval_holds_however_it_is_looked_for(below, monkeypatch):
    """A guess that looks anywhere, to prove either side, at thresholds that are off by one row: no more than beta of
    the intervals miss. With bets that do not pay for choosing how far a threshold is off more do.
    """
    rng, groups, beta = np.random.default_rng(13), 600, 0.2

    wrong = 1 if below >= 5_000 else -1

    def blind(places, sides):
        def looks(self):
            many = len(self.low)
            information = rng.choice([0.02, 0.5], many) * 1e-4
            rate = rng.choice([30.0, 100.0, 300.0], many)
            return NextLook(
                rng.choice(places, many), information, rng.choice(sides, many), rate, *np.zeros((2, many)), rate
            )

        monkeypatch.setattr(Windows, "next", looks)
        leaf = np.tile(np.repeat([100, 900], [below, 10_000 - below]), (groups, 1))
        _, state = searched(leaf, beta=beta, cap=1 << 47, absolute=30.0, spend=True)
        true = 100 if wrong > 0 else 900
        return int(((state.lower > true + 1) | (state.upper < true)).sum())

    most = binom.isf(ALPHA, groups, beta)
    assert blind([99, 100, 500, 899, 900], [-1, 0, 1]) <= most
    assert 0 < blind([500], [wrong]) <= most
    monkeypatch.setattr(quantile_value_bets, "won_at_most", unpaid)
    assert blind([500], [wrong]) > most


@settings(max_examples=sweep(20, 200), deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.01, 9)), min_size=1, max_size=12))
def test_what_places_tell_is_made_to_rise(places):
    """The result rises, keeps the best known place, lies among what was told, and what rises is left alone."""
    values, variance = (np.array(each)[:, None] for each in zip(*places, strict=True))
    found = rising(values, variance)

    assert (np.diff(found, axis=0) >= 0).all()
    assert found[variance.argmin()] == values[variance.argmin()]
    assert set(found.ravel()) <= set(values.ravel())
    assert np.array_equal(rising(np.sort(values, axis=0), variance), np.sort(values, axis=0))


@settings(max_examples=sweep(20, 200), deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0.01, 9)), min_size=1, max_size=12))
def test_what_a_step_tells_lies_between_its_places(places):
    """Of each place it is among what was shown, and no less is known of it; other groups make no difference."""
    off, variance = (np.array(each)[:, None] for each in zip(*places, strict=True))
    thresholds, ends = 10 * np.arange(len(off))[:, None] + 5, (np.array([-30.0]), np.array([30.0]))
    told = on_steps(thresholds, Offset(off, variance), ends)
    wide = (np.hstack([thresholds, thresholds + 1]), Offset(np.hstack([off, -off]), np.hstack([variance, variance])))
    both = on_steps(*wide, (ends[0].repeat(2), ends[1].repeat(2)))

    assert (told.variance <= variance + 1e-12).all()
    assert (off.min() - 1e-9 <= told.off).all()
    assert (told.off <= off.max() + 1e-9).all()
    assert np.array_equal(both.off[:, 0], told.off[:, 0])


def test_places_on_a_step_are_known_together_and_on_a_slope_apart():
    """Three on a step, one below it; on a slope, where a straight line says as much, all stay as they are. One that is
    hardly known by itself stays in doubt.
    """
    ends, variance = (np.array([-40.0]), np.array([40.0])), np.full((4, 1), 0.1)
    far, near = (np.array(each)[:, None] for each in ([1, 500, 700, 900], [1, 12, 13, 14]))
    step = on_steps(far, Offset(np.array([[-9.0], [3.1], [2.9], [3.0]]), variance), ends)
    doubt = np.array([[0.1], [0.001], [0.001], [0.5]])
    lent = on_steps(far, Offset(np.array([[-9.0], [3.0], [3.0], [3.0]]), doubt), ends)
    slope = on_steps(near, Offset(np.array([[-9.0], [1.0], [2.0], [3.0]]), variance), ends)

    assert step.off.ravel().tolist() == pytest.approx([-9, 3, 3, 3])
    assert step.variance.ravel().tolist() == pytest.approx([0.1, 0.1 / 3, 0.1 / 3, 0.1 / 3])
    assert lent.variance.ravel().tolist() == pytest.approx([0.1, 0.0005, 0.0005, 0.5 / (1 + LEND)], rel=1e-3)
    assert slope.off.ravel().tolist() == pytest.approx([-9, 1, 2, 3])


@pytest.mark.statistical
def test_a_gap_beside_a_lump_is_not_paid_for():
    """The median is on a lump of 1 % of the rows between two gaps, so that each threshold is off by 50 rows: if those
    beside it are looked at first, the search costs about as much as two tests more; if not, 9.9 times two tests.
    """
    rng, groups = np.random.default_rng(17), 200
    lumps, parts = rng.integers(1_000, LEAVES - 1_000, (groups, 1)), np.array([4_950, 100, 4_950])
    leaf = np.repeat(np.hstack([np.zeros_like(lumps), lumps, np.full_like(lumps, LEAVES - 1)]), parts, axis=1)
    _, state = searched(leaf, absolute=40.0)
    two_tests = 2 * (2 * 1.645 * 0.5 / 50) ** 2

    assert state.met.all()
    assert state.paid.mean() * float(GRAIN) < 4 * two_tests


@pytest.mark.statistical
def test_thresholds_on_a_step_tell_of_one_another(monkeypatch):
    """Where the median is on a small lump below a wide gap, a search costs half of what it does if each threshold in
    the gap is known by its own looks alone.
    """
    shares = [0.3, 0.19, 0.02, 0.4, 0.09]
    leaf = np.random.default_rng(1).choice([80, 1_600, 1_616, 20_000, 40_000], (200, 10_000), p=shares)
    together = searched(leaf, relative=0.05)[1].paid
    monkeypatch.setattr(quantile_neighbours, "LEND", 0.0)
    alone = searched(leaf, relative=0.05)[1].paid

    assert np.log(together / alone).mean() < np.log(0.65)


@pytest.mark.statistical
@pytest.mark.parametrize("place", [0, 3, -40])
def test_no_threshold_costs_any_price(place):
    """Even ranks whose median lies on the first threshold of a halving, or a row or forty beside it, cost about what
    two tests do of who knows all values; halving cost thousands of times as much.
    """
    rows, groups, half = 10_000, 40, 0.05 / 1.05
    leaf = np.tile(((np.arange(rows) + 0.5 - place) / rows * LEAVES).clip(0, LEAVES - 1).astype(np.int64), (groups, 1))
    plan, state = searched(leaf, relative=0.05)
    two_tests = 2 * (2 * 1.645 * 0.5 / (half * rows / 2)) ** 2

    assert state.met.all()
    assert state.paid.mean() * float(GRAIN) < 5 * two_tests
    assert plan.typical(rows) == pytest.approx(state.paid.mean(), rel=0.6)


@pytest.mark.statistical
def test_a_count_that_was_too_high_is_found_out():
    """Of 4,000 small groups some count far too many rows at first: none goes on and on for that."""
    looks = []
    leaf = np.random.default_rng(5).integers(0, LEAVES, (4_000, 100))
    groups = len(leaf)
    ranks = ranks_of(leaf, LEAVES_LOG2)
    plan = QuantileBisection(QuantileGoal(0.5, 0.0, float(LEAVES), LEAVES_LOG2), BETA, 1 << 62, relative=0.3)
    noisy = NoisyRanks(ranks, plan.asked, seeded(6))
    state = plan.run(noisy.measure, noisy.measure_count, groups=groups, progress=lambda look, *_: looks.append(look))

    assert state.met.mean() > 0.99
    assert state.paid.max() < 60 * np.median(state.paid)
    assert looks[-1] < 400


def test_only_looks_that_are_to_prove_a_side_are_bet_on_and_not_for_much_wider_targets():
    """What a look is for is kept with it; a sharper search reads the others, and those, to find places alone."""
    leaf = np.random.default_rng(7).integers(0, LEAVES, (30, 2_000))
    _, wide = searched(leaf, relative=0.4)
    proofs = (wide.trail.kinds & (PAST | BEFORE)) != 0

    def read(relative):
        plan = QuantileBisection(QuantileGoal(0.5, 0.0, float(LEAVES), LEAVES_LOG2), BETA, 1 << 60, relative=relative)
        run = ValueRun.of(plan, wide.trail, np.zeros(30, np.bool_), None, None)
        while run.active.any():
            run.look(np.flatnonzero(run.active))
        return run

    assert proofs.any(axis=0).all()
    assert not proofs.all(axis=0).any()
    assert read(0.4).within(np.arange(30)).all()
    near, far = read(0.2), read(0.15)
    assert np.allclose(
        near.sides.information.sum(axis=0), (wide.trail.grains * proofs).sum(axis=0) * near.plan.per_grain
    )
    assert not far.sides.information.any()
    assert np.array_equal(near.places.information, far.places.information)


def test_one_place_measures_for_a_search():
    """By rank, by value or by either: what is measured goes through one method, which keeps it and what it costs."""
    calls = []
    for path in sorted(Path(quantile_value_bets.__file__).parent.glob("quantile_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
                names = [each.attr for each in called if isinstance(each, ast.Attribute)]
                calls += [(node.name, name) for name in names if name in {"measure", "measure_count"}]

    drawn = {("_noisy", "measure"), ("show", "measure")}  # by the mechanisms themselves, Gaussian and Laplace
    assert set(calls) == drawn | {("_bought", "measure"), ("_bought", "measure_count")}
    assert len([name for name, _ in calls if name == "_bought"]) == len({"measure", "measure_count"})


def test_targets_are_compared_in_each_error_that_both_name():
    """More than two and a quarter times as wide in all of them; one that names other errors is not."""
    asked = QuantileGoal(0.5, 0.0, 1000.0)
    mine = ValueTarget(asked, 0.1, 5.0)
    others = [(0.21, 10.5), (0.24, 10.5), (0.24, 12.0), (0.3, 0.0), (0.0, 12.0), (0.0, 9.0)]
    codes = np.array([ValueTarget(asked, *one).code for one in others])

    assert mine.much_narrower_than(codes).tolist() == [False, False, True, True, True, False]
    assert not ValueTarget(asked, 0.1, 0.0).much_narrower_than(codes[-2:]).any()
    assert 0 <= ValueTarget(asked, 1e-12, 1e12).code < 1 << 20


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["even", "lumps"])
def test_a_rank_or_a_value_will_do(kind):
    """Where either is asked for, the cheaper one is met, and both claims hold."""
    rng, groups, rows = np.random.default_rng(8), 300, 2_000
    leaf = rng.integers(0, LEAVES, (groups, rows)) if kind == "even" else rng.choice([9, 900, 9_000], (groups, rows))
    ranks = ranks_of(leaf, LEAVES_LOG2)
    for rank, absolute in ((0.02, 20_000.0), (0.2, 5.0)):
        plan = QuantileBisection(
            QuantileGoal(0.5, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank), 0.2, 1 << 60, absolute=absolute
        )
        noisy = NoisyRanks(ranks, plan.asked, seeded(9))
        state = plan.run(noisy.measure, noisy.measure_count, groups=groups)
        true = np.sort(leaf, axis=1)[:, rows // 2 - 1]
        missed = (state.lower > true + 1) | (state.upper < true)

        assert state.met.all()
        assert missed.sum() <= binom.isf(ALPHA, groups, 0.2)
        assert (state.by_rank.mean() > 0.5) == (rank == 0.2)


def test_nothing_is_measured_of_what_is_known():
    """The same again is free, and so is a wider target that the interval meets already."""
    leaf = np.random.default_rng(12).integers(0, LEAVES, (20, 3_000))
    plan, state = searched(leaf, relative=0.1)
    again = plan.replayed(state.trail, np.zeros(20, np.bool_))

    assert not again.waits.any()
    assert np.array_equal(again.lower, state.lower)
    wider, _ = searched(leaf, relative=0.2)
    assert not wider.replayed(state.trail, np.zeros(20, np.bool_)).waits.any()


def test_what_is_not_met_is_told_as_a_guess_within_its_interval():
    """A cap that ends a search leaves a value where ranks seemed to cross, and the same when it is read again."""
    leaf = np.random.default_rng(14).normal(20_000, 2_000, (50, 4_000)).clip(0, LEAVES - 1).astype(np.int64)
    plan, state = searched(leaf, relative=0.001, cap=1 << 42)
    again = plan.replayed(state.trail, np.zeros(50, np.bool_))

    assert not state.met.any()
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert np.abs(state.value - 20_000).mean() < 1_000 < np.abs((state.lower + state.upper) / 2 - 20_000).mean()
    assert np.array_equal(again.value, state.value)
