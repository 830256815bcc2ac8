"""The life of a joint question: price, cap, stop, free, sharper, named losses."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import COUNT, DEVIATION, FIVE, GRAIN, MEAN, SUM, VARIANCE, in_claims, joint, lanes, source, start

from farthing.accuracy.joint_claims import WEIGHTS, WEIGHTS_COARSE, ClaimPurse
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_pilot import pilot
from farthing.accuracy.joint_pivot import Pivot
from farthing.accuracy.joint_prices import balanced, in_blocks, in_parts
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import Linear, RatioStatistic
from farthing.accuracy.stop_rule import two_sided

KINDS = {"mean": (MEAN,), "variance": (VARIANCE,), "deviation": (DEVIATION,), "five": FIVE}


def answered(question, sizes, *, state=None, seed=1, log=None, mean=60.0):
    """Run a question on groups of those sizes."""
    truth = np.stack([lanes(size, mean, 800.0) for size in sizes], axis=1)
    state = start(question, len(sizes)) if state is None else state
    return question.run(state, source(truth, np.random.default_rng(seed), log=log))


def test_groups_that_can_be_are_within_their_targets():
    """Every output of large groups is met, and costs less the larger the group."""
    state = answered(joint(FIVE, 0.1), [1e3, 1e4, 1e5])

    assert state.met.all()
    assert (np.diff(state.paid) < 0).all()


def test_cost_is_what_was_measured():
    """The information of the state is the exact sum of the grains that were measured."""
    log = []
    state = answered(joint(FIVE, 0.1), [1e3, 1e4, 1e5], log=log)
    total = np.zeros_like(state.information)
    for grains, groups in log:
        total[:, groups] += grains

    assert total.tolist() == state.information.tolist()


def test_linear_outputs_with_absolute_targets_have_an_exact_price():
    """One count within a: z^2/a^2, known beforehand, paid in one look, and sharpened for the difference."""
    question = joint((COUNT,), 0.0, 50.0)
    nothing, log = start(question, 2), []
    state = answered(question, [0.0, 1e6], log=log)
    sharper = answered(joint((COUNT,), 0.0, 25.0), [0.0, 1e6], state=state)

    assert (1.959964 / 50) ** 2 == pytest.approx(question.worst(nothing) * GRAIN, rel=1e-5)
    assert [question.worst(nothing)] * 2 == state.paid.tolist()
    assert 1 == len(log)
    assert state.met.all()
    assert 4 == pytest.approx(sharper.paid[0] / state.paid[0])
    assert question.typical(1e9) == question.worst(nothing)


def test_asking_again_is_free():
    """Met targets, looser ones, and a cap that was reached need no new look; a sharper target or a larger cap does."""
    question = joint((MEAN, VARIANCE), 0.1)
    state = answered(question, [1e4, 1e5])
    capped = answered(joint((MEAN,), 0.1, cap=2**30), [1e3, 1e4])

    assert question.free(state)
    assert joint((MEAN, VARIANCE), 0.15).free(state)
    assert not joint((MEAN, VARIANCE), 0.05).free(state)
    assert not joint((MEAN, VARIANCE), 0.1, beta=0.01).free(state)
    assert joint((MEAN,), 0.1, cap=2**30).free(capped)
    assert not joint((MEAN,), 0.1, cap=2**50).free(capped)
    assert int(state.paid.max()) == question.worst(state)


def test_free_means_that_nothing_is_measured():
    """A free question runs without a single measurement and returns the same answers."""
    question = joint((MEAN, VARIANCE), 0.1)
    state, log = answered(question, [1e4, 1e5]), []
    again = answered(question, [1e4, 1e5], state=state, log=log)

    assert [] == log
    assert state.value.tolist() == again.value.tolist()


def test_a_sharper_target_builds_on_what_was_released():
    """The second ask keeps all information and uses the next failure probability, without a pilot."""
    first, log = answered(joint((MEAN,), 0.1), [1e4] * 50), []
    second = answered(joint((MEAN,), 0.05), [1e4] * 50, state=first, log=log)

    assert (second.information >= first.information).all()
    assert second.stages > first.stages
    assert second.met.all()


@pytest.mark.parametrize("cap", [0, 1, 300, 2**13, 2**14, 2**20, 2**36])
@pytest.mark.parametrize("relative", [0.0, 0.1])
def test_no_group_passes_the_cap(cap, relative):
    """However small the cap: at most so many grains a group; without room for a claim nothing is known."""
    state = answered(joint(FIVE, relative, cap=cap), [0.0, 10.0, 1e4, 1e6])

    assert state.paid.max() <= cap
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()


def need(statistics, relative, size=3_000.0):
    """Return the grains that a group of that size pays where no cap binds, in the middle."""
    return int(np.median(answered(joint(statistics, relative, cap=2**58), [size] * 200).paid))


@pytest.mark.parametrize("kind", ["mean", "deviation", "five"])
def test_hopeless_groups_are_given_up_early(kind):
    """Groups that need 30 times the cap, or hold nothing, pay a fraction of it, say so, and are not asked again."""
    question = joint(KINDS[kind], 0.05, cap=need(KINDS[kind], 0.05) // 30)
    state = answered(question, [0.0] * 100 + [3_000.0] * 100)

    assert not state.met.all(axis=0).any()
    assert state.paid.mean() < 0.2 * question.cap_grains
    assert np.isfinite(state.upper - state.lower).all()
    assert question.free(state)


@pytest.mark.parametrize(("kind", "times", "most"), [
    *((kind, 4, 0.35) for kind in ("mean", "deviation", "five")),
    ("mean", 2, 0.6), ("five", 2, 0.6),
    ("deviation", 2, 0.7),  # a look at half of the cap is half of the price, and doubts a deviation more than a mean
])  # fmt: skip
def test_groups_somewhat_beyond_the_cap_are_given_up_too(kind, times, most):
    """Groups that need twice or four times the cap do not spend it; those that can be met are met as before."""
    cap = need(KINDS[kind], 0.05) // times
    state = answered(joint(KINDS[kind], 0.05, cap=cap), [3_000.0] * 200)
    enough = answered(joint(KINDS[kind], 0.05, cap=2 * times * cap), [3_000.0] * 200)

    assert state.paid.mean() < most * cap
    assert np.isfinite(state.upper - state.lower).all()
    assert enough.met.all(axis=0).mean() > 0.97


@pytest.mark.parametrize("relative", [0.02, 0.1])
def test_ratios_of_groups_that_hold_nothing_cost_little(relative):
    """Their interval has no end, and they are given up all the same, once; under a larger cap the others are met, and a
    sharper target under the same cap costs nothing more.
    """
    ratio = (RatioStatistic(0, 1, 0.0, -np.inf, np.inf),)
    cap = need(ratio, relative)
    careful, larger = joint(ratio, relative, cap=cap // 10), joint(ratio, relative, cap=2 * cap)
    before = answered(careful, [0.0] * 100 + [3_000.0] * 100)
    after = answered(larger, [0.0] * 100 + [3_000.0] * 100, state=before)

    assert not before.met.any()
    assert np.isfinite(before.upper - before.lower)[0, :100].mean() < 0.1
    assert before.paid.mean() < 0.25 * careful.cap_grains
    assert careful.free(before)
    assert not larger.free(before)
    assert after.met[0, 100:].mean() > 0.95
    assert after.paid[:100].mean() < 0.35 * larger.cap_grains
    sharper = joint(ratio, relative / 2, cap=cap // 10)
    assert (answered(sharper, [0.0] * 100 + [3_000.0] * 100, state=before).paid[:100] == before.paid[:100]).mean() > 0.9


def test_which_groups_stay_given_up_follows_from_targets_and_cap_alone():
    """Whatever they showed: under a larger cap all are measured again, for a sharper target under the same or a smaller
    cap none is.
    """
    ratio = (RatioStatistic(0, 1, 0.0, -np.inf, np.inf),)
    sizes, cap = [0.0] * 50 + [1_000.0] * 50 + [3_000.0] * 50, need(ratio, 0.1) // 10
    before = answered(joint(ratio, 0.1, cap=cap), sizes)
    given_up = before.pivot.given_up

    assert given_up[:50].any()
    assert given_up[100:].any()
    for relative, part, measured in ((0.1, 1.5, True), (0.08, 1.5, True), (0.08, 1.0, False), (0.08, 0.9, False)):
        after = answered(joint(ratio, relative, cap=int(part * cap)), sizes, state=before)
        more = after.paid[given_up] > before.paid[given_up]
        assert more.all() if measured else not more.any()


def test_a_question_that_was_answered_is_not_measured_again():
    """Whatever its claims came to, asked again at the same target and cap it is answered as it was."""
    ratio = (RatioStatistic(0, 1, 0.0, -np.inf, np.inf),)
    question = joint(ratio, 0.3, cap=need(ratio, 0.3) // 2)
    state = answered(question, [3_000.0] * 500)
    again = answered(question, [3_000.0] * 500, state=state)

    assert not state.met.all()
    assert question.free(state)
    assert (again.paid == state.paid).all()
    assert (again.value == state.value).all()


def test_a_cap_may_be_spent_nevertheless():
    """Told to spend, groups that need four times the cap pay all of it, also where they were given up before."""
    cap = need((MEAN,), 0.05) // 4
    careful, spend = joint((MEAN,), 0.05, cap=cap), replace(joint((MEAN,), 0.05, cap=cap), spend=True)
    before = answered(careful, [3_000.0] * 50)
    after = answered(spend, [3_000.0] * 50, state=before)

    assert careful.free(before)
    assert not spend.free(before)
    assert (after.paid > 0.9 * cap).all()
    assert (answered(spend, [3_000.0] * 50).paid > 0.9 * cap).all()
    assert spend.free(after)
    assert careful.free(after)


def test_what_is_known_beforehand_to_be_out_of_reach():
    """A count whose absolute target alone costs more than the cap; a cap that buys no look; else nothing."""
    both, targets = (COUNT, MEAN), ((0.0, 50.0), (0.0, 2.0))
    nothing = start(joint(both, 0.1), 2)

    def hopeless(statistics, targets, cap):
        """Tell it of a question."""
        return JointMeasures(statistics, targets, 0.05, joint(both, 0.1).per_grain, cap).hopeless(nothing)

    exact = int((1.959964 / 50) ** 2 / GRAIN)
    assert hopeless(both, targets, int(0.99 * exact))
    assert not hopeless(both, targets, int(1.01 * exact))
    assert not hopeless((MEAN,), ((0.0, 1e-6),), exact)
    assert hopeless((MEAN,), ((0.1, 0.0),), 1_000)
    assert not hopeless((MEAN,), ((0.0, 0.0),), 1_000)


def test_a_named_loss_is_spent_on_all_outputs():
    """Without targets nearly all of the cap is spent, every output is better than the whole range, nothing is unmet."""
    question = joint(FIVE, 0.0, cap=2**44)
    state = answered(question, [1e4] * 20)

    assert (state.paid > 0.99 * question.cap_grains).all()
    assert state.met.all()
    assert (state.upper[2] - state.lower[2] < 50).all()
    assert question.free(state)


def test_an_output_may_come_along():
    """A target of (0, 0) beside others asks free of charge and is met as soon as it is known."""
    question = joint((MEAN, SUM), 0.1)
    question = type(question)(question.statistics, ((0.1, 0.0), (0.0, 0.0)), 0.05, question.per_grain, 2**56)

    assert answered(question, [1e4] * 5).met.all()


def test_typical_is_about_what_is_paid():
    """The plan's figure is within a factor of two of what groups of that make pay."""
    question = joint((MEAN,), 0.05)
    state = answered(question, [1e4] * 200, mean=62.5)

    assert 0.5 < question.typical(1e4) / state.paid.mean() < 2
    assert question.typical(1e3) > question.typical(1e4)


