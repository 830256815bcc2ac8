"""The price of a release of products, before it is paid: which way is the cheapest, and what each strategy gets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.gaussian import GRAIN
from farthing.planning.release_plan import BEYOND, CLOSE, BaseReleasePlan, Candidate, raised, spending, total_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.planning.release_plan import Goal
    from farthing.planning.ways import Way, Ways

    Float64 = NDArray[np.float64]


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

    @property
    def noises(self) -> list[float]:
        """The variance of the measurements of each strategy."""
        pairs = zip(self.way.strategies, self.grains.tolist(), strict=True)
        return [strategy.variance(grains, self.reach) for strategy, grains in pairs]

    @cached_property
    def variances(self) -> tuple[Float64, ...]:
        """For each product float64[answers], the variances; infinite where something was not measured."""
        each = np.array(self.noises)
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
        return total_of(self.grains)

    def sharper(self, grains: Float64) -> ProductDesign:
        """Return the design of other grains."""
        return replace(self, grains=grains)

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
        goal: what is asked; of a relative target the absolute one.
        held: float64[strategies], the grains of what was measured before.
        reach: the most rows that one unit adds.
    """
    before = ProductDesign(way, reach, held)
    shares = way.least_squares() if goal.absolute is None else way.least_largest()
    if goal.loss is not None:
        return spending(before, shares, coin.grains(goal.loss))
    if before.excess(goal) <= CLOSE:
        return before
    unit = ProductDesign(way, reach, shares)
    top = min(unit.excess(goal) ** 2 * (1 + 1e-9), BEYOND)
    if not held.any():
        return ProductDesign(way, reach, np.ceil(shares * top))
    return before.sharper(
        raised(held, shares, top, lambda grains: before.sharper(grains).excess(goal) > CLOSE, up=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class ProductPlan(BaseReleasePlan):
    """The price of a release of products, before it is paid.

    Attributes:
        ways: all ways to answer, and the least that any unbiased one pays.
        design: what each strategy of the chosen way will have been measured with.
        before: what each was measured with before.
        pilot: the grains of all that a pilot cost, for a relative target; or will cost at most.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import prefixes
    >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan_release(prefixes("a", [0, 2, 4]), absolute=50)
    >>> plan.fits, plan.reachable, plan.mechanism
    (True, True, 'factors')
    """

    ways: Ways
    design: ProductDesign
    before: ProductDesign
    pilot: int = 0

    @property
    def made(self) -> ProductDesign:
        """What will have been measured, in all."""
        return self.design

    @property
    def mechanism(self) -> str:
        """The name of the chosen way."""
        return self.design.way.name

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

    def reached(self, grains: int) -> tuple[float, float]:
        """Return the largest and the mean error, as they count, that so many more grains would reach."""
        way = self.design.way
        shares = way.least_squares() if self.goal.absolute is None else way.least_largest()
        made = spending(self.before, shares, self.before.total + grains)
        return made.largest, made.mean

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words."""
        looks = ("a coarse look at all sums",) if self.goal.relative and not self.free else ()
        return (*looks, f"noisy sums of cells, by {len(self.design.way.strategies):,} strategies")


def contest(ways: Ways, goal: Goal, coin: Coin, reach: int) -> tuple[Candidate, ...]:
    """Return what each way costs for a goal, from nothing, the cheapest first (for a named loss the most accurate)."""
    found = []
    for way in ways.ways:
        made = design_for(way, coin, goal, np.zeros(len(way.strategies)), reach)
        width = goal.critical * math.sqrt(max(float(each.max()) for each in made.variances))
        price = coin.loss_of(min(Fraction(made.total), Fraction(BEYOND)) * GRAIN)
        found.append(Candidate(way.name, made.rmse, width, price))
    if goal.loss is not None:
        return tuple(sorted(found, key=lambda one: one.rmse))
    return tuple(sorted(found, key=lambda one: float(one.price.amount)))
