"""The price of a release of many tables, before it is paid: how much of the loss each residual gets, and what it buys.

Targets of tables do not depend on what is found, so everything is known beforehand: the noise, the price, and whether
the target is in reach. What was measured before counts; a sharper release pays the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.limits.tables import Residuals
from farthing.mechanisms.adaptive_tables import AdaptiveTables
from farthing.mechanisms.gaussian import GRAIN, ROUNDING_VARIANCE
from farthing.planning.release_plan import BEYOND, CLOSE, BaseReleasePlan, Candidate, raised, spending, total_of
from farthing.planning.synthetic import of_models

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.planning.release_plan import Goal

    Float64 = NDArray[np.float64]

RESIDUALS: Final = "residuals"
"""The mechanism: one noisy residual for each subset of columns."""

FIRST_TABLES: Final = "adaptive, first tables"
"""What the mechanism "adaptive" knows of the tables that it measures first, beside a contest for a named loss."""


@dataclass(frozen=True, eq=False)
class ReleaseDesign:
    """What each residual is measured with, in all.

    Attributes:
        basis: the residuals of the workload.
        reach: the most rows that one unit adds.
        grains: float64[subsets], what a unit pays for each, in 2^-56 of mu^2: whole numbers.
    """

    basis: Residuals
    reach: int
    grains: Float64

    @cached_property
    def variances(self) -> Float64:
        """float64[tables], the variance of a cell of each table; infinite where a residual was not measured."""
        with np.errstate(divide="ignore"):
            each = self.basis.price * self.reach**2 * ROUNDING_VARIANCE / (self.grains * float(GRAIN))
        found: Float64 = self.basis.spread @ each
        return found

    @property
    def means(self) -> Float64:
        """float64[tables], the mean variance of a cell of each table."""
        return self.variances

    def cells_of(self, table: tuple[int, ...]) -> Float64:
        """Return the variance of each cell of any table over measured subsets: places of columns, in rising order."""
        return np.full([self.basis.sizes[place] for place in table], self.variance_of(table))

    def variance_of(self, table: tuple[int, ...]) -> float:
        """Return the variance of a cell of any table over measured subsets: places of columns, in rising order."""
        one = Residuals(self.basis.sizes, (table,), (1.0,))
        grains = dict(zip(self.basis.subsets, self.grains.tolist(), strict=True))
        return float(ReleaseDesign(one, self.reach, np.array([grains[subset] for subset in one.subsets])).variances[0])

    @property
    def rmse(self) -> float:
        """The root mean squared error of a cell, every cell of every table alike."""
        return _root_mean(self.basis.cells, self.means)

    @property
    def counted(self) -> float:
        """The same, the errors of each table counting by its weight: what rms= is about."""
        return _root_mean(self.basis.cells, self.basis.counted * self.means)

    @property
    def total(self) -> int:
        """What a unit pays in all, in grains."""
        return total_of(self.grains)

    def sharper(self, grains: Float64) -> ReleaseDesign:
        """Return the design of other grains."""
        return replace(self, grains=grains)

    def meets(self, goal: Goal) -> bool:
        """Return whether intervals or errors are within what is asked; never for a named loss."""
        if goal.absolute is not None:
            widths = goal.critical * np.sqrt(self.basis.counted * self.variances)
            return bool(widths.max() <= goal.absolute * CLOSE)
        return goal.rms is not None and self.counted <= goal.rms * CLOSE


def design_for(basis: Residuals, coin: Coin, goal: Goal, held: Float64, reach: int) -> ReleaseDesign:
    """Return the cheapest design that reaches a goal, or spends a named loss, on top of what is held.

    Guarantee: the grains of no residual are below what is held, and the goal is met; for a named loss the grains add
        up to at most that loss.
    Proof: docs/proofs/limits.tables.md, sections 2 and 3, where nothing is held.
    Assumes: nothing.
    Rounds: grains up for a goal, down for a named loss.

    Args:
        basis: the residuals of the workload.
        coin: how information turns into loss.
        goal: what is asked.
        held: float64[subsets], the grains of what was measured before.
        reach: the most rows that one unit adds.
    """
    before = ReleaseDesign(basis, reach, held)
    if goal.loss is not None:
        return spending(before, basis.least_squares(), coin.grains(goal.loss))
    if before.meets(goal):
        return before
    shares = basis.least_squares() if goal.absolute is None else basis.least_largest()[0]
    top = min(_needed(ReleaseDesign(basis, reach, shares), goal) * (1 + 1e-9), BEYOND)
    if not held.any():
        return ReleaseDesign(basis, reach, np.ceil(shares * top))
    return before.sharper(raised(held, shares, top, lambda grains: not before.sharper(grains).meets(goal), up=True))


def _needed(unit: ReleaseDesign, goal: Goal) -> float:
    """Return how many times the grains of a design a goal takes: variances fall as grains rise."""
    if goal.absolute is not None:
        return float((unit.basis.counted * unit.variances).max()) * (goal.critical / goal.absolute) ** 2
    assert goal.rms is not None  # noqa: S101  # there is a goal
    return (unit.counted / goal.rms) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePlan(BaseReleasePlan):
    """The price of a release of tables, before it is paid.

    Attributes:
        design: what each residual will have been measured with.
        before: what each was measured with before.
        aimed: the basis with the weights that the design was made for.
        pilot: the grains of all that a pilot cost, for a relative target; or will cost at most.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan_release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
    >>> plan.fits, plan.reachable
    (True, True)
    """

    design: ReleaseDesign
    before: ReleaseDesign
    aimed: Residuals
    pilot: int = 0

    @property
    def made(self) -> ReleaseDesign:
        """What will have been measured, in all."""
        return self.design

    @property
    def mechanism(self) -> str:
        """How it is measured."""
        return RESIDUALS

    @property
    def half_widths(self) -> Float64:
        """float64[tables], the half-width of every interval of each table."""
        widths: Float64 = self.goal.critical * np.sqrt(self.design.variances)
        return widths

    @property
    def half_width(self) -> float:
        """The half-width of the widest interval."""
        return float(self.half_widths.max())

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What other mechanisms would pay for the same goal, or reach with the same loss; the cheapest first."""
        return contest(self)

    def reached(self, grains: int) -> tuple[float, float]:
        """Return the largest and the mean error, as they count, that so many more grains would reach."""
        basis = self.design.basis
        shares = basis.least_squares() if self.goal.absolute is None else basis.least_largest()[0]
        made = spending(self.before, shares, self.before.total + grains)
        return math.sqrt(float((basis.counted * made.variances).max())), made.counted

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        looks = ("a coarse look at all tables",) if self.goal.relative and not self.free else ()
        return (*looks, "noisy residuals, one for each subset of the columns of a table")


