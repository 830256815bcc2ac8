"""The plan of a question that consists of several."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from farthing.query.words import about, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.planning.plan import Plan, Pricing
    from farthing.privacy.loss import Booked
    from farthing.query.query import Query


@dataclass(frozen=True, slots=True)
class MixedQuestionPricing:
    """Several measurements of the same groups."""

    parts: tuple[Pricing, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return tuple(step for part in self.parts for step in part.steps)

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return any(part.gives_up for part in self.parts)

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this size would pay."""
        return reduce(add, (part.price(size) for part in self.parts))

    def width(self, size: float) -> float:  # noqa: ARG002  # the parts have units of their own
        """Return infinity: there is no one width."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # the parts have units of their own
        """Return infinity: there is no one width."""
        return math.inf


def plan_mixed_question(query: Query, goal: str, plans: Sequence[Plan]) -> Plan:
    """Return the plan of a question that is asked as several."""
    return replace(
        plans[0],
        question=describe(query),
        about=about(query),
        goal=goal,
        worst_price=reduce(add, (plan.worst_price for plan in plans)),
        fresh_price=reduce(add, (plan.fresh_price for plan in plans)),
        target_price=None,
        cap=reduce(add, (plan.cap for plan in plans)),
        half_width=math.inf,
        reachable=all(plan.reachable for plan in plans),
        hopeless=any(plan.hopeless for plan in plans),
        free=all(plan.free for plan in plans),
        pricing=MixedQuestionPricing(tuple(plan.pricing for plan in plans)),
    )
