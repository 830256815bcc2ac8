"""Finite classes of hypotheses on columns, and their mistakes, all counted in one pass.

A hypothesis says 0 or 1 of each row. Its cut points are public: a grid that is read off the data is data. Odd values
decide nothing but their own row: what is not a number is above no cut and is not a point, and a row whose label is none
counts nowhere.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from farthing.errors import DataError, NoiseError
from farthing.mechanisms.columns import entries, numbers

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = [
    "CutHypothesis",
    "DecisionStumps",
    "FiniteClass",
    "Hypotheses",
    "Hypothesis",
    "Point",
    "Points",
    "Thresholds",
]


class Hypothesis(Protocol):
    """Whatever says 0 or 1 of each row."""

    def predict(self, features: Any) -> Int64:
        """Return 0 or 1 for each row, int64[rows]."""
        ...


class Hypotheses(Protocol):
    """A public, finite class. One row more adds 0 or 1 to the mistakes of each hypothesis."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> Hypothesis: ...

    def mistakes(self, features: Any, labels: Int64) -> Int64:
        """Return how many rows each hypothesis gets wrong, int64[hypotheses]."""
        ...


@dataclass(frozen=True, slots=True)
class CutHypothesis:
    """Say 1 where a column is above the cut, or, if not `above`, where it is not.

    >>> CutHypothesis(3).predict([1, 3, 5]).tolist(), CutHypothesis(3, above=False).predict([1, 3, 5]).tolist()
    ([0, 0, 1], [1, 1, 0])
    """

    at: float
    column: Hashable = None
    above: bool = True

    def predict(self, features: Any) -> Int64:
        """Return 0 or 1 for each row."""
        return np.asarray((column_of(features, self.column) > self.at) == self.above, np.int64)


@dataclass(frozen=True, slots=True)
class Point:
    """Say 1 at one point, 0 elsewhere; `Point()` says 0 everywhere.

    >>> Point(7).predict([1, 7]).tolist(), Point().predict([1, 7]).tolist()
    ([0, 1], [0, 0])
    """

    at: Hashable = None

    def predict(self, features: Any) -> Int64:
        """Return 0 or 1 for each row."""
        values = entries(features)
        return np.zeros(len(values), np.int64) if self.at is None else np.asarray(values == self.at, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    """The hypotheses "1 where x > t", for each cut point t of a public grid.

    Attributes:
        cuts: float64[hypotheses], rising; any array of numbers is taken.

    >>> Thresholds([10, 20, 30]).mistakes([5, 15, 25, 35], np.array([0, 0, 1, 1])).tolist()
    [1, 0, 1]
    """

    cuts: Float64

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", _grid(self.cuts))

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, place: int) -> CutHypothesis:
        return CutHypothesis(float(self.cuts[place]))

    def mistakes(self, features: Any, labels: Int64) -> Int64:
        """Return how many rows each threshold gets wrong, int64[hypotheses]; features is one column."""
        return _mistakes(column_of(features, None, len(labels)), labels, self.cuts)