def test_cheapest_grains_are_those_of_cauchy_and_schwarz():
    """One output: grains in proportion to sqrt(c), the sum of roots squared in all."""
    needs = np.array([[[1.0], [4.0], [9.0]]])

    assert [6.0, 12.0, 18.0] == pytest.approx(balanced(needs)[:, 0].tolist())


def test_several_outputs_cost_close_to_the_least():
    """Ascent is within a percent and a half of the optimum of a convex solver, and every output fits."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    for _ in range(10):
        needs = rng.lognormal(0, 2, (5, 4, 1))
        grains = balanced(needs)[:, 0]
        exact = minimize(
            lambda logs: np.exp(logs).sum(), np.log(grains), method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
            constraints={"type": "ineq", "fun": lambda logs, c=needs: 1 - (c[:, :, 0] / np.exp(logs)).sum(axis=1)},
        )  # fmt: skip
        assert (needs[:, :, 0] / grains).sum(axis=1).max() <= 1 + 1e-12
        assert grains.sum() <= 1.015 * exact.fun


def test_shapes_are_whole_and_leave_no_lane_out():
    """A lane in use has at least one part, whatever it is worth; one that is not has none."""
    shape = in_parts(np.array([[1e12], [1.0], [0.0]]), np.array([True, True, False]), 128)

    assert [[128], [1], [0]] == shape.tolist()


def test_blocks_are_put_together_again():
    """Working in blocks changes nothing."""
    values = np.arange(50_000.0)[None, :]

    assert (values * 2 == in_blocks(lambda block: block * 2, values)).all()


@pytest.mark.parametrize("kind", ["mean", "five"])
def test_a_sharper_answer_leaves_the_state_before_it_alone(kind, monkeypatch):
    """Groups are measured a part at a time, in place: in arrays of the new state, and everything in its place."""
    monkeypatch.setattr("farthing.accuracy.joint_prices.IN_TURN", 2)
    sizes, log = [3e3, 1e2, 1e4, 3e5, 1e4, 1e5, 3e3], []
    coarse = answered(joint(KINDS[kind], 0.2), sizes)
    kept = deepcopy(coarse)
    sharp = answered(joint(KINDS[kind], 0.1), sizes, state=coarse, seed=2, log=log)
    total = coarse.information.copy()
    for grains, groups in log:
        total[:, groups] += grains

    assert len(log) > 10
    assert total.tolist() == sharp.information.tolist()
    assert np.array_equal(kept.means, coarse.means)
    assert np.array_equal(kept.information, coarse.information)
    assert np.array_equal(kept.value, coarse.value)
    assert all(np.array_equal(getattr(kept.pivot, name), getattr(coarse.pivot, name)) for name in Pivot.__slots__)


def test_the_share_of_every_claim_adds_up_to_beta():
    """The failure probabilities of a question's claims sum to its beta at most."""
    question = joint((MEAN,), 0.1)

    assert sum(question._share(k) for k in range(60)) == pytest.approx(0.05)


