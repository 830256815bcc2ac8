"""Residuals of a table of counts, measured with exact Gaussian noise: one for each subset of its columns.

The residual of a subset is the part of its table that is mean-zero along each column. It is measured in *contrasts*,
whole numbers that are the sums of counts before a place along each column, less what that place would give as often:
with lengths sqrt(k (k + 1)) they are an orthogonal basis of the mean-zero vectors. So each is one integer answer with
noise of its own, and every table that is put together from the residuals agrees with every other.

A `NoiseShape` lets members of large cells pay less: values of a column may have *weights*, by which their noise is
wider, and a total is shared out; and cells may have noise of their own, *added* before contrasts are taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.gaussian import GRAIN, ROUNDING_VARIANCE, on_own_grid
from farthing.noise.gaussian import rounded_gaussian
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farthing.noise.bits import BitSource

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]

UP: Final = 1 + 2.0**-40
"""More than the roundings of a noise scale, about 20 of float64, can have taken off it."""

_LIMIT: Final = 1 << 61

ADDED_PARTS: Final = 64
"""Noise that is added to a cell lies on a grid of one part in so many of a row."""


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

    def same(self, other: Residual) -> bool:
        """Return whether another is the same, to the last bit."""
        return self.grains == other.grains and np.array_equal(self.mean, other.mean)


@dataclass(frozen=True, slots=True, eq=False)
class NoiseShape:
    """How the noise of one residual is wider in some cells than in others.

    Attributes:
        weights: for each column int64[size], whole numbers >= 1, about the variance of the noise of each value.
        added: float64[sizes], the variance of noise that is added to each cell, over that of the residual's noise.

    >>> even = NoiseShape((np.array([1, 1]),), np.zeros(2))
    >>> even.price, NoiseShape((np.array([1, 3]),), np.zeros(2)).prices.tolist()
    (0.5, [0.75, 0.08333333333333331])
    """

    weights: tuple[Int64, ...]
    added: Float64

    @property
    def base(self) -> Float64:
        """float64[sizes], what a row in each cell adds to the squared length of the residual, over lengths of noise."""
        found = np.ones(())
        for weights in self.weights:
            found = np.multiply.outer(found, 1 / weights - 1 / weights.sum())
        return found

    @property
    def price(self) -> float:
        """The largest of `base`: what a unit pays at most where the noise has variance 1."""
        return float(self.base.max())

    @property
    def prices(self) -> Float64:
        """float64[sizes], what a member of each cell pays at most where the noise has variance 1.

        Guarantee: a row more in the cell moves the released residual by at most so much, squared and over the noise.
        Proof: docs/proofs/mechanisms.residuals.md, section 5.
        Assumes: nothing.
        Rounds: to the nearest.
        """
        base, found = self.base, self.base
        own = self.added > 0
        part = np.round(ADDED_PARTS * self.added / (self.added + 1 / np.where(base > 0, base, 1))) / ADDED_PARTS
        split = part**2 / np.where(own, self.added, 1) + (1 - part) ** 2 * base
        return np.asarray(np.where(own, np.minimum(split, base), found))

    @property
    def spread(self) -> Float64:
        """float64[sizes], the variance of each entry of the residual, where the noise has variance 1."""
        each = np.ones(())
        for weights in self.weights:
            each = np.multiply.outer(each, weights.astype(np.float64))
        return spread_of(each + self.added, shares_of(self.weights))


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

    def measure(
        self,
        subset: tuple[int, ...],
        state: Residual,
        grains: int,
        shape: NoiseShape | None = None,
        moved: Float64 | None = None,
    ) -> Residual:
        """Return the state of a residual after one more measurement.

        Args:
            subset: the places of its columns, in rising order.
            state: what was measured of it before, in the same shape.
            grains: the cost of the new measurement, > 0.
            shape: how noise differs by cell; None for the same everywhere.
            moved: float64[sizes - 1], noise that residuals share, in contrasts of length 1; drawn without the data.
        """
        table, weights, finer = opened(self.tables)[subset], None, 1
        sigma = sigma_of(grains, table.shape, self.reach)
        if shape is not None:
            weights, finer = shape.weights, ADDED_PARTS
            sigma *= math.sqrt(shape.price / price_of(table.shape))
            table = _with_noise(_held(table, weights, finer), shape.added, sigma, self.bits)
        lengths = lengths_of(table.shape, weights) * finer
        exact = contrasts(_held(table, weights), weights)
        released, exponent = on_own_grid(exact, sigma * lengths * UP, self.bits)
        fresh = np.ldexp(released.astype(np.float64), exponent) / lengths + (0.0 if moved is None else moved)
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


def contrasts(table: Int64, weights: Sequence[Int64] | None = None) -> Int64:
    """Return int64[sizes - 1]: along each axis, the sum of the entries before a place less as often the entry there.

    With weights w, w there times the sum before less the entry there times the weights before.

    Guarantee: whole numbers, exactly; one more in a cell moves them by prod(1/w - 1/sum of w), squared and over their
        squared lengths.
    Proof: docs/proofs/mechanisms.residuals.md, sections 1 and 5.
    Assumes: entries that `_held` has held.
    Rounds: nothing.

    >>> contrasts(np.array([5, 1, 2])).tolist()
    [4, 2]
    """
    for axis, each in enumerate(_weights(table.shape, weights)):
        along = [1] * table.ndim
        along[axis] = -1
        rest = np.arange(len(each) - 1)
        before: Int64 = np.cumsum(table, axis=axis).take(rest, axis=axis) * each[1:].reshape(along)
        own: Int64 = np.cumsum(each)[:-1].reshape(along) * table.take(rest + 1, axis=axis)
        table = before - own
    return table


def lengths_of(sizes: Sequence[int], weights: Sequence[Int64] | None = None) -> Float64:
    """Return float64[sizes - 1], the lengths of the contrasts: products of sqrt(k (k + 1)).

    With weights, those of noise whose variances they are: sqrt(w * (sum before) * (sum with it)).
    """
    found = np.ones(())
    for each in _weights(sizes, weights):
        up_to = np.cumsum(each).astype(np.float64)
        found = np.multiply.outer(found, np.sqrt(each[1:] * up_to[:-1] * up_to[1:]))
    return found


def residual_table(mean: Float64, weights: Sequence[Int64] | None = None) -> Float64:
    """Return float64[sizes], the residual whose contrasts of length 1 these are: mean-zero along each axis.

    >>> residual_table(np.array([2**0.5])).round(12).tolist()
    [1.0, -1.0]
    """
    for axis, each in enumerate(_weights([rest + 1 for rest in mean.shape], weights)):
        along = [1] * mean.ndim
        along[axis] = -1
        up_to = np.cumsum(each).astype(np.float64)
        w, s = each.astype(np.float64), up_to[:-1]
        y = mean / np.sqrt(w[1:] * s * up_to[1:]).reshape(along)
        after = np.flip(np.cumsum(np.flip(y * w[1:].reshape(along), axis), axis=axis), axis)
        nothing = np.zeros_like(np.take(y, [0], axis=axis))
        before = np.concatenate([nothing, s.reshape(along) * y], axis=axis)
        mean = w.reshape(along) * (np.concatenate([after, nothing], axis=axis) - before)
    return mean


def shares_of(weights: Sequence[Int64]) -> list[Float64]:
    """Return how a total is shared out over the values of each column: float64[size], of sum 1."""
    return [each / each.sum() for each in weights]


def spread_of(variances: Float64, shares: Sequence[Float64]) -> Float64:
    """Return the variances of the residual of cells with independent noise, where shares of totals are taken off.

    >>> spread_of(np.ones(2), [np.array([0.5, 0.5])]).tolist()
    [0.5, 0.5]
    """
    for axis, share in enumerate(shares):
        along = [1] * variances.ndim
        along[axis] = -1
        part = share.reshape(along)
        variances = (1 - 2 * part) * variances + part**2 * variances.sum(axis=axis, keepdims=True)
    return variances


def put_together(
    table: tuple[int, ...],
    sizes: Mapping[int, int],
    residuals: Mapping[tuple[int, ...], Float64],
    weights: Mapping[int, Int64] | None = None,
) -> Float64:
    """Return float64[sizes of the table], the counts that released residuals give.

    Guarantee: tables that share columns agree on every total over them, up to rounding.
    Proof: docs/proofs/mechanisms.residuals.md, sections 3 and 5.
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
            found = found + residuals[subset].reshape(shape) * shared_out(table, subset, sizes, weights)
    return np.asarray(found, np.float64)


