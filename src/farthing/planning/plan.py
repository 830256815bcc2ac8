"""What a question will cost, before anything is spent: the worst price, the price by size, and what would fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol

from farthing.privacy.words import said, state
from farthing.query import outward
from farthing.rounding import digits_up
from farthing.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import TypeVar

    from farthing.accuracy.target import Target
    from farthing.privacy.loss import Booked
else:
    from typing import TypeVar

SIZES: Final = (0, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
"""The hypothetical truths that a plan prices."""

_MANY: Final = Fraction(10**300)
"""Prices above the cap by more than this are told as this."""


class Pricing(Protocol):
    """How a question will be measured, as far as prices go."""

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this size would pay."""

    def width(self, size: float) -> float:
        """Return the half-width that such a group ends with."""

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that this loss would reach for every group; infinite if none."""


if TYPE_CHECKING:
    P_co = TypeVar("P_co", bound=Pricing, covariant=True, default=Pricing)  # a plain `Plan` is priced somehow
else:
    P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Tabular, Generic[P_co]):
    """The price of a question, before it is paid.

    Attributes:
        question: the question in words.
        target: the accuracy asked for, or None where a loss was named.
        goal: the accuracy or the loss in words.
        confidence: the chance that each interval holds its truth.
        worst_price: the most that asking can cost now; what the ledger reserves.
        target_price: the most that the target can cost from scratch and without a cap; None for a named loss, or where
            a group of zero could never be within the target.
        cap: the most that this question may cost in all.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        half_width: the half-width, in answer units, that every group reaches that is not given up early; infinite
            where that depends on what the group holds.
        reachable: whether every group, whatever its size, reaches the target within the cap.
        fits: whether the worst price fits in what is left.
        about: the privacy unit and its bounds, in words.
        fresh_price: the worst price of the new measurements alone, for a question that another process has open.
        free: whether what was released before already answers.
        pricing: how it will be measured.
        hopeless: whether public facts show that no group, whatever it holds, can be within its target under the cap.
            A relative target is never hopeless: groups that are large enough meet it.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> plan = s.plan(relative=0.1, absolute=50)
    >>> plan.fits, plan.reachable
    (True, True)
    """

    missing: ClassVar[str] = "-"

    question: str
    target: Target | None
    goal: str
    confidence: float
    worst_price: Booked
    target_price: Booked | None
    cap: Booked
    remaining: Booked
    delta: float
    half_width: float
    reachable: bool
    about: str
    fresh_price: Booked
    free: bool
    pricing: P_co
    hopeless: bool = False

    def __post_init__(self) -> None:
        for price in ("worst_price", "fresh_price"):
            object.__setattr__(self, price, getattr(self, price).booked)

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.plan(absolute=50).steps
        ('COUNT(*) with Gaussian noise, in looks, each group until it is within the target',)
        """
        return self.pricing.steps

    def with_note(self, more: str) -> Plan[P_co]:
        """Return the same plan with one more thing to say about its numbers."""
        return replace(self, about=f"{self.about}; {more}")

    @property
    def fits(self) -> bool:
        """Whether the worst price fits in what is left, if anything is."""
        return self.free or (bool(self.remaining) and self.worst_price <= self.remaining)

    def price(self, size: float) -> Booked:
        """Return about what the members of a group of this true size would pay, if it had not been asked before.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> plan = s.plan(relative=0.1, absolute=50)
        >>> plan.price(100_000) < plan.price(100)
        True
        """
        return self.pricing.price(size)

    @property
    def prices(self) -> list[dict[str, Any]]:
        """The price of a group's members by the group's size: rows of size, half_width, paid, epsilon."""
        rows = []
        for size in SIZES:
            loss = self.price(size)
            width = _finite(self.pricing.width(size))
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
        if self.hopeless:
            return f'{self._dear}{self._at_best}{self._raising}; or on_miss="spend" pays for what the cap allows'
        if not math.isfinite(self.half_width):
            return f"{self._dear}{self._depends}{self._raising}"
        end = "are given up early and pay little" if self.pricing.gives_up else f"stop at +/-{_number(self.half_width)}"
        return f"{self._dear}groups too small for it {end}, marked not met; {self._near}{self._raising}"

    @property
    def _dear(self) -> str:
        """How much more than the cap the target takes, in words."""
        if self.target_price is None:
            return ""
        times = _number(float(min(Fraction(self.target_price.amount / self.cap.amount), _MANY)))
        unit = "mu^2" if self.worst_price.parameter == "mu" else self.worst_price.parameter
        return f"the target would take {said(self.target_price, self.delta)}, {times} times the cap in {unit}; "

    @property
    def _why_free(self) -> str:
        """Why nothing is paid, in words; "" where something is."""
        if not self.free:
            return ""
        return " (nothing is measured: free)" if self.steps[0].startswith("nothing") else " (already paid for: free)"

    @property
    def _raising(self) -> str:
        """How the cap is raised, in words; "" where it is all that is left."""
        whole = max(self.worst_price.farthings, self.cap.farthings) >= self.remaining.farthings
        return "" if whole else '; max_epsilon= or cap="all" raises the cap'

    @property
    def _near(self) -> str:
        """The absolute target that the cap would reach, in words."""
        return f"absolute={digits_up(self.half_width):.6g} fits this cap"

    @property
    def _depends(self) -> str:
        """What becomes of groups of which nothing is known beforehand, in words."""
        if not self.pricing.gives_up:
            return "groups too small for it stop at the cap, marked not met"
        found = "whether a group can be within its target under the cap depends on what it holds"
        return f"{found}: one that surely cannot is given up early, marked not met, and pays for its looks until then"

    @property
    def _at_best(self) -> str:
        """Where a hopeless question would end, in words."""
        if not math.isfinite(self.half_width):
            return "no group can be within its targets under the cap"
        return f"every group would stop at +/-{_number(self.half_width)}, not met, for the whole cap; {self._near}"

    @property
    def _reach(self) -> str:
        """How near every group comes to its truth, in words."""
        if not math.isfinite(self.half_width):
            if self.reachable and self.target is not None:
                return "every group is within its target at that price"
            return "no group pays more; one that is not within its target by then is told as not met"
        reach = f"every group is within +/-{_number(self.half_width)} at that price"
        return f"{reach}, but for those that are given up early" if self.pricing.gives_up else reach

    @property
    def fitting(self) -> str:
        """The target that what is left would pay for, in words."""
        width = self.affordable
        if not self.remaining:
            return "nothing is left to ask with"
        if not math.isfinite(width):
            return 'a wider target may fit; cap="all" stops at what is left'
        return f"at +/-{digits_up(width):,.6g} ({self.confidence:.4g}) it would fit"

    @property
    def affordable(self) -> float:
        """The half-width that what is left would reach for every group, in answer units; infinite if none."""
        return self.pricing.affordable(self.remaining)

    def to_arrow(self) -> pa.Table:
        """Return the price of a group's members by the group's size, as `prices` does."""
        import pyarrow as pa

        kinds = {"size": pa.int64(), "half_width": pa.float64(), "paid": pa.float64(), "epsilon": pa.float64()}
        return pa.Table.from_pylist(self.prices, pa.schema(kinds.items()))

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the prices: the question, the worst price, what is left, and what to do."""
        return (*self._head, self.about, *([f"note: {self.advice}"] if self.advice else []))

    @property
    def _head(self) -> tuple[str, ...]:
        """What is asked, and what it costs at most, in lines."""
        return (
            f"{self.question}, {self.goal}, {self.confidence:.4g} confidence",
            f"worst price  {said(self.worst_price, self.delta)}{self._why_free}",
            f"cap          {said(self.cap, self.delta)} for this question",
            f"left         {said(self.remaining, self.delta)}",
            self._reach,
            *(f"measured     {step}" for step in self.steps),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {
            "question": self.question,
            "goal": self.goal,
            "target": None if self.target is None else self.goal.removeprefix("within "),
            "confidence": self.confidence,
            "worst_price": state(self.worst_price, self.delta),
            "target_price": None if self.target_price is None else state(self.target_price, self.delta),
            "cap": state(self.cap, self.delta),
            "remaining": state(self.remaining, self.delta),
            "half_width": _finite(self.half_width),
            "reachable": self.reachable,
            "hopeless": self.hopeless,
            "fits": self.fits,
            "free": self.free,
            "about": self.about,
            "advice": self.advice,
            "steps": list(self.steps),
            "prices": self.prices,
        }

    def __str__(self) -> str:
        lines = [
            *self._head,
            f"{'size':>10}  {'half-width':>10}  {'pays ' + self.worst_price.parameter:>12}  {'epsilon':>10}",
        ]
        lines += [
            f"{row['size']:>10,}  {_shown(row['half_width']):>10}  {row['paid']:>12.4g}  {row['epsilon']:>10.4g}"
            for row in self.prices
        ]
        lines += [self.about, *([f"note: {self.advice}"] if self.advice else [])]
        return "\n".join(map(outward.line, lines))


def _finite(x: float) -> float | None:
    """Return a number, or None where it is infinite."""
    return x if math.isfinite(x) else None


def _shown(x: float | None) -> str:
    """Return a half-width with few digits, or a dash."""
    return "-" if x is None else _number(x)


def _number(x: float) -> str:
    """Return a number with few digits."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"
