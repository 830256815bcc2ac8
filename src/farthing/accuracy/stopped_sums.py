"""How far the sum of cells that stopped alone may be from the sum of their truths: about the root of their number.

A cell that was measured until it seemed good enough has errors that are neither Gaussian nor centred, however its looks
were chosen. But how much likelier other truths made what it showed is a martingale `G` (`stopped_laws`), at every
truth: for all cells together its product is above 1/beta with chance beta at most. The bound asks how large the sum of
errors can be where it is not, over all truths at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.stopped_laws import GAUSSIAN_STOPS, StopLaw, StopView, least_half_width

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats

    _Terms = tuple[Floats, Floats, Floats]

MOST_CELLS: Final = 5_000
"""Of how many cells in all it is asked: a tenth of a millisecond of processor each, and three at 30 %."""

_RANGE_SHARE: Final = 0.1  # of beta: that a cell's truth is where it is not looked for
_STEP: Final = 1.25  # of the spread that the truths may have
_POINTS: Final = 61
_FINE: Final = 17
_FACTORS: Final = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.2, 4.0, 5.0)
_PULLS: Final = (-1.0, 0.0, 2.0)
_BLOCK: Final = 1 << 20  # numbers in one array


@dataclass(frozen=True, slots=True)
class StoppedSums:
    """Sums of cells, each measured for as long as its own results made it seem necessary.

    Attributes:
        means: float64[sums, cells], the precision-weighted means, or what a chain showed last.
        information: float64[sums, cells], one over the variance that each would have if it had been fixed beforehand;
            under Laplace noise one over the noise's scale.
        relative, floor, critical: r, a* and c of the rule by which most cells stopped; for the choice of G only.
        law: of the noise.

    Guarantee: with probability at least 1 - beta the sum of truths is within `ends`, for every sum by itself.
    Proof: docs/proofs/accuracy.stopped_sums.md.
    Assumes: truths >= 0; noise of different cells is independent; how much is measured next depends on what was seen.
    Rounds: up, by what a search for the worst truth on a grid may have left out.

    >>> even = StoppedSums(np.full((1, 100), 500.0), np.full((1, 100), 0.0016), 0.1, 10.0, 1.985)
    >>> [round(float(end[0])) for end in even.ends(0.05)]
    [48897, 50735]
    """

    means: Floats
    information: Floats
    relative: float
    floor: float
    critical: float
    law: StopLaw = GAUSSIAN_STOPS

    def least(self, beta: float) -> Floats:
        """Return half-widths below which no interval is, float64[sums]: what fixed information would give."""
        return least_half_width(self.law, self.information, beta)

    def ends(self, beta: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends of the sums of truths, float64[sums]."""
        size = max(1, _BLOCK // (_POINTS * self.means.shape[1]))
        starts = range(0, len(self.means), size)
        some = [(self.means[start : start + size], self.information[start : start + size]) for start in starts]
        parts = [_both(replace(self, means=means, information=held), beta) for means, held in some]
        return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])

    def range(self, beta: float) -> tuple[Floats, Floats]:
        """Return between which numbers each cell's truth is, but for a chance of beta, wherever it stopped."""
        off = self.law.reach(self.information, beta)
        return np.maximum(self.means - off, 0.0), np.maximum(self.means + off, 0.0)

    def variance(self, truth: Floats) -> Floats:
        """Return about the variance with which a cell of that truth stops."""
        scale = np.maximum(self.relative * truth, self.floor) / self.critical
        return np.asarray(self.law.noise.variance * scale**2)

    @property
    def breaks(self) -> tuple[Floats, ...]:
        """Truths just beyond those at which the law's martingale breaks, each float64[sums, cells]."""
        return self.law.breaks(self.information, (self.relative, self.floor, self.critical))


def _both(sums: StoppedSums, beta: float) -> tuple[Floats, Floats]:
    """Return the ends of a few sums: their two sides and the range of truths share beta."""
    ranges = beta * _RANGE_SHARE
    level = math.log(2 / (beta - ranges)) + sums.law.uneven * sums.means.shape[1]
    between = sums.range(ranges / sums.means.shape[1])
    middle = sums.means.sum(axis=1)
    return middle - _worst(sums, 1, level, between), middle + _worst(sums, -1, level, between)


