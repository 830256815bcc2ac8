"""What a question will cost, before anything is spent: schedule, worst price, and what would fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.schedule import Rule, Schedule
from farthing.accuracy.stopping import two_sided
from farthing.errors import InvalidTarget
from farthing.mechanisms import geometric
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin
from farthing.privacy.loss import Booked, Gdp, Loss, Pure, Zcdp
from farthing.privacy.words import said, state
from farthing.query.words import about, describe
from farthing.rounding import coins_down

if TYPE_CHECKING:
    from farthing.accuracy.kept import Kept
    from farthing.accuracy.target import Target
    from farthing.privacy.budget import Budget
    from farthing.query.query import Query

DEFAULT_SHARE: Final = Fraction(1, 10)
"""The part of the budget that one question may use unless it is told otherwise."""

SIZES: Final = (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
"""The hypothetical truths that a plan prices."""


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
class Plan:
    """The price of a question, before it is paid.

    Attributes:
        question: the question in words.
        target: the accuracy asked for, or None where a loss was named.
        confidence: the chance that each interval holds its truth.
        worst_price: the most that asking can cost now; what the ledger reserves.
        target_price: the most that the target can cost from scratch and without a cap; None for a named loss, or where
            a group of zero could never be within the target.
        cap: the most that this question may cost in all.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        half_width: the half-width, in answer units, that every group reaches that is not given up early.
        reachable: whether every group, whatever its size, reaches the target within the cap.
        fits: whether the worst price fits in what is left.
        about: the privacy unit and its bounds, in words.
        schedule: the looks of a Gaussian refinement; None under a pure budget.
        farthings: epsilon a group of a pure release, in farthings; 0 otherwise.
        fresh_price: the worst price of the new measurements alone, for a question that another process has open.
        free: whether what was released before already answers.
        coin: how information turns into loss; None under a pure budget.
        beta: the failure probability a group that the schedule is calibrated for.
        groups_a_unit, sensitivity: the most groups that one unit can move, and by how much each.
        top: the largest informations that groups have already, as many as one unit can touch, in grains.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan(relative=0.1, absolute=50)
    >>> plan.fits, plan.reachable
    (True, True)
    """

    question: str
    target: Target | None
    confidence: float
    worst_price: Booked
    target_price: Booked | None
    cap: Booked
    remaining: Booked
    delta: float
    half_width: float
    reachable: bool
    about: str
    schedule: Schedule | None
    farthings: int
    fresh_price: Booked
    free: bool
    coin: Coin | None
    beta: float
    groups_a_unit: int
    sensitivity: int
    top: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the worst price fits in what is left."""
        return self.worst_price <= self.remaining

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this true size would pay, if it had not been asked before.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> plan = s.plan(relative=0.1, absolute=50)
        >>> plan.price(100_000) < plan.price(100)
        True
        """
        if self.schedule is None or self.coin is None:
            return Pure.of_farthings(self.farthings)
        grains = int(self.schedule.typical(np.array([size]))[0])
        return Coin(self.coin.currency, 1, self.coin.sensitivity).loss(min(grains, int(self.schedule.looks[-1])))

    @property
    def prices(self) -> list[dict[str, Any]]:
        """The price of a group's members by the group's size: rows of size, half_width, paid, epsilon."""
        rows = []
        for size in SIZES:
            loss = self.price(size)
            width = self.half_width if self.schedule is None else float(self.schedule.half_width(np.array([size]))[0])
            rows.append({"size": size, "half_width": width, "paid": loss.value, "epsilon": self._epsilon(loss)})
        return rows

    def _epsilon(self, loss: Booked) -> float:
        """Return the loss as an epsilon at the plan's delta."""
        return loss.epsilon(self.delta) if self.delta else loss.value

    @property
    def advice(self) -> str:
        """What to do about a plan that does not fit or does not reach; "" when all is well."""
        if not self.fits:
            return f"the worst price does not fit in what is left; {self.fitting}"
        if self.reachable:
            return ""
        price = ""
        if self.target_price is not None:
            times = float(self.target_price.amount / self.cap.amount)
            price = f"the target would take {said(self.target_price, self.delta)}, {_number(times)} times the cap in "
            price += f"{'mu^2' if self.worst_price.parameter == 'mu' else self.worst_price.parameter}; "
        raising = "" if self.worst_price >= self.remaining else '; max_epsilon= or cap="all" raises the cap'
        early = self.schedule is not None and self.schedule.futility is not None
        end = "are given up early and pay little" if early else f"stop at +/-{_number(self.half_width)}"
        return (
            f"{price}groups too small for it {end}, marked not met; "
            f"absolute={_rounded_up(self.half_width):.6g} fits this cap{raising}"
        )

    @property
    def _reach(self) -> str:
        """How near every group comes to its truth, in words."""
        reach = f"every group is within +/-{_number(self.half_width)} at that price"
        if self.schedule is None or self.schedule.futility is None:
            return reach
        return f"{reach}, but for those that are given up early"

    @property
    def fitting(self) -> str:
        """The target that what is left would pay for, in words."""
        width = self.affordable
        if not math.isfinite(width):
            return "nothing is left to ask with"
        return f"at +/-{_rounded_up(width):,.6g} ({self.confidence:.4g}) it would fit"

    @property
    def affordable(self) -> float:
        """The half-width that what is left would reach for every group, in answer units; infinite if none."""
        if self.coin is None or self.schedule is None:
            farthings = self.remaining.farthings // self.groups_a_unit
            return float(geometric.half_width(farthings, self.sensitivity, self.beta)) if farthings else math.inf
        grains = self.coin.level(self.remaining, self.top)
        return self.schedule.critical / math.sqrt(grains * self.coin.per_grain) if grains else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {
            "question": self.question,
            "target": None if self.target is None else str(self.target),
            "confidence": self.confidence,
            "worst_price": state(self.worst_price, self.delta),
            "target_price": None if self.target_price is None else state(self.target_price, self.delta),
            "cap": state(self.cap, self.delta),
            "remaining": state(self.remaining, self.delta),
            "half_width": self.half_width,
            "reachable": self.reachable,
            "fits": self.fits,
            "free": self.free,
            "about": self.about,
            "advice": self.advice,
            "prices": self.prices,
        }

    def __str__(self) -> str:
        goal = f"at {self.worst_price!r} (named)" if self.target is None else f"within {self.target}"
        lines = [
            f"{self.question}, {goal}, {self.confidence:.4g} confidence",
            f"worst price  {said(self.worst_price, self.delta)}" + (" (already paid for: free)" if self.free else ""),
            f"cap          {said(self.cap, self.delta)} for this question",
            f"left         {said(self.remaining, self.delta)}",
            self._reach,
            f"{'size':>10}  {'half-width':>10}  {'pays ' + self.worst_price.parameter:>12}  {'epsilon':>10}",
        ]
        lines += [
            f"{row['size']:>10,}  {_number(row['half_width']):>10}  {row['paid']:>12.4g}  {row['epsilon']:>10.4g}"
            for row in self.prices
        ]
        return "\n".join([*lines, self.about, *([f"note: {self.advice}"] if self.advice else [])])


