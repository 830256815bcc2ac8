"""How far the sum of cells that stopped alone may be from the sum of their truths: about the root of their number.

A cell that was measured until it seemed good enough has errors that are neither Gaussian nor centred, however its looks
were chosen. But `G = E exp(theta B - theta^2 t/2)`, B being its error times its information t, is a martingale for each
law of theta, at every truth: for all cells together its product is above 1/beta with chance beta at most. The bound
asks how large the sum of errors can be where it is not, over all truths at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats

MOST_CELLS: Final = 5_000
"""Of how many cells in all it is asked: a tenth of a millisecond of processor each, and three at 30 %."""

_RANGE_SHARE: Final = 0.1  # of beta: that a cell's truth is where it is not looked for
_STEP: Final = 1.25  # of the spread that the truths may have
_UPWARD: Final = 1.6  # how spread theta is, where means are too large; any number gives a valid bound
_DOWNWARD: Final = 0.1  # the same where they are too small
_REST: Final = 0.1  # of one cell in all: the part of theta's law that is spread widely
_WIDE: Final = tuple(8.0 * 4.0**power for power in range(4))  # how widely, in squares of what is expected
_SCALES: Final = 63  # of information: from a grain to 2^62
_POINTS: Final = 61
_FINE: Final = 17
_FACTORS: Final = (1.0, 1.4, 2.0, 3.2, 5.0)
_PULLS: Final = (-1.0, 0.0, 2.0)
_TYPICAL: Final = 3.8  # log(1/beta) of a side at 95 %
_BLOCK: Final = 1 << 20  # numbers in one array


@dataclass(frozen=True, slots=True)
class StoppedSums:
    """Sums of cells, each measured with Gaussian noise for as long as its own results made it seem necessary.

    Attributes:
        means: float64[sums, cells], the precision-weighted means.
        information: float64[sums, cells], one over the variance that each would have if it had been fixed beforehand.
        relative, floor, critical: r, a* and c of the rule by which most cells stopped; for the choice of theta only.

    Guarantee: with probability at least 1 - beta the sum of truths is within `ends`, for every sum by itself.
    Proof: docs/proofs/accuracy.stopped_sums.md.
    Assumes: truths >= 0; noise of different cells is independent; how much is measured next depends on what was seen.
    Rounds: up, by what a search for the worst truth on a grid may have left out.

    >>> even = StoppedSums(np.full((1, 100), 500.0), np.full((1, 100), 0.0016), 0.1, 10.0, 1.985)
    >>> [round(float(end[0])) for end in even.ends(0.05)]
    [48771, 50735]
    """

    means: Floats
    information: Floats
    relative: float
    floor: float
    critical: float

    def least(self, beta: float) -> Floats:
        """Return half-widths below which no interval is, float64[sums]: what fixed information would give."""
        return np.asarray(two_sided(beta) * np.sqrt((1 / self.information).sum(axis=1)))

    def ends(self, beta: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends of the sums of truths, float64[sums]."""
        size = max(1, _BLOCK // (_POINTS * self.means.shape[1]))
        starts = range(0, len(self.means), size)
        some = [(self.means[start : start + size], self.information[start : start + size]) for start in starts]
        parts = [_both(replace(self, means=means, information=held), beta) for means, held in some]
        return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])

    def range(self, beta: float) -> tuple[Floats, Floats]:
        """Return between which numbers each cell's truth is, but for a chance of beta, wherever it stopped."""
        level = math.log(_SCALES / beta)
        spreads = (8 * 2**0.5, 8 / 2**0.5)  # of theta, in units of the information: one of the scales is in between
        reach = max(math.sqrt(2 * (1 + one) / one * (level + math.log1p(one) / 2)) for one in spreads)
        off = reach / np.sqrt(self.information)
        return np.maximum(self.means - off, 0.0), np.maximum(self.means + off, 0.0)

    def variance(self, truth: Floats) -> Floats:
        """Return about the variance with which a cell of that truth stops."""
        return np.asarray((np.maximum(self.relative * truth, self.floor) / self.critical) ** 2)


