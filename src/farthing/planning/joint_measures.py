"""Plans of questions whose answers are functions of several measures: means, variances, several aggregates at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.forms import from_aggregates
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import Linear
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE, Coin, worst_cost
from farthing.planning.gaussian_count import refuse_too_much
from farthing.query.ranges import LARGEST_ADDED

if TYPE_CHECKING:
    from farthing.accuracy.statistics import Statistic
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True)
class JointMeasuresPricing:
    """A pilot of all measures, then as much of each as the targets are found to need.

    Attributes:
        measures: what the engine computes, in words.
        joint: the stages, or looks.
        coin: how grains turn into loss.
        by_looks: whether groups are looked at until all is near enough; else each is measured in stages.
        pilot: whether a coarse look comes first.
    """

    measures: tuple[str, ...]
    joint: JointMeasures
    coin: Coin
    by_looks: bool
    pilot: bool

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        what = ", ".join(self.measures)
        if self.by_looks and not self.pilot:
            return (f"looks at {what}, with less and less Gaussian noise, until what all of them tell is near enough",)
        pilot = f"a coarse look at {what}, with Gaussian noise"
        if self.by_looks:
            return pilot, "looks with less and less noise, until what all of them tell is near enough"
        return pilot, "one look at each, as fine as its group then seems to need", "where that fell short, one more"

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return True

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        grains = min(int(self.joint.typical(size)), self.joint.cap_grains)
        return Coin(self.coin.currency, 1, self.coin.sensitivity).loss(grains)

    def width(self, size: float) -> float:  # noqa: ARG002  # it depends on what the group holds
        """Return infinity: how near each aggregate comes depends on what the group holds."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_joint_measures(frame: Frame, state: JointState | None) -> Plan[JointMeasuresPricing]:
    """Return the plan of several measures, given what was released of them before."""
    query = frame.query
    measures, statistics = query.measures, from_aggregates(query.outputs, query.measures)
    information = [
        float(GRAIN) / (measure.sensitivity(query.max_rows) * measure.step) ** 2 / ROUNDING_VARIANCE
        for measure in measures
    ]
    coin = Coin(frame.gaussian, query.max_groups, 1)
    standing = JointState.nothing(len(measures), len(query.outputs), query.groups) if state is None else state
    top = tuple(int(grains) for grains in np.sort(standing.paid)[-query.max_groups :])
    named = all(target is None for target in frame.targets)
    limit = grain_limit(frame, coin, top, named=named)
    targets = tuple(
        (0.0, 0.0) if target is None else (target.relative, _usable(target.absolute, statistic))
        for target, statistic in zip(frame.targets, statistics, strict=True)
    )
    joint = JointMeasures(statistics, targets, frame.beta, tuple(information), limit, frame.spend)
    free = state is not None and joint.free(state)
    looks = joint.looks(standing) if free else joint.next_looks(standing)
    pilot = looks is None or not (looks.public or joint.in_shape(standing))
    most, hopeless = joint.worst(standing), not named and joint.hopeless(standing)
    increase = 0 if free else sum(max(most - has, 0) for has in top)
    alone = worst_cost(np.maximum(most - standing.paid, 0), coin.max_groups)
    cap = frame.cap if frame.cap is not None else coin.loss(sum(top)) + frame.remaining
    return frame.plan(
        cap=cap,
        target_price=None,
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(0 if free else max(1, alone)),
        half_width=math.inf,
        reachable=named or (most < limit and not hopeless),
        hopeless=hopeless and not free,
        free=free,
        pricing=JointMeasuresPricing(tuple(map(str, measures)), joint, coin, looks is not None, pilot),
    )


def _usable(absolute: float, statistic: Statistic) -> float:
    """Return an absolute target that can be computed with: no mean or variance can be off by more than any range."""
    return absolute if isinstance(statistic, Linear) else min(absolute, LARGEST_ADDED)


def grain_limit(frame: Frame, coin: Coin, top: tuple[int, ...], *, named: bool) -> int:
    """Return the most grains that a group may hold in all measures together, given what the largest have paid."""
    limit = coin.level(
        frame.remaining if frame.cap is None else frame.cap, top if frame.cap is None else (0,) * len(top)
    )
    if named and frame.cap is not None:
        refuse_too_much(limit, frame.cap, coin)
    return min(max(limit, 1), MOST_GRAINS)
