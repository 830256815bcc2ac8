"""A spanning tree of two-way tables: which pairs of columns are measured is chosen privately, one after the other.

First every column by itself; values that are too rare to be seen are merged. Then, edge by edge, the pair whose table
is furthest from what its columns alone would give, among pairs that close no circle. Last the tables of the chosen
pairs. No domain is held, however many cells it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.noisy_answers import chooser, deviation, noisy_answers, shared
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

SHARES: Final = (Fraction(2, 10), Fraction(1, 10), Fraction(7, 10))
"""What the columns by themselves, the choices, and the tables of the pairs get of a loss."""

RARE: Final = 3.0
"""Values are merged whose count is below so many standard deviations of its noise."""

_MOST: Final = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTree:
    """What was released of a tree: public.

    Attributes:
        ones: float64[values] of each column, the noisy counts of its values.
        kept: int64[values] of each column, the merged value that each value is in; what is too rare is in the last.
        edges: the pairs of columns, each with the lower place first, in the order in which they were chosen.
        pairs: float64[merged values, merged values] of each pair, the noisy counts.
    """

    ones: tuple[Float64, ...]
    kept: tuple[Int64, ...]
    edges: tuple[tuple[int, int], ...]
    pairs: tuple[Float64, ...]

    @property
    def total(self) -> float:
        """How many rows there are, at least 1: the mean over columns."""
        return max(1.0, float(np.mean([one.sum() for one in self.ones])))


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """Measure columns, choose a spanning tree of pairs, measure the pairs.

    Attributes:
        loss: what a release costs.
        reach: the most rows that one unit adds.

    Guarantee: a release costs at most `loss`, shared among columns, choices and pairs before anything is read.
    Proof: docs/proofs/mechanisms.spanning_tree.md; after [McKennaMS21].
    Assumes: add/remove one unit adds or removes at most `reach` rows; all tables are of the same rows.
    Rounds: noise up, epsilon of the choices down.

    >>> from farthing.privacy.loss import Gdp
    >>> both = np.array([[800, 0], [0, 900]])
    >>> found = SpanningTree(Gdp(4)).run({(0,): both.sum(axis=1), (1,): both.sum(axis=0), (0, 1): both}, 2)
    >>> found.edges, bool(found.pairs[0][0, 0] > found.pairs[0][0, 1])
    (((0, 1),), True)
    """

    loss: Booked
    reach: int = 1

    def run(
        self, tables: Mapping[tuple[int, ...], Int64] | Sealed, columns: int, *, bits: BitSource | None = None
    ) -> MeasuredTree:
        """Return what was measured.

        Args:
            tables: the counts by each column and each pair of columns, places in rising order, plain or sealed.
            columns: how many columns there are.
            bits: where random bits come from.
        """
        counts = opened(sealed(tables))
        columns_loss, choices_loss, pairs_loss = shared(self.loss, *SHARES)
        ones = tuple(self._noisy(counts[at,], shared(columns_loss, *[1] * columns)[0], bits) for at in range(columns))
        sd = self._deviation(shared(columns_loss, *[1] * columns)[0])
        kept = tuple(merged(one, RARE * sd) for one in ones)
        if columns == 1:
            return MeasuredTree(ones, kept, (), ())
        each = shared(choices_loss, *[1] * (columns - 1))[0]
        edges = self._chosen(counts, ones, kept, each, bits)
        price = shared(pairs_loss, *[1] * (columns - 1))[0]
        pairs = tuple(self._noisy(_merged_pair(counts[i, j], kept[i], kept[j]), price, bits) for i, j in edges)
        return MeasuredTree(ones, kept, edges, pairs)

    def _noisy(self, table: Int64, loss: Booked, bits: BitSource | None) -> Float64:
        """Return a table with noise: one row moves one cell by one."""
        held = np.clip(np.asarray(table, np.int64), 0, _MOST)
        return noisy_answers(held, loss, squares=self.reach**2, total=self.reach, bits=bits)

    def _deviation(self, loss: Booked) -> float:
        """Return the standard deviation of the noise on a cell."""
        return deviation(loss, squares=self.reach**2, total=self.reach)

    def _chosen(
        self,
        counts: Mapping[tuple[int, ...], Int64],
        ones: tuple[Float64, ...],
        kept: tuple[Int64, ...],
        loss: Booked,
        bits: BitSource | None,
    ) -> tuple[tuple[int, int], ...]:
        """Return the edges of a spanning tree, each a private choice among the pairs that close no circle."""
        sums = tuple(sums_of(one, places) for one, places in zip(ones, kept, strict=True))
        scores = {
            (i, j): _apart(_merged_pair(counts[i, j], kept[i], kept[j]), sums[i], sums[j])
            for i, j in combinations(range(len(ones)), 2)
        }
        part, choosing, edges = list(range(len(ones))), chooser(loss), []
        for _ in range(len(ones) - 1):
            open_pairs = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
            at = int(choosing.choose([scores[pair] for pair in open_pairs], self.reach, bits=bits))
            i, j = open_pairs[at]
            edges.append((i, j))
            part = [part[i] if one == part[j] else one for one in part]
        return tuple(edges)


def merged(one: Float64, least: float) -> Int64:
    """Return the merged value of each value: those with at least so many rows by themselves, the others in the last.

    >>> merged(np.array([50.0, 1.0, 90.0, -3.0]), 10.0).tolist()
    [0, 2, 1, 2]
    """
    seen = one >= least
    return np.where(seen, np.cumsum(seen) - 1, int(seen.sum())).astype(np.int64)


def sums_of(one: Float64, places: Int64) -> Float64:
    """Return the counts of merged values, >= 0."""
    return np.maximum(np.bincount(places, one, minlength=int(places.max()) + 1), 0.0)


def _merged_pair(table: Int64, first: Int64, second: Int64) -> Int64:
    """Return a pair's table over merged values."""
    found = np.zeros((int(first.max()) + 1, int(second.max()) + 1), np.int64)
    np.add.at(found, (first[:, None], second[None, :]), np.asarray(table, np.int64))
    return found


def _apart(table: Int64, first: Float64, second: Float64) -> int:
    """Return how many rows a pair's table is from that of independent columns, which is rounded: public numbers.

    One row moves it by at most one.
    """
    most = float(_MOST)
    alone = np.outer(first, second) / max(float(second.sum()), 1.0)
    independent = np.rint(np.minimum(alone, most)).astype(np.int64)
    return int(abs(np.clip(table, 0, _MOST) - independent).sum())
