"""The looks of a question: where they lie, when a group stops, when it is given up, how it goes on."""

import numpy as np
import pytest

from farthing.accuracy import Schedule, StopRule

pytestmark = pytest.mark.thorough

GRAIN = 2.0**-56


def plan(relative=0.1, absolute=100.0, beta=0.05, *, cap=2**60, **options):
    """Lay out a schedule for counts."""
    return Schedule.plan(relative, absolute, beta, per_grain=GRAIN, cap_grains=cap, **options)


def test_looks_start_tiny_and_end_at_the_floor():
    """The first look costs a few grains; the last gives the absolute target, to within one grain."""
    schedule = plan()
    last = int(schedule.looks[-1])

    assert 16 <= schedule.first_look <= 20
    assert schedule.critical / np.sqrt(last * GRAIN) <= 100
    assert schedule.critical / np.sqrt((last - 100) * GRAIN) > 100
    assert (np.diff(schedule.looks) >= 0).all()
    assert (np.diff(schedule.looks[schedule.looks > 200]) > 0).all()


def test_absolute_target_is_one_look():
    """Without a relative part there is nothing to wait for."""
    schedule = plan(relative=0.0)

    assert [schedule.looks[-1]] == schedule.looks.tolist()
    assert schedule.looks.tolist() == schedule.next_look(np.zeros(1, np.int64), np.zeros(1)).tolist()
    assert schedule.stopped(schedule.looks, np.array([-5.0])).all()
    assert not schedule.capped


def test_cap_binds_and_says_so():
    """A cap below what the absolute target costs is the last look, with a wider floor."""
    schedule = plan(cap=10**9)

    assert schedule.capped
    assert int(schedule.looks[-1]) == 10**9
    assert schedule.floor > 100
    assert not plan().capped
    assert plan(relative=0.0, cap=10).capped


def test_purely_relative_target_needs_the_cap():
    """With absolute = 0 the cap is the last look."""
    assert plan(absolute=0.0, cap=10**12).capped


def test_a_cap_of_one_grain_still_makes_a_schedule():
    """The smallest cap leaves one look."""
    assert [1] == plan(cap=1).looks.tolist()


def test_first_look_comes_first():
    """A group without information looks first at the first look, whatever its value holds."""
    schedule = plan()

    assert [schedule.first_look] * 2 == schedule.next_look(np.zeros(2, np.int64), np.array([0.0, np.inf])).tolist()


def test_next_look_is_always_ahead_and_on_the_grid():
    """From any information, on a look or between looks, the next look is a later look."""
    schedule = plan()
    rng = np.random.default_rng(4)
    between = rng.integers(1, int(schedule.looks[-1]), 3000)
    information = np.concatenate([between, schedule.looks[:-1]])
    value = rng.normal(0, 1, information.size) / np.sqrt(information * GRAIN) * 10

    ahead = schedule.next_look(information, value)

    assert (ahead > information).all()
    assert np.isin(ahead, schedule.looks).all()


def test_groups_near_the_boundary_take_small_steps():
    """A group about to stop looks at the very next look; a group at zero jumps far."""
    schedule = plan()
    index = 2000
    information = schedule.looks[[index, index]]
    edge = schedule.jumps.boundary / np.sqrt(information[0] * GRAIN)

    near, far = schedule.next_look(information, np.array([edge * 0.9999, 0.0]))

    assert schedule.looks[index + 1] == near
    assert far > 15 * information[1]


def test_stopped_is_the_rule():
    """A group stops when c/sqrt(t) <= r Y, and at the last look; never for a negative count before it."""
    schedule = plan()
    information = schedule.looks[[2000, 2000, 2000, -1]]
    edge = schedule.critical / np.sqrt(information[0] * GRAIN) / schedule.relative

    stopped = schedule.stopped(information, np.array([edge * 1.0001, edge * 0.9999, -10 * edge, 0.0]))

    assert [True, False, False, True] == stopped.tolist()


def test_nobody_is_given_up_unless_the_cap_binds():
    """Futility exists only where the target may cost more than the cap."""
    assert plan().futility is None
    assert plan(cap=2**40, futility=False).futility is None
    assert plan(cap=2**40).futility is not None
    assert plan(relative=0.0, cap=2**40).futility is None


def test_hopeless_groups_are_given_up_at_public_looks_only():
    """A group of zero is given up at a public look, not at the one beside it; a large group never."""
    schedule = plan(absolute=0.0, cap=2**42)
    public = len(schedule.looks) - 1 - np.array(schedule.futility.indices)
    beside = public - 1

    assert schedule.futile(schedule.looks[public], np.zeros(public.size))[-1]
    assert not schedule.futile(schedule.looks[beside], np.zeros(public.size)).any()
    assert not schedule.futile(schedule.looks[public], np.full(public.size, 1e9)).any()


def test_giving_up_costs_everyone_a_little():
    """The part of beta spent on giving up makes c larger by less than one part in a hundred."""
    with_it, without = (plan(cap=2**42, futility=on).critical for on in (True, False))

    assert without < with_it < 1.01 * without


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((0.1, 100.0, 0.05), (0.05, 50.0, 0.05)),
        ((0.1, 100.0, 0.05), (0.099, 49.0, 0.01)),
        ((0.1, 50.0, 0.2), (0.1, 50.0, 0.05)),
        ((0.5, 300.0, 0.1), (0.05, 300.0, 0.1)),
        ((0.5, 300.0, 0.1), (0.0, 40.0, 0.05)),
        ((0.0, 100.0, 0.05), (0.0, 40.0, 0.05)),
    ],
)
def test_a_refinement_goes_on_wherever_the_earlier_rule_did(before, after):
    """The later boundary and last look are nowhere below the earlier ones."""
    first = plan(*before)
    second = plan(*after, after=first.rule)

    assert second.jumps.boundary >= first.jumps.boundary * (1 - 1e-12)
    assert second.looks[-1] >= first.looks[-1]
    assert second.floor <= after[1]


def test_rule_is_what_later_asks_need():
    """The rule kept with an answer is three plain numbers."""
    schedule = plan()

    assert StopRule(0.1, schedule.critical, int(schedule.looks[-1])) == schedule.rule
