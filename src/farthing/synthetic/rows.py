"""Synthetic rows: a table made of released numbers, and how far its own tables are from the true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.synthetic.fitted_histogram import MOST_FITTED, fitted, parts_of
from farthing.synthetic.model import HistogramModel, forest, furthest_pairs, pairs_of, rake
from farthing.synthetic.shrinking import shrunk
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.synthetic.model import RowModel
    from farthing.synthetic.shrinking import Told

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

MOST_ROWS: Final = 10**7
"""The most synthetic rows."""

MOST_BASE: Final = 10**6
"""The most rows that errors are measured of."""

MOST_CELLS: Final = 1 << 20
"""The most cells of all columns together that are held as a histogram; larger domains are modelled as a forest."""

MOST_WORK: Final = 1 << 27
"""The most cells times tables that are raked; beyond, a forest."""

SWEEPS: Final = 8
"""How often all tables are raked."""

WARNING: Final = "made of released counts of these tables alone: not for what they do not tell, never about a person"


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows(Tabular):
    """Rows that nobody has, whose tables are near the released ones: a function of released numbers and a seed.

    The *error* of a table is half the sum over its cells of |synthetic - true| counts, where the synthetic ones are
    scaled to the number of rows that was told, over that number: the share of rows that would have to move.

    Attributes:
        table: the rows.
        tables: the columns of each table of the workload.
        lower, upper: float64[tables], between which the error of each table is.
        confidence: the chance that it is, for each by itself or all at once, as the release was asked.
        total: the number of rows that was told.
        seed: what the rows were made with.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40, "late": [True, False] * 470})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> keys = {"zone": ["a", "b"], "late": [True, False]}
    >>> found = s.release(marginals(["zone", "late"], ways=2), keys=keys, absolute=60).synthetic(500)
    >>> found.table.num_rows, found.report().column_names
    (500, ['table', 'error_lower', 'error_upper'])
    """

    table: pa.Table
    tables: tuple[tuple[str, ...], ...]
    lower: Float64
    upper: Float64
    confidence: float
    total: float
    seed: int

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return self.table

    def report(self) -> pa.Table:
        """Return one row a table of the workload: between which shares of the rows its error is."""
        import pyarrow as pa

        names = [", ".join(table) or "total" for table in self.tables]
        return pa.table({"table": names, "error_lower": self.lower, "error_upper": self.upper})

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the rows: how near they are, and what they are not for."""
        mean, worst = float(self.upper.mean()), float(self.upper.max())
        errors = f"at most {mean:.3g} on average, {worst:.3g} the worst, {self.confidence:.4g} confidence"
        made_of = f"{self.table.num_rows:,} synthetic rows, seed {self.seed}"
        return f"{made_of}; errors of {len(self.tables):,} tables {errors}", WARNING


def check_rows(rows: object, seed: object) -> None:
    """Refuse numbers of rows and seeds that are none."""
    whole = isinstance(rows, int) and not isinstance(rows, bool) and 1 <= rows <= MOST_ROWS
    if not whole or isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
        raise InvalidOption(
            "synthetic rows take a number of rows and a seed",
            rule=f"rows from 1 to {MOST_ROWS:,}; seed a whole number from 0 to 2^64 - 1",
            got=f"rows={rows!r}, seed={seed!r}",
            next_step="release.synthetic(10_000)",
        )


def named_rows(places: Int64, keys: Mapping[str, pa.Array]) -> pa.Table:
    """Return rows of places as a table of listed values."""
    import pyarrow as pa

    return pa.table({name: values.take(pa.array(places[:, at])) for at, (name, values) in enumerate(keys.items())})


def tallies(places: Int64, sizes: tuple[int, ...], table: tuple[int, ...]) -> Int64:
    """Return the counts of rows by some columns, shaped as their sizes.

    >>> tallies(np.array([[0, 1], [0, 0]]), (2, 2), (0,)).tolist()
    [2, 0]
    """
    shape = tuple(sizes[at] for at in table)
    flat = np.ravel_multi_index([places[:, at] for at in table], shape) if table else np.zeros(len(places), np.int64)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)


def scaled(rows: Int64, total: float, sizes: tuple[int, ...], table: tuple[int, ...]) -> Float64:
    """Return the counts of rows by some columns, scaled to a total.

    >>> scaled(np.array([[0], [1]]), 4.0, (2,), (0,)).tolist()
    [2.0, 2.0]
    """
    return np.asarray(tallies(rows, sizes, table) * (total / len(rows)), np.float64)


def base_rows(model: RowModel) -> Int64:
    """Return the rows whose tables a model tells and whose errors are measured: as many as were told, or a million."""
    return model.rows(max(1, min(round(model.total), MOST_BASE)), 0)


def base_counts(rows: Int64, total: float, sizes: tuple[int, ...], table: tuple[int, ...]) -> Int64:
    """Return the counts of such rows by some columns, scaled to a total, in whole numbers.

    >>> base_counts(np.array([[0], [0], [1]]), 3.0, (2,), (0,)).tolist()
    [2, 1]
    """
    counts = tallies(rows, sizes, table)
    return counts if len(rows) < MOST_BASE else np.rint(counts * (total / len(rows))).astype(np.int64)


