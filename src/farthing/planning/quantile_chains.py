"""Plans of one quantile under a pure budget: a search through Laplace chains at a few thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.quantile_chain_run import LEVELS
from farthing.accuracy.quantile_chains import QuantileChains
from farthing.accuracy.quantile_ranks import QuantileGoal
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.mechanisms.gaussian import highest_level, worst_cost
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.quantile_sought import QuantileSought
from farthing.privacy.loss import Pure
from farthing.query.aggregates import Quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bisection import QuantileState
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.planning.quantile_sought import QuantileFound, QuantileStanding
    from farthing.privacy.loss import Booked


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
    most, cap = pricing.max_groups, pricing.search.cap
    paid = np.zeros(frame.query.groups, np.int64) if pricing.held is None else pricing.held.paid
    free, increase, fresh = standing.answer(pricing.sought) is not None, 0, 0
    if not free:
        new = np.maximum(np.where(pricing.replayed(frame.query.groups).waits, cap - paid, 0), 0)
        increase, free = worst_cost(paid + new, most) - worst_cost(paid, most), not new.any()
        fresh = 0 if free else cap * min(most, frame.query.groups)
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


def _pricing(frame: Frame, standing: QuantileStanding) -> QuantileChainsPricing:
    """Return how the question will be measured."""
    query, aggregate = frame.query, frame.query.aggregate
    assert isinstance(aggregate, Quantile)  # noqa: S101  # callers plan quantiles
    asked = QuantileGoal(
        aggregate.q, aggregate.lower, aggregate.upper, aggregate.leaves_log2, query.max_rows, frame.ranks[0] or 0.0
    )
    relative, absolute = (0.0, 0.0) if frame.target is None else (frame.target.relative, frame.target.absolute)
    if asked.rank and frame.target is not None:
        raise InvalidTarget(
            "a pure budget finds a quantile by rank or by value",
            rule="one of both targets",
            got=frame.goal,
            next_step="leave one of them out, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    search = QuantileChains(asked, frame.beta, _limit(frame, standing.trail), frame.spend, relative, absolute)
    if search.lowest >= len(LEVELS) or LEVELS[search.lowest] > search.cap:
        raise InvalidBounds(
            "one unit may have too many rows in a group for this price",
            rule="an epsilon a group of at least 2^-40 for each row of a unit",
            got=f"max_rows={query.max_rows} for {Pure.of_farthings(search.cap)!r} a group",
            next_step="bound max_rows more tightly, or allow a larger price",
        )
    sought = QuantileSought(asked.rank, relative, absolute, frame.beta, search.cap, frame.spend, asked.steps)
    held, served = standing.trail, standing.served(sought)
    return QuantileChainsPricing(str(aggregate), search, query.max_groups, sought, held, served)


def _limit(frame: Frame, held: Trail | None) -> int:
    """Return the most farthings that a group may pay: its part of the cap, or what is left and what it has paid."""
    top = (0,) * frame.query.max_groups
    if frame.cap is None and held is not None:
        paid = np.sort(held.paid)[-frame.query.max_groups :].tolist()
        top = (0,) * (frame.query.max_groups - len(paid)) + tuple(paid)
    level = highest_level((frame.cap or frame.remaining).farthings, top)
    return max(1, min(level, MOST_FARTHINGS))
