"""Plans of one count or sum: Gaussian refinement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.schedule import Schedule, StopRule
from farthing.accuracy.stop_rule import two_sided
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin, worst_cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked
    from farthing.query.query import Query


BEYOND_ALL: Final = 1 << 900
"""So many grains or farthings stand for all numbers above: more than any budget, and still a float."""

AFTER_ONE_LOOK: Final = 0.96
"""Part of beta at which a relative rule is calibrated that starts from one look at a fixed time, which is none of its
own; measured by bench/accuracy/held.py."""

_SPARE: Final = 2
"""Farthings that "all" leaves: what was rounded up then must not be missing when the same is asked more sharply."""


@dataclass(frozen=True, slots=True)
class HeldMeasurements:
    """What a plan needs to know of the measurements that a question has already.

    Attributes:
        held: the intervals of the groups, and the promise they keep.
        top: the largest informations of the groups, as many as one unit can touch, in grains.
    """

    held: HeldIntervals
    top: tuple[int, ...]

    @property
    def kept(self) -> StoredPromise:
        """The latest rule."""
        return self.held.kept

    def dearest(self, settled: NDArray[np.bool_] | None, most: int) -> int:
        """Return the sum of the largest informations, of as many groups as one unit can touch, at the end of all looks.

        Groups that are `settled` stay where they are; None for none.
        """
        raised = np.maximum(self.held.information, most)
        return worst_cost(
            raised if settled is None else np.where(settled, self.held.information, raised), len(self.top)
        )


@dataclass(frozen=True, slots=True)
class GaussianCountPricing:
    """Gaussian measurements of one measure in looks, each group until it is within its target.

    Attributes:
        asked: the aggregate in words.
        schedule: the looks.
        coin: how information turns into loss.
        beta: the failure probability a group that the schedule is calibrated for.
        top: the largest informations that groups have already, as many as one unit can touch, in grains.
        share: the part of the groups that are refined until they are within the target; the rest stops with them.
        claims: the intervals that the groups had before, where some of them may serve.
        settled: bool[groups], the groups that are answered by these; None for none.
    """

    asked: str
    schedule: Schedule
    coin: Coin
    beta: float
    top: tuple[int, ...] = ()
    share: float = 1.0
    claims: OwnPromises | None = None
    settled: NDArray[np.bool_] | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        told = f"{self.asked} with Gaussian noise, in looks, each group until it is within the target"
        if self.share >= 1:
            return (told,)
        return (told, f"as soon as {100 * self.share:.6g} % of the groups are, the others stop too, and pay no more")

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


def coin_of(frame: Frame) -> Coin:
    """Return how information about the first measure, in answer units, turns into loss."""
    query = frame.query
    return Coin(frame.gaussian, query.max_groups, query.sensitivity * query.measures[0].step)


def plan_gaussian_count(frame: Frame, standing: HeldMeasurements | None) -> Plan[GaussianCountPricing]:
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
    schedule, beta, stands = _looks(frame, coin, (relative, absolute), limit, kept, standing)
    free = stands is not None and stands.free
    settled = None if stands is None else stands.settled
    most = int(schedule.looks[-1])
    increase = fresh = 0 if free else most * coin.max_groups
    if standing is not None and not free:
        increase = standing.dearest(settled, most) - sum(top)
    asked = math.inf if target is None else target.absolute
    needed = _needed(coin, schedule.critical, asked) if asked > 0 else None
    reachable = target is None or schedule.floor <= asked * (1 + 1e-9) or (stands is not None and stands.all_met)
    return frame.plan(
        cap=cap,
        target_price=None if needed is None else coin.loss(coin.max_groups * needed),
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=stands.widest if stands is not None and free else schedule.floor,
        reachable=reachable,
        hopeless=not reachable and not free and not relative,
        free=free,
        pricing=GaussianCountPricing(
            str(frame.query.aggregate),
            schedule,
            coin,
            beta,
            top,
            frame.share,
            None if stands is None else stands.claims,
            settled,
        ),
    )


def _looks(  # noqa: PLR0917  # a question, its coin, what is asked, and what stands
    frame: Frame,
    coin: Coin,
    target: tuple[float, float],
    limit: int,
    kept: StoredPromise | None,
    standing: HeldMeasurements | None,
) -> tuple[Schedule, float, Stands | None]:
    """Return the looks that a target needs, the failure probability they are made for, and what stands of before."""
    if kept is None or standing is None:
        return _sharper(frame, coin, *target, limit=limit, kept=None), frame.beta, None
    stands = latest(frame, standing.held, kept, coin.per_grain, target, limit)
    if not stands.free:
        schedule = _sharper(frame, coin, *target, limit=limit, kept=kept)
        stands = each(frame, standing.held, stands.claims, target, schedule.strictest / kept.critical)
        if not stands.free:
            return schedule, frame.beta, stands
    return kept.schedule(coin.per_grain), kept.beta, stands


@dataclass(frozen=True, slots=True)
class Stands:
    """What released intervals do for a target.

    Attributes:
        claims: the intervals.
        settled: bool[groups], the groups that are answered by them; None where the latest rule answers all.
        free: whether nothing has to be measured.
        all_met: whether every interval is as narrow as was asked.
        widest: the largest half-width.
    """

    claims: OwnPromises
    settled: NDArray[np.bool_] | None
    free: bool
    all_met: bool
    widest: float


def latest(  # noqa: PLR0917  # a question, what stands, and what is asked
    frame: Frame, held: HeldIntervals, kept: StoredPromise, per_grain: float, target: tuple[float, float], limit: int
) -> Stands:
    """Return what is known already, where the latest rule serves as it is, and the claims that stand.

    Args:
        frame: what is asked.
        held: the intervals of the groups.
        kept: the latest rule, at the failure probability that is asked where it is known there.
        per_grain: precision, or its square, that one grain or farthing buys.
        target: r and a of what is asked.
        limit: the most grains of a group.
    """
    claims = held.claims(kept, frame.beta, per_grain)
    met = held.serving(claims, *target)
    earlier = ~np.isnan(held.own.half)
    serves = kept.covers(*target, frame.beta, limit, frame.share) and bool(met[earlier].all())
    return Stands(claims, earlier if earlier.any() else None, serves, bool(met.all()), kept.floor)


def each(frame: Frame, held: HeldIntervals, claims: OwnPromises, target: tuple[float, float], room: float) -> Stands:
    """Return which groups' intervals serve a target that the latest rule as a whole does not."""
    met = held.serving(claims, *target, room=room)
    free = float(met.mean()) >= frame.share
    one_rule = not free and frame.share < 1  # a share of the groups is counted by one rule
    return Stands(claims, None if one_rule or not met.any() else met, free, bool(met.all()), float(claims.half.max()))


