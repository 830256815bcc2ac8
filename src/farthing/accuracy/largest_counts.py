"""The largest counts first, from one purse: pick one, look at it coarsely, refine it to its target, go on.

What was released is public, so the price of the next pick may follow it. A pick that turns out to be far smaller than
what was expected is given up at a coarse look, before it costs much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.mechanisms.gaussian import worst_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.schedule import Schedule

    Bools = NDArray[np.bool_]

GROWTH: Final = 0.35
"""A round of falling picks takes this part of what was taken before: epsilon is reset from round to round."""

HOPELESS: Final = 0.2
"""A count below this part of what was expected would cost 25 times as much: it is given up at a first coarse look."""

GRID: Final = 1.02
"""Epsilons of picks are rounded down to powers of this, so that few prices have to be certified."""

EAGER: Final = 12.0
"""How many deviations of a pick's noise a large count stands above what is not to be picked, where nobody tuned it."""

_FIRST: Final = 50  # the first pick, of which nothing is known, has one part in so many of the purse
_CHECKED: Final = 10.0  # expected size over noise at the look where far smaller counts are given up
_CHECKED_PART: Final = 0.51  # at loose targets that look has this part of the signal that ends a release


@dataclass(frozen=True, slots=True)
class Pace:
    """How picks are priced from round to round.

    Attributes:
        eagerness: how many deviations of the noise a large count stands above what is not to be picked.
        last: the size that all picks are priced for; 0 for picks that follow what was released.
        flipped: permute-and-flip, one pick a round, for sums of epsilon; else Gumbel noise, in growing rounds.
    """

    eagerness: float
    last: float = 0.0
    flipped: bool = False

    def epsilon(self, level: Floats, options: float) -> Floats:
        """Return the epsilon of the next picks: (eagerness + log options) / level, unless one price is for all."""
        if self.last:
            return np.full(len(level), self.eagerness / self.last)
        return (self.eagerness + math.log(options)) / level

    def round(self, done: int) -> int:
        """Return how many counts the next round picks."""
        return 1 if self.flipped else max(1, int(GROWTH * done))


