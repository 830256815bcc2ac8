"""Counts of different values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from farthing.query.measures import Distinct

if TYPE_CHECKING:
    from farthing.query.expressions import Scalar
    from farthing.query.measures import Measure


@dataclass(frozen=True, slots=True)
class CountValues:
    """COUNT(DISTINCT value): the different values that the rows of a group have, of each unit at most max_rows.

    NULL and NaN are not values, and there is one zero.
    """

    value: Scalar
    form: ClassVar[str] = "linear"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        return (Distinct(self.value),)

    def canonical(self) -> str:
        """Return the identity text."""
        return self.measures[0].canonical()

    def __str__(self) -> str:
        return f"COUNT(DISTINCT {self.value})"
