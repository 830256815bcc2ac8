"""How often the looks of a mean miss it, by quadrature: what the critical value of `ratio_looks` is held against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Flags, Floats

_WIDE: Final = 6.0  # times the signal at which the mean of no noise would stop, looks are followed
_NONE: Final = 1e-7  # of the runs
_NEARLY: Final = 1e-9
_ROUNDED: Final = 0.02  # shapes are whole numbers
CUT_FROM: Final = 0.3
"""Relative targets from which looks of a mean end at the ends of the range, too."""

EASE, EASED = 0.43, 0.25
"""By how much c is smaller, times c, near the end of the range, and on what part of half the range it falls by that."""

EASE_TO: Final = 0.31
"""The largest relative target for which it is smaller."""

EASE_SHAPE: Final = 0.5
"""The precision of the rows over that of the sum where it is smaller."""

_MUCH: Final = 1.0  # sets are called too wide by at most so much: more would make the edge of a cell look steep


@dataclass(frozen=True, slots=True)
class RatioChances:
    """Looks at a mean, in units of half its range.

    Attributes:
        relative, absolute: its target, the latter in units of half the range.
        middle: the middle of the range, in units of half of it.
        shape: the precision of the rows, over that of the sum.
        critical: c.
        growth: of information from look to look.
        step: the mesh of the quadrature, in standard deviations of a look.
        early: the first look, as a part of the signal at which the mean of no noise would stop.
        cut: the larger c at which sets that are cut to the range end looks, too, and c is smaller where these help;
            None: neither.

    Guarantee: `missed` is the chance that the set told at the look that is the last does not hold the mean.
    Proof: docs/proofs/accuracy.ratio_looks.md.
    Assumes: groups large enough that the first look is well before the last.
    Rounds: by the mesh; what it finds falls as the mesh gets finer, by 2 % of itself from .06 to .04 at most.

    >>> chances = RatioChances(0.1, 0.0, 1.0, 0.35, 2.02, step=0.12)
    >>> 0.04 < chances.missed(-0.4) < 0.05
    True
    """

    relative: float
    absolute: float
    middle: float
    shape: float
    critical: float
    growth: float = 1.03
    step: float = 0.06
    early: float = 0.1
    cut: float | None = None

    def excess(self, rows: Floats, total: Floats, *, cut: bool = False) -> Floats:
        """Return by how much Fieller's set is too wide for the target, at the signals of rows and centred sum.

        A signal is a measurement over its standard deviation. Negative: within the target.
        """
        c, unit = (self.cut or self.critical) if cut else self._critical(rows, total), math.sqrt(self.shape)
        left = rows * rows - c * c
        known = (left > 0) & (rows > 0)
        safe = np.where(known, left, 1.0)
        reach = c * np.sqrt(np.maximum(total * total + safe, 0.0))
        offsets = [unit * (total * rows + sign * reach) / safe for sign in (-1, 1)]
        low, high = (self.middle + (np.clip(end, -1, 1) if cut else end) for end in offsets)
        allowed = sum(np.maximum(self.relative * np.abs(end), self.absolute) for end in (low, high))
        return np.where(known, np.minimum((high - low) / np.maximum(allowed, 1e-12) - 1, _MUCH), _MUCH)

    def _critical(self, rows: Floats, total: Floats) -> Floats | float:
        """Return c at these signals."""
        if self.cut is None:
            return self.critical
        place = math.sqrt(self.shape) * total / np.where(rows > 0, rows, np.inf)
        kind = np.array(self.shape), self.relative, self.absolute, self.middle
        return np.where(easy(*kind), eased(self.critical, place), self.critical)

    def missed(self, mean: float) -> float:
        """Return the chance of a miss at a mean, in units of half the range off its middle."""
        angle = math.atan(mean / math.sqrt(self.shape))
        across, along = math.cos(angle), math.sin(angle)
        noise, kernel, runs = _mesh(self.step, (self.cut or self.critical) + 2.4, self.growth)
        first, second = np.meshgrid(noise, noise, indexing="ij")
        last = self._signal(across, along)
        cut_wrong = self._beyond(second, self.cut or self.critical)
        signal, chance = self.early * last, 0.0
        while signal < _WIDE * last and runs.sum() > _NONE:
            ahead = signal + first
            rows, total = ahead * across - second * along, ahead * along + second * across
            stops = _stopped(self.excess(rows, total))
            wrong = self._beyond(second, self._critical(rows, total))
            chance += float((runs * stops * np.where(ahead < 0, 1.0, wrong)).sum())
            if self.cut is not None:
                ended = np.maximum(_stopped(self.excess(rows, total, cut=True)) - stops, 0.0)
                chance += float((runs * ended * np.where(ahead < 0, 1.0, cut_wrong)).sum())
                stops = stops + ended
            runs = kernel @ (runs * (1 - stops)) @ kernel.T
            signal *= math.sqrt(self.growth)
        return chance

    def _beyond(self, second: Floats, critical: Floats | float) -> Floats:
        """Return which part of each cell of the mesh is further than that from the line of the truth."""
        return np.asarray(np.clip((np.abs(second) - critical) / self.step + 0.5, 0, 1))

    def _signal(self, across: float, along: float) -> float:
        """Return the length of the signal at which a measurement without noise would be within the target."""
        low, high = 1.0, 1e7
        for _ in range(60):
            middle = math.sqrt(low * high)
            at = np.array(middle * across), np.array(middle * along)
            stops = float(self.excess(*at)) <= 0
            low, high = (low, middle) if stops else (middle, high)
        return high


def helped(relative: float, middle: float) -> float:
    """Return from which mean on, in units of half the range off its middle, the upper end alone bounds a mean enough.

    >>> round(helped(0.3, 1.0), 3)
    0.077
    """
    return (1 + middle) * (1 - relative) / (1 + relative) - middle


def easy(shape: Floats, relative: float, absolute: float, middle: float) -> Flags:
    """Return in which shapes c is smaller near the end of the range: for relative targets of a range from 0.

    >>> easy(np.array([0.5, 0.7]), 0.3, 0.0, 1.0).tolist(), easy(np.array([0.5, 0.7]), 0.3, 0.0, 0.5).tolist()
    ([True, False], [False, False])
    """
    fits = CUT_FROM <= relative <= EASE_TO and middle > 0 and plain(absolute, middle)
    return np.asarray(fits & (np.abs(shape - EASE_SHAPE) < _ROUNDED))


def kept_apart(relative: float, absolute: float, middle: float) -> bool:
    """Return whether a target may not have that shape: a sharper one that goes on from it has the smaller c.

    >>> kept_apart(0.33, 0.0, 1.0), kept_apart(0.3, 0.0, 1.0), kept_apart(0.33, 0.0, 0.5)
    (True, False, False)
    """
    return relative > EASE_TO and middle > 0 and plain(absolute, middle)


def plain(absolute: float, middle: float) -> bool:
    """Return whether a target is of its relative part alone, and of a range that begins or ends at 0.

    >>> plain(0.0, 1.0), plain(0.1, 1.0), plain(0.0, 0.5)
    (True, False, False)
    """
    return not absolute and abs(abs(middle) - 1) < _NEARLY


def eased(critical: float, place: Floats) -> Floats:
    """Return the smaller c where a mean was measured, in units of half the range off its middle.

    >>> [round(float(c), 3) for c in eased(2.16, np.array([-1.0, 0.077, 0.2, 1.0]))]
    [2.16, 2.16, 2.062, 1.961]
    """
    inwards = np.clip((place - helped(CUT_FROM, 1.0)) / EASED, 0.0, 1.0)
    return np.asarray(critical - EASE / critical * inwards)


def _stopped(excess: Floats) -> Floats:
    """Return which part of each cell of a mesh is within the target."""
    slope = sum(np.abs(np.gradient(excess, axis=axis)) for axis in (0, 1))
    return np.asarray(np.clip(0.5 - excess / np.maximum(slope, 1e-12), 0, 1))


@lru_cache(maxsize=8)
def _mesh(step: float, reach: float, growth: float) -> tuple[Floats, Floats, Floats]:
    """Return the noise of a look on a mesh, how it moves to the next look's, and its chances at the first."""
    noise = np.arange(-reach, reach + step / 2, step)
    kept = growth**-0.5
    kernel = np.exp(-((noise[:, None] - kept * noise) ** 2) / 2 / (1 - kept * kept))
    chances = np.exp(-noise * noise / 2)
    return noise, kernel / kernel.sum(axis=0), np.outer(chances, chances) / chances.sum() ** 2
