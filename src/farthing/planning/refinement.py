"""Plans of one count or sum: Gaussian refinement, and the single look that a pure budget buys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.schedule import Rule, Schedule
from farthing.accuracy.stopping import two_sided
from farthing.errors import InvalidTarget
from farthing.mechanisms import geometric
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin
from farthing.privacy.loss import Booked, Pure

if TYPE_CHECKING:
    from farthing.accuracy.kept import Kept
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.query.aggregates import Measure
    from farthing.query.query import Query


_SPARE: Final = 2
"""Farthings that "all" leaves: what was rounded up then must not be missing when the same is asked more sharply."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a plan needs to know of the measurements that a question has already.

    Attributes:
        kept: the promise they keep.
        top: the largest informations of the groups, as many as one unit can touch, in grains.
    """

    kept: Kept
    top: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Refinement:
    """Gaussian measurements of one measure in looks, each group until it is within its target.

    Attributes:
        asked: the aggregate in words.
        schedule: the looks.
        coin: how information turns into loss.
        beta: the failure probability a group that the schedule is calibrated for.
        top: the largest informations that groups have already, as many as one unit can touch, in grains.
    """

    asked: str
    schedule: Schedule
    coin: Coin
    beta: float
    top: tuple[int, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (f"{self.asked} with Gaussian noise, in looks, each group until it is within the target",)

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return self.schedule.futility is not None

    def price(self, size: float) -> Booked:
        """Return about what the members of a group with this answer would pay."""
        grains = int(self.schedule.typical(np.array([size]))[0])
        return Coin(self.coin.currency, 1, self.coin.sensitivity).loss(min(grains, int(self.schedule.looks[-1])))

    def width(self, size: float) -> float:
        """Return the half-width that such a group ends with."""
        return float(self.schedule.half_width(np.array([size]))[0])

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that this loss would reach for every group; infinite if none."""
        grains = self.coin.level(remaining, self.top)
        return self.schedule.critical / math.sqrt(grains * self.coin.per_grain) if grains else math.inf


