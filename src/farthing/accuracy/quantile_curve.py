"""What all looks near where D crosses 0 tell together: a smooth curve through them, or steps, by what they showed.

Two pictures of D are weighed against each other. In one D rises along a curve whose slope changes slowly, give or take
lumps of rows; looks then tell of one another as a Gaussian process says [RasmussenW06, 2.2]. In the other D is the same
from one look to the next one, or jumps. A guess for a search (`quantile_windows`), which promises nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_neighbours import ROOT_TURN, Offset
from farthing.normal import ndtr

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

NEAR: Final = 12.0
"""Looks are near in this many half windows of the crossing,"""

MANY: Final = 8
"""and no more than so many places nearest to it are."""

LEVEL: Final = 30.0
"""At the crossing D is 0, give or take so many times what it is off at the ends of a window,"""

SLOPE: Final = 1.5
"""and its slope is what it seems to be from afar, give or take so many times that."""

TURN: Final = 2.0
"""While D rises by the rows on the smaller side of it, its slope turns with a variance of so many times its square."""

LUMP: Final = 0.1
"""Rows come in lumps of this size, times what D is off at the ends of a window."""

SAME: Final = 0.4
"""On steps D is the same at a look as at the one before with this chance."""

RATHER: Final = 1.0
"""The logarithm of how much likelier a curve is than steps, less this,"""

DECIDED: Final = 4.0
"""counts so many times."""

CLEARLY: Final = 2.0
"""Places around the crossing that are off by so many standard deviations tell the slope from afar."""

_HARDLY: Final = 1e-9
_LEAST_ROWS: Final = 1e-3
_LEAST_SIDE: Final = 0.02
_LEAST_NOISE: Final = 1e-6
_FAINT: Final = 1e9
_LEAST_CHANCE: Final = 1e-300
_SURE: Final = 50.0


class RankCrossing(NamedTuple):
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
        bend: float64[2, groups], the variance of D in the middle between two places that are known: for each leaf from
            one to the other, and for the cube of these.
    """

    off: Float64
    variance: Float64
    shared: Float64
    weight: Float64
    bend: Float64

    @classmethod
    def none(cls, places: int, groups: int) -> Self:
        """Return no curve anywhere."""
        off, variance, shared, weight = np.zeros((4, places, groups))
        return cls(off, variance, shared, weight, np.zeros((2, groups)))

    def or_(self, other: Offset) -> Offset:
        """Return what is told of places by the curve, and by this as far as there is none."""
        curve, rest = self.weight, 1 - self.weight
        apart = curve * rest * (self.off - other.off) ** 2
        return Offset(curve * self.off + rest * other.off, curve * self.variance + rest * other.variance + apart)

    def between(self, from_: Int64, gap: Int64, part: Float64, other: Float64) -> Float64:
        """Return the variance of D this part of the way from places to the next ones, or this without a curve.

        Args:
            from_: the places, counted row by row as `take` does: int64[any, groups].
            gap: how many leaves the next ones are away.
            part: in [0, 1].
            other: the variance of a straight line between them.
        """
        upto, wide = from_ + self.weight.shape[1], gap.astype(np.float64)
        bend = self.bend[0] * wide + self.bend[1] * wide**3
        ends = (1 - part) ** 2 * self.variance.take(from_) + part**2 * self.variance.take(upto)
        along = ends + part * (1 - part) * (2 * self.shared.take(from_) + 4 * bend)
        weight = np.minimum(self.weight.take(from_), self.weight.take(upto))
        return np.asarray(weight * np.maximum(along, 0.0) + (1 - weight) * other)


class _Near(NamedTuple):
    """Looks near the crossing: float64[groups, looks], in half windows from it and in what D is off at their ends.

    Attributes:
        along: how far from the crossing.
        off: what D seemed to be off.
        noise: the variance of that.
        here: whether there is a look.
        turn: float64[groups], the variance that the slope gets from one half window to the next.
        most: float64[groups], all rows.
    """

    along: Float64
    off: Float64
    noise: Float64
    here: Flags
    turn: Float64
    most: Float64


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


def curve_of(places: Int64, looks: Offset, crossing: RankCrossing, ends: tuple[Float64, Float64]) -> Curve:
    """Return what looks tell of places if they are on a curve: all [places, groups], places rising.

    Args:
        places: with both ends of the range.
        looks: how far D seemed to be off, place by place; of infinite variance where there are none, which are last.
        crossing: about where it is.
        ends: how far D is off where the range begins and where it ends.

    >>> places, off = np.array([[-1], [40], [50], [60], [99]]), np.array([[-50.0], [-9.0], [3.0], [11.0], [50.0]])
    >>> looks = Offset(off, np.array([[1e-9], [4.0], [4.0], [4.0], [1e-9]]))
    >>> crossing = RankCrossing(*(np.array([each]) for each in (49.0, 1.0, 4.0)))
    >>> told = curve_of(places, looks, crossing, (np.array([-50.0]), np.array([50.0])))
    >>> told.off.ravel().round(1).tolist(), told.weight.ravel().round(2).tolist()
    ([0.0, -8.7, 2.5, 11.3, 0.0], [0.0, 0.97, 0.97, 0.97, 0.0])
    """
    found, (near, at, some, unit) = Curve.none(*places.shape), _gathered(places, looks, crossing, ends)
    if not some.size:
        return found
    fits, told, covariance = _smooth(near)
    odds, rows = DECIDED * (fits - _stepped(near) - RATHER), np.arange(near.here.shape[1])
    shared = np.zeros_like(told)
    shared[:, :-1] = covariance[:, rows[:-1], rows[1:]]
    weight = np.broadcast_to(1 / (1 + np.exp(-np.clip(odds, -_SURE, _SURE)))[:, None], told.shape)
    variance = covariance[:, rows, rows]
    for each, values, power in zip(found, (told, variance, shared, weight), (1, 2, 2, 0), strict=False):
        each[at] = values[near.here] * unit[at[1]] ** power
    none = ~np.isfinite(looks.variance)  # they are where the range ends
    for each, end in zip(found, (found.off, found.variance, found.variance, found.weight), strict=False):
        each[none] = np.broadcast_to(end[-1], none.shape)[none]
    half = crossing.half[some]
    found.bend[:, some] = np.array([LUMP / (4 * half), near.turn / (48 * half**3)]) * unit[some] ** 2
    return found


