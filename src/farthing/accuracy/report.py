"""What to print for a stopped group: a value, an interval around it, and whether the target was met."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.schedule import Schedule


class Report(NamedTuple):
    """What is printed, one entry a group.

    Attributes:
        value: float64, surely within the target of every truth in the interval (not for groups given up).
        lower: float64, lower end of the interval.
        upper: float64, upper end of the interval.
        met: bool, whether the interval is as narrow as the target asked.
    """

    value: Floats
    lower: Floats
    upper: Floats
    met: NDArray[np.bool_]


def reported(value: Floats, information: Ints, schedule: Schedule, futile: NDArray[np.bool_]) -> Report:
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
    # Without a binding cap the floor is the absolute target but for its last bits: print the target itself.
    floor = schedule.floor if schedule.capped else max(schedule.floor, schedule.absolute)
    half = np.maximum(schedule.relative * size, floor)
    met = (half <= np.maximum(schedule.relative * size, schedule.absolute)) & ~futile
    shown = np.copysign(_centre(size, schedule.relative, floor), value)
    if schedule.futility is not None:
        wide = schedule.futility.width / schedule.precision(np.maximum(information, 1))
        half, shown = np.where(futile, wide, half), np.where(futile, value, shown)
    return Report(shown, value - half, value + half, met)


def _centre(size: Floats, relative: float, floor: float) -> Floats:
    """Return the number within max(r x, a*) of every x in the interval around size >= 0, in three pieces."""
    if relative == 0:
        return size
    kink = floor / relative
    lowered = np.maximum((1 - relative) * size + floor, (1 - relative * relative) * size)
    return np.where(size < kink, size, np.where(size < kink / (1 - relative), (1 - relative) * size + floor, lowered))
