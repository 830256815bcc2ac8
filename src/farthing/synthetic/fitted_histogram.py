"""A histogram fitted to released tables by their noise: as near a start as the noise leaves open, and never below zero.

Each table is taken apart into parts that are mean-zero along all of its columns, in contrasts of length 1: their noise
is independent, of one variance a part. The histogram is the one of the least squared distance from all of them, in
variances, and of the least relative entropy from a start, which is weighed by a factor. It is the start times the
exponential of a sum of contrasts, whose weights solve a smooth convex problem; Newton's method does, where each step
is solved by conjugate gradients. The factor is the one with the least estimated error (Stein's estimate), which
released numbers give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.synthetic.mixing import mixed
from farthing.synthetic.shrinking import own_variances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.synthetic.shrinking import Told

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

MOST_FITTED: Final = 1 << 17
"""The most cells of a histogram that is fitted: some seconds for 2^16 cells of 16 columns."""

FACTORS: Final = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
"""What the distance from the start may weigh, each row beside a variance: tried until the estimated error rises."""

STEPS: Final = 12
"""The most steps of Newton's method for each factor."""

SOLVING: Final = 40
"""The most steps of conjugate gradients for each of them."""

NEAR: Final = 1e-2
"""How near the fit is to the best one, where it stops: the slope, in standard deviations of the noise."""

LEAST: Final = 1e-6
"""The least share of rows that the start is given in all cells together: a cell at zero would stay there."""


@dataclass(frozen=True, eq=False)
class ToldContrasts:
    """What released tables tell of a histogram, as contrasts.

    Attributes:
        sizes: how many values each column has.
        places: int64[contrasts], where each is among the contrasts of all cells.
        told: float64[contrasts], what was released.
        variances: float64[contrasts], of the noise.
        total: how many rows there are.
    """

    sizes: tuple[int, ...]
    places: Int64
    told: Float64
    variances: Float64
    total: float

    def of(self, cells: Float64) -> Float64:
        """Return the contrasts of a histogram."""
        return turned(cells.reshape(self.sizes), [basis(size) for size in self.sizes]).reshape(-1)[self.places]

    def back(self, weights: Float64) -> Float64:
        """Return the sum of contrasts with weights, as a histogram."""
        found = np.zeros(math.prod(self.sizes))
        found[self.places] = weights
        return turned(found.reshape(self.sizes), [basis(size).T for size in self.sizes]).reshape(-1)


def basis(size: int) -> Float64:
    """Return a sum, and contrasts of length 1 that are orthogonal to it and to one another, a row each.

    >>> basis(2).round(3).tolist()
    [[1.0, 1.0], [0.707, -0.707]]
    """
    found = np.tril(np.ones((size, size)), -1)
    found[np.arange(1, size), np.arange(1, size)] = -np.arange(1, size)
    found[0] = 1.0
    found[1:] /= np.sqrt((found[1:] ** 2).sum(axis=1, keepdims=True))
    return found


def turned(cells: Float64, bases: Sequence[Float64]) -> Float64:
    """Return cells multiplied by a matrix along each axis.

    >>> turned(np.array([[1.0, 2.0]]), [np.ones((1, 1)), np.ones((1, 2))]).tolist()
    [[3.0]]
    """
    for made in bases:  # the first axis is turned and becomes the last, so that all are back at the end
        cells = np.ascontiguousarray(np.moveaxis(np.tensordot(made, cells, 1), 0, -1))
    return cells


def parts_of(told: Told, sizes: tuple[int, ...], tables: Sequence[tuple[int, ...]], total: float) -> ToldContrasts:
    """Return what released tables tell, apart.

    Args:
        told: the released counts by some columns, and their standard deviation.
        sizes: how many values each column has.
        tables: the places of each table's columns, in rising order.
        total: how many rows there are.
    """
    subsets = {
        part
        for table in tables
        for many in range(1, len(table) + 1)
        for part in combinations([at for at in table if sizes[at] > 1], many)
    }
    own, cells = own_variances(told, sizes), np.arange(math.prod(sizes)).reshape(sizes)
    places, values, variances = [], [], []
    for part in sorted(subsets, key=lambda one: (len(one), one)):
        counts, deviation = told(part)
        free = math.prod(sizes[at] - 1 for at in part)
        places.append(cells[tuple(slice(1, None) if at in part else 0 for at in range(len(sizes)))].reshape(-1))
        values.append(turned(counts, [basis(sizes[at])[1:] for at in part]).reshape(-1))
        variance = max(own(part), 1e-3 * deviation**2, 1e-6) * counts.size / free
        variances.append(np.full(free, variance))
    if not places:  # columns of one value each
        return ToldContrasts(sizes, np.zeros(0, np.int64), np.zeros(0), np.zeros(0), total)
    return ToldContrasts(sizes, np.concatenate(places), np.concatenate(values), np.concatenate(variances), total)


