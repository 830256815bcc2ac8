"""The price of a release of many tables, before it is paid: how much of the loss each residual gets, and what it buys.

Targets of tables do not depend on what is found, so everything is known beforehand: the noise, the price, and whether
the target is in reach. What was measured before counts; a sharper release pays the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.limits.tables import Residuals
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE
from farthing.privacy.words import said, state
from farthing.query import outward

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.privacy.loss import Booked

    Float64 = NDArray[np.float64]

RESIDUALS: Final = "residuals"
"""The mechanism: one noisy residual for each subset of columns."""

_STEPS: Final = 100
"""Bisections of a scale: far more than float64 tells apart."""

_BEYOND: Final = 2.0**130
"""More grains than any budget has; prices beyond are told as this."""

_CLOSE: Final = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked of a release: one of an error of every cell, a mean error, and a price.

    Attributes:
        absolute: the half-width of every cell's interval, over the weight of its table; or None.
        rms: the root mean squared error per cell, or None.
        loss: the loss named instead, or None.
        confidence: the chance that an interval holds its truth.
        beta: the chance of a miss that is left to each cell.
        simultaneous: whether all intervals hold at once.
        relative: the half-width of an interval as a fraction of its cell, where that is more than the absolute one.
        what: what a number is called: a cell, or an answer.
    """

    absolute: float | None
    rms: float | None
    loss: Booked | None
    confidence: float
    beta: float
    simultaneous: bool = False
    relative: float = 0.0
    what: str = "cell"

    @property
    def critical(self) -> float:
        """The half-width of an interval, in standard deviations."""
        from scipy.special import ndtri

        return float(-ndtri(self.beta / 2))

    @property
    def words(self) -> str:
        """The goal in words."""
        once = f" for all {self.what}s at once" if self.simultaneous else ""
        if self.absolute is not None:
            share = f"{100 * self.relative:.6g} % or " if self.relative else ""
            return f"every {self.what} within {share}{self.absolute:,.6g}{once}"
        if self.rms is not None:
            return f"within {self.rms:,.6g} of root mean squared error a {self.what}"
        return f"at {self.loss!r} (named)"


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

    def variance_of(self, table: tuple[int, ...]) -> float:
        """Return the variance of a cell of any table over measured subsets: places of columns, in rising order."""
        one = Residuals(self.basis.sizes, (table,), (1.0,))
        grains = dict(zip(self.basis.subsets, self.grains.tolist(), strict=True))
        return float(ReleaseDesign(one, self.reach, np.array([grains[subset] for subset in one.subsets])).variances[0])

    @property
    def rmse(self) -> float:
        """The root mean squared error of a cell, every cell of every table alike."""
        return _root_mean(self.basis.cells, self.variances)

    @property
    def counted(self) -> float:
        """The same, the errors of each table counting by its weight: what rms= is about."""
        return _root_mean(self.basis.cells, self.basis.counted * self.variances)

    @property
    def total(self) -> int:
        """What a unit pays in all, in grains."""
        return sum(map(int, self.grains.tolist()))

    def meets(self, goal: Goal) -> bool:
        """Return whether intervals or errors are within what is asked; never for a named loss."""
        if goal.absolute is not None:
            widths = goal.critical * np.sqrt(self.basis.counted * self.variances)
            return bool(widths.max() <= goal.absolute * _CLOSE)
        return goal.rms is not None and self.counted <= goal.rms * _CLOSE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to answer the workload, with what it would cost or reach.

    Attributes:
        name: what people call it.
        rmse: the root mean squared error of a cell at that price.
        half_width: the widest interval's half-width at that price.
        price: what the goal costs with it, from nothing.
    """

    name: str
    rmse: float
    half_width: float
    price: Booked


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
        return _spending(before, basis.least_squares(), coin.grains(goal.loss))
    if before.meets(goal):
        return before
    shares = basis.least_squares() if goal.absolute is None else basis.least_largest()[0]
    top = min(_needed(ReleaseDesign(basis, reach, shares), goal) * (1 + 1e-9), _BEYOND)
    low, high = (0.0 if held.any() else top), top
    for _ in range(_STEPS if held.any() else 0):
        middle = (low + high) / 2
        enough = ReleaseDesign(basis, reach, np.maximum(held, np.ceil(shares * middle))).meets(goal)
        low, high = (low, middle) if enough else (middle, high)
    return ReleaseDesign(basis, reach, np.maximum(held, np.ceil(shares * high)))


def _needed(unit: ReleaseDesign, goal: Goal) -> float:
    """Return how many times the grains of a design a goal takes: variances fall as grains rise."""
    if goal.absolute is not None:
        return float((unit.basis.counted * unit.variances).max()) * (goal.critical / goal.absolute) ** 2
    assert goal.rms is not None  # noqa: S101  # there is a goal
    return (unit.counted / goal.rms) ** 2


def _spending(before: ReleaseDesign, shares: Float64, grains: int) -> ReleaseDesign:
    """Return the best design whose grains add up to at most so many, on top of what is held."""
    held = before.grains
    if before.total >= grains:
        return before
    low, high = 0.0, float(grains)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        made = ReleaseDesign(before.basis, before.reach, np.maximum(held, np.floor(shares * middle)))
        low, high = (middle, high) if made.total <= grains else (low, middle)
    return ReleaseDesign(before.basis, before.reach, np.maximum(held, np.floor(shares * low)))


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePlan:
    """The price of a release, before it is paid.

    Attributes:
        question: what is released, in words.
        goal: what is asked.
        design: what each residual will have been measured with.
        before: what each was measured with before.
        worst_price: the most that it costs now; all of it, but for a relative target.
        cap: the most that it may cost.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        about: the privacy unit and its bounds, in words.
        coin: how grains turn into loss.
        most_rows: the most rows of one unit that may be in one cell.
        pilot: the grains of all that a pilot cost, for a relative target; or will cost at most.
        aimed: the basis with the weights that the design was made for.
        free: whether what was released before already answers.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan_release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50)
    >>> plan.fits, plan.reachable
    (True, True)
    """

    question: str
    goal: Goal
    design: ReleaseDesign
    before: ReleaseDesign
    worst_price: Booked
    cap: Booked
    remaining: Booked
    delta: float
    about: str
    coin: Coin
    most_rows: int
    aimed: Residuals
    free: bool
    pilot: int = 0

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
        """The root mean squared error of a cell."""
        return self.design.rmse

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

    @property
    def fitting(self) -> str:
        """What would fit in what is left or under the cap, in words."""
        allowed = min(self.cap, self.remaining, key=lambda loss: loss.amount)
        grains = self.before.total + self.coin.grains(allowed)
        if not grains or self.goal.loss is not None:
            return "nothing is left to ask with" if not self.remaining else "name a smaller loss"
        goal, basis = self.goal, self.design.basis
        shares = basis.least_squares() if goal.absolute is None else basis.least_largest()[0]
        reached = _spending(self.before, shares, grains)
        if not math.isfinite(reached.rmse):
            return "a wider target may fit"
        if goal.absolute is None:
            return f"rms={_rounded_up(reached.counted):.6g} would fit"
        width = goal.critical * math.sqrt(float((basis.counted * reached.variances).max()))
        return f"absolute={_rounded_up(width):.6g} would fit"

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        looks = ("a coarse look at all tables",) if self.goal.relative and not self.free else ()
        return (*looks, "noisy residuals, one for each subset of the columns of a table")

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
            f"every cell is within +/-{self.half_width:.4g}, root mean squared error {self.rmse:.4g}",
            *(f"{one.name:>24}  {said(one.price, self.delta)}, rmse {one.rmse:.4g}" for one in self.contest),
            self.about,
        ]
        return "\n".join(map(outward.line, lines))


def contest(plan: ReleasePlan) -> tuple[Candidate, ...]:
    """Return the candidates for a goal, priced from nothing, cheapest first (for a named loss, most accurate first)."""
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
        mu_squared = min(mu_squared, Fraction(_BEYOND) * GRAIN)
        found.append(_candidate(plan, name, variances / float(mu_squared), mu_squared))

    def rank(one: Candidate) -> tuple[float, float]:
        """Return its price and error, ours being first of several that are alike."""
        less = 1 - 2.0**-10 if one.name == RESIDUALS else 1.0
        return float(one.price.amount) * less, one.rmse * less

    return tuple(sorted(found, key=rank))


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


def _rounded_up(x: float) -> float:
    """Return a number of three digits that is >= x."""
    step = 10.0 ** (math.floor(math.log10(x)) - 2)
    return math.ceil(x / step) * step
