"""Counts by several sets of columns at once: which values of each column are listed, and which sets are told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.query.keys import Keys


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """Sets of columns that are counted by, over the same rows: those whose value is listed in every column.

    Attributes:
        lists: the listed values of each grouping column of a question, in its order, one column each.
        sets: the places of the columns of each set, in rising order; () is the total.
    """

    lists: tuple[Keys, ...]
    sets: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of listed values of each column."""
        return tuple(map(len, self.lists))

    def shape(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the counts by a set."""
        return tuple(self.sizes[place] for place in places)

    def strides(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Return what one step along each column of a set adds to a cell's place in the counts."""
        shape = self.shape(places)
        return tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