def shared_out(
    table: tuple[int, ...], subset: tuple[int, ...], sizes: Mapping[int, int], weights: Mapping[int, Int64] | None
) -> Float64:
    """Return what a cell of a table gets of a residual: the product of its shares of the columns beyond the subset."""
    found = np.ones([1] * len(table))
    for axis, place in enumerate(table):
        if place not in subset:
            along = [1] * len(table)
            along[axis] = -1
            own = np.ones(sizes[place], np.int64) if weights is None else weights[place]
            found = found * (own / own.sum()).reshape(along)
    return found


def _weights(sizes: Sequence[int], weights: Sequence[Int64] | None) -> list[Int64]:
    """Return the weights of the values of each column, by default all alike."""
    return [np.ones(size, np.int64) for size in sizes] if weights is None else list(weights)


def _held(table: Int64, weights: Sequence[Int64] | None = None, finer: int = 1) -> Int64:
    """Return counts held where their contrasts fit 64 bits, in parts of which `finer` are one; no table has as many.

    Each moves no further than it did.
    """
    each = (2 * int(own.max()) * int(own.sum()) for own in _weights(table.shape, weights))
    most = _LIMIT // (finer * math.prod(each))
    return np.clip(table, -most, most)


def _with_noise(table: Int64, added: Float64, sigma: float, bits: BitSource | None) -> Int64:
    """Return counts in parts of which `ADDED_PARTS` are one, with the noise that is added to cells, rounded to them."""
    wide = added > 0
    found = table * ADDED_PARTS
    if wide.any():
        deviations = sigma * np.sqrt(added[wide]) * ADDED_PARTS * UP
        found[wide] += rounded_gaussian(deviations, bits=bits)
    return found