def test_nothing_is_known_at_first():
    """The empty state has infinite intervals and no verdicts."""
    state = JointState.nothing(2, 1, 3)

    assert not state.met.any()
    assert np.isinf(state.upper).all()
    assert two_sided(0.05) > 0


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sharper_answer_costs_the_difference(kind, steps):
    """From four times the width in any number of steps: at most a twentieth more than asked at once."""
    question, sizes, widths = joint(KINDS[kind], 0.02), [1e5] * 600, 4.0 ** (np.arange(steps, -1, -1) / steps)
    once = answered(question, sizes).paid.mean()
    state = None
    for seed, width in enumerate(widths):
        state = answered(joint(KINDS[kind], 0.02 * width), sizes, state=state, seed=10 + seed)

    assert state.met.all()
    assert state.paid.mean() < 1.05 * once


def small_chain(steps, made=joint, groups=1_000):
    """Return what small groups of low spread pay for four aggregates in steps, and at once."""
    truth = np.repeat(lanes(2_000.0, 30.0, 450.0)[:, None], groups, axis=1)
    paid = []
    for number in (0, steps):
        measure, state = source(truth, np.random.default_rng(10 + number)), None
        for width in 4.0 ** (np.arange(number, -1, -1) / max(number, 1)):
            question = made((COUNT, SUM, MEAN, DEVIATION), 0.05 * width)
            state = question.run(start(question, groups) if state is None else state, measure)
        paid.append(state.paid)
    return paid[1], paid[0]