def _needed(coin: Coin, critical: float, absolute: float) -> int:
    """Return the grains a group that an absolute target needs, up to BEYOND_ALL."""
    if math.isinf(absolute):
        return 0
    return min(math.ceil((Fraction(critical) / Fraction(absolute)) ** 2 / Fraction(coin.per_grain)), BEYOND_ALL)


def _signed(query: Query) -> bool:
    """Return whether the answer may be negative."""
    return getattr(query.aggregate, "lower", 0.0) < 0


def _sharper(
    frame: Frame, coin: Coin, relative: float, absolute: float, *, limit: int, kept: StoredPromise | None
) -> Schedule:
    """Return the looks of new measurements: those of the target that is asked now, from what is held.

    Where an earlier rule was looser in the relative target, the new one is made to go on wherever that one did.
    """
    again = kept is not None and kept.share < 1
    waits = kept is not None and kept.relative == 0 < relative
    return Schedule.plan(
        relative,
        absolute,
        frame.beta * (AFTER_ONE_LOOK if waits else 1.0),
        per_grain=coin.per_grain,
        cap_grains=limit if kept is None else max(limit, kept.grains),
        after=None if kept is None else StopRule(kept.relative, kept.critical, 0),
        signed=_signed(frame.query),
        meets=0 if frame.share >= 1 else 2 if again else 1,
    )


def _level(coin: Coin, cap: Booked, *, named: bool) -> int:
    """Return the information that each group may have under a cap; a named loss must fit whole."""
    limit = coin.level(cap, (0,) * coin.max_groups)
    if named:
        refuse_too_much(limit, cap, coin)
    if not limit:
        raise InvalidTarget(
            "the allowed price is too small for this many groups per unit",
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
