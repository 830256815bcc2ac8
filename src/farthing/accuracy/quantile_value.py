"""How near the value of a quantile is to be: which intervals are near enough."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

WIDER: Final = 2.25
"""Looks that were made for a target that is more than so many times as wide are bet on no more."""

_EXACT: Final = 1e-9
_STEPS: Final = 16  # of a number's logarithm to base 2
_BITS: Final = 10
_MOST: Final = (1 << _BITS) - 1


def within(lower: Float64, upper: Float64, relative: float, absolute: float) -> Flags:
    """Return where every number between two ends is within max(relative |number|, absolute) of their middle.

    >>> within(np.array([9.0, -1.0]), np.array([11.0, 1.0]), 0.12, 0.5).tolist()
    [True, False]
    """
    least: Float64 = np.where((lower <= 0) & (upper >= 0), 0.0, np.minimum(np.abs(lower), np.abs(upper)))
    return np.asarray((upper - lower) / 2 <= np.maximum(relative * least, absolute))


class ValueTarget(NamedTuple):
    """How near the value is to be: the goal with its range, and the errors allowed."""

    asked: QuantileGoal
    relative: float
    absolute: float

    @property
    def code(self) -> int:
        """Both errors, as a whole number of 20 bits: each as a logarithm, the absolute one in parts of the range.

        >>> from farthing.accuracy.quantile_ranks import QuantileGoal
        >>> ValueTarget(QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10), 0.25, 0.0).code
        480
        """
        parts = self.relative, self.absolute / (self.asked.upper - self.asked.lower)
        relative, absolute = (round(_STEPS * (math.log2(part) + 32)) if part else 0 for part in parts)
        return min(max(relative, 0), _MOST) + (min(max(absolute, 0), _MOST) << _BITS)

    def much_narrower_than(self, codes: Int64) -> Flags:
        """Return which codes are of targets that are more than `WIDER` times as wide in each error that both name."""
        named, wider = np.zeros(np.shape(codes), np.bool_), np.ones(np.shape(codes), np.bool_)
        for shift in (0, _BITS):
            mine, theirs = self.code >> shift & _MOST, np.asarray(codes) >> shift & _MOST
            both = (mine > 0) & (theirs > 0)
            named |= both
            wider &= ~both | (theirs > mine + _STEPS * math.log2(WIDER))
        return np.asarray(named & wider)

    @property
    def reachable(self) -> bool:
        """Whether one leaf alone is near enough, at an end of the range at least: there most is allowed.

        >>> from farthing.accuracy.quantile_ranks import QuantileGoal
        >>> asked = QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=9)
        >>> [ValueTarget(asked, *errors).reachable for errors in ((0.0, 0.9), (0.0, 1.0), (0.001, 0.0))]
        [False, True, True]
        """
        ends = np.array([0, self.asked.leaves - 1])
        return bool(within(self.asked.least(ends), self.asked.most(ends), self.relative, self.absolute).any())

    def last(self, place: Int64) -> Int64:
        """Return the last threshold that is near enough to these: the leaves between are within the target; one is.

        >>> from farthing.accuracy.quantile_ranks import QuantileGoal
        >>> ValueTarget(QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10), 0.1, 0.0).last(np.array([-1, 99])).tolist()
        [0, 119]
        """
        asked = self.asked
        lower = asked.least(place + 1)
        upper = lower + 2 * self.absolute
        upper = np.maximum(upper, np.where(lower > 0, lower * (1 + 2 * self.relative), lower / (1 + 2 * self.relative)))
        last = np.floor((upper - asked.most(np.zeros_like(place))) / asked.step + _EXACT).astype(np.int64)
        last = np.clip(last, place + 1, asked.leaves - 1)
        near = within(lower, asked.most(last), self.relative, self.absolute)
        return np.where(near, last, np.maximum(last - 1, place + 1))
