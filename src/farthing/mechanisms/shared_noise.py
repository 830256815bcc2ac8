"""Noise that all residuals of a release share: random numbers of made-up rows, added to every table alike.

A row is in one cell of every table. Noise that is drawn for each table by itself hides it in each of them again, and
its member pays for each. Rows that are made up hide a row like them in all tables at once, for the price of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.residuals import lengths_of
from farthing.noise.gaussian import rounded_gaussian

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

FINE: Final = 1 << 20
"""Numbers of made-up rows lie on a grid of one part in so many of a row."""

_SLACK: Final = 1 + 2.0**-10
"""More than grids, roundings and looks of grains that are not quite in proportion can change a variance by."""

_PAIR: Final = 2  # columns
_BLOCK: Final = 1 << 19  # numbers that are held at once


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Made-up rows, and how random their numbers are.

    Attributes:
        patterns: by column float64[rows, size], how a row is shared out over the values: of sum 1, of any sign.
        scales: float64[rows], the variance of the number of each row, times the grains of the total's residual.

    >>> noise = SharedNoise((np.array([[1.0, 0, 0], [0, 1.5, -0.5]]),), np.array([4.0, 8.0]))
    >>> noise.spread((0,)).round(1).tolist()
    [4.0, 18.0, 2.0]
    """

    patterns: tuple[Float64, ...]
    scales: Float64

    def spread(self, table: Subset) -> Float64:
        """Return the variance of each cell of a table, times the grains of the total's residual.

        Rounds: up, by 2^-10.

        Args:
            table: places of columns, in rising order.
        """
        return summed(self.scales * _SLACK, [self.patterns[place] ** 2 for place in table])

    def signed(self, table: Subset) -> float:
        """Return the largest variance of a sum of a table's cells with signs, times the grains of the total's residual.

        Guarantee: no signs have a larger one.
        Proof: docs/proofs/mechanisms.residuals.md, section 6.
        Assumes: nothing.
        Rounds: up, by 2^-10.

        Args:
            table: places of columns, in rising order.
        """
        lengths = np.prod([abs(self.patterns[place]).sum(axis=1) for place in table], axis=0)
        along = np.prod([self.patterns[place] @ self.patterns[place].T for place in table], axis=0)
        roots = np.sqrt(self.scales)
        cells = math.prod(self.patterns[place].shape[1] for place in table)
        widest = float(np.linalg.eigvalsh(roots[:, None] * along * roots)[-1])
        return float(min(float(self.scales @ lengths**2), cells * widest) * _SLACK)

    def drawn(self, grains: int, bits: BitSource | None = None) -> Float64:
        """Return float64[rows], numbers of rows for one measurement of all residuals.

        Args:
            grains: those of the total's residual in this measurement.
            bits: where random bits come from; None is the system's stream cipher.
        """
        if not self.scales.size:
            return np.zeros(0)
        return rounded_gaussian(np.sqrt(self.scales / grains) * FINE, bits=bits) / FINE

    def along(self, weights: Mapping[int, Int64]) -> dict[int, Float64]:
        """Return by column float64[rows, size - 1], the contrasts of length 1 of each row.

        Those of a residual are their products: `summed` with numbers of rows, they are by how much these move it.

        Args:
            weights: by column, the weights of its values.
        """
        found = {}
        for place, each in weights.items():
            lengths = lengths_of((len(each),), (each,))
            shares, up_to = self.patterns[place], np.cumsum(each)[:-1]
            found[place] = (np.cumsum(shares, axis=1)[:, :-1] * each[1:] - up_to * shares[:, 1:]) / lengths
        return found

    def same(self, other: SharedNoise | None) -> bool:
        """Return whether another is the same, to the last bit."""
        return (
            other is not None
            and np.array_equal(self.scales, other.scales)
            and all(map(np.array_equal, self.patterns, other.patterns))
        )


def patterns_of(rows: Int64, groups: NDArray[np.bool_]) -> Float64:
    """Return float64[rows, size], how rows are shared out over the values of a column: all of a row in one value, or
    evenly over a group of them.

    Args:
        rows: int64[rows], the value of each; -1 - g for all values of group g alike.
        groups: bool[groups, size], which values each group has.

    >>> patterns_of(np.array([0, -1]), np.array([[False, True, True]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]
    """
    found, single = np.zeros((len(rows), groups.shape[1])), rows >= 0
    found[np.flatnonzero(single), rows[single]] = 1
    found[~single] = (groups / np.maximum(groups.sum(axis=1, keepdims=True), 1))[-1 - rows[~single]]
    return found


def summed(numbers: Float64, along: Sequence[Float64]) -> Float64:
    """Return the sum over rows of a number times the product of a vector by column, as a table.

    >>> summed(np.array([1.0, 2.0]), [np.array([[1.0, 0], [0, 1]]), np.array([[1.0], [1]])]).tolist()
    [[1.0], [2.0]]
    """
    if not along:
        return np.asarray(numbers.sum())
    left = crossed(numbers, along[:-1])
    return (left.T @ along[-1]).reshape([each.shape[1] for each in along])


def pressed(table: Float64, along: Sequence[Float64]) -> Float64:
    """Return float64[rows], for each row the sum over a table of its entries times the row's products: the transpose of
    `summed`. A table has a column or more.
    """
    each = table.reshape(-1, table.shape[-1]) @ along[-1].T
    return np.asarray((each.T * crossed(np.ones(len(along[0])), along[:-1])).sum(axis=1))


