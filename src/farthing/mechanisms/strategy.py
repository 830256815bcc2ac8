"""Linear measurements of tables of counts with exact Gaussian noise: the matrix mechanism, one matrix for each factor.

A strategy is a Kronecker product of matrices of whole numbers, so what it measures is exact, and so is how far one row
moves it. The matrices come from the workload alone: they are public, and kept with what they measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.gaussian import FINEST_BITS, GRAIN, ROUNDING_VARIANCE
from farthing.mechanisms.residuals import UP
from farthing.noise.gaussian import rounded_gaussian
from farthing.rounding import sqrt_up
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farthing.noise.bits import BitSource

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]

MOST_BITS: Final = 24
"""Entries of a strategy are whole numbers over 2^bits, of all its factors together at most so many."""

MOST_CELLS: Final = 1 << 22
"""The most cells of a table that is measured with matrices: sums of them fit in 64 bits, limb by limb."""

_LIMB: Final = 16
_MOST: Final = (1 << 46) - 1
_FRACTION: Final = 52


@dataclass(frozen=True, slots=True, eq=False)
class Strategy:
    """What is measured of one table: a Kronecker product of matrices, or the table itself.

    Attributes:
        sizes: the cells of each factor.
        matrices: int64[measurements, cells] of each factor, over 2^bits; None for the cells themselves.
        bits: to how many bits each matrix was rounded.

    >>> halves = Strategy.rounded((2,), (np.array([[0.5, 0.5], [0.5, -0.5]]),))
    >>> round(halves.length, 6), halves.shape
    (0.707107, (2,))
    """

    sizes: tuple[int, ...]
    matrices: tuple[Int64 | None, ...]
    bits: int

    @classmethod
    def rounded(cls, sizes: tuple[int, ...], matrices: tuple[Float64 | None, ...]) -> Strategy:
        """Return the strategy of matrices whose entries are at most 1, rounded to whole numbers over a power of two."""
        bits = bits_of(matrices)
        whole = tuple(None if one is None else np.rint(np.ldexp(one, bits)).astype(np.int64) for one in matrices)
        return cls(sizes, whole, bits)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many measurements each factor has."""
        return tuple(size if one is None else len(one) for size, one in zip(self.sizes, self.matrices, strict=True))

    @property
    def places(self) -> int:
        """The bits behind the point of a measurement."""
        return self.bits * sum(one is not None for one in self.matrices)

    @property
    def floats(self) -> tuple[Float64 | None, ...]:
        """The matrices as they stand, exactly."""
        return tuple(None if one is None else np.ldexp(one.astype(np.float64), -self.bits) for one in self.matrices)

    @property
    def length(self) -> float:
        """The most that one row moves the measurements, as the length of that vector.

        Guarantee: the largest length of a column of the product, at least.
        Proof: docs/proofs/mechanisms.strategy.md, section 1.
        Assumes: at most 2^12 measurements of entries up to 2^25, so that squares and their sums are exact.
        Rounds: up.
        """
        squares = [int((one**2).sum(axis=0).max()) for one in self.matrices if one is not None]
        return sqrt_up(Fraction(math.prod(squares), 1 << (2 * self.places)))

    def sigma(self, grains: int, reach: int) -> float:
        """Return the noise scale whose measurement costs at most `grains`.

        Rounds: up, by 2^-40.
        """
        return reach * self.length * 2.0**28 / math.sqrt(grains) * UP

    def variance(self, grains: float, reach: int) -> float:
        """Return the variance of one measurement at so many grains in all; the grid's rounding is counted.

        Rounds: up.
        """
        if not grains:
            return math.inf
        return (reach * self.length) ** 2 * ROUNDING_VARIANCE / (grains * float(GRAIN)) * UP


@dataclass(frozen=True, slots=True, eq=False)
class StrategyState:
    """What was released of one strategy: public, free to keep, enough to refine.

    Attributes:
        grains: what a unit has paid for it, in 2^-56 of mu^2.
        mean: float64[measurements of each factor], the weighted mean of all measurements.
    """

    grains: int
    mean: Float64


