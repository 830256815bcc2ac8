"""What all looks near where D crosses 0 tell together: a smooth curve through them, or steps, by what they showed.

Two pictures of D are weighed against each other. In one D rises along a curve whose slope changes slowly, give or take
lumps of rows; looks then tell of one another as a Gaussian process says [Rasmussen, Williams 2006, 2.2]. In the other
D is the same from one look to the next one, or jumps. A guess for a search, which promises nothing.
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
"""Looks are near in this many half windows of the crossing."""

MANY: Final = 8
"""No more than so many places are."""

LEVEL: Final = 30.0
"""There D is 0, give or take so many times what it is off at the ends of a window,"""

SLOPE: Final = 1.5
"""and its slope what it seems to be from afar, give or take so many times that."""

TURN: Final = 2.0
"""While D rises by the rows on the smaller side of it, the square of its slope changes by so many times itself."""

LUMPS: Final = (0.0, 0.3, 3.0)
"""Lumps have one of these sizes, times what D is off at the ends of a window."""

SAME: Final = 0.4
"""On steps D is the same at a look as at the one before with this chance."""

DECIDED: Final = 2.0
"""The logarithm of how much likelier a curve is counts this many times."""

CLEARLY: Final = 2.0
"""Places around the crossing that are off by so many standard deviations tell the slope from afar."""

_MOST: Final = 50.0
_HARDLY: Final = 1e-9
_LEAST_NOISE: Final = 1e-3


class Crossing(NamedTuple):
    """Where D seems to cross 0, by how much it rises there from leaf to leaf, and how many leaves a half window has."""

    place: Float64
    slope: Float64
    half: Float64


class Curve(NamedTuple):
    """What a curve tells of places: float64[places, groups].

    Attributes:
        off: how far D is off.
        variance: of that.
        shared: its covariance with that of the next place.
        weight: how likely there is a curve; 0 for places that are not near.
        bend: float64[2, groups], the variance of D in the middle between two places that are known, for each leaf from
            one to the other, and for the cube of these.
    """

    off: Float64
    variance: Float64
    shared: Float64
    weight: Float64
    bend: Float64

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Curve:
        """Return none anywhere."""
        return cls(*(np.zeros(shape) for _ in range(4)), np.zeros((2, shape[1])))

    def or_(self, other: Offset) -> Offset:
        """Return what is told of places by the curve, and by this as far as there is none."""
        curve, rest = self.weight, 1 - self.weight
        apart = curve * rest * (self.off - other.off) ** 2
        off = curve * self.off + rest * other.off
        return Offset(off, curve * self.variance + rest * other.variance + apart)


def crossing_of(places: Int64, told: Offset) -> tuple[Float64, Float64]:
    """Return where D crosses 0 on a straight line between places, and how steeply it rises between clear ones around.

    >>> told = Offset(np.array([[-20.0], [-1.0], [9.0], [30.0]]), np.ones((4, 1)))
    >>> [each.tolist() for each in crossing_of(np.array([[0], [20], [30], [50]]), told)]
    [[21.0], [0.9666666666666667]]
    """
    off, rows, columns = told.off, np.arange(len(places))[:, None], np.arange(places.shape[1])
    after = np.clip((off < 0).sum(axis=0) - 1, 0, len(places) - 2)
    left, right, below, above = (each[after + more, columns] for each in (places, off) for more in (0, 1))
    part = np.clip(-below / np.maximum(above - below, _HARDLY), 0.0, 1.0)
    clear = np.abs(off) >= CLEARLY * np.sqrt(told.variance)
    low = np.where(clear & (off < 0), rows, 0).max(axis=0)
    high = np.where(clear & (off > 0), rows, len(places) - 1).min(axis=0)
    high = np.maximum(high, np.minimum(low + 1, len(places) - 1))
    rise, run = (each[high, columns] - each[low, columns] for each in (off, places))
    return left + (right - left) * part, np.maximum(rise, _HARDLY) / np.maximum(run, 1)


def curve(places: Int64, looks: Offset, crossing: Crossing, ends: tuple[Float64, Float64]) -> Curve:
    """Return the likeliest curve through looks: all [places, groups], places rising.

    Args:
        places: with both ends of the range.
        looks: how far D seemed to be off, place by place; of infinite variance where there are none.
        crossing: about where it is.
        ends: how far D is off where the range begins and where it ends.
    """
    place, slope, half = crossing
    scale = np.minimum(slope * half, (ends[1] - ends[0]) / 4)
    along = (places - place) / half
    near = (np.abs(along) <= NEAR) & np.isfinite(looks.variance)
    away = np.where(near, np.abs(along), np.inf)
    if len(places) > MANY:
        near &= away <= np.partition(away, MANY - 1, axis=0)[MANY - 1]
    some = np.flatnonzero(near.sum(axis=0) >= 2)
    found = Curve.none(places.shape)
    if not some.size:
        return found
    near, scale_ = near[:, some], scale[some]
    order = np.argsort(~near, axis=0, kind="stable")[: near.sum(axis=0).max()]
    x, y, noise = (
        np.take_along_axis(each, order, axis=0).T
        for each in (along[:, some], looks.off[:, some] / scale_, looks.variance[:, some] / scale_**2)
    )
    near_ = np.take_along_axis(near, order, axis=0).T
    x, y = np.where(near_, x, 0.0), np.where(near_, y, 0.0)
    noise = np.where(near_, np.maximum(noise, _LEAST_NOISE**2), 1.0)
    least, most = (each[some] for each in ends)
    turn = TURN * scale_ / np.minimum(-least, most)
    fits, (told, covariance) = _fitted(x, np.where(near_, y - x, 0.0), noise, near_, turn)
    best, columns = fits.argmax(axis=0), np.arange(len(some))
    told, covariance = told[best, columns] + x, covariance[best, columns]
    odds = np.logaddexp.reduce(fits, axis=0) - np.log(len(LUMPS)) - _stepped(x, y, noise, near_, (most - least) / scale_)
    likely = 1 / (1 + np.exp(-np.clip(DECIDED * odds, -_MOST, _MOST)))
    at = (order.T[near_], some[np.nonzero(near_)[0]])
    rows = np.arange(x.shape[1])
    shared = np.zeros_like(x)
    shared[:, :-1] = covariance[:, rows[:-1], rows[1:]]
    scales = scale[at[1]]
    found.off[at] = told[near_] * scales
    found.variance[at] = np.maximum(covariance[:, rows, rows], 0.0)[near_] * scales**2
    found.shared[at] = shared[near_] * scales**2
    found.weight[at] = np.broadcast_to(likely[:, None], x.shape)[near_]
    found.bend[:, some] = np.array([np.array(LUMPS)[best] / half[some] / 4, turn / half[some]**3 / 192]) * scale_**2
    return found


def _fitted(
    x: Float64, y: Float64, noise: Float64, near: Flags, turn: Float64
) -> tuple[Float64, tuple[Float64, Float64]]:
    """Return how likely looks are, as a logarithm, and what they tell, for each size of lumps: [sizes, groups, ...]."""
    first, second = x[:, :, None], x[:, None, :]
    low, high = np.minimum(np.abs(first), np.abs(second)), np.maximum(np.abs(first), np.abs(second))
    low = np.where(first * second > 0, low, 0.0)
    smooth = LEVEL**2 + SLOPE**2 * first * second + turn[:, None, None] * low**2 * (3 * high - low) / 6
    both = near[:, :, None] & near[:, None, :]
    prior = np.where(both, smooth + np.array(LUMPS)[:, None, None, None] * low, 0.0)
    seen = prior + noise[:, :, None] * np.eye(x.shape[1])
    inverse = np.linalg.inv(seen)
    left = (inverse @ y[:, :, None])[..., 0]
    told = y - noise * left
    fits = -((y * left).sum(axis=2) + np.linalg.slogdet(seen)[1]) / 2
    covariance = noise[:, :, None] * (np.eye(x.shape[1]) - inverse * noise[:, None, :])
    return fits, (told, covariance)


def _stepped(
    x: Float64, y: Float64, noise: Float64, near: Flags, most: Float64
) -> Float64:
    """Return how likely looks are, as a logarithm, if D is the same as at the last place or jumps up by anything."""
    groups, many = x.shape
    level, variance = np.zeros(groups), np.full(groups, LEVEL**2)
    fits = np.zeros(groups)
    begun = np.zeros(groups, np.bool_)
    for row in range(many):
        seen, spread = near[:, row], np.sqrt(noise[:, row] + variance)
        away = (y[:, row] - level) / spread
        same = np.where(begun, SAME, 1.0) * np.exp(-(away**2) / 2)
        jump = np.where(begun, 1 - SAME, 0.0) * np.sqrt(2 * np.pi) * ndtr(away) / ((1 + np.abs(away)) * np.log1p(most / spread))
        fits = fits + np.where(seen, np.log(np.maximum((same + jump) / spread, 1e-300)), 0.0)
        weight = np.where(same > jump, 1 / variance, 0.0)
        both = 1 / noise[:, row] + weight
        level = np.where(seen, (y[:, row] / noise[:, row] + level * weight) / both, level)
        variance = np.where(seen, 1 / both, variance)
        begun = begun | seen
    return fits
