"""Residuals of a table of counts, measured with exact Gaussian noise: one for each subset of its columns.

The residual of a subset is the part of its table that is mean-zero along each column. It is measured in *contrasts*,
whole numbers that are the sums of counts before a place along each column, less what that place would give as often:
with lengths sqrt(k (k + 1)) they are an orthogonal basis of the mean-zero vectors. So each is one integer answer with
noise of its own, and every table that is put together from the residuals agrees with every other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.gaussian import GRAIN, ROUNDING_VARIANCE, on_own_grid
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farthing.noise.bits import BitSource

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]

UP: Final = 1 + 2.0**-40
"""More than the roundings of a noise scale, about 20 of float64, can have taken off it."""

_LIMIT: Final = 1 << 61


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """What was released of one residual: public, free to keep, enough to refine.

    Attributes:
        grains: what a unit has paid for it, in 2^-56 of mu^2.
        mean: float64[sizes - 1], the weighted mean of all measurements, in contrasts of length 1.
    """

    grains: int
    mean: Float64

    @classmethod
    def nothing(cls, sizes: Sequence[int]) -> Residual:
        """Return the state before any measurement.

        >>> Residual.nothing((3, 2)).mean.shape
        (2, 1)
        """
        return cls(0, np.zeros([size - 1 for size in sizes]))


@dataclass(frozen=True, slots=True, eq=False)
class ResidualMeasurements:
    """Measure the residuals of one table of counts, each as often as wanted.

    Attributes:
        tables: the counts by each subset of columns, int64[sizes of the subset], all of the same bounded rows; they
            never leave this object.
        reach: the most rows that one unit adds to the table, a whole number >= 1.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: any sequence of measurements, chosen adaptively, is mu-GDP for mu^2 = the sum of their grains.
    Proof: [DongRS22, Cor. 3.3; SmithT22]; docs/proofs/mechanisms.residuals.md.
    Assumes: add/remove one unit adds or removes at most `reach` rows, in whatever cells; exact sampler.
    Rounds: noise scales up, so that each measurement costs no more than its grains; sums of grains are exact.

    >>> measuring = ResidualMeasurements({(0,): np.array([500, 20, 80])})
    >>> seen = measuring.measure((0,), Residual.nothing((3,)), 1 << 50)
    >>> seen.mean.shape, seen.grains == 1 << 50
    ((2,), True)
    """

    tables: Mapping[tuple[int, ...], Int64] | Sealed = field(repr=False)
    reach: int = 1
    bits: BitSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", sealed(self.tables))

    def measure(self, subset: tuple[int, ...], state: Residual, grains: int) -> Residual:
        """Return the state of a residual after one more measurement.

        Args:
            subset: the places of its columns, in rising order.
            state: what was measured of it before.
            grains: the cost of the new measurement, > 0.
        """
        table = opened(self.tables)[subset]
        lengths = lengths_of(table.shape)
        sigma = sigma_of(grains, table.shape, self.reach)
        released, exponent = on_own_grid(contrasts(_held(table)), sigma * lengths * UP, self.bits)
        fresh = np.ldexp(released.astype(np.float64), exponent) / lengths
        weight = grains / (state.grains + grains)
        return Residual(state.grains + grains, state.mean + (fresh - state.mean) * weight)


def price_of(sizes: Sequence[int]) -> float:
    """Return what a row adds to the squared length of a residual, to the nearest: the product of 1 - 1/size.

    >>> price_of((4, 2))
    0.375
    """
    return math.prod(1 - 1 / size for size in sizes)


def sigma_of(grains: int, sizes: Sequence[int], reach: int) -> float:
    """Return the noise scale, in contrasts of length 1, whose measurement costs at most `grains`.

    Rounds: up, by 2^-40.

    >>> sigma_of(1 << 56, (), 3) >= 3
    True
    """
    return reach * math.sqrt(price_of(sizes)) * 2.0**28 / math.sqrt(grains) * UP


def precision_of(grains: int, sizes: Sequence[int], reach: int) -> float:
    """Return one over the variance of a residual in contrasts of length 1; the grid's rounding is counted.

    Rounds: down.
    """
    return grains * float(GRAIN) / (price_of(sizes) * reach**2) / ROUNDING_VARIANCE


def contrasts(table: Int64) -> Int64:
    """Return int64[sizes - 1]: along each axis, the sum of the entries before a place less as often the entry there.

    Guarantee: whole numbers, exactly; one more in a cell moves them by prod(1 - 1/size), squared and over their
        squared lengths.
    Proof: docs/proofs/mechanisms.residuals.md, section 1.
    Assumes: entries that `_held` has held.
    Rounds: nothing.

    >>> contrasts(np.array([5, 1, 2])).tolist()
    [4, 2]
    """
    for axis, size in enumerate(table.shape):
        along = [1] * table.ndim
        along[axis] = -1
        before: Int64 = np.cumsum(table, axis=axis).take(np.arange(size - 1), axis=axis)
        places = np.arange(1, size).reshape(along)
        own: Int64 = places * table.take(np.arange(1, size), axis=axis)
        table = before - own
    return table


def lengths_of(sizes: Sequence[int]) -> Float64:
    """Return float64[sizes - 1], the lengths of the contrasts: products of sqrt(k (k + 1))."""
    found = np.ones(())
    for size in sizes:
        k = np.arange(1, size, dtype=np.float64)
        found = np.multiply.outer(found, np.sqrt(k * (k + 1)))
    return found


def residual_table(mean: Float64) -> Float64:
    """Return float64[sizes], the residual whose contrasts of length 1 these are: mean-zero along each axis.

    >>> residual_table(np.array([2**0.5])).round(12).tolist()
    [1.0, -1.0]
    """
    for axis, rest in enumerate(mean.shape):
        along = [1] * mean.ndim
        along[axis] = -1
        k = np.arange(1, rest + 1, dtype=np.float64)
        each = mean / np.sqrt(k * (k + 1)).reshape(along)
        after = np.flip(np.cumsum(np.flip(each, axis), axis=axis), axis)
        nothing = np.zeros_like(np.take(each, [0], axis=axis))
        before = np.concatenate([nothing, k.reshape(along) * each], axis=axis)
        mean = np.concatenate([after, nothing], axis=axis) - before
    return mean


def put_together(
    table: tuple[int, ...], sizes: Mapping[int, int], residuals: Mapping[tuple[int, ...], Float64]
) -> Float64:
    """Return float64[sizes of the table], the counts that released residuals give.

    Guarantee: tables that share columns agree on every total over them, up to rounding.
    Proof: docs/proofs/mechanisms.residuals.md, section 3.
    Assumes: `residuals` holds the residual table of every subset of the columns that have several values.
    Rounds: to the nearest.

    >>> flat = put_together((0,), {0: 2}, {(): np.array(10.0), (0,): np.array([1.0, -1.0])})
    >>> flat.tolist()
    [6.0, 4.0]
    """
    found: Any = np.zeros([sizes[i] for i in table])
    real = [i for i in table if sizes[i] > 1]
    for many in range(len(real) + 1):
        for subset in combinations(real, many):
            shape = [sizes[i] if i in subset else 1 for i in table]
            others = math.prod(sizes[i] for i in real if i not in subset)
            found = found + residuals[subset].reshape(shape) / others
    return np.asarray(found, np.float64)


def _held(table: Int64) -> Int64:
    """Return counts held where their contrasts fit 64 bits: 2^61 over the cells, each axis twice; no table has as many.

    Each moves no further than it did.
    """
    most = _LIMIT // math.prod(2 * size for size in table.shape)
    return np.clip(table, -most, most)
