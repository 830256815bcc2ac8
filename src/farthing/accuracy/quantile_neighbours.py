"""What the places around a threshold tell of it: a straight line, as far as the looks agree with one.

A guess for the searches of a quantile (`quantile_scouts`, `quantile_windows`), which promises nothing. By rank
everything is in slacks, by value in rows: how far D is off at a place is about what it is off at the next one, and the
slope between, give or take; or the same, where both are on a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.normal import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

ROOT_TURN: Final = float(np.sqrt(2 * np.pi))

CURVE: Final = 0.4
"""What is told of a place along the slope is off by this part of how far D rises on the way,"""

JUMP: Final = 0.4
"""and by so many slacks at least; by more where the looks differ by more than their noise."""


STEP: Final = 0.5
"""How likely it is, before a look, that D does not change from a place to one of the two beside it."""

NEAR: Final = 0.35
"""A place is on a step that is off by more than this part of the slack"""

SURELY: Final = 0.55
"""with at least this chance,"""

ASTRAY: Final = 0.1
"""and off to the other side with no more than this one."""


BEND: Final = 0.15
"""Between two places D is off a straight line by this part of how far it rises there, in the middle."""

SAME: Final = 4.0
"""A place is on a step with the next one if that is so many times as likely as that it is on a straight line,"""

FAR: Final = 3.0
"""and if it is off by less than so many standard deviations more, or less, than the step."""

LEND: Final = 10.0
"""What the others on its step tell of a place counts at most so many times as much as its own looks."""

_HARDLY: Final = 1e-9


class Offset(NamedTuple):
    """How far D seems to be off, and the variance of that; infinite where nothing is told."""

    off: Float64
    variance: Float64

    def with_(self, other: Offset) -> Offset:
        """Return what both tell together."""
        weight, more = 1 / self.variance, 1 / other.variance
        both = weight + more
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(both > 0, (weight * self.off + more * other.off) / both, 0.0)
            return Offset(np.asarray(off), np.asarray(1 / both))


def pooled(thresholds: Float64, own: Offset) -> Offset:
    """Return what each place and all others tell of it: float64[places, groups], thresholds rising.

    >>> own = Offset(np.array([[-2.5], [0.5], [2.5]]), np.array([[0.0001], [1.0], [0.0001]]))
    >>> pooled(np.array([[0.0], [10.0], [20.0]]), own).off.round(2).tolist()
    [[-2.5], [0.18], [2.5]]
    """
    slope = _slope(thresholds, own)
    below = _passed_on(thresholds, own, slope)
    above = _passed_on(-thresholds[::-1], Offset(-own.off[::-1], own.variance[::-1]), slope)
    return own.with_(below).with_(Offset(-above.off[::-1], above.variance[::-1]))


def _slope(thresholds: Float64, own: Offset) -> Float64:
    """Return by how many slacks D rises from leaf to leaf, mostly near what is looked for; 0 where nothing tells."""
    weight = np.where(np.isfinite(own.variance), 1 / (own.variance + (CURVE * own.off) ** 2 + JUMP**2), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = weight.sum(axis=0)
        along = thresholds - (weight * thresholds).sum(axis=0) / total
        off = own.off - (weight * own.off).sum(axis=0) / total
        slope = (weight * along * off).sum(axis=0) / (weight * along**2).sum(axis=0)
    return np.where(np.isfinite(slope), np.maximum(slope, 0.0), 0.0)


def _passed_on(thresholds: Float64, own: Offset, slope: Float64) -> Offset:
    """Return what all earlier places tell of each one."""
    off, variance = np.zeros_like(own.off), np.full_like(own.variance, np.inf)
    known = Offset(off[0].copy(), variance[0].copy())
    for row in range(1, len(own.off)):
        known = known.with_(Offset(own.off[row - 1], own.variance[row - 1]))
        rise = slope * (thresholds[row] - thresholds[row - 1])
        along = known.off + rise
        here = np.isfinite(own.variance[row])
        noise = np.where(here, known.variance + own.variance[row], 0.0)
        odd = np.where(here, (own.off[row] - along) ** 2 - noise, 0.0)
        known = Offset(along, known.variance + np.maximum((CURVE * rise) ** 2 + JUMP**2, odd))
        known.variance[slope == 0] = np.inf
        off[row], variance[row] = known
    return Offset(off, variance)


def on_a_step(off: Float64, information: Float64, low: Float64, high: Float64) -> Flags:
    """Return which places seem to be as far off as one beside them: float64[places, groups], all in slacks.

    Where D is `low` on one side and `high` on the other, it is one of these at a place between, or anything from one to
    the other.

    >>> off, low, high = np.array([0.6, 0.6, -0.1]), np.array([-20.0, -0.9, -20.0]), np.array([0.5, 0.9, 0.5])
    >>> on_a_step(off, np.array([4.0, 4.0, 4.0]), low, high).tolist()
    [True, False, False]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = 1 / np.sqrt(information)
        lower, upper, below, above = ((each - off) / deviation for each in (low, high, -NEAR, NEAR))
        dense = (1 - STEP) / np.maximum(high - low, deviation)
        up, down = (STEP / 2 * np.exp(-(each**2) / 2) / (deviation * ROOT_TURN) for each in (upper, lower))
        low_ones = np.maximum(ndtr(np.minimum(below, upper)) - ndtr(lower), 0.0) * dense
        high_ones = np.maximum(ndtr(upper) - ndtr(np.maximum(above, lower)), 0.0) * dense
        all_ = up + down + np.maximum(ndtr(upper) - ndtr(lower), 0.0) * dense
        beside = np.where(np.abs(high) > NEAR, up, 0.0) + np.where(np.abs(low) > NEAR, down, 0.0)
        other = np.where(off > 0, down + low_ones, up + high_ones)
        return np.asarray((all_ > 0) & (beside >= SURELY * all_) & (other <= ASTRAY * all_))


