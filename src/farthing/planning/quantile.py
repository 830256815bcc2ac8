"""Plans of one quantile: a search to a target, or one choice by the exponential mechanism at a named loss.

Under a pure budget it is a search through Laplace chains (`planning.quantile_chains`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_choice import ExponentialQuantile
from farthing.accuracy.quantile_ranks import WHOLE, QuantileGoal
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.mechanisms.gaussian import Coin, worst_cost
from farthing.planning.quantile_chains import QuantileChainsPricing, plan_quantile_chains
from farthing.planning.quantile_sought import QuantileSought, goal_of, refuse_too_fine
from farthing.privacy.loss import BoundedRange, Pure
from farthing.privacy.residue import choices
from farthing.query.aggregates import Quantile
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bisection import QuantileState
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.planning.quantile_sought import QuantileFound, QuantileStanding
    from farthing.privacy.loss import Booked

MOST_SPREAD: Final = 1 << 40
"""The furthest that one unit may move ranks, in 2^-20 rows, for a private choice."""

_HELD: Final = (1 << 63) - 1  # grains that can be counted


@dataclass(frozen=True, slots=True, eq=False)
class QuantileBisectionPricing:
    """Noisy counts below thresholds, each refined until its side is sure.

    Attributes:
        asked: the aggregate in words.
        descent: the thresholds and looks.
        coin: how grains turn into loss.
        sought: what is looked for.
        held: what earlier answers of the question measured.
        served: what earlier answers tell of groups that they serve; None for no group.
    """

    asked: str
    descent: QuantileBisection
    coin: Coin
    sought: QuantileSought
    held: Trail | None = None
    served: QuantileFound | None = None

    def replayed(self, groups: int) -> QuantileState:
        """Return what is known of so many groups without measuring anything."""
        held = Trail.nothing(groups) if self.held is None else self.held
        return self.descent.replayed(held, self.settled(groups))

    def settled(self, groups: int) -> NDArray[np.bool_]:
        """Return the groups that earlier answers serve."""
        return np.zeros(groups, np.bool_) if self.served is None else self.served.met

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        search = f"{self.asked} by bisection: rows below a few thresholds, with Gaussian noise"
        return "the count, with Gaussian noise", search

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return True

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        return replace(self.coin, max_groups=1).loss(min(self.descent.typical(int(size)), self.descent.cap_grains))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on how the values lie
        """Return infinity: how near the value comes depends on how the values lie."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


