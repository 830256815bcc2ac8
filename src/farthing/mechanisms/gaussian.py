"""Gaussian refinement: noise reduction as averaging of independent, exactly rounded Gaussian measurements.

Each measurement of a group's integer answer costs a whole number of *grains* (2^-56 of mu^2; the books round up to
whole farthings per ask) and adds that much information. What is shown is the precision-weighted mean of all
measurements so far. There is no secret noise state: the public `Measured` is all that has to be kept, and an answer can
be sharpened next week for the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.noise.gaussian import rounded_gaussian
from farthing.privacy.loss import Gdp, Zcdp
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Loss

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]

GRAIN: Final = Fraction(1, 1 << 56)
"""The cost of one unit of information, in mu^2."""

FINEST_BITS: Final = 10
"""Each measurement lies on a grid of at most sigma / 2^10, so rounding adds less than 2^-23 of its variance."""

GUARD_BITS: Final = 10
"""The running mean keeps this many bits below the finest grid, so averaging adds no visible rounding of its own."""

ROUNDING_VARIANCE: Final = 1 + 2.0**-20
"""Grid and averaging together stretch the variance of the mean by less than this; accuracy counts it."""

NO_UNIT: Final = 1 << 14
"""The exponent of the unit of a state that holds nothing: coarser than any grid, so that the first look chooses."""

_LIMIT: Final = 1 << 62
_FAR: Final = _LIMIT >> 1
_EXACT_BITS: Final = 53  # whole numbers below 2^53 are float64s
MOST_GRAINS: Final = 1 << 62
"""The most information that a group can hold: mu = 8."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was released about a question so far: public, free to keep, enough to refine.

    Attributes:
        mean: int64[groups], the precision-weighted mean in units of 2^unit_log2.
        information: int64[groups], the grains of mu^2 that a member of each group has paid.
        unit_log2: the exponent of the unit of `mean`, in answer units.
    """

    mean: Int64
    information: Int64
    unit_log2: int

    @classmethod
    def nothing(cls, groups: int) -> Measured:
        """Return the state before any measurement: zeros, in no unit yet.

        >>> GaussianMeasurements(np.array([7]), step_log2=900).measure(Measured.nothing(1), np.array([16])).unit_log2
        906
        """
        return cls(np.zeros(groups, np.int64), np.zeros(groups, np.int64), NO_UNIT)

    @property
    def values(self) -> Float64:
        """The shown values, float64[groups], in answer units; 0 where nothing was measured."""
        return np.ldexp(self.mean.astype(np.float64), self.unit_log2)

    def take(self, groups: Int64) -> Measured:
        """Return the state of some groups, in the order of their indices."""
        return Measured(self.mean[groups], self.information[groups], self.unit_log2)

    def times(self, power: int) -> Measured:
        """Return the same state read in other units: all values times 2^power."""
        return Measured(self.mean, self.information, self.unit_log2 + power)

    def in_unit(self, unit_log2: int) -> Measured:
        """Return the same state in a finer unit: exactly, unless a mean passes 64 bits there and is held at the end."""
        shift = self.unit_log2 - unit_log2
        return self if shift == 0 else Measured(_shifted(self.mean, shift), self.information, unit_log2)


@dataclass(frozen=True, slots=True)
class GaussianMeasurements:
    """Measure integer answers with rounded Gaussian noise, group by group, as often as wanted.

    Attributes:
        truth: int64[groups], the exact answers in steps; never leaves this object. Answers beyond 2^37 sensitivities
            are measured as about that: no look fails by what it would show.
        sensitivity: the most steps that one privacy unit can move one group's answer, a whole number >= 1.
        max_groups: the most groups one privacy unit can move at all.
        bits: where random bits come from; None is the system's stream cipher.
        step_log2: a step is 2^step_log2 in answer units, in which everything measured is told.

    Guarantee: any sequence of measurements, chosen adaptively, is mu-GDP for mu^2 = the sum of the `max_groups` largest
        informations; a member of one group alone pays that group's information.
    Proof: [DongRS22, Cor. 3.3; SmithT22]; docs/proofs/mechanisms.gaussian.md.
    Assumes: add/remove one unit moves at most `max_groups` answers by at most `sensitivity` each; exact sampler.
    Rounds: sigma up, so each measurement costs no more than its grains; sums of grains are exact.

    >>> mechanism = GaussianMeasurements(np.array([500, 20]), sensitivity=1)
    >>> state = mechanism.measure(Measured.nothing(2), np.array([1 << 50, 1 << 50]))
    >>> state.information.tolist()
    [1125899906842624, 1125899906842624]
    """

    truth: Int64 | Sealed = field(repr=False)
    sensitivity: int = 1
    max_groups: int = 1
    bits: BitSource | None = None
    step_log2: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", sealed(self.truth))

    def measure(self, state: Measured, grains: Int64, groups: Int64 | None = None) -> Measured:
        """Return the state of some groups after one more measurement of each.

        Args:
            state: what was measured before of these groups, in their order.
            grains: int64[len(groups)], the cost of each new measurement, > 0.
            groups: int64 indices of the groups to measure, each at most once; None for all of them.
        """
        state = state.times(-self.step_log2)
        released, exponent = self._release(groups, grains)
        now = state.in_unit(min(state.unit_log2, int(exponent.min(initial=NO_UNIT)) - GUARD_BITS))
        fresh = _shifted(released, exponent - now.unit_log2)
        information = now.information + grains
        mean = now.mean + np.rint((fresh - now.mean) * (grains / information)).astype(np.int64)
        return Measured(mean, information, now.unit_log2 + self.step_log2)

    def fresh(self, grains: Int64, groups: Int64 | slice) -> Float64:
        """Return one new measurement of some groups by itself, float64[len(groups)], in answer units."""
        released, exponent = self._release(groups, grains)
        return _times(released.astype(np.float64), exponent + self.step_log2)

    def fresh_leads(self, grains: Int64, first: Int64, second: Int64) -> Float64:
        """Return one new measurement of the leads of some groups over others, float64[n], each as one number.

        Guarantee: a member of either group alone pays the grains once; a unit in both, too, if it moves both one way.
        Proof: docs/proofs/mechanisms.gaussian.md, "The lead of two groups".
        Assumes: one unit is in one group, or moves all groups up, or all down.
        Rounds: as `measure`.

        >>> mechanism = GaussianMeasurements(np.array([500, 20]))
        >>> float(mechanism.fresh_leads(np.array([1 << 61]), np.array([0]), np.array([1]))[0].round())
        480.0
        """
        truth = np.clip(opened(self.truth), -_FAR, _FAR)
        released, exponent = on_own_grid(truth[first] - truth[second], sigma_of(grains, self.sensitivity), self.bits)
        return _times(released.astype(np.float64), exponent + self.step_log2)

    def unit_for(self, grains: int) -> int:
        """Return the exponent of a unit, in answer units, fine enough for every measurement of at most `grains`."""
        return int(_grid(sigma_of(np.array([grains]), self.sensitivity))[0]) - GUARD_BITS + self.step_log2

    def _release(self, groups: Int64 | slice | None, grains: Int64) -> tuple[Int64, Int64]:
        """Draw round((truth + sigma Z) / h) on each group's own grid h = 2^exponent; return both."""
        truth: Int64 = opened(self.truth) if groups is None else opened(self.truth)[groups]
        return on_own_grid(truth, sigma_of(grains, self.sensitivity), self.bits)


