"""Several answers by looks: which questions go by them, shapes, what is gone on from, what the ledger keeps."""

import json
from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import (
    COUNT,
    DEVIATION,
    FIVE,
    GRAIN,
    HALF,
    LESS,
    MEAN,
    PER_GRAIN,
    SUM,
    VARIANCE,
    in_claims,
    joint,
    lanes,
    misses,
    source,
    start,
)

from farthing.accuracy.joint_looks import APART, FEWEST, LINEAR_MOST, MORE, SHARES, THIRD, JointLooks
from farthing.accuracy.joint_looks import LESS as LESS_C
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import Linear, RatioStatistic
from farthing.accuracy.variance_looks import critical_value
from farthing.session.answering.joint_measures import blob_of, state_of

FOUR = (Linear((3,)), SUM, MEAN, DEVIATION)  # beside a count of other rows


def answered(question, state=None, *, groups=300, seed=1, shape=(60.0, 800.0), size=1e4):
    """Run a question on groups that are alike."""
    truth = np.repeat(lanes(size, *shape)[:, None], groups, axis=1)
    return question.run(start(question, groups) if state is None else state, source(truth, np.random.default_rng(seed)))


def asked(statistics, *targets):
    """Return a question with targets of its own for every output."""
    return JointMeasures(statistics, targets, 0.05, PER_GRAIN, 2**56)


@pytest.mark.parametrize(("question", "there"), [
    (joint(FIVE, 0.3), True),
    (joint(FIVE, 0.02), True),
    (joint((COUNT, MEAN), 0.1, 20.0), True),
    (asked((COUNT, MEAN), (0.08, 0.0), (0.2, 0.0)), True),
    (asked((COUNT, MEAN), (0.05, 0.0), (0.2, 0.0)), False),  # claims cost less where targets are so unequal
    (joint((MEAN, RatioStatistic(0, 2, LESS, 0.0, 2 * LESS)), 0.1), True),
    (joint((COUNT, SUM), 0.1), False),  # nothing is divided by the rows
    (joint((COUNT, MEAN), 0.35), False),  # more than LINEAR_MOST
    (joint((MEAN, DEVIATION), 0.31), False),  # more than c is calibrated for
    (joint((MEAN, DEVIATION), 0.1, 1.0), False),  # near 0 a root may change by any part of itself
    (joint((COUNT, MEAN), 0.0, 20.0), False),
    (joint((COUNT, RatioStatistic(0, 1, 0.0, -np.inf, np.inf)), 0.1), False),
    (joint((COUNT, replace(VARIANCE, less=0.0)), 0.1), False),
    (in_claims(FIVE, 0.1), False),
    (replace(joint(FIVE, 0.1), spend=True), False),
    (replace(joint(FIVE, 0.1), beta=0.3), False),
    (replace(joint(FIVE, 0.1), targets=((0.0, 0.0),) * 5), False),
])  # fmt: skip
def test_which_questions_go_by_looks(question, there):
    """Those for which c was found; the others make claims in stages."""
    assert isinstance(question.looks(start(question, 1)), JointLooks) == there


def test_c_is_that_of_the_steepest_answer_that_ends_looks():
    """A root beside a variance asked as sharply ends none, nor does a mean beside a sum of values of one sign."""

    def critical(*question):
        return joint(*question).looks(start(joint(*question), 1)).critical - MORE

    def tilted(most):
        return pytest.approx(critical_value(0.05, most))

    assert tilted(0.3) == critical(FIVE, 0.3)
    assert tilted(0.2) == critical((COUNT, DEVIATION), 0.1)
    assert tilted(0.1) == critical((SUM, MEAN), 0.1)
    assert critical((COUNT, MEAN), 0.1) > critical((SUM, MEAN), 0.1)
    signed = (Linear((1, 0), (1.0, 25.0)), replace(MEAN, centre=25.0, lower=-25.0, upper=75.0))
    assert critical(signed, 0.1) > critical((SUM, MEAN), 0.1)
    assert LINEAR_MOST < 0.35


