"""Plans of questions whose answers are shares of a total of the groups that are asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.running_sums import RunningSums
from farthing.accuracy.share_of_total import SharesOfTotal
from farthing.accuracy.total_state import TotalState
from farthing.errors import InvalidKeys
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE, Coin
from farthing.planning.joint_measures import grain_limit
from farthing.query.key_order import partitions, ranks
from farthing.query.running_total import OverGroups, RunningTotal
from farthing.query.share_of_total import ShareOfTotal

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Ints
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked
    from farthing.query.query import Query


KNOWN: Final = "nothing: a share is between 0 and 1, and the middle is near enough"
"""What is measured where the target is at least half of that range."""


@dataclass(frozen=True, slots=True)
class ShareOfTotalPricing:
    """A pilot of all groups and their totals, then as much as it says.

    Attributes:
        measure: what the engine computes, in words.
        shares: the stages.
        coin: how grains turn into loss.
        factor: what shares are multiplied by.
    """

    measure: str
    shares: SharesOfTotal
    coin: Coin
    factor: float = 1.0

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        if self.shares.public:
            return (KNOWN,)
        if self.shares.steady:
            return (f"{self.measure} of all groups, and of what they add up to, with Gaussian noise, once",)
        return (
            f"a coarse look at {self.measure} of all groups, and at what they add up to, with Gaussian noise",
            "one look at both, as fine as the shares then seem to need: members of all groups of a total pay the same",
            "where that fell short, one more",
        )

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return not (self.shares.public or self.shares.steady)

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay, if all groups were as large."""
        return Coin(self.coin.currency, 1, self.coin.sensitivity).loss(self.shares.typical(size))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on the total, too
        """Return infinity: how near a share comes depends on what all groups hold."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_share_of_total(frame: Frame, state: TotalState | None) -> Plan[ShareOfTotalPricing]:
    """Return the plan of shares of a total, given what was released of them before."""
    query, (measure,) = frame.query, frame.query.measures
    places, factor = places_of(query), share_of(query).factor
    together = min(query.max_groups, int(np.bincount(places).max()))
    coin = Coin(frame.gaussian, query.max_groups, 1)
    standing = TotalState.nothing(query.groups) if state is None else state
    top = tuple(int(grains) for grains in np.sort(standing.paid)[-query.max_groups :])
    target = (0.0, 0.0) if frame.target is None else (frame.target.relative, frame.target.absolute / factor)
    worth = float(GRAIN) / (measure.sensitivity(query.max_rows) * measure.step) ** 2 / ROUNDING_VARIANCE
    limit = min(grain_limit(frame, coin, top, named=frame.target is None), MOST_GRAINS // together)
    shares = SharesOfTotal(
        places, target, frame.beta, worth, together, limit, frame.spend, sums_of(query, places), _divided(query)
    )
    free = shares.public or (state is not None and shares.free(state))
    most = shares.worst(standing)
    increase = 0 if free else sum(max(most - has, 0) for has in top)
    cap = frame.cap if frame.cap is not None else coin.loss(sum(top)) + frame.remaining
    return frame.plan(
        cap=cap,
        target_price=None,
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(0 if free else most * coin.max_groups),
        half_width=math.inf,
        reachable=frame.target is None or shares.public or (shares.steady and not shares.hopeless),
        hopeless=shares.hopeless and not free,
        free=free,
        pricing=ShareOfTotalPricing(str(measure), shares, coin, factor),
    )


def _divided(query: Query) -> bool:
    """Return whether the answers are parts of totals."""
    asked = share_of(query)
    return not isinstance(asked, RunningTotal) or asked.divided


def sums_of(query: Query, places: Ints) -> RunningSums | None:
    """Return which groups are added up for each number, by their keys; None for shares of single groups."""
    asked, keys = share_of(query), query.keys
    if not isinstance(asked, RunningTotal):
        return None
    order = np.zeros(query.groups, np.int64) if keys is None else ranks(keys.column, asked.order, query.groups)
    return RunningSums.of(places, order)


def share_of(query: Query) -> OverGroups:
    """Return the share that a question asks for."""
    assert isinstance(query.aggregate, OverGroups)  # noqa: S101  # other questions are planned elsewhere
    return query.aggregate


def places_of(query: Query) -> Ints:
    """Return which total each group is part of, int64[groups]: 0, 1, ...

    Raises:
        InvalidKeys: no total has two groups.
    """
    over, keys = share_of(query).over, query.keys
    places = np.zeros(query.groups, np.int64) if keys is None else partitions(keys.column, over, query.groups)
    if isinstance(share_of(query), ShareOfTotal) and query.groups == int(places.max(initial=-1)) + 1:
        raise InvalidKeys(
            "each group is the whole of its total",
            rule="a share is that of one group in the total of several",
            got=f"{query.groups:,} groups" + (f", PARTITION BY {', '.join(over)}" if over else ""),
            next_step="list more groups, or leave columns out of PARTITION BY",
        )
    return places
