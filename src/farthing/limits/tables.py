"""The least error of a workload of marginal tables, by its residual basis: closed forms, no domain, no matrix.

Every table is the sum of one *residual* for each subset of its columns: the part of the counts that is mean-zero along
each of these columns and constant along all others. Measured with variances s_A, a cell of table B has the variance
sum over A in B of spread(A, B) s_A, and a row costs sum p_A/s_A of mu^2. Both depend on the sizes of columns alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits import checks
from farthing.limits.checks import SHAVE
from farthing.limits.closed import MOST_SUBSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

CLOSE: Final = 1e-6
"""How near the largest variance comes to its optimum, as a share of mu^2."""

_ROUNDS: Final = 20_000


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residual basis of a workload of marginal tables.

    Attributes:
        sizes: how many values each column has.
        tables: the places of each table's columns, in rising order.
        weights: how much an error in each table counts.

    >>> basis = Residuals((3, 2), ((0,), (0, 1)), (1.0, 1.0))
    >>> basis.subsets
    ((), (0,), (1,), (0, 1))
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        pairs = sum(2 ** len(table) for table in self.tables)
        if pairs > 10 * MOST_SUBSETS:
            raise InvalidOption(
                "too many parts",
                rule=f"at most {10 * MOST_SUBSETS:,} subsets of columns, counted over all tables",
                got=f"{pairs:,}",
                next_step="fewer ways or fewer columns",
            )

    @cached_property
    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """The subsets of columns that have a residual: those of all tables without columns of one value."""
        found = {
            subset
            for table in self.tables
            for many in range(len(table) + 1)
            for subset in combinations([i for i in table if self.sizes[i] > 1], many)
        }
        return tuple(sorted(found, key=lambda subset: (len(subset), subset)))

    @cached_property
    def price(self) -> Float64:
        """float64[subsets]: what a row pays of mu^2 for a residual of variance 1."""
        return np.array([math.prod(1 - 1 / self.sizes[i] for i in subset) for subset in self.subsets])

    @cached_property
    def cells(self) -> Float64:
        """float64[tables]: the number of cells of each table."""
        return np.array([float(math.prod(self.sizes[i] for i in table)) for table in self.tables])

    @cached_property
    def spread(self) -> Any:
        """Sparse float64[tables, subsets]: what a residual of variance 1 adds to the variance of a cell."""
        from scipy.sparse import csr_array

        place = {subset: at for at, subset in enumerate(self.subsets)}
        rows, columns, values = [], [], []
        for row, table in enumerate(self.tables):
            real = [i for i in table if self.sizes[i] > 1]
            for many in range(len(real) + 1):
                for subset in combinations(real, many):
                    inside = math.prod(1 - 1 / self.sizes[i] for i in subset)
                    rows.append(row)
                    columns.append(place[subset])
                    values.append(inside / math.prod(self.sizes[i] ** 2 for i in real if i not in subset))
        return csr_array((values, (rows, columns)), shape=(len(self.tables), len(self.subsets)))

    @cached_property
    def _gather(self) -> Any:
        """Sparse float64[subsets, tables]: the transpose of `spread`, made once for the many steps of a search."""
        return self.spread.T.tocsr()

    @cached_property
    def counted(self) -> Float64:
        """float64[tables]: the squared weights."""
        return np.array(self.weights) ** 2

    def variances(self, shares: Float64) -> Float64:
        """Return float64[tables], the variance of a cell at mu = 1, where each residual gets a share of mu^2."""
        found: Float64 = self.spread @ (self.price / shares)
        return found

    def least_squares(self) -> Float64:
        """Return float64[subsets], the shares of mu^2 at which the weighted sum of squared errors is least.

        Guarantee: no shares give less: (sum over residuals of sqrt(v p))^2 is the least sum, by Cauchy-Schwarz.
        Proof: docs/proofs/limits.tables.md, section 2; [XiaoHZK23].
        Assumes: nothing.
        Rounds: to the nearest.
        """
        return self._shares(self.counted * self.cells)

    def least_largest(self) -> tuple[Float64, Float64]:
        """Return the shares of mu^2 at which the largest weighted variance is least, and the dual weights of tables.

        The dual weights, of sum 1, prove it: a mean of variances by them is at most the largest, and its own least is
        known in closed form. They move to where variances are largest until both sides meet, within `CLOSE`.

        Guarantee: the largest weighted variance is at most (1 + CLOSE) times the least that is possible.
        Proof: docs/proofs/limits.tables.md, section 3.
        Assumes: the rounds suffice; else the shares are the best that were found.
        Rounds: to the nearest.
        """
        dual = np.full(len(self.tables), 1 / len(self.tables))
        best, shares = math.inf, self.price
        for _ in range(_ROUNDS):
            now = self._shares(dual * self.counted)
            weighted = self.counted * self.variances(now)
            largest = float(weighted.max())
            if largest < best:
                best, shares = largest, now
            if best <= float(dual @ weighted) * (1 + CLOSE):
                return shares, dual
            dual = dual * (weighted / largest)
            dual /= dual.sum()
        return shares, dual

    def squares_at_least(self, dual: Float64 | None = None) -> float:
        """Return a lower bound, at chi^2 = 1, on the sum of squared errors (or the dual mean of variances).

        Guarantee: no unbiased mechanism whose outputs differ by chi^2 = 1 between neighbours has less.
        Proof: docs/proofs/limits.tables.md, section 4; docs/proofs/limits.unbiased.md, section 6.
        Assumes: add/remove one row.
        Rounds: down.
        """
        counted = self.counted * (self.cells if dual is None else dual)
        return self._root(counted) ** 2 * SHAVE

    @property
    def least_mean_square(self) -> float:
        """The least mean squared error per cell at mu = 1, every cell alike."""
        return self._root(self.cells) ** 2 / float(self.cells.sum())

    def _shares(self, counted: Float64) -> Float64:
        """Return the shares that are best where each cell of a table counts so much: proportional to sqrt(v p)."""
        roots: Float64 = np.sqrt((self._gather @ counted) * self.price)
        found: Float64 = roots / roots.sum()
        return found

    def _root(self, counted: Float64) -> float:
        """Return the sum of sqrt(v p)."""
        return math.fsum(np.sqrt((self._gather @ counted) * self.price))


def marginals_error(sizes: Sequence[int], ways: int = 2, *, up_to: bool = False, mu: float = 1.0) -> float:
    """Return the least root mean squared error per cell of all tables over `ways` columns, at mu of Gaussian noise.

    Args:
        sizes: how many values each column takes.
        ways: how many columns each table has.
        up_to: all tables over at most so many columns, too, the total among them.
        mu: the loss of one row, in mu; > 0.

    Guarantee: the mean squared error per cell of the best Gaussian mechanism that is linear in the counts.
    Proof: docs/proofs/limits.tables.md, section 2; [XiaoHZK23].
    Assumes: add/remove one row.
    Rounds: to the nearest.

    >>> f"{marginals_error([100, 50, 7, 4, 2], ways=2):.3f}"
    '2.035'
    """
    basis = tables_of(sizes, ways, up_to=up_to)
    size = checks.positive([mu], "mu")[0]
    return math.sqrt(basis.least_mean_square) / float(size)


def tables_of(sizes: Sequence[int], ways: int, *, up_to: bool) -> Residuals:
    """Return the basis of all tables over `ways` of the columns; refuse what is none."""
    columns = tuple(checks.whole(size, "each size") for size in sizes)
    usable = not isinstance(ways, bool) and isinstance(ways, int) and 0 <= ways <= len(columns)
    many = range(ways + 1) if up_to and usable else (ways,)
    if not columns or not usable or sum(math.comb(len(columns), size) for size in many) > MOST_SUBSETS:
        raise InvalidOption(
            "the marginals are out of range",
            rule=f"0 <= ways <= number of columns, at least one column, at most {MOST_SUBSETS:,} tables",
            got=f"ways={ways!r} of {len(columns)} columns",
            next_step="fewer ways or fewer columns",
        )
    tables = tuple(table for size in many for table in combinations(range(len(columns)), size))
    return Residuals(columns, tables, (1.0,) * len(tables))
