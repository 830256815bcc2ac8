"""Workloads of linear counts: unions of Kronecker products of factors, such as prefix sums of one column by another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.workloads.factors import (
    MOST_COLUMNS,
    MOST_ENTRIES,
    Axis,
    Bins,
    ConditionFactor,
    Factor,
    ListedFactor,
    MatrixFactor,
    PrefixFactor,
    RangeFactor,
    Truth,
    bins,
)
from farthing.workloads.marginals import Marginals, check_weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MOST_APART: Final = 1e6
"""The most that the largest entries of the rows of a matrix are apart, as a ratio."""

MOST_PRODUCTS: Final = 1_000
"""The most products of one workload."""


@dataclass(frozen=True, slots=True)
class WorkloadProduct:
    """A Kronecker product of factors: every answer of one, by every answer of the others.

    Attributes:
        factors: the factors, the first one slowest.
        weight: how much an error counts: answers of weight 2 are wanted twice as precisely.
    """

    factors: tuple[Factor, ...]
    weight: float = 1.0

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What its cells are by."""
        return tuple(axis for factor in self.factors for axis in factor.axes)

    def matrix(self, sizes: Mapping[Axis, int]) -> NDArray[np.float64]:
        """Return float64[answers, cells], what each answer adds up of the cells by all axes, the first one slowest.

        Args:
            sizes: how many cells each axis has.

        >>> product = (prefixes("a", [0, 1, 2]) * conditions(["b > 0"])).products[0]
        >>> product.matrix(dict.fromkeys(product.axes, 2)).tolist()
        [[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
        """
        found: NDArray[np.float64] = np.ones((1, 1))
        for factor in self.factors:
            found = np.asarray(np.kron(found, factor.matrix([sizes[axis] for axis in factor.axes])), np.float64)
        return found

    @property
    def words(self) -> str:
        """The product in words."""
        times = "" if self.weight == 1 else f"{self.weight:g} x "
        return times + (" * ".join(factor.words for factor in self.factors) or "total")


