"""Functions of lanes with all their values, first and second derivatives over a box: arithmetic with intervals.

Where every lane is known to lie in an interval, each number that is computed from them lies in one, too, and so do its
derivatives. Two uses: over a box of lanes, what a function can be at most; and how far it can be from straight there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats

Ends: TypeAlias = "tuple[Floats, Floats]"
"""Lower and upper ends of intervals, in arrays of one shape."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Intervals that hold a number for every group, and its derivatives.

    Attributes:
        value: float64[groups] twice.
        slopes: float64[lanes, groups] twice, the first derivatives; None where only values are wanted. Only values are
            cut to what is possible: between the truth and what was measured, lanes may be what no rows could give.
        bends: float64[lanes, lanes, groups] twice, the second derivatives.
        known: its inverse (at 0), and by their ids what it divides, each computed once: most are divided by one count.

    Guarantee: for lanes anywhere in their intervals, the number and its derivatives are in theirs.
    Proof: docs/proofs/accuracy.joint_measures.md (claim 5).
    Assumes: the parts' intervals hold the parts.
    Rounds: to the nearest float64; an end may be off by a few units in the last place, as in all intervals here.

    >>> n, s = Enclosure.of((np.array([9.0]), np.array([11.0]))), Enclosure.of((np.array([40.0]), np.array([60.0])))
    >>> [round(float(end[0]), 2) for end in s.over(n).value]
    [3.64, 6.67]
    """

    value: Ends
    slopes: Ends | None = None
    bends: Ends | None = None
    known: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, value: Ends, place: int | None = None, lanes: int = 0) -> Enclosure:
        """Return a lane, the one at a place of so many; without a place, only its values."""
        if place is None:
            return cls(value)
        slope = np.zeros((lanes, *value[0].shape))
        slope[place] = 1.0
        bend = np.zeros((lanes, *slope.shape))
        return cls(value, (slope, slope), (bend, bend))

    def __add__(self, other: Enclosure | float) -> Enclosure:
        """Return the sum."""
        if not isinstance(other, Enclosure):
            return Enclosure(_of(lambda end: end + other, self.value), self.slopes, self.bends)
        if self.slopes is None or self.bends is None or other.slopes is None or other.bends is None:
            return Enclosure(_sum(self.value, other.value))
        return Enclosure(_sum(self.value, other.value), _sum(self.slopes, other.slopes), _sum(self.bends, other.bends))

    def __sub__(self, other: Enclosure) -> Enclosure:
        """Return the difference."""
        return self + other.times(-1.0)

    def times(self, number: float) -> Enclosure:
        """Return it times a number."""

        def scaled(ends: Ends) -> Ends:
            return _of(lambda end: number * end, ends, falls=number < 0)

        if self.slopes is None or self.bends is None:
            return Enclosure(scaled(self.value))
        return Enclosure(scaled(self.value), scaled(self.slopes), scaled(self.bends))

    def __mul__(self, other: Enclosure) -> Enclosure:
        """Return the product."""
        value = _product(self.value, other.value)
        if self.slopes is None or self.bends is None or other.slopes is None or other.bends is None:
            return Enclosure(value)
        slopes = _sum(_product(self.slopes, other.value), _product(other.slopes, self.value))
        crossed = _outer(self.slopes, other.slopes)
        turned = _of(lambda end: np.swapaxes(end, 0, 1), crossed)
        bends = _sum(_product(self.bends, other.value), _product(other.bends, self.value))
        return Enclosure(value, slopes, _sum(bends, _sum(crossed, turned)))

    def over(self, other: Enclosure) -> Enclosure:
        """Return it over a number that is never below zero; anything where that may be zero."""
        if id(self) not in other.known:  # beside its quotient it is kept, so that nothing else has its id
            other.known[id(self)] = self, self * other.inverse()
        made: Enclosure = other.known[id(self)][1]
        return made

    def inverse(self) -> Enclosure:
        """Return one over a number that is never below zero; anything where it may be zero."""
        if 0 not in self.known:
            sure = self.value[0] > 0
            safe = _of(lambda end: np.where(sure, end, 1.0), self.value)
            first, second = _of(lambda end: -1 / end**2, safe), _of(lambda end: 2 / end**3, safe, falls=True)
            self.known[0] = self._through(_of(lambda end: 1 / end, safe, falls=True), first, second, sure)
        made: Enclosure = self.known[0]
        return made

    def squared(self) -> Enclosure:
        """Return the square."""
        low, high = self.value
        two, sure = np.full_like(low, 2.0), np.ones(low.shape, np.bool_)
        squares = _of(np.square, self.value)
        if low is not high:
            spans = (low <= 0) & (high >= 0)
            squares = (np.where(spans, 0.0, np.minimum(*squares)), np.maximum(*squares))
        return self._through(squares, _of(lambda end: 2 * end, self.value), (two, two), sure)

    def root(self) -> Enclosure:
        """Return the root of a number that is never below zero; as steep as can be where it may be zero."""
        if self.slopes is None:
            return Enclosure(_of(lambda end: np.sqrt(np.maximum(end, 0.0)), self.value))
        sure = self.value[0] > 0
        safe = _of(lambda end: np.where(sure, end, 1.0), self.value)
        first = _of(lambda end: 0.5 * end**-0.5, safe, falls=True)
        second = _of(lambda end: -0.25 * end**-1.5, safe)
        return self._through(_of(np.sqrt, safe), first, second, sure)

    def sampled(self, count: Enclosure) -> Enclosure:
        """Return it times n/(n - 1); a number that is 0 where n < 2."""
        low, high = count.value
        few = low < 2
        if self.slopes is None:
            most, least = (end / (end - 1) for end in (np.maximum(low, 2.0), np.maximum(high, 2.0)))
            below, above = _product(self.value, (least, most))
            return Enclosure(
                (np.where(few, np.minimum(below, 0.0), below), np.where(few, np.maximum(above, 0.0), above))
            )
        less = Enclosure((np.where(few, -1.0, low - 1.0), high - 1.0), count.slopes, count.bends)
        return self + self.over(less)

    def within(self, low: float, high: float) -> Enclosure:
        """Return it, of which is known that it is between two numbers."""
        if self.slopes is not None:
            return self
        least, most = (np.where(np.isnan(end), known, end) for end, known in zip(self.value, (low, high), strict=True))
        return Enclosure((np.clip(least, low, high), np.clip(most, low, high)))

    def _through(self, value: Ends, first: Ends, second: Ends, sure: NDArray[np.bool_]) -> Enclosure:
        """Return a function of it, by the function's value and derivatives; anything where it is not sure."""

        def known(ends: Ends) -> Ends:
            return ends if every else (np.where(sure, ends[0], -np.inf), np.where(sure, ends[1], np.inf))

        every = bool(sure.all())
        if self.slopes is None or self.bends is None:
            return Enclosure(known(value))
        slopes = _product(self.slopes, known(first))
        bends = _sum(_product(self.bends, known(first)), _product(_outer(self.slopes, self.slopes), known(second)))
        return Enclosure(known(value), slopes, bends)


