"""Where quantiles of one group seem to lie, from noisy rows at or below some thresholds: a guess, which may err."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LIKELY: Final = 2.0
"""A place is likely on one side when it is off by so many standard deviations."""

GAP: Final = 0.15
"""Between two places D is known within so large a part of what they are apart, besides their noise."""

LUMP: Final = 0.7
"""One leaf that seems to hold so many slacks of rows is proved by the thresholds on both sides of it."""

STRAIGHT: Final = 3.0
"""Places that are fewer slacks apart are taken by their middles, others by their ends."""

INNER: Final = 0.6
"""A place that is on neither side is looked at if its noise is less than so many slacks."""

WINDOW: Final = 1.5
"""A straight line is drawn through what is fewer slacks off than this,"""

WINDOW_NOISE: Final = 2.0
"""and so many standard deviations of its own;"""

FITS: Final = 1.8
"""it fits where the squares that are left are so many times their variances, in the mean."""

EXACT: Final = 1e9  # one over the variance of D at both ends of the range


class Guess(NamedTuple):
    """Where each quantile seems to be.

    Attributes:
        left, right: the thresholds that seem to lie on both sides of it.
        first, last: those that are likely to.
        place: where it seems to be.
        gap: rows between `left` and `right`.
        doubt: how far D may be off at `place`, in rows.
    """

    left: Int64
    right: Int64
    first: Int64
    last: Int64
    place: Int64
    gap: Float64
    doubt: Float64


def guessed(points: tuple[Float64, Float64, Float64], goal: Float64, slack: Float64) -> tuple[Float64 | Int64, ...]:
    """Return the guesses of one group, as in `Guess`: by what rises with thresholds and is nearest to what was shown.

    Args:
        points: thresholds that rise, rows at or below them, and one over their variances, with both ends of the range.
        goal: float64[quantiles], the rows that are looked for.
        slack: float64[quantiles], by how many they may be off.
    """
    from scipy.optimize import isotonic_regression

    place, shown, weight = points
    fitted = isotonic_regression(shown, weights=weight)
    first = fitted.blocks[:-1]
    held = np.add.reduceat(weight, first)
    centre, mean = np.add.reduceat(weight * place, first) / held, fitted.x[first]
    low, high, noise = place[first], place[fitted.blocks[1:] - 1], 1 / np.sqrt(held)
    a, b = _around(mean, noise, goal)
    gap = np.maximum(mean[b] - mean[a], 1e-9)
    part = np.clip((goal - mean[a]) / gap, 0.0, 1.0)
    near = gap <= STRAIGHT * slack
    left, right = np.where(near, centre[a], high[a]), np.where(near, centre[b], low[b])
    guess = np.rint(left + part * (right - left))
    mixed = np.hypot((1 - part) * noise[a], part * noise[b])
    apart = np.where(low[b] - high[a] > 1, gap * np.minimum(part, 1 - part) * 2, 0.0)
    inner = (np.arange(len(mean)) > a[:, None]) & (np.arange(len(mean)) < b[:, None])
    best = np.where(inner, noise, np.inf).argmin(axis=1)
    here = inner.any(axis=1) & (noise[best] <= INNER * slack)
    guess = np.where(here, np.rint(centre[best]), guess)
    mixed, apart = np.where(here, noise[best], mixed), np.where(here, 0.0, apart)
    f, after = _around(mean, LIKELY * noise, goal)
    line, sure, good = _line(place, shown, weight, goal, slack)
    good &= (line > -1) & (line < place[-1]) & ~((gap > LUMP * slack) & (low[b] - high[a] <= 1))
    good &= (line >= np.minimum(high[f], high[a])) & (line <= np.maximum(low[after], low[b]))
    guess = np.where(good, np.rint(line), guess)
    mixed, apart = np.where(good, sure, mixed), np.where(good, 0.0, apart)
    first, after = np.minimum(high[f], high[a]), np.maximum(low[after], low[b])
    found = (one.astype(np.int64) for one in (high[a], low[b], first, after, guess))
    return (*found, gap, np.hypot(mixed, GAP * apart))


def _around(mean: Float64, spare: Float64, goal: Float64) -> tuple[Int64, Int64]:
    """Return the last place that lies below each goal by more than is spare, and the first after it that lies above."""
    place = np.arange(len(mean))
    first = np.where(mean + spare < goal[:, None], place, 0).max(axis=1)
    above = (mean - spare > goal[:, None]) & (place > first[:, None])
    return first, np.where(above, place, len(mean) - 1).min(axis=1)


def _line(
    place: Float64, shown: Float64, weight: Float64, goal: Float64, slack: Float64
) -> tuple[Float64, Float64, Flags]:
    """Return where a straight line through what is near each goal crosses it, how surely, and whether it fits."""
    off = shown - goal[:, None]
    near = np.abs(off) <= WINDOW * slack[:, None] + WINDOW_NOISE / np.sqrt(weight)
    near[:, [0, -1]] = False
    used = np.where(near, weight, 0.0)
    total = used.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, mean = (used * place).sum(axis=1) / total, (used * off).sum(axis=1) / total
        away = place - middle[:, None]
        spread = (used * away**2).sum(axis=1)
        slope = (used * away * off).sum(axis=1) / spread
        line = middle - mean / slope
        left = off - mean[:, None] - slope[:, None] * away
        worse = (used * left**2).sum(axis=1)
        noise = np.sqrt(1 / total + (line - middle) ** 2 / spread)
        fits = (near.sum(axis=1) >= 3) & (slope > 0) & np.isfinite(line) & (worse <= FITS * near.sum(axis=1))
        fits &= (np.where(near, off, 0).min(axis=1) < 0) & (np.where(near, off, 0).max(axis=1) > 0)
    return np.nan_to_num(line), np.where(fits, noise, 0.0), fits & (noise <= 2 * slack)