@pytest.mark.parametrize(("steps", "made"), [(1, in_claims), (2, in_claims), (4, in_claims), (2, joint)])
def test_small_groups_whose_first_look_misled_do_not_pay_ten_times(steps, made):
    """Several aggregates on small groups: a twentieth more than asked at once, and 99 of 100 less than three times."""
    paid, once = small_chain(steps, made)

    assert paid.mean() < 1.05 * once.mean()
    assert np.quantile(paid, 0.99) < 3 * once.mean()


def test_a_coarse_target_does_not_wait_long_for_its_pilot(monkeypatch):
    """Four aggregates at 30 %: a pilot that doubles each time and waits for 4.5 deviations costs a tenth more."""
    question, sizes = in_claims((COUNT, SUM, MEAN, DEVIATION), 0.3), [1e4] * 400
    paid = answered(question, sizes).paid.mean()
    monkeypatch.setattr("farthing.accuracy.joint_pilot._GROWTH", 1.0)
    for name, value in (("_SEEN", 4.5), ("PILOT_COARSE", 3.0)):
        monkeypatch.setattr(f"farthing.accuracy.joint_prices.{name}", value)

    assert answered(question, sizes).paid.mean() > 1.1 * paid


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS_COARSE])
def test_the_parts_of_a_claim_are_all_of_its_variance(weights):
    """Were their sum more than 1, intervals would be too narrow; no stage has a part of nothing."""
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    assert min(weights) > 0


