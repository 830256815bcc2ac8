"""Laws of targets, schedules and reports."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accuracy import Schedule, Target, reported
from farthing.accuracy.jumps import JumpMap

GRAIN = 2.0**-56
fractions = st.sampled_from([0.0, 0.02, 0.1, 0.3])
widths = st.floats(1.0, 1e6)
confidences = st.floats(0.5, 0.9999)
targets = st.builds(Target, fractions, widths, confidences)


@given(targets, targets)
def test_tightest_implies_both(one, other):
    """The tightest of two targets is at least as tight as each, whichever comes first."""
    both = one.tightest(other)

    assert both.at_least_as_tight_as(one) or both.beta() <= one.beta() * (1 + 1e-9)
    assert both.relative == min(one.relative, other.relative)
    assert both.absolute == min(one.absolute, other.absolute)


@given(targets)
def test_tightest_with_itself_is_itself(target):
    """Asking twice changes nothing."""
    assert target is target.tightest(target)


@pytest.mark.thorough
@settings(deadline=None, max_examples=15)
@given(st.sampled_from([0.0, 0.1]), widths, st.floats(1.0, 10.0), st.sampled_from([0.05, 0.01]))
def test_a_tighter_absolute_target_never_costs_less(relative, absolute, factor, beta):
    """The last look grows as the absolute target falls."""
    loose, tight = (
        Schedule.plan(relative, a, beta, per_grain=GRAIN, cap_grains=2**62) for a in (absolute * factor, absolute)
    )

    assert tight.looks[-1] * (1 + 1e-2) >= loose.looks[-1]


@settings(deadline=None, max_examples=15)
@given(st.sampled_from([0.0, 0.1]), widths, st.integers(1, 2**62), st.floats(-1e9, 1e9))
def test_reports_are_ordered_and_verdicts_honest(relative, absolute, cap, value):
    """Lower <= value <= upper, and met means as narrow as asked."""
    schedule = Schedule.plan(relative, absolute, 0.05, per_grain=GRAIN, cap_grains=cap)
    answer = reported(np.array([value]), schedule.looks[-1:], schedule, np.array([False]))

    assert answer.lower[0] <= answer.value[0] <= answer.upper[0]
    half = (answer.upper[0] - answer.lower[0]) / 2
    assert bool(answer.met[0]) == (half <= max(relative * abs(value), absolute) * (1 + 1e-9))


@given(
    st.floats(2.0, 5e3),
    st.sampled_from([1.005, 1.02, 1.3]),
    st.integers(1, 4000),
    st.lists(st.integers(1, 4000), max_size=3).map(tuple),
    st.lists(st.floats(-50, 5e3), min_size=2, max_size=9),
)
def test_jumps_go_forward_and_shrink_towards_the_boundary(boundary, ratio, index, public, signals):
    """Every jump goes on, none passes the end or a public look, and a higher signal never jumps further."""
    signals = np.sort(np.minimum(signals, boundary))
    after = JumpMap(boundary, ratio, public).targets(np.full(signals.size, index), signals)

    assert (0 <= after).all()
    assert (after < index).all()
    assert all((after >= look).all() for look in public if look < index)
    level = JumpMap(boundary, ratio, public).level_of(signals)
    assert (np.diff(level) <= 0).all()
