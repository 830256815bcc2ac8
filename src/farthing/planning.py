"""What a question will cost, before anything is spent: schedule, worst price, and what would fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.schedule import Futility, Rule, Schedule
from farthing.accuracy.stopping import step_ratio, two_sided
from farthing.errors import InvalidTarget
from farthing.mechanisms import gaussian, geometric
from farthing.privacy.loss import Gdp, Loss, Pure, Zcdp

if TYPE_CHECKING:
    from farthing.accuracy.target import Target
    from farthing.privacy.budget import Budget
    from farthing.query.query import Query

DEFAULT_SHARE: Final = Fraction(1, 10)
"""The part of the budget that one question may use unless it is told otherwise."""

SIZES: Final = (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
"""The hypothetical truths that a plan prices."""

_MOST_GRAINS: Final = 1 << 62
_NEARLY: Final = 1 + 1e-12  # equal targets may differ in the last bits of their floats


@dataclass(frozen=True, slots=True)
class Kept:
    """The promise that a question's released measurements keep: the rule they were stopped by.

    Attributes:
        relative: r; 0 for an absolute target or a named loss.
        absolute: a, as it was asked (the tightest so far).
        floor: a*, the half-width that every group not given up has reached.
        beta: the failure probability a group.
        critical: c, the calibrated constant.
        grains: the information at which every group stopped at the latest; farthings of epsilon under a pure budget.
        futility: z of the intervals of groups given up, 0 when none could be.
    """

    relative: float
    absolute: float
    floor: float
    beta: float
    critical: float
    grains: int
    futility: float = 0.0

    def covers(self, relative: float, absolute: float, beta: float, limit: int) -> bool:
        """Tell whether it keeps a promise that is asked for now, or was stopped by as large a cap on the way to it."""
        narrow = self.floor <= absolute * _NEARLY or (self.absolute <= absolute * _NEARLY and limit <= self.grains)
        return self.relative <= relative and self.beta <= beta * _NEARLY and narrow

    def schedule(self, per_grain: float) -> Schedule:
        """Return the last look of the rule, enough to read what was released under it."""
        boundary = self.critical / self.relative if self.relative > 0 else math.inf
        return Schedule(
            relative=self.relative,
            absolute=self.absolute,
            critical=self.critical,
            per_grain=per_grain,
            looks=np.array([self.grains], np.int64),
            jumps=JumpMap(boundary, step_ratio(self.relative)),
            futility=Futility(self.futility, ()) if self.futility else None,
            capped=self.floor > self.absolute * _NEARLY,
        )


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
class Coin:
    """How information turns into loss, for one question in one currency.

    Attributes:
        currency: Gdp or Zcdp.
        max_groups: the most groups one unit can move.
        sensitivity: the most it moves each.
    """

    currency: type[Gdp | Zcdp]
    max_groups: int
    sensitivity: int

    def loss(self, grains: int) -> Gdp | Zcdp:
        """Return the loss of a worst cost in grains of mu^2, exactly."""
        amount = grains * gaussian.GRAIN
        return Gdp.of_amount(amount) if self.currency is Gdp else Zcdp.of_amount(amount / 2)

    def grains(self, loss: Loss) -> int:
        """Return the information each group may have if the question is to cost at most `loss`."""
        mu_squared = loss.amount if self.currency is Gdp else 2 * loss.amount
        return min(math.floor(mu_squared / gaussian.GRAIN / self.max_groups), _MOST_GRAINS)

    @property
    def per_grain(self) -> float:
        """Information (one over variance, in answer units) per grain; the grid's rounding is counted."""
        return float(gaussian.GRAIN) / self.sensitivity**2 / gaussian.ROUNDING_VARIANCE


