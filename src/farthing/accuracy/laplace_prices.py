"""What groups seem to need under a pure budget: the cheapest farthings in each lane, by what was shown coarsely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.formulas import at_least
from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices, in_blocks
from farthing.accuracy.laplace_intervals import laplace_quantile
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from farthing.accuracy.laplace_state import ShownLanes
    from farthing.accuracy.statistics import Statistic

CLEAR: Final = 6.0
"""A denominator, or an answer with a relative target, is clear at so many scales of noise; pilots go on till then."""

_DOUBT: Final = 3.0  # counts, variances and answers seem at least this many scales of their noise
_TINY: Final = 1e-100
_UNKNOWN: Final = 1e100


@dataclass(frozen=True, slots=True)
class LaplacePrices:
    """The targets of several outputs over shared lanes, and what their intervals cost; about cost, never coverage.

    Attributes:
        statistics: one an output, over shared lanes.
        targets: (relative, absolute) of each output; (0, 0) for all where a loss was named.
        beta: the failure probability of each interval.
        unit: float64[lanes], the scale of a lane's noise in value units at epsilon 1: how far one unit moves it.
        step: float64[lanes], the steps of a lane's noise, in value units.
        cap: the most farthings that a group may pay in all lanes together, over its life.
    """

    statistics: tuple[Statistic, ...]
    targets: tuple[tuple[float, float], ...]
    beta: float
    unit: tuple[float, ...]
    step: tuple[float, ...]
    cap: int

    @property
    def prices(self) -> JointPrices:
        """The targets in arrays."""
        relative, absolute = np.array(self.targets, dtype=np.float64).T[:, :, None]
        return JointPrices(self.statistics, relative, absolute, np.ones((len(self.unit), 1)), self.cap)

    def _zeros(self, groups: int) -> Floats:
        """Return float64[lanes, groups] of zeros."""
        return np.zeros((len(self.unit), groups))

    def values(self, shown: Ints) -> Floats:
        """Return shown steps in value units."""
        return np.asarray(shown * np.array(self.step)[:, None])

    def scales(self, level: Ints) -> Floats:
        """Return the scales of noise at these levels, a bit more; infinite where nothing was shown."""
        unit = np.array(self.unit)[:, None] * (1 + 2.0**-40)
        return np.where(level > 0, unit / (np.maximum(level, 1) * float(FARTHING)), np.inf)

    def _doubted(self, values: Floats, scales: Floats) -> Floats:
        """Return lanes of which no denominator, a variance too, is smaller than could be told apart from zero."""
        prices, seen = self.prices, values.copy()
        for lane in prices.counts:
            seen[lane] = np.maximum(seen[lane], _DOUBT * scales[lane])
        return at_least(seen, 2 * scales**2, prices.spreads, _DOUBT)[0] if prices.spreads else seen

    def needed(self, values: Floats, scales: Floats, beta: float) -> Floats:
        """Return the farthings, float64[lanes, groups], that one look for all targets seems to need."""
        prices, unit = self.prices, np.array(self.unit)[:, None]
        seen = self._doubted(values, scales)
        most = np.zeros(values.shape)
        for statistic, (relative, absolute) in zip(self.statistics, self.targets, strict=True):
            size = statistic.size(seen)
            steep = np.abs(statistic.slopes(seen, statistic.width(size, relative, absolute)))
            if relative:  # an answer is not taken to be smaller than could be told apart from zero
                size = np.maximum(size, _DOUBT * np.minimum((steep * scales).sum(axis=0), _UNKNOWN))
            width = statistic.width(size, relative, absolute)
            moved = np.minimum(np.abs(statistic.slopes(seen, width)) * unit, _UNKNOWN)
            parts = np.where(moved > 0, np.maximum(moved, 1e-9 * moved.max(axis=0)) ** (2 / 3), 0.0)
            scaled = np.where(moved > 0, moved / np.maximum(parts, _TINY), 0.0)
            if prices.named_loss:
                most = np.maximum(most, parts / np.maximum(parts.sum(axis=0), _TINY))
                continue
            blank = (np.abs(statistic.slopes(seen, width)) * 2 * np.array(self.step)[:, None]).sum(axis=0)
            total = laplace_quantile(scaled, beta) / np.maximum(width - blank, _TINY) * (width > 0)
            most = np.maximum(most, np.minimum(total * parts / float(FARTHING), _UNKNOWN))
        if prices.named_loss:
            return np.asarray(most / np.maximum(most.sum(axis=0), _TINY) * self.cap)
        return np.asarray(most)

    def _clear(self, shown: ShownLanes) -> Flags:
        """Return whether denominators and answers stand out from a pilot's noise, bool[groups]."""

        def look(value: Ints, level: Ints) -> Floats:
            values, scales = self.values(value), self.scales(level)
            seen, clear = self._doubted(values, scales), np.ones(values.shape[1], np.bool_)
            for lane in self.prices.counts:
                clear &= values[lane] >= CLEAR * scales[lane]
            if self.prices.spreads:
                clear &= at_least(seen, 2 * scales**2, self.prices.spreads, 0.0)[1] >= CLEAR
            for statistic, (relative, absolute) in zip(self.statistics, self.targets, strict=True):
                size = statistic.size(seen)
                width = statistic.width(size, relative, absolute)
                steep = (np.abs(statistic.slopes(seen, width)) * scales).sum(axis=0)
                clear &= (width <= statistic.width(0.0 * size, 0.0, absolute)) | (size >= CLEAR * steep)
            return np.asarray(clear, np.float64)

        return np.asarray(in_blocks(look, *shown) > 0)
