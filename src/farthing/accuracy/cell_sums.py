"""How far the sum of several released cells may be from the sum of their truths.

The bounds hold for cells that stopped by the rule of their question, wherever they looked on the way to it, and need no
more than what a released record says: its rule and its last look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.stop_rule import two_sided
from farthing.errors import InvalidTarget
from farthing.normal import ndtr

if TYPE_CHECKING:
    from farthing.accuracy.stored_promise import StoredPromise

_BLOCKS: Final = 1.01  # ratio of sqrt(t) over one block; any ratio gives a valid bound
_LEAST: Final = 2.0**-31  # of sqrt(t/t_max): one grain of 2^62
_STEPS: Final = 60


def even(cells: int, information: float, beta: float) -> float:
    """Return the half-width of a sum of cells that all stopped at the same information, at failure probability beta.

    Guarantee: P[|sum of means - sum of truths| > half-width] <= beta.
    Proof: docs/proofs/session.answering.reuse.md: the sum of independent Gaussian errors of variance 1/t is Gaussian.
    Assumes: an absolute rule, so that the information was fixed before anything was seen.
    Rounds: nothing.

    >>> round(even(4, 0.01, 0.05), 4)
    39.1993
    """
    return two_sided(beta) * math.sqrt(cells / information)


def geometric(cells: int, rate: float, beta: float) -> float:
    """Return the half-width of a sum of cells under two-sided geometric noise, at failure probability beta.

    Guarantee: P[|sum of answers - sum of truths| > half-width] <= beta.
    Proof: docs/proofs/session.answering.reuse.md: Chernoff's bound, at the best of many exponents.
    Assumes: independent noise with P[k] proportional to exp(-rate |k|).
    Rounds: nothing.

    >>> geometric(12, 0.05, 0.05) < 12 * geometric(1, 0.05, 0.05)
    True
    """
    tilt = rate * np.linspace(0.001, 0.999, 999)
    moment = 2 * np.log(-np.expm1(-rate)) - np.log(-np.expm1(tilt - rate)) - np.log(-np.expm1(-tilt - rate))
    return float(((math.log(2 / beta) + cells * moment) / tilt).min())


def stretch(kept: StoredPromise, beta: float) -> float:
    """Return by what the intervals of stopped cells are widened so that each misses with probability beta at most.

    Args:
        kept: the rule, with a relative target, by which the cells stopped.
        beta: the failure probability of each cell.

    Returns:
        k >= 1 such that Y +- k max(r |Y|, a*) holds its truth; infinite where this bound gives none.

    Guarantee: for every truth >= 0, whatever looks were taken and however they were chosen, the chance that a cell
        stops by the rule (not given up) and Y +- k max(r |Y|, a*) misses its truth is at most beta.
    Proof: docs/proofs/session.answering.reuse.md.
    Assumes: Gaussian measurements; the cell's final information is at least a grain.
    Rounds: up, to the upper end of a bisection.

    >>> from farthing.accuracy.stored_promise import StoredPromise
    >>> rule = StoredPromise(relative=0.1, absolute=50.0, floor=50.0, beta=0.05, critical=1.99, grains=1 << 50)
    >>> 1.3 < stretch(rule, 0.05) < stretch(rule, 0.005) < 2.1
    True
    """
    if not 0 < kept.relative < 1:
        raise InvalidTarget(
            "cells of an absolute target need no stretching", rule="0 < relative < 1", got=kept.relative,
            next_step="use even",
        )  # fmt: skip
    low, high = 1.0, (1 - 1e-9) / kept.relative
    if _misses(high, kept) > beta:
        return math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _misses(middle, kept) <= beta else (middle, high)
    return high


def _misses(times: float, kept: StoredPromise) -> float:
    """Return a bound on the chance of a miss at `times` the interval: too low, too high, at the end, too high early."""
    boundary = kept.critical / kept.relative
    share = 1 - times * kept.relative
    s = _BLOCKS ** -np.arange(math.ceil(-math.log(_LEAST) / math.log(_BLOCKS)) + 1.0)  # sqrt(t), falling from 1
    line = boundary * (s - share * s * s)
    early = 2 * ndtr(-np.minimum(line[:-1], line[1:]) / s[:-1]).sum()
    return float(6 * ndtr(-times * kept.critical) + early)