@dataclass(frozen=True, slots=True)
class Plan:
    """The price of a question, before it is paid.

    Attributes:
        question: the question in words.
        target: the accuracy asked for, or None where a loss was named.
        confidence: the chance that each interval holds its truth.
        worst_price: the most that asking can cost now; what the ledger reserves.
        cap: the most that this question may cost in all.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        half_width: the half-width that every group surely reaches, in answer units.
        reachable: whether every group, whatever its size, reaches the target within the cap.
        fits: whether the worst price fits in what is left.
        about: the privacy unit and its bounds, in words.
        schedule: the looks of a Gaussian refinement; None under a pure budget.
        farthings: epsilon a group of a pure release, in farthings; 0 otherwise.
        fresh_price: the worst price of the new measurements alone, for a question that another process has open.
        free: whether what was released before already answers.
        coin: how information turns into loss; None under a pure budget.
        beta: the failure probability a group that the schedule is calibrated for.

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
    worst_price: Gdp | Zcdp | Pure
    cap: Gdp | Zcdp | Pure
    remaining: Gdp | Zcdp | Pure
    delta: float
    half_width: float
    reachable: bool
    about: str
    schedule: Schedule | None
    farthings: int
    fresh_price: Gdp | Zcdp | Pure
    free: bool
    coin: Coin | None
    beta: float

    @property
    def fits(self) -> bool:
        """Whether the worst price fits in what is left."""
        return self.worst_price <= self.remaining

    def price(self, size: float) -> Gdp | Zcdp | Pure:
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
        return Coin(self.coin.currency, 1, self.coin.sensitivity).loss(self._needed(size))

    def _needed(self, size: float) -> int:
        """Return the grains at which a group of this size would stop, were its noise zero."""
        if self.schedule is None or self.coin is None:
            return 0
        width = max(self.schedule.relative * abs(size), self.schedule.floor)
        return min(int(self.schedule.looks[-1]), math.ceil(self.schedule.critical**2 / width**2 / self.coin.per_grain))

    @property
    def prices(self) -> list[dict[str, Any]]:
        """The price of a group's members by the group's size: rows of size, half_width, paid, epsilon."""
        rows = []
        for size in SIZES:
            loss = self.price(size)
            width = self.half_width
            if self.target is not None and self.schedule is not None:
                width = max(self.target.relative * size, self.half_width)
            rows.append({"size": size, "half_width": width, "paid": loss.value, "epsilon": self._epsilon(loss)})
        return rows

    def _epsilon(self, loss: Gdp | Zcdp | Pure) -> float:
        """Return the loss as an epsilon at the plan's delta."""
        return loss.epsilon(self.delta) if self.delta else loss.value

    @property
    def advice(self) -> str:
        """What to do about a plan that does not fit or does not reach; "" when all is well."""
        if not self.fits:
            return f"the worst price does not fit in what is left; {self.fitting}"
        if not self.reachable:
            return (
                f"groups too small for the relative target stop at +/-{_number(self.half_width)}, marked not met, since "
                f"the cap is {self.cap!r}; absolute={_number(_rounded_up(self.half_width))} would be met by every group, "
                'cap="all" would allow all that is left'
            )
        return ""

    @property
    def fitting(self) -> str:
        """The target that what is left would pay for, in words."""
        width = self.affordable
        if not math.isfinite(width):
            return "nothing is left to ask with"
        return f"at +/-{_number(_rounded_up(width))} ({self.confidence:.4g}) it would fit"

    @property
    def affordable(self) -> float:
        """The half-width that what is left would reach for every group, in answer units."""
        if self.coin is None or self.schedule is None:
            return math.inf
        grains = self.coin.grains(self.remaining)
        return self.schedule.critical / math.sqrt(grains * self.coin.per_grain) if grains else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {
            "question": self.question,
            "target": None if self.target is None else str(self.target),
            "confidence": self.confidence,
            "worst_price": state(self.worst_price, self.delta),
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
            f"every group is within +/-{_number(self.half_width)} at that price",
            f"{'size':>10}  {'half-width':>10}  {'pays ' + self.worst_price.parameter:>12}  {'epsilon':>10}",
        ]
        lines += [
            f"{row['size']:>10,}  {_number(row['half_width']):>10}  {row['paid']:>12.4g}  {row['epsilon']:>10.4g}"
            for row in self.prices
        ]
        return "\n".join([*lines, self.about, *([f"note: {self.advice}"] if self.advice else [])])


def state(loss: Gdp | Zcdp | Pure, delta: float) -> dict[str, float]:
    """Return a loss as plain values: its parameter, and its epsilon at delta.

    >>> state(Pure(0.5), 0.0)
    {'epsilon': 0.5, 'delta': 0.0}
    """
    epsilon = loss.epsilon(delta) if delta else loss.value
    return {loss.parameter: loss.value, "epsilon": epsilon, "delta": delta}


def said(loss: Gdp | Zcdp | Pure, delta: float) -> str:
    """Return a loss in words: its parameter, and its epsilon at delta.

    >>> said(Pure(0.5), 0.0)
    'Pure(epsilon=0.5)'
    """
    return f"{loss!r}" + (f" = epsilon {loss.epsilon(delta):.4g} at delta {delta:g}" if delta else "")


