"""What others would pay: someone who knew the truth, and the doubling baseline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.stop_rule import two_sided
from farthing.normal import ndtr

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats


def oracle_cost(
    truth: Any, relative: float, absolute: float, beta: float = 0.05, *, sensitivity: float = 1.0
) -> Floats:
    """Return the least mu^2 of a Gaussian release with that target, for someone who knew the truth.

    >>> round(float(oracle_cost(10_000, 0.1, 100.0)) * 1e6, 4)
    3.8415
    """
    width = np.maximum(relative * np.abs(np.asarray(truth, dtype=np.float64)), absolute)
    with np.errstate(divide="ignore"):
        cost: Floats = (two_sided(beta) * sensitivity / width) ** 2
    return cost


def doubling_cost(
    truth: Any, relative: float, absolute: float, beta: float = 0.05, *, first: float, last: float = math.inf
) -> Floats:
    """Return the information that the doubling baseline is expected to buy (times sensitivity^2: its mu^2).

    Doubling draws fresh noise at information first, 2 first, 4 first, ... and forgets what it saw before; it stops at
    the first level with `z/sqrt(t) <= max(r |Y|, a)`, or at the last level, and has paid for all levels up to there.
    Its z is not calibrated (its own misses exceed beta at the stop), so this is less than an honest doubling would
    pay. Given the truth, its looks are independent: the expectation is a finite sum, computed exactly. Given released
    answers in place of truths, it is public.

    Args:
        truth: the group sizes, or released answers in their place.
        relative: r of the target.
        absolute: a of the target; 0 needs a finite `last`.
        beta: chance of a miss.
        first: information of the first level; > 0.
        last: the most information a level may have (a cap).

    >>> round(float(doubling_cost(10_000, 0.1, 100.0, first=1e-12) / oracle_cost(10_000, 0.1, 100.0)), 1)
    2.6
    """
    size = np.abs(np.asarray(truth, dtype=np.float64))
    z = two_sided(beta)
    enough = min(last, (z / absolute) ** 2 if absolute > 0 else math.inf)
    paid, going, level = np.zeros_like(size), np.ones_like(size), first
    while True:
        level = min(level, max(enough, first))
        paid += going * level
        if level >= enough or not going.any():
            return paid
        edge = z / relative if relative > 0 else math.inf  # goes on while |Y| sqrt(t) is below it
        signal = size * math.sqrt(level)
        going = going * (ndtr(edge - signal) - ndtr(-edge - signal))
        level *= 2
