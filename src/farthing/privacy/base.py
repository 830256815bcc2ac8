"""What every privacy loss is: frozen, exact, and restated only by theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np

from farthing.errors import InvalidBudget
from farthing.privacy.curve import Profile
from farthing.privacy.numbers import within_unit
from farthing.rounding import FARTHING, coins_up, up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.privacy.numbers import Number

L = TypeVar("L", bound="Loss")

ZERO: Final = Fraction(0)


class Loss:
    """A privacy loss: frozen and exact; additive and ordered within one currency.

    Attributes:
        amount: the exact loss in the currency's additive coin (epsilon, rho or mu^2).
        slack: the delta of events that are left out; 0 for all kinds but Approx and Zcdp.
    """

    __slots__ = ("amount", "slack")
    amount: Fraction
    slack: Fraction
    currency: ClassVar[str]
    parameter: ClassVar[str]

    @classmethod
    def of_amount(cls, amount: Fraction) -> Self:
        """Return the loss of an exact additive amount."""
        return cls.of_parts(amount=amount)

    @classmethod
    def of_farthings(cls, farthings: int) -> Self:
        """Return the loss of a whole number of farthings, as the ledger holds it."""
        return cls.of_amount(farthings * FARTHING)

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """Return the loss of exact parts that were checked before."""
        loss = cls.__new__(cls)
        loss._set(**parts)  # noqa: SLF001  the loss is of this class
        return loss

    def _set(self, *, slack: Fraction = ZERO, **parts: Any) -> None:
        """Write the parts, once."""
        for name, part in {**parts, "slack": slack}.items():
            object.__setattr__(self, name, part)

    @property
    def farthings(self) -> int:
        """The loss in whole farthings, rounded up: what the ledger books."""
        return coins_up(self.amount)

    @property
    def booked(self) -> Self:
        """The same loss in whole farthings, rounded up: as the ledger holds it.

        >>> import farthing
        >>> loss = farthing.Gdp(0.1)
        >>> loss <= loss.booked, loss.booked.farthings == loss.farthings
        (True, True)
        """
        return type(self).of_parts(amount=self.farthings * FARTHING, slack=self.slack)

    @property
    def value(self) -> float:
        """The currency's own parameter (epsilon, rho or mu), rounded up."""
        return up(self.amount)

    def epsilon(self, delta: Number) -> float:
        """Return the least known epsilon with (epsilon, delta)-DP, rounded up."""
        raise NotImplementedError

    def delta(self, epsilon: Number) -> float:
        """Return the least known delta with (epsilon, delta)-DP, rounded up."""
        raise NotImplementedError

    def deltas(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `delta` at each epsilon; float64[...]."""
        each = [self.delta(epsilon) for epsilon in epsilons.ravel().tolist()]
        return np.array(each, dtype=np.float64).reshape(epsilons.shape)

    def for_group(self, k: int) -> Loss:
        """Return the loss of k units at once."""
        raise NotImplementedError

    def to(self, kind: type[L], *, delta: Number | None = None, route: str = "") -> L:
        """Return the tightest known statement of this loss in another currency, rounded up.

        Args:
            kind: the currency.
            delta: for `Approx`, the delta of the statement.
            route: the name of one road, such as "tight" or "classic"; the best of the usual roads if absent.

        Raises:
            InvalidBudget: no theorem leads there; the message names those that lead elsewhere.

        >>> from farthing.privacy import Pure, Zcdp
        >>> Pure(1).to(Zcdp)
        Zcdp(rho=0.462117)
        """
        return self.explain(kind, delta=delta, route=route).result

    def explain(self, kind: type[L], *, delta: Number | None = None, route: str = "") -> Explanation[L]:
        """Return the road that `to` takes, with its theorems and with the roads that were longer.

        >>> from farthing.privacy import BoundedRange, Zcdp
        >>> print(BoundedRange(1).explain(Zcdp))
        BoundedRange(eta=1) -> Zcdp(rho=0.125): eta^2/8 [CesarR21]
          longer: Zcdp(rho=0.462117) by Pure; Zcdp(rho=0.194621) by Gdp; Zcdp(rho=0.758956) by Pure, Gdp
        """
        found: Explanation[L] = CONVERSIONS.find(self, kind, delta=delta, route=route)
        return found

    def profile(self) -> Profile:
        """Return the whole curve of (epsilon, delta) that this loss promises."""
        return Profile(self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a loss is frozen: cannot set {name}")

    def __add__(self, other: Loss) -> Self:
        self._same(other)
        return self.of_parts(amount=self.amount + other.amount, slack=self.slack + other.slack)

    def __sub__(self, other: Loss) -> Self:
        """Return what is left of this loss, never below zero."""
        self._same(other)
        return self.of_parts(amount=max(ZERO, self.amount - other.amount), slack=max(ZERO, self.slack - other.slack))

    def __mul__(self, times: int) -> Self:
        """Return the loss of `times` releases of this price."""
        return self.of_parts(amount=self.amount * times, slack=self.slack * times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and type(other) is type(self) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self._parts().values())))

    def __le__(self, other: Loss) -> bool:
        """Tell whether this promise is at least as strong; neither of two losses with slack need be."""
        self._same(other)
        return self.amount <= other.amount and self.slack <= other.slack

    def __lt__(self, other: Loss) -> bool:
        return self <= other and self != other

    def __ge__(self, other: Loss) -> bool:
        self._same(other)
        return other <= self

    def __gt__(self, other: Loss) -> bool:
        self._same(other)
        return other < self

    def __bool__(self) -> bool:
        return self.amount > 0 or self.slack > 0

    def __repr__(self) -> str:
        lost = f", delta={up(self.slack):.6g}" if self.slack else ""
        return f"{type(self).__name__}({self.parameter}={self.value:.6g}{lost})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (type(self), self._parts()))

    def _parts(self) -> dict[str, Any]:
        """Return everything this loss is made of, by name."""
        return {"amount": self.amount, "slack": self.slack}

    def _same(self, other: Loss) -> None:
        """Refuse another currency, and say which conversion would do."""
        if type(other) is not type(self):
            raise InvalidBudget(
                "losses of different currencies do not add or compare",
                rule=f"one currency per ledger, here {type(self).__name__}",
                got=type(other).__name__,
                next_step=CONVERSIONS.advice(type(other), type(self)),
            )


Step = Callable[[Any, "Fraction | None"], "Loss | None"]
"""From a loss, and the delta that was asked for, to its restatement; None where the theorem does not apply."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One theorem that restates a kind of loss as another.

    Attributes:
        source, target: the kinds.
        step: the restatement.
        formula: what it computes, in one line.
        theorem: where it is proved.
        route: the name by which it is asked for, or "" for one that is always considered.
    """

    source: type[Loss]
    target: type[Loss]
    step: Step
    formula: str
    theorem: str
    route: str = ""

    def __str__(self) -> str:
        return f"{self.source.__name__} -> {self.target.__name__}: {self.formula} {self.theorem}"


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Generic[L]):
    """How a loss was restated: the road taken, and what the other roads would have said.

    Attributes:
        loss: where the road starts.
        result: where it ends: the tightest known restatement.
        rules: the theorems on the way, in order; none when the loss was in that currency already.
        longer: other results, each with its theorems, by rising number of steps.
    """

    loss: Loss
    result: L
    rules: tuple[Rule, ...]
    longer: tuple[tuple[L, tuple[Rule, ...]], ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.rules:
            return f"{self.loss!r} is in that currency already"
        via = "".join(f" by {rule.target.__name__}" for rule in self.rules[:-1])
        why = "; ".join(f"{rule.formula} {rule.theorem}" for rule in self.rules)
        text = f"{self.loss!r} -> {self.result!r}{via}: {why}"
        others = [
            f"{result!r} by {', '.join(rule.target.__name__ for rule in rules[:-1])}" for result, rules in self.longer
        ]
        return text + (f"\n  longer: {'; '.join(others[:3])}" if others else "")


class Conversions:
    """The map of conversions: it knows every kind of loss, so it is drawn above them, in `farthing.privacy.roads`.

    Attributes:
        find: returns the best road from a loss to a kind, as an `Explanation`.
        advice: returns which conversion brings two kinds of loss together.
    """

    find: Callable[..., Explanation[Any]]
    advice: Callable[[type[Loss], type[Loss]], str]


CONVERSIONS: Final = Conversions()
"""Filled when `farthing.privacy` is imported, and so before anything in it is used."""


def _restored(kind: type[Loss], parts: dict[str, Any]) -> Loss:
    """Return a loss that was pickled."""
    return kind.of_parts(**parts)


NO_PURE: Final = "1e-6 is usual; a tail without an end is never pure (delta 0)"


def slack_of(delta: Number) -> Fraction:
    """Return the delta of a loss as a fraction in [0, 1)."""
    return within_unit(delta, next_step="0 <= delta < 1 is meant here") if delta != 0 else ZERO


def allowed(loss: Loss, delta: Number, *, strictly: bool = False) -> Fraction:
    """Return the delta of a statement; refuse what is below the slack of the loss."""
    stated = slack_of(delta)
    if stated < loss.slack or (strictly and stated == loss.slack):
        raise InvalidBudget(
            "the delta of the statement is below what was left out",
            rule=f"delta {'>' if strictly else '>='} {up(loss.slack):g}",
            got=float(stated),
            next_step="name a larger delta",
        )
    return stated
