"""What leaves of a release by a model: rows that are near the data in all tables, and how near, as it was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import UnsupportedQuery
from farthing.synthetic.rows import base_counts, base_rows, made
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.privacy.loss import Booked
    from farthing.synthetic import RowModel, SyntheticRows

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRelease(Tabular, Mapping[tuple[str, ...], "pa.Table"]):
    """Tables that a model of the data tells, with the error of each table of the workload, as it was measured.

    A model is biased, so its cells have no intervals. The last part of the loss measured how far each table is from the
    truth: its *error*, half the sum of |told - true| counts over the number of rows that was told.

    Attributes:
        name: the answer column of every table.
        tables: the columns of each table of the workload.
        mechanism: how the model was measured.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        confidence: the chance that the error of a table is between its ends.
        about: what the numbers are about, in words: the privacy unit and its bounds.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40, "late": [True, False] * 470})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> keys = {"zone": ["a", "b"], "late": [True, False]}
    >>> both = marginals(["zone", "late"], ways=2)
    >>> release = s.release(both, keys=keys, loss=farthing.Gdp(0.1), cap="all", mechanism="tree")
    >>> release["zone", "late"].column_names, release.synthetic(100).table.num_rows
    (['zone', 'late', 'count'], 100)
    """

    name: str
    tables: tuple[tuple[str, ...], ...]
    mechanism: str
    paid: Booked
    remaining: Booked
    delta: float
    confidence: float
    about: str
    _keys: Mapping[str, pa.Array]
    _model: RowModel
    _apart: Float64
    _slack: float

    def __getitem__(self, columns: str | tuple[str, ...]) -> pa.Table:
        """Return the counts by some columns as the model tells them; only those of the workload have a known error.

        Raises:
            UnsupportedQuery: a column that the release has not, or one twice.
        """
        import pyarrow as pa

        asked = (columns,) if isinstance(columns, str) else tuple(columns)
        if len(set(asked)) < len(asked) or not set(asked) <= set(self._keys):
            raise UnsupportedQuery(
                f"the release has no table of {', '.join(map(repr, asked))}",
                construct="unknown table",
                rule="columns of the workload, each once",
                got=repr(asked),
                next_step="the columns are " + ", ".join(self._keys),
            )
        counts = self._counts(asked)
        places = np.unravel_index(np.arange(counts.size), counts.shape) if asked else ()
        cells = {
            name: self._keys[name].take(pa.array(at.astype(np.int64))) for name, at in zip(asked, places, strict=True)
        }
        return pa.table(cells | {self.name: counts.reshape(-1)})

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def errors(self) -> tuple[Float64, Float64]:
        """Between which shares the error of each table of the workload is: float64[tables], lower and upper."""
        most = 2 * self._model.total
        return np.maximum(self._apart - self._slack, 0.0) / most, np.maximum(self._apart + self._slack, 0.0) / most

    def synthetic(self, rows: int | None = None, *, seed: int = 0) -> SyntheticRows:
        """Return rows of the model, with the errors of their tables: free, and the same for the same seed.

        Args:
            rows: how many; by default as many as were told.
            seed: a public number.

        Raises:
            InvalidOption: a number of rows that is none.
        """

        def known(number: int, counts: Float64) -> tuple[float, float]:
            """Return the distance that was measured, and how far these rows are from those it was measured of."""
            moved = float(abs(counts - self._counts(self.tables[number])).sum())
            return max(0.0, float(self._apart[number])), self._slack + moved

        return made(self._model, self._keys, self.tables, known, rows, seed, self.confidence)

    def to_arrow(self) -> pa.Table:
        """Return one row a table of the workload: its cells, and between which shares its error is."""
        import pyarrow as pa

        lower, upper = self.errors
        names = [", ".join(table) or "total" for table in self.tables]
        cells = [int(np.prod([len(self._keys[name]) for name in table])) for table in self.tables]
        return pa.table({"table": names, "cells": cells, "error_lower": lower, "error_upper": upper})

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the tables: how they were made, the price, what the counts are about."""
        text, left = f"paid {self.paid!r}", f"left {self.remaining!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
            left += f" = epsilon {self.remaining.epsilon(self.delta):.4g}"
        told = f"{len(self.tables):,} tables by {self.mechanism}, {self.confidence:.4g} confidence of each error"
        return told, f"{text}; {left}", self.about

    @cached_property
    def _rows(self) -> Int64:
        """The rows that errors were measured of."""
        return base_rows(self._model)

    def _counts(self, columns: tuple[str, ...]) -> Int64:
        """Return the counts of the rows that errors were measured of."""
        names: Any = tuple(self._keys)
        sizes = tuple(map(len, self._keys.values()))
        return base_counts(self._rows, self._model.total, sizes, tuple(names.index(name) for name in columns))