def plan(
    query: Query,
    *,
    target: Target | None,
    loss: Loss | None,
    confidence: float,
    beta: float,
    limit: Loss | str | None,
    budget: Budget,
    remaining: Booked,
    standing: Standing | None,
) -> Plan:
    """Return the plan of one question.

    Args:
        query: the question; its bounds give the sensitivities.
        target: the accuracy asked for, or None.
        loss: the price named instead, or None.
        confidence: as asked.
        beta: the failure probability that is left to each group.
        limit: the most this question may cost: a loss, "all", or None for a tenth of the budget.
        budget: the ledger's total.
        remaining: what the ledger has left.
        standing: what was released for this question before, or None.

    Raises:
        InvalidTarget: a loss in another currency, or a target that this currency cannot give.
    """
    named = loss if loss is not None else limit
    if isinstance(named, Loss) and type(named) is not budget.currency:
        raise InvalidTarget(
            "the loss is in another currency than the ledger",
            rule=f"this ledger is kept in {budget.currency.__name__}",
            got=type(named).__name__,
            next_step=f"pass a {budget.currency.__name__}",
        )
    common = {
        "question": describe(query),
        "target": target,
        "confidence": confidence,
        "remaining": remaining,
        "delta": budget.report_delta,
        "about": about(query),
        "groups_a_unit": query.max_groups,
        "sensitivity": query.sensitivity,
    }
    cap = None if limit == "all" else _cap(named, budget)
    if budget.currency is Pure:
        return _pure(query, target, beta, cap or remaining, standing=standing, common=common)
    coin = Coin(Gdp if budget.currency is Gdp else Zcdp, query.max_groups, query.sensitivity)
    return _gaussian(coin, target, beta, cap, standing=standing, common=common)


def _cap(named: Loss | str | None, budget: Budget) -> Booked:
    """Return the most that a question may cost, in whole farthings: what was named, or a tenth of the budget."""
    amount = named.amount if isinstance(named, Loss) else budget.total.amount * DEFAULT_SHARE
    cap = budget.currency.of_farthings(coins_down(amount))
    if not cap:
        raise InvalidTarget(
            "the price allowed is less than one farthing",
            rule="a question costs at least 2^-40",
            got=repr(budget.currency.of_amount(amount)),
            next_step="allow more",
        )
    return cap