def _sum(one: Ends, other: Ends) -> Ends:
    """Return the ends of a sum; without end where infinities meet."""
    low = one[0] + other[0]
    if one[0] is one[1] and other[0] is other[1]:
        return low, low
    high = one[1] + other[1]
    unknown = np.isnan(low) | np.isnan(high)
    return (np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)) if unknown.any() else (low, high)


def _product(one: Ends, other: Ends) -> Ends:
    """Return the ends of a product; not a number where zero meets what may be anything, which sums take as anything."""
    (a, b), (c, d) = one, other
    if a is b and c is d:
        product = a * c
        return product, product
    if a is b:
        low, high = a * c, a * d
        return np.fmin(low, high), np.fmax(low, high)
    if c is d:
        return _product(other, one)
    ends = a * c, a * d, b * c, b * d
    return (
        np.fmin(np.fmin(ends[0], ends[1]), np.fmin(ends[2], ends[3])),
        np.fmax(np.fmax(ends[0], ends[1]), np.fmax(ends[2], ends[3])),
    )


def _outer(one: Ends, other: Ends) -> Ends:
    """Return the products of all pairs of slopes, float64[lanes, lanes, groups] twice."""
    return _product(_each(one, np.s_[:, None]), _each(other, np.s_[None]))


def _each(ends: Ends, change: Any) -> Ends:
    """Return both ends, seen another way; one array stays one."""
    low = ends[0][change]
    return (low, low) if ends[0] is ends[1] else (low, ends[1][change])


def _of(function: Callable[[Floats], Floats], ends: Ends, *, falls: bool = False) -> Ends:
    """Return a function that rises, or falls, of both ends; one array stays one."""
    low, high = (ends[1], ends[0]) if falls else ends
    first = function(low)
    return (first, first) if ends[0] is ends[1] else (first, function(high))
