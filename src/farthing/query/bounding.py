"""How much one privacy unit may contribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from farthing.errors import InvalidBounds

LARGEST: Final = 1e150
"""The largest magnitude of a clamp: numbers beyond are NULL in arithmetic anyway."""

MOST: Final = 2**31 - 1
"""The largest bound: far beyond what any budget can hide."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that one privacy unit contributes to one answer. What is above is cut, never noticed.

    Attributes:
        max_groups: most groups one unit may be counted in; >= 1, or None when not given.
        max_rows: most rows of one unit counted in each of these groups; >= 1, or None when not given.
        lower, upper: the range that values are clamped into before they are added, averaged or ranked, both or neither;
            finite, lower < upper. An aggregate may name its own.

    >>> Bounds(max_groups=5, max_rows=20).max_rows
    20
    """

    max_groups: int | None = None
    max_rows: int | None = None
    lower: float | None = None
    upper: float | None = None

    @staticmethod
    def auto(loss: Any = None) -> AutoBounds:
        """Return bounds that the session finds privately: those with the least cut and noise together.

        What units contribute is measured once for a question, at this loss, and kept; chosen bounds are powers of two.

        Args:
            loss: what that may cost, in the ledger's currency; None for a hundredth of the budget.

        >>> Bounds.auto()
        AutoBounds(loss=None)
        """
        return AutoBounds(loss)

    def __post_init__(self) -> None:
        for name, value in (("max_groups", self.max_groups), ("max_rows", self.max_rows)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
                raise InvalidBounds(
                    f"{name} is not a usable bound",
                    rule=f"a bound is a whole number from 1 to {MOST}",
                    got=repr(value),
                    next_step="for example Bounds(max_groups=5, max_rows=20)",
                )
        if (self.lower, self.upper) != (None, None):
            _check_range(self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class AutoBounds:
    """Bounds that a session chooses privately for each question: see `Bounds.auto`.

    Attributes:
        loss: what choosing may cost, in the ledger's currency; None for a hundredth of the budget.
    """

    loss: Any = None


def _check_range(lower: object, upper: object) -> None:
    """Refuse what is not a range of numbers."""
    for name, value in (("lower", lower), ("upper", upper)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise InvalidBounds(
                f"{name} is not a usable number",
                rule="values are clamped into [lower, upper]: both are numbers up to 1e150, or neither is given",
                got=repr(value),
                next_step="for example lower=0, upper=200",
            )
    if isinstance(lower, int | float) and isinstance(upper, int | float) and lower >= upper:
        raise InvalidBounds(
            "lower is not below upper",
            rule="lower < upper",
            got=f"lower={lower!r}, upper={upper!r}",
            next_step="swap them, or widen the range",
        )
    if isinstance(lower, int | float) and isinstance(upper, int | float):
        refuse_too_narrow(lower, upper)


def refuse_too_narrow(lower: float, upper: float) -> None:
    """Refuse a range of which float64 cannot hold the square."""
    if not upper - lower >= 1 / LARGEST:
        raise InvalidBounds(
            "lower and upper are too close together",
            rule=f"upper - lower >= {1 / LARGEST:g}",
            got=f"lower={lower!r}, upper={upper!r}",
            next_step="widen the range, or give the values in a smaller unit",
        )
