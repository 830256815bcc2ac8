"""The price of a release of any kind, before it is paid: what is asked, what it takes, and how it is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import numpy as np

from farthing.mechanisms.gaussian import MOST_GRAINS
from farthing.privacy.words import said, state
from farthing.query import outward
from farthing.rounding import digits_up
from farthing.tabular import Lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.privacy.loss import Booked

    Float64 = NDArray[np.float64]

BEYOND: Final = 2.0**130
"""More grains than any budget has; prices beyond are told as this."""

CLOSE: Final = 1 + 1e-12
"""How far an error may be beyond its goal by rounding."""

_STEPS: Final = 100
"""Bisections of a scale: far more than float64 tells apart."""


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


class ReleaseDesigned(Protocol):
    """What is measured for a release, and how precisely."""

    @property
    def rmse(self) -> float:
        """The root mean squared error of an answer, all answers alike."""

    @property
    def total(self) -> int:
        """What a unit pays in all, in grains."""


class Sharpened(Protocol):
    """A design that can be made sharper."""

    @property
    def total(self) -> int:
        """What a unit pays in all, in grains."""

    @property
    def grains(self) -> Float64:
        """float64[measured], what each pays."""

    def sharper(self, grains: Float64) -> Self:
        """Return the design with other grains, none below what is held."""


D = TypeVar("D", bound=Sharpened)


@dataclass(frozen=True, slots=True, eq=False)
class BaseReleasePlan(Lines):
    """The price of a release of any kind, before it is paid.

    Attributes:
        question: what is released, in words.
        goal: what is asked.
        worst_price: the most that it costs now; all of it, but for a relative target.
        cap: the most that it may cost.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        about: the privacy unit and its bounds, in words.
        coin: how grains turn into loss.
        most_rows: the most rows of one unit that may be in one cell.
        free: whether what was released before already answers.
    """

    question: str
    goal: Goal
    worst_price: Booked
    cap: Booked
    remaining: Booked
    delta: float
    about: str
    coin: Coin
    most_rows: int
    free: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "worst_price", self.worst_price.booked)

    @property
    def made(self) -> ReleaseDesigned:
        """What will have been measured, in all."""
        raise NotImplementedError

    @property
    def mechanism(self) -> str:
        """How it is measured."""
        raise NotImplementedError

    @property
    def half_width(self) -> float:
        """The half-width of the widest interval."""
        raise NotImplementedError

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What each way to measure would pay for the same goal, or reach with the same loss; the cheapest first."""
        raise NotImplementedError

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        raise NotImplementedError

    def reached(self, grains: int) -> tuple[float, float]:
        """Return the largest and the mean error, as they count, that so many more grains would reach."""
        raise NotImplementedError

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
        return self.made.total >= MOST_GRAINS

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return self.goal.confidence

    @property
    def rmse(self) -> float:
        """The root mean squared error of an answer, all answers alike."""
        return self.made.rmse

    @property
    def fitting(self) -> str:
        """What would fit in what is left or under the cap, in words."""
        allowed = min(self.cap, self.remaining, key=lambda loss: loss.amount)
        grains = self.coin.grains(allowed)
        if not grains or self.goal.loss is not None:
            return "nothing is left to ask with" if not self.remaining else "name a smaller loss"
        largest, mean = self.reached(grains)
        if not math.isfinite(largest):
            return "a wider target may fit"
        if self.goal.absolute is None:
            return f"rms={digits_up(mean, 3):.6g} would fit"
        return f"absolute={digits_up(self.goal.critical * largest, 3):.6g} would fit"

    @property
    def prices(self) -> list[dict[str, Any]]:
        """The price by the size of a cell: none, since a member is in cells of many sizes."""
        return []

    @property
    def advice(self) -> str:
        """What to do about a plan that does not fit or does not reach; "" when all is well."""
        if self.fits and self.reachable:
            return ""
        more = (
            'max_epsilon= or cap="all" raises the cap' if self.cap < self.remaining else "no more is left to pay with"
        )
        return f"{self.fitting}; {more}" if not self.reachable else self.fitting

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
            f"every {self.goal.what} is within +/-{self.half_width:.4g}, root mean squared error {self.rmse:.4g}",
            *(f"{one.name:>24}  {said(one.price, self.delta)}, rmse {one.rmse:.4g}" for one in self.contest),
            self.about,
            *([f"note: this is out of reach: {self.advice}"] if self.advice else []),
        ]
        return "\n".join(map(outward.line, lines))


def spending(before: D, shares: Float64, grains: int) -> D:
    """Return the best design whose grains add up to at most so many, on top of what is held.

    Args:
        before: what is held.
        shares: float64[measured], how further grains are shared out.
        grains: the most of all together.
    """
    if before.total >= grains:
        return before
    fits = raised(before.grains, shares, float(grains), lambda made: total_of(made) <= grains, up=False)
    return before.sharper(fits)


def raised(held: Float64, shares: Float64, top: float, low_side: Callable[[Float64], bool], *, up: bool) -> Float64:
    """Return the grains of `level * shares`, on top of what is held, at the level where `low_side` ends.

    Args:
        held: float64[measured], the grains of what was measured before.
        shares: float64[measured], how further grains are shared out.
        top: the highest level.
        low_side: whether so many grains are still on the low side.
        up: whether what is found is just above the end, with grains rounded up; else just below, rounded down.
    """
    low, high, rounded = 0.0, top, np.ceil if up else np.floor
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if low_side(np.maximum(held, rounded(shares * middle))) else (low, middle)
    found: Float64 = np.maximum(held, rounded(shares * (high if up else low)))
    return found


def total_of(grains: Float64) -> int:
    """Return the sum of grains, exactly."""
    return sum(map(int, grains.tolist()))