@dataclass(frozen=True, slots=True, eq=False)
class DecisionStumps:
    """The hypotheses "1 where a column is above t" and "1 where it is not", for each column and each of its cuts.

    Attributes:
        grids: a public, rising grid of cut points for each column. Columns are names in a table, numbers in an array.

    >>> stumps = DecisionStumps({"age": [18, 65], "income": [10_000]})
    >>> len(stumps), stumps[3]
    (6, CutHypothesis(at=65.0, column='age', above=False))
    >>> stumps.mistakes({"age": [17, 30, 70], "income": [0, 9_000, 20_000]}, np.array([0, 1, 1])).tolist()
    [0, 1, 3, 2, 1, 2]
    """

    grids: Mapping[Any, Float64]
    _ends: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        grids = {name: _grid(grid) for name, grid in self.grids.items()}
        if not grids:
            raise _no_choice("at least one column with a grid", "none")
        object.__setattr__(self, "grids", grids)
        object.__setattr__(self, "_ends", tuple(accumulate(2 * len(grid) for grid in grids.values())))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, place: int) -> CutHypothesis:
        if not 0 <= place < len(self):
            raise IndexError(place)
        which = bisect_right(self._ends, place)
        column, grid = list(self.grids.items())[which]
        inside = place - (self._ends[which] - 2 * len(grid))
        return CutHypothesis(float(grid[inside % len(grid)]), column, above=inside < len(grid))

    def mistakes(self, features: Any, labels: Int64) -> Int64:
        """Return how many rows each stump gets wrong, int64[hypotheses]: both signs from one count."""
        found = []
        for name, grid in self.grids.items():
            above = _mistakes(column_of(features, name, len(labels)), labels, grid)
            found += [above, (labels >= 0).sum() - above]
        return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class Points:
    """The hypotheses "1 at a, 0 elsewhere", for each whole number a from 0 below `size`.

    >>> Points(4).mistakes([2, 2, 3, 0], np.array([1, 1, 0, 0])).tolist()
    [3, 2, 0, 3]
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise _no_choice("size is a whole number >= 1", repr(self.size))

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> Point:
        return Point(place)

    def mistakes(self, features: Any, labels: Int64) -> Int64:
        """Return how many rows each point gets wrong, int64[hypotheses]; nothing outside the domain is any point."""
        column = entries(features)
        if column.dtype.kind not in "iu":
            column = numbers("points", column, dimensions=1)
            column = np.where((np.abs(column) < 2.0**62) & (column == np.floor(column)), column, -1)
        if column.ndim != 1:
            raise _no_column("points are one column of whole numbers", f"{column.dtype}, {column.ndim} dimensions")
        _same_length(len(column), len(labels))
        inside = (column >= 0) & (column < self.size)
        place, label = column[inside].astype(np.int64), labels[inside]
        wins = np.bincount(place[label == 1], minlength=self.size)
        losses = np.bincount(place[label == 0], minlength=self.size)
        return np.asarray((labels == 1).sum() - wins + losses)


@dataclass(frozen=True, slots=True)
class FiniteClass:
    """Any hypotheses at all, each asked for its predictions.

    >>> FiniteClass([CutHypothesis(3), Point(7), Point()]).mistakes([1, 5, 7], np.array([0, 0, 1])).tolist()
    [1, 0, 1]
    """

    hypotheses: Sequence[Hypothesis]

    def __post_init__(self) -> None:
        object.__setattr__(self, "hypotheses", tuple(self.hypotheses))
        if not self.hypotheses:
            raise _no_choice("at least one hypothesis", "none")

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __getitem__(self, place: int) -> Hypothesis:
        return self.hypotheses[place]

    def mistakes(self, features: Any, labels: Int64) -> Int64:
        """Return how many rows each hypothesis gets wrong, int64[hypotheses]."""
        return np.array([mistakes_of(each, features, labels) for each in self.hypotheses], np.int64)


def mistakes_of(hypothesis: Hypothesis, features: Any, labels: Int64) -> int:
    """Return how many rows one hypothesis gets wrong."""
    said = hypothesis.predict(features)
    _same_length(len(said), len(labels))
    return int(((said != labels) & (labels >= 0)).sum())


def labels_of(labels: ArrayLike) -> Int64:
    """Return labels as int64[rows]: 1 is one class, 0 and -1 the other, written 0, and all else is -2, no label.

    Each row by itself: whether the other class is written 0 or -1 need not be known.

    >>> labels_of([True, False, 0.5, None]).tolist()
    [1, 0, -2, -2]
    """
    found = numbers("labels", labels, dimensions=1)
    return np.asarray(np.where(np.isin(found, (-1.0, 0.0, 1.0)), np.where(found > 0, 1, 0), -2), np.int64)


def column_of(features: Any, name: Any, rows: int | None = None) -> Float64:
    """Return one column as float64[rows], -inf for what is not a number: it is above no cut. Refuse other shapes.

    Args:
        features: one column if name is None; else a table (Arrow, pandas, a mapping) or an array [rows, columns].
        name: the column's name, or its number in an array.
        rows: how many there should be.
    """
    raw = None
    features = entries(features) if isinstance(features, list | tuple) and name is not None else features
    with suppress(KeyError, IndexError, TypeError):
        raw = features if name is None else features[:, name] if isinstance(features, np.ndarray) else features[name]
    if raw is None:
        raise _no_column("each column of the class is a column of the features", f"no column {name!r}")
    values = numbers("features", raw, dimensions=1)
    _same_length(len(values), len(values) if rows is None else rows)
    return np.where(np.isnan(values), -np.inf, values)


def _mistakes(values: Float64, labels: Int64, cuts: Float64) -> Int64:
    """Return how many rows each "1 where value > cut" gets wrong: ones at or below the cut, zeros above it."""
    ones, zeros = np.sort(values[labels == 1]), np.sort(values[labels == 0])
    return np.asarray(ones.searchsorted(cuts, "right") + len(zeros) - zeros.searchsorted(cuts, "right"))


def _grid(cuts: ArrayLike) -> Float64:
    """Return a public grid as float64[cuts] that nobody can change, or refuse it."""
    given = np.asarray(cuts)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iuf":
        raise _no_choice("at least one cut point, in a flat list of numbers", f"{given.dtype}, {given.size} cuts")
    grid = given.astype(np.float64)
    if not np.isfinite(grid).all() or (np.diff(grid) <= 0).any():
        raise _no_choice("cut points are finite and rise", "others")
    grid.setflags(write=False)
    return grid


def _no_choice(rule: str, got: object) -> NoiseError:
    """Return the refusal of a class."""
    return NoiseError(
        "nothing to choose from", rule=rule, got=got, next_step="for example Thresholds(range(0, 100, 5))"
    )


def _no_column(rule: str, got: object) -> DataError:
    """Return the refusal of a column."""
    return DataError("these are not features", rule=rule, got=got, next_step="drop or fill such rows by a public rule")


def _same_length(found: int, rows: int) -> None:
    """Refuse columns of another length than the labels."""
    if found != rows:
        raise DataError(
            "features and labels differ in length",
            rule="one label for each row of features",
            got="other lengths",
            next_step="take both from one table",
        )
