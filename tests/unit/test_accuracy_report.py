"""What is printed for a stopped group."""

import numpy as np
import pytest

from farthing.accuracy import Schedule, reported

GRAIN = 2.0**-56


def show(value, schedule, *, futile=False):
    """Report one value at every group's last look."""
    value = np.atleast_1d(np.asarray(value, dtype=float))
    information = np.full(value.size, schedule.looks[-1])
    return reported(value, information, schedule, np.full(value.size, futile))


@pytest.mark.parametrize("relative", [0.01, 0.1, 0.5, 0.9])
def test_value_is_close_to_every_truth_in_the_interval(relative):
    """Whenever the interval holds the truth, the value is within the target of it: on a dense grid, surely."""
    schedule = Schedule.plan(relative, 100.0, 0.05, per_grain=GRAIN, cap_grains=2**60)
    y = np.linspace(-4, 4, 1601) * schedule.floor / relative / (1 - relative)
    answer = show(y, schedule)

    for part in np.linspace(0, 1, 11):
        x = answer.lower + part * (answer.upper - answer.lower)
        allowed = np.maximum(relative * np.abs(x), schedule.floor)
        assert (np.abs(answer.value - x) <= allowed * (1 + 1e-12)).all()


def test_reporting_the_mean_itself_would_not_be():
    """Y is further than r x from the lower end of its own interval: why the value is (1 - r^2) Y."""
    relative, y = 0.5, 10_000.0
    x = y * (1 - relative)

    assert abs(y - x) > relative * x
    assert abs((1 - relative**2) * y - x) == pytest.approx(relative * x)


def test_value_is_continuous_and_odd():
    """The three pieces meet, and a negative mean mirrors a positive one."""
    schedule = Schedule.plan(0.3, 100.0, 0.05, per_grain=GRAIN, cap_grains=2**60)
    y = np.linspace(0, 2000, 200_001)
    up, down = show(y, schedule), show(-y, schedule)

    assert np.abs(np.diff(up.value)).max() <= 0.0101
    assert (up.value == -down.value).all()


def test_absolute_target_shows_the_mean():
    """Without a relative part the value is the mean and the interval the target."""
    schedule = Schedule.plan(0.0, 100.0, 0.05, per_grain=GRAIN, cap_grains=2**60)
    answer = show(42.0, schedule)

    assert float(answer.value[0]) == 42.0
    assert answer.upper[0] - answer.lower[0] == pytest.approx(200)
    assert answer.met.all()


def test_cap_misses_what_it_could_not_reach():
    """At a cap, a small group's target is not met and the interval is the wider floor; a large group's is met."""
    schedule = Schedule.plan(0.1, 100.0, 0.05, per_grain=GRAIN, cap_grains=10**12)
    small, large = 0.0, 20 * schedule.floor
    answer = show([small, large], schedule)

    assert [False, True] == answer.met.tolist()
    assert answer.upper[0] == pytest.approx(schedule.floor)
    assert schedule.floor > 100


def test_groups_given_up_show_the_mean_with_the_public_width():
    """A group that was given up keeps its own interval and is not met."""
    schedule = Schedule.plan(0.1, 0.0, 0.05, per_grain=GRAIN, cap_grains=10**12)
    answer = show(7.0, schedule, futile=True)

    assert not answer.met.any()
    assert float(answer.value[0]) == 7.0
    assert answer.upper[0] - 7.0 == pytest.approx(schedule.futility.width / np.sqrt(10**12 * GRAIN))
