"""The shape and the critical value of looks at a mean, from its targets and range alone.

The angle that a target allows changes along the range: by the *tilt*. The steeper it is, the more choosing the last
look costs, and the larger the critical value c has to be. The shape is the one that costs least over all means.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.ratio_chances import CUT_FROM, EASE_SHAPE, easy, helped, kept_apart, plain
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Flags, Floats

LOOKS_SHARE: Final = 0.965
"""The part of beta at which c is calibrated."""

TILTED: Final = 0.6
"""The largest tilt of a target that c is calibrated for."""

SLOPE, SLOPE_OFF = 1.2, 1.35
"""How c grows with the square of the tilt, times z: for plain targets (`plain`), and for others;"""

SURER: Final = 0.04
"""by this part of itself more for each unit of z above that of 95 %,"""

MORE: Final = 0.003
"""and by this much in any case,"""

EARLY: Final = 0.03
"""and over z by this much where looks end because the range does: some of the earliest do by noise alone."""

APART, APART_MOST = 0.9, 0.017
"""The least by which c grows with a small tilt, as looks at fine targets are far apart; and its most."""

CUT, CUT_EASY, CUT_OFF = 1.6, 0.85, 2.5
"""By how much c is larger where looks end because the range does, times c: for plain targets, for those of which c is
smaller near the end, and for others, of which both ends help, or groups look for longer before one does;"""

CUT_SURER: Final = 0.9
"""by this part of itself more for each unit of z above that of 95 %."""

SHAPES: Final = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Precisions of the rows, over that of the sum in units of half the range: one of them is the least or the only."""

BOUND: Final = 0.04
"""By so much more a public shape has to be cheap: sharper targets that go on from it like others."""

PILOT: Final = 0.04
"""A pilot ends when it has cost this part of the price that it predicts."""

CLEAR: Final = 3.0
"""Standard deviations from 0 of the rows, at the end of a pilot."""

_NEARLY: Final = 1e-9
_TRIED: Final = np.linspace(-1, 1, 201)  # means, from one end of the range to the other


def tilt(relative: float, absolute: float, least: float, middle: float) -> float:
    """Return how much of itself the angle that a target allows changes over that angle, at most.

    Where the range holds 0, a relative target with an absolute part allows least at a point within: the angle grows
    from there on both sides, and both count.

    Args:
        relative: the target.
        absolute: the target, in units of half the range.
        least: the precision of the rows over that of the sum.
        middle: the middle of the range, in units of half of it.

    >>> round(tilt(0.1, 0.0, 0.5, 1.0), 2), round(tilt(0.0, 0.1, 0.5, 1.0), 2)
    (0.17, 0.14)
    """
    found = tilts(relative, absolute, least, middle)
    if relative and absolute and abs(middle) < 1 - _NEARLY:
        return float(np.hypot(found.max(), found.min()))
    return float(np.abs(found).max())


def tilts(relative: float, absolute: float, shape: float, middle: float) -> Floats:
    """Return the same at means from one end of the range to the other, with its sign."""
    value = _TRIED + middle
    width = np.maximum(relative * np.abs(value), absolute)
    slope = np.where(relative * np.abs(value) >= absolute, relative, 0.0) * np.sign(value)
    return np.asarray(slope - 2 * width * _TRIED / (shape + _TRIED**2))


def critical_value(beta: float, most: float, *, simple: bool = True) -> float:
    """Return c for a tilt of at most that.

    Args:
        beta: the failure probability.
        most: the tilt.
        simple: whether the target is plain.

    >>> round(critical_value(0.05, 0.0), 3), round(critical_value(0.05, 0.3), 3)
    (1.978, 2.033)
    """
    z = two_sided(beta)
    slope = (SLOPE if simple else SLOPE_OFF) * max(1.0, 1 + SURER * (z - two_sided(0.05)))
    return two_sided(beta * LOOKS_SHARE) + max(slope / z * most**2 + MORE, min(APART * most, APART_MOST))


def cut_critical(critical: float, beta: float, less: Flags | bool, *, simple: bool = True) -> Floats:
    """Return the critical value at which sets are cut to the range, for looks of that c.

    Args:
        critical: c.
        beta: the failure probability.
        less: whether c is smaller near the end of the range.
        simple: whether the target is plain.

    >>> [round(float(cut_critical(2.142, 0.05, less)), 3) for less in (True, False)]
    [2.539, 2.889]
    """
    more = 1 + CUT_SURER * max(0.0, two_sided(beta) - two_sided(0.05))
    by = np.where(less, CUT_EASY, CUT if simple else CUT_OFF)
    return np.asarray(critical + by * more / np.maximum(critical, np.sqrt(by)))  # it grows with c


def chosen(relative: float, absolute: float, middle: float, beta: float) -> tuple[float, float, bool] | None:
    """Return (c, least precision of the rows, whether it is that of all groups) that cost least over all means."""
    ends = helped(relative, middle) if easy(np.array(EASE_SHAPE), relative, absolute, middle) else 1.0
    tried = np.minimum(_TRIED, ends)  # a look that ends because the range does takes what it would take there
    width = np.maximum(np.maximum(relative * np.abs(tried + middle), absolute), 1e-9)
    best = np.hypot(tried, math.sqrt(2) * width)  # the shape of somebody who knew the mean
    ideal, likely = (1 + best) ** 2, 1.01 - np.abs(_TRIED)
    found = []
    for least in SHAPES:
        if least == EASE_SHAPE and kept_apart(relative, absolute, middle):
            continue
        clipped = np.clip(best, least, 1.0)
        for shape, public in ((clipped, False), (np.full_like(best, least), True)):
            most = max(tilt(relative, absolute, each, middle) for each in ((least,) if public else (least, 1.0)))
            if most > TILTED:
                continue
            critical = critical_value(beta, most, simple=plain(absolute, middle))
            critical += EARLY / two_sided(beta) if relative >= CUT_FROM else 0.0
            looked = PILOT + (CLEAR * width / critical) ** 2 * (1 + shape) / shape / (1 + np.abs(_TRIED)) ** 2
            more = 1.0 if public else 1 + looked
            cost = critical**2 * np.average(more * (1 + shape) * (1 + best**2 / shape) / ideal, weights=likely)
            found.append((float(cost) * (1 + BOUND * public), critical, least, public))
    return min(found)[1:] if found else None
