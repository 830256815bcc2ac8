"""Noise by cell: members of large cells pay less, and nobody more than where every cell is as precise as the strictest.

Residuals are what tables share. Each is measured with noise that is wider in cells that may be known more roughly; and
totals are shared out by weights, more to values that are common, so that their noise falls where it may. The variances
come from a convex program: the least mean loss of members, and of the worst one, at which every cell keeps its width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.gaussian import GRAIN, ROUNDING_VARIANCE
from farthing.mechanisms.residuals import ADDED_PARTS, NoiseShape, shared_out, shares_of, spread_of
from farthing.planning.release import ReleaseDesign

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.limits.tables import Residuals

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

MOST_SHAPED: Final = 1 << 21
"""The most cells of all tables whose noise differs by cell."""

POWERS: Final = (0.08, 0.16, 0.25, 0.35, 0.5)
"""Weights of values are their counts to a power, 0 or one of these or between: as high as a unit's price allows."""

_TRIES: Final = 3
_MANY: Final = 20_000  # cells beyond which no weights are tried: it takes seconds
_FEW: Final = 4  # values of a column that may have weights
_FINE: Final = 8  # the least weight, so that others are whole numbers of about the right size
_LARGEST: Final = 1 << 9
_TURNS: Final = 60
_LONG: Final = 100  # turns where no weights are tried, so that one design is all there is
_STEP: Final = 1.8
_STEEP: Final = 1.6
_WORST: Final = 0.9  # how much the worst member counts, the mean one the rest
_LITTLE: Final = 0.05  # added noise below so much of a cell's own is left out


@dataclass(frozen=True, eq=False)
class ShapedDesign(ReleaseDesign):
    """What each residual is measured with, its noise differing by cell.

    Attributes:
        weights: by column, the weights of its values.
        shapes: by subset, how its noise differs.
    """

    weights: Mapping[int, Int64]
    shapes: Mapping[Subset, NoiseShape]

    @cached_property
    def noises(self) -> dict[Subset, float]:
        """The variance of each residual's noise; infinite where it was not measured."""
        found = {}
        for subset, grains in zip(self.basis.subsets, self.grains.tolist(), strict=True):
            unit = self.shapes[subset].price * self.reach**2 * ROUNDING_VARIANCE / float(GRAIN)
            found[subset] = unit / grains if grains else math.inf
        return found

    def cells_of(self, table: Subset) -> Float64:
        """Return the variance of each cell of any table over measured subsets: places of columns, in rising order."""
        sizes, found = dict(enumerate(self.basis.sizes)), np.zeros([self.basis.sizes[i] for i in table])
        for subset, shape in self.shapes.items():
            if set(subset) <= set(table):
                each = shape.spread + (shape.added > 0).any() / (12 * ADDED_PARTS**2 * self.noises[subset])
                part = (each * self.noises[subset]).reshape([sizes[i] if i in subset else 1 for i in table])
                found = found + part * shared_out(table, subset, sizes, self.weights) ** 2
        return found

    @cached_property
    def by_table(self) -> tuple[Float64, ...]:
        """The variances of the cells of each table."""
        return tuple(map(self.cells_of, self.basis.tables))

    @cached_property
    def variances(self) -> Float64:
        """float64[tables], the largest variance of a cell of each table."""
        return np.array([each.max() for each in self.by_table])

    @cached_property
    def means(self) -> Float64:
        """float64[tables], the mean variance of a cell of each table."""
        return np.array([each.mean() for each in self.by_table])

    def excess(self, widest: Sequence[Float64]) -> float:
        """Return the largest variance over what is allowed, of all cells."""
        return max(float((own / allowed).max()) for own, allowed in zip(self.by_table, widest, strict=True))

    def losses(self, subset: Subset) -> Float64:
        """Return what a member of each cell of a subset's table pays at most for it, in mu squared."""
        found: Float64 = self.shapes[subset].prices * self.reach**2 / self.noises[subset]
        return found