@dataclass(frozen=True, slots=True, eq=False)
class StrategyMeasurements:
    """Measure strategies of tables of counts of the same rows, each as often as wanted.

    Attributes:
        tables: the counts by number of the strategy, int64[sizes], all of the same bounded rows; they never leave.
        strategies: what is measured of each.
        reach: the most rows that one unit adds to each table, a whole number >= 1.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: any sequence of measurements, chosen adaptively, is mu-GDP for mu^2 = the sum of their grains.
    Proof: [DongRS22, Cor. 3.3; SmithT22]; docs/proofs/mechanisms.strategy.md.
    Assumes: add/remove one unit adds or removes at most `reach` rows, in whatever cells; exact sampler.
    Rounds: noise scales up, so that each measurement costs no more than its grains; sums of grains are exact.

    >>> halves = Strategy.rounded((2,), (np.array([[0.5, 0.5], [0.5, -0.5]]),))
    >>> measuring = StrategyMeasurements({0: np.array([500, 20])}, (halves,))
    >>> bool(abs(measuring.measure(0, StrategyState(0, np.zeros(2)), 1 << 56).mean - [260, 240]).max() < 10)
    True
    """

    tables: Mapping[int, Int64] | Sealed = field(repr=False)
    strategies: tuple[Strategy, ...]
    reach: int = 1
    bits: BitSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", sealed(self.tables))

    def measure(self, number: int, state: StrategyState, grains: int) -> StrategyState:
        """Return the state of a strategy after one more measurement.

        Args:
            number: which strategy.
            state: what was measured of it before.
            grains: the cost of the new measurement, > 0.
        """
        strategy = self.strategies[number]
        sigma = strategy.sigma(grains, self.reach)
        exponent = min(math.frexp(sigma)[1] - (FINEST_BITS + 1), _FRACTION - strategy.places)
        whole, rest = on_grid(opened(self.tables)[number], strategy, exponent)
        noisy = rounded_gaussian(np.full(whole.shape, math.ldexp(sigma, -exponent)), offset=rest, bits=self.bits)
        fresh = np.ldexp((whole + noisy).astype(np.float64), exponent)
        weight = grains / (state.grains + grains)
        return StrategyState(state.grains + grains, state.mean + (fresh - state.mean) * weight)


def bits_of(matrices: tuple[Float64 | None, ...]) -> int:
    """Return to how many bits each matrix of a strategy is rounded."""
    return MOST_BITS // max(1, sum(one is not None for one in matrices))


def applied(matrices: Sequence[Any], table: Any) -> Any:
    """Return a table with a matrix applied along each axis, None leaving it as it is.

    >>> applied((np.array([[1, 1]]), None), np.array([[1, 2], [3, 4]])).tolist()
    [[4, 6]]
    """
    for axis, one in enumerate(matrices):
        if one is not None:
            table = np.moveaxis(np.tensordot(one, table, (1, axis)), 0, axis)
    return table


def on_grid(table: Int64, strategy: Strategy, exponent: int) -> tuple[Int64, Float64]:
    """Return the exact measurements in steps of 2^exponent: their whole steps, and the rest in [0, 1).

    Guarantee: exactly those of the table, whose cells are held below 2^46 and whose measurements below 2^61 steps.
    Proof: docs/proofs/mechanisms.strategy.md, section 2.
    Assumes: at most 2^22 cells; exponent >= -20, exponent + places <= 52.
    Rounds: nothing.

    >>> halves = Strategy.rounded((2,), (np.array([[0.5, 0.5], [0.5, -0.5]]),))
    >>> [part.tolist() for part in on_grid(np.array([5, 2]), halves, 0)]
    [[3, 1], [0.5, 0.5]]
    """
    held = np.clip(np.asarray(table, np.int64).reshape(strategy.sizes), 0, _MOST)
    limbs = [held & 0xFFFF, (held >> _LIMB) & 0xFFFF, held >> (2 * _LIMB)]
    low, middle, high = (np.asarray(applied(strategy.matrices, limb), np.int64) for limb in limbs)
    middle = middle + (low >> _LIMB)
    high = high + (middle >> _LIMB)
    low = ((middle & 0xFFFF) << _LIMB) | (low & 0xFFFF)  # the value is high 2^32 + low, in steps of 2^-places
    shift = exponent + strategy.places
    if shift >= 2 * _LIMB:
        above = shift - 2 * _LIMB
        part = ((high & ((1 << above) - 1)) << (2 * _LIMB)) | low
        return high >> above, np.ldexp(part.astype(np.float64), -shift)
    most = 1 << max(0, 61 - (2 * _LIMB - shift))
    outside = (high >= most) | (high < -most)
    high, low = np.clip(high, -most, most), np.where(outside, 0, low)
    if shift < 0:
        return (high << (2 * _LIMB - shift)) + (low << -shift), np.zeros(low.shape)
    rest = np.ldexp((low & ((1 << shift) - 1)).astype(np.float64), -shift)
    return (high << (2 * _LIMB - shift)) + (low >> shift), rest
