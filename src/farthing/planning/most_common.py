"""The plan of a question about the largest groups only: a private choice of them, then the question on those."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.planning.plan import Pricing
    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True)
class MostCommonPricing:
    """A choice of the largest groups, then the question on those that were chosen.

    Attributes:
        how: the choice in words.
        choice: its price; zero where it was made before.
        then: how the question is measured on the chosen groups.
    """

    how: str
    choice: Booked
    then: Pricing

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (self.how, *self.then.steps)

    @property
    def gives_up(self) -> bool:
        """Whether chosen groups for which the target is hopeless are given up early."""
        return self.then.gives_up

    def price(self, size: float) -> Booked:
        """Return about what the members of a chosen group of this size would pay."""
        return self.choice + self.then.price(size)

    def width(self, size: float) -> float:
        """Return the half-width that such a group ends with."""
        return self.then.width(size)

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that what this loss leaves after the choice would reach; infinite if none."""
        return self.then.affordable(remaining - self.choice) if remaining > self.choice else math.inf
