"""Marginal tables: counts by every combination of the values of some columns, for several sets of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TABLES: Final = 100_000
"""The most tables of one workload."""

WEIGHTS: Final = (1e-6, 1e6)
"""The least and the largest weight of a table."""


@dataclass(frozen=True, slots=True, repr=False)
class Marginals:
    """A workload of marginal tables.

    Attributes:
        tables: the columns of each table, in the order in which it is shown; () is the total.
        weights: how much an error in each table counts: a table of weight 2 is wanted twice as precisely.
    """

    tables: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.tables:
            raise InvalidOption(
                "the workload is empty",
                rule="a workload has at least one table",
                got="no table",
                next_step='farthing.workloads.marginals(["sex", "age"], ways=2)',
            )
        if len(self.tables) > MOST_TABLES:
            raise _too_many(len(self.tables))
        _refuse_repeated(self.tables)
        for weight in self.weights:
            check_weight(weight)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all tables, each once, in the order in which they were first named."""
        return tuple(dict.fromkeys(column for table in self.tables for column in table))

    def __add__(self, other: object) -> Marginals:
        """Return the union of two workloads.

        Raises:
            InvalidOption: a table is in both.
        """
        if not isinstance(other, Marginals):
            return NotImplemented
        return Marginals(self.tables + other.tables, self.weights + other.weights)

    def __mul__(self, other: object) -> Marginals:
        """Return the Kronecker product: each table by each table of the other; weights multiply.

        Raises:
            InvalidOption: a column is in both, or a table results twice.

        >>> marginals(["sex"], ways=1) * marginals(["age", "region"], ways=1)
        marginals (sex, age), (sex, region)
        """
        if not isinstance(other, Marginals):
            return NotImplemented
        if len(self.tables) * len(other.tables) > MOST_TABLES:
            raise _too_many(len(self.tables) * len(other.tables))
        tables = tuple(one + two for one in self.tables for two in other.tables)
        return Marginals(tables, tuple(one * two for one in self.weights for two in other.weights))

    def __rmul__(self, weight: object) -> Marginals:
        """Return the same tables, their errors counting `weight` times as much.

        Raises:
            InvalidOption: the weight is not a number from 1e-6 to 1e6.
        """
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            return NotImplemented
        check_weight(weight)
        return replace(self, weights=tuple(float(weight) * one for one in self.weights))

    def __repr__(self) -> str:
        pairs = zip(self.weights, self.tables, strict=True)
        parts = []
        for weight, same in groupby(pairs, key=lambda pair: pair[0]):
            names = [f"({', '.join(table)})" for _, table in same]
            more = f" and {len(names) - 3:,} more" if len(names) > 4 else ""
            times = "" if math.isclose(weight, 1) else f"{weight:g} x "
            parts.append(f"{times}marginals {', '.join(names[:3] if more else names)}{more}")
        return "; ".join(parts)


def marginals(columns: Sequence[str], ways: int = 2, *, up_to: bool = False) -> Marginals:
    """Return all tables over `ways` of the columns.

    Args:
        columns: names of columns; their values are listed where the workload is released.
        ways: how many columns each table has, from 0 (the total) to all of them.
        up_to: all tables over at most so many columns, too, the total among them.

    Raises:
        InvalidOption: no column, one named twice, ways out of range, or more than 100,000 tables.

    >>> marginals(["sex", "age", "region"], ways=2)
    marginals (sex, age), (sex, region), (age, region)
    >>> len(marginals(["sex", "age", "region"], ways=2, up_to=True).tables)
    7
    """
    names = _names(columns)
    if isinstance(ways, bool) or not isinstance(ways, int) or not 0 <= ways <= len(names):
        raise InvalidOption(
            "ways is out of range",
            rule="0 <= ways <= the number of columns",
            got=f"ways={ways!r} of {len(names)} columns",
            next_step="ways=2 for all two-way tables",
        )
    sizes = range(ways + 1) if up_to else (ways,)
    count = sum(math.comb(len(names), size) for size in sizes)
    if count > MOST_TABLES:
        raise _too_many(count)
    tables = tuple(table for size in sizes for table in combinations(names, size))
    return Marginals(tables, (1.0,) * len(tables))


def _names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; refuse what is not a list of different names."""
    usable = isinstance(columns, Iterable) and not isinstance(columns, str | bytes)
    names = tuple(columns) if usable else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidOption(
            "the columns of a workload are not a list of different names",
            rule="at least one column, each named once",
            got=repr(columns)[:80],
            next_step='marginals(["sex", "age", "region"], ways=2)',
        )
    return names


def _refuse_repeated(tables: tuple[tuple[str, ...], ...]) -> None:
    """Refuse a table that is listed twice, in whatever order of its columns, or names a column twice."""
    seen: set[frozenset[str]] = set()
    for table in tables:
        columns = frozenset(table)
        if len(columns) < len(table) or columns in seen:
            raise InvalidOption(
                "a table is in the workload twice" if columns in seen else "a table names a column twice",
                rule="each table once, whatever the order of its columns",
                got=f"({', '.join(table)})",
                next_step="leave it out of one of the parts: a weight of 2 makes its errors count twice",
            )
        seen.add(columns)


def _too_many(count: int) -> InvalidOption:
    """Return the refusal of too many tables."""
    return InvalidOption(
        "too many tables",
        rule=f"at most {MOST_TABLES:,} tables a workload",
        got=f"{count:,}",
        next_step="fewer ways or fewer columns",
    )


def check_weight(weight: float) -> None:
    """Refuse a weight that no table can have."""
    if not WEIGHTS[0] <= weight <= WEIGHTS[1]:
        raise InvalidOption(
            "a weight is out of range",
            rule=f"from {WEIGHTS[0]:g} to {WEIGHTS[1]:g}",
            got=weight,
            next_step="2 * marginals(...) makes its errors count twice",
        )