def contest(plan: ReleasePlan) -> tuple[Candidate, ...]:
    """Return the candidates for a goal, priced from nothing, cheapest first (for a named loss, most accurate first).

    For a named loss the last one is what "adaptive" would know of the tables that it chooses first, and of no others.
    """
    goal, basis, reach = plan.goal, plan.design.basis, plan.design.reach
    nothing = np.zeros_like(plan.design.grains)
    ours = design_for(basis, plan.coin, goal, nothing, reach)
    found = [_candidate(plan, RESIDUALS, ours.variances, Fraction(ours.total) * GRAIN)]
    for name, unit in (("each table by itself", _by_tables(basis, goal)), ("all cells at once", _by_cells(basis))):
        variances = unit * reach**2  # at mu = 1
        if goal.loss is not None:
            mu_squared = Fraction(ours.total) * GRAIN
        elif goal.absolute is not None:
            mu_squared = Fraction(float((basis.counted * variances).max()) * (goal.critical / goal.absolute) ** 2)
        else:
            assert goal.rms is not None  # noqa: S101  # there is a goal
            mu_squared = Fraction((_root_mean(basis.cells, basis.counted * variances) / goal.rms) ** 2)
        mu_squared = min(mu_squared, Fraction(BEYOND) * GRAIN)
        found.append(_candidate(plan, name, variances / float(mu_squared), mu_squared))

    def rank(one: Candidate) -> tuple[float, float]:
        """Return its price and error, ours being first of several that are alike."""
        less = 1 - 2.0**-10 if one.name == RESIDUALS else 1.0
        return float(one.price.amount) * less, one.rmse * less

    first = () if goal.loss is None else (first_tables(basis, goal, reach),)
    return (*sorted(found, key=rank), *first)


def first_tables(basis: Residuals, goal: Goal, reach: int) -> Candidate:
    """Return how precisely "adaptive" measures a cell of the tables that it chooses first, for a named loss.

    Args:
        basis: the residuals of the workload.
        goal: its loss.
        reach: the most rows that one unit adds.
    """
    assert goal.loss is not None  # noqa: S101  # a loss was named
    deviation = AdaptiveTables(of_models(goal.loss), basis.tables, reach=reach).first_deviation(len(basis.sizes))
    return Candidate(FIRST_TABLES, deviation, goal.critical * deviation, goal.loss)


def _candidate(plan: ReleasePlan, name: str, variances: Float64, mu_squared: Fraction) -> Candidate:
    """Return a candidate of these variances at this loss."""
    rmse = _root_mean(plan.design.basis.cells, variances)
    width = plan.goal.critical * math.sqrt(float(variances.max()))
    return Candidate(name, rmse, width, plan.coin.loss_of(mu_squared))


def _by_tables(basis: Residuals, goal: Goal) -> Float64:
    """Return the variances at mu = 1 of noise that is added to each table by itself, shared out as is best."""
    if goal.absolute is not None:
        return np.asarray(basis.counted.sum() / basis.counted)
    roots = np.sqrt(basis.counted * basis.cells)
    return np.asarray(roots.sum() / roots)


def _by_cells(basis: Residuals) -> Float64:
    """Return the variances at mu = 1 of tables that are added up from noisy cells of all columns together."""
    every = math.prod(float(size) for size in basis.sizes)
    return np.asarray(every / basis.cells)


def _root_mean(cells: Float64, squares: Float64) -> float:
    """Return the root of the mean over cells of squares by table."""
    return math.sqrt(float(cells @ squares) / float(cells.sum()))
