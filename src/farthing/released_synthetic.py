"""What leaves of a release by a model: rows that are near the data in all tables, and how near, as it was measured."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import UnsupportedQuery
from farthing.released_tables import labels_of
from farthing.synthetic.rows import base_counts, base_rows, made, scaled
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.mechanisms.linear_queries import MatrixQueries
    from farthing.privacy.loss import Booked
    from farthing.synthetic import RowModel, SyntheticRows
    from farthing.workloads import Products
    from farthing.workloads.factors import Axis
    from farthing.workloads.products import WorkloadProduct

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class BaseSynthetic(Tabular):
    """What releases by a model have in common.

    Attributes:
        name: the answer column of every table.
        mechanism: how the model was measured.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        confidence: the chance that the error of a table is between its ends.
        about: what the numbers are about, in words: the privacy unit and its bounds.
    """

    name: str
    mechanism: str
    paid: Booked
    remaining: Booked
    delta: float
    confidence: float
    about: str
    _keys: Mapping[str, pa.Array]
    _model: RowModel
    _apart: Float64
    _slack: Float64

    @property
    @abstractmethod
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        """The names of each part of the workload."""

    @abstractmethod
    def _base(self, number: int) -> Float64:
        """Return the answers of a part from the rows that errors were measured of."""

    @abstractmethod
    def _answers(self, number: int, rows: Int64) -> Float64:
        """Return the answers of a part from rows, scaled to the number of rows that was told."""

    @abstractmethod
    def _whole(self, number: int) -> float:
        """Return what the sum of differences of a part's answers is divided by."""

    @property
    def errors(self) -> tuple[Float64, Float64]:
        """Between which ends the error of each part of the workload is: float64[parts], lower and upper."""
        most = np.array([self._whole(number) for number in range(len(self._parts))])
        return np.maximum(self._apart - self._slack, 0.0) / most, np.maximum(self._apart + self._slack, 0.0) / most

    def synthetic(self, rows: int | None = None, *, seed: int = 0) -> SyntheticRows:
        """Return rows of the model, with the errors of their tables: free, and the same for the same seed.

        Args:
            rows: how many; by default as many as were told.
            seed: a public number.

        Raises:
            InvalidOption: a number of rows that is none.
        """

        def known(number: int, places: Int64) -> tuple[float, float, float]:
            """Return the distance that was measured, and how far these rows are from those it was measured of."""
            moved = float(abs(self._answers(number, places) - self._base(number)).sum())
            return max(0.0, float(self._apart[number])), float(self._slack[number]) + moved, self._whole(number)

        return made(self._model, self._keys, self._parts, known, rows, seed, self.confidence)

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the tables: how they were made, the price, what the counts are about."""
        text, left = f"paid {self.paid!r}", f"left {self.remaining!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
            left += f" = epsilon {self.remaining.epsilon(self.delta):.4g}"
        told = f"{len(self._parts):,} tables by {self.mechanism}, {self.confidence:.4g} confidence of each error"
        return told, f"{text}; {left}", self.about

    @property
    def _sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self._keys.values()))

    @cached_property
    def _rows(self) -> Int64:
        """The rows that errors were measured of."""
        return base_rows(self._model)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRelease(BaseSynthetic, Mapping[tuple[str, ...], "pa.Table"]):
    """Tables that a model of the data tells, with the error of each table of the workload, as it was measured.

    A model is biased, so its cells have no intervals. The last part of the loss measured how far each table is from the
    truth: its *error*, half the sum of |told - true| counts over the number of rows that was told.

    Attributes:
        tables: the columns of each table of the workload.

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

    tables: tuple[tuple[str, ...], ...]

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

    def to_arrow(self) -> pa.Table:
        """Return one row a table of the workload: its cells, and between which shares its error is."""
        import pyarrow as pa

        lower, upper = self.errors
        names = [", ".join(table) or "total" for table in self.tables]
        cells = [int(np.prod([len(self._keys[name]) for name in table])) for table in self.tables]
        return pa.table({"table": names, "cells": cells, "error_lower": lower, "error_upper": upper})

    @property
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table."""
        return self.tables

    def _base(self, number: int) -> Float64:
        """Return a table of the rows that errors were measured of."""
        return self._counts(self.tables[number]).astype(np.float64)

    def _answers(self, number: int, rows: Int64) -> Float64:
        """Return a table of rows, scaled to the number of rows that was told."""
        return scaled(rows, self._model.total, self._sizes, self._places(self.tables[number]))

    def _whole(self, number: int) -> float:  # noqa: ARG002  # all tables are of the same rows
        """Return twice the number of rows that was told."""
        return 2 * self._model.total

    def _places(self, columns: tuple[str, ...]) -> tuple[int, ...]:
        """Return the places of some columns."""
        names = tuple(self._keys)
        return tuple(names.index(name) for name in columns)

    def _counts(self, columns: tuple[str, ...]) -> Int64:
        """Return the counts of the rows that errors were measured of."""
        return base_counts(self._rows, self._model.total, self._sizes, self._places(columns))


@dataclass(frozen=True, slots=True, eq=False)
class ToldProduct:
    """A product of a workload as a model answers it.

    Attributes:
        product: what was asked.
        places: which columns of the model its cells are by, in its order.
        queries: its answers over the largest size of a weight.
        scale: that size.
    """

    product: WorkloadProduct
    places: tuple[int, ...]
    queries: MatrixQueries
    scale: float

    def exact(self, counts: Int64) -> Int64:
        """Return the answers in steps, exactly, of the counts by its columns."""
        return self.queries.exact(counts.reshape(-1))

    @property
    def step(self) -> float:
        """What a step is worth."""
        return self.queries.step * self.scale


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticProducts(BaseSynthetic, Mapping[str, "pa.Table"]):
    """Sums of cells that a model of the data tells, with the error of each product of the workload, as it was measured.

    The *error* of a product is the mean over its answers of |told - true|, over the number of rows that was told. Its
    answers have no intervals: a model is biased. Weights of answers are rounded to 2^-16 of the largest of a product.

    Attributes:
        workload: what was asked.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import prefixes
    >>> s = farthing.Session(pa.table({"age": [20, 40, 70] * 300}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> ages = prefixes("age", [0, 18, 65, 120])
    >>> release = s.release(ages, loss=farthing.Gdp(0.2), cap="all", mechanism="mwem")
    >>> release[ages].column_names, release.synthetic(100).table.column_names
    (['age_to', 'count'], ['age_from'])
    """

    workload: Products
    _axes: Mapping[Axis, pa.Array]
    _told: tuple[ToldProduct, ...]

    def __getitem__(self, product: str | Products) -> pa.Table:
        """Return the answers of a product, by its words or by itself as a workload.

        Raises:
            UnsupportedQuery: the workload has no such product.
        """
        import pyarrow as pa

        wanted = product if isinstance(product, str) else product.products[0].factors
        for number, told in enumerate(self._told):
            if wanted in (told.product.words, told.product.factors):
                labels = [labels_of(factor, self._axes) for factor in told.product.factors]
                places = np.unravel_index(
                    np.arange(len(self._base(number))), [len(next(iter(one.values()))) for one in labels]
                )
                columns = {
                    name: values.take(pa.array(at.astype(np.int64)))
                    for one, at in zip(labels, places, strict=True)
                    for name, values in one.items()
                }
                return pa.table(columns | {self.name: self._base(number)})
        raise UnsupportedQuery(
            f"the release has no product {product!r}",
            construct="unknown product",
            rule="the words of a product of the workload, or the product itself",
            got=repr(product)[:80],
            next_step="the products are " + "; ".join(list(self)[:8]),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(told.product.words for told in self._told)

    def __len__(self) -> int:
        return len(self._told)

    def to_arrow(self) -> pa.Table:
        """Return one row a product of the workload: its answers, and between which ends its error is."""
        import pyarrow as pa

        lower, upper = self.errors
        answers = [len(self._base(number)) for number in range(len(self))]
        return pa.table({"product": list(self), "answers": answers, "error_lower": lower, "error_upper": upper})

    @property
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        """The words of each product."""
        return tuple((words,) for words in self)

    def _base(self, number: int) -> Float64:
        """Return the answers of a product from the rows that errors were measured of."""
        told = self._told[number]
        counts = base_counts(self._rows, self._model.total, self._sizes, told.places)
        return np.asarray(told.exact(counts) * told.step, np.float64)

    def _answers(self, number: int, rows: Int64) -> Float64:
        """Return the answers of a product from rows, scaled to the number of rows that was told."""
        told = self._told[number]
        counts = scaled(rows, self._model.total, self._sizes, told.places)
        return told.queries.of(counts.reshape(-1)) * told.scale

    def _whole(self, number: int) -> float:
        """Return the number of rows that was told, times that of answers."""
        return self._model.total * len(self._base(number))
