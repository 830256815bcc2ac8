"""Plans of several quantiles of one column at once under a pure budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.joint_chains import JointChains
from farthing.planning.joint_quantiles import JointStanding, answers_of, goals, settled_by, words
from farthing.planning.quantile_chains import limit_of, plan_on_chains, require_shown
from farthing.planning.quantile_sought import QuantileSought
from farthing.privacy.loss import Pure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.joint_chain_run import JointChainTrail
    from farthing.accuracy.joint_chains import JointChainsState
    from farthing.planning.frame import Frame
    from farthing.planning.joint_quantiles import ToldTogether
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

    def found(self, state: ToldTogether) -> tuple[QuantileFound, ...]:
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
    answered, groups = standing.answer(pricing.sought) is not None, frame.query.groups
    waits = np.zeros(groups, np.bool_) if answered else pricing.replayed(groups).waits
    return plan_on_chains(frame, pricing, held=pricing.held, cap=pricing.search.cap, waits=waits)


def _pricing(frame: Frame, standing: JointStanding[JointChainTrail]) -> JointChainsPricing:
    """Return how the question will be measured."""
    search = JointChains(goals(frame), frame.beta, limit_of(frame, standing.trail), frame.spend)
    require_shown(search.plans[0].lowest, search.cap, frame.query.max_rows)
    sought = tuple(
        QuantileSought(one.rank, 0.0, 0.0, frame.beta, search.cap, frame.spend, one.steps) for one in search.asked
    )
    most, served = frame.query.max_groups, standing.served(sought)
    return JointChainsPricing(words(frame.query), search, most, sought, standing.trail, served)