@dataclass(frozen=True, slots=True)
class Coin:
    """How information turns into loss, for one question in one currency.

    Attributes:
        currency: Gdp or Zcdp.
        max_groups: the most groups one unit can move.
        sensitivity: the most it moves each, in answer units.
    """

    currency: type[Gdp | Zcdp]
    max_groups: int
    sensitivity: float

    def loss(self, grains: int) -> Gdp | Zcdp:
        """Return the loss of a worst cost in grains of mu^2, exactly."""
        return self.loss_of(grains * GRAIN)

    def loss_of(self, mu_squared: Fraction) -> Gdp | Zcdp:
        """Return the loss of an amount of mu^2, exactly."""
        return Gdp.of_amount(mu_squared) if self.currency is Gdp else Zcdp.of_amount(mu_squared / 2)

    def grains(self, loss: Loss) -> int:
        """Return the whole grains of mu^2 that a loss pays for in all, rounded down."""
        mu_squared = loss.amount if self.currency is Gdp else 2 * loss.amount
        return math.floor(mu_squared / GRAIN)

    def level(self, loss: Loss, top: tuple[int, ...]) -> int:
        """Return the information that every group can be raised to for `loss`, given what the largest have already.

        >>> Coin(Gdp, 2, 1).level(Gdp.of_amount(10 * GRAIN), top=(4, 0))
        7
        """
        return min(highest_level(self.grains(loss), top), MOST_GRAINS)

    @property
    def per_grain(self) -> float:
        """Information (one over variance, in answer units) per grain; the grid's rounding is counted."""
        return float(GRAIN) / self.sensitivity**2 / ROUNDING_VARIANCE


