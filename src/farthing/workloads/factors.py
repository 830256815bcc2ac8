"""Factors of a workload: linear questions about one column, a condition, or all columns of a matrix. Values only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

MOST_BINS: Final = 400
"""The most bins of a column: an expression holds no more edges."""

MOST_COLUMNS: Final = 1024
"""The most cells that a matrix is about."""

MOST_ENTRIES: Final = 10_000_000
"""The most entries of the matrix of one factor."""


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of a number: [edge, next edge), the last one closed. Rows outside of them, NULL and NaN are in none."""

    column: str
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether a condition is true of a row; NULL counts as false."""

    condition: str


Axis: TypeAlias = str | Bins | Truth
"""What the cells of a factor are by: the listed values of a column, bins of it, or a condition."""


@dataclass(frozen=True, slots=True)
class ListedFactor:
    """The count by each listed value of a column."""

    column: str

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What its cells are by."""
        return (self.column,)

    @property
    def words(self) -> str:
        """The factor in words."""
        return self.column

    def matrix(self, sizes: Sequence[int]) -> Float64:
        """Return float64[answers, cells], what each answer adds up."""
        return np.eye(sizes[0])

    def answers(self, sizes: Sequence[int]) -> int:
        """Return the number of answers."""
        return sizes[0]


@dataclass(frozen=True, slots=True)
class _BinnedFactor:
    """Counts of rows by bins of a number."""

    bins: Bins
    kind: ClassVar[str]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What its cells are by."""
        return (self.bins,)

    @property
    def words(self) -> str:
        """The factor in words."""
        return f"{self.kind} of {self.bins.column}"

    def answers(self, sizes: Sequence[int]) -> int:
        """Return the number of answers."""
        return sizes[0]


@dataclass(frozen=True, slots=True)
class PrefixFactor(_BinnedFactor):
    """The count below each edge, from the first edge on."""

    kind: ClassVar[str] = "prefixes"

    def matrix(self, sizes: Sequence[int]) -> Float64:
        """Return float64[answers, cells], what each answer adds up."""
        return np.tril(np.ones((sizes[0], sizes[0])))


@dataclass(frozen=True, slots=True)
class RangeFactor(_BinnedFactor):
    """The count between any two edges."""

    kind: ClassVar[str] = "ranges"

    def matrix(self, sizes: Sequence[int]) -> Float64:
        """Return float64[answers, cells], what each answer adds up."""
        first, last = np.triu_indices(sizes[0])
        places = np.arange(sizes[0])
        return ((first[:, None] <= places) & (places <= last[:, None])).astype(np.float64)

    def answers(self, sizes: Sequence[int]) -> int:
        """Return the number of answers."""
        return sizes[0] * (sizes[0] + 1) // 2


@dataclass(frozen=True, slots=True)
class ConditionFactor:
    """The count of the rows that meet a condition."""

    truth: Truth

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What its cells are by: false, then true."""
        return (self.truth,)

    @property
    def words(self) -> str:
        """The factor in words."""
        return self.truth.condition

    def matrix(self, sizes: Sequence[int]) -> Float64:  # noqa: ARG002  # a condition has two cells
        """Return float64[1, 2], what the answer adds up."""
        return np.array([[0.0, 1.0]])

    def answers(self, sizes: Sequence[int]) -> int:  # noqa: ARG002
        """Return the number of answers."""
        return 1


@dataclass(frozen=True, slots=True)
class MatrixFactor:
    """The rows of a matrix over the listed values of some columns, the first column slowest."""

    columns: tuple[str, ...]
    entries: tuple[tuple[float, ...], ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What its cells are by."""
        return self.columns

    @property
    def words(self) -> str:
        """The factor in words."""
        return f"{len(self.entries)} x {len(self.entries[0])} matrix over {', '.join(self.columns)}"

    def matrix(self, sizes: Sequence[int]) -> Float64:
        """Return float64[answers, cells], what each answer adds up; refuse one that is not about so many cells."""
        cells = math.prod(sizes)
        if len(self.entries[0]) != cells:
            raise InvalidOption(
                "the matrix is not about these cells",
                rule="one column for each combination of the listed values, the first column of over= slowest",
                got=f"{len(self.entries[0]):,} columns for {cells:,} cells of {', '.join(self.columns)}",
                next_step="list as many values as the matrix is about",
            )
        return np.array(self.entries)

    def answers(self, sizes: Sequence[int]) -> int:  # noqa: ARG002
        """Return the number of answers."""
        return len(self.entries)


Factor: TypeAlias = ListedFactor | PrefixFactor | RangeFactor | ConditionFactor | MatrixFactor


def bins(column: object, edges: object) -> Bins:
    """Return the bins of a column; refuse edges that do not rise, and too many."""
    usable = isinstance(edges, Iterable) and not isinstance(edges, str | bytes)
    given = tuple(edges) if usable and isinstance(edges, Iterable) else ()
    numbers = tuple(
        float(edge)
        for edge in given
        if isinstance(edge, int | float | np.integer | np.floating) and not isinstance(edge, bool)
    )
    rising = all(low < high for low, high in pairwise(numbers))
    fine = len(numbers) == len(given) and rising and all(map(math.isfinite, numbers))
    if not isinstance(column, str) or not fine or not 2 <= len(numbers) <= MOST_BINS + 1:
        raise InvalidOption(
            "bins of a column need rising edges",
            rule=f"a column's name, and from 2 to {MOST_BINS + 1:,} finite numbers, each larger than the one before",
            got=f"{column!r}, {repr(edges)[:60]}",
            next_step='prefixes("age", [0, 18, 65, 120])',
        )
    return Bins(column, numbers)
