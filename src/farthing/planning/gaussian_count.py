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
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin
from farthing.planning.frame import LEFT_OVER
from farthing.planning.stored_measurements import looks_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.planning.stored_measurements import HeldMeasurements
    from farthing.privacy.loss import Booked
    from farthing.query.query import Query


BEYOND_ALL: Final = 1 << 900
"""So many grains or farthings stand for all numbers above: more than any budget, and still a float."""

AFTER_ONE_LOOK: Final = 0.96
"""Part of beta at which a relative rule is calibrated that starts from one look at a fixed time, which is none of its
own; measured by bench/accuracy/held.py."""


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
        return (told,) if self.share >= 1 else (told, others_stop(self.share))

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

    @property
    def stands(self) -> Booked:
        """What the groups have cost so far."""
        return self.coin.loss(sum(self.top))

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
        limit = max(1, coin.level(frame.remaining - frame.budget.currency.of_farthings(LEFT_OVER), top))
        cap: Booked = coin.loss(sum(top)) + frame.remaining
    else:
        cap = frame.cap
        limit = _level(coin, cap, named=target is None)
    relative = 0.0 if target is None else target.relative
    absolute = two_sided(frame.beta) / math.sqrt(limit * coin.per_grain) if target is None else target.absolute
    kept = None if standing is None else standing.kept.at(frame.beta, coin.per_grain)

    def sharper(held: HeldIntervals | None) -> Schedule:
        """Return the looks of new measurements, from what is held."""
        return _sharper(frame, coin, relative, absolute, limit=limit, kept=None if held is None else kept)

    looks = looks_for(frame, coin.per_grain, (relative, absolute), limit, (kept, standing), sharper)
    schedule = looks.schedule
    increase, fresh = looks.prices(standing, coin.max_groups, goes_on=True)
    asked = math.inf if target is None else target.absolute
    needed = _needed(coin, schedule.critical, asked) if asked > 0 else None
    reachable = looks.reaches(asked)
    return frame.plan(
        cap=cap,
        target_price=None if needed is None else coin.loss(coin.max_groups * needed),
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=looks.half_width,
        reachable=reachable,
        hopeless=not reachable and not looks.free and not relative,
        free=looks.free,
        pricing=GaussianCountPricing(
            str(frame.query.aggregate),
            schedule,
            coin,
            looks.beta,
            top,
            frame.share,
            looks.claims,
            looks.settled,
        ),
    )


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
    waits = kept is not None and kept.relative == 0 < relative
    return Schedule.plan(
        relative,
        absolute,
        frame.beta * (AFTER_ONE_LOOK if waits else 1.0),
        per_grain=coin.per_grain,
        cap_grains=limit if kept is None else max(limit, kept.grains),
        after=None if kept is None else StopRule(kept.relative, kept.critical, 0),
        signed=_signed(frame.query),
        meets=meets_of(frame, kept),
    )


def meets_of(frame: Frame, kept: StoredPromise | None) -> int:
    """Return for the so-manieth time, from 1, groups may be stopped by what others showed; 0 where all are asked."""
    if frame.share >= 1:
        return 0
    return 2 if kept is not None and kept.share < 1 else 1


def others_stop(share: float) -> str:
    """Return in words that the other groups stop with a share of them."""
    return f"as soon as {100 * share:.6g} % of the groups are, the others stop too, and pay no more"


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
