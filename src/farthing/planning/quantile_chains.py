"""Plans of one quantile under a pure budget: a search through Laplace chains at a few thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from farthing.accuracy.quantile_chain_run import LEVELS
from farthing.accuracy.quantile_chains import QuantileChains
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.mechanisms.gaussian import highest_level, worst_cost
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.quantile_sought import QuantileSought, goal_of
from farthing.privacy.loss import Pure
from farthing.query.aggregates import Quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.joint_chain_run import JointChainTrail
    from farthing.accuracy.quantile_bisection import QuantileState
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan, Pricing
    from farthing.planning.quantile_sought import QuantileFound, QuantileStanding
    from farthing.privacy.loss import Booked

P = TypeVar("P", bound="Pricing")


@dataclass(frozen=True, slots=True, eq=False)
class QuantileChainsPricing:
    """The rows on both sides of a few thresholds, shown ever finer where the rank seems right.

    Attributes:
        asked: the aggregate in words.
        search: the thresholds and looks.
        max_groups: the most groups that one unit can move.
        sought: what is looked for.
        held: what earlier answers of the question were shown.
        served: what earlier answers tell of groups that they serve; None for no group.
    """

    asked: str
    search: QuantileChains
    max_groups: int
    sought: QuantileSought
    held: Trail | None = None
    served: QuantileFound | None = None

    def replayed(self, groups: int) -> QuantileState:
        """Return what is known of so many groups without measuring anything."""
        held = Trail.nothing(groups) if self.held is None else self.held
        return self.search.run(None, groups=groups, held=held, settled=self.settled(groups))

    def settled(self, groups: int) -> NDArray[np.bool_]:
        """Return the groups that earlier answers serve."""
        return np.zeros(groups, np.bool_) if self.served is None else self.served.met

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        seems = "around the likely place" if self.search.by_value else "where the rank seems right"
        return (
            f"{self.asked} by a search: rows on both sides of a few thresholds, with two-sided geometric noise",
            f"{seems}, finer looks until that is proved; of these the last alone is paid",
        )

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return True

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        return Pure.of_farthings(self.search.typical(size))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on how the values lie
        """Return infinity: how near the value comes depends on how the values lie."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_quantile_chains(frame: Frame, standing: QuantileStanding) -> Plan[QuantileChainsPricing]:
    """Return the plan of a quantile under a pure budget, given what stands of it.

    Raises:
        InvalidTarget: a rank and a value are asked for at once.
        InvalidBounds: one unit may move more rows than the price allowed can hide.
    """
    pricing = _pricing(frame, standing)
    answered, groups = standing.answer(pricing.sought) is not None, frame.query.groups
    waits = np.zeros(groups, np.bool_) if answered else pricing.replayed(groups).waits
    return plan_on_chains(frame, pricing, held=pricing.held, cap=pricing.search.cap, waits=waits)


def plan_on_chains(
    frame: Frame, pricing: P, *, held: Trail | JointChainTrail | None, cap: int, waits: NDArray[np.bool_]
) -> Plan[P]:
    """Return the plan of one quantile or several under a pure budget, of which some groups wait for an answer.

    Each of these may pay up to its cap; all of it where chains begin again.
    """
    most, groups = frame.query.max_groups, frame.query.groups
    paid = np.zeros(groups, np.int64) if held is None else held.paid
    new = np.maximum(np.where(waits, cap - paid, 0), 0)
    free = not new.any()
    return frame.plan(
        cap=frame.cap or frame.remaining + Pure.of_farthings(worst_cost(paid, most)),
        target_price=None,
        worst_price=Pure.of_farthings(worst_cost(paid + new, most) - worst_cost(paid, most)),
        fresh_price=Pure.of_farthings(0 if free else cap * min(most, groups)),
        half_width=math.inf,
        reachable=False,
        free=free,
        pricing=pricing,
    )


def _pricing(frame: Frame, standing: QuantileStanding) -> QuantileChainsPricing:
    """Return how the question will be measured."""
    query, aggregate = frame.query, frame.query.aggregate
    assert isinstance(aggregate, Quantile)  # noqa: S101  # callers plan quantiles
    asked = goal_of(aggregate, query.max_rows, frame.ranks[0])
    relative, absolute = (0.0, 0.0) if frame.target is None else (frame.target.relative, frame.target.absolute)
    if asked.rank and frame.target is not None:
        raise InvalidTarget(
            "a pure budget finds a quantile by rank or by value",
            rule="one of both targets",
            got=frame.goal,
            next_step="leave one of them out, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    search = QuantileChains(asked, frame.beta, limit_of(frame, standing.trail), frame.spend, relative, absolute)
    require_shown(search.lowest, search.cap, query.max_rows)
    sought = QuantileSought(asked.rank, relative, absolute, frame.beta, search.cap, frame.spend, asked.steps)
    held, served = standing.trail, standing.served(sought)
    return QuantileChainsPricing(str(aggregate), search, query.max_groups, sought, held, served)


def limit_of(frame: Frame, held: Trail | JointChainTrail | None) -> int:
    """Return the most farthings that a group may pay: its part of the cap, or what is left and what it has paid."""
    most = frame.query.max_groups
    top = [0] * most
    if frame.cap is None and held is not None:
        top = (top + np.sort(held.paid).tolist())[-most:]
    level = highest_level((frame.cap or frame.remaining).farthings, tuple(top))
    return max(1, min(level, MOST_FARTHINGS))


def require_shown(lowest: int, cap: int, max_rows: int) -> None:
    """Refuse a question whose first look, at the lowest level that hides a unit's rows, is beyond a group's cap."""
    if lowest >= len(LEVELS) or LEVELS[lowest] > cap:
        raise InvalidBounds(
            "one unit may have too many rows in a group for this price",
            rule="an epsilon a group of at least 2^-40 for each row of a unit",
            got=f"max_rows={max_rows} for {Pure.of_farthings(cap)!r} a group",
            next_step="bound max_rows more tightly, or allow a larger price",
        )
