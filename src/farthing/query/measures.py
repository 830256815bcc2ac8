"""The bounded whole numbers a group that engines return: rows, units, values, and totals of clamped values on a grid.

Each has a known sensitivity: the most that one unit adds to one group.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from farthing.errors import InvalidBounds
from farthing.query.bounding import refuse_too_narrow
from farthing.query.ranges import FINE_BITS, LARGEST_ADDED, SMALLEST_ADDED, STEP_BITS, check_range

if TYPE_CHECKING:
    from farthing.query.expressions import Scalar


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, or rows where a value is there: of n of one unit in a group, min(n, max_rows) count.

    A value is there where it is neither NULL nor NaN: the count and the total of a value speak of the same rows.
    """

    value: Scalar | None = None

    def canonical(self) -> str:
        """Return the identity text."""
        return "count(*)" if self.value is None else f"count({self.value.canonical()})"

    def __str__(self) -> str:
        return "rows" if self.value is None else f"rows with {self.value}"

    def sensitivity(self, max_rows: int) -> int:
        """Return the most that one unit adds to one group."""
        return max_rows

    @property
    def step_log2(self) -> int:
        """The exponent of what one unit of the whole number stands for."""
        return 0

    @property
    def step(self) -> float:
        """What one unit of the whole number stands for."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Units:
    """Privacy units with at least one row (where a value is there, neither NULL nor NaN, if one is named)."""

    value: Scalar | None = None

    def canonical(self) -> str:
        """Return the identity text."""
        return "units" if self.value is None else f"units({self.value.canonical()})"

    def __str__(self) -> str:
        return "units" if self.value is None else f"units with a {self.value}"

    def sensitivity(self, max_rows: int) -> int:  # noqa: ARG002  # one unit is one, whatever its rows
        """Return the most that one unit adds to one group."""
        return 1

    @property
    def step_log2(self) -> int:
        """The exponent of what one unit of the whole number stands for."""
        return 0

    @property
    def step(self) -> float:
        """What one unit of the whole number stands for."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Distinct:
    """Different values that rows of a group have, where of those of one unit at most max_rows count.

    The ones that count are those whose keyed hash of (unit, group's place, value) comes first. A value that several
    units have counts once. NULL and NaN are not values; 0.0 and -0.0 are one.

    Guarantee: one unit adds at most `sensitivity(max_rows)` to one group, and never less than 0.
    Proof: docs/proofs/engines.bounded.md, "Different values".
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: nothing.
    """

    value: Scalar

    def canonical(self) -> str:
        """Return the identity text."""
        return f"values({self.value.canonical()})"

    def __str__(self) -> str:
        return f"different values of {self.value}"

    def sensitivity(self, max_rows: int) -> int:
        """Return the most that one unit adds to one group: no more values count than rows would."""
        return Rows().sensitivity(max_rows)

    @property
    def step_log2(self) -> int:
        """The exponent of what one unit of the whole number stands for."""
        return 0

    @property
    def step(self) -> float:
        """What one unit of the whole number stands for."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of (clamp(value, lower, upper) - centre)^power - less over rows where the value is a number, on a grid.

    Each row gives the whole number nearest to x / fine (of two the even one), x its clamped and centred power, less
    `less`, in float64 and fine = 2^-16 step, step a power of two. Of n rows of one unit in a group, with whole sum S,
    the unit adds S where n <= max_rows and else S * max_rows / n, rounded down. A group's T becomes
    floor(T / 2^16 + 1/2) steps, once: so rounding is half a step however many rows are alike. NULL and NaN rows do not
    count; infinities are clamped like any number.

    Attributes:
        value: a numeric scalar.
        lower, upper: the clamps, lower < upper.
        centre: subtracted after clamping; a multiple of the first power's step.
        power: 1 or 2.
        less: subtracted from every square; half of the largest one halves what one row adds at most. 0 for power 1.
    """

    value: Scalar
    lower: float
    upper: float
    centre: float = 0.0
    power: int = 1
    less: float = 0.0

    def __post_init__(self) -> None:
        check_range(self.lower, self.upper)
        if not SMALLEST_ADDED <= self._largest <= LARGEST_ADDED:
            raise InvalidBounds(
                f"the range of the values is too {'small' if self._largest < 1 else 'large'} to be added up",
                rule=f"the most that one row adds to the {self} is from {SMALLEST_ADDED:g} to {LARGEST_ADDED:g}",
                got=f"lower={self.lower!r}, upper={self.upper!r}: {self._largest:g}",
                next_step="clamp the values to another range, or ask for them in other units: fare / 1e9",
            )
        refuse_too_narrow(self.lower, self.upper)

    def __str__(self) -> str:
        centre = f" - {self.centre:g}" if self.centre else ""
        less = f", each less {self.less:g}" if self.less else ""
        return f"sum of {'squares of ' if self.power == 2 else ''}({self.value}{centre}){less}"

    @property
    def step_log2(self) -> int:
        """The exponent of the grid."""
        return math.frexp(self._largest)[1] - STEP_BITS

    @property
    def step(self) -> float:
        """What one unit of the whole number stands for."""
        return math.ldexp(1.0, self.step_log2)

    @property
    def _largest(self) -> float:
        """Return the largest magnitude that one row adds."""
        largest = max(abs(self.lower - self.centre), abs(self.upper - self.centre))
        return max(abs(largest * largest - self.less), abs(self.less)) if self.power == 2 else largest

    def sensitivity(self, max_rows: int) -> int:
        """Return the most that one unit adds to one group, in steps: whole, so that rounding a total keeps it."""
        return -(-self.finest(max_rows) >> FINE_BITS)

    @property
    def fine_log2(self) -> int:
        """The exponent of the grid of a row's value."""
        return self.step_log2 - FINE_BITS

    def finest(self, max_rows: int) -> int:
        """Return the most that one unit adds to one group, on the grid of a row's value."""
        return round(math.ldexp(self._largest, -self.fine_log2)) * max_rows

    def canonical(self) -> str:
        """Return the identity text."""
        less = [self.less] if self.less else []
        return json.dumps(["total", self.value.canonical(), self.lower, self.upper, self.centre, self.power, *less])


Measure: TypeAlias = Rows | Units | Distinct | Total