@pytest.mark.parametrize(
    ("place", "plain"), [("joint_claims.WEIGHTS_COARSE", WEIGHTS), ("statistics._CUT", -1e9)], ids=["stages", "cut"]
)
def test_a_variance_near_its_largest_costs_less_at_coarse_targets(monkeypatch, place, plain):
    """Fewer stages, or proportions as if upper ends were not cut, would cost some percent more."""
    question, truth = in_claims(FIVE, 0.3), np.repeat(lanes(1e4, 52.0, 2000.0)[:, None], 4_000, axis=1)

    def paid():
        return question.run(start(question, 4_000), source(truth, np.random.default_rng(3))).paid.mean()

    mine = paid()
    monkeypatch.setattr(f"farthing.accuracy.{place}", plain)

    assert paid() > 1.025 * mine


def test_weighing_answers_that_are_hardly_there_is_caught(monkeypatch):
    """Were lanes fixed as a vague pilot tells, none of them alike, one group in a hundred would pay ten times."""
    monkeypatch.setattr("farthing.accuracy.joint_claims.EVENLY", 0.0)
    paid, once = small_chain(2, in_claims)

    assert paid.mean() > 1.05 * once.mean()
    assert np.quantile(paid, 0.99) > 3 * once.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_more_confidence_costs_the_difference(kind):
    """The same target at 95 % and then at 99 %, or at 99 % at once."""
    sizes = [1e5] * 600
    once = answered(joint(KINDS[kind], 0.02, beta=0.01), sizes)
    first = answered(joint(KINDS[kind], 0.02), sizes, seed=2)
    then = answered(joint(KINDS[kind], 0.02, beta=0.01), sizes, state=first, seed=3)

    assert then.met.all()
    assert then.paid.mean() < 1.05 * once.paid.mean()


def test_what_was_claimed_is_read_at_a_higher_confidence():
    """A looser target at more confidence is met by the claim that stands, free of charge."""
    state, log = answered(in_claims((VARIANCE,), 0.02), [1e5] * 20), []
    surer = in_claims((VARIANCE,), 0.1, beta=0.001)
    again = answered(surer, [1e5] * 20, state=state, log=log)

    assert surer.free(state)
    assert [] == log
    assert (again.upper - again.lower > 1.5 * (state.upper - state.lower)).all()


