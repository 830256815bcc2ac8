"""How often the looks of a mean miss it, by quadrature: what the critical value of `ratio_looks` is held against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Floats

_WIDE: Final = 6.0  # times the signal at which the mean of no noise would stop, looks are followed
_NONE: Final = 1e-7  # of the runs
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
        cut: the larger c at which sets that are cut to the range end looks, too; None: none do.

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

    def excess(self, rows: Floats, total: Floats, critical: float, *, cut: bool = False) -> Floats:
        """Return by how much Fieller's set is too wide for the target, at the signals of rows and centred sum.

        A signal is a measurement over its standard deviation. Negative: within the target.
        """
        c, unit = critical, math.sqrt(self.shape)
        left = rows * rows - c * c
        known = (left > 0) & (rows > 0)
        safe = np.where(known, left, 1.0)
        reach = c * np.sqrt(np.maximum(total * total + safe, 0.0))
        offsets = [unit * (total * rows + sign * reach) / safe for sign in (-1, 1)]
        low, high = (self.middle + (np.clip(end, -1, 1) if cut else end) for end in offsets)
        allowed = sum(np.maximum(self.relative * np.abs(end), self.absolute) for end in (low, high))
        return np.where(known, np.minimum((high - low) / np.maximum(allowed, 1e-12) - 1, _MUCH), _MUCH)

    def missed(self, mean: float) -> float:
        """Return the chance of a miss at a mean, in units of half the range off its middle."""
        angle = math.atan(mean / math.sqrt(self.shape))
        across, along = math.cos(angle), math.sin(angle)
        noise, kernel, runs = _mesh(self.step, (self.cut or self.critical) + 2.4, self.growth)
        first, second = np.meshgrid(noise, noise, indexing="ij")
        last = self._signal(across, along)
        wrong, cut_wrong = (
            np.clip((np.abs(second) - c) / self.step + 0.5, 0, 1) for c in (self.critical, self.cut or self.critical)
        )
        signal, chance = self.early * last, 0.0
        while signal < _WIDE * last and runs.sum() > _NONE:
            ahead = signal + first
            rows, total = ahead * across - second * along, ahead * along + second * across
            stops = _stopped(self.excess(rows, total, self.critical))
            chance += float((runs * stops * np.where(ahead < 0, 1.0, wrong)).sum())
            if self.cut is not None:
                ended = np.maximum(_stopped(self.excess(rows, total, self.cut, cut=True)) - stops, 0.0)
                chance += float((runs * ended * np.where(ahead < 0, 1.0, cut_wrong)).sum())
                stops = stops + ended
            runs = kernel @ (runs * (1 - stops)) @ kernel.T
            signal *= math.sqrt(self.growth)
        return chance

    def _signal(self, across: float, along: float) -> float:
        """Return the length of the signal at which a measurement without noise would be within the target."""
        low, high = 1.0, 1e7
        for _ in range(60):
            middle = math.sqrt(low * high)
            at = np.array(middle * across), np.array(middle * along)
            stops = float(self.excess(*at, self.critical)) <= 0
            low, high = (low, middle) if stops else (middle, high)
        return high


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