def median_level(values: Floats, kept: Bools, before: Floats) -> Floats:
    """Return the median of each trial's returned values, at least 1; what it was where none was returned."""
    held = np.sort(np.where(kept, values, np.inf), axis=1)
    many = kept.sum(axis=1)
    middle = np.take_along_axis(held, np.maximum(many - 1, 0)[:, None] // 2, axis=1)[:, 0]
    return np.where(many > 0, np.maximum(middle, 1.0), before)


def coarse(boundary: float, expected: Floats, per_grain: float) -> Floats:
    """Return the grains of the look at which a count that is far smaller than expected is given up.

    Its standard deviation is a tenth of what is expected, or more at loose targets.
    """
    signal = min(_CHECKED, _CHECKED_PART * boundary)
    return np.asarray(np.ceil((signal / expected) ** 2 / per_grain))


class Picked(NamedTuple):
    """What a run released.

    Attributes:
        values: float64[counts], the means of what was measured; 0 where nothing was.
        grains: int64[counts], what was spent on each.
        order: int64[returned], the counts at their target, in the order in which they were.
        cost: the grains that one unit is charged at most, picks and what smooths them and all.
    """

    values: Floats
    grains: Ints
    order: Ints
    cost: int


@dataclass(frozen=True, slots=True)
class LargestCounts:
    """Counts of several questions, and how one loss brings the largest of them to their targets.

    Attributes:
        question: int64[counts], which question each count is of, from 0, rising.
        max_groups: for each question, how many of its counts one unit can move.
        schedules: for each question, when its counts are looked at, and when they are good enough.
        spread: the most that one unit moves any count; it moves all of them up, or all down.
        price: the grains of one pick of a bounded range epsilon, where so many grains are left before it.
        residue: the grains that have to be left, or charged, for that price to hold.
        limit: the grains that everything may come to.

    Guarantee: `run` never spends more than `limit`. The chance that a count is returned and its interval misses its
        truth is at most the beta of its schedule, whatever was picked and decided on the way.
    Proof: docs/proofs/session.batches.workload.md, "The largest first".
    Assumes: `pick` is the exponential mechanism, by one race; `measure` shows the truth plus fresh Gaussian noise of
        variance 1/(grains per_grain); each schedule may cost as much as the limit.
    Rounds: epsilons of picks down to the grid, grains of coarse looks up to a look of the schedule.
    """

    question: Ints
    max_groups: tuple[int, ...]
    schedules: tuple[Schedule, ...]
    spread: float
    price: Callable[[float, int], int]
    residue: Callable[[float], int]
    limit: int

    def run(
        self,
        pick: Callable[[Ints, float, int], Ints],
        measure: Callable[[int, int], float],
        begin: Callable[[int], None] = lambda _: None,
    ) -> Picked:
        """Spend the loss.

        Args:
            pick: returns the places of some counts that are picked among these, best first, given epsilon and how many.
            measure: returns a fresh noisy value of one count, in answer units, of so many grains.
            begin: is told, before each race and each look, how many grains all is worth by itself then.
        """
        run, pace = _Going(self, measure, begin), Pace(EAGER)
        seen: list[tuple[float, bool]] = []
        level = median = self._first_level(pace)
        while run.open.any():
            many = min(pace.round(len(seen)), int(run.open.sum()))
            rate = float(pace.epsilon(np.array([level]), max(len(self.question) / (len(seen) + 1), 1.0))[0])
            epsilon = GRID ** math.floor(math.log(rate * self.spread) / math.log(GRID))
            if not run.fits(self.price(epsilon, run.left)):
                break
            run.residue = max(run.residue, self.residue(epsilon))
            begin(min(run.charged + many * self.price(epsilon, 0), self.limit))
            for cell in pick(np.flatnonzero(run.open), epsilon, many).tolist():
                if not run.pays(self.price(epsilon, run.left)) or (kept := run.refined(cell, level)) is None:
                    return run.ended()
                seen.append((float(run.values[cell]), kept))
            later = np.array(seen[len(seen) // 2 :]).reshape(1, -1, 2)
            median = float(median_level(later[..., 0], later[..., 1] > 0, np.array([median]))[0])
            level = median * len(seen) / (len(seen) + 1)
        return run.ended()

    def cost(self, grains: Ints) -> int:
        """Return the grains that one unit pays at most for measurements: the most expensive counts of each question."""
        ends = np.searchsorted(self.question, np.arange(len(self.max_groups) + 1)).tolist()
        return sum(worst_cost(grains[ends[place] : ends[place + 1]], most)
                   for place, most in enumerate(self.max_groups))  # fmt: skip

    def _first_level(self, pace: Pace) -> float:
        """Return the size that the first pick is priced for: what a small part of the purse can tell apart."""
        exponent = math.ceil(math.log(max(self.limit, 1)) / 2 / math.log(GRID))
        while (price := self.price(GRID**exponent, 0)) > self.limit / _FIRST and GRID**exponent > _TINY:
            exponent -= 1 + int(math.log(max(price * _FIRST / self.limit, 1)) / 3 / math.log(GRID))
        return self.spread * (pace.eagerness + math.log(len(self.question))) / GRID**exponent


_TINY: Final = 2.0**-40


@dataclass(slots=True)
class _Going:
    """A run on its way."""

    plan: LargestCounts
    measure: Callable[[int, int], float]
    begin: Callable[[int], None]
    values: Floats = field(init=False)
    grains: Ints = field(init=False)
    open: Bools = field(init=False)
    picks: int = 0
    residue: int = 0
    order: list[int] = field(default_factory=list)
    again: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        many = len(self.plan.question)
        self.values, self.grains = np.zeros(many), np.zeros(many, np.int64)
        self.open = np.ones(many, np.bool_)

    @property
    def paid(self) -> int:
        """The grains that one unit has paid at most, picks and all."""
        return self.picks + self.plan.cost(self.grains)

    @property
    def left(self) -> int:
        """The grains that may still be spent."""
        return max(self.plan.limit - self.paid, 0)

    @property
    def charged(self) -> int:
        """The grains that everything is worth by itself: what was paid, and by what the picks were smoothed."""
        return min(self.paid + self.residue, self.plan.limit)

    def fits(self, more: int) -> bool:
        """Return whether so many grains more are within the limit."""
        return self.paid + more <= self.plan.limit

    def pays(self, price: int) -> bool:
        """Pay for a pick, if it fits."""
        if not self.fits(price):
            return False
        self.picks += price
        return True

    def refined(self, cell: int, level: float) -> bool | None:
        """Refine one count to its target: True if it is there, False if it was given up, None if it does not fit."""
        schedule = self.plan.schedules[int(self.plan.question[cell])]
        at = np.array([cell])
        if cell not in self.again:
            wish = coarse(schedule.jumps.boundary, np.array([level]), schedule.per_grain)
            place = min(int(np.searchsorted(schedule.looks, wish[0])), len(schedule.looks) - 1)
            if not self._look(cell, int(schedule.looks[place])):
                return None
            if self.values[cell] < HOPELESS * level:
                self.again.add(cell)
                return False
        while not schedule.stopped(self.grains[at], self.values[at])[0]:
            if not self._look(cell, int(schedule.next_look(self.grains[at], self.values[at])[0])):
                return None
        self.open[cell] = False
        self.order.append(cell)
        return True

    def _look(self, cell: int, after: int) -> bool:
        """Measure one count until it has so many grains, if that fits."""
        before = int(self.grains[cell])
        self.grains[cell] = after
        if not self.fits(0):
            self.grains[cell] = before
            return False
        self.begin(self.charged)
        fresh = self.measure(cell, after - before)
        self.values[cell] = (self.values[cell] * before + fresh * (after - before)) / after
        return True

    def ended(self) -> Picked:
        """Return what was released."""
        return Picked(self.values, self.grains, np.array(self.order, np.int64), self.charged)