def between(below: Offset, above: Offset, part: Float64) -> Offset:
    """Return what two places tell of one between, this part of the way: a straight line, and what it may be off.

    >>> between(Offset(-1.0, 0.0), Offset(1.0, 0.0), 0.5)
    Offset(off=0.0, variance=0.09)
    """
    rise = above.off - below.off
    noise = (1 - part) ** 2 * below.variance + part**2 * above.variance
    return Offset(below.off + part * rise, noise + (2 * BEND * rise) ** 2 * part * (1 - part))


def on_steps(thresholds: Int64, own: Offset, ends: tuple[Float64, Float64]) -> Offset:
    """Return what each place and all that are on a step with it tell of it: [places, groups], thresholds rising.

    From the last place down, each is on the step of the next one, or on a straight line from there to the last place
    below where D is lower than 0 by more than its noise.

    Args:
        thresholds: those of places that were not looked at are the last.
        own: how far D seems to be off there; variances are infinite where nothing was looked at.
        ends: how far D is off before the first leaf and after the last one.

    >>> own = Offset(np.array([[-9.0], [3.0], [2.0], [9.0]]), np.ones((4, 1)))
    >>> on_steps(np.array([[0], [5], [7], [20]]), own, (np.array([-30.0]), np.array([30.0]))).off.ravel().tolist()
    [-9.0, 2.5, 2.5, 9.0]
    """
    off, variance = own.off.copy(), own.variance.copy()
    lower = _last_below(thresholds, own, ends[0])
    linked = np.zeros(off.shape, np.bool_)
    for row in range(len(off) - 2, -1, -1):
        mine, step = Offset(own.off[row], own.variance[row]), Offset(off[row + 1], variance[row + 1])
        start, below = lower[0][row], Offset(lower[1].off[row], lower[1].variance[row])
        with np.errstate(divide="ignore", invalid="ignore"):
            part = (thresholds[row] - start) / (thresholds[row + 1] - start)
            line = between(below, step, part)
            here = np.isfinite(step.variance)
            apart = (mine.off - step.off) ** 2 / (mine.variance + step.variance)
            linked[row] = here & (apart < FAR**2) & (_likely(mine, step) > SAME * _likely(mine, line))
            both = mine.with_(step)
        off[row] = np.where(linked[row], both.off, off[row])
        variance[row] = np.where(linked[row], both.variance, variance[row])
    for row in range(1, len(off)):
        off[row] = np.where(linked[row - 1], off[row - 1], off[row])
        variance[row] = np.where(linked[row - 1], variance[row - 1], variance[row])
    return _lent(own, Offset(off, variance))


def rising(values: Float64, variance: Float64) -> Float64:
    """Return values that rise: the one that is known best stays, then the next one as far as that allows, and so on.

    >>> rising(np.array([[0.0], [3.0], [1.0], [4.0]]), np.array([[0.0], [2.0], [1.0], [0.0]])).ravel().tolist()
    [0.0, 1.0, 1.0, 4.0]
    """
    values, columns = values.copy(), np.arange(values.shape[1])
    least, most = np.full_like(values, -np.inf), np.full_like(values, np.inf)
    rows = np.arange(len(values))[:, None]
    for row in np.argsort(variance, axis=0, kind="stable"):
        mine = np.clip(values[row, columns], least[row, columns], most[row, columns])
        values[row, columns] = mine
        least = np.where(rows >= row, np.maximum(least, mine), least)
        most = np.where(rows <= row, np.minimum(most, mine), most)
    return values


def _lent(own: Offset, step: Offset) -> Offset:
    """Return what each place and the others on its step tell of it: those count at most `LEND` times as much."""
    held = 1 / own.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        others = 1 / step.variance - held
        some = others > _HARDLY * held
        level = np.where(some, (step.off / step.variance - own.off * held) / others, 0.0)
        lent = np.where(some, np.minimum(others, LEND * held), 0.0)
        off = np.where(some, (own.off * held + level * lent) / (held + lent), own.off)
        return Offset(np.asarray(off), np.asarray(1 / (held + lent)))


def _last_below(thresholds: Int64, own: Offset, least: Float64) -> tuple[Int64, Offset]:
    """Return the last place below each one where D is below 0 by more than its noise, or where the range begins."""
    many, columns = own.off.shape[0], np.arange(own.off.shape[1])
    below = np.isfinite(own.variance) & (own.off < -np.sqrt(own.variance))
    rows = np.maximum.accumulate(np.where(below, np.arange(many)[:, None], -1), axis=0)
    rows = np.vstack([np.full((1, len(columns)), -1), rows])[:many]
    found, at = rows >= 0, np.maximum(rows, 0)
    off = np.where(found, own.off[at, columns], least)
    variance = np.where(found, own.variance[at, columns], 0.0)
    return np.where(found, thresholds[at, columns], -1), Offset(off, variance)


def _likely(mine: Offset, other: Offset) -> Float64:
    """Return how likely it is that what is told here is, but for noise, what is told there."""
    variance = mine.variance + other.variance
    return np.asarray(np.exp(-((mine.off - other.off) ** 2) / (2 * variance)) / np.sqrt(variance))
