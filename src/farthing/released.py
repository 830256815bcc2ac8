"""What leaves of a release: tables of counts with intervals, which all agree with each other. Never an exact count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption, UnsupportedQuery
from farthing.mechanisms.residuals import put_together, residual_table
from farthing.planning.release_shaped import ShapedDesign
from farthing.released_tables import BaseRelease, ReleasedTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.planning.release import ReleasePlan
    from farthing.synthetic import SyntheticRows

    Float64 = NDArray[np.float64]

MOST_HISTOGRAM: Final = 10**8
"""The most cells of a histogram over all columns."""


class Table(ReleasedTable):
    """The counts by some columns, with an interval for each cell; an axis a column.

    The target of a cell is the wider of the absolute and the relative one. What its relative target means for cells
    that are known too roughly to say, a coarse look at all tables decides.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Release(BaseRelease, Mapping[tuple[str, ...], Table]):
    """Many tables of counts at once: a mapping from columns to a `Table`, all of them consistent with each other.

    Tables that share columns agree on every total over them.

    Attributes:
        columns: the columns, in the order of the workload.
        tables: the columns of each table of the workload.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40, "late": [True, False] * 470})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> keys = {"zone": ["a", "b"], "late": [True, False]}
    >>> release = s.release(marginals(["zone", "late"], ways=2), keys=keys, absolute=60)
    >>> release["zone", "late"].to_arrow().column_names
    ['zone', 'late', 'count', 'count_lower', 'count_upper', 'met', 'paid']
    >>> bool(abs(release["zone", "late"].value.sum(axis=1) - release["zone"].value).max() < 1e-6)
    True
    """

    columns: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    _plan: ReleasePlan
    _keys: Mapping[str, pa.Array]
    _places: Mapping[str, NDArray[np.int64]]
    _contrasts: Mapping[tuple[int, ...], Float64]

    def __getitem__(self, columns: str | tuple[str, ...]) -> Table:
        """Return the table over some columns, in the order in which they are named.

        Every table over columns that are together in a table of the workload is told, () for the total among them.

        Raises:
            UnsupportedQuery: they are in no table together.
        """
        asked = (columns,) if isinstance(columns, str) else tuple(columns)
        holding = [at for at, table in enumerate(self.tables) if set(asked) <= set(table)]
        if not holding or len(set(asked)) < len(asked):
            raise UnsupportedQuery(
                f"the release has no table of {', '.join(map(repr, asked))}",
                construct="unknown table",
                rule="columns that are together in a table of the workload, each once",
                got=repr(asked),
                next_step="the tables are " + "; ".join(f"({', '.join(one)})" for one in self.tables[:8]),
            )
        return self._table(asked, holding)

    def __contains__(self, columns: object) -> bool:
        asked = {columns} if isinstance(columns, str) else set(columns) if isinstance(columns, tuple | list) else None
        return asked is not None and any(asked <= set(table) for table in self.tables)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def parts(self) -> list[tuple[str, Table]]:
        """The tables of the workload, each with its columns."""
        return [("-".join(table) or "total", self[table]) for table in self.tables]

    def histogram(self) -> Table:
        """Return counts by all columns that every released table is a sum of: of all such, the ones closest to even.

        Only the sums are promised: a cell of it has an interval where the workload has the table of all columns.

        Raises:
            InvalidOption: more than 100,000,000 cells.
        """
        sizes = [len(values) for values in self._keys.values()]
        if math.prod(sizes) > MOST_HISTOGRAM:
            raise InvalidOption(
                "the histogram over all columns is too large",
                rule=f"at most {MOST_HISTOGRAM:,} cells",
                got=f"{math.prod(sizes):,}",
                next_step="take the tables one by one: release[table]",
            )
        return self._table(self.columns, [], whole=True)

    def synthetic(self, rows: int | None = None, *, seed: int = 0) -> SyntheticRows:
        """Return rows that nobody has, whose tables are near the released ones, with the error of each: free.

        Args:
            rows: how many; by default as many as were told.
            seed: a public number: the rows are a function of it and of what was released.

        Raises:
            InvalidOption: a number of rows or a seed that is none.
        """
        from farthing.synthetic.released import synthetic

        def told(table: tuple[str, ...]) -> tuple[Float64, float]:
            found = self[table]
            return found.value, float(np.sqrt(np.mean(found.half_width**2))) / self._plan.goal.critical

        return synthetic(self.tables, told, self._plan, self._keys, rows, seed)

    def to_arrow(self, columns: str | tuple[str, ...] | None = None) -> pa.Table:
        """Return one table as Arrow, see `Table.to_arrow`; without columns one row a table, with its half-width."""
        import pyarrow as pa

        if columns is not None:
            return self[columns].to_arrow()
        return pa.table(
            {
                "table": [", ".join(table) or "total" for table in self.tables],
                "cells": self._plan.design.basis.cells.astype(np.int64),
                "half_width": self._plan.half_widths,
            }
        )

    @property
    def caption(self) -> str:
        """The promise in one line."""
        cells, tables = int(self._plan.design.basis.cells.sum()), len(self.tables)
        return (
            f"{tables:,} table{'s' if tables > 1 else ''}, {cells:,} cells, {self.goal}, {self.sure}, "
            f"root mean squared error {self.rmse:.4g}"
        )

    @cached_property
    def _weights(self) -> dict[int, NDArray[np.int64]] | None:
        """The weights of the values of each column, in the order in which they were listed; None for even ones."""
        design = self._plan.design
        if not isinstance(design, ShapedDesign):
            return None
        return {place: weights[self._places[self._names[place]]] for place, weights in design.weights.items()}

    @cached_property
    def _residuals(self) -> dict[tuple[int, ...], Float64]:
        """The residual tables, in the order of the listed values."""
        design, found = self._plan.design, {}
        for subset, mean in self._contrasts.items():
            own = [design.weights[place] for place in subset] if isinstance(design, ShapedDesign) else None
            found[subset] = self._in_order(subset, residual_table(mean, own))
        return found

    def _in_order(self, subset: tuple[int, ...], table: Float64) -> Float64:
        """Return a table by places in the order of the listed values."""
        for axis, place in enumerate(subset):
            table = table.take(self._places[self._names[place]], axis=axis)
        return table

    @property
    def _names(self) -> tuple[str, ...]:
        """The columns in the order of the places of the basis."""
        return tuple(sorted(self.columns))

    def _table(self, asked: tuple[str, ...], holding: list[int], *, whole: bool = False) -> Table:
        """Return the table over some columns; of a whole histogram residuals that were not measured are none.

        Args:
            asked: the columns.
            holding: the tables of the workload that hold it, whose targets it has to keep.
            whole: whether it is the histogram.
        """
        basis, design = self._plan.design.basis, self._plan.design
        order = sorted(range(len(asked)), key=lambda at: self._names.index(asked[at]))
        table = tuple(self._names.index(asked[at]) for at in order)
        real = [place for place in table if basis.sizes[place] > 1]
        residuals, measured = dict(self._residuals), True
        for many in range(len(real) + 1) if whole else ():
            for subset in combinations(real, many):
                if subset not in residuals:
                    residuals[subset], measured = np.zeros([basis.sizes[i] for i in subset]), False
        value = put_together(table, dict(enumerate(basis.sizes)), residuals, self._weights)
        sd = np.sqrt(self._in_order(table, design.cells_of(table))) if measured else np.full(value.shape, math.inf)
        absolute, relative = self._plan.goal.absolute, self._plan.goal.relative
        aimed, weight = (max((each.weights[at] for at in holding), default=1.0) for each in (self._plan.aimed, basis))
        value, sd = (one.transpose(np.argsort(order)) if asked else one for one in (value, sd))
        target = math.inf if absolute is None or not measured else absolute / aimed
        return Table(
            self.name,
            tuple({column: self._keys[column]} for column in asked),
            value,
            np.asarray(self._plan.goal.critical * sd),
            np.maximum(target, relative / weight * abs(value)),
            self.paid.value,
            self.paid.parameter,
            f"{self.name} by {', '.join(asked) or 'nothing'}",
        )
