"""Plans of several quantiles of one column at once under a pure budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.joint_chains import JointChains
from farthing.accuracy.quantile_chain_run import LEVELS
from farthing.errors import InvalidBounds
from farthing.mechanisms.gaussian import highest_level, worst_cost
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.joint_quantiles import JointStanding, answers_of, goals, settled_by, words
from farthing.planning.quantile_sought import QuantileSought
from farthing.privacy.loss import Pure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.joint_chain_run import JointChainTrail
    from farthing.accuracy.joint_chains import JointChainsState
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.planning.quantile_sought import QuantileFound
    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True, eq=False)
class JointChainsPricing:
    """The rows in the bins between thresholds of all quantiles, shown ever finer until every one is settled.

    Attributes:
        asked: the quantiles in words.
        search: the thresholds and looks.
        max_groups: the most groups that one unit can move.
        sought: what is looked for of each.
        held: what earlier answers of the question were shown.
        served: of each quantile, what earlier answers tell of groups that they serve; None for no group.
    """

    asked: str
    search: JointChains
    max_groups: int
    sought: tuple[QuantileSought, ...]
    held: JointChainTrail | None = None
    served: tuple[QuantileFound | None, ...] = ()

    def replayed(self, groups: int) -> JointChainsState:
        """Return what is known without measuring anything."""
        return self.search.run(None, groups=groups, held=self.held, settled=self.settled(groups))

    def settled(self, groups: int) -> NDArray[np.bool_]:
        """Return bool[groups, quantiles], what earlier answers serve."""
        return settled_by(self.served, groups)

    def found(self, state: JointChainsState) -> tuple[QuantileFound, ...]:
        """Return the answer of each quantile: what a run came to, and what earlier answers serve."""
        return answers_of(self.sought, state, self.served)

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (
            f"{self.asked} together: rows between a few thresholds of each, with two-sided geometric noise",
            "where the ranks seem right, finer looks until that is proved; of these the last alone is paid",
        )

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return True

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        return Pure.of_farthings(self.search.typical(size))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on how the values lie
        """Return infinity: how near the values come depends on how they lie."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_joint_chains(frame: Frame, standing: JointStanding[JointChainTrail]) -> Plan[JointChainsPricing]:
    """Return the plan of several quantiles at once under a pure budget, given what stands of them.

    Raises:
        InvalidBounds: one unit may move more rows than the price allowed can hide.
    """
    pricing = _pricing(frame, standing)
    most, cap, groups = pricing.max_groups, pricing.search.cap, frame.query.groups
    paid = np.zeros(groups, np.int64) if pricing.held is None else pricing.held.paid
    answers = zip(standing.each, pricing.sought, strict=True)
    free, increase, fresh = all(each.answer(one) is not None for each, one in answers), 0, 0
    if not free:
        new = np.maximum(np.where(pricing.replayed(groups).waits, cap - paid, 0), 0)
        increase, free = worst_cost(paid + new, most) - worst_cost(paid, most), not new.any()
        fresh = 0 if free else cap * min(most, groups)
    return frame.plan(
        cap=frame.cap or frame.remaining + Pure.of_farthings(worst_cost(paid, most)),
        target_price=None,
        worst_price=Pure.of_farthings(increase),
        fresh_price=Pure.of_farthings(fresh),
        half_width=math.inf,
        reachable=False,
        free=free,
        pricing=pricing,
    )


def _pricing(frame: Frame, standing: JointStanding[JointChainTrail]) -> JointChainsPricing:
    """Return how the question will be measured."""
    most, held = frame.query.max_groups, standing.trail
    top = [0] * most
    if frame.cap is None and held is not None:
        top = ([0] * most + np.sort(held.paid).tolist())[-most:]
    level = highest_level((frame.cap or frame.remaining).farthings, tuple(top))
    search = JointChains(goals(frame), frame.beta, max(1, min(level, MOST_FARTHINGS)), frame.spend)
    lowest = search.plans[0].lowest
    if lowest >= len(LEVELS) or LEVELS[lowest] > search.cap:
        raise InvalidBounds(
            "one unit may have too many rows in a group for this price",
            rule="an epsilon a group of at least 2^-40 for each row of a unit",
            got=f"max_rows={frame.query.max_rows} for {Pure.of_farthings(search.cap)!r} a group",
            next_step="bound max_rows more tightly, or allow a larger price",
        )
    sought = tuple(
        QuantileSought(one.rank, 0.0, 0.0, frame.beta, search.cap, frame.spend, one.steps) for one in search.asked
    )
    served = tuple(each.served(one) for each, one in zip(standing.each, sought, strict=True))
    return JointChainsPricing(words(frame.query), search, most, sought, held, served)
