"""Intervals of functions of several measures with two-sided geometric noise: what a pure budget's answers may say.

As in `statistics`, nothing is linearised: an interval misses the truth with probability beta at most, whatever the
truth is. Noise enters by one number a lane, its scale, and by the quantile of a weighted sum of Laplace variables.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.formulas import bent_interval
from farthing.accuracy.statistics import Linear, RatioStatistic

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats

BOX_SHARE: Final = 0.1
"""The part of beta that the box takes, in which all lanes lie."""

_APART: Final = 1.04  # scales are taken to be this far apart, so that their tails can be added up in floats
_NEGLIGIBLE: Final = 2.0**-30  # of the largest scale: smaller ones are taken to be this
_STEPS: Final = 12  # of Newton's method; each ends above the quantile
_NARROWED: Final = 3
_DIGITS: Final = 2.0**-50


def laplace_quantile(scales: Floats, beta: float | Floats) -> Floats:
    """Return q with P[|sum of scale_l L_l| > q] <= beta, for independent standard Laplace variables L_l.

    Args:
        scales: float64[lanes, groups], none below 0.
        beta: in (0, 1), one for all groups or one a group.

    Guarantee: the chance is at most beta, and nearly beta: scales are raised by a few percent where two are alike.
    Proof: docs/proofs/accuracy.laplace_measures.md (claims 1 and 2).
    Assumes: nothing.
    Rounds: up, but for the last digits of float64, which beta pays for.

    >>> [round(float(q), 2) for q in laplace_quantile(np.array([[1.0, 1.0], [0.0, 1.0]]), 0.05)]
    [3.0, 4.2]
    """
    largest = scales.max(axis=0, initial=0.0)
    unit = np.sort(scales / np.where(largest > 0, largest, 1.0), axis=0)
    unit[0] = np.maximum(unit[0], _NEGLIGIBLE)
    for lane in range(1, len(unit)):
        unit[lane] = np.maximum(unit[lane], _APART * unit[lane - 1])
    squares = unit**2
    apart = squares[:, None] - squares[None] + np.eye(len(unit))[:, :, None]
    weights = np.where(np.eye(len(unit), dtype=np.bool_)[:, :, None], 1.0, squares[:, None] / apart).prod(axis=1)
    chance = np.maximum(beta - _DIGITS * np.abs(weights).sum(axis=0), beta / 2)
    found = unit[-1] * np.log(1 / beta)
    for _ in range(_STEPS):  # the logarithm of the tail is concave: every tangent ends above the quantile
        parts = weights * np.exp(-found / unit)
        tail = np.maximum(parts.sum(axis=0), np.finfo(np.float64).tiny)
        steep = (parts / unit).sum(axis=0) / tail
        found = np.maximum(found + np.log(tail / chance) / np.maximum(steep, 1e-3), 0.0)
    return np.asarray(found * (1 + _DIGITS * 2**10) * largest)


def laplace_interval(
    statistic: Any, values: Floats, scales: Floats, steps: Floats, beta: float
) -> tuple[Floats, Floats]:
    """Return the interval of a statistic at failure probability beta.

    Args:
        statistic: any of `statistics.Statistic`.
        values: float64[lanes, groups], what was shown.
        scales: float64[lanes, groups], the scale of each lane's noise; infinite where nothing was shown.
        steps: float64[lanes, 1], by how much each lane's noise may differ from a Laplace variable.
        beta: the failure probability.

    Guarantee: it misses the truth with probability beta at most; where a count that is divided by is 0, no number does.
    Proof: docs/proofs/accuracy.laplace_measures.md (claim 3).
    Assumes: independent lanes, whose scales were fixed before they were shown.
    Rounds: to the nearest float64; an end may be off by a few units in the last place, as in all intervals here.
    """
    if isinstance(statistic, Linear):
        lanes, weights = list(statistic.lanes), np.abs(np.array(statistic.weights))[:, None]
        with np.errstate(invalid="ignore"):
            half = laplace_quantile(weights * scales[lanes], beta) + (weights * steps[lanes]).sum(axis=0)
        half, value = np.where(np.isnan(half), np.inf, half), statistic.estimate(values)
        return value - half, value + half
    if isinstance(statistic, RatioStatistic):
        return _ratio(statistic, values, scales, steps, beta)
    reads = list(statistic.reads)
    reach = scales[reads] * math.log(len(reads) / (beta * BOX_SHARE)) + steps[reads]

    def half_of(slopes: Floats) -> Floats:
        """Return how far noise may move the number, at these slopes at most."""
        moved = laplace_quantile(np.minimum(slopes * scales[reads], 1e250), beta * (1 - BOX_SHARE))
        return np.asarray(moved + (slopes * steps[reads]).sum(axis=0))

    return bent_interval(statistic, values[reads], reach, half_of)


def _ratio(
    statistic: RatioStatistic, values: Floats, scales: Floats, steps: Floats, beta: float
) -> tuple[Floats, Floats]:
    """Return the interval of a mean, or of one count or sum over another.

    `S - q N` is noise alone at the true q = mean - centre. Its quantile grows with |q|, so a bound on |q| gives an
    interval, and this a better bound.
    """
    bottom, top = values[statistic.count], values[statistic.total]
    below, above = scales[statistic.count], scales[statistic.total]
    less, more = steps[statistic.count], steps[statistic.total]
    far = math.log(2 / beta)
    known = max(statistic.upper - statistic.centre, statistic.centre - statistic.lower)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        left = bottom - far * below - less
        most = np.where(left > 0, (np.abs(top) + far * above + more) / left, np.inf)
        for _ in range(_NARROWED):
            most = np.where(np.isnan(most), np.inf, np.minimum(most, known))
            clear = np.isfinite(most) & np.isfinite(below + above) & (bottom > 0)
            bound = np.where(clear, most, 0.0)
            finite = np.where(clear, [above, bound * below], 0.0)
            half = laplace_quantile(finite, beta) + more + bound * less
            most = np.where(clear, (np.abs(top) + half) / bottom, most)
        middle, reach = np.where(clear, top / bottom, 0.0), np.where(clear, half / bottom, np.inf)
    lower, upper = statistic.centre + middle - reach, statistic.centre + middle + reach
    return np.clip(lower, statistic.lower, statistic.upper), np.clip(upper, statistic.lower, statistic.upper)