def test_very_unequal_targets_are_claimed_in_stages():
    """The steep answer of a coarse target would raise c for all and rarely be the last; what was begun goes on."""

    def critical(statistics, relatives, held=0.0):
        found = JointLooks.of(asked(statistics, *((one, 0.0) for one in relatives)).prices, 0.05, held)
        return found and found.critical

    assert critical((COUNT, MEAN), (0.05, 0.3)) is None
    assert critical((COUNT, MEAN), (0.3, 0.05)) is None
    assert critical((COUNT, MEAN, VARIANCE), (0.05, 0.3, 0.3)) is None
    assert critical((COUNT, MEAN), (0.05, 0.3), 2.1) > 2.1
    assert critical((COUNT, MEAN), (0.11, 0.3)) > 2
    assert critical((COUNT, DEVIATION), (0.05, 0.3)) > 2
    assert critical((COUNT, MEAN, VARIANCE), (0.3, 0.1, 0.3)) > 2


def test_coarse_questions_about_one_column_have_one_shape():
    """Else a pilot tells it; but no lane gets less than half of what it has there, and rows a quarter of a sum."""
    means = np.stack([lanes(1e4, mean, 800.0) for mean in (20.0, 50.0, 70.0)], axis=1)
    held = np.full(means.shape, 1 << 40)
    coarse, fine = (joint(FIVE, relative).looks(start(joint(FIVE, 0.1), 1)) for relative in (0.1, 0.05))
    public, told = coarse.shape(means, held), fine.shape(means, held)
    wide = asked((SUM, MEAN), (0.09, 0.0), (0.09, 0.0))
    rows, total, _ = wide.looks(start(wide, 1)).shape(means, held)

    assert [coarse.public, fine.public] == [True, False]
    assert np.abs(public[:, 0] / public[:, 0].sum() - SHARES[3]).max() < 0.01
    assert (public == public[:, :1]).all()
    assert (told != told[:, :1]).any()
    assert (told / told.sum(axis=0) > 0.9 / APART * np.array(SHARES[3])[:, None]).all()
    assert (rows > 0.95 * FEWEST * total).all()
    for question in (asked((COUNT, MEAN), (0.08, 0.0), (0.2, 0.0)), joint((COUNT, MEAN), 0.2, 1.0)):
        assert not question.looks(start(question, 1)).public


def test_a_count_of_other_rows_has_its_part():
    """As where values may be missing: rows of which the count is told are not those that the mean is of."""
    worth = (*PER_GRAIN, GRAIN)
    question = JointMeasures(FOUR, ((0.2, 0.0),) * 4, 0.05, worth, 2**56)
    truth = np.repeat(np.append(lanes(1e4, 60.0, 800.0), 1.2e4)[:, None], 200, axis=1)
    state = question.run(
        JointState.nothing(4, 4, 200), source(truth, np.random.default_rng(2), per_grain=np.array(worth))
    )
    parts = state.information.sum(axis=1) / state.information.sum()

    assert question.looks(state).public
    assert state.met.all()
    assert 0.1 < parts[3] < 0.2
    assert misses(question, state, truth).max() < 30


def test_all_answers_are_met_at_the_last_look():
    """A sample variance's n, too, is within what was allowed: no group is left to make a claim."""
    for relative in (0.3, 0.05):
        state = answered(joint(FIVE, relative), size=1e3)
        assert state.met.all()
        assert state.stages == 1


def test_a_sharper_answer_goes_on_from_all_that_was_measured():
    """From 20 % to 8 % about the difference is paid, and c falls a little; a looser one begins again."""
    first, then = joint(FIVE, 0.2), joint(FIVE, 0.08)
    once, before = answered(then), answered(first, seed=3)
    state = answered(then, before, seed=4)

    assert state.met.all()
    assert before.critical > state.critical == once.critical
    assert answered(joint(FIVE, 0.15), before, groups=300, seed=4).critical == before.critical
    assert (state.pivot.shape == before.pivot.shape).all()
    assert state.paid.mean() < 1.2 * once.paid.mean()
    assert answered(joint(FIVE, 0.1), before, seed=5).paid.mean() > before.paid.mean()
    assert then.free(state)


