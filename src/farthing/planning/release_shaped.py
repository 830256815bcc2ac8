"""Noise by cell: members of large cells pay less, and nobody more than where every cell is as precise as the strictest.

Residuals are what tables share. Each is measured with noise that is wider in cells that may be known more roughly; the
variances come from a convex program: the least loss of the worst member, and of the mean one, at which every cell keeps
its width. Or all residuals share the noise of made-up rows, which hides a member in all tables at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.gaussian import GRAIN, ROUNDING_VARIANCE
from farthing.mechanisms.residuals import ADDED_PARTS, NoiseShape, shared_out, shares_of, spread_of
from farthing.mechanisms.shared_noise import Information, SharedNoise
from farthing.planning.one_thread import one_thread
from farthing.planning.release import ReleaseDesign
from farthing.planning.release_patterns import SharedProgram, few_enough
from farthing.planning.release_rows import RowTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.limits.tables import Residuals

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

MOST_SHAPED: Final = 1 << 21
"""The most cells of all tables whose noise differs by cell."""

_TURNS: Final = 80
_STEP: Final = 1.8
_STEEP: Final = 1.6
_WORST: Final = 0.97  # how much the worst member counts, the mean one the rest
_ABOVE: Final = 1.05  # so much above the least price that was found, made-up rows may raise what is booked
_ROOM: Final = 1.003  # where less is left above that price, noise that is the same in all cells is tried in its place
_LOOKS: Final = 1 << 20  # the least grains of a residual that looks share out in proportion
_CLOSE: Final = 1e-9
_MEMBERS: Final = 1_500  # rows of the tree whose mean loss tells which design is better
_LITTLE: Final = 0.05  # added noise below so much of a cell's own is left out


@dataclass(frozen=True, eq=False)
class ShapedDesign(ReleaseDesign):
    """What each residual is measured with, its noise differing by cell.

    Attributes:
        weights: by column, the weights of its values.
        shapes: by subset, how its noise differs.
        shared: the noise that all residuals share, if any; then none is added to cells.
    """

    weights: Mapping[int, Int64]
    shapes: Mapping[Subset, NoiseShape]
    shared: SharedNoise | None = None

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
        return found if self.shared is None else found + self.shared.spread(table) / self.grains[0]

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

    def signed(self, number: int) -> float:
        """Return the largest variance of a sum of the errors of a table's cells with signs, whatever the signs.

        Guarantee: no signs have a larger one.
        Proof: docs/proofs/mechanisms.residuals.md, section 6.
        Assumes: nothing.
        Rounds: to the nearest.

        Args:
            number: which table of the workload.
        """
        table, parts = self.basis.tables[number], []
        sizes = [self.basis.sizes[place] for place in table]
        if any((each != 1).any() for each in self.weights.values()):
            return float(np.sqrt(self.by_table[number]).sum()) ** 2
        for subset, shape in self.shapes.items():
            if set(subset) <= set(table):
                beyond = math.prod(self.basis.sizes[place] for place in table if place not in subset)
                each = self.noises[subset] * (1 + float(shape.added.max())) + 1 / (12 * ADDED_PARTS**2)
                parts.append(each / beyond)
        shared = 0.0 if self.shared is None else self.shared.signed(table) / float(self.grains[0])
        return math.prod(sizes) * max(parts) + shared

    def excess(self, widest: Sequence[Float64]) -> float:
        """Return the largest variance over what is allowed, of all cells."""
        return max(float((own / allowed).max()) for own, allowed in zip(self.by_table, widest, strict=True))

    def losses(self, subset: Subset) -> Float64:
        """Return what a member of each cell of a subset's table pays at most for it, in mu squared."""
        found: Float64 = self.shapes[subset].prices * self.reach**2 / self.noises[subset]
        return found

    def paid(self, rows: Int64) -> Float64:
        """Return what the member of each row pays at most, float64[rows], in mu squared.

        Args:
            rows: int64[rows, columns], the places of the values of each column of the basis.
        """
        if self.shared is not None:
            told = Information(self.noises, self.weights).left(rows, self.shared, float(self.grains[0]))
            return np.asarray(told * self.reach**2)
        found = np.zeros(len(rows))
        for subset in self.basis.subsets:
            found += self.losses(subset)[tuple(rows[:, place] for place in subset)]
        return found