def _gathered(
    places: Int64, looks: Offset, crossing: RankCrossing, ends: tuple[Float64, Float64]
) -> tuple[_Near, tuple[Int64, Int64], Int64, Float64]:
    """Return the looks near the crossing, their rows and groups, the groups that have two or more, and units of D."""
    place, slope, half = crossing
    unit = np.clip(slope * half, _LEAST_ROWS, np.maximum((ends[1] - ends[0]) / 4, _LEAST_ROWS))
    along = (places - place) / half
    near = _nearest(np.where(looks.variance <= _FAINT * unit**2, np.abs(along), np.inf))
    some = np.flatnonzero(near.sum(axis=0) > 1)
    order = np.argsort(~near[:, some], axis=0, kind="stable")[: near.sum(axis=0).max()]
    here = np.take_along_axis(near[:, some], order, axis=0).T

    def of_near(values: Float64, usual: float) -> Float64:
        """Return those of near places, [groups, looks], and this where there are fewer."""
        return np.asarray(np.where(here, np.take_along_axis(values[:, some], order, axis=0).T, usual))

    noise = of_near(np.maximum(looks.variance / unit**2, _LEAST_NOISE), 1.0)
    least, most = (each[some] / unit[some] for each in ends)
    turn = TURN / np.maximum(np.minimum(-least, most), _LEAST_SIDE)
    column, row = np.nonzero(here)
    found = _Near(of_near(along, 0.0), of_near(looks.off / unit, 0.0), noise, here, turn, most - least)
    return found, (order[row, column], some[column]), some, unit


def _nearest(away: Float64) -> Flags:
    """Return which places are near, given how far away they are; infinity for those without looks."""
    near = np.zeros(away.shape, np.bool_)
    np.put_along_axis(near, np.argsort(away, axis=0, kind="stable")[:MANY], values=True, axis=0)
    return near & (away <= NEAR)


def _smooth(near: _Near) -> tuple[Float64, Float64, Float64]:
    """Return how likely looks on a curve are, as a logarithm, what D is there and its covariance: [groups, ...].

    Before the looks D is a straight line, and Gaussian: its level and slope at the crossing, lumps that come with no
    memory, and a slope that changes with none, on both sides of it. What was not looked at is apart from the rest.
    """
    first, second = near.along[:, :, None], near.along[:, None, :]
    low, high = np.minimum(np.abs(first), np.abs(second)), np.maximum(np.abs(first), np.abs(second))
    low = np.where(first * second > 0, low, 0.0)
    turned = near.turn[:, None, None] * low**2 * (3 * high - low) / 6
    before = LEVEL**2 + SLOPE**2 * first * second + turned + LUMP * low
    both, one = near.here[:, :, None] & near.here[:, None, :], np.eye(near.here.shape[1])
    seen = np.where(both, before, 0.0) + near.noise[:, :, None] * one
    inverse = np.linalg.inv(seen)
    wrong = np.where(near.here, near.off - near.along, 0.0)
    left = (inverse @ wrong[:, :, None])[..., 0]
    fits = -((wrong * left).sum(axis=1) + np.linalg.slogdet(seen)[1]) / 2
    covariance = near.noise[:, :, None] * (one - inverse * near.noise[:, None, :])
    return fits, near.off - near.noise * left, covariance


def _stepped(near: _Near) -> Float64:
    """Return how likely looks are, as a logarithm, if D is the same as at the look before, or jumps up by anything."""
    groups = len(near.most)
    level, variance, begun = np.zeros(groups), np.full(groups, LEVEL**2), np.zeros(groups, np.bool_)
    fits = np.zeros(groups)
    for off, noise, here in zip(near.off.T, near.noise.T, near.here.T, strict=True):
        spread = np.sqrt(noise + variance)
        away = (off - level) / spread
        same = np.exp(-(away**2) / 2) / spread
        jumps = ROOT_TURN * ndtr(away) / ((1 + np.abs(away)) * np.log1p(near.most / spread)) / spread
        stays = np.where(begun, SAME * same, same)
        goes = np.where(begun, (1 - SAME) * jumps, 0.0)
        fits += np.where(here, np.log(np.maximum(stays + goes, _LEAST_CHANCE)), 0.0)
        weight = np.where(stays > goes, 1 / variance, 0.0)
        both = 1 / noise + weight
        level = np.where(here, (off / noise + level * weight) / both, level)
        variance, begun = np.where(here, 1 / both, variance), begun | here
    return fits
