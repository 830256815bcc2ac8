"""A mean alone by looks: geometry, critical values, what is gone on from, what is given up, what is stored."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import COUNT, FIVE, MEAN, PER_GRAIN, VARIANCE, joint, lanes, source, start

from farthing.accuracy.fieller import fieller
from farthing.accuracy.ratio_chances import RatioChances, eased
from farthing.accuracy.ratio_looks import RatioLooks
from farthing.accuracy.ratio_shapes import LOOKS_SHARE, MORE, chosen, critical_value, cut_critical, tilt, tilts
from farthing.accuracy.stop_rule import two_sided
from farthing.session.answering.joint_measures import blob_of, state_of


def answered(question, state=None, *, groups=300, seed=1, mean=60.0, size=1e4, log=None):
    """Run a question on groups that are alike."""
    truth = np.repeat(lanes(size, mean, 800.0)[:, None], groups, axis=1)
    state = start(question, groups) if state is None else state
    return question.run(state, source(truth, np.random.default_rng(seed), log=log))


def test_the_set_misses_where_the_signal_is_far_from_the_line():
    """Fieller's set at c holds a ratio if and only if the signal is within c of the line of that ratio."""
    rng = np.random.default_rng(2)
    rows, total, ratio = rng.uniform(3, 9, 2_000), rng.normal(0, 6, 2_000), rng.normal(0, 1, 2_000)
    low, high = fieller(total, rows, np.ones(2_000), np.ones(2_000), 2.0)
    near = np.abs(total - ratio * rows) <= 2.0 * np.hypot(1, ratio)

    assert (near == ((low <= ratio) & (ratio <= high))).all()


@pytest.mark.thorough
@pytest.mark.parametrize("relative", [0.02, 0.1, 0.2, 0.3])
def test_c_leaves_room_for_choosing_the_look(relative):
    """At the mean of the largest tilt the chance of a miss is within the looks' part of beta; with z it is not."""
    critical, least, _ = chosen(relative, 0.0, 1.0, 0.05)
    rule = RatioChances(relative, 0.0, 1.0, least, critical, step=0.08)

    assert rule.missed(-0.45) <= LOOKS_SHARE * 0.05
    assert critical > two_sided(0.05) * 1.01
    if relative == 0.3:
        assert replace(rule, critical=two_sided(0.05)).missed(-0.45) > 0.06


@pytest.mark.thorough
def test_means_at_coarse_targets_cost_little_more_than_one_measurement_would():
    """At 10, 20 and 30 % far less than the claims in stages take, which a count that comes along brings back."""
    for relative, most in ((0.1, 0.9), (0.2, 0.75), (0.3, 0.65)):
        alone = answered(joint((MEAN,), relative))
        claims = joint((MEAN, COUNT), relative)
        beside = answered(replace(claims, targets=((relative, 0.0), (0.0, 0.0))))

        assert alone.met.all()
        assert alone.paid.mean() < most * beside.paid.mean()


def test_what_was_paid_is_what_was_measured():
    """Every grain that was measured is in the state, and no lane that is not read."""
    log = []
    state = answered(joint((MEAN,), 0.05), log=log)

    assert state.paid.sum() == sum(int(grains.sum()) for grains, _ in log)
    assert (state.information[2] == 0).all()


@pytest.mark.thorough
@pytest.mark.parametrize(("first", "then"), [(0.08, 0.04), (0.05, 0.02), (0.2, 0.1)])
def test_a_sharper_answer_goes_on_from_all_that_was_measured(first, then):
    """What is bought for the sharper target is about the difference: shape and c cost a seventh at most."""
    once = answered(joint((MEAN,), then), groups=600)
    state = answered(joint((MEAN,), then), answered(joint((MEAN,), first), seed=3, groups=600), seed=4, groups=600)

    assert state.met.all()
    assert state.critical >= once.critical
    assert state.paid.mean() < 1.14 * once.paid.mean()


def test_looks_are_gone_on_from_by_the_targets_alone():
    """Sharper and surer go on; looser in one part, less sure, or four times as sharp begin again."""
    state = answered(joint((MEAN,), 0.1, 1.0), groups=3)

    assert joint((MEAN,), 0.05, 1.0)._goes_on(state)
    assert joint((MEAN,), 0.1, 1.0, beta=0.01)._goes_on(state)
    assert not joint((MEAN,), 0.05, 2.0)._goes_on(state)
    assert not joint((MEAN,), 0.05, 1.0, beta=0.1)._goes_on(state)
    assert not joint((MEAN,), 0.02, 1.0)._goes_on(state)