def model_of(
    told: Told,
    sizes: tuple[int, ...],
    tables: tuple[tuple[int, ...], ...],
    *,
    parted: bool = True,
) -> RowModel:
    """Return the model of released tables: a histogram where it fits, else a forest of pairs of columns.

    Args:
        told: the released counts by some columns, and their standard deviation.
        sizes: how many values each column has.
        tables: the places of each table's columns.
        parted: whether the noise of tables is a sum of independent parts, each of one variance.
    """
    total = max(1.0, float(told(())[0]))
    cells = math.prod(sizes)
    if cells <= MOST_CELLS and cells * len(tables) <= MOST_WORK:
        return HistogramModel(sizes, _histogram(told, sizes, tables, total, parted=parted), total)
    ones = [told((at,))[0] for at in range(len(sizes))]
    pairs = {pair: told(pair) for pair in pairs_of(tables)}
    edges = furthest_pairs(ones, pairs, total)
    return forest(ones, {pair: table for pair, (table, _) in pairs.items()}, total, edges)


def _histogram(
    told: Told, sizes: tuple[int, ...], tables: tuple[tuple[int, ...], ...], total: float, *, parted: bool
) -> Float64:
    """Return the histogram of released tables: fitted by their noise where that is known by parts, else raked."""
    rising = {columns: told(columns)[0] for columns in {tuple(sorted(table)): None for table in tables if table}}
    wide = {columns: table for columns, table in rising.items() if len(columns) > 2}
    if not wide:
        return rake(rising, sizes, total, SWEEPS)
    pairs: dict[tuple[int, ...], Float64] = {pair: told(pair)[0] for pair in pairs_of(tables)}
    if parted and math.prod(sizes) <= MOST_FITTED:
        columns = sorted({at for table in rising for at in table})
        ones: dict[tuple[int, ...], Float64] = {(at,): told((at,))[0] for at in columns}
        alone = rake(ones, sizes, total, 1).reshape(sizes)
        start = rake(ones | shrunk(pairs, told, sizes, partial(_sums, alone)), sizes, total, SWEEPS)
        return fitted(parts_of(told, sizes, tuple(rising), total), start)
    drawn = shrunk(wide, told, sizes, partial(_sums, rake(pairs, sizes, total, SWEEPS).reshape(sizes)))
    return rake(rising | drawn, sizes, total, SWEEPS)


def _sums(histogram: Float64, columns: tuple[int, ...]) -> Float64:
    """Return a table of a histogram."""
    return np.asarray(histogram.sum(axis=tuple(axis for axis in range(histogram.ndim) if axis not in columns)))


def noise_reach(parts: Mapping[tuple[int, ...], float], sizes: tuple[int, ...], beta: float) -> float:
    """Return how far, in the sum over cells, the noise of a table reaches but for a chance of beta.

    Args:
        parts: the variance of each residual of the table, in contrasts of length 1, by its columns.
        sizes: how many values each of the table's columns has, by place in the table.
        beta: the chance.

    Guarantee: the sum of sizes of the noise is below it but for a chance of beta.
    Proof: docs/proofs/synthetic.rows.md, section 2: the mean, and Gaussian concentration about it.
    Assumes: independent Gaussian residuals.
    Rounds: nothing.

    >>> round(noise_reach({(): 4.0}, (), 0.05), 3) > 1.96 * 2
    True
    """
    cells = math.prod(sizes)
    shares = {
        subset: variance / math.prod(size for at, size in enumerate(sizes) if at not in subset)
        for subset, variance in parts.items()
    }
    trace = sum(share * math.prod(sizes[at] - 1 for at in subset) for subset, share in shares.items())
    mean = math.sqrt(2 / math.pi * cells * trace)
    return mean + math.sqrt(2 * math.log(1 / beta) * cells * max(shares.values()))


def subsets_of(table: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all subsets of some columns.

    >>> subsets_of((1, 2))
    [(), (1,), (2,), (1, 2)]
    """
    return [subset for many in range(len(table) + 1) for subset in combinations(table, many)]


def made(  # noqa: PLR0917  # what rows are made of
    model: RowModel,
    keys: Mapping[str, pa.Array],
    tables: tuple[tuple[str, ...], ...],
    known: Callable[[int, Int64], tuple[float, float, float]],
    rows: int | None,
    seed: int,
    confidence: float,
) -> SyntheticRows:
    """Return synthetic rows with their report.

    Args:
        model: what makes rows.
        keys: the listed values of each column, in order.
        tables: the columns of each table of the workload.
        known: of a table, by its number, and rows, the distance that is told, its slack, and what the error is one of.
        rows: how many; None for as many as were told.
        seed: of the rows.
        confidence: of the report.
    """
    many = max(1, round(model.total)) if rows is None else rows
    check_rows(many, seed)
    places = model.rows(many, seed)
    ends: list[tuple[float, float]] = []
    for number in range(len(tables)):
        apart, slack, most = known(number, places)
        ends.append((max(0.0, apart - slack) / most, (apart + slack) / most))
    shares: Any = np.array(ends)
    return SyntheticRows(named_rows(places, keys), tables, shares[:, 0], shares[:, 1], confidence, model.total, seed)
