"""SmallDB: the exponential mechanism over all small databases, by exact enumeration.

A database of a few rows answers many queries nearly as a large one does. All of a given size are options, and the one
whose scaled answers come closest is chosen. It is exact, and so it is for small domains: where there are too many
databases it is refused. No Markov chain stands in for the choice, since none is proven to mix in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.linear_queries import require_size, steps_of
from farthing.mechanisms.noisy_answers import chooser, deviation, shared
from farthing.mechanisms.projection import TOTAL_SHARE, HistogramEstimate, noisy_total
from farthing.mechanisms.scores import whole
from farthing.sealed import opened, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.linear_queries import LinearQueries
    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked
    from farthing.sealed import Sealed

    Int64 = NDArray[np.int64]

MOST_DATABASES: Final = 1 << 18
"""The most databases that are options."""

_BLOCK: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class SmallDatabase:
    """Choose the small database whose answers, scaled to the number of rows, have the smallest largest error.

    Attributes:
        loss: what a release costs.
        rows: how many rows a small database has, >= 1.
        reach: the most rows that one unit adds.

    Guarantee: a release costs at most `loss`: the total, and one choice.
    Proof: [BlumLR13]; docs/proofs/mechanisms.linear_queries.md, sections 2 and 5.
    Assumes: add/remove one unit adds or removes at most `reach` rows; queries do not depend on the data.
    Rounds: noise up, epsilon of the choice down.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Pure
    >>> found = SmallDatabase(Pure(1), rows=4).run(np.array([7500, 2500]), MatrixQueries([[1, 0]]))
    >>> (found.weights / found.total).tolist()
    [0.75, 0.25]
    """

    loss: Booked
    rows: int = 4
    reach: int = 1

    def __post_init__(self) -> None:
        whole(self.rows, "rows")

    def run(
        self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None
    ) -> HistogramEstimate:
        """Return the chosen database, scaled to the total.

        Args:
            counts: int64[cells], the histogram, plain or sealed.
            queries: what is asked.
            bits: where random bits come from.

        Raises:
            InvalidOption: more databases than can be counted off.
        """
        require_size("small databases", databases(queries.cells, self.rows), MOST_DATABASES)
        first, rest = shared(self.loss, 1, TOTAL_SHARE - 1)
        total = noisy_total(counts, first, self.reach, bits)
        truth = queries.exact(opened(sealed(counts)))
        options = _databases(queries.cells, self.rows)
        eye = queries_by_cell(queries)
        scores = np.empty(len(options), np.int64)
        for start in range(0, len(options), _BLOCK):
            part = options[start : start + _BLOCK]
            answers = steps_of(eye[part].sum(axis=1) * (total / self.rows), queries)
            scores[start : start + _BLOCK] = -abs(answers - truth).max(axis=1)
        most = max(queries.total(slice(at, at + 1)) for at in range(len(truth))) * self.reach
        chosen = options[int(chooser(rest).choose(scores, most, bits=bits))]
        weights = np.bincount(chosen, minlength=queries.cells) * (total / self.rows)
        return HistogramEstimate(weights.astype(np.float64), total)

    def error(self, queries: LinearQueries, rows: float) -> float:
        """Return a bound of the largest error of a query, in rows, expected over the noise, whatever the data are.

        It is what a sample of so few rows leaves, what the choice among all databases adds, and the total's noise.

        Args:
            queries: what is asked.
            rows: how many rows there are.

        Proof: docs/proofs/mechanisms.linear_queries.md, section 5.

        >>> from farthing.mechanisms.linear_queries import MatrixQueries
        >>> from farthing.privacy.loss import Pure
        >>> bool(SmallDatabase(Pure(1), rows=8).error(MatrixQueries([[1, 0, 0]]), 10_000) < 10_000)
        True
        """
        first, rest = shared(self.loss, 1, TOTAL_SHARE - 1)
        many = queries.groups[-1].stop
        heaviest = max(queries.total(slice(at, at + 1)) for at in range(many)) * queries.step
        sampled = rows * math.sqrt(2 * math.log(2 * many) / self.rows)
        chosen = 2 * self.reach * math.log(databases(queries.cells, self.rows)) / float(chooser(rest).epsilon)
        total = deviation(first, squares=self.reach**2, total=self.reach)
        return heaviest * (sampled + chosen + total) + queries.step


def queries_by_cell(queries: LinearQueries) -> NDArray[np.float64]:
    """Return float64[cells, queries], what a row in each cell answers."""
    return np.stack([queries.of(one) for one in np.eye(queries.cells)])


def databases(cells: int, rows: int) -> int:
    """Return how many databases of so many rows there are.

    >>> databases(4, 2)
    10
    """
    return math.comb(cells + rows - 1, rows)


def _databases(cells: int, rows: int) -> Int64:
    """Return int64[databases, rows], the cells of the rows of every database."""
    return np.array(list(combinations_with_replacement(range(cells), rows)), np.int64)
