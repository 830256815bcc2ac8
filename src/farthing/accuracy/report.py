"""What to print for a stopped group: a value, an interval around it, and whether the target was met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.schedule import Schedule


NEARLY: Final = 1 + 1e-12
"""Equal targets may differ in the last bits of their floats."""


class IntervalReport(NamedTuple):
    """What is printed, one entry a group.

    Attributes:
        value: float64, surely within the target of every truth in the interval (not for groups given up).
        lower: float64, lower end of the interval.
        upper: float64, upper end of the interval.
        met: bool, whether the interval is as narrow as the target asked.
        estimate: float64, nearly unbiased, for totals and rankings.
    """

    value: Floats
    lower: Floats
    upper: Floats
    met: NDArray[np.bool_]
    estimate: Floats


def reported(value: Floats, information: Ints, schedule: Schedule, futile: NDArray[np.bool_]) -> IntervalReport:
    """Return value, interval and verdict for groups that stopped.

    Args:
        value: float64[groups], the precision-weighted means Y at the stop, in the units of the answer.
        information: int64[groups], total grains paid.
        schedule: the looks the groups followed.
        futile: bool[groups], which were given up.

    Guarantee: the interval covers the truth with probability at least 1 - beta; whenever it does and the group was not
        given up, `|value - truth| <= max(r |truth|, a*)`.
    Proof: docs/proofs/accuracy.schedule.md.
    Assumes: the group followed the schedule until `stopped` or `futile`.
    Rounds: nothing; float64 error is below 2^-50 of the half-width, far inside the margin of c.

    >>> from farthing.accuracy.schedule import Schedule
    >>> plan = Schedule.plan(0.1, 100.0, 0.05, per_grain=2.0**-56, cap_grains=2**50)
    >>> answer = reported(np.array([20_000.0]), plan.looks[2000:2001], plan, np.array([False]))
    >>> [float(x) for x in (answer.value[0], answer.lower[0], answer.upper[0])], bool(answer.met[0])
    ([19800.0, 18000.0, 22000.0], True)
    """
    size = np.abs(value)
    half = half_widths(value, information, schedule, futile)
    met = (half <= np.maximum(schedule.relative * size, schedule.absolute)) & ~futile
    shown = np.copysign(_centre(size, schedule.relative, _floor(schedule)), value)
    if schedule.futility is not None:
        shown = np.where(futile, value, shown)
    estimate = np.where(futile, value, estimated(value, schedule))
    return IntervalReport(shown, value - half, value + half, met, estimate)


def estimated(value: Floats, schedule: Schedule) -> Floats:
    """Return nearly unbiased estimates of groups that stopped by a rule.

    A group that stops because |Y| is large enough is told too large, on average by 2 v/b^2 of its truth, where v is the
    variance of the law at scale 1 and b = c/r; at its floor it is not. In between the estimate stays at the kink.

    Guarantee: at every truth the bias is at most a tenth of the half-width; computed, not proved.
    Proof: docs/proofs/accuracy.stop_rule.md, "The estimate"; docs/proofs/accuracy.laplace_stop_rule.md, likewise;
        bench/accuracy/estimates.py prints it.
    Assumes: a rule made by `Schedule.plan`: b is at least the law's `least_signal`.
    Rounds: nothing.

    >>> from farthing.accuracy.schedule import Schedule
    >>> plan = Schedule.plan(0.3, 30.0, 0.05, per_grain=2.0**-56, cap_grains=2**60)
    >>> estimated(np.array([50.0, 101.0, -1000.0]), plan).round(1).tolist()
    [50.0, 100.0, -955.0]
    """
    if schedule.relative == 0:
        return value
    size, kink = np.abs(value), _floor(schedule) / schedule.relative
    less = size * (1 - 2 * schedule.law.variance / schedule.jumps.boundary**2)
    return np.asarray(np.copysign(np.maximum(less, np.minimum(size, kink)), value))


def half_widths(value: Floats, information: Ints, schedule: Schedule, futile: NDArray[np.bool_]) -> Floats:
    """Return the half-width of each interval that `reported` tells, float64[groups]."""
    half = np.maximum(schedule.relative * np.abs(value), _floor(schedule))
    if schedule.futility is None:
        return half
    wide = schedule.futility.width / schedule.precision(np.maximum(information, 1))
    return np.where(futile, wide, half)


def reread(value: Floats, half: Floats, relative: float, absolute: float) -> IntervalReport:
    """Return what to print of intervals that stand, for a target that they were not made for.

    Args:
        value: float64[groups], the means in the middle of the intervals.
        half: float64[groups], their half-widths.
        relative: r of the target that is asked now.
        absolute: a of it.

    Guarantee: the intervals are what they were; where one is as narrow as the target asks, the value is within
        max(r |x|, a) of every truth x in it.
    Proof: docs/proofs/accuracy.schedule.md, "Intervals that stand".
    Assumes: nothing; what is read was released.
    Rounds: nothing.

    >>> report = reread(np.array([1000.0, 20.0]), np.array([50.0, 50.0]), 0.05, 0.0)
    >>> report.value.tolist(), report.met.tolist()
    ([997.5, 20.0], [True, False])
    """
    size = np.abs(value)
    met = half <= np.maximum(relative * size, absolute) * NEARLY
    near = size - half
    highest = near + np.maximum(relative * np.abs(near), absolute)
    shown = np.where(met, np.minimum(size, np.maximum(highest, near)), size)
    return IntervalReport(np.copysign(shown, value), value - half, value + half, met, value)


def _floor(schedule: Schedule) -> float:
    """Return the least half-width that is printed.

    Without a binding cap the floor is the absolute target but for its last bits: the target itself is printed.
    """
    return schedule.floor if schedule.capped else max(schedule.floor, schedule.absolute)


def _centre(size: Floats, relative: float, floor: float) -> Floats:
    """Return the number within max(r x, a*) of every x in the interval around size >= 0, in three pieces."""
    if relative == 0:
        return size
    kink = floor / relative
    lowered = np.maximum((1 - relative) * size + floor, (1 - relative * relative) * size)
    return np.where(size < kink, size, np.where(size < kink / (1 - relative), (1 - relative) * size + floor, lowered))
