"""Models of a table that rows are made of: a histogram over all columns, or a tree of pairs of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

import numpy as np

from farthing.synthetic.mixing import apportioned, shuffled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]


class RowModel(Protocol):
    """What makes rows."""

    @property
    def total(self) -> float:
        """How many rows the table has, as it was measured."""
        ...

    def rows(self, many: int, seed: int = 0) -> Int64:
        """Return int64[rows, columns], the places of values: the same for the same seed."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HistogramModel:
    """A histogram over all columns.

    Attributes:
        sizes: how many values each column has.
        weights: float64[cells], >= 0.
        total: how many rows the table has.

    >>> HistogramModel((2, 2), np.array([3.0, 0.0, 0.0, 1.0]), 4.0).rows(4).sum(axis=0).tolist()
    [1, 1]
    """

    sizes: tuple[int, ...]
    weights: Float64
    total: float

    def rows(self, many: int, seed: int = 0) -> Int64:
        """Return int64[rows, columns], the places of values: each cell as often as its share says, within one."""
        order = neighbours(self.sizes)  # what rounding moves goes to a cell that differs in one column
        cells = np.repeat(order, apportioned(self.weights[order], many))
        return np.stack(np.unravel_index(cells[shuffled(seed, 0, many)], self.sizes), axis=1).astype(np.int64)


def neighbours(sizes: tuple[int, ...]) -> Int64:
    """Return all cells of a table in an order in which each differs from the one before by one, in one column.

    >>> neighbours((2, 3)).tolist()
    [0, 1, 2, 5, 4, 3]
    """
    found = np.zeros(1, np.int64)
    for size in reversed(sizes):
        found = np.concatenate([at * len(found) + (found[::-1] if at % 2 else found) for at in range(size)])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    """Columns that hang together in a forest: each column depends on one other, or on none.

    Attributes:
        columns: the places of the columns in an order in which each comes after the one it depends on.
        parents: for each of them that one's place, or -1.
        tables: float64[parent's values, values] for each, or [1, values] without a parent: weights, a row at a time.
        total: how many rows the table has.

    >>> both = TreeModel((0, 1), (-1, 0), (np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])), 4.0)
    >>> bool((both.rows(4)[:, 0] == both.rows(4)[:, 1]).all())
    True
    """

    columns: tuple[int, ...]
    parents: tuple[int, ...]
    tables: tuple[Float64, ...]
    total: float

    def rows(self, many: int, seed: int = 0) -> Int64:
        """Return int64[rows, columns], the places of values: every conditional share is kept within one row."""
        found = np.zeros((many, len(self.columns)), np.int64)
        for stream, (column, parent, table) in enumerate(zip(self.columns, self.parents, self.tables, strict=True)):
            order = shuffled(seed, stream, many)
            given = np.zeros(many, np.int64) if parent < 0 else found[order, parent]
            by_parent = order[np.argsort(given, kind="stable")]
            start = 0
            for value, count in enumerate(np.bincount(given, minlength=len(table)).tolist()):
                shares = apportioned(table[value], count) if count else np.zeros(table.shape[1], np.int64)
                found[by_parent[start : start + count], column] = np.repeat(np.arange(len(shares)), shares)
                start += count
        return found


def simplex(table: Float64, total: float) -> Float64:
    """Return the table of entries >= 0 and of this total that is the nearest to a noisy one: many become zero.

    >>> simplex(np.array([3.0, 1.0, -2.0]), 4.0).tolist()
    [3.0, 1.0, 0.0]
    """
    flat = np.sort(table.reshape(-1))[::-1]
    over = (np.cumsum(flat) - total) / np.arange(1, len(flat) + 1)
    last = int(np.flatnonzero(flat - over > 0)[-1]) if (flat - over > 0).any() else len(flat) - 1
    return np.asarray(np.maximum(table - over[last], 0.0), np.float64)


