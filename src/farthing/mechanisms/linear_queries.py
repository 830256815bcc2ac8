"""Linear queries on a histogram: whole-number weights, so that exact answers are whole numbers, and so is what moves.

A query gives each cell of a domain a weight in [-1, 1]; its answer is the weighted sum of the counts. Weights are
rounded to 2^-16 first: they are public, so that is a matter of what is asked, not of what is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

BITS: Final = 16
"""Weights are whole numbers over 2^16."""

MOST_CELLS: Final = 1 << 20
"""The most cells of a domain that is held as a histogram."""

MOST_ENTRIES: Final = 1 << 26
"""The most weights of one set of queries, zeros among them."""

ALTERNATIVES: Final = {
    "a histogram": '"residuals" and "tree" never hold the domain: they need the tables alone',
    "a matrix of queries": "tables of the workload are queries that need no matrix",
    "small databases": '"mwem" chooses among queries, not among databases',
}
"""What would do where something does not fit."""


class LinearQueries(Protocol):
    """Queries on a histogram, in groups that are measured together."""

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        ...

    @property
    def step(self) -> float:
        """What one step of an exact answer is worth."""
        ...

    @property
    def energy(self) -> float:
        """The mean over queries of the sum of their squared weights."""
        ...

    @property
    def groups(self) -> tuple[slice, ...]:
        """Which answers are measured together."""
        ...

    def exact(self, counts: Int64) -> Int64:
        """Return the answers in steps, exactly."""
        ...

    def of(self, weights: Float64) -> Float64:
        """Return the answers of a weighted histogram, float64[queries]."""
        ...

    def back(self, values: Float64) -> Float64:
        """Return for each cell the sum over queries of value times weight, float64[cells]."""
        ...

    def part(self, at: int, weights: Float64) -> Float64:
        """Return the answers of one group."""
        ...

    def back_part(self, at: int, values: Float64) -> Float64:
        """Return what `back` does of values of one group, and of nothing else."""
        ...

    def squares(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers, or those of a group, in squared steps."""
        ...

    def total(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers together, or those of a group, in steps."""
        ...


@dataclass(frozen=True, eq=False)
class MatrixQueries:
    """Queries by their weights, a row each; each query is a group of its own.

    Attributes:
        weights: float64[queries, cells], each in [-1, 1].

    Guarantee: `exact` is the answer of the rounded weights, and `squares` and `total` bound what one row moves it by.
    Proof: docs/proofs/mechanisms.linear_queries.md, section 1.
    Assumes: nothing.
    Rounds: weights to 2^-16; a cell counts for at most 2^44 over the number of cells.

    Raises:
        InvalidOption: weights that are not numbers in [-1, 1], none, or too many.

    >>> halves = MatrixQueries([[1, 1, 0, 0], [0, 0.5, -0.5, 0]])
    >>> (halves.exact(np.array([5, 2, 1, 0])) * halves.step).tolist()
    [7.0, 0.5]
    """

    weights: ArrayLike
    cells: int = field(init=False)
    step: float = field(init=False, default=2.0**-BITS)
    _whole: Int64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = np.asarray(self.weights)
        usable = given.dtype.kind in "iufb" and given.ndim == 2 and given.size > 0
        table = given.astype(np.float64) if usable else np.zeros((0, 0))
        if not usable or not (np.isfinite(table).all() and (abs(table) <= 1).all()):
            raise InvalidOption(
                "these are not queries",
                rule="a table of numbers in [-1, 1], a row a query, a column a cell",
                got=f"{given.dtype} of shape {given.shape}" if usable else f"{type(self.weights).__name__}",
                next_step="[[1, 1, 0, 0]] counts the first two of four cells",
            )
        require_size("a histogram", table.shape[1], MOST_CELLS)
        require_size("a matrix of queries", table.size, MOST_ENTRIES)
        object.__setattr__(self, "cells", table.shape[1])
        object.__setattr__(self, "_whole", np.rint(np.ldexp(table, BITS)).astype(np.int64))

    @property
    def energy(self) -> float:
        """The mean over queries of the sum of their squared weights."""
        return float((self._floats**2).sum(axis=1).mean())

    @property
    def groups(self) -> tuple[slice, ...]:
        """Which answers are measured together: each by itself."""
        return tuple(slice(at, at + 1) for at in range(len(self._whole)))

    def exact(self, counts: Int64) -> Int64:
        """Return the answers in steps, exactly."""
        return np.asarray(self._whole @ held(counts, self.cells), np.int64)

    @cached_property
    def _floats(self) -> Float64:
        """The weights as they were rounded."""
        return np.ldexp(self._whole.astype(np.float64), -BITS)

    def of(self, weights: Float64) -> Float64:
        """Return the answers of a weighted histogram, float64[queries]."""
        return np.asarray(self._floats @ weights, np.float64)

    def back(self, values: Float64) -> Float64:
        """Return for each cell the sum over queries of value times weight, float64[cells]."""
        return np.asarray(values @ self._floats, np.float64)

    def part(self, at: int, weights: Float64) -> Float64:
        """Return the answers of one group."""
        return np.asarray(self._floats[at : at + 1] @ weights, np.float64)

    def back_part(self, at: int, values: Float64) -> Float64:
        """Return what `back` does of values of one group, and of nothing else."""
        return np.asarray(values[0] * self._floats[at], np.float64)

    def squares(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers, or those of a group, in squared steps."""
        return int((self._whole[group or slice(None)] ** 2).sum(axis=0).max())

    def total(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers together, or those of a group, in steps."""
        return int(abs(self._whole[group or slice(None)]).sum(axis=0).max())


@dataclass(frozen=True, eq=False)
class TableQueries:
    """The cells of marginal tables as queries; each table is a group.

    Attributes:
        sizes: how many values each column has.
        tables: the places of each table's columns, in rising order.

    Guarantee: `exact` is exact, and one row moves one cell of each table by one.
    Proof: docs/proofs/mechanisms.linear_queries.md, section 1.
    Assumes: nothing.
    Rounds: nothing.

    >>> two = TableQueries((2, 3), ((0,), (0, 1)))
    >>> two.exact(np.arange(6)).tolist()
    [3, 12, 0, 1, 2, 3, 4, 5]
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    step: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        require_size("a histogram", self.cells, MOST_CELLS)

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        return math.prod(self.sizes)

    @property
    def energy(self) -> float:
        """The mean over cells of tables of how many cells of the domain they are the sum of."""
        return float(len(self.tables) * self.cells / self.groups[-1].stop)

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Which answers are measured together: the cells of each table."""
        sizes = [math.prod(self.sizes[place] for place in table) for table in self.tables]
        ends = list(accumulate(sizes))
        return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))

    def exact(self, counts: Int64) -> Int64:
        """Return the answers in steps, exactly."""
        return np.asarray(self._sums(held(counts, self.cells)), np.int64)

    def of(self, weights: Float64) -> Float64:
        """Return the answers of a weighted histogram, float64[queries]."""
        return np.asarray(self._sums(weights), np.float64)

    def _sums(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return all tables of a histogram, one after the other."""
        return np.concatenate([self._sum(table, cells) for table in self.tables])

    def _sum(self, table: tuple[int, ...], cells: NDArray[Any]) -> NDArray[Any]:
        """Return one table of a histogram, as a row."""
        others = tuple(axis for axis in range(len(self.sizes)) if axis not in table)
        return np.asarray(cells.reshape(self.sizes).sum(axis=others)).reshape(-1)

    def _spread(self, table: tuple[int, ...], values: Float64) -> Float64:
        """Return the values of one table, in the shape in which all cells take them."""
        return values.reshape([size if at in table else 1 for at, size in enumerate(self.sizes)])

    def back(self, values: Float64) -> Float64:
        """Return for each cell the sum over queries of value times weight, float64[cells]."""
        found = np.zeros(self.sizes)
        for table, group in zip(self.tables, self.groups, strict=True):
            found += self._spread(table, values[group])
        return found.reshape(-1)

    def part(self, at: int, weights: Float64) -> Float64:
        """Return the answers of one group."""
        return np.asarray(self._sum(self.tables[at], weights), np.float64)

    def back_part(self, at: int, values: Float64) -> Float64:
        """Return what `back` does of values of one group, and of nothing else."""
        return np.broadcast_to(self._spread(self.tables[at], values), self.sizes).reshape(-1)

    def squares(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers, or those of a group, in squared steps."""
        return len(self.tables) if group is None else 1

    def total(self, group: slice | None = None) -> int:
        """Return the most that one row moves all answers together, or those of a group, in steps."""
        return self.squares(group)


def held(counts: Int64, cells: int) -> Int64:
    """Return counts held where sums of them times weights fit in 64 bits; each moves no further than it did."""
    return np.clip(np.asarray(counts, np.int64).reshape(-1), 0, (1 << 44) // cells)


def require_size(what: str, size: int, most: int) -> None:
    """Refuse what does not fit into memory, with its size, the limit and what would do.

    Args:
        what: a key of `ALTERNATIVES`.
        size: how many numbers it has.
        most: the most it may have.
    """
    if size > most:
        raise InvalidOption(
            f"the domain is too large for {what}",
            rule=f"at most {most:,}",
            got=f"{size:,}",
            next_step=ALTERNATIVES[what],
        )


def steps_of(answers: Float64, queries: LinearQueries) -> Int64:
    """Return released answers in whole steps, so that differences to exact ones are whole numbers."""
    most = float(1 << 61)
    return np.rint(np.clip(np.asarray(answers) / queries.step, -most, most)).astype(np.int64)


def distances(truth: Int64, model: Int64, queries: LinearQueries) -> Int64:
    """Return for each group the sum of sizes of differences, in steps, each held below 2^61 over their number.

    Guarantee: one row moves each by at most `queries.total(group)`.
    Proof: docs/proofs/mechanisms.linear_queries.md, section 1: the triangle inequality.
    Assumes: both in steps; sizes below 2^61.
    Rounds: nothing.

    >>> two = TableQueries((2,), ((0,),))
    >>> distances(np.array([5, 1]), np.array([3, 3]), two).tolist()
    [4]
    """
    apart = np.minimum(abs(truth - model), (1 << 61) // len(truth))
    return np.asarray(np.add.reduceat(apart, [group.start for group in queries.groups]), np.int64)


def uniform(cells: int, total: float) -> Float64:
    """Return the histogram that is the same everywhere."""
    return np.full(cells, max(total, 1.0) / cells)
