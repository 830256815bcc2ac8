"""Plans of questions of several measures under a pure budget: means, variances, ratios, several aggregates at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.forms import from_aggregates
from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.laplace_state import LaplaceState
from farthing.accuracy.share_of_total import MIDDLE
from farthing.accuracy.statistics import Linear, RatioStatistic
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import highest_level, worst_cost
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.laplace_count import Grid
from farthing.planning.share_of_total import KNOWN, places_of, share_of
from farthing.privacy.loss import Pure
from farthing.query.ranges import LARGEST_ADDED
from farthing.query.share_of_total import ShareOfTotal

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Ints
    from farthing.accuracy.statistics import Statistic
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked
    from farthing.query.measures import Measure
    from farthing.query.query import Query


@dataclass(frozen=True, slots=True)
class LaplaceMeasuresPricing:
    """A pilot of all measures, then ever finer claims, each group until it is within its targets.

    Attributes:
        measures: what the engine computes, in words.
        joint: the rungs.
        grids: the steps of each measure's noise.
        max_groups: the most groups that one unit can move.
        factor: what is told is multiplied by it.
        known: whether the middle of what is possible is near enough, so that nothing is measured.
        looks: whether each group is shown by looks, without a pilot.
    """

    measures: tuple[str, ...]
    joint: LaplaceMeasures
    grids: tuple[Grid, ...]
    max_groups: int
    factor: float = 1.0
    known: bool = False
    looks: bool = False

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        if self.known:
            return (KNOWN,)
        once = f"{', '.join(self.measures)}, with two-sided geometric noise"
        if self.joint.steady:
            return (f"{once}, once",)
        if self.looks:
            return (f"{once}, ever finer until each group is within its target; of these looks the last alone is paid",)
        return (
            f"a coarse look at {once}",
            "one look at each, as fine as its group then seems to need",
            "where that fell short, finer ones; of these the last alone is paid",
        )

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return not (self.joint.steady or self.known)

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        return Pure.of_farthings(0 if self.known else self.joint.typical(size))

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on what the group holds
        """Return infinity: how near each aggregate comes depends on what the group holds."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_laplace_measures(
    frame: Frame, state: LaplaceState | None, grids: tuple[Grid, ...] | None
) -> Plan[LaplaceMeasuresPricing]:
    """Return the plan of several measures under a pure budget, given what was shown of them before, and on which steps.

    Raises:
        InvalidTarget: the price allowed is too small to look at anything.
    """
    query, lanes = frame.query, lanes_of(frame.query)
    grids = grids or tuple(Grid.of_measure(query, measure, frame.budget.total) for measure in lanes)
    places, factor = (places_of(query), share_of(query).factor) if is_share(query) else (None, 1.0)
    statistics = _statistics(query, places)
    standing = LaplaceState.nothing(len(grids), len(query.outputs), query.groups) if state is None else state
    top = tuple(int(level) for level in np.sort(standing.paid)[-query.max_groups :])
    top = (0,) * (query.max_groups - len(top)) + top
    limit = _limit(frame, top)
    named = all(target is None for target in frame.targets)
    targets = tuple(
        (0.0, 0.0)
        if target is None
        else (
            target.relative,
            (target.absolute if isinstance(one, Linear) else min(target.absolute, LARGEST_ADDED)) / factor,
        )
        for target, one in zip(frame.targets, statistics, strict=True)
    )
    joint = LaplaceMeasures(
        statistics, targets, frame.beta,
        tuple(grid.sensitivity * grid.step for grid in grids), tuple(grid.step for grid in grids),
        limit, max(grid.least for grid in grids), frame.spend, places,
    )  # fmt: skip
    known = places is not None and targets[0][1] >= MIDDLE
    free = known or (state is not None and joint.free(state))
    most, hopeless = joint.worst(standing), not free and joint.hopeless
    raised = np.maximum(standing.paid, most)
    increase = 0 if free else worst_cost(raised, query.max_groups) - worst_cost(standing.paid, query.max_groups)
    return frame.plan(
        cap=frame.cap if frame.cap is not None else Pure.of_farthings(sum(top)) + frame.remaining,
        target_price=None,
        worst_price=Pure.of_farthings(increase),
        fresh_price=Pure.of_farthings(0 if free else most * query.max_groups),
        half_width=math.inf,
        reachable=named or known or (most < limit and not hopeless),
        hopeless=hopeless,
        free=free,
        pricing=LaplaceMeasuresPricing(
            _words(query), joint, grids, query.max_groups, factor, known, joint.by_looks(standing)
        ),
    )


def is_share(query: Query) -> bool:
    """Return whether a question is one for shares of a total."""
    return isinstance(query.outputs[0].aggregate, ShareOfTotal)


def lanes_of(query: Query) -> tuple[Measure, ...]:
    """Return what is measured of each group: of a share the group and its total, in the same steps."""
    return query.measures * 2 if is_share(query) else query.measures


def _statistics(query: Query, places: Ints | None) -> tuple[Statistic, ...]:
    """Return the answers as functions of what is measured."""
    if places is None:
        return from_aggregates(query.outputs, query.measures)
    return (RatioStatistic(1, 0, 0.0, 0.0, 1.0, (float(np.bincount(places).max()), 1.0)),)


def _words(query: Query) -> tuple[str, ...]:
    """Return what is measured, in words."""
    named = tuple(map(str, query.measures))
    return (*named, "what they add up to over the groups of a total") if is_share(query) else named


def _limit(frame: Frame, top: tuple[int, ...]) -> int:
    """Return the most farthings that a group may pay in all measures together."""
    has, amount = (top, frame.remaining) if frame.cap is None else ((0,) * len(top), frame.cap)
    level = highest_level(amount.farthings, has)
    named = all(target is None for target in frame.targets)
    if named and frame.cap is not None and level > MOST_FARTHINGS:
        raise InvalidTarget(
            "the loss is more than one question can hold",
            rule=f"at most {Pure.of_farthings(MOST_FARTHINGS * len(top))!r} for this question",
            got=repr(frame.cap),
            next_step="name less: at that loss noise is far below one anyway",
        )
    return max(1, min(level, MOST_FARTHINGS))