def forest(
    ones: Sequence[Float64], pairs: Mapping[tuple[int, int], Float64], total: float, order: Sequence[tuple[int, int]]
) -> TreeModel:
    """Return the model of a forest: `order` lists its edges, `pairs` has their noisy tables, `ones` those of columns.

    >>> model = forest([np.array([2.0, 2.0])] * 2, {(0, 1): np.array([[2.0, 0.0], [0.0, 2.0]])}, 4.0, [(0, 1)])
    >>> model.columns, model.parents
    ((0, 1), (-1, 0))
    """
    beside: dict[int, list[int]] = {at: [] for at in range(len(ones))}
    for i, j in order:
        beside[i].append(j)
        beside[j].append(i)
    columns, parents, tables, seen = [], [], [], set[int]()
    for root in range(len(ones)):
        waiting = [(root, -1)] if root not in seen else []
        while waiting:
            column, parent = waiting.pop()
            seen.add(column)
            columns.append(column)
            parents.append(parent)
            tables.append(_given(ones[column], column, parent, pairs, total))
            waiting += [(other, column) for other in beside[column] if other not in seen]
    return TreeModel(tuple(columns), tuple(parents), tuple(tables), total)


def _given(one: Float64, column: int, parent: int, pairs: Mapping[tuple[int, int], Float64], total: float) -> Float64:
    """Return the weights of a column's values given those of its parent; where that has none those of the column."""
    alone = simplex(one, total)[None, :]
    if parent < 0:
        return alone
    low, high = sorted((column, parent))
    table = simplex(pairs[low, high], total)
    table = table if low == parent else table.T
    return np.where(table.sum(axis=1, keepdims=True) > 0, table, alone)


def spread_out(model: TreeModel, ones: Sequence[Float64], kept: Sequence[Int64]) -> TreeModel:
    """Return the model over all values where it was made over merged ones: what is merged is shared out as counted."""
    shares = [_within(one, places) for one, places in zip(ones, kept, strict=True)]
    tables = []
    for column, parent, table in zip(model.columns, model.parents, model.tables, strict=True):
        wide = table[:, kept[column]] * shares[column]
        tables.append(wide if parent < 0 else wide[kept[parent]])
    return TreeModel(model.columns, model.parents, tuple(tables), model.total)


def _within(one: Float64, places: Int64) -> Float64:
    """Return the share of each value in its merged value."""
    held = np.maximum(one, 0.0) + 1e-9
    return np.asarray(held / np.bincount(places, held)[places])


def rake(tables: Mapping[tuple[int, ...], Float64], sizes: tuple[int, ...], total: float, sweeps: int) -> Float64:
    """Return the histogram over all columns that comes near to all tables, by a fixed number of damped sweeps.

    Each step scales the histogram to one table, whole in the first sweeps and less and less after them, since tables
    with noise that were cut at zero do not agree.

    >>> rake({(0,): np.array([3.0, 1.0])}, (2, 2), 4.0, 1).tolist()
    [1.5, 1.5, 0.5, 0.5]
    """
    found = np.full(sizes, total / math.prod(sizes))
    aims = {}
    for places, table in tables.items():
        held = np.maximum(table, 0.0)
        aims[places] = held * (total / held.sum()) if held.sum() > 0 else np.full(held.shape, total / held.size)
    for sweep in range(sweeps):
        power = 1 / (1 + max(0, sweep - 3) / 2)
        for places, aim in aims.items():
            others = tuple(axis for axis in range(len(sizes)) if axis not in places)
            now = found.sum(axis=others, keepdims=True)
            ratio = np.divide(aim.reshape(now.shape), now, out=np.zeros(now.shape), where=now > 0)
            found *= np.maximum(ratio, 1e-9) ** power if power < 1 else ratio
        found *= total / max(float(found.sum()), 1e-300)
    return found.reshape(-1)


def furthest_pairs(
    ones: Sequence[Float64], pairs: Mapping[tuple[int, int], tuple[Float64, float]], total: float
) -> list[tuple[int, int]]:
    """Return the edges of the forest of pairs that are furthest from independent, more than their noise explains.

    Args:
        ones: the released counts of each column.
        pairs: the released table of each pair, and the standard deviation of its cells.
        total: how many rows there are.
    """
    sure = [simplex(one, total) for one in ones]
    gains = {}
    for (i, j), (table, sd) in pairs.items():
        alone = np.outer(sure[i], sure[j]) / total
        gains[i, j] = float(abs(simplex(table, total) - alone).sum()) - sd * float(
            np.count_nonzero(simplex(table, total))
        )
    part, edges = list(range(len(ones))), []
    for i, j in sorted(gains, key=lambda pair: (-gains[pair], pair)):
        if gains[i, j] > 0 and part[i] != part[j]:
            edges.append((i, j))
            part = [part[i] if one == part[j] else one for one in part]
    return edges


def pairs_of(tables: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of columns that are in a table together, in rising order."""
    return tuple(sorted({(i, j) for table in tables for i, j in combinations(sorted(table), 2)}))
