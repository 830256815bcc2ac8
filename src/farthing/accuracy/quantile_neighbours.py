"""What the places around a threshold tell of it: a straight line, as far as the looks agree with one.

A guess for the search of a quantile (`quantile_scouts`), which promises nothing. Everything is in slacks: how far D
is off at a place is about what it is off at the next one, and the slope between, give or take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

CURVE: Final = 0.4
"""What is told of a place along the slope is off by this part of how far D rises on the way,"""

JUMP: Final = 0.4
"""and by so many slacks at least; by more where the looks differ by more than their noise."""


class Offset(NamedTuple):
    """How far D seems to be off, in slacks, and the variance of that; infinite where nothing is told."""

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