def highest_level(amount: int, top: tuple[int, ...]) -> int:
    """Return the level that so many groups can be raised to for `amount` in all, given the largest levels they have.

    >>> highest_level(10, top=(4, 0))
    7
    """
    paid, level = 0, 0
    for count, has in enumerate(sorted(top), 1):
        if level and level <= has:
            break
        paid += has
        level = (amount + paid) // count
    return level


def sigma_of(grains: Int64, sensitivity: int) -> Float64:
    """Return the noise scale whose measurement costs at most `grains`, in answer units, rounded up.

    Rounds: up. Converting, rooting and dividing each err by at most 2^-53; the factor 1 + 2^-50 covers them all.

    >>> bool(sigma_of(np.array([1 << 56]), 3)[0] >= 3.0)
    True
    """
    scale: Float64 = sensitivity * 2.0**28 / np.sqrt(grains.astype(np.float64)) * (1 + 2.0**-50)
    return scale


def _grid(sigma: Float64) -> Int64:
    """Return the exponent e of each measurement's grid 2^e: sigma / 2^e lies in [2^FINEST_BITS, 2 * 2^FINEST_BITS)."""
    return np.frexp(sigma)[1].astype(np.int64) - (FINEST_BITS + 1)


def on_own_grid(truth: Int64, sigma: Float64, bits: BitSource | None) -> tuple[Int64, Int64]:
    """Draw round((truth + sigma Z) / h), each on its own grid h = 2^exponent; return both, int64 as truth is shaped.

    Guarantee: (c/sigma)-GDP, one by one, for a truth that moves by at most c.
    Proof: docs/proofs/mechanisms.gaussian.md; what is held at the ends moves no further than the truth does.
    Assumes: exact sampler.
    Rounds: to the grid, at most sigma / 2^10.
    """
    exponent = _grid(sigma)
    whole, rest = _split(truth, exponent)
    noisy = rounded_gaussian(_times(sigma, -exponent), offset=rest, bits=bits)
    return whole + noisy, exponent


def _split(truth: Int64, exponent: Int64) -> tuple[Int64, Float64 | float]:
    """Return truths in units of 2^exponent, what is whole of them and the rest of at most 1; held where they are large.

    Which way is taken depends on the grids alone. All three give the same: nothing is left of a truth on finer ones.
    """
    if exponent.max(initial=0) <= 0:
        up = np.minimum(-exponent, 62)
        ends = (_LIMIT >> 1) >> up
        return np.clip(truth, -ends, ends) << up, 0.0
    if exponent.min(initial=0) >= 0 and exponent.max(initial=0) <= _EXACT_BITS:
        held, down = np.clip(truth, -(_LIMIT >> 1), _LIMIT >> 1), exponent
        whole = held >> down
    else:
        up, down = np.clip(-exponent, 0, 62), np.maximum(exponent, 0)
        most = np.where(exponent > _EXACT_BITS, 1 << _EXACT_BITS, (_LIMIT >> 1) >> up)
        held = np.clip(truth, -most, most) << up
        # Of a grid coarser than float64 is exact nothing is whole: a floor of -1 would leave a rest of up to 2^62.
        whole = np.where(down > _EXACT_BITS, 0, held >> down)
    return whole, _times((held - (whole << down)).astype(np.float64), -down)  # exact: at most 2^53, a power of two


def _times(values: Float64, power: Int64) -> Float64:
    """Return values times 2^power, within 32 bits: of those numpy's ldexp takes a sixth of the time."""
    return np.ldexp(values, power.astype(np.int32))


def worst_cost(information: Int64, max_groups: int) -> int:
    """Return the grains that one privacy unit pays at most: the sum of the `max_groups` largest informations, exactly.

    >>> worst_cost(np.array([5, 1, 3]), max_groups=2)
    8
    """
    count = len(information)
    if max_groups == 1:
        return int(information.max(initial=0))
    top = information if count <= max_groups else np.partition(information, count - max_groups)[count - max_groups :]
    # Two halves, so that the sum of many large int64 cannot overflow.
    return (int((top >> 31).sum()) << 31) + int((top & ((1 << 31) - 1)).sum())


def _shifted(values: Int64, shift: Int64 | int) -> Int64:
    """Return values times 2^shift, shift >= 0, held within 2^62 (zeros at any shift).

    Noise and sizes that any table has are far from there, see the proof page; what is held was drawn already.
    """
    most = (_LIMIT - 1) >> np.minimum(shift, 62)
    return np.asarray(np.clip(values, -most, most) << np.minimum(shift, 62), dtype=np.int64)