@pytest.mark.parametrize("statistics", [FIVE, (MEAN, VARIANCE), (COUNT, MEAN, DEVIATION)])
def test_a_smaller_c_ends_no_look_that_did_not_end_before(statistics):
    """With targets a third sharper and c a tenth less: whatever a look shows that would end it ended it before."""
    rng, count = np.random.default_rng(9), 4_000
    for relative in (0.04, 0.1, 0.14, 0.2, 0.3):
        old = joint(statistics, relative)
        old = old.looks(start(old, 1))
        new = joint(statistics, THIRD * relative)
        new = replace(new.looks(start(new, 1)), critical=old.critical / LESS_C)
        size, mean = 10 ** rng.uniform(0.5, 6, count), rng.uniform(-10, 110, count)
        values = lanes(size, mean, HALF**2 * 10 ** rng.uniform(-4, 0.1, count))
        noise = size**2 / rng.uniform(0.08, 1, (3, count)) / np.array(PER_GRAIN)[:, None]
        short, enough = np.full(count, 40.0), np.full(count, 140.0)
        for _ in range(30):
            middle = (short + enough) / 2
            ends = new._excess(values, noise * 2.0**-middle) <= 1
            short, enough = np.where(ends, short, middle), np.where(ends, middle, enough)
        least = VARIANCE.ends(values, noise * 2.0**-enough, new.told)[0]
        possible = (enough < 139) & (least < HALF**2)  # else to end is a sure miss

        assert possible.mean() > 0.5
        assert old._excess(values, noise * 2.0**-enough)[possible].max() < 1


def test_a_sharper_rule_is_never_helped_where_the_last_was_not():
    """Whether intervals are cut at the largest variance follows from the coarsest target alone."""
    pair = (VARIANCE, DEVIATION)
    for old, new in ((0.3, 0.1), (0.3, 0.05), (0.099, 0.09), (0.08, 0.05)):
        rules = [
            q.looks(start(q, 1)) for q in (joint(pair, old), asked(pair, (old, 0.0), (new, 0.0)), joint(pair, new))
        ]
        cut = [rule.cut for rule in rules]
        assert cut == sorted(cut, reverse=True)


def test_looks_of_several_answers_are_kept_in_a_format_of_their_own():
    """A version that knows looks at one answer alone would take them for a claim: it must not read them."""
    for statistics, form in ((FIVE, 5), ((COUNT, MEAN), 5), ((MEAN,), 4), ((VARIANCE,), 4)):
        state = answered(joint(statistics, 0.2), groups=3)
        blob = blob_of(state, (0.0, 0.0, LESS))
        again, _ = state_of(blob)

        assert f"farthing-joint-{form}".encode() in blob
        assert again.critical == state.critical > 0
        assert (again.pivot.clock == state.pivot.clock).all()
    assert b"farthing-joint-3" in blob_of(answered(in_claims(FIVE, 0.2), groups=3), (0.0, 0.0, LESS))


def test_what_an_older_version_claimed_is_gone_on_from_in_claims():
    """The claim of a question that goes by looks now is sharpened by another claim: nothing is bought again."""
    question, sharp = joint((MEAN, VARIANCE), 0.05), joint((MEAN, VARIANCE), 0.035)
    claims = in_claims((MEAN, VARIANCE), 0.05)
    old = answered(claims)
    old = replace(
        old, promise=question._promise, **{name: getattr(old, name)[:2] for name in ("value", "lower", "upper", "met")}
    )
    read, _ = state_of(blob_of(old))
    state = answered(sharp, read, seed=2)

    assert json.loads(json.dumps(read.promise)) == list(question._promise)
    assert sharp.looks(read) is None
    assert state.met.all()
    assert not state.critical
    assert state.paid.mean() < 1.15 * answered(in_claims((MEAN, VARIANCE), 0.035), seed=3).paid.mean()


def test_looks_cost_far_less_than_claims():
    """Five aggregates, and a mean with its rows: without a pilot of their own, and without stages."""
    for statistics, relative, most in ((FIVE, 0.3, 0.75), ((COUNT, MEAN), 0.3, 0.7), (FIVE, 0.1, 0.97)):
        claims = answered(in_claims(statistics, relative), groups=600).paid.mean()
        assert answered(joint(statistics, relative), groups=600).paid.mean() < most * claims


def test_what_is_measured_is_what_is_priced():
    """A plan's price is near that of a group as plans assume it."""
    question = joint(FIVE, 0.1)
    state = answered(question, shape=(62.5, 2_500 * (1 / 3 - 1 / 16)))

    assert state.paid.mean() == pytest.approx(question.typical(1e4), rel=0.25)
