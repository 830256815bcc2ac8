"""The price of a release of products, before it is paid: which way is the cheapest, and what each strategy gets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS
from farthing.planning.release import Candidate, Goal
from farthing.privacy.words import said, state
from farthing.query import outward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.planning.ways import Way, Ways
    from farthing.privacy.loss import Booked

    Float64 = NDArray[np.float64]

_STEPS: Final = 100
_BEYOND: Final = 2.0**130
_CLOSE: Final = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class ProductDesign:
    """What each strategy of a way is measured with, in all.

    Attributes:
        way: the way.
        reach: the most rows that one unit adds.
        grains: float64[strategies], what a unit pays for each, in 2^-56 of mu^2: whole numbers.
    """

    way: Way
    reach: int
    grains: Float64

    @cached_property
    def variances(self) -> tuple[Float64, ...]:
        """For each product float64[answers], the variances; infinite where something was not measured."""
        pairs = zip(self.way.strategies, self.grains.tolist(), strict=True)
        each = np.array([strategy.variance(grains, self.reach) for strategy, grains in pairs])
        with np.errstate(invalid="ignore"):
            return tuple(np.where(spread > 0, spread * each, 0.0).sum(axis=1) for spread in self.way.spreads)

    @cached_property
    def counted(self) -> tuple[Float64, ...]:
        """The variances as errors count: times the squared weights."""
        return tuple(w**2 * each for w, each in zip(self.way.weights, self.variances, strict=True))

    @property
    def rmse(self) -> float:
        """The root mean squared error of an answer, all answers alike."""
        return math.sqrt(float(np.concatenate(self.variances).mean()))

    @property
    def mean(self) -> float:
        """The same, errors counting by their weights."""
        return math.sqrt(float(np.concatenate(self.counted).mean()))

    @property
    def largest(self) -> float:
        """The largest standard deviation, as errors count."""
        return math.sqrt(float(np.concatenate(self.counted).max()))

    @property
    def total(self) -> int:
        """What a unit pays in all, in grains."""
        return sum(map(int, self.grains.tolist()))

    def excess(self, goal: Goal) -> float:
        """Return the error over what is asked; 1 or less where the goal is met."""
        if goal.absolute is not None:
            return goal.critical * self.largest / goal.absolute
        assert goal.rms is not None  # noqa: S101  # there is a goal
        return self.mean / goal.rms


def design_for(way: Way, coin: Coin, goal: Goal, held: Float64, reach: int) -> ProductDesign:
    """Return the cheapest design of a way that reaches a goal, or spends a named loss, on top of what is held.

    Guarantee: the grains of no strategy are below what is held, and the goal is met; for a named loss the grains add
        up to at most that loss.
    Proof: docs/proofs/limits.strategies.md, section 2.
    Assumes: nothing.
    Rounds: grains up for a goal, down for a named loss.

    Args:
        way: the way.
        coin: how information turns into loss.
        goal: what is asked; never a relative target.
        held: float64[strategies], the grains of what was measured before.
        reach: the most rows that one unit adds.
    """
    before = ProductDesign(way, reach, held)
    shares = way.least_squares() if goal.absolute is None else way.least_largest()
    if goal.loss is not None:
        most = float(coin.grains(goal.loss))
        if before.total >= most:
            return before
        return _bisected(before, shares, most, lambda made: made.total <= most, up=False)
    if before.excess(goal) <= _CLOSE:
        return before
    unit = ProductDesign(way, reach, shares)
    top = min(unit.excess(goal) ** 2 * (1 + 1e-9), _BEYOND)
    if not held.any():
        return ProductDesign(way, reach, np.ceil(shares * top))
    return _bisected(before, shares, top, lambda made: made.excess(goal) > _CLOSE, up=True)


def _bisected(before: ProductDesign, shares: Float64, top: float, low_side: Any, *, up: bool) -> ProductDesign:
    """Return the design between nothing and `top` times the shares where `low_side` ends: just above, or just below."""
    low, high, rounded = 0.0, top, np.ceil if up else np.floor

    def made(level: float) -> ProductDesign:
        """Return a design, on top of what is held."""
        return ProductDesign(before.way, before.reach, np.maximum(before.grains, rounded(shares * level)))

    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if low_side(made(middle)) else (low, middle)
    return made(high if up else low)


@dataclass(frozen=True, slots=True, eq=False)
class ProductPlan:
    """The price of a release of products, before it is paid.

    Attributes:
        question: what is released, in words.
        goal: what is asked.
        ways: all ways to answer, and the least that any unbiased one pays.
        design: what each strategy of the chosen way will have been measured with.
        before: what each was measured with before.
        worst_price: what it costs now.
        cap: the most that it may cost.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        about: the privacy unit and its bounds, in words.
        coin: how grains turn into loss.
        most_rows: the most rows of one unit that may be in one cell.
        free: whether what was released before already answers.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import prefixes
    >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan_release(prefixes("a", [0, 2, 4]), absolute=50)
    >>> plan.fits, plan.reachable, plan.mechanism
    (True, True, 'factors')
    """

    question: str
    goal: Goal
    ways: Ways
    design: ProductDesign
    before: ProductDesign
    worst_price: Booked
    cap: Booked
    remaining: Booked
    delta: float
    about: str
    coin: Coin
    most_rows: int
    free: bool

    @property
    def mechanism(self) -> str:
        """The name of the chosen way."""
        return self.design.way.name

    @property
    def fits(self) -> bool:
        """Whether the price fits in what is left."""
        return self.worst_price <= self.remaining

    @property
    def reachable(self) -> bool:
        """Whether the price is within the cap."""
        return self.worst_price <= self.cap

    @property
    def too_much(self) -> bool:
        """Whether it takes more than the books of one question hold: mu = 8."""
        return self.design.total >= MOST_GRAINS

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return self.goal.confidence

    @property
    def rmse(self) -> float:
        """The root mean squared error of an answer."""
        return self.design.rmse

    @property
    def half_widths(self) -> tuple[Float64, ...]:
        """For each product float64[answers], the half-widths of its intervals."""
        return tuple(self.goal.critical * np.sqrt(each) for each in self.design.variances)

    @property
    def half_width(self) -> float:
        """The half-width of the widest interval."""
        return float(max(each.max() for each in self.half_widths))

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What every way would pay for the same goal, or reach with the same loss; the cheapest first."""
        return contest(self.ways, self.goal, self.coin, self.design.reach)

    @property
    def fitting(self) -> str:
        """What would fit in what is left or under the cap, in words."""
        allowed = min(self.cap, self.remaining, key=lambda loss: loss.amount)
        most = float(self.before.total + self.coin.grains(allowed))
        if not most or self.goal.loss is not None:
            return "nothing is left to ask with" if not self.remaining else "name a smaller loss"
        way, goal = self.design.way, self.goal
        shares = way.least_squares() if goal.absolute is None else way.least_largest()
        reached = _bisected(self.before, shares, most, lambda made: made.total <= most, up=False)
        if not math.isfinite(reached.rmse):
            return "a wider target may fit"
        if goal.absolute is None:
            return f"rms={_rounded_up(reached.mean):.6g} would fit"
        return f"absolute={_rounded_up(goal.critical * reached.largest):.6g} would fit"

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words."""
        return (f"noisy sums of cells, by {len(self.design.way.strategies):,} strategies",)

    @property
    def prices(self) -> list[dict[str, Any]]:
        """The price by the size of a cell: none, since members of all cells pay the same."""
        return []

    @property
    def advice(self) -> str:
        """What to do about a plan that does not fit or does not reach; "" when all is well."""
        return "" if self.fits and self.reachable else self.fitting

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {
            "question": self.question,
            "goal": self.goal.words,
            "confidence": self.goal.confidence,
            "mechanism": self.mechanism,
            "worst_price": state(self.worst_price, self.delta),
            "cap": state(self.cap, self.delta),
            "remaining": state(self.remaining, self.delta),
            "half_width": self.half_width,
            "rmse": self.rmse,
            "reachable": self.reachable,
            "fits": self.fits,
            "free": self.free,
            "about": self.about,
            "advice": self.advice,
            "steps": list(self.steps),
            "prices": self.prices,
        }

    def __str__(self) -> str:
        lines = [
            f"{self.question}, {self.goal.words}, {self.goal.confidence:.4g} confidence",
            f"price        {said(self.worst_price, self.delta)}" + (" (already paid for: free)" if self.free else ""),
            f"cap          {said(self.cap, self.delta)} for this question",
            f"left         {said(self.remaining, self.delta)}",
            f"every answer is within +/-{self.half_width:.4g}, root mean squared error {self.rmse:.4g}",
            *(f"{one.name:>24}  {said(one.price, self.delta)}, rmse {one.rmse:.4g}" for one in self.contest),
            self.about,
        ]
        return "\n".join(map(outward.line, lines))


def contest(ways: Ways, goal: Goal, coin: Coin, reach: int) -> tuple[Candidate, ...]:
    """Return what each way costs for a goal, from nothing, the cheapest first (for a named loss the most accurate)."""
    found = []
    for way in ways.ways:
        made = design_for(way, coin, goal, np.zeros(len(way.strategies)), reach)
        width = goal.critical * math.sqrt(max(float(each.max()) for each in made.variances))
        price = coin.loss_of(min(Fraction(made.total), Fraction(_BEYOND)) * GRAIN)
        found.append(Candidate(way.name, made.rmse, width, price))
    if goal.loss is not None:
        return tuple(sorted(found, key=lambda one: one.rmse))
    return tuple(sorted(found, key=lambda one: float(one.price.amount)))


def _rounded_up(x: float) -> float:
    """Return a number of three digits that is >= x."""
    step = 10.0 ** (math.floor(math.log10(x)) - 2)
    return math.ceil(x / step) * step
