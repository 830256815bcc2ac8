"""Numbers that are computed of released ones, of a group and of its neighbours: COUNT(*) - LAG(COUNT(*)) OVER ..."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.query.key_order import OrderKey, partitions, ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST_CELLS: Final = 6
"""The most released numbers that one number is computed of."""

_LEAST: Final = 2.0**-900
"""Where a number is divided by what is above zero: nearer to it than the grid of any sum, as if it were the limit."""
_MOST: Final = 2.0**600
_UNKNOWN: Final = 2.0**700
"""What a divisor may be of which nothing is known: a number that is divided by it is told as zero."""


class ReleasedNumbers(Protocol):
    """The numbers of one column of an answer, float64[groups]."""

    @property
    def value(self) -> Floats:
        """What is told."""

    @property
    def lower(self) -> Floats:
        """The lower ends of the intervals."""

    @property
    def upper(self) -> Floats:
        """The upper ends of the intervals."""

    @property
    def estimate(self) -> Floats:
        """Estimates that are nearly unbiased."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Which group a number is of, as each group sees it: one before or after it, or the first or the last.

    Attributes:
        order: the keys of the order, which tell every group of a partition from the others.
        over: the grouping columns in which the groups of one partition are alike.
        back: how many groups before it; after it where negative. None for the first or the last.
        last: whether it is the last, where `back` is None.
        default: the number where there is no such group, or None for NULL.
    """

    order: tuple[OrderKey, ...]
    over: tuple[str, ...] = ()
    back: int | None = 1
    last: bool = False
    default: float | None = None

    def places(self, keys: pa.Table) -> Ints:
        """Return the place of that group for every group, int64[groups]; -1 where there is none.

        >>> import pyarrow as pa
        >>> Neighbour((OrderKey("month"),)).places(pa.table({"month": [3, 1, 2]})).tolist()
        [2, -1, 1]
        """
        groups = len(keys)

        def column(name: str) -> pa.Array:
            return keys.column(name).combine_chunks()

        part = partitions(column, self.over, groups)
        order = np.lexsort((ranks(column, self.order, groups), part))
        at = np.empty(groups, np.int64)
        at[order] = np.arange(groups)
        first = np.searchsorted(part[order], part)
        last = np.searchsorted(part[order], part, side="right") - 1
        if self.back is None:
            return np.asarray(order[last if self.last else first], np.int64)
        wanted = at - self.back
        found = order[np.clip(wanted, 0, groups - 1)]
        return np.where((first <= wanted) & (wanted <= last), found, -1)

    def told(self, column: str) -> str:
        """Return the number of that group in words, by the name of its column."""
        order = ", ".join(map(str, self.order))
        within = f"PARTITION BY {', '.join(self.over)} ORDER BY {order}" if self.over else f"ORDER BY {order}"
        moves = [] if self.back is None else [f"{abs(self.back)}"]
        moves += [] if self.default is None else [f"{self.default:g}"]
        word = "LAST_VALUE" if self.last else "FIRST_VALUE"
        word = word if self.back is None else "LEAD" if self.back < 0 else "LAG"
        return f"{word}({', '.join([column, *moves])}) OVER ({within})"

    def renamed(self, name: Callable[[str], str]) -> Neighbour:
        """Return the same where grouping columns have other names."""
        order = tuple(replace(key, column=name(key.column)) for key in self.order)
        return replace(self, order=order, over=tuple(sorted(map(name, self.over))))


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of numbers times products of cells, in which no product has a cell twice.

    Attributes:
        parts: the cells of each product, by their places, with its number; none of these is zero.
    """

    parts: tuple[tuple[tuple[int, ...], float], ...] = ()

    @classmethod
    def number(cls, number: float) -> Polynomial:
        """Return a constant."""
        return cls.of({(): number})

    @classmethod
    def of(cls, parts: Mapping[tuple[int, ...], float]) -> Polynomial:
        """Return a sum, without what is zero."""
        return cls(tuple(sorted((cells, times) for cells, times in parts.items() if abs(times) > 0)))

    @property
    def constant(self) -> float | None:
        """The number that it is, or None."""
        match self.parts:
            case ():
                return 0.0
            case (((), number),):
                return number
        return None

    @property
    def cells(self) -> frozenset[int]:
        """The places of the cells that it has."""
        return frozenset(cell for cells, _ in self.parts for cell in cells)

    def told(self, names: tuple[str, ...]) -> str:
        """Return the sum in words, by the names of cells.

        >>> Polynomial.of({(0,): 1.0, (1,): -2.5}).told(("n", "m"))
        'n - 2.5 * m'
        """
        words = ""
        for cells, times in self.parts:
            size = f"{abs(times):g}"
            part = " * ".join([*([size] if not cells or size != "1" else []), *(names[cell] for cell in cells)])
            words += (" - " if times < 0 else " + ") + part
        return f"-{words[3:]}" if words.startswith(" - ") else words[3:]

    def plus(self, other: Polynomial) -> Polynomial:
        """Return the sum of two."""
        found = dict(self.parts)
        for cells, times in other.parts:
            found[cells] = found.get(cells, 0.0) + times
        return Polynomial.of(found)

    def times(self, other: Polynomial) -> Polynomial | None:
        """Return the product of two; None where a cell would be multiplied by itself."""
        if self.cells & other.cells:
            return None
        pairs = product(self.parts, other.parts)
        return Polynomial.of({tuple(sorted(one + two)): a * b for (one, a), (two, b) in pairs})

    def placed(self, places: Sequence[int]) -> Polynomial | None:
        """Return the sum with other places of its cells; None where a cell would be multiplied by itself."""
        found = Polynomial()
        for cells, times in self.parts:
            moved = tuple(sorted(places[cell] for cell in cells))
            if len(set(moved)) < len(moved):
                return None
            found = found.plus(Polynomial.of({moved: times}))
        return found

    def at(self, cells: Floats) -> Floats:
        """Return the sum at numbers float64[cells, n], float64[n]."""
        found = np.zeros(cells.shape[1])
        for places, times in self.parts:
            found += times * cells[list(places)].prod(axis=0)
        return found