@dataclass(frozen=True, slots=True)
class OneLook:
    """One release with two-sided geometric noise.

    Attributes:
        asked: the aggregate in words.
        measure: what the engine computes.
        farthings: epsilon a group, in farthings.
        max_groups, sensitivity: the most groups that one unit can move, and by how many steps each.
        beta: the failure probability a group.
    """

    asked: str
    measure: Measure
    farthings: int
    max_groups: int
    sensitivity: int
    beta: float

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (f"{self.asked} with two-sided geometric noise, once",)

    @property
    def gives_up(self) -> bool:
        """Nothing is given up: there is one look."""
        return False

    def price(self, size: float) -> Booked:  # noqa: ARG002  # the same at every size
        """Return what the members of a group pay, of any size."""
        return Pure.of_farthings(self.farthings)

    def width(self, size: float) -> float:  # noqa: ARG002  # the same at every size
        """Return the half-width of every group."""
        return self._half_width(self.farthings)

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that this loss would reach for every group; infinite if none."""
        farthings = remaining.farthings // self.max_groups
        return self._half_width(farthings) if farthings else math.inf

    def _half_width(self, farthings: int) -> float:
        """Return the half-width in answer units of a release at this price a group."""
        return geometric.half_width(farthings, self.sensitivity, self.beta) * self.measure.step


def coin_of(frame: Frame) -> Coin:
    """Return how information about the first measure, in answer units, turns into loss."""
    query = frame.query
    return Coin(frame.gaussian, query.max_groups, query.sensitivity * query.measures[0].step)


def plan_refinement(frame: Frame, standing: Standing | None) -> Plan:
    """Return the plan of a Gaussian refinement; without a cap it may use all that is left."""
    coin, target = coin_of(frame), frame.target
    top = standing.top if standing is not None else (0,) * coin.max_groups
    if frame.cap is None:
        limit = max(1, coin.level(frame.remaining - frame.budget.currency.of_farthings(_SPARE), top))
        cap: Booked = coin.loss(sum(top)) + frame.remaining
    else:
        cap = frame.cap
        limit = _level(coin, cap, named=target is None)
    relative = 0.0 if target is None else target.relative
    absolute = two_sided(frame.beta) / math.sqrt(limit * coin.per_grain) if target is None else target.absolute
    kept = None if standing is None else standing.kept.at(frame.beta, coin.per_grain)
    free = kept is not None and kept.covers(relative, absolute, frame.beta, limit)
    if kept is not None and free:
        schedule, beta = kept.schedule(coin.per_grain), kept.beta
    else:
        signed = _signed(frame.query)
        schedule, beta = _sharper(coin, relative, absolute, beta=frame.beta, limit=limit, kept=kept, signed=signed)
    most = int(schedule.looks[-1])
    increase = 0 if free else sum(max(most - has, 0) for has in top)
    fresh = 0 if free else most * coin.max_groups
    asked = math.inf if target is None else target.absolute
    needed = math.ceil(schedule.critical**2 / asked**2 / coin.per_grain) if asked > 0 else None
    return frame.plan(
        cap=cap,
        target_price=None if needed is None else coin.loss(coin.max_groups * needed),
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=schedule.floor,
        reachable=target is None or schedule.floor <= asked * (1 + 1e-9),
        free=free,
        pricing=Refinement(str(frame.query.aggregate), schedule, coin, beta, top),
    )


def _signed(query: Query) -> bool:
    """Return whether the answer may be negative."""
    return getattr(query.aggregate, "lower", 0.0) < 0


def _sharper(
    coin: Coin, relative: float, absolute: float, *, beta: float, limit: int, kept: Kept | None, signed: bool
) -> tuple[Schedule, float]:
    """Return the looks of new measurements, and the failure probability a group they are calibrated for.

    After an earlier rule it is componentwise the tightest of what was asked before and now: the new rule then goes on
    wherever the old one did.
    """
    if kept is None:
        looks = Schedule.plan(relative, absolute, beta, per_grain=coin.per_grain, cap_grains=limit, signed=signed)
        return looks, beta
    beta = min(beta, kept.beta)
    schedule = Schedule.plan(
        min(relative, kept.relative),
        min(absolute, kept.floor),
        beta,
        per_grain=coin.per_grain,
        cap_grains=max(limit, kept.grains),
        after=Rule(kept.relative, kept.critical, kept.grains),
        signed=signed,
    )
    return schedule, beta


def _level(coin: Coin, cap: Booked, *, named: bool) -> int:
    """Return the information that each group may have under a cap; a named loss must fit whole."""
    limit = coin.level(cap, (0,) * coin.max_groups)
    if named:
        refuse_too_much(limit, cap, coin)
    if not limit:
        raise InvalidTarget(
            "the price allowed is too small for so many groups a unit",
            rule="at least 2^-56 of mu^2 a group",
            got=repr(cap),
            next_step="allow more, or bound max_groups",
        )
    return limit


def refuse_too_much(limit: int, cap: Booked, coin: Coin) -> None:
    """Refuse a named loss that the books of one question cannot hold, since it could not be spent whole."""
    if limit >= MOST_GRAINS:
        most = coin.loss(MOST_GRAINS * coin.max_groups)
        raise InvalidTarget(
            "the loss is more than one question can hold",
            rule=f"at most {most!r} for this question",
            got=repr(cap),
            next_step="name less: at that loss noise is far below one anyway",
        )


def plan_one_look(frame: Frame, kept: Kept | None) -> Plan:
    """Return the plan of one two-sided geometric release, which is what a pure budget buys."""
    query, target = frame.query, frame.target
    if target is not None and target.relative > 0:
        raise InvalidTarget(
            "a relative target cannot be met under a pure budget",
            rule="refining in steps needs Gaussian noise, and so a delta > 0",
            got=f"relative={target.relative:g} with delta = 0",
            next_step="ask for absolute= alone, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    measure, cap = query.measures[0], frame.cap or frame.remaining
    affordable = max(1, cap.farthings // query.max_groups)
    needed = None
    if target is not None:
        needed = geometric.price_of(target.absolute / measure.step, query.sensitivity, frame.beta)
    wanted = affordable if needed is None else min(affordable, needed)
    free = kept is not None and kept.grains >= wanted  # one look: what was released serves at any confidence
    if kept is not None and free:
        wanted = kept.grains
    pricing = OneLook(str(query.aggregate), measure, wanted, query.max_groups, query.sensitivity, frame.beta)
    price = Pure.of_farthings(0 if free else wanted * query.max_groups)
    return frame.plan(
        cap=cap,
        target_price=None if needed is None else Pure.of_farthings(needed * query.max_groups),
        worst_price=price,
        fresh_price=price,
        half_width=pricing.width(0),
        reachable=target is None or pricing.width(0) <= target.absolute,
        free=free,
        pricing=pricing,
    )