@dataclass(frozen=True, eq=False)
class HistogramFit:
    """A histogram of the start times the exponential of a sum of contrasts.

    Attributes:
        weights: float64[contrasts], of the sum.
        cells: float64[cells], >= 0, of the total.
        told: float64[contrasts], of the cells.
        value: what is made as small as can be.
    """

    weights: Float64
    cells: Float64
    told: Float64
    value: float


@dataclass(frozen=True, eq=False)
class HistogramProblem:
    """A histogram that is looked for.

    Attributes:
        parts: what was released.
        start: float64[cells], the logarithm of the start.
        factor: what the distance from the start weighs.
    """

    parts: ToldContrasts
    start: Float64
    factor: float

    def at(self, weights: Float64) -> HistogramFit:
        """Return the histogram of weights."""
        exponents = self.start + self.parts.back(weights)
        top = float(exponents.max())
        cells = np.exp(exponents - top)
        mass = float(cells.sum())
        cells *= self.parts.total / mass
        ridge = self.factor * float(self.parts.variances @ weights**2) / 2
        value = self.parts.total * (math.log(mass) + top) - float(weights @ self.parts.told) + ridge
        return HistogramFit(weights, cells, self.parts.of(cells), value)

    def slope(self, fit: HistogramFit) -> Float64:
        """Return the slope of the value by each weight."""
        return np.asarray(fit.told - self.parts.told + self.factor * self.parts.variances * fit.weights)

    def curved(self, fit: HistogramFit, along: Float64) -> Float64:
        """Return how the slope changes along some weights."""
        moved = self.parts.of(fit.cells * self.parts.back(along))
        moved -= fit.told * (float(fit.told @ along) / self.parts.total)
        return np.asarray(moved + self.factor * self.parts.variances * along)

    def solved(self, fit: HistogramFit, wanted: Float64) -> Float64:
        """Return the weights along which the slope changes as is wanted, by conjugate gradients."""
        scale = 1 / np.sqrt(self.parts.variances)
        found, left = np.zeros(len(wanted)), wanted * scale
        along, length = left, float(left @ left)
        enough = 1e-4 * length
        for _ in range(SOLVING):
            if length <= enough:
                break
            turn = self.curved(fit, along * scale) * scale
            step = length / float(along @ turn)
            found, left = found + step * along, left - step * turn
            shorter = float(left @ left)
            along, length = left + shorter / length * along, shorter
        return found * scale

    def near(self, fit: HistogramFit) -> float:
        """Return how large the slope is, the root of its mean square in standard deviations of the noise."""
        return float(np.sqrt((self.slope(fit) ** 2 / self.parts.variances).mean()))

    def fitted(self, weights: Float64) -> HistogramFit:
        """Return the best histogram by Newton's method, from some weights: near it, or after the most steps."""
        fit = self.at(weights)
        for _ in range(STEPS):
            if self.near(fit) <= NEAR:
                break
            step, share = self.solved(fit, -self.slope(fit)), 1.0
            falls = float(step @ self.slope(fit))
            tried = self.at(fit.weights + step)
            while tried.value > fit.value + 1e-4 * share * falls and share > 1e-3:
                share /= 2
                tried = self.at(fit.weights + share * step)
            if not tried.value < fit.value:
                break
            fit = tried
        return fit

    def error(self, fit: HistogramFit) -> float:
        """Return the estimated squared distance from the truth, in variances, but for a constant: Stein's estimate.

        The distance from what was released, and twice how much the fit follows it: the trace of the derivative, by
        public random signs.
        """
        deviations = np.sqrt(self.parts.variances)
        signs = np.where(mixed(0, 0, len(deviations)) & np.uint64(1), 1.0, -1.0)
        still = self.factor * float((signs * deviations) @ self.solved(fit, signs * deviations))
        apart = float(((fit.told - self.parts.told) ** 2 / self.parts.variances).sum())
        return apart + 2 * (len(signs) - still)


def fitted(parts: ToldContrasts, start: Float64) -> Float64:
    """Return the histogram that released tables and a start tell: float64[cells], >= 0, of the total.

    Args:
        parts: what was released.
        start: float64[cells], >= 0.

    >>> parts = ToldContrasts((2,), np.array([1]), np.array([2.0]), np.array([1e-9]), 4.0)
    >>> (fitted(parts, np.ones(2)) @ basis(2)[1]).round(3).item()
    2.0
    """
    spread = np.log((1 - LEAST) * start / start.sum() + LEAST / len(start))
    best, least = np.asarray(start * (parts.total / start.sum())), math.inf
    weights = np.zeros(len(parts.told))
    for factor in FACTORS if len(weights) else ():
        problem = HistogramProblem(parts, spread, factor)
        fit = problem.fitted(weights)
        error = problem.error(fit)
        if error >= least:
            break
        weights, best, least = fit.weights, fit.cells, error
    return best
