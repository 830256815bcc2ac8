"""A model of cliques: its tables and its rows, block after block of columns, each given columns before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.synthetic.junction import agreed, cells_of, cliques_of, fitted, sums
from farthing.synthetic.mixing import shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.adaptive_tables import MeasuredTables
    from farthing.synthetic.junction import Junction

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Columns = tuple[int, ...]

SWEEPS: Final = 6
"""How often all tables are fitted in each round."""

DRAWN: Final = 1 << 17
"""How many rows tell tables that are in no clique while a model is made."""


@dataclass(frozen=True, slots=True, eq=False)
class CliqueModel:
    """Columns in blocks: the values of each block depend on some columns of blocks before it.

    Attributes:
        sizes: how many merged values each column has.
        blocks: the columns that each block depends on, and its own.
        tables: float64[given cells, own cells] for each, >= 0: weights, a row at a time.
        widths: float64[merged values, values] of each column: how merged values are shared out.
        total: how many rows the table has.

    >>> both = ((), (0,)), ((0,), (1,))
    >>> tables = np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = CliqueModel((2, 2), both, tables, (np.eye(2), np.eye(2)), 4.0)
    >>> bool((model.rows(4)[:, 0] == model.rows(4)[:, 1]).all())
    True
    """

    sizes: tuple[int, ...]
    blocks: tuple[tuple[Columns, Columns], ...]
    tables: tuple[Float64, ...]
    widths: tuple[Float64, ...]
    total: float

    def rows(self, many: int, seed: int = 0) -> Int64:
        """Return int64[rows, columns], the places of values: every conditional share is kept within one row."""
        found = self.merged_rows(many, seed)
        for column, width in enumerate(self.widths):
            order = shuffled(seed, len(self.blocks) + column, many)
            found[:, column] = evenly(found[:, column], width, order)
        return found

    def merged_rows(self, many: int, seed: int = 0) -> Int64:
        """Return int64[rows, columns], the places of merged values."""
        found = np.zeros((many, len(self.sizes)), np.int64, order="F")
        for stream, ((given, own), table) in enumerate(zip(self.blocks, self.tables, strict=True)):
            picked = evenly(self._cell(found, given), table, shuffled(seed, stream, many))
            for column, values in zip(own, np.unravel_index(picked, [self.sizes[at] for at in own]), strict=True):
                found[:, column] = values
        return found

    def _cell(self, rows: Int64, columns: Columns) -> Int64:
        """Return the cell of each row by some columns."""
        return cell_of(rows, columns, self.sizes)


def cell_of(rows: Int64, columns: Columns, sizes: tuple[int, ...]) -> Int64:
    """Return the cell of each row in a table by some columns.

    >>> cell_of(np.array([[1, 0], [1, 2]]), (0, 1), (2, 3)).tolist()
    [3, 5]
    """
    found = np.zeros(len(rows), np.int64)
    for at in columns:
        found = found * sizes[at] + rows[:, at]
    return found


def evenly(given: Int64, weights: Float64, order: Int64) -> Int64:
    """Return a value for each row, so that those of each given value have it as often as their weights say.

    Args:
        given: int64[rows], the row of weights of each row.
        weights: float64[given values, values], >= 0; all alike where there are none.
        order: int64[rows], the numbers of the rows in the order in which they get values.

    >>> evenly(np.array([0, 0, 1, 0]), np.array([[1.0, 0.5], [0.0, 1.0]]), np.arange(4)).tolist()
    [0, 0, 1, 1]
    """
    sorted_rows = order[np.argsort(given[order], kind="stable")]
    of = given[sorted_rows]
    many = np.bincount(of, minlength=len(weights))
    place = np.arange(len(given)) - (np.cumsum(many) - many)[of]
    ends = np.cumsum(np.where(weights.sum(axis=1, keepdims=True) > 0, weights, 1.0), axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(weights))[:, None]
    picked = np.searchsorted(ends.reshape(-1), of + (place + 0.5) / many[of], side="right") - of * weights.shape[1]
    found = np.empty(len(given), np.int64)
    found[sorted_rows] = np.minimum(picked, weights.shape[1] - 1)
    return found


class CliqueFit:
    """What measured tables tell of others, by a junction tree; of columns in no clique together, by rows of it."""

    def __init__(self, measured: MeasuredTables) -> None:
        self.sizes, self._measured = measured.sizes, [one.columns for one in measured.tables]
        self._junction: Junction = fitted(agreed(measured.tables, self.sizes), self.sizes, measured.total, SWEEPS)
        self._held = self._junction.settled()
        self.total = measured.total

    def counts(self, columns: Columns) -> Float64:
        """Return the counts by some columns, shaped as their sizes."""
        for clique, held in zip(self._junction.cliques, self._held, strict=True):
            if {*columns} <= {*clique}:
                return sums(held, clique, columns)
        shape = [self.sizes[at] for at in columns]
        cells = np.bincount(cell_of(self._rows, columns, self.sizes), minlength=math.prod(shape))
        return np.asarray(cells.reshape(shape) * (self.total / DRAWN), np.float64)

    def cells(self, columns: Columns) -> int:
        """Return how many cells the cliques would have if the table of these columns were measured, too."""
        if any({*columns} <= {*clique} for clique in self._junction.cliques):
            return cells_of(self._junction.cliques, self.sizes)
        return cells_of(cliques_of([*self._measured, columns], self.sizes), self.sizes)

    @cached_property
    def _rows(self) -> Int64:
        """Rows over merged values."""
        return self.model(()).merged_rows(DRAWN)

    def model(self, widths: tuple[Float64, ...]) -> CliqueModel:
        """Return what makes rows, with how merged values are shared out."""
        blocks, tables = [], []
        for at, (clique, held) in enumerate(zip(self._junction.cliques, self._held, strict=True)):
            given = self._junction.shared(at)
            own = tuple(one for one in clique if one not in given)
            turned = held.transpose([clique.index(one) for one in (*given, *own)])
            blocks.append((given, own))
            tables.append(turned.reshape(math.prod(self.sizes[one] for one in given), -1))
        return CliqueModel(self.sizes, tuple(blocks), tuple(tables), widths, self.total)


def clique_model(measured: MeasuredTables) -> CliqueModel:
    """Return what makes rows of measured tables: merged values are shared out as their columns were counted."""
    widths = []
    for one, places in zip(measured.ones, measured.kept, strict=True):
        width = np.zeros((int(places.max()) + 1, len(places)))
        width[places, np.arange(len(places))] = np.maximum(one, 0.0) + 1e-9
        widths.append(width)
    return CliqueFit(measured).model(tuple(widths))
