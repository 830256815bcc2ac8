"""How far sums of many Laplace variables reach: what a rank is off that is added up from noisy bins of rows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

_GRID: Final = 2.0**-7
"""Laplace variables are put on multiples of this."""

_POINTS: Final = 1 << 13
"""So many multiples are looked at: those as far out as 64 scales count as beyond."""

_SPARE: Final = 1e-11
"""What is added to each chance for the last digits of a Fourier transform, and for what is beyond."""

_TILTS: Final = 1 << 10
"""So many tilts are tried where a chance is smaller than what the grid can tell."""

_LEAST: Final = 2.0**-20
"""A smaller scale is taken to be this."""

CANTELLI: Final = 3.0
"""Steps of the noise are put right by so many of their standard deviations,"""

RIGHT: Final = 0.9
"""which with at least this chance are enough: 1 - 1/(1 + 3^2)."""


def weighted_reach(share: float, under: Int64, over: Int64, chance: Float64, rows: Float64) -> Float64:
    """Return how far (1 - share) X - share Y is beyond zero with these chances, X and Y being sums of noise of bins.

    Args:
        share: in [0, 1].
        under: int64[n], of how many bins X is the sum.
        over: int64[n], of how many Y is.
        chance: float64[n], the chance allowed; infinitely far where it is 0.
        rows: float64[n], the scale of the two-sided geometric noise of each bin, in rows.

    Guarantee: the chance is at most `chance`, for either direction, however small it is.
    Proof: docs/proofs/accuracy.joint_chains.md, claim 2; below what the grid can tell, `chernoff_reach`.
    Assumes: bins with independent two-sided geometric noise of decay 1/rows a row.
    Rounds: up, but for the last digits of float64, which the chance pays for.

    >>> one, ten = (np.array([n]) for n in (1, 5))
    >>> each = [weighted_reach(0.5, n, n, np.array([0.025]), np.array([1e6]))[0] / 1e6 for n in (one, ten)]
    >>> [round(float(reach), 2) for reach in each]
    [2.13, 4.59]
    """
    far = np.full(len(under), np.inf)
    pairs = np.stack([under, over], axis=1)
    for first, second in np.unique(pairs[chance > 0], axis=0).tolist():
        at = (under == first) & (over == second) & (chance > 0)
        tail = _tail(share, first, second)
        place = np.searchsorted(-tail, -RIGHT * chance[at])  # the first with no more than that
        reaches, less = place * _GRID, place >= len(tail)
        reaches[less] = chernoff_reach(share, first, second, RIGHT * chance[at][less])
        far[at] = reaches
    squares = (1 - share) ** 2 * under + share**2 * over
    return np.asarray(far * rows + CANTELLI * np.sqrt(squares / 6))


def chernoff_reach(share: float, under: int, over: int, chance: Float64) -> Float64:
    """Return how far a weighted sum of standard Laplace variables is beyond zero with these chances, or further.

    Args:
        share: as in `weighted_reach`.
        under: of how many variables of scale 1 - share.
        over: of how many of scale share.
        chance: float64[n], above 0.

    Guarantee: P[sum >= reach] <= chance.
    Proof: Chernoff's bound. A Laplace variable of scale w has E exp(tL) = 1/(1 - w^2 t^2) for 0 < t < 1/w, so that by
        Markov's inequality P[sum >= x] <= exp(-tx) times the product of these. That is `chance` at
        x = (sum of -log(1 - w^2 t^2) + log(1/chance)) / t. So each t gives such a reach, and the least of some of them
        is one as well.
    Assumes: independent variables.
    Rounds: up, by one part in 2^30.

    >>> [round(float(reach), 1) for reach in chernoff_reach(1.0, 0, 1, np.array([1e-9, 1e-30]))]
    [24.2, 73.7]
    """
    counts, scales = np.array([under, over]), np.array([1 - share, share])
    used = (counts > 0) & (scales > 0)
    widest = scales[used].max(initial=_LEAST)
    parts = 1 - np.geomspace(1.0, 2.0**-14, _TILTS + 1)[1:]  # of the largest tilt
    moment = -(counts[used, None] * np.log1p(-((scales[used, None] / widest * parts) ** 2))).sum(axis=0)
    reaches = (moment - np.log(chance)[:, None]) / (parts / widest)
    return np.asarray(reaches.min(axis=1) * (1 + 2.0**-30))


@lru_cache(maxsize=512)
def _tail(share: float, under: int, over: int) -> Float64:
    """Return what P[sum >= i grid] is at most, for each i from 0 on, of a weighted sum of Laplace variables."""
    moved = -(-(under * (share < 1) + over * (share > 0)) // 2)  # each variable is moved by half a step at most
    if chernoff_reach(share, under, over, np.array([_SPARE / 4]))[0] > (_POINTS - moved) * _GRID:
        return np.zeros(0)  # too wide for the circle: all of it is left to Chernoff's bound
    law = _rounded(1 - share) ** under * _rounded(share) ** over
    chances = np.maximum(np.fft.irfft(law, 2 * _POINTS)[:_POINTS], 0.0)
    tail = np.cumsum(chances[::-1])[::-1] + _SPARE
    kept = int(np.searchsorted(-tail, -2 * _SPARE))
    return np.concatenate([np.ones(moved), tail[:kept]])


@lru_cache(maxsize=128)
def _rounded(weight: float) -> Float64:
    """Return the Fourier transform of a Laplace variable of this scale, rounded to the grid, on a circle."""
    far = np.minimum(np.arange(2 * _POINTS), 2 * _POINTS - np.arange(2 * _POINTS))
    if weight <= 0:
        return np.ones(_POINTS + 1)
    step = _GRID / max(weight, _LEAST)
    chances = np.exp(-np.maximum(far - 0.5, 0) * step) * -math.expm1(-step) / 2
    chances[0] = -math.expm1(-step / 2)
    return np.asarray(np.fft.rfft(chances).real)
