"""Plans of several quantiles of one column at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from farthing.accuracy.joint_chains import JointChains
from farthing.accuracy.joint_quantiles import JointQuantiles
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin, worst_cost
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.quantile_sought import QuantileFound, QuantileSought, QuantileStanding, goal_of
from farthing.privacy.loss import Pure
from farthing.query.aggregates import Quantile

TYPICAL_ROWS: Final = 10_000
"""The group size for which several quantiles at once and each by itself are compared: a public guess."""

MOST: Final = 20
"""So many quantiles are looked for at once: the work grows with the subsets that are looked at."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.accuracy.joint_quantile_run import JointTrail
    from farthing.accuracy.joint_quantiles import JointQuantilesState
    from farthing.accuracy.quantile_ranks import QuantileGoal
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked
    from farthing.query.query import Query

    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

T = TypeVar("T")


class ToldTogether(Protocol):
    """What a run ends with, [groups, quantiles]."""

    @property
    def value(self) -> Float64:
        """The quantiles."""

    @property
    def lower(self) -> Float64:
        """The lower ends of intervals that hold them."""

    @property
    def upper(self) -> Float64:
        """The upper ends."""

    @property
    def met(self) -> Flags:
        """Whether the rank is surely within the target."""


class ToldQuantile(NamedTuple):
    """What a run told of one of the quantiles, one entry a group."""

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    by_rank: Flags


@dataclass(frozen=True, slots=True, eq=False)
class JointStanding(Generic[T]):
    """What stands of several quantiles.

    Attributes:
        each: the answers of each quantile.
        trail: what was measured for them; None if there is nothing.
    """

    each: tuple[QuantileStanding, ...]
    trail: T | None = None

    @classmethod
    def nothing(cls, many: int) -> JointStanding[T]:
        """Return what stands of so many quantiles at the start."""
        return cls((QuantileStanding(),) * many)

    def answer(self, asked: Sequence[QuantileSought]) -> tuple[QuantileFound, ...] | None:
        """Return of each the newest answer that serves as a whole; None where one of them has none."""
        found = [each.answer(one) for each, one in zip(self.each, asked, strict=True)]
        served = tuple(one for one in found if one is not None)
        return served if len(served) == len(found) else None

    def served(self, asked: Sequence[QuantileSought]) -> tuple[QuantileFound | None, ...]:
        """Return of each what earlier answers tell of the groups that they serve; None for none of them."""
        return tuple(each.served(one) for each, one in zip(self.each, asked, strict=True))

    @property
    def newest(self) -> tuple[QuantileFound, ...]:
        """The newest answer of each."""
        return tuple(each.newest for each in self.each)

    def then(self, found: Sequence[QuantileFound], trail: T | None) -> JointStanding[T]:
        """Return what stands after one more answer of each, with another trail."""
        return JointStanding(tuple(each.then(one, None) for each, one in zip(self.each, found, strict=True)), trail)


