"""Released numbers in fewer digits: free, since nothing but what was released is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = NDArray[np.float64]


def _nearest(numbers: Floats) -> Floats:
    """Return the nearest whole numbers, halves away from zero, as ROUND does on every engine."""
    with np.errstate(invalid="ignore"):  # infinity less itself
        whole = np.trunc(numbers)
        return np.asarray(whole + np.sign(numbers) * (np.abs(numbers - whole) >= _HALF))


_HALF: Final = 0.5

WAYS: Final[dict[str, Callable[[Floats], Floats]]] = {
    "ROUND": _nearest,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "TRUNC": np.trunc,
}
"""How a number of steps becomes a whole one."""

UNROUNDED: Final = " before rounding"
"""What is added to a column's name for what it was: what HAVING and ORDER BY read of an aggregate's own text."""

_EXACT: Final = 2.0**52  # beyond so many steps a double has no fraction
_ALMOST: Final = 1e-9  # of a step: what arithmetic leaves of a multiple


@dataclass(frozen=True, slots=True)
class Rounding:
    """What ROUND and its like do to a column of an answer.

    Guarantee: where an interval holds the truth, the rounded one holds it, too, and what the same rounding makes of it.
    Proof: [design, post-processing] the lower end only falls and the upper one only rises, to multiples of the step;
        rounding never falls as numbers rise, and leaves multiples of the step as they are.
    Assumes: the numbers were released.
    Rounds: ends outward.

    Attributes:
        step: numbers become multiples of it.
        way: one of WAYS.
        first: what was done before, or None.

    >>> told = Rounding(0.1).told(np.array([12.34]), np.array([11.28]), np.array([13.4]))
    >>> [column.tolist() for column in told]
    [[12.3], [11.2], [13.4]]
    """

    step: float
    way: str = "ROUND"
    first: Rounding | None = None

    def told(self, value: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Return values with their lower and upper ends as they are shown."""
        if self.first is not None:
            value, lower, upper = self.first.told(value, lower, upper)
        low, high = self._by(lower, "FLOOR"), self._by(upper, "CEIL")
        low = np.where(low > lower, low - self.step, low)
        high = np.where(high < upper, high + self.step, high)
        return np.clip(self._one(value), low, high), low, high

    def rounded(self, numbers: Floats) -> Floats:
        """Return the multiples of the step that numbers become."""
        return self._one(numbers if self.first is None else self.first.rounded(numbers))

    def after(self, first: Rounding | None) -> Rounding:
        """Return this rounding of what another one left; multiples of the step stay as they are.

        >>> Rounding(0.01).after(Rounding(1, "FLOOR"))
        Rounding(step=1, way='FLOOR', first=None)
        """
        if first is None:
            return self
        times = first.step / self.step
        multiple = round(times) >= 1 and abs(times - round(times)) <= _ALMOST * times
        return first if multiple else replace(self, first=first if self.first is None else self.first.after(first))

    def times(self, factor: float) -> Rounding:
        """Return what it is to numbers that are multiplied by a factor afterwards.

        >>> Rounding(0.5).times(4)
        Rounding(step=2.0, way='ROUND', first=None)
        """
        return Rounding(self.step * factor, self.way, None if self.first is None else self.first.times(factor))

    def _one(self, numbers: Floats) -> Floats:
        """Return the multiples of the step that numbers become by this rounding alone."""
        return self._by(numbers, self.way)

    def _by(self, numbers: Floats, way: str) -> Floats:
        """Return multiples of the step; a number that is one but for arithmetic, as 1.1 in steps of .01, stays it."""
        steps = self._steps(numbers)
        near = np.round(steps)
        with np.errstate(invalid="ignore"):
            return self._back(np.where(np.abs(steps - near) <= _ALMOST, near, WAYS[way](steps)), numbers)

    def __str__(self) -> str:
        return f"{self.step:g}"

    @property
    def _parts(self) -> float:
        """How many steps are in one, if a whole number; 0 if not."""
        parts = float(np.round(1 / self.step))
        return parts if parts >= 1 and abs(parts * self.step - 1) <= _ALMOST else 0.0

    def _steps(self, numbers: Floats) -> Floats:
        """Return numbers in steps."""
        return numbers * self._parts if self._parts else numbers / self.step

    def _back(self, steps: Floats, numbers: Floats) -> Floats:
        """Return whole steps as numbers; those that have no fraction anyway stay as they are."""
        back = steps / self._parts if self._parts else steps * self.step
        return np.asarray(np.where(np.abs(steps) < _EXACT, back, numbers) + 0.0)  # no zero has a sign
