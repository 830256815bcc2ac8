"""Plans of one quantile: a noisy bisection, or one choice by the exponential mechanism, whichever is cheaper."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.accuracy.picked import ExponentialQuantile, compare
from farthing.accuracy.quantiles import Descent
from farthing.accuracy.ranks import WHOLE, Asked
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin
from farthing.privacy.loss import BoundedRange, Pure
from farthing.query.aggregates import Quantile
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked

TYPICAL_ROWS: Final = 10_000
"""The group size for which the two roads are compared: a public guess."""

MOST_SPREAD: Final = 1 << 40
"""The furthest that one unit may move ranks, in 2^-20 rows, for a private choice."""

_FINEST_COUNT: Final = 12  # a unit of m rows is hidden in a count for 2^-12 m farthings: noise of 2^52, not more

COUNT_SHARE: Final = 10
"""The exponential mechanism's count may use one part in so many of the cap."""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: stored beside the answer, so that a later ask knows whether it serves.

    Attributes:
        rank, relative, absolute: the targets; 0 for none.
        beta: the failure probability a group.
        cap: the most that a group could pay, in the coins of its road.
    """

    rank: float
    relative: float
    absolute: float
    beta: float
    cap: int

    def serves(self, asked: Sought, *, met: bool) -> bool:
        """Tell whether an answer to this is one to what is asked, given whether all groups met it."""
        pairs = ((self.rank, asked.rank), (self.relative, asked.relative), (self.absolute, asked.absolute))
        if not any(theirs for _, theirs in pairs):  # a named loss: more of it is another answer
            return not any(mine for mine, _ in pairs) and self.cap >= asked.cap
        as_tight = all(bool(mine) == bool(theirs) and mine <= theirs for mine, theirs in pairs)
        return as_tight and self.beta <= asked.beta and (met or self.cap >= asked.cap)

    def facts(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Bisection:
    """Noisy counts below thresholds, each refined until its side is sure.

    Attributes:
        asked: the aggregate in words.
        descent: the thresholds and looks.
        coin: how grains turn into loss.
        sought: what is looked for.
    """

    asked: str
    descent: Descent
    coin: Coin
    sought: Sought

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        count = ("the count, with Gaussian noise",) if self.descent.asked.rank else ()
        found = f"{self.asked} by bisection: rows below at most {self.descent.asked.leaves_log2} thresholds"
        return *count, f"{found}, with Gaussian noise"

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
class Choice:
    """One noisy count, and one private choice among the leaves of the range.

    Attributes:
        asked: the aggregate in words.
        quantile: the mechanism.
        count: the price of the count a group, in farthings under a pure budget, else in grains.
        most: the most that the choice may pay a group, in farthings of epsilon.
        currency: of the books.
        max_groups: the most groups that one unit can move.
        sought: what is looked for.
    """

    asked: str
    quantile: ExponentialQuantile
    count: int
    most: int
    currency: type[Booked]
    max_groups: int
    sought: Sought

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        chosen = f"{self.asked} chosen by the exponential mechanism"
        return ("the count, with noise", chosen) if self.count else (chosen,)

    @property
    def gives_up(self) -> bool:
        """All groups are chosen for alike."""
        return False

    def loss(self, farthings: int) -> Booked:
        """Return the loss of a unit in all its groups, of the count and of a choice at these farthings a group."""
        if self.currency is Pure:
            return Pure.of_farthings((self.count + farthings) * self.max_groups)
        chosen = BoundedRange.of_amount(farthings * FARTHING).to(self.currency) * self.max_groups
        counted = Coin(self.currency, self.max_groups, 1).loss(self.count * self.max_groups)  # type: ignore[arg-type]  # not Pure
        return chosen + counted

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this many rows would pay."""
        if not self.count:
            return replace(self, max_groups=1).loss(self.most)
        rows = max(1.0, self.quantile.asked.slack * max(1.0, size))
        return replace(self, max_groups=1).loss(min(self.most, self.quantile.price(rows, beta=self.sought.beta / 2)))

    def width(self, size: float) -> float:  # noqa: ARG002  # the promise is about ranks
        """Return infinity: the promise is about ranks."""
        return math.inf

    def affordable(self, remaining: Booked) -> float:  # noqa: ARG002  # as for width
        """Return infinity: there is no one width."""
        return math.inf


