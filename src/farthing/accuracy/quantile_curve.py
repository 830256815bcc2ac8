"""What all looks near where D crosses 0 tell together: a curve through them, or steps, by what they showed.

Two pictures of D are weighed against each other. In one it rises along a curve whose slope changes slowly, give or take
lumps of rows: a smoothing spline, as a Kalman filter finds it [Wahba 1978]. In the other it is the same at neighbours,
or jumps. Where looks fit the curve, each of them tells of all places near it. A guess, which promises nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_neighbours import Offset
from farthing.normal import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

NEAR: Final = 12.0
"""Looks are near in this many half windows."""

LUMPS: Final = (0.0, 0.03, 0.3, 3.0, 30.0)
"""Along the curve D jumps by lumps of one of these sizes, times how far it is off at the ends of a window."""

TURN: Final = 2.0
"""While D rises by the rows on the smaller side of it, the square of its slope changes by so many times itself."""

SLOPE: Final = 1.5
"""The slope is what it seems to be from afar, give or take so many times itself."""

SAME: Final = 0.4
"""On steps D does not change from a look to the next one with this chance, before they are seen."""

DECIDED: Final = 2.0
"""The logarithm of how likely a curve is counts this many times."""

CLEARLY: Final = 2.0
"""Places around the crossing, off by so many standard deviations, tell the slope from afar."""

_MOST: Final = 50.0


class Crossing(NamedTuple):
    """Where D seems to cross 0, how steeply it rises there, and how far it is to the end of a window, in leaves."""

    place: Float64
    slope: Float64
    half: Float64


class Curve(NamedTuple):
    """What a curve tells of places: float64[places, groups].

    Attributes:
        off: how far D is off.
        variance: of that.
        shared: its covariance with that of the next place.
        bend: four times the variance of D in the middle between it and the next one, were both known.
        weight: how likely it is a curve; 0 for places that are not near.
    """

    off: Float64
    variance: Float64
    shared: Float64
    bend: Float64
    weight: Float64

    def with_(self, base: Offset) -> Offset:
        """Return what is told of places by the curve, or by this where it is none."""
        odds = self.weight
        apart = odds * (1 - odds) * (self.off - base.off) ** 2
        return Offset(
            odds * self.off + (1 - odds) * base.off, odds * self.variance + (1 - odds) * base.variance + apart
        )


def slope_of(places: Int64, base: Offset) -> tuple[Float64, Float64]:
    """Return where a straight line between places crosses 0, and how steeply D rises between clear ones around it."""
    off, rows, columns = base.off, np.arange(len(places))[:, None], np.arange(places.shape[1])
    after = np.clip((off < 0).sum(axis=0) - 1, 0, len(places) - 2)
    left, right, below, above = (each[after + more, columns] for each in (places, off) for more in (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.clip(np.nan_to_num(-below / (above - below)), 0.0, 1.0)
    clear = np.abs(off) >= CLEARLY * np.sqrt(base.variance)
    low = np.where(clear & (off < 0), rows, 0).max(axis=0)
    high = np.where(clear & (off > 0), rows, len(places) - 1).min(axis=0)
    high = np.maximum(high, np.minimum(low + 1, len(places) - 1))
    rise, run = (each[high, columns] - each[low, columns] for each in (off, places))
    return left + (right - left) * part, np.maximum(rise, 1e-9) / np.maximum(run, 1)


def curve(places: Int64, own: Offset, crossing: Crossing, rows: tuple[Float64, Float64]) -> Curve:
    """Return the likeliest curve through looks, int64 and float64[places, groups], places rising.

    Args:
        places: with both ends of the range.
        own: what each place's own looks showed; of infinite variance where there are none.
        crossing: where it is, about.
        rows: how far D is off at the beginning and at the end of the range.
    """
    near = (np.abs(places - crossing.place) <= NEAR * crossing.half) & np.isfinite(own.variance)
    own = Offset(own.off, np.where(near, own.variance, np.inf))
    fits, found = _smoothed(places, own, crossing, rows)
    best = fits.argmax(axis=0)[None, None]
    off, variance, shared, bend = (np.take_along_axis(each, best, axis=1)[:, 0] for each in found)
    odds = np.logaddexp.reduce(fits, axis=0) - np.log(len(fits)) - _stepped(own, rows[1] - rows[0])
    likely = 1 / (1 + np.exp(-np.clip(DECIDED * odds, -_MOST, _MOST)))
    return Curve(off, variance, shared, bend, np.where(near & (near.sum(axis=0) >= 2), likely, 0.0))


def _smoothed(
    places: Int64, own: Offset, crossing: Crossing, rows: tuple[Float64, Float64]
) -> tuple[Float64, tuple[Float64, Float64, Float64, Float64]]:
    """Return how likely looks are, and what they tell of places, for each size of lumps: [places, sizes, groups]."""
    scale = np.minimum(crossing.slope * crossing.half, (rows[1] - rows[0]) / 4)
    lumps = np.array(LUMPS)[:, None] * scale * crossing.slope
    turn = TURN * crossing.slope**3 / np.minimum(-rows[0], rows[1])
    many, groups = places.shape
    size = (many, len(LUMPS), groups)
    zero = np.zeros(size[1:])
    level, slope = zero, zero + crossing.slope
    p, q, r = zero + 4 * (rows[1] - rows[0]) ** 2, zero, zero + (SLOPE * crossing.slope) ** 2
    fits, begun = zero, np.zeros(groups, np.bool_)
    before, after, bend, gaps = np.zeros((5, *size)), np.zeros((5, *size)), np.zeros(size), np.zeros((many, groups))
    for row in range(many):
        if row:
            gap = np.where(begun, places[row] - places[row - 1], 0).astype(np.float64)
            gaps[row - 1] = gap
            level = level + gap * slope
            p = p + 2 * gap * q + gap**2 * r + turn * gap**3 / 3 + lumps * gap
            q = q + gap * r + turn * gap**2 / 2
            r = r + turn * gap
            bend[row - 1] = lumps * gap + turn * gap**3 / 48
        before[:, row] = level, slope, p, q, r
        seen = np.isfinite(own.variance[row])
        spread = p + np.where(seen, own.variance[row], 1.0)
        wrong = np.where(seen, own.off[row] - level, 0.0)
        fits = fits - np.where(seen & begun, wrong**2 / spread + np.log(spread), 0.0) / 2
        gain, turns = (np.where(seen, each / spread, 0.0) for each in (p, q))
        level, slope = level + gain * wrong, slope + turns * wrong
        p, q, r = p * (1 - gain), q * (1 - gain), r - turns * q
        after[:, row] = level, slope, p, q, r
        begun = begun | seen
    off, variance, shared = np.zeros(size), np.zeros(size), np.zeros(size)
    off[-1], variance[-1] = level, p
    for row in range(many - 2, -1, -1):
        gap = gaps[row]
        level0, slope0, p0, q0, r0 = after[:, row]
        level1, slope1, p1, q1, r1 = before[:, row + 1]
        all_ = np.maximum(p1 * r1 - q1**2, 1e-300)
        a, b, c, d = p0 + gap * q0, q0, q0 + gap * r0, r0
        a, b, c, d = (a * r1 - b * q1) / all_, (b * p1 - a * q1) / all_, (c * r1 - d * q1) / all_, (d * p1 - c * q1) / all_
        up, turned = level - level1, slope - slope1
        shared[row] = a * p + b * q
        dp, dq, dr = p - p1, q - q1, r - r1
        level, slope = level0 + a * up + b * turned, slope0 + c * up + d * turned
        p, q, r = (
            p0 + a * a * dp + 2 * a * b * dq + b * b * dr,
            q0 + a * c * dp + (a * d + b * c) * dq + b * d * dr,
            r0 + c * c * dp + 2 * c * d * dq + d * d * dr,
        )
        off[row], variance[row] = level, p
    return fits, (off, np.maximum(variance, 0.0), shared, bend)


def _stepped(own: Offset, rows: Float64) -> Float64:
    """Return how likely looks are if D is the same at neighbours, or jumps up by anything: [groups]."""
    level, variance = np.zeros(len(rows)), 4 * rows**2
    fits, begun = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    for off, noise in zip(own.off, own.variance, strict=True):
        seen = np.isfinite(noise)
        noise_ = np.where(seen, noise, 1.0)
        spread = np.sqrt(noise_ + variance)
        wrong = off - level
        same = SAME * np.exp(-0.5 * (wrong / spread) ** 2) / spread
        jump = (1 - SAME) * np.sqrt(2 * np.pi) * ndtr(wrong / spread) / ((np.abs(wrong) + spread) * np.log1p(rows / spread))
        fits = fits + np.where(seen & begun, np.log(np.maximum(same + jump, 1e-300)), 0.0)
        weight = np.where(same > jump, 1 / variance, 0.0)
        both = 1 / noise_ + weight
        level = np.where(seen, (off / noise_ + level * weight) / both, level)
        variance = np.where(seen, 1 / both, variance)
        begun = begun | seen
    return fits