def _gaussian(
    coin: Coin,
    target: Target | None,
    beta: float,
    cap: Booked | None,
    *,
    standing: Standing | None,
    common: dict[str, Any],
) -> Plan:
    """Return the plan of a Gaussian refinement; without a cap it may use all that is left."""
    top = standing.top if standing is not None else (0,) * coin.max_groups
    if cap is None:
        limit = max(1, coin.level(common["remaining"], top))
        cap = coin.loss(sum(top)) + common["remaining"]
    else:
        limit = _level(coin, cap, named=target is None)
    relative = 0.0 if target is None else target.relative
    absolute = two_sided(beta) / math.sqrt(limit * coin.per_grain) if target is None else target.absolute
    kept = None if standing is None else standing.kept.at(beta, coin.per_grain)
    free = kept is not None and kept.covers(relative, absolute, beta, limit)
    if kept is not None and free:
        schedule, beta = kept.schedule(coin.per_grain), kept.beta
    else:
        schedule, beta = _sharper(coin, relative, absolute, beta=beta, limit=limit, kept=kept)
    most = int(schedule.looks[-1])
    increase = 0 if free else sum(max(most - has, 0) for has in top)
    fresh = 0 if free else most * coin.max_groups
    asked = math.inf if target is None else target.absolute
    needed = math.ceil(schedule.critical**2 / asked**2 / coin.per_grain) if asked > 0 else None
    return Plan(
        cap=cap,
        target_price=None if needed is None else coin.loss(coin.max_groups * needed),
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=schedule.floor,
        reachable=target is None or schedule.floor <= asked * (1 + 1e-9),
        schedule=schedule,
        farthings=0,
        free=free,
        coin=coin,
        beta=beta,
        top=top,
        **common,
    )


def _sharper(
    coin: Coin, relative: float, absolute: float, *, beta: float, limit: int, kept: Kept | None
) -> tuple[Schedule, float]:
    """Return the looks of new measurements, and the failure probability a group they are calibrated for.

    After an earlier rule it is componentwise the tightest of what was asked before and now: the new rule then goes on
    wherever the old one did.
    """
    if kept is None:
        return Schedule.plan(relative, absolute, beta, per_grain=coin.per_grain, cap_grains=limit), beta
    beta = min(beta, kept.beta)
    schedule = Schedule.plan(
        min(relative, kept.relative),
        min(absolute, kept.floor),
        beta,
        per_grain=coin.per_grain,
        cap_grains=max(limit, kept.grains),
        after=Rule(kept.relative, kept.critical, kept.grains),
    )
    return schedule, beta


def _level(coin: Coin, cap: Booked, *, named: bool) -> int:
    """Return the information that each group may have under a cap; a named loss must fit whole."""
    limit = coin.level(cap, (0,) * coin.max_groups)
    if named:
        _refuse_too_much(limit, cap, coin)
    if not limit:
        raise InvalidTarget(
            "the price allowed is too small for so many groups a unit",
            rule="at least 2^-56 of mu^2 a group",
            got=repr(cap),
            next_step="allow more, or bound max_groups",
        )
    return limit


def _refuse_too_much(limit: int, cap: Booked, coin: Coin) -> None:
    """Refuse a named loss that the books of one question cannot hold, since it could not be spent whole."""
    if limit >= MOST_GRAINS:
        most = coin.loss(MOST_GRAINS * coin.max_groups)
        raise InvalidTarget(
            "the loss is more than one question can hold",
            rule=f"at most {most!r} for this question",
            got=repr(cap),
            next_step="name less: at that loss noise is far below one anyway",
        )


def _pure(
    query: Query,
    target: Target | None,
    beta: float,
    cap: Booked,
    *,
    standing: Standing | None,
    common: dict[str, Any],
) -> Plan:
    """Return the plan of one two-sided geometric release, which is what a pure budget buys."""
    if target is not None and target.relative > 0:
        raise InvalidTarget(
            "a relative target cannot be met under a pure budget",
            rule="refining in steps needs Gaussian noise, and so a delta > 0",
            got=f"relative={target.relative:g} with delta = 0",
            next_step="ask for absolute= alone, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    affordable = max(1, cap.farthings // query.max_groups)
    needed = None if target is None else geometric.price_of(target.absolute, query.sensitivity, beta)
    wanted = affordable if needed is None else min(affordable, needed)
    kept = None if standing is None else standing.kept
    free = kept is not None and kept.grains >= wanted  # one look: what was released serves at any confidence
    if kept is not None and free:
        wanted = kept.grains
    width = geometric.half_width(wanted, query.sensitivity, beta)
    price = Pure.of_farthings(0 if free else wanted * query.max_groups)
    return Plan(
        cap=cap,
        target_price=None if needed is None else Pure.of_farthings(needed * query.max_groups),
        worst_price=price,
        fresh_price=price,
        half_width=float(width),
        reachable=target is None or width <= target.absolute,
        schedule=None,
        farthings=wanted,
        free=free,
        coin=None,
        beta=beta,
        **common,
    )


def _number(x: float) -> str:
    """Return a number with few digits."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def _rounded_up(x: float) -> float:
    """Return a number of two digits that is >= x, for a target that would fit."""
    if x <= 0 or not math.isfinite(x):
        return x
    step = 10.0 ** (math.floor(math.log10(x)) - 1)
    return math.ceil(x / step) * step