def plan_ranked(frame: Frame, stored: Sequence[tuple[Sought, bool]]) -> Plan:
    """Return the plan of a quantile; `stored` is what earlier answers looked for, and whether all groups met it."""
    pricing = _pricing(frame)
    whole = _most(pricing)
    free = any(sought.serves(pricing.sought, met=met) for sought, met in stored)
    price = frame.budget.currency.of_farthings(0) if free else whole
    return frame.plan(
        cap=frame.cap or frame.remaining,
        target_price=None,
        worst_price=price,
        fresh_price=price,
        half_width=math.inf,
        reachable=frame.target is None and frame.ranks[0] is None,
        free=free,
        pricing=pricing,
    )


def _most(pricing: Bisection | Choice) -> Booked:
    """Return the most that a question can cost."""
    if isinstance(pricing, Choice):
        return pricing.loss(pricing.most)
    return pricing.coin.loss(pricing.descent.cap_grains * pricing.coin.max_groups)


def _pricing(frame: Frame) -> Bisection | Choice:
    """Return the cheaper of the two roads."""
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
    asked = Asked(
        aggregate.q,
        aggregate.lower,
        aggregate.upper,
        aggregate.leaves_log2,
        query.max_rows,
        rank or 0.0,
    )
    relative, absolute = (0.0, 0.0) if target is None else (target.relative, target.absolute)
    cap = frame.cap or frame.remaining
    if named:
        return _named(frame, _choosing(asked), cap)
    if frame.budget.currency is Pure:
        if target is not None:
            raise InvalidTarget(
                "a pure budget buys ranks, not values",
                rule="a rank target",
                got=frame.goal,
                next_step="ask for rank=0.01, or open the ledger with Budget(epsilon=, delta=1e-6)",
            )
        farthings = max(2, cap.farthings // query.max_groups)
        count = max(1, farthings // COUNT_SHARE)
        if count < asked.max_rows >> _FINEST_COUNT:
            raise _too_many(f"a count of {asked.max_rows} rows a unit for {Pure.of_farthings(count)!r}")
        sought = Sought(asked.rank, 0.0, 0.0, frame.beta, farthings)
        mechanism = _choosing(asked)
        return Choice(str(aggregate), mechanism, count, farthings - count, Pure, query.max_groups, sought)
    coin = Coin(frame.gaussian, query.max_groups, 1)
    grains = min(max(coin.level(cap, (0,) * coin.max_groups), 1), MOST_GRAINS)
    descent = Descent(asked, frame.beta, grains, relative, absolute)
    sought = Sought(asked.rank, relative, absolute, frame.beta, grains)
    bisection = Bisection(str(aggregate), descent, coin, sought)
    if target is not None:
        return bisection
    cheaper = compare(descent, coin.currency, rows=TYPICAL_ROWS, max_groups=query.max_groups).cheaper
    return bisection if cheaper == "descent" else _choice(bisection, cap)


def _choosing(asked: Asked) -> ExponentialQuantile:
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


def _named(frame: Frame, mechanism: ExponentialQuantile, cap: Booked) -> Choice:
    """Return one choice that a named loss is spent on whole, without a count."""
    query, currency = frame.query, frame.budget.currency
    sought = Sought(0.0, 0.0, 0.0, frame.beta, cap.farthings)
    made = Choice(str(query.aggregate), mechanism, 0, 1, currency, query.max_groups, sought)
    return replace(made, most=_largest(made, cap))


def _largest(made: Choice, cap: Booked) -> int:
    """Return the most farthings of epsilon that one choice may have under a cap; at least one."""
    low, high = 1, 2
    while made.loss(high) <= cap:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if made.loss(middle) <= cap else (low, middle)
    return low


def _choice(bisection: Bisection, cap: Booked) -> Bisection | Choice:
    """Return the exponential mechanism's road, with as large a choice as the cap allows; the other where none fits."""
    descent, coin = bisection.descent, bisection.coin
    count = min(descent.count_grains(TYPICAL_ROWS), max(1, descent.cap_grains // COUNT_SHARE))
    mechanism = ExponentialQuantile(descent.asked)
    made = Choice(bisection.asked, mechanism, count, 1, coin.currency, coin.max_groups, bisection.sought)
    if made.loss(1) > cap or mechanism.spread > MOST_SPREAD:
        return bisection
    return replace(made, most=_largest(made, cap))