@dataclass(frozen=True, eq=False)
class ShapeProgram:
    """What noise by cell is chosen from: public facts, and what a pilot told.

    Attributes:
        basis: the residuals of the workload.
        reach: the most rows that one unit adds.
        counts: by subset, about how many members each cell has, >= 0.
        widest: for each table, the largest variance that each cell may have.
    """

    basis: Residuals
    reach: int
    counts: Mapping[Subset, Float64]
    widest: tuple[Float64, ...]

    def best(self, most: int) -> ShapedDesign | None:
        """Return the design at which members pay the least in the mean; None where a unit always pays above `most`.

        Guarantee: every cell is within its variance; a unit pays at most `most` grains.
        Proof: docs/proofs/mechanisms.residuals.md, section 5, for the variances; they are checked, not trusted.
        Assumes: nothing.
        Rounds: grains up.

        Args:
            most: grains.
        """
        made = [self._weighted(0.0)]
        while self._few and made[-1].total <= most and len(made) <= len(POWERS):
            made.append(self._weighted(POWERS[len(made) - 1]))
        low, high = (0.0, *POWERS)[max(len(made) - 2, 0)], (0.0, *POWERS)[len(made) - 1]
        for _ in range(_TRIES if len(made) > 1 and made[-1].total > most else 0):
            middle = (low + high) / 2
            made.append(self._weighted(middle))
            low, high = (middle, high) if made[-1].total <= most else (low, middle)
        made += [] if made[0].total <= most else [self._towards_even(made[0], most)]
        fitting = [one for one in made if one.total <= most]
        return min(fitting, key=self.mean_loss, default=None)

    @property
    def _few(self) -> bool:
        """Whether the tables have so few cells that weights are tried."""
        return sum(wide.size for wide in self.widest) <= _MANY

    def _weighted(self, power: float) -> ShapedDesign:
        """Return the design whose weights are counts to a power."""
        weights = self._weights(power)
        return self._design(weights, self._variances(weights))

    def _towards_even(self, made: ShapedDesign, most: int) -> ShapedDesign:
        """Return a mean of a design without weights and of the one whose noise is the same in all cells."""
        shares = self.basis.least_largest()[0]
        pairs = zip(self.basis.subsets, self.basis.price / shares, strict=True)
        even = {subset: np.full(self.counts[subset].shape, each) for subset, each in pairs}
        even = self._scaled(even, made.weights)
        own = {s: made.noises[s] * (_product(made.shapes[s].weights) + made.shapes[s].added) for s in made.shapes}
        found = made
        for part in (0.9, 0.75, 0.6, 0.45, 0.3, 0.15):
            mixed = {subset: part * own[subset] + (1 - part) * even[subset] for subset in own}
            found = self._design(made.weights, mixed)
            if found.total <= most:
                break
        return found

    def _scaled(self, variances: dict[Subset, Float64], weights: Mapping[int, Int64]) -> dict[Subset, Float64]:
        """Return variances times a number, as large as cells allow."""
        made = self._design(weights, variances)
        subset = self.basis.subsets[0]
        own = made.noises[subset] * float((_product(made.shapes[subset].weights) + made.shapes[subset].added).max())
        level = own / float(variances[subset].max())
        return {one: each * level for one, each in variances.items()}

    def mean_loss(self, design: ShapedDesign) -> float:
        """Return what a member pays in the mean, in mu squared."""
        total = 0.0
        for subset, counts in self.counts.items():
            total += float((design.losses(subset) * counts).sum() / max(float(counts.sum()), 1.0))
        return total

    def _weights(self, power: float) -> dict[int, Int64]:
        """Return the weights of the values of each column: their counts to a power, as whole numbers."""
        found = {}
        for place, size in enumerate(self.basis.sizes):
            counts = self.counts.get((place,), np.ones(size))
            grown = (np.maximum(counts, 1) / max(float(counts.min()), 1.0)) ** (power if size <= _FEW else 0.0)
            found[place] = np.minimum(np.round(_FINE * grown), _LARGEST).astype(np.int64)
        return found

    def _design(self, weights: Mapping[int, Int64], variances: Mapping[Subset, Float64]) -> ShapedDesign:
        """Return the design of some weights and variances, as sharp as it has to be."""
        shapes, grains = {}, []
        for subset in self.basis.subsets:
            own = [weights[place] for place in subset]
            even = NoiseShape(tuple(own), np.zeros([len(one) for one in own]))
            product = _product(own)
            noise = float((variances[subset] / product).min())
            added = variances[subset] / noise - product
            shapes[subset] = replace(even, added=np.where(added > _LITTLE * product, added, 0.0))
            grains.append(math.ceil(shapes[subset].price * self.reach**2 / noise / float(GRAIN)))
        made = ShapedDesign(self.basis, self.reach, np.array(grains, np.float64), weights, shapes)
        level = made.excess(self.widest)
        return replace(made, grains=np.ceil(made.grains * level * (1 + 1e-9)))

    def _variances(self, weights: Mapping[int, Int64]) -> dict[Subset, Float64]:
        """Return the variance of the noise of each cell of each subset's table, up to one factor for all.

        The largest excess of a cell is a mean of excesses by dual weights, and the worst loss a mean of losses by some
        more; for given weights the best variances have a closed form. Both move to where excess and loss are largest.
        """
        links, shares = self._links(weights), {s: shares_of([weights[i] for i in s]) for s in self.basis.subsets}
        dual = [np.full(wide.shape, 1 / wide.size) for wide in self.widest]
        mean = {s: spread_of(self.counts[s] / max(float(self.counts[s].sum()), 1.0), shares[s]) for s in shares}
        worst = {s: np.full(self.counts[s].shape, 1 / self.counts[s].size) for s in shares}
        evens = {s: _product([weights[i] for i in s]) for s in shares}
        found: dict[Subset, Float64] = {}
        for _ in range(_TURNS if self._few else _LONG):
            pressed = {subset: np.zeros(each.shape) for subset, each in worst.items()}
            for number, subset, part, axes in links:
                pressed[subset] += (dual[number] * part).sum(axis=axes)
            for subset, press in pressed.items():
                paid = _WORST * spread_of(worst[subset], shares[subset]) + (1 - _WORST) * mean[subset]
                found[subset] = np.sqrt(paid / np.maximum(_pushed(press, shares[subset]), 1e-300))
            spreads = {subset: spread_of(each, shares[subset]) for subset, each in found.items()}
            excess = [np.zeros(wide.shape) for wide in self.widest]
            for number, subset, part, _ in links:
                wide = self.widest[number]
                own_axes = zip(self.basis.tables[number], wide.shape, strict=True)
                excess[number] += spreads[subset].reshape([n if i in subset else 1 for i, n in own_axes]) * part
            dual = _moved(dual, [own / wide for own, wide in zip(excess, self.widest, strict=True)])
            for subset, each in found.items():
                paid = evens[subset] / each
                worst[subset] = worst[subset] * (paid / paid.max()) ** _STEEP
                worst[subset] /= worst[subset].sum()
        return found

    def _links(self, weights: Mapping[int, Int64]) -> list[tuple[int, Subset, Float64, tuple[int, ...]]]:
        """Return for each table and subset within it: both, the squared shares of a cell, and the axes beyond."""
        sizes, found = dict(enumerate(self.basis.sizes)), []
        for number, table in enumerate(self.basis.tables):
            for subset in self.basis.subsets:
                if set(subset) <= set(table):
                    axes = tuple(axis for axis, place in enumerate(table) if place not in subset)
                    found.append((number, subset, shared_out(table, subset, sizes, weights) ** 2, axes))
        return found


def _product(weights: Sequence[Int64]) -> Float64:
    """Return the product of the weights of the values of each column, by cell."""
    found = np.ones(())
    for each in weights:
        found = np.multiply.outer(found, each.astype(np.float64))
    return found


def _pushed(each: Float64, shares: Sequence[Float64]) -> Float64:
    """Return the transpose of `spread_of`: what noise of these precisions tells of a row in each cell, at most."""
    for axis, share in enumerate(shares):
        along = [1] * each.ndim
        along[axis] = -1
        part = share.reshape(along)
        each = (1 - 2 * part) * each + (part**2 * each).sum(axis=axis, keepdims=True)
    return each


def _moved(dual: list[Float64], excess: list[Float64]) -> list[Float64]:
    """Return dual weights, of sum 1, moved to where the excess is large."""
    most = max(float(one.max()) for one in excess)
    made = [own * (one / most) ** _STEP for own, one in zip(dual, excess, strict=True)]
    total = math.fsum(float(one.sum()) for one in made)
    return [one / total for one in made]