@dataclass(frozen=True, slots=True, repr=False)
class Products:
    """A workload of linear counts.

    Attributes:
        products: its parts, in the order in which they are shown.
    """

    products: tuple[WorkloadProduct, ...]

    def __post_init__(self) -> None:
        seen: set[tuple[Factor, ...]] = set()
        if not 1 <= len(self.products) <= MOST_PRODUCTS:
            raise _refused(
                "empty" if not self.products else "too large",
                f"from 1 to {MOST_PRODUCTS:,} products a workload",
                f"{len(self.products):,}",
                'prefixes("age", [0, 18, 65, 120])',
            )
        for product in self.products:
            check_weight(product.weight)
            if len(set(product.axes)) < len(product.axes):
                raise _refused("a product of a column with itself", "each column once", product.words, "drop one")
            if product.factors in seen:
                step = "leave one out: a weight of 2 makes its errors count twice"
                raise _refused("the same twice", "each product once", product.words, step)
            seen.add(product.factors)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What all cells are by, each once, in the order in which they were first named."""
        return tuple(dict.fromkeys(axis for product in self.products for axis in product.axes))

    def __add__(self, other: object) -> Products:
        """Return the union of two workloads.

        Raises:
            InvalidOption: a product is in both.
        """
        more = _products(other)
        return NotImplemented if more is None else Products(self.products + more)

    def __radd__(self, other: object) -> Products:
        """Return the union of two workloads."""
        before = _products(other)
        return NotImplemented if before is None else Products(before + self.products)

    def __mul__(self, other: object) -> Products:
        """Return the Kronecker product: every answer of one by every answer of the other; weights multiply.

        Raises:
            InvalidOption: a column is in both.
        """
        more = _products(other)
        return NotImplemented if more is None else Products(_crossed(self.products, more))

    def __rmul__(self, other: object) -> Products:
        """Return the same answers, their errors counting `other` times as much, or a Kronecker product."""
        if isinstance(other, Marginals):
            return Products(_crossed(_products(other) or (), self.products))
        if isinstance(other, bool) or not isinstance(other, int | float):
            return NotImplemented
        check_weight(other)
        return Products(tuple(replace(one, weight=float(other) * one.weight) for one in self.products))

    def __repr__(self) -> str:
        names = [product.words for product in self.products[:4]]
        more = f"; and {len(self.products) - 4:,} more" if len(self.products) > 4 else ""
        return "; ".join(names) + more


def prefixes(column: str, edges: Sequence[float]) -> Products:
    """Return the counts from the first edge to each other one: a distribution function.

    Args:
        column: the name of a column of numbers. Its edges are public, so it needs no keys.
        edges: rising numbers. Rows outside of the first and the last one are not counted, in no answer of a release.

    Raises:
        InvalidOption: edges that do not rise, or more than 401.

    >>> prefixes("age", [0, 18, 65, 120])
    prefixes of age
    """
    return Products((WorkloadProduct((PrefixFactor(bins(column, edges)),)),))


def ranges(column: str, edges: Sequence[float]) -> Products:
    """Return the counts between any two of the edges.

    Args:
        column: as for `prefixes`.
        edges: as for `prefixes`, and at most 270 of them: n bins have n (n + 1)/2 ranges.

    Raises:
        InvalidOption: edges that do not rise, or too many.

    >>> ranges("age", [0, 18, 65, 120]) * prefixes("income", range(0, 100_000, 10_000))
    ranges of age * prefixes of income
    """
    found = RangeFactor(bins(column, edges))
    many = len(found.bins.edges) - 1
    if many * found.answers((many,)) > MOST_ENTRIES:
        rule = f"at most {MOST_ENTRIES:,} entries: ranges times bins"
        raise _refused("too many ranges", rule, f"{many:,} bins", "fewer edges")
    return Products((WorkloadProduct((found,)),))


def conditions(texts: Sequence[str]) -> Products:
    """Return the counts of the rows that meet each of some conditions.

    Args:
        texts: conditions as SQL text; they may overlap, and a row for which one is NULL does not meet it.

    Raises:
        InvalidOption: not a list of different texts.

    >>> conditions(["age < 18", "income > 50000 AND age >= 18"])
    age < 18; income > 50000 AND age >= 18
    """
    usable = isinstance(texts, Iterable) and not isinstance(texts, str | bytes)
    given = tuple(texts) if usable else ()
    if not given or not all(isinstance(text, str) and text.strip() for text in given):
        step = 'conditions(["age < 18", "income > 50000"])'
        raise _refused("no conditions", "a list of SQL conditions, at least one", repr(texts)[:80], step)
    return Products(tuple(WorkloadProduct((ConditionFactor(Truth(text)),)) for text in given))


def matrix(W: Any, over: str | Sequence[str]) -> Products:
    """Return the counts that the rows of a matrix add up.

    Args:
        W: float64[answers, cells], finite; what each answer adds up, or takes off, of each cell.
        over: the columns whose listed values the cells are by, the first one slowest; their keys are named where the
            workload is released.

    Raises:
        InvalidOption: not a matrix of finite numbers with something in it, too large, or columns that are none.

    >>> matrix([[1, -1], [1, 1]], over="sex")
    2 x 2 matrix over sex
    """
    columns = (over,) if isinstance(over, str) else tuple(over) if isinstance(over, Iterable) else ()
    if not columns or not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise _refused("over= names no columns", "at least one column, each once", repr(over)[:80], 'over="age"')
    entries = _entries(W)
    if not 1 <= entries.shape[1] <= MOST_COLUMNS or entries.size > MOST_ENTRIES:
        rule = f"at most {MOST_COLUMNS:,} cells and {MOST_ENTRIES:,} entries"
        raise _refused(
            "a matrix that is too large", rule, f"{entries.shape}", "give the factors of a product one by one"
        )
    return Products((WorkloadProduct((MatrixFactor(columns, tuple(map(tuple, entries.tolist()))),)),))


def _entries(W: Any) -> Any:
    """Return a matrix as float64; refuse what is none, and what cannot be answered."""
    try:
        entries = np.asarray(W, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        entries = np.zeros(0)
    if entries.ndim != 2 or not entries.size:
        problem = "another shape or type"
    elif not np.isfinite(entries).all():
        row, column = np.argwhere(~np.isfinite(entries))[0].tolist()
        problem = f"{entries[row, column]} in row {row}, column {column}, counted from 0"
    elif not (largest := abs(entries).max(axis=1)).all():
        problem = f"only zeros in row {int(largest.argmin())}, counted from 0"
    elif largest.max() > MOST_APART * largest.min():
        problem = f"largest entries from {largest.min():g} to {largest.max():g}"
    else:
        return entries
    rule = (
        f"two dimensions, finite, no row of zeros, largest entries of rows within {MOST_APART:,.0f} times of each other"
    )
    raise _refused("the matrix cannot be answered", rule, problem, "matrix([[1, 1, 0], [0, 1, 1]], over='age')")


def _products(workload: object) -> tuple[WorkloadProduct, ...] | None:
    """Return the products of any workload, None of what is none."""
    if isinstance(workload, Products):
        return workload.products
    if isinstance(workload, Marginals):
        pairs = zip(workload.tables, workload.weights, strict=True)
        return tuple(WorkloadProduct(tuple(map(ListedFactor, table)), weight) for table, weight in pairs)
    return None


def _crossed(first: tuple[WorkloadProduct, ...], second: tuple[WorkloadProduct, ...]) -> tuple[WorkloadProduct, ...]:
    """Return all Kronecker products of one of each."""
    if len(first) * len(second) > MOST_PRODUCTS:
        got = f"{len(first) * len(second):,}"
        raise _refused("too large", f"at most {MOST_PRODUCTS:,} products a workload", got, "fewer tables")
    return tuple(
        WorkloadProduct(one.factors + other.factors, one.weight * other.weight) for one in first for other in second
    )


def _refused(what: str, rule: str, got: str, next_step: str) -> InvalidOption:
    """Return the refusal of a workload."""
    return InvalidOption(f"the workload cannot be asked: {what}", rule=rule, got=got, next_step=next_step)


__all__ = ["Axis", "Bins", "Products", "Truth", "WorkloadProduct", "conditions", "matrix", "prefixes", "ranges"]