def test_a_larger_cap_goes_on_from_there():
    """Groups that a cap stopped build on what it bought."""
    sizes, target = [1e4] * 300, joint((MEAN,), 0.02, cap=2**50)
    once = answered(target, sizes)
    first = answered(joint((MEAN,), 0.02, cap=int(once.paid.mean() / 3)), sizes, seed=2)
    then = answered(target, sizes, state=first, seed=3)

    assert not first.met.any()
    assert then.met.all()
    assert then.paid.mean() < 1.4 * once.paid.mean()


@pytest.mark.parametrize("kind", ["mean", "variance"])
def test_a_claim_that_a_cap_paused_costs_little_more_in_the_end(kind):
    """Whether a cap is a third, three fifths or nine tenths of what is needed, a larger one goes on from there."""
    sizes, target = [1e4] * 250, joint(KINDS[kind], 0.05, cap=2**56)
    once = answered(target, sizes).paid.mean()
    for part in (0.3, 0.6, 0.9):
        first = answered(replace(target, cap_grains=int(once * part)), sizes, seed=2)
        paused = first.pivot.done < 1
        then = answered(target, sizes, state=first, seed=3)

        assert then.met.all()
        assert then.paid.mean() < 1.2 * once
        assert not (first.met[0] & paused).any(), "who is within the target is not asked to go on"
        assert (first.pivot.begun[paused] < first.pivot.clock[paused]).all()


def test_a_cap_that_was_spent_whatever_comes_is_gone_on_from():
    """Where the cap was spent on the narrowest interval, a larger one costs at most half more than at once."""
    sizes, target = [1e4] * 250, joint((VARIANCE,), 0.1, cap=2**56)
    once = answered(target, sizes).paid.mean()
    for part in (0.3, 0.6):
        first = answered(replace(target, cap_grains=int(once * part), spend=True), sizes, seed=2)
        then = answered(target, sizes, state=first, seed=3)

        assert then.met.all()
        assert then.paid.mean() < 1.5 * once


def test_what_was_told_at_the_whole_beta_leaves_its_share_to_the_claims():
    """After an absolute target alone a relative one goes on with claims: together they are missed with beta at most."""
    lanes = (Linear((0,)), Linear((1,)))
    flat = JointMeasures(lanes, ((0.0, 50.0), (0.0, 50.0)), 0.05, (2.0**-56,) * 2, 1 << 60)
    told = flat.run(JointState.nothing(2, 2, 400), noisy := _Noisy(np.random.default_rng(3)))
    later = JointMeasures(lanes, ((0.02, 0.0), (0.02, 0.0)), 0.05, (2.0**-56,) * 2, 1 << 60)
    held = later._current(told)
    after = later.run(told, noisy)

    assert np.allclose((held.upper - held.lower) / (told.upper - told.lower), two_sided(0.0025) / two_sided(0.05))
    assert after.stages - after.since >= 2
    assert later._share(0) + later._share(1) + sum(later._share(k) for k in range(2, 40)) <= 0.05 * (1 + 1e-9)


class _Noisy:
    """Fresh noisy values of two lanes whose truths are 1,000 and 3,000."""

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, grains, groups):  # noqa: ARG002  # all groups are alike
        """Return them."""
        scale = np.sqrt(2.0**56 / np.maximum(grains, 1))
        return np.array([[1_000.0], [3_000.0]]) + self.generator.normal(size=grains.shape) * scale


@pytest.mark.parametrize(
    ("count", "mean", "most"), [((0, 0), (0, 0), 12), ((0, 40), (0, 2), 40), ((0.1, 0), (0.1, 0), 60)]
)
def test_groups_are_measured_in_few_rounds(count, mean, most):
    """A named loss is spent in a few rounds of noise, and a pilot begins with what every group surely pays."""
    sizes, log = 10 ** np.random.default_rng(5).uniform(2.5, 4, 200), []
    state = answered(replace(joint((COUNT, MEAN), 0.1), targets=(count, mean)), sizes, log=log)

    assert state.met.all()
    assert len(log) <= most