@dataclass(frozen=True, slots=True, eq=False)
class JointQuantilePricing:
    """Noisy counts below one threshold of each quantile, all in one measurement, until every one is settled.

    Attributes:
        asked: the quantiles in words.
        search: the thresholds and looks.
        coin: how grains turn into loss.
        sought: what is looked for of each.
        held: what earlier answers of the question measured.
        served: of each quantile, what earlier answers tell of groups that they serve; None for no group.
    """

    asked: str
    search: JointQuantiles
    coin: Coin
    sought: tuple[QuantileSought, ...]
    held: JointTrail | None = None
    served: tuple[QuantileFound | None, ...] = ()

    def replayed(self, groups: int) -> JointQuantilesState:
        """Return what is known without measuring anything."""
        return self.search.run(None, None, groups=groups, held=self.held, settled=self.settled(groups))

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
            "the count, with Gaussian noise",
            f"{self.asked} together: rows below a few thresholds of each, with Gaussian noise that they share",
        )

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return True

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        typical = self.search.typical(max(1, int(size)))
        return replace(self.coin, max_groups=1).loss(min(typical, self.search.cap_grains))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on how the values lie
        """Return infinity: how near the values come depends on how they lie."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def settled_by(served: Sequence[QuantileFound | None], groups: int) -> Flags:
    """Return bool[groups, quantiles], what earlier answers serve."""
    none = np.zeros(groups, np.bool_)
    return np.stack([none if one is None else one.met for one in served], axis=1)


def answers_of(
    sought: Sequence[QuantileSought], state: ToldTogether, served: Sequence[QuantileFound | None]
) -> tuple[QuantileFound, ...]:
    """Return the answer of each quantile: what a run came to, and what earlier answers serve."""
    columns = zip(state.value.T, state.lower.T, state.upper.T, state.met.T, strict=True)
    told = [ToldQuantile(*each, each[-1]) for each in columns]
    pairs = zip(sought, told, served, strict=True)
    return tuple(QuantileFound.of(one, each, before) for one, each, before in pairs)  # type: ignore[arg-type]


def goals(frame: Frame) -> tuple[QuantileGoal, ...]:
    """Return what is looked for, rank targets as they were asked."""
    query = frame.query
    ranked = [(output.aggregate, rank) for output, rank in zip(query.outputs, frame.ranks, strict=True)]
    return tuple(
        goal_of(one, query.max_rows, rank) for one, rank in ranked if isinstance(one, Quantile) and rank is not None
    )


def cheaper_together(frame: Frame) -> bool:
    """Return whether several quantiles of one column are cheaper at once than each by itself, for groups of a usual
    size: by rank.
    """
    many = len(frame.query.outputs)
    if frame.share < 1 or not 1 < many <= MOST:
        return False
    if any(frame.targets) or any(rank is None for rank in frame.ranks):
        return False
    if frame.budget.currency is Pure:
        search = JointChains(goals(frame), frame.beta, MOST_FARTHINGS)
        return search.typical(TYPICAL_ROWS) < sum(one.typical(TYPICAL_ROWS) for one in search.plans)
    asked, most = goals(frame), MOST_GRAINS
    coin = Coin(frame.gaussian, 1, 1)
    alone = [coin.loss(QuantileBisection(one, frame.beta, most).typical(TYPICAL_ROWS)) for one in asked]
    together = coin.loss(JointQuantiles(asked, frame.beta, most).typical(TYPICAL_ROWS))
    return together.farthings < sum(each.farthings for each in alone)


def plan_joint_quantiles(frame: Frame, standing: JointStanding[JointTrail]) -> Plan[JointQuantilePricing]:
    """Return the plan of several quantiles at once, given what stands of them."""
    coin = Coin(frame.gaussian, frame.query.max_groups, 1)
    asked = goals(frame)
    paid = np.zeros(coin.max_groups, np.int64) if standing.trail is None else standing.trail.paid
    held = tuple(np.sort(paid)[-coin.max_groups :].tolist()) if frame.cap is None else (0,) * coin.max_groups
    cap = max(1, coin.level(frame.cap or frame.remaining, held))
    search = JointQuantiles(asked, frame.beta, cap)
    sought = tuple(QuantileSought(one.rank, 0.0, 0.0, frame.beta, cap, steps=one.steps) for one in asked)
    served = standing.served(sought)
    pricing = JointQuantilePricing(words(frame.query), search, coin, sought, standing.trail, served)
    free, increase, fresh = standing.answer(sought) is not None, 0, 0
    if not free:
        increase, fresh = _worst(pricing, frame.query.groups)
        free = fresh == 0
    return frame.plan(
        cap=frame.cap or frame.remaining + coin.loss(worst_cost(paid, coin.max_groups)),
        target_price=None,
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=math.inf,
        reachable=False,
        free=free,
        pricing=pricing,
    )


def _worst(pricing: JointQuantilePricing, groups: int) -> tuple[int, int]:
    """Return the most grains that a unit is charged, over what stands and for new measurements alone."""
    most, cap = pricing.coin.max_groups, pricing.search.cap_grains
    paid = np.zeros(groups, np.int64) if pricing.held is None else pricing.held.paid
    waits = pricing.replayed(groups).waits
    new = np.where(waits, np.maximum(cap - paid, 0), 0)
    return worst_cost(paid + new, most) - worst_cost(paid, most), worst_cost(new, most)


def words(query: Query) -> str:
    """Return the quantiles in words: QUANTILE(minutes in [0, 60]; 0.25, 0.5, 0.75)."""
    one = query.aggregate
    assert isinstance(one, Quantile)  # noqa: S101  # callers plan quantiles
    listed: Sequence[str] = [
        f"{output.aggregate.q:g}" for output in query.outputs if isinstance(output.aggregate, Quantile)
    ]
    return f"QUANTILE({one.value} in [{one.lower:g}, {one.upper:g}]; {', '.join(listed)})"