def crossed(numbers: Float64, along: Sequence[Float64]) -> Float64:
    """Return float64[rows, cells], a number for each row times the products of its vectors."""
    found = numbers[:, None]
    for each in along:
        found = (found[:, :, None] * each[:, None, :]).reshape(len(found), -1)
    return found


@dataclass(frozen=True, eq=False)
class Information:
    """What residuals with noise of their own tell of rows: u' C^-1 v for two of them, with C the covariance of all.

    Attributes:
        noises: by subset, the variance of its residual's noise; infinite where it was not measured.
        weights: by column, the weights of its values.
    """

    noises: Mapping[Subset, float]
    weights: Mapping[int, Int64]

    def of(self, rows: Int64) -> Float64:
        """Return float64[rows], what each row tells of itself: what its member pays where no noise is shared.

        Args:
            rows: int64[rows, columns], places of values.
        """
        along = {place: 1 / each[rows[:, place]] - 1 / each.sum() for place, each in self.weights.items()}
        return self._added(along)

    def between(self, one: Sequence[Float64], other: Sequence[Float64]) -> Float64:
        """Return float64[rows, others] of patterns, by column float64[rows, size]."""
        along = {}
        for place, weights in self.weights.items():
            along[place] = (one[place] / weights) @ other[place].T - 1 / weights.sum()
        return self._added(along)

    def slopes(self, along: Mapping[int, Any]) -> tuple[Any, dict[int, Any]]:
        """Return the sum over subsets of the product of the columns' factors, over the noise; and by column its slope.

        Args:
            along: by column, factors of one shape.
        """
        stack, rising = self._rising(along)
        found = self._total(along, stack, rising)
        slopes = dict(zip(self.weights, rising, strict=True))
        for subset, noise in self._higher.items():
            for place in subset:
                slopes[place] += math.prod(along[other] for other in subset if other != place) / noise
        return found, slopes

    def told(self, rows: Int64, other: Sequence[Float64]) -> Float64:
        """Return float64[rows, others] of rows, as places of values, and patterns."""
        along = {}
        for place, weights in self.weights.items():
            along[place] = (other[place] / weights).T[rows[:, place]] - 1 / weights.sum()
        return self._added(along)

    def left(self, rows: Int64, noise: SharedNoise, grains: float) -> Float64:
        """Return float64[rows], what each row's member pays where noise is shared, in mu squared.

        Guarantee: u' (C + Z V Z')^-1 u, u the row's cells, Z the made-up rows, V the variances of their numbers.
        Proof: docs/proofs/mechanisms.residuals.md, section 6.
        Assumes: noise that is not rounded to grids.
        Rounds: to the nearest.

        Args:
            rows: int64[rows, columns], places of values.
            noise: the made-up rows.
            grains: those of the total's residual.
        """
        within = np.linalg.inv(self.between(noise.patterns, noise.patterns) + np.diag(grains / noise.scales))
        found = self.of(rows)
        for part in _parts(len(rows), len(noise.scales)):
            crossing = self.told(rows[part], noise.patterns)
            found[part] -= ((crossing @ within) * crossing).sum(axis=1)
        return np.maximum(found, 0.0)

    @cached_property
    def _lower(self) -> tuple[float, Float64, Float64]:
        """The factors of a sum over subsets of no column, by column of one, and by columns of two."""
        at = {place: number for number, place in enumerate(self.weights)}
        none, one, two = 0.0, np.zeros(len(at)), np.zeros((len(at), len(at)))
        for subset, noise in self.noises.items():
            if not subset:
                none = 1 / noise
            elif len(subset) == 1:
                one[at[subset[0]]] = 1 / noise
            elif len(subset) == _PAIR:
                first, second = (at[place] for place in subset)
                two[first, second] = two[second, first] = 1 / noise
        return none, one, two

    @cached_property
    def _higher(self) -> dict[Subset, float]:
        """The noise of the other subsets that were measured."""
        return {s: noise for s, noise in self.noises.items() if len(s) > _PAIR and math.isfinite(noise)}

    def _rising(self, along: Mapping[int, Any]) -> tuple[Any, Any]:
        """Return all factors, and the slopes of the sum over subsets of two columns at most, by column."""
        stack = np.stack([along[place] for place in self.weights])
        _, one, two = (np.asarray(each, stack.dtype) for each in self._lower)
        return stack, np.tensordot(two, stack, 1) + one.reshape([-1] + [1] * (stack.ndim - 1))

    def _total(self, along: Mapping[int, Any], stack: Any, rising: Any) -> Any:
        """Return the sum over subsets of the product of their columns' factors, over the noise."""
        none, one, _ = (np.asarray(each, stack.dtype) for each in self._lower)
        found = none + (np.einsum("i...,i...->...", stack, rising) + np.tensordot(one, stack, 1)) / 2
        for subset, noise in self._higher.items():
            found += math.prod(along[place] for place in subset) / noise
        return found

    def _added(self, along: Mapping[int, Float64]) -> Float64:
        """Return the sum over subsets of the product over their columns, over the variance of the noise."""
        return np.asarray(self._total(along, *self._rising(along)))


def _parts(many: int, wide: int) -> Iterator[slice]:
    """Give parts of rows, of so many that all of them times a width fit."""
    each = max(1, _BLOCK // max(wide, 1))
    for start in range(0, many, each):
        yield slice(start, start + each)