def test_c_is_never_lowered():
    """Surer and then sharper: the looks before were made at the larger c, and so are those that follow."""
    surer = answered(joint((MEAN,), 0.3), groups=5)
    state = answered(joint((MEAN,), 0.1), surer, groups=5)

    assert state.critical == surer.critical > RatioLooks.of(joint((MEAN,), 0.1).prices, 0.05).critical


def test_the_same_and_looser_targets_are_free():
    """Nothing is measured for what stands."""
    question, log = joint((MEAN,), 0.05), []
    state = answered(question, groups=20)
    again = answered(joint((MEAN,), 0.2), answered(question, state, groups=20, log=log), groups=20, log=log)

    assert question.free(state)
    assert [] == log
    assert again.lower.tolist() == state.lower.tolist()


def test_a_cap_ends_looks_honestly():
    """Groups that need twice the cap, or hold nothing, stay below it, are not met, and are not asked again."""
    once = int(answered(joint((MEAN,), 0.1)).paid.mean())
    question = joint((MEAN,), 0.1, cap=once // 8)
    state = answered(question)
    empty = answered(question, mean=50.0, size=0.0)

    assert not state.met.any()
    assert state.paid.max() <= question.cap_grains
    assert state.paid.mean() < 0.6 * question.cap_grains
    assert question.free(state)
    assert not empty.met.any()


def test_a_looser_target_serves_groups_that_were_given_up():
    """What was too much to ask is asked less sharply, under the same cap: those that can be met are, by claims."""
    cap = int(answered(joint((MEAN,), 0.02)).paid.mean() / 20)
    capped = answered(joint((MEAN,), 0.02, cap=cap), seed=2)
    after = answered(joint((MEAN,), 0.4, cap=cap), capped, seed=3)

    assert not capped.met.any()
    assert after.met.mean() > 0.9
    assert after.critical == capped.critical


def test_a_larger_cap_goes_on_from_there():
    """What a cap ended is the beginning of what follows."""
    target = joint((MEAN,), 0.1)
    once = answered(target).paid.mean()
    capped = answered(replace(target, cap_grains=int(once / 2)), seed=2)
    after = answered(target, capped, seed=3)

    assert after.met.all()
    assert after.paid.mean() < 1.1 * once


@pytest.mark.thorough
@pytest.mark.parametrize("statistics", [(MEAN,), (VARIANCE,), (COUNT, MEAN), FIVE])
@pytest.mark.parametrize("falls", [1e-5, 0.04, 0.2])
def test_groups_that_were_given_up_pay_nothing_for_a_sharper_ask_under_a_smaller_cap(statistics, falls):
    """A group without rows is given up again where it stands: each sharper ask would double what it paid."""
    state, paid = None, []
    for step, relative in enumerate((0.1, 0.08, 0.06, 0.04)):
        question = joint(statistics, relative, cap=int(2**54 * (1 - falls) ** step))
        state = answered(question, state, groups=200, seed=step, size=0.0)
        paid.append(state.paid.copy())

    assert (paid[0] > 0).all()
    assert not state.met.any()
    for later in paid[1:]:
        assert (later == paid[0]).all()


@pytest.mark.thorough
def test_what_is_told_again_of_groups_that_were_given_up_has_a_share_of_its_own():
    """The looks of every earlier ask may be the one that tells: the interval is that of one of 26, of 39."""
    state, widths = None, []
    for relative in (0.1, 0.08, 0.06):
        state = answered(joint((COUNT, MEAN), relative, cap=2**54), state, groups=50, size=0.0)
        widths.append((state.upper - state.lower)[0])

    for asks, wide in enumerate(widths, 1):
        assert wide == pytest.approx(widths[0] * two_sided(0.05 * 0.02 / 13 / asks) / two_sided(0.05 * 0.02 / 13))


def test_the_ledger_keeps_what_looks_go_on_from():
    """A state comes back from its blob with its critical value, in a format that older versions refuse."""
    state = answered(joint((MEAN,), 0.1), groups=4)
    back, less = state_of(blob_of(state))

    assert b"farthing-joint-4" in blob_of(state)
    assert () == less
    assert back.critical == state.critical
    assert back.pivot.clock.tolist() == state.pivot.clock.tolist()
    assert joint((MEAN,), 0.05)._goes_on(back)


def test_what_older_versions_claimed_is_gone_on_from_in_stages():
    """A claim without a critical value is gone on from as it was: its errors are normal, and stay so."""
    question = joint((MEAN, COUNT), 0.1)
    claimed = answered(replace(question, targets=((0.1, 0.0), (0.0, 0.0))))
    older = replace(
        claimed, value=claimed.value[:1], lower=claimed.lower[:1], upper=claimed.upper[:1], met=claimed.met[:1],
        promise=claimed.promise[:4],
    )  # fmt: skip
    sharper = answered(joint((MEAN,), 0.07), older, seed=2)

    assert sharper.met.all()
    assert 0 == sharper.critical
    assert sharper.pivot.shape.tolist() == older.pivot.shape.tolist()


@pytest.mark.parametrize("change", [{"spend": True}, {"beta": 0.3}, {"beta": 1e-6}, {"targets": ((0.0, 0.0),)}])
def test_other_questions_go_by_claims(change):
    """Caps to be spent, odd confidences and named losses have no looks."""
    question = replace(joint((MEAN,), 0.1), **change)

    assert question.looks(start(question, 1)) is None
    assert joint((MEAN,), 0.8).looks(start(question, 1)) is None
    assert joint((replace(MEAN, centre=0.0),), 0.1).looks(start(question, 1)) is None


def test_a_claim_in_stages_does_not_go_on_from_looks():
    """A question that goes by claims takes what looks told as a pilot."""
    looked = answered(joint((MEAN,), 0.1), groups=50)
    spent = answered(replace(joint((MEAN,), 0.05), spend=True), looked, groups=50)

    assert 0 == spent.critical
    assert spent.met.all()
    assert (spent.paid > looked.paid).all()


def test_c_grows_with_the_tilt_and_with_confidence():
    """More tilt, and less beta, never lower c; a flat target has about that of one look."""
    assert critical_value(0.05, 0.0) == two_sided(0.05 * LOOKS_SHARE) + MORE
    assert critical_value(0.05, 0.3, simple=False) > critical_value(0.05, 0.3)
    assert critical_value(0.05, 0.4) > critical_value(0.05, 0.2)
    assert critical_value(0.01, 0.2) > critical_value(0.05, 0.2)
    assert tilt(0.3, 0.0, 0.7, 1.0) > tilt(0.1, 0.0, 0.7, 1.0) > tilt(0.0, 1e-9, 0.7, 1.0)


def test_every_shape_has_as_many_rows_as_c_was_made_for():
    """Whatever a pilot told, the rows' precision is between the least and that of the sum."""
    looks = RatioLooks.of(joint((MEAN,), 0.05).prices, 0.05)
    means = np.stack([lanes(1e4, mean, 800.0) for mean in (1.0, 30.0, 50.0, 70.0, 99.0)], axis=1)
    shape = looks.shape(means, np.full(means.shape, 1 << 40))
    precision = shape[0] * PER_GRAIN[0] / (shape[1] * PER_GRAIN[1] * 2_500)

    assert not looks.public
    assert (precision >= looks.least).all()
    assert (precision <= 1.02).all()


def test_a_steep_target_is_followed_from_its_early_looks():
    """Noise across the line makes looks of a steep target end early; with the c of others it would miss too often."""
    critical, least, public = chosen(0.4, 0.0, 1.0, 0.2)
    steep = RatioChances(0.4, 0.0, 1.0, least, critical, step=0.12, early=0.15).missed(-0.75)
    planted = RatioChances(0.4, 0.0, 1.0, least, critical - 0.2 * 0.566 / 1.2816, step=0.12, early=0.15).missed(-0.75)

    assert public
    assert steep <= LOOKS_SHARE * 0.2 < planted


def test_both_sides_of_the_mean_at_which_a_target_allows_least_count():
    """Where an absolute part meets a relative one the angle grows on both sides, and c is made for both."""
    critical, least, _ = chosen(0.2, 0.02, 0.0, 0.05)
    rule = RatioChances(0.2, 0.02, 0.0, 0.35, critical, step=0.12)
    planted = critical_value(0.05, float(abs(tilts(0.2, 0.02, least, 0.0)).max()))

    assert tilt(0.2, 0.02, 0.35, 0.0) > abs(tilts(0.2, 0.02, 0.35, 0.0)).max()
    assert rule.missed(-0.11) <= LOOKS_SHARE * 0.05 < replace(rule, critical=planted).missed(-0.11)


def test_looks_that_end_early_at_an_end_are_made_at_the_c_of_their_kind():
    """Around 0, and beyond it, a mean where an end nearly helps would be missed too often at a smaller c."""
    for target, mean in (((0.3, 0.2, 0.0), 0.49), ((0.3, 0.0, 1.5), -0.54)):
        critical, shape, _ = chosen(*target, 0.05)
        cuts = float(cut_critical(critical, 0.05, less=False, simple=False)), critical + 1 / critical
        right, planted = (RatioChances(*target, shape, critical, step=0.12, cut=cut).missed(mean) for cut in cuts)

        assert right <= LOOKS_SHARE * 0.05 < planted


@pytest.mark.thorough
@pytest.mark.parametrize(("relative", "beta"), [(0.3, 0.05), (0.42, 0.05), (0.42, 0.2)])
def test_looks_at_noise_alone_seldom_end(monkeypatch, relative, beta):
    """Thirty e-folds of looks at far too little to see anything miss with a sixth of beta at most."""
    question, groups = joint((MEAN,), relative, beta=beta), 20_000
    truth = np.repeat(lanes(1.0, 12.5, 800.0)[:, None], groups, axis=1)
    empty = replace(question, cap_grains=1 << 50)

    def ended():
        state = empty.run(start(empty, groups), source(truth, np.random.default_rng(3)))
        return ((state.upper < 12.5) | (state.lower > 12.5)).mean() / beta

    assert ended() < 1 / 6
    monkeypatch.setattr("farthing.accuracy.ratio_looks.cut_critical", lambda *known, **_: known[0])
    assert ended() > 1 / 6


def test_groups_in_turn_are_as_groups_together(monkeypatch):
    """Where nothing is random, groups that are followed two at a time end where all together do."""
    truth = np.stack([lanes(size, 60.0, 800.0) for size in (1e2, 3e3, 1e4, 4e4, 1e6)], axis=1)

    def told(grains, groups):
        return truth[:, groups] * (1 + 1e-3 / np.sqrt(np.maximum(grains, 1)))

    question = joint((MEAN,), 0.1)
    together = question.run(start(question, 5), told)
    monkeypatch.setattr("farthing.accuracy.joint_prices.IN_TURN", 2)
    in_turn = question.run(start(question, 5), told)

    assert together.paid.tolist() == in_turn.paid.tolist()
    assert together.value.tolist() == in_turn.value.tolist()


def test_c_is_smaller_near_the_end_of_the_range_alone():
    """Of relative targets of a range from 0, in the one shape that was followed; elsewhere the cut is at a larger c."""
    looks = RatioLooks.of(joint((MEAN,), 0.3).prices, 0.05)
    values = np.stack([lanes(1e4, mean, 800.0) for mean in (10.0, 50.0, 60.0, 90.0)], axis=1)
    shape = looks.shape(values, np.full(values.shape, 1 << 40))
    in_it, others = (1 / (np.maximum(shape * more, 1) * np.array(PER_GRAIN)[:, None]) for more in (1, [[2], [1], [1]]))

    assert looks._critical(values, in_it).tolist() == eased(looks.critical, np.array([-0.8, 0.0, 0.2, 0.8])).tolist()
    assert looks._critical(values, others).tolist() == [looks.critical] * 4
    assert cut_critical(2.1, 0.05, less=False) > cut_critical(2.1, 0.05, less=True) > 2.1
    assert cut_critical(2.1, 0.05, less=False, simple=False) > cut_critical(2.1, 0.05, less=False)
    for less, simple in ((True, True), (False, True), (False, False)):
        ended = [float(cut_critical(c, 0.2, less=less, simple=simple)) for c in (1.3, 1.4, 1.5, 1.6, 1.8, 2.0)]
        assert ended == sorted(ended)
    assert (eased(2.2, values[1]) > eased(2.1, values[1])).all()


def test_a_sharper_target_is_never_looser_where_the_range_ends():
    """Whatever was too wide for a looser target in its shape is too wide for a sharper one: all looks go on."""
    rng = np.random.default_rng(4)
    for loose, sharp in ((0.31, 0.3), (0.42, 0.31), (0.33, 0.2), (0.36, 0.3), (0.32, 0.31)):
        old = RatioLooks.of(joint((MEAN,), loose).prices, 0.05)
        new = RatioLooks.of(joint((MEAN,), sharp).prices, 0.05, old.critical)
        shape = old.shape(np.zeros((3, 4_000)), np.ones((3, 4_000), np.int64))
        variances = 1 / (np.maximum(shape, 1) * np.array(PER_GRAIN)[:, None])
        rows, offset = rng.uniform(1, 9, 4_000) * np.sqrt(variances[0]), rng.uniform(-50, 50, 4_000)
        values = np.stack([rows, rows * offset, np.zeros(4_000)])  # measured in the range
        fits, before = new.intervals(values, variances)[2], old.intervals(values, variances)[2]

        assert 0 < fits.sum() < before.sum()
        assert not (fits & ~before).any()
