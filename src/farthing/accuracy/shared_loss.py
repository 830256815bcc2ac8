"""Many counts from one purse, each as many targets wide as the others: coarse first, the worst relative error next.

A small part of the loss is spent on looking around: the counts that are furthest from their targets climb step by step
until each is roughly known. What was seen tells how the rest is shared, so that the worst error, in targets, is as
small as it can be; then every count is measured once more with its share, and its interval is that of this last
measurement alone. After the batch refinement of [XiaoBHG11].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

EXPLORED: Final = 1 / 8
"""At most this part of the loss is spent on looking around."""

COARSE: Final = 3.0
"""A count is roughly known when its interval is so many times as wide as its target: a ninth of the price."""

_FIRST: Final = 4096  # the first look around has this part of an even share of what looking around may cost
_STEEP: Final = 3  # growth of information from one look around to the next
_WORSE: Final = 0.5  # counts at least half as far off as the worst climb with it
_UP: Final = 1 + 2.0**-40  # past every float error, so that what is met on paper is met
_CAUTION: Final = 2.0
_LEAST: Final = 4
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class SharedLoss:
    """Counts of several questions, and how one loss is spent on them.

    Attributes:
        question: int64[counts], which question each count is of, from 0, rising.
        max_groups: for each question, how many of its counts one unit can move.
        per_grain: float64[counts], the information that a grain buys.
        relative, absolute: float64[counts], the targets; absolute > 0.
        critical: float64[counts], z of each interval.
        limit: the grains that `cost` may come to.

    Guarantee: `run` never spends more than `limit`; each interval `value +- half_widths` of its result misses the truth
        with the chance that `critical` stands for, whatever was seen and decided on the way.
    Proof: docs/proofs/accuracy.shared_loss.md.
    Assumes: `measure` shows the truth plus fresh Gaussian noise of variance 1/(grains per_grain).
    Rounds: grains up to whole ones, within the limit.
    """

    question: Ints
    max_groups: tuple[int, ...]
    per_grain: Floats
    relative: Floats
    absolute: Floats
    critical: Floats
    limit: int

    @property
    def first(self) -> int:
        """The grains of the first look around; 0 where the loss is too small for one."""
        return int(EXPLORED * self.limit / self._touched / _FIRST)

    @property
    def _touched(self) -> int:
        """How many counts one unit can move in all."""
        return sum(min(len(cells), most) for cells, most in self._questions())

    def of(self, cells: slice) -> SharedLoss:
        """Return the counts of one question alone."""
        part = {name: getattr(self, name)[cells] for name in ("per_grain", "relative", "absolute", "critical")}
        most = self.max_groups[int(self.question[cells][0])]
        return replace(self, question=np.zeros_like(self.question[cells]), max_groups=(most,), **part)

    def cost(self, grains: Ints) -> int:
        """Return the grains that one unit pays at most: over the questions, the sums of their most expensive counts."""
        return sum(_dearest(grains[cells], most) for cells, most in self._questions())

    def half_widths(self, grains: Ints) -> Floats:
        """Return the half-width of each interval; infinite where nothing was measured."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.critical / np.sqrt(grains * self.per_grain))

    def off(self, values: Floats, grains: Ints) -> Floats:
        """Return how many targets wide each half-interval is, by the truth in it that asks for most; <= 1 is met."""
        half = self.half_widths(grains)
        return half / np.maximum(self.relative * np.maximum(np.abs(values) - half, 0.0), self.absolute)

    def run(self, measure: Callable[[Ints, Ints], Floats]) -> tuple[Floats, Ints, Ints]:
        """Spend the loss.

        Args:
            measure: returns float64[n], in answer units, fresh noisy values of n counts, by their places and grains
                int64[n].

        Returns:
            The values of the last measurements, float64[counts]; their grains; and all grains spent, int64[counts].
        """
        around = replace(
            self, relative=COARSE * self.relative, absolute=COARSE * self.absolute, limit=int(EXPLORED * self.limit)
        )
        every = np.arange(len(self.question))
        spent = np.full(len(every), self.first, np.int64)
        seen = measure(every, spent)
        while len(cells := around.worst(seen, spent)):
            before, bought = spent[cells], (_STEEP - 1) * spent[cells]
            seen[cells] = (seen[cells] * before + measure(cells, bought) * bought) / (before + bought)
            spent[cells] += bought
        grains = self.shared(seen, spent)
        return measure(every, grains), grains, spent + grains

    def worst(self, values: Floats, grains: Ints) -> Ints:
        """Return the counts that climb next: the furthest from their targets; none where all are met or none fits."""
        off, room = self.off(values, grains), self.limit - self.cost(grains)
        cells = np.flatnonzero((off > 1) & (_WORSE * off.max() <= off))
        raised = grains.copy()
        raised[cells] *= _STEEP
        while len(cells) and self.cost(raised) - self.limit > 0:  # fewer of them, the worst ones
            cells = cells[np.argsort(-off[cells], kind="stable")[: len(cells) // 2]]
            raised = grains.copy()
            raised[cells] *= _STEEP
        return cells if room > 0 else cells[:0]

    def shared(self, seen: Floats, spent: Ints) -> Ints:
        """Return each count's grains of the last measurement, given what looking around showed and cost.

        Every count is to be `m` targets wide, for the least m >= 1 that fits; those that a unit pays nothing for follow
        up to the others. Targets are taken for counts that are two standard deviations smaller than they seem. Where
        not all can be met, none gets less than a quarter of an even share: what was seen may be wrong.
        """
        left = self.limit - self.cost(spent)
        aim = np.maximum(np.abs(seen) - _CAUTION / np.sqrt(spent * self.per_grain), 0.0)
        even = left / self._touched / _LEAST
        width = np.maximum(self.relative * aim / (1 + self.relative), self.absolute)  # by the least truth in it
        wanted = (self.critical / width) ** 2 / self.per_grain

        def grains(part: float) -> Ints:
            """Return the grains that give every count this part of what it wants."""
            wish = np.maximum(part * wanted, even * (part < 1))
            return np.ceil(np.minimum(wish * _UP, float(self.limit + 1))).astype(np.int64)

        low, high = 0.0, 1.0
        if self.cost(grains(high)) > left:
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (low, middle) if self.cost(grains(middle)) > left else (middle, high)
            high = low
        return self._followed(grains(high))

    def _followed(self, grains: Ints) -> Ints:
        """Return the grains with what costs nothing more: where a unit is in few groups, the others follow."""
        raised = grains.copy()
        for cells, most in self._questions():
            if most < len(cells):
                raised[cells] = np.maximum(grains[cells], np.sort(grains[cells])[-most])
        return raised

    def _questions(self) -> Iterator[tuple[Ints, int]]:
        """Give the places of each question's counts, and how many of them one unit can move."""
        ends = np.searchsorted(self.question, np.arange(len(self.max_groups) + 1))
        for number, most in enumerate(self.max_groups):
            yield np.arange(ends[number], ends[number + 1]), most


def _dearest(grains: Ints, most: int) -> int:
    """Return the sum of the largest numbers of grains, exactly."""
    return sum(np.sort(grains)[-most:].tolist())