def plan(
    query: Query,
    *,
    target: Target | None,
    loss: Loss | None,
    confidence: float,
    beta: float,
    limit: Loss | str | None,
    budget: Budget,
    remaining: Gdp | Zcdp | Pure,
    standing: Standing | None,
) -> Plan:
    """Return the plan of one question.

    Args:
        query: the question; its bounds give the sensitivities.
        target: the accuracy asked for, or None.
        loss: the price named instead, or None.
        confidence, beta: as asked, and the failure probability that is left to each group.
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
    cap = _cap(limit, budget, remaining) if loss is None else budget.currency.of_amount(loss.amount)
    common = {
        "question": describe(query),
        "target": target,
        "confidence": confidence,
        "cap": cap,
        "remaining": remaining,
        "delta": budget.report_delta,
        "about": about(query),
    }
    if budget.currency is Pure:
        return _pure(query, target, beta, cap, standing=standing, common=common)
    coin = Coin(budget.currency, query.max_groups, query.sensitivity)
    return _gaussian(coin, target, beta, cap, standing=standing, common=common)


def _cap(limit: Loss | str | None, budget: Budget, remaining: Gdp | Zcdp | Pure) -> Gdp | Zcdp | Pure:
    """Return the most that a question may cost."""
    if limit == "all":
        return remaining
    if isinstance(limit, Loss):
        return budget.currency.of_amount(limit.amount)
    return budget.currency.of_amount(budget.total.amount * DEFAULT_SHARE)


def _gaussian(
    coin: Coin,
    target: Target | None,
    beta: float,
    cap: Gdp | Zcdp | Pure,
    *,
    standing: Standing | None,
    common: dict[str, Any],
) -> Plan:
    """Return the plan of a Gaussian refinement."""
    limit = max(1, coin.grains(cap))
    relative = 0.0 if target is None else target.relative
    absolute = two_sided(beta) / math.sqrt(limit * coin.per_grain) if target is None else target.absolute
    kept = None if standing is None else standing.kept
    free = kept is not None and kept.covers(relative, absolute, beta, limit)
    if kept is None:
        schedule = Schedule.plan(relative, absolute, beta, per_grain=coin.per_grain, cap_grains=limit)
    elif free:
        schedule, beta = kept.schedule(coin.per_grain), kept.beta
    else:
        # Componentwise the tightest of what was asked before and now: the new rule goes on wherever the old one did.
        beta = min(beta, kept.beta)
        schedule = Schedule.plan(
            min(relative, kept.relative),
            min(absolute, kept.floor),
            beta,
            per_grain=coin.per_grain,
            cap_grains=max(limit, kept.grains),
            after=Rule(kept.relative, kept.critical, kept.floor),
        )
    most = int(schedule.looks[-1])
    top = standing.top if standing is not None else (0,) * coin.max_groups
    increase = 0 if free else sum(max(most - has, 0) for has in top)
    fresh = 0 if free else most * coin.max_groups
    asked = math.inf if target is None else target.absolute
    return Plan(
        worst_price=coin.loss(increase),
        fresh_price=coin.loss(fresh),
        half_width=schedule.floor,
        reachable=target is None or schedule.floor <= asked * (1 + 1e-9),
        schedule=schedule,
        farthings=0,
        free=free,
        coin=coin,
        beta=beta,
        **common,
    )


def _pure(
    query: Query,
    target: Target | None,
    beta: float,
    cap: Gdp | Zcdp | Pure,
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
    wanted = affordable
    if target is not None:
        wanted = min(affordable, geometric.price_of(target.absolute, query.sensitivity, beta))
    width = geometric.half_width(wanted, query.sensitivity, beta)
    kept = None if standing is None else standing.kept
    free = kept is not None and kept.covers(0.0, width if target is None else target.absolute, beta, affordable)
    if kept is not None and free:
        wanted, width, beta = kept.grains, int(kept.floor), kept.beta
    price = Pure.of_farthings(0 if free else wanted * query.max_groups)
    return Plan(
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


def describe(query: Query) -> str:
    """Return a question in words, for people and for the ledger's history."""
    by = f" BY {', '.join(query.by)} [{query.groups:,} groups]" if query.by else ""
    where = f" WHERE {query.where.canonical()}" if query.where is not None else ""
    return f"COUNT(*) AS {query.name} FROM {query.table}{where}{by}"


def about(query: Query) -> str:
    """Return what the numbers are about: the privacy unit, and the bounds that the truth is taken after."""
    if query.unit.is_row:
        return "privacy unit: one row, added or removed"
    groups = f"at most {query.max_groups:,} groups and " if query.by else ""
    return (
        f"privacy unit: one {query.unit.column}, with all its rows; numbers are of the bounded data: each "
        f"{query.unit.column} counts in {groups}at most {query.sensitivity:,} rows in each; what the bounds cut is not "
        "in the intervals"
    )


def _number(x: float) -> str:
    """Return a number with few digits."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"  # noqa: PLR2004  four digits are enough


def _rounded_up(x: float) -> float:
    """Return a number of two digits that is >= x, for a target that would fit."""
    if x <= 0 or not math.isfinite(x):
        return x
    step = 10.0 ** (math.floor(math.log10(x)) - 1)
    return math.ceil(x / step) * step
