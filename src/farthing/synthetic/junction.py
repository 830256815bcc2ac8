"""A junction tree of tables: cliques that hold what hangs together, fitted to tables by iterative proportional fitting.

Columns that are in a table together are joined; an order of elimination makes cliques of them, and the cliques hang
together in a forest. The joint histogram is the product of the cliques over that of what neighbours share, and is never
held. Tables with noise are made to agree before. Nothing here reads data.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.adaptive_tables import MeasuredTable
from farthing.synthetic.model import simplex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Columns = tuple[int, ...]

_WHOLE: Final = 3
"""How many sweeps move to tables all the way; later ones less and less, since tables with noise do not agree."""

_LEAST: Final = 1e-9

_NONE: Final = 1e-100
"""Sums up to it are none: nothing is divided by them."""


def cliques_of(tables: Sequence[Columns], sizes: Sequence[int]) -> tuple[Columns, ...]:
    """Return the cliques that hold all tables, by eliminating columns, each time the one whose clique is smallest.

    >>> cliques_of([(0, 1), (1, 2), (3,)], (2, 2, 2, 2))
    ((3,), (0, 1), (1, 2))
    """
    beside = [1 << at for at in range(len(sizes))]
    for table in tables:
        mask = sum(1 << at for at in table)
        for at in table:
            beside[at] |= mask
    logs, found = [math.log2(size) + 1e-6 for size in sizes], list[int]()
    weights = {at: sum(logs[one] for one in _bits(mask)) for at, mask in enumerate(beside)}
    while weights:
        at = min(weights, key=lambda one: (weights[one], one))
        clique = beside[at]
        del weights[at]
        if not any(clique & held == clique for held in found):
            found.append(clique)
        for other in _bits(clique & ~(1 << at)):
            beside[other] = (beside[other] | clique) & ~(1 << at)
            weights[other] = sum(logs[one] for one in _bits(beside[other]))
    return tuple(tuple(_bits(clique)) for clique in found)


def _bits(mask: int) -> list[int]:
    """Return the places of the ones of a number.

    >>> _bits(6)
    [1, 2]
    """
    return [at for at in range(mask.bit_length()) if mask >> at & 1]


def cells_of(cliques: Sequence[Columns], sizes: Sequence[int]) -> int:
    """Return how many cells cliques have together.

    >>> cells_of([(0, 1), (2,)], (2, 3, 4))
    10
    """
    return sum(math.prod(sizes[at] for at in clique) for clique in cliques)


def ordered(cliques: Sequence[Columns]) -> tuple[tuple[Columns, ...], tuple[int, ...]]:
    """Return cliques in an order in which each hangs on one before it, and on which: -1 where they share nothing.

    A spanning tree whose shared columns are as many as can be is a junction tree: whatever two cliques share is in all
    between them.

    >>> ordered([(3,), (0, 1), (1, 2)])
    (((3,), (0, 1), (1, 2)), (-1, -1, 1))
    """
    found, above, left = [cliques[0]], [-1], list(cliques[1:])
    while left:
        ties = [
            (-len({*one} & {*other}), at, place) for at, one in enumerate(left) for place, other in enumerate(found)
        ]
        shared, at, place = min(ties)
        found.append(left.pop(at))
        above.append(place if shared else -1)
    return tuple(found), tuple(above)


def sums(table: Float64, columns: Columns, kept: Columns) -> Float64:
    """Return the sums of a table over all columns but some."""
    return np.asarray(table.sum(axis=tuple(axis for axis, at in enumerate(columns) if at not in kept)))


def spread(table: Float64, columns: Columns, wide: Columns) -> Float64:
    """Return a table over some columns in the shape in which one over more takes it."""
    sizes = dict(zip(columns, table.shape, strict=True))
    return table.reshape([sizes.get(at, 1) for at in wide])


def agreed(tables: Sequence[MeasuredTable], sizes: Sequence[int]) -> dict[Columns, Float64]:
    """Return tables that agree on all that they share, each set of columns once, those of fewest columns first.

    What tables tell of columns that they share becomes the mean of it, weighted by precision, and each table is moved
    there evenly. That keeps what it tells of fewer columns, on which they agree already.

    >>> one, two = MeasuredTable((0,), np.array([4.0, 0.0]), 1.0), MeasuredTable((0,), np.array([0.0, 4.0]), 1.0)
    >>> agreed([one, two], (2,))
    {(0,): array([2., 2.])}
    """
    held = joined(tables)
    found = {one.columns: one.counts.copy() for one in held}
    shared = {
        subset for one in held for many in range(len(one.columns) + 1) for subset in combinations(one.columns, many)
    }
    for subset in sorted(shared, key=lambda one: (len(one), one)):
        holders = [one for one in held if {*subset} <= {*one.columns}]
        over = [math.prod(sizes[at] for at in one.columns if at not in subset) for one in holders]
        weights = np.array([1 / (one.variance * many) for one, many in zip(holders, over, strict=True)])
        told = [sums(found[one.columns], one.columns, subset) for one in holders]
        mean = sum((weight * table for weight, table in zip(weights / weights.sum(), told, strict=True)), np.zeros(()))
        for one, many, table in zip(holders, over, told, strict=True):
            found[one.columns] += spread((mean - table) / many, subset, one.columns)
    return found


def joined(tables: Sequence[MeasuredTable]) -> list[MeasuredTable]:
    """Return what was measured of each set of columns as one table, fewest columns first.

    >>> one, two = MeasuredTable((), np.array(4.0), 1.0), MeasuredTable((), np.array(0.0), 3.0)
    >>> [(float(both.counts), both.variance) for both in joined([one, two])]
    [(3.0, 0.75)]
    """
    by_columns: dict[Columns, list[MeasuredTable]] = {}
    for one in sorted(tables, key=lambda one: (len(one.columns), one.columns)):
        by_columns.setdefault(one.columns, []).append(one)
    found = []
    for columns, several in by_columns.items():
        precision = sum(1 / one.variance for one in several)
        counts = sum((one.counts / one.variance for one in several), np.zeros(several[0].counts.shape)) / precision
        found.append(MeasuredTable(columns, counts, 1 / precision))
    return found


class Junction:
    """The cliques of a junction tree with numbers: in each part, one clique at a time holds the sums of the histogram.

    The histogram is the product of all cliques over that of what neighbours share, always; a clique is told what its
    neighbours hold before it is read.
    """

    def __init__(self, tables: Sequence[Columns], sizes: Sequence[int], total: float) -> None:
        self.cliques, self.above = ordered(cliques_of(tables, sizes))
        self.total = total
        shapes = [[sizes[at] for at in clique] for clique in self.cliques]
        self._held = [np.full(shape, total / math.prod(shape)) for shape in shapes]
        self._between = {
            at: sums(self._held[at], self.cliques[at], self.shared(at))
            for at, above in enumerate(self.above)
            if above >= 0
        }
        self._told: dict[int, int] = {}

    def shared(self, at: int) -> Columns:
        """Return the columns that a clique shares with the one that it hangs on."""
        above = self.cliques[self.above[at]] if self.above[at] >= 0 else ()
        return tuple(one for one in self.cliques[at] if one in above)

    def _step(self, one: int, other: int) -> None:
        """Tell a clique what its neighbour holds of what they share."""
        low = one if self.above[one] == other else other
        shared = self.shared(low)
        new, old = sums(self._held[one], self.cliques[one], shared), self._between[low]
        ratio = np.divide(new, old, out=np.zeros(new.shape), where=old > _NONE)
        self._held[other] *= spread(ratio, shared, self.cliques[other])
        self._between[low] = new

    def _path(self, at: int) -> list[int]:
        """Return a clique, the one that it hangs on, and so on."""
        found = [at]
        while self.above[found[-1]] >= 0:
            found.append(self.above[found[-1]])
        return found

    def _moved(self, at: int) -> Float64:
        """Return the sums that a clique holds, after it was told what others learned."""
        down = self._path(at)
        up = self._path(self._told.get(down[-1], down[-1]))
        while len(up) > 1 and len(down) > 1 and up[-2] == down[-2]:
            up.pop()
            down.pop()
        way = [*up, *reversed(down[:-1])]
        for one, other in pairwise(way):
            self._step(one, other)
        self._told[self._path(at)[-1]] = at
        return self._held[at]

    def scale(self, columns: Columns, aim: Float64, power: float) -> None:
        """Scale the histogram towards a table, all the way at a power of 1, and then to its total."""
        at = next(at for at, clique in enumerate(self.cliques) if set(columns) <= set(clique))
        held = self._moved(at)
        now = sums(held, self.cliques[at], columns)
        ratio = np.divide(aim, now, out=np.zeros(now.shape), where=now > _NONE)
        held *= spread(ratio if power >= 1 else np.maximum(ratio, _LEAST) ** power, columns, self.cliques[at])
        held *= self.total / max(float(held.sum()), 1e-300)

    def settled(self) -> tuple[Float64, ...]:
        """Return the sums of all cliques, which agree."""
        hanging = [at for at, above in enumerate(self.above) if above >= 0]
        for at in reversed(hanging):
            self._step(at, self.above[at])
        for at in hanging:
            self._step(self.above[at], at)
        return tuple(self._held)


def fitted(tables: Mapping[Columns, Float64], sizes: Sequence[int], total: float, sweeps: int) -> Junction:
    """Return a junction tree whose sums come near to all tables, by a fixed number of damped sweeps."""
    found = Junction([*tables, *((at,) for at in range(len(sizes)))], sizes, total)
    aims = {columns: simplex(table, total) for columns, table in tables.items() if columns}
    for sweep in range(sweeps):
        power = 1 / (1 + max(0, sweep - _WHOLE) / 2)
        for columns, aim in aims.items():
            found.scale(columns, aim, power)
    return found