@dataclass(frozen=True, slots=True)
class QuantileChoicePricing:
    """One private choice among the leaves of the range, at a named loss.

    Attributes:
        asked: the aggregate in words.
        quantile: the mechanism.
        most: what the choice pays a group, in farthings of epsilon.
        currency: of the books.
        max_groups: the most groups that one unit can move.
        sought: what is looked for.
    """

    asked: str
    quantile: ExponentialQuantile
    most: int
    currency: type[Booked]
    max_groups: int
    sought: QuantileSought

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (f"{self.asked} chosen by the exponential mechanism",)

    @property
    def gives_up(self) -> bool:
        """All groups are chosen for alike."""
        return False

    def loss(self, farthings: int) -> Booked:
        """Return the loss of a unit in all its groups, of a choice at these farthings a group."""
        if self.currency is Pure:
            return Pure.of_farthings(farthings * self.max_groups)
        return choices(BoundedRange.of_amount(farthings * FARTHING), self.max_groups, self.currency)

    def price(self, size: float) -> Booked:  # noqa: ARG002  # all groups are chosen for alike
        """Return what the members of a group of this many rows would pay."""
        return replace(self, max_groups=1).loss(self.most)

    def width(self, size: float) -> float:  # noqa: ARG002  # the promise is about ranks
        """Return infinity: the promise is about ranks."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


QuantilePricing: TypeAlias = QuantileBisectionPricing | QuantileChoicePricing | QuantileChainsPricing
"""The ways in which a quantile is found."""


def plan_quantile(frame: Frame, standing: QuantileStanding) -> Plan[QuantilePricing]:
    """Return the plan of a quantile, given what stands of it; refuse a target that no values meet."""
    refuse_too_fine(frame)
    if frame.budget.currency is Pure and (frame.target is not None or frame.ranks[0] is not None):
        return plan_quantile_chains(frame, standing)
    pricing = _pricing(frame, standing)
    nothing = frame.budget.currency.of_farthings(0)
    free, increase, fresh = standing.answer(pricing.sought) is not None, nothing, nothing
    if not free and isinstance(pricing, QuantileChoicePricing):
        increase = fresh = pricing.loss(pricing.most)
    elif not free and isinstance(pricing, QuantileBisectionPricing):
        most, new = _worst(pricing, frame.query.groups)
        free = new == 0
        increase, fresh = pricing.coin.loss(most), pricing.coin.loss(new)
    return frame.plan(
        cap=frame.cap or _all(frame, pricing),
        target_price=None,
        worst_price=increase,
        fresh_price=fresh,
        half_width=math.inf,
        reachable=frame.target is None and frame.ranks[0] is None,
        free=free,
        pricing=pricing,
    )


def _all(frame: Frame, pricing: QuantilePricing) -> Booked:
    """Return what a question may cost in all where no cap was named: what is left, and what it has cost before."""
    if not isinstance(pricing, QuantileBisectionPricing) or pricing.held is None:
        return frame.remaining
    return frame.remaining + pricing.coin.loss(worst_cost(pricing.held.paid, pricing.coin.max_groups))


def _worst(pricing: QuantileBisectionPricing, groups: int) -> tuple[int, int]:
    """Return the most grains that a unit is charged, over what stands and for new measurements alone.

    A group that waits for more reads at most its cap on the way to its answer, of which it has read some already.
    """
    most = pricing.coin.max_groups
    state = pricing.replayed(groups)
    new = np.where(state.waits, np.maximum(pricing.descent.cap_grains - state.spent, 0), 0)
    paid = np.zeros(groups, np.int64) if pricing.held is None else pricing.held.paid
    return worst_cost(paid + new, most) - worst_cost(paid, most), worst_cost(new, most)


def _pricing(frame: Frame, standing: QuantileStanding) -> QuantilePricing:
    """Return how a quantile is found: by a search to a target, by one private choice at a named loss."""
    query = frame.query
    aggregate = query.aggregate
    assert isinstance(aggregate, Quantile)  # noqa: S101  # callers plan quantiles
    rank, target = frame.ranks[0], frame.target
    named = rank is None and target is None
    if named and aggregate.q in (0.0, 1.0):
        raise InvalidTarget(
            "MIN and MAX need a rank target",
            rule="rank= says in which share of the outermost rows the answer may lie",
            got=frame.goal,
            next_step="rank=0.01",
        )
    asked = goal_of(aggregate, query.max_rows, rank)
    relative, absolute = (0.0, 0.0) if target is None else (target.relative, target.absolute)
    cap = frame.cap or frame.remaining
    if named:
        return _named(frame, _choosing(asked), cap)
    coin = Coin(frame.gaussian, query.max_groups, 1)
    descent = QuantileBisection(asked, frame.beta, _level(frame, coin, standing.trail), relative, absolute, frame.spend)
    sought = QuantileSought(asked.rank, relative, absolute, frame.beta, descent.cap_grains, frame.spend, asked.steps)
    served = standing.served(sought)
    bisection = QuantileBisectionPricing(str(aggregate), descent, coin, sought, standing.trail, served)
    return _within_what_is_left(bisection, frame)


def _level(frame: Frame, coin: Coin, held: Trail | None) -> int:
    """Return the most grains that a group may read for an answer: its cap, or what is left added to what it holds."""
    paid = np.zeros(1, np.int64) if held is None else np.sort(held.paid)
    top: tuple[int, ...] = (0,) * coin.max_groups
    if frame.cap is None and held is not None:
        top = tuple(paid[-coin.max_groups :].tolist())
    return max(min(coin.level(frame.cap or frame.remaining, top), _HELD - int(paid[-1])), 1)


def _within_what_is_left(made: QuantileBisectionPricing, frame: Frame) -> QuantileBisectionPricing:
    """Return the plan with its cap lowered by what is held beside its way, where all that is left may be used."""
    if frame.cap is not None or made.held is None:
        return made
    state = made.replayed(len(made.held.paid))
    beside = int((made.held.paid - state.spent)[state.waits].max(initial=0))
    grains = max(made.descent.cap_grains - max(beside, 0), 1)
    return replace(made, descent=replace(made.descent, cap_grains=grains), sought=replace(made.sought, cap=grains))


def _choosing(asked: QuantileGoal) -> ExponentialQuantile:
    """Return the exponential mechanism's road, unless one unit moves ranks further than it can draw."""
    made = ExponentialQuantile(asked)
    if made.spread > MOST_SPREAD:
        raise _too_many(f"max_rows={asked.max_rows}")
    return made


def _too_many(got: str) -> InvalidBounds:
    """Return the refusal of a choice that one unit could move too far."""
    return InvalidBounds(
        "one unit may have too many rows in a group for a private choice",
        rule=f"max_rows <= {MOST_SPREAD // WHOLE // 2}, and a price that hides so many rows",
        got=got,
        next_step="bound max_rows more tightly, or allow a larger price",
    )


def _named(frame: Frame, mechanism: ExponentialQuantile, cap: Booked) -> QuantileChoicePricing:
    """Return one choice that a named loss is spent on whole, without a count."""
    query, currency = frame.query, frame.budget.currency
    sought = QuantileSought(0.0, 0.0, 0.0, frame.beta, cap.farthings)
    made = QuantileChoicePricing(str(query.aggregate), mechanism, 1, currency, query.max_groups, sought)
    return replace(made, most=_largest(made, cap))


def _largest(made: QuantileChoicePricing, cap: Booked) -> int:
    """Return the most farthings of epsilon that one choice may have under a cap; at least one."""
    low, high = 1, 2
    while made.loss(high) <= cap:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if made.loss(middle) <= cap else (low, middle)
    return low