@pytest.mark.parametrize("targets", [(0.0, 0.0), (0.0, 40.0), (0.1, 0.0)])
@pytest.mark.parametrize("cap", [2**20, 2**56])
def test_of_groups_that_nothing_is_known_of_one_tells_for_all(targets, cap):
    """Whether anything is to be measured is looked for once, not in each of a million groups."""
    question = joint((COUNT, MEAN), *targets, cap=cap)
    nothing = start(question, 5)

    assert nothing.untouched
    assert question._going(question._current(nothing)).tolist() == question._open(nothing).tolist()


def test_a_pilot_that_begins_at_once_pays_no_more_than_its_part():
    """The first measurement of a named loss, or of a count whose price is sure, is within the pilot's part."""
    for question in (joint((COUNT, MEAN), 0.0, cap=2**50), joint((COUNT, MEAN), 0.0, 40.0)):
        log, total = [], question.prices.sure(0.045).sum()
        state = answered(question, [1e4] * 3, log=log)

        assert 0.01 * total < log[0][0][:, 0].sum() < question.prices.pilot * total
        assert total < state.paid.min() * 1.01


@pytest.mark.parametrize("relative", [0.1, 0.8, 1.5, 3.0])
@pytest.mark.parametrize("cap", [13_312, 20_000, 2**40])
@pytest.mark.parametrize("statistics", [(MEAN, SUM), tuple(Linear((lane,)) for lane in range(40))], ids=["2", "40"])
def test_a_pilot_leaves_half_of_the_cap(statistics, cap, relative):
    """However coarse the target, small the cap or many the lanes: nothing is seen, and a claim has its stages yet."""
    many = max(len(statistics), 2)
    question = JointMeasures(statistics, ((relative, 0.0),) * len(statistics), 0.05, (GRAIN,) * many, cap)
    truth, log = np.zeros((many, 200)), []
    measure = source(truth, np.random.default_rng(1), log=log, per_grain=question.per_grain)
    purse = ClaimPurse(np.zeros((many, 200)), np.zeros((many, 200), np.int64), measure)
    pilot(question.prices, purse, np.arange(200), 0.045)

    assert all((grains >= 0).all() for grains, _ in log)
    assert 0 < purse.information.sum(axis=0).min()
    assert purse.information.sum(axis=0).max() <= cap / 2


@pytest.mark.parametrize(
    ("relative", "absolute", "cap"), [(0.1, 0.0, 2**58), (0.1, 0.0, 2**36), (0.0, 0.0, 2**40), (0.3, 5.0, 2**58)]
)
def test_groups_in_turn_are_as_groups_together(monkeypatch, relative, absolute, cap):
    """Groups that are measured a part at a time, as very many are, tell and pay what they do together; so refined."""
    sizes = [0.0, 3.0, 50.0, 400.0, 1e3, 3e4, 1e6]
    truth = np.stack([lanes(size, 60.0, 800.0) for size in sizes], axis=1)

    def told(grains, groups):
        """Measure with an error that depends on nothing but the grains and the group."""
        error = ((37 * groups + grains % 1009) % 17 - 8) / 5
        return truth[:, groups] + error / np.sqrt(np.maximum(grains, 1) * GRAIN)

    def asked():
        """Ask, and ask more sharply."""
        before = joint(FIVE, relative, absolute, cap=cap).run(start(joint(FIVE, 1.0), len(sizes)), told)
        return before, joint(FIVE, relative / 2, absolute / 2, cap=2 * cap).run(before, told)

    together = asked()
    monkeypatch.setattr("farthing.accuracy.joint_prices.IN_TURN", 2)

    for one, other in zip(together, asked(), strict=True):
        assert one.paid.any()
        assert one.stages == other.stages
        for name in ("means", "information", "value", "lower", "upper", "met"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()
        for name in one.pivot.__slots__:
            assert getattr(one.pivot, name).tolist() == getattr(other.pivot, name).tolist()