def _both(sums: StoppedSums, beta: float) -> tuple[Floats, Floats]:
    """Return the ends of a few sums: their two sides and the range of truths share beta."""
    ranges = beta * _RANGE_SHARE
    level = math.log(2 / (beta - ranges))
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
        off, moment, pull = self.terms(points)
        best, factor, weight = np.full(len(self.low), np.inf), np.ones((len(self.low), 1)), np.zeros((len(self.low), 1))
        for one in product(_FACTORS, _PULLS):
            tried = np.full_like(factor, one[0]), np.full_like(weight, one[1])
            slack = (off - one[0] * moment + one[1] * pull).max(axis=0).sum(axis=1)
            total = self.total(slack, *tried)
            better = total < best
            best = np.where(better, total, best)
            factor, weight = (
                np.where(better[:, None], new, old) for new, old in zip(tried, (factor, weight), strict=True)
            )
        slack = self.finer(points, off - factor * moment + weight * pull, factor, weight).sum(axis=1)
        return np.asarray(self.total(slack, factor, weight) / self.tilt[:, 0])

    def total(self, slack: Floats, factor: Floats, weight: Floats) -> Floats:
        """Return the bound times the tilt: truths are spread by `spread` at most, and by a step less at least."""
        known = np.where(weight[:, 0] > 0, self.spread / _STEP, self.spread)
        return np.asarray(factor[:, 0] * self.level + slack - weight[:, 0] * self.tilt[:, 0] ** 2 * known)

    def terms(self, truth: Floats) -> tuple[Floats, Floats, Floats]:
        """Return, at truths float64[points, sums, cells]: the error and the variance, tilted, and log G."""
        off = self.sign * (self.sums.means - truth)
        variance = self.sums.variance(truth)
        moment = log_mixture(self.sums, off * self.sums.information, self.tilt * variance, variance, self.sign)
        return self.tilt * off, moment, self.tilt**2 * variance

    def finer(self, points: Floats, coarse: Floats, factor: Floats, weight: Floats) -> Floats:
        """Return the largest value of each cell, float64[sums, cells], rounded up by what lies between points."""
        at = coarse.argmax(axis=0)[None]
        ends = [np.take_along_axis(points, np.clip(at + move, 0, _POINTS - 1), 0) for move in (-1, 1)]
        near = ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, _FINE)[:, None, None]
        off, moment, pull = self.terms(near)
        fine = off - factor * moment + weight * pull
        away = np.abs(np.arange(_POINTS)[:, None, None] - at) > 1
        others = np.where(away, _with_gaps(coarse), -np.inf).max(axis=0)
        return np.asarray(np.maximum(_with_gaps(fine).max(axis=0), others))


def log_mixture(sums: StoppedSums, shift: Floats, mean: Floats, variance: Floats, sign: int) -> Floats:
    """Return log G: of E exp(theta B - theta^2 t/2), for a law of theta that depends on the truth alone.

    Theta is Gaussian around `mean`, a little spread, or widely spread around 0 with a small chance.

    Args:
        sums: the cells, whose information is t.
        shift: B, the errors times t, seen from one side.
        mean: of theta.
        variance: about that of the error; one over it is the unit of theta's spread.
        sign: the side.

    Guarantee: for one truth, G is a martingale in t with G = 1 at t = 0.
    Proof: docs/proofs/accuracy.stopped_sums.md.
    Assumes: `mean`, `variance` and `sums.means.shape` do not depend on what was measured.
    Rounds: to nearest.
    """
    time, cells = sums.information, sums.means.shape[1]
    bent = 4 * math.sqrt(2 * _TYPICAL) * sums.relative / (sums.critical * math.sqrt(cells))
    spread = max((_UPWARD if sign > 0 else _DOWNWARD) * bent, 1e-6)
    rest = _REST / cells
    found = math.log1p(-rest) + gaussian_mixture(shift, time, mean, spread * variance)
    for wide in _WIDE:
        found = np.logaddexp(found, math.log(rest / len(_WIDE)) + gaussian_mixture(shift, time, 0.0, wide * variance))
    return np.asarray(found)


def gaussian_mixture(shift: Floats, time: Floats, mean: Floats | float, spread: Floats) -> Floats:
    """Return log E exp(theta B - theta^2 t/2) for theta ~ N(mean, spread).

    >>> float(gaussian_mixture(np.array(3.0), np.array(2.0), 0.5, np.array(0.0)))
    1.25
    """
    wider = 1 + spread * time
    return np.asarray((spread * shift**2 + 2 * mean * shift - mean**2 * time) / (2 * wider) - np.log(wider) / 2)


def _with_gaps(values: Floats) -> Floats:
    """Return values on a grid (axis 0) with half their second differences added: no parabola between them is above."""
    second = np.abs(values[2:] - 2 * values[1:-1] + values[:-2]) / 2
    return np.asarray(values + np.concatenate([second[:1], second, second[-1:]]))