@dataclass(frozen=True, eq=False)
class ShapeProgram:
    """What noise by cell is chosen from: public facts, and what a pilot told.

    Attributes:
        basis: the residuals of the workload.
        reach: the most rows that one unit adds.
        counts: by subset, about how many members each cell has, >= 0.
        widest: for each table, the largest variance that each cell may have.
        deviations: by subset, the standard deviation of these counts; 0 for what is not named.
    """

    basis: Residuals
    reach: int
    counts: Mapping[Subset, Float64]
    widest: tuple[Float64, ...]
    deviations: Mapping[Subset, float] = field(default_factory=dict)

    @one_thread()
    def best(self, most: int) -> ShapedDesign | None:
        """Return the design at which members pay the least in the mean; None where a unit always pays above `most`.

        What the books hold comes first: at most a twentieth above the least price that was found.

        Guarantee: every cell is within its variance; a unit pays at most `most` grains.
        Proof: docs/proofs/mechanisms.residuals.md, sections 5 and 6, for the variances; they are checked, not trusted.
        Assumes: nothing.
        Rounds: grains up.

        Args:
            most: grains.
        """
        own = self._design(self._variances())
        cells = own if own.total <= most else self._towards_even(own, most)
        even = self._design(self._even) if own.total * _ROOM > most else own
        made = [cells, self._with_rows(even, min(most, math.ceil(_ABOVE * min(own.total, even.total))))]
        fitting = [one for one in made if one is not None and one.total <= most]
        return min(fitting, key=self.mean_loss, default=None)

    def _with_rows(self, made: ShapedDesign, most: int) -> ShapedDesign | None:
        """Return a design with made-up rows in the place of the noise that is added to cells, so sharp as is allowed;
        None where there is no room for any, or tables are too large for them.
        """
        basis = self.basis
        few = all(basis.tables) and few_enough(basis.sizes, basis.tables, basis.subsets)
        if made.total > most or not few or float(made.grains.min()) < _LOOKS:
            return None
        bare = {subset: replace(shape, added=np.zeros_like(shape.added)) for subset, shape in made.shapes.items()}
        base = replace(made, shapes=bare, grains=np.floor(made.grains * (most / made.total)))
        pairs = zip(self.widest, base.by_table, strict=True)
        room = tuple(np.maximum(wide - own, wide * _CLOSE) for wide, own in pairs)
        told = Information(base.noises, base.weights)
        own = tuple(base.variances.tolist())
        noise = SharedProgram(self.basis.tables, room, own, told, self.tree).best(float(base.grains[0]))
        found = replace(base, shared=noise)
        return found if found.excess(self.widest) <= 1 else None

    @cached_property
    def tree(self) -> RowTree:
        """Rows as the pilot tells of them."""
        return RowTree(self.basis.sizes, self.counts, self.deviations)

    @property
    def _even(self) -> dict[Subset, Float64]:
        """The variances of noise that is the same in all cells, up to one factor."""
        pairs = zip(self.basis.subsets, self.basis.price / self.basis.least_largest()[0], strict=True)
        return {subset: np.full(self.counts[subset].shape, each) for subset, each in pairs}

    def _towards_even(self, made: ShapedDesign, most: int) -> ShapedDesign:
        """Return a mean of a design and of the one whose noise is the same in all cells."""
        even = self._scaled(self._even)
        own = {s: made.noises[s] * (1 + made.shapes[s].added) for s in made.shapes}
        found = made
        for part in (0.9, 0.75, 0.6, 0.45, 0.3, 0.15):
            found = self._design({subset: part * own[subset] + (1 - part) * even[subset] for subset in own})
            if found.total <= most:
                break
        return found

    def _scaled(self, variances: dict[Subset, Float64]) -> dict[Subset, Float64]:
        """Return variances times a number, as large as cells allow."""
        made = self._design(variances)
        subset = self.basis.subsets[0]
        level = made.noises[subset] * (1 + float(made.shapes[subset].added.max())) / float(variances[subset].max())
        return {one: each * level for one, each in variances.items()}

    def mean_loss(self, design: ShapedDesign) -> float:
        """Return what a member pays in the mean, in mu squared: of rows of the tree, where rows are made up."""
        if design.shared is not None:
            return float(design.paid(self.tree.members[:_MEMBERS]).mean())
        total = 0.0
        for subset, counts in self.counts.items():
            total += float((design.losses(subset) * counts).sum() / max(float(counts.sum()), 1.0))
        return total

    @cached_property
    def _weights(self) -> dict[int, Int64]:
        """The weights of the values of each column: all alike."""
        return {place: np.ones(size, np.int64) for place, size in enumerate(self.basis.sizes)}

    def _design(self, variances: Mapping[Subset, Float64]) -> ShapedDesign:
        """Return the design of some variances, as sharp as it has to be."""
        shapes, grains = {}, []
        for subset in self.basis.subsets:
            noise = float(variances[subset].min())
            added = variances[subset] / noise - 1
            own = tuple(self._weights[place] for place in subset)
            shapes[subset] = NoiseShape(own, np.where(added > _LITTLE, added, 0.0))
            grains.append(math.ceil(shapes[subset].price * self.reach**2 / noise / float(GRAIN)))
        made = ShapedDesign(self.basis, self.reach, np.array(grains, np.float64), self._weights, shapes)
        level = made.excess(self.widest)
        return replace(made, grains=np.ceil(made.grains * level * (1 + 1e-9)))

    def _variances(self) -> dict[Subset, Float64]:
        """Return the variance of the noise of each cell of each subset's table, up to one factor for all.

        The largest excess of a cell is a mean of excesses by dual weights, and the worst loss a mean of losses by some
        more; for given dual weights the best variances have a closed form. Both move to where excess and loss are
        largest.
        """
        weights = self._weights
        links, shares = self._links(), {s: shares_of([weights[i] for i in s]) for s in self.basis.subsets}
        dual = [np.full(wide.shape, 1 / wide.size) for wide in self.widest]
        mean = {s: spread_of(self.counts[s] / max(float(self.counts[s].sum()), 1.0), shares[s]) for s in shares}
        worst = {s: np.full(self.counts[s].shape, 1 / self.counts[s].size) for s in shares}
        found: dict[Subset, Float64] = {}
        for _ in range(_TURNS):
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
                paid = 1 / each
                worst[subset] = worst[subset] * (paid / paid.max()) ** _STEEP
                worst[subset] /= worst[subset].sum()
        return found

    def _links(self) -> list[tuple[int, Subset, Float64, tuple[int, ...]]]:
        """Return for each table and subset within it: both, the squared shares of a cell, and the axes beyond."""
        sizes, found = dict(enumerate(self.basis.sizes)), []
        for number, table in enumerate(self.basis.tables):
            for subset in self.basis.subsets:
                if set(subset) <= set(table):
                    axes = tuple(axis for axis, place in enumerate(table) if place not in subset)
                    found.append((number, subset, shared_out(table, subset, sizes, None) ** 2, axes))
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
