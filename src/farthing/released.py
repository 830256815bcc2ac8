"""What leaves of a release: tables of counts with intervals, which all agree with each other. Never an exact count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption, UnsupportedQuery
from farthing.mechanisms.residuals import put_together, residual_table
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.limits import Limit
    from farthing.planning.release import Candidate, ReleasePlan
    from farthing.privacy.loss import Booked
    from farthing.synthetic import SyntheticRows

    Float64 = NDArray[np.float64]

MOST_HISTOGRAM: Final = 10**8
"""The most cells of a histogram over all columns."""


@dataclass(frozen=True, eq=False, repr=False)
class Table(Tabular):
    """The counts by some columns, with an interval for each cell; all cells of a table have the same half-width.

    Attributes:
        name: the answer column.
        keys: the listed values of each column, as Arrow arrays, by name.
        value: float64[values of each column], the counts. They are signed and not whole.
        half_width: the half-width of every interval.
        sd: the standard deviation of every count.
        target: the half-width that was asked of every cell, or infinity; with a relative target, what the least cell of
            the table allows, as a coarse look found it.
        relative: the half-width that was asked as a fraction of a cell, where that is more.
        paid: what members paid in this ask: mu or rho.
    """

    name: str
    keys: Mapping[str, pa.Array]
    value: Float64
    half_width: float
    sd: float
    target: float
    paid: float
    relative: float = 0.0

    @property
    def lower(self) -> Float64:
        """The lower ends of the intervals, shaped as the counts."""
        return self.value - self.half_width

    @property
    def upper(self) -> Float64:
        """The upper ends of the intervals, shaped as the counts."""
        return self.value + self.half_width

    @property
    def met(self) -> NDArray[np.bool_]:
        """Whether each interval is as narrow as was asked, shaped as the counts."""
        asked = np.maximum(self.target, self.relative * abs(self.value)) * (1 + 1e-9)
        return np.asarray(self.half_width <= asked)

    def to_arrow(self) -> pa.Table:
        """Return one row a cell: the columns, <name>, <name>_lower, <name>_upper, met, paid; first column slowest."""
        import pyarrow as pa

        places = np.unravel_index(np.arange(self.value.size), self.value.shape) if self.keys else ()
        columns: dict[str, Any] = {
            column: values.take(pa.array(at)) for (column, values), at in zip(self.keys.items(), places, strict=True)
        }
        flat = self.value.reshape(-1)
        columns |= {self.name: flat, f"{self.name}_lower": flat - self.half_width}
        columns |= {f"{self.name}_upper": flat + self.half_width}
        return pa.table(columns | {"met": self.met.reshape(-1), "paid": np.full(flat.size, self.paid)})

    @property
    def caption(self) -> str:
        """What is shown, in one line."""
        return f"{self.name} by {', '.join(self.keys) or 'nothing'}, each within +/-{self.half_width:.4g}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The line below the cells: what is shown."""
        return (self.caption,)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Tabular, Mapping[tuple[str, ...], Table]):
    """Many tables of counts at once: a mapping from columns to a `Table`, all of them consistent with each other.

    Tables that share columns agree on every total over them. Each interval holds the count *of the bounded data* with
    the stated confidence, whatever it is; all of them at once where that was asked.

    Attributes:
        name: the answer column of every table.
        columns: the columns, in the order of the workload.
        tables: the columns of each table of the workload.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        about: what the numbers are about, in words: the privacy unit and its bounds.

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

    name: str
    columns: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    paid: Booked
    remaining: Booked
    delta: float
    about: str
    _keys: Mapping[str, pa.Array]
    _places: Mapping[str, NDArray[np.int64]]
    _contrasts: Mapping[tuple[int, ...], Float64]
    _plan: ReleasePlan
    _refine: Callable[..., Release]
    _limit: Callable[[], Limit]

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
    def rmse(self) -> float:
        """The root mean squared error of a cell, every cell of every table of the workload alike."""
        return self._plan.rmse

    @property
    def mechanism(self) -> str:
        """How it was measured."""
        return "residuals"

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What other mechanisms would have paid for the same goal, or reached with the same loss; from nothing."""
        return self._plan.contest

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return self._plan.goal.confidence

    @property
    def goal(self) -> str:
        """What was asked, in words."""
        return self._plan.goal.words

    def optimality(self) -> Limit:
        """Return the least loss that any unbiased mechanism could have paid for this, beside what was paid in all.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
        >>> bool(1 <= release.optimality().ratio < 1.01)
        True
        """
        return self._limit()

    def refine(self, **changes: Any) -> Release:
        """Return a sharper release of the same tables, for the difference.

        Args:
            **changes: any of absolute, rms, confidence, simultaneous, loss, max_epsilon, cap; what is left out stays.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
        >>> release.refine(absolute=40)["a"].half_width < release["a"].half_width
        True
        """
        return self._refine(**changes)

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

        return synthetic(
            self.tables, lambda table: (self[table].value, self[table].sd), self._plan, self._keys, rows, seed
        )

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write each table of the workload as a Parquet file into a folder, named after its columns; return the files.

        Raises:
            InvalidOption: the folder has one of the files already.
        """
        import pyarrow.parquet as pq

        directory = Path(folder)
        files = [directory / f"{number:03d}-{_plain(table)}.parquet" for number, table in enumerate(self.tables, 1)]
        there = next((file for file in files if file.exists()), None)
        if there is not None:
            raise InvalidOption(
                "a file of the release is there already",
                rule="files are not written over",
                got=there.name,
                next_step="name a new folder",
            )
        directory.mkdir(parents=True, exist_ok=True)
        for file, table in zip(files, self.tables, strict=True):
            pq.write_table(self[table].to_arrow(), file)
        return files

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
            f"{tables:,} table{'s' if tables > 1 else ''}, {cells:,} cells, {self.goal}, "
            f"{self.confidence:.4g} confidence, root mean squared error {self.rmse:.4g}"
        )

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        text, left = f"paid {self.paid!r}", f"left {self.remaining!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
            left += f" = epsilon {self.remaining.epsilon(self.delta):.4g}"
        return f"{text}; {left}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the tables: the promise, the price, what the counts are about."""
        return self.caption, self.price, self.about

    @cached_property
    def _residuals(self) -> dict[tuple[int, ...], Float64]:
        """The residual tables, in the order of the listed values."""
        found = {}
        for subset, mean in self._contrasts.items():
            table = residual_table(mean)
            for axis, place in enumerate(subset):
                table = table.take(self._places[self._names[place]], axis=axis)
            found[subset] = table
        return found

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
        value = put_together(table, dict(enumerate(basis.sizes)), residuals)
        sd = math.sqrt(design.variance_of(table)) if measured else math.inf
        absolute, relative = self._plan.goal.absolute, self._plan.goal.relative
        aimed, weight = (max((each.weights[at] for at in holding), default=1.0) for each in (self._plan.aimed, basis))
        target = math.inf if absolute is None or not measured else absolute / aimed
        return Table(
            self.name,
            {column: self._keys[column] for column in asked},
            value.transpose(np.argsort(order)) if asked else value,
            self._plan.goal.critical * sd,
            sd,
            target,
            self.paid.value,
            relative / weight,
        )


def _plain(table: tuple[str, ...]) -> str:
    """Return the columns of a table as part of a file's name: letters, digits, dashes."""
    name = "-".join(table) or "total"
    return "".join(letter if letter.isalnum() else "_" for letter in name)[:80]
