"""A variance or its root alone by looks: which questions go by them, shapes, what is gone on from, what they cost."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import DEVIATION, PER_GRAIN, SAMPLE, VARIANCE, in_claims, joint, lanes, source, start

from farthing.accuracy.ratio_shapes import LOOKS_SHARE
from farthing.accuracy.stop_rule import two_sided
from farthing.accuracy.variance_looks import APART, SHARES, TILTED, VarianceLooks, critical_value


def answered(question, state=None, *, groups=300, seed=1, shape=(60.0, 800.0)):
    """Run a question on groups that are alike."""
    truth = np.repeat(lanes(1e4, *shape)[:, None], groups, axis=1)
    return question.run(start(question, groups) if state is None else state, source(truth, np.random.default_rng(seed)))


def excess(statistic, relative, variance, spread):
    """Return by what factor a look at that variance, whose lanes are that noisy, is too wide to be the last."""
    rule = VarianceLooks.of(joint((statistic,), relative).prices, 0.05)
    values = lanes(1.0, 50.0, variance)[:, None]
    return float(rule._excess(values, (spread * np.array([[1e-3], [1.0], [1.0]])) ** 2)[0])


@pytest.mark.parametrize(("statistic", "relative", "absolute", "there"), [
    (VARIANCE, 0.1, 0.0, True),
    (VARIANCE, 0.1, 20.0, True),
    (VARIANCE, 0.0, 20.0, True),
    (SAMPLE, TILTED, 0.0, True),
    (DEVIATION, TILTED / 2, 0.0, True),
    (VARIANCE, 0.65, 0.0, False),
    (DEVIATION, 0.35, 0.0, False),
    (DEVIATION, 0.1, 1.0, False),  # near 0 a root may change by any part of itself
    (replace(VARIANCE, less=0.0), 0.1, 0.0, False),
])  # fmt: skip
def test_which_targets_go_by_looks(statistic, relative, absolute, there):
    """Those for which c was found; the others make claims in stages."""
    question = joint((statistic,), relative, absolute)

    assert (question.looks(start(question, 1)) is not None) == there


@pytest.mark.parametrize("change", [{"spend": True}, {"beta": 0.3}, {"beta": 1e-6}, {"targets": ((0.0, 0.0),)}])
def test_other_questions_go_by_claims(change):
    """Caps to be spent, odd confidences and named losses have no looks."""
    question = replace(joint((VARIANCE,), 0.1), **change)

    assert question.looks(start(question, 1)) is None


def test_a_variance_below_zero_is_no_reason_to_stop():
    """Noise may make an early interval lie below 0 as a whole, where it has no width once it is cut."""
    for statistic in (VARIANCE, DEVIATION):
        assert excess(statistic, 0.3, 100.0, 1.0) < 1
        assert excess(statistic, 0.3, -100.0, 1.0) > 1
    assert excess(DEVIATION, 0.3, -100.0, 1.0) == np.inf


def test_only_steep_targets_end_where_a_variance_can_be_no_larger():
    """At 20 % the upper end of the largest variances need not be shown; at 5 % c has no room for that."""
    near, far = 2_400.0, 1_000.0
    assert excess(VARIANCE, 0.2, near, 6.0) < 0.7 * excess(VARIANCE, 0.2, far, 6.0) * far / near
    assert excess(VARIANCE, 0.05, near, 6.0) == pytest.approx(excess(VARIANCE, 0.05, far, 6.0) * far / near, rel=0.1)


def test_c_grows_with_the_target_and_with_confidence():
    """A fine target has the c of one look at the looks' part of beta."""
    assert critical_value(0.05, 0.0) == two_sided(0.05 * LOOKS_SHARE)
    assert critical_value(0.05, 0.4) > critical_value(0.05, 0.2)
    assert critical_value(0.01, 0.2) > critical_value(0.05, 0.2)


def test_shapes_stay_near_the_public_one():
    """Coarse targets have one shape; what a pilot tells of a fine one moves no lane by more than a factor of two."""
    means = np.stack([lanes(1e4, mean, 800.0) for mean in (20.0, 50.0, 70.0)], axis=1)
    looks = [VarianceLooks.of(joint((VARIANCE,), relative).prices, 0.05) for relative in (0.3, 0.02)]
    public, told = (each.shape(means, np.full(means.shape, 1 << 40)) for each in looks)

    assert [each.public for each in looks] == [True, False]
    assert (public == public[:, :1]).all()
    assert np.abs(public[:, 0] / public[:, 0].sum() - SHARES).max() < 0.01
    assert (told / public < APART * 1.1).all()
    assert (told / public > 0.9 / APART).all()
    assert (told != told[:, :1]).any()


def test_a_sharper_answer_goes_on_from_all_that_was_measured():
    """From 20 % to 8 % about the difference is paid, and c is never lowered."""
    first, then = joint((DEVIATION,), 0.2), joint((DEVIATION,), 0.08)
    once, before = answered(then), answered(first, seed=3)
    state = answered(then, before, seed=4)

    assert state.met.all()
    assert state.critical == before.critical > once.critical
    assert (state.pivot.shape == before.pivot.shape).all()
    assert state.paid.mean() < 1.15 * once.paid.mean()


@pytest.mark.thorough
def test_looks_cost_far_less_than_claims():
    """A count that comes along brings the claims in stages back."""
    for relative, most in ((0.1, 0.9), (0.2, 0.75), (0.3, 0.65)):
        claims = in_claims((DEVIATION,), relative)
        alone = answered(joint((DEVIATION,), relative))

        assert alone.met.all()
        assert alone.paid.mean() < most * answered(claims).paid.mean()


def test_what_is_measured_is_what_is_priced():
    """Rows, sum and squares, in grains that a plan's price is near."""
    question = joint((VARIANCE,), 0.1)
    state = answered(question, shape=(62.5, 2_500 * (1 / 3 - 1 / 16)))

    assert state.paid.mean() == pytest.approx(question.typical(1e4), rel=0.25)
    assert len(PER_GRAIN) == (state.information > 0).all(axis=1).sum()