@dataclass(frozen=True, slots=True)
class ComputedNumber:
    """A number of every group, computed of released numbers: one sum of them over another.

    Guarantee: where the intervals of all numbers that it is computed of hold their truths, its interval holds what is
        computed of these. So a miss is at most as likely as the misses of all of them together.
    Proof: docs/proofs/query.comparison.md: in each number by itself, the others fixed, it is a linear fraction, which
        rises or falls all the way where what it is divided by has one sign; so it is least and greatest at corners.
    Assumes: the numbers were released; which of them are taken follows from keys and the text.
    Rounds: to nearest.

    Attributes:
        name: the name of the column.
        cells: the answer columns it is computed of, with the group that each is of; None for the group itself.
        above, below: the two sums.
        positive: for each cell, whether its truth is never below zero, which narrows what is divided by it.
        otherwise: the number where there is none, or None for NULL.
    """

    name: str
    cells: tuple[tuple[str, Neighbour | None], ...]
    above: Polynomial
    below: Polynomial
    positive: tuple[bool, ...] = ()
    otherwise: float | None = None

    def __str__(self) -> str:
        names = tuple(name if where is None else where.told(name) for name, where in self.cells)
        above = self.above.told(names)
        if self.below.constant is not None:
            return above
        return f"({above}) / ({self.below.told(names)})"

    def renamed(self, name: Callable[[str], str]) -> ComputedNumber:
        """Return the same where columns of the answer have other names."""
        cells = tuple((name(one), None if where is None else where.renamed(name)) for one, where in self.cells)
        return replace(self, name=name(self.name), cells=cells)

    @property
    def joined(self) -> ComputedNumber:
        """The same with cells that are one number counted once; as it is where they are multiplied, or all cancel."""
        kept = list(dict.fromkeys(self.cells))
        above, below = (terms.placed([kept.index(cell) for cell in self.cells]) for terms in (self.above, self.below))
        if above is None or below is None or not below.parts or len(above.cells | below.cells) < len(kept):
            return self
        positive = tuple(self.positive[self.cells.index(cell)] for cell in kept)
        return replace(self, cells=tuple(kept), above=above, below=below, positive=positive)

    def told(
        self, columns: Mapping[str, ReleasedNumbers], keys: pa.Table | None
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return values, lower and upper ends, and estimates, float64[groups]; NaN is NULL."""
        taken = [self._taken(columns[name], where, keys) for name, where in self.cells]
        value, lower, upper, estimate = (np.array([one[part] for one in taken]) for part in range(4))
        none = np.isnan(lower).any(axis=0) | self._divided_by_zero(lower, upper)
        if self.below.cells:
            lower, upper = self._cut(lower, upper)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            low, high = self._ends(lower, upper)
            found = (np.clip(self._at(value), low, high), low, high, np.clip(self._at(estimate), low, high))
        filled = np.nan if self.otherwise is None else self.otherwise
        value, low, high, estimate = (np.where(none, filled, one) for one in found)
        return value, low, high, estimate

    def _divided_by_zero(self, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
        """Return for which groups the divisor is zero for sure, as that of a default is: no number is told there."""
        zero = np.ones(lower.shape[1], np.bool_)
        for corner in self._corners:
            zero &= self.below.at(np.where(corner, upper, lower)) == 0
        return zero

    def _cut(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return ends without numbers below zero where there are none, and without zero where it is divided by them.

        An interval that lies below that missed its truth: of a divisor nothing is known then but that it is above zero.
        """
        divides = np.array([cell in self.below.cells for cell in range(len(self.cells))])[:, None]
        positive, least = np.array(self.positive)[:, None], np.where(divides, _LEAST, 0.0)
        upper = np.where(positive & divides & (upper <= 0), _UNKNOWN, upper)
        lower, upper = (np.where(positive, np.maximum(end, least), end) for end in (lower, upper))
        return lower, upper

    @property
    def _corners(self) -> list[NDArray[np.bool_]]:
        """Which end each cell takes, bool[cells, 1] for each corner."""
        return [np.array(corner)[:, None] for corner in product((False, True), repeat=len(self.cells))]

    def _taken(self, cells: ReleasedNumbers, where: Neighbour | None, keys: pa.Table | None) -> tuple[Floats, ...]:
        """Return the numbers of a column that each group takes: values, ends and estimates."""
        numbers = cells.value, cells.lower, cells.upper, cells.estimate
        if where is None:
            return numbers
        places = np.array([-1]) if keys is None else where.places(keys)
        default = np.nan if where.default is None else where.default
        return tuple(np.where(places < 0, default, one[places]) for one in numbers)

    def _at(self, cells: Floats) -> Floats:
        """Return the number at numbers float64[cells, groups]; NaN where it is divided by zero."""
        below = self.below.at(cells)
        found = self.above.at(cells) / below
        return np.asarray(np.where(np.isfinite(found), found, np.nan))

    def _ends(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the least and the greatest number between ends, float64[groups] twice."""
        low, high = np.full(lower.shape[1], np.inf), np.full(lower.shape[1], -np.inf)
        corners = self._corners
        falls, rises = (np.zeros(lower.shape[1], np.bool_) for _ in range(2))
        for corner in corners:
            below = self.below.at(np.where(corner, upper, lower))
            falls |= ~(below >= 0)
            rises |= ~(below <= 0)
        for corner in corners:
            at = np.where(corner, upper, lower)
            above, below = self.above.at(at), self.below.at(at)
            side = np.where(falls, -above, above)  # of which sign it is without end, where it is divided by nothing
            least, most = np.where(side > 0, np.inf, -np.inf), np.where(side < 0, -np.inf, np.inf)
            known = np.isfinite(below) & ~np.isnan(above)
            low = np.minimum(low, np.where(known & (below != 0), above / below, np.where(known, least, -np.inf)))
            high = np.maximum(high, np.where(known & (below != 0), above / below, np.where(known, most, np.inf)))
        low, high = (_beyond(np.where(np.abs(end) < 1 / _MOST, 0.0, end)) for end in (low, high))
        return np.where(falls != rises, low, -np.inf), np.where(falls != rises, high, np.inf)


def _beyond(ends: Floats) -> Floats:
    """Return ends, infinite where they are those of a division by next to nothing."""
    return np.where(np.abs(ends) > _MOST, np.sign(ends) * np.inf, ends)
