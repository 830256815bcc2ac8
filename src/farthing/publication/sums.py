"""Numbers that add up: the nearest ones to what was released, by weighted least squares; then none below zero, whole.

Tables hang below one another as a forest: the rows of a table, summed up, are to be the rows of the table it adds up
to. All of this reads released numbers only, so it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One table of a forest.

    Attributes:
        value: float64[rows], as released.
        variance: float64[rows], > 0, up to a common factor.
        above: the name of the table that it adds up to, or "".
        at: int64[rows], the row there that each row is a part of.
    """

    value: Float64
    variance: Float64
    above: str
    at: Int64


def fitted(tables: Mapping[str, Member]) -> dict[str, Float64]:
    """Return the numbers that add up and are nearest to what was released, in units of each one's own error.

    The least-squares solution on a forest, in two passes [HayRMS10, section 4.2], for any variances.

    Args:
        tables: by name; each table's `above` is among them.

    >>> one = Member(np.array([90.0]), np.array([1.0]), "", np.zeros(1, np.int64))
    >>> two = Member(np.array([40.0, 44.0]), np.array([1.0, 1.0]), "all", np.zeros(2, np.int64))
    >>> found = fitted({"all": one, "parts": two})
    >>> found["all"].tolist(), found["parts"].tolist()
    ([88.0], [42.0, 46.0])
    """
    order = downward(tables)
    best: dict[str, Float64] = {}
    left: dict[str, Float64] = {}
    for name in reversed(order):
        table = tables[name]
        precision, weighted = 1 / table.variance, table.value / table.variance
        for part, child in _below(tables, name):
            rows = len(table.value)
            spread = np.bincount(child.at, left[part], rows)
            precision, weighted = precision + 1 / spread, weighted + np.bincount(child.at, best[part], rows) / spread
        best[name], left[name] = weighted / precision, 1 / precision
    for name in order:
        table = tables[name]
        if table.above:
            total = best[table.above]
            gap = total - np.bincount(table.at, best[name], len(total))
            best[name] = (
                best[name] + gap[table.at] * left[name] / np.bincount(table.at, left[name], len(total))[table.at]
            )
    return best


def nonnegative(tables: Mapping[str, Member], numbers: Mapping[str, Float64]) -> dict[str, Float64]:
    """Return numbers that add up as before, none of them below zero: from the top down, each part the nearest.

    >>> one = Member(np.array([9.0]), np.array([1.0]), "", np.zeros(1, np.int64))
    >>> two = Member(np.array([12.0, -3.0]), np.array([1.0, 1.0]), "all", np.zeros(2, np.int64))
    >>> nonnegative({"all": one, "parts": two}, {"all": one.value, "parts": two.value})["parts"].tolist()
    [9.0, 0.0]
    """
    found: dict[str, Float64] = {}
    for name in downward(tables):
        table = tables[name]
        if table.above:
            found[name] = _shared(numbers[name], table.variance, table.at, found[table.above])
        else:
            found[name] = np.maximum(numbers[name], 0.0)
    return found


def whole(tables: Mapping[str, Member], numbers: Mapping[str, Float64]) -> dict[str, Float64]:
    """Return whole numbers that add up, each less than one away: what is left over goes to the largest fractions.

    Args:
        tables: the forest.
        numbers: numbers that add up.

    >>> one = Member(np.array([3.0]), np.array([1.0]), "", np.zeros(1, np.int64))
    >>> two = Member(np.array([0.4, 1.3, 1.3]), np.ones(3), "all", np.zeros(3, np.int64))
    >>> whole({"all": one, "parts": two}, {"all": one.value, "parts": two.value})["parts"].tolist()
    [1.0, 1.0, 1.0]
    """
    found: dict[str, Float64] = {}
    for name in downward(tables):
        table = tables[name]
        if not table.above:
            found[name] = np.round(numbers[name])
            continue
        low = np.floor(numbers[name] + 1e-9)
        total = found[table.above]
        over = np.round(total - np.bincount(table.at, low, len(total)))
        order = np.lexsort((np.arange(len(low)), low - numbers[name], table.at))
        many = np.bincount(table.at, minlength=len(total))
        place = np.empty(len(low))
        place[order] = np.arange(len(low)) - (np.cumsum(many) - many)[table.at[order]]
        more, fewer = place < over[table.at], place >= (many + over)[table.at]
        found[name] = low + more - fewer + 0.0
    return found


def downward(tables: Mapping[str, Member]) -> list[str]:
    """Return the names of tables so that each comes after the one it adds up to."""
    order: list[str] = []
    while len(order) < len(tables):
        order += [name for name, table in tables.items()
                  if name not in order and (not table.above or table.above in order)]  # fmt: skip
    return order


def _below(tables: Mapping[str, Member], name: str) -> Iterator[tuple[str, Member]]:
    """Give the tables that add up to one."""
    yield from ((part, child) for part, child in tables.items() if child.above == name)


def _shared(value: Float64, weight: Float64, at: Int64, total: Float64) -> Float64:
    """Return the nearest numbers of at least zero with given sums: what is too much is taken from all by weight."""
    active = np.ones(len(value), dtype=bool)
    while True:
        held = np.bincount(at, weight * active, len(total))
        excess = np.bincount(at, value * active, len(total)) - total
        step = np.divide(excess, held, out=np.zeros(len(total)), where=held > 0)
        moved = np.where(active, value - step[at] * weight, 0.0)
        below = moved < 0
        if not below.any():
            return moved
        active &= ~below


def joined(keys: Sequence[tuple[object, ...]], parts: Sequence[tuple[object, ...]]) -> Int64 | None:
    """Return in which row of the keys each part is; None where one is in none, or a row has none.

    >>> joined([("a",), ("b",)], [("b",), ("a",), ("b",)]).tolist()
    [1, 0, 1]
    >>> joined([("a",)], [("c",)]) is None
    True
    """
    place = {key: row for row, key in enumerate(keys)}
    found = [place.get(part) for part in parts]
    rows = [row for row in found if row is not None]
    return np.array(rows, dtype=np.int64) if len(rows) == len(parts) and set(rows) == set(place.values()) else None
