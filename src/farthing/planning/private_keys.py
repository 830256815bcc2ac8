"""The plan of a question whose groups are not known yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True)
class PrivateKeysPricing:
    """A search for the groups, then the question on those that were found.

    Attributes:
        search: the price of the search.
        by: the grouping columns.
        most: the most that a group's members pay in all.
    """

    search: Booked
    by: tuple[str, ...]
    most: Booked

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        found = f"the units of every {', '.join(self.by)} with noise; those above a threshold are the groups"
        return found, "then the question, on these groups; its own plan is known once they are"

    @property
    def gives_up(self) -> bool:
        """Not known before the groups are."""
        return False

    def price(self, size: float) -> Booked:  # noqa: ARG002  # not known before the groups are
        """Return the most that the members of a group can pay."""
        return self.most

    def width(self, size: float) -> float:  # noqa: ARG002  # not known before the groups are
        """Return infinity: it is not known before the groups are."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # not known before the groups are
        """Return infinity: it is not known before the groups are."""
        return math.inf


def plan_private_keys(frame: Frame, search: Booked, about: str, by: tuple[str, ...]) -> Plan[PrivateKeysPricing]:
    """Return the plan of a question whose groups are to be found: the search, and the rest of its cap."""
    cap = frame.cap or frame.remaining
    whole = search + cap
    made = frame.plan(
        cap=cap + cap,
        target_price=None,
        worst_price=whole,
        fresh_price=whole,
        half_width=math.inf,
        reachable=False,
        free=False,
        pricing=PrivateKeysPricing(search, by, whole),
    )
    return made.with_note(about)