def _worst(sums: StoppedSums, sign: int, level: float, between: tuple[Floats, Floats]) -> Floats:
    """Return the most, float64[sums], by which the sum of means is above the truth (1) or below it (-1)."""
    first, last = (np.log(sums.variance(end).sum(axis=1)) / math.log(_STEP) for end in between)
    first, last = np.floor(first), np.ceil(last)
    worst = np.zeros(len(first))
    for step in range(int((last - first).max()) + 1):
        spread = _STEP ** np.minimum(first + step, last)
        worst = np.maximum(worst, _Side(sums, sign, level, spread, *between).most())
    return worst


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the bound, for truths of which `variance` adds up to `spread` at most, and nearly.

    Attributes:
        sums: the cells.
        sign: 1 for means above truths, -1 for below.
        level: log(1/beta).
        spread: float64[sums].
        low, high: float64[sums, cells], between which truths are.
    """

    sums: StoppedSums
    sign: int
    level: float
    spread: Floats
    low: Floats
    high: Floats

    @property
    def tilt(self) -> Floats:
        """The common factor of all thetas, float64[sums, 1]: as for Gaussian errors of that spread."""
        return np.asarray(np.sqrt(2 * self.level / self.spread)[:, None])

    def most(self) -> Floats:
        """Return the bound, float64[sums], by the factors that seem best on the coarse grid."""
        points = self.low + (self.high - self.low) * np.linspace(0, 1, _POINTS)[:, None, None]
        near, apart = self.terms(points), self.apart()
        best, factor, weight = np.full(len(self.low), np.inf), np.ones((len(self.low), 1)), np.zeros((len(self.low), 1))
        for one in product(_FACTORS, _PULLS):
            tried = np.full_like(factor, one[0]), np.full_like(weight, one[1])
            slack = _joined(near, *tried).max(axis=0)
            for beyond in apart:
                slack = np.maximum(slack, _joined(beyond, *tried))
            total = self.total(slack.sum(axis=1), *tried)
            better = total < best
            best = np.where(better, total, best)
            factor, weight = (
                np.where(better[:, None], new, old) for new, old in zip(tried, (factor, weight), strict=True)
            )
        slack = self.finer(points, _joined(near, factor, weight), factor, weight)
        for beyond in apart:
            slack = np.maximum(slack, _joined(beyond, factor, weight))
        return np.asarray(self.total(slack.sum(axis=1), factor, weight) / self.tilt[:, 0])

    def total(self, slack: Floats, factor: Floats, weight: Floats) -> Floats:
        """Return the bound times the tilt: truths are spread by `spread` at most, and by a step less at least."""
        known = np.where(weight[:, 0] > 0, self.spread / _STEP, self.spread)
        return np.asarray(factor[:, 0] * self.level + slack - weight[:, 0] * self.tilt[:, 0] ** 2 * known)

    def terms(self, truth: Floats) -> _Terms:
        """Return, at truths float64[..., sums, cells]: the error and the variance, tilted, and log G."""
        off, variance, sums = self.sign * (self.sums.means - truth), self.sums.variance(truth), self.sums
        view = StopView(sums.information, self.tilt, variance, sums.relative / sums.critical, self.sign)
        return self.tilt * off, sums.law.log_mixture(off, view), self.tilt**2 * variance

    def apart(self) -> list[_Terms]:
        """Return the same at truths just beyond a break of G: on one side of it the grid shows no larger value."""
        return [self.terms(np.clip(truth, self.low, self.high)) for truth in self.sums.breaks]

    def finer(self, points: Floats, coarse: Floats, factor: Floats, weight: Floats) -> Floats:
        """Return the largest value of each cell, float64[sums, cells], rounded up by what lies between points."""
        at = coarse.argmax(axis=0)[None]
        ends = [np.take_along_axis(points, np.clip(at + move, 0, _POINTS - 1), 0) for move in (-1, 1)]
        near = ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, _FINE)[:, None, None]
        fine = _joined(self.terms(near), factor, weight)
        away = np.abs(np.arange(_POINTS)[:, None, None] - at) > 1
        others = np.where(away, _with_gaps(coarse), -np.inf).max(axis=0)
        return np.asarray(np.maximum(_with_gaps(fine).max(axis=0), others))


def _joined(terms: _Terms, factor: Floats, weight: Floats) -> Floats:
    """Return what the supremum is taken of."""
    off, moment, pull = terms
    return np.asarray(off - factor * moment + weight * pull)


def _with_gaps(values: Floats) -> Floats:
    """Return values on a grid (axis 0), half their second differences added: no parabola or bend between is above."""
    second = np.abs(values[2:] - 2 * values[1:-1] + values[:-2]) / 2
    return np.asarray(values + np.concatenate([second[:1], second, second[-1:]]))
