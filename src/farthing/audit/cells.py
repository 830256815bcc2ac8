"""Events to tell two samples apart: the outputs are cut into cells, and an event is a set of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidTarget

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 48
"""The most cells that numbers are cut into."""

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class OutputCells:
    """A partition of all outputs, fixed by a first part of the samples.

    Attributes:
        edges: sorted values; cell i holds what is above the edge before it, up to edge i. Each name is a cell.
        named: whether outputs are names, which have no order; one cell more holds names never seen.
    """

    edges: NDArray[Any]
    named: bool

    @classmethod
    def of(cls, *samples: NDArray[Any]) -> OutputCells:
        """Return cells of about equal weight; where few values occur, each is a cell."""
        pooled = np.concatenate(samples)
        if pooled.dtype.kind not in "fiub":
            return cls(np.unique(pooled), named=True)
        values = np.unique(pooled[~np.isnan(pooled)].astype(np.float64))
        if len(values) > MOST:
            places = np.linspace(0, 1, MOST + 1)[1:-1]
            values = np.unique(np.quantile(pooled[~np.isnan(pooled)], places))
        return cls(values, named=False)

    def __len__(self) -> int:
        return len(self.edges) + (1 if self.named else 2)

    def counts(self, sample: NDArray[Any]) -> Counts:
        """Return int64[cells], how many outputs fall in each; NaN has a cell of its own."""
        if self.named:
            place = np.minimum(np.searchsorted(self.edges, sample), len(self.edges) - 1)
            place = np.where(self.edges[place] == sample, place, len(self.edges))
        else:
            place = np.searchsorted(self.edges, sample, side="left")
            place = np.where(np.isnan(sample), len(self.edges) + 1, place)
        return np.bincount(place, minlength=len(self)).astype(np.int64)

    def events(self, without: Counts, present: Counts) -> Iterator[Mask]:
        """Yield candidate events: the cells above each edge, and the cells that most suggest the unit, by ratio."""
        ratio = (present + 0.5) / (without + 0.5)
        ranked = np.argsort(-ratio, kind="stable")
        orders = (ranked,) if self.named else (ranked, np.arange(len(self))[::-1], np.arange(len(self)))
        for order in orders:
            mask = np.zeros(len(self), dtype=bool)
            for place in order[:-1]:
                mask = mask.copy()
                mask[place] = True
                yield mask

    def words(self, mask: Mask) -> str:
        """Return an event in words.

        >>> cells = OutputCells.of(np.array([0.0, 1.0, 2.0]))
        >>> cells.words(np.array([False, False, True, True, False]))
        'output above 1'
        """
        if self.named:
            return "output in " + ", ".join(str(name) for name in self.edges[mask[:-1]][:4])
        inside = np.flatnonzero(mask[:-1])
        if inside.size and np.array_equal(inside, np.arange(inside[0], len(mask) - 1)) and inside[0] > 0:
            return f"output above {self.edges[inside[0] - 1]:.6g}"
        if inside.size and np.array_equal(inside, np.arange(inside.size)) and inside.size <= len(self.edges):
            return f"output at most {self.edges[inside[-1]]:.6g}"
        return f"output in {int(mask.sum())} of {len(self)} cells"


def sample_of(values: Any, name: str) -> NDArray[Any]:
    """Return outputs as a flat array: numbers, or names where they are anything else.

    Raises:
        InvalidTarget: fewer than four.
    """
    array = np.asarray(values)
    if array.ndim != 1 or len(array) < 4:
        raise InvalidTarget(
            f"the sample {name!r} is too small to audit",
            rule="a flat sequence of at least 4 outputs; half of them choose the event",
            got=f"shape {array.shape}",
            next_step="draw the mechanism more often on each of the two data sets",
        )
    return array if array.dtype.kind in "fiub" else np.asarray([str(value) for value in array])
