"""Filters that add: one sum, one total fixed in advance, in each currency of the books."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from farthing.errors import BudgetExceeded, InvalidBudget
from farthing.privacy import convert
from farthing.privacy.ex_post import BrownianRun, positive
from farthing.privacy.loss import Approx, Gdp, Loss, Pure, Zcdp
from farthing.privacy.numbers import exact, within_unit
from farthing.privacy.renyi import Rdp

if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Self

    from farthing.privacy.loss import Booked
    from farthing.privacy.numbers import Number

L = TypeVar("L", bound=Loss)
P = TypeVar("P")
ZERO = Fraction(0)


class Priced(Protocol):
    """Whatever can state its price in a currency, or refuse to: a loss, a stretch of a Brownian run."""

    def to(self, kind: type[Loss]) -> Loss:
        """Return the price in the currency `kind`."""


class Filter(Protocol):
    """What every filter can do."""

    def can_spend(self, loss: Any, *, delta: Number = 0) -> bool:
        """Tell whether a release of this loss may still be drawn; asking costs nothing."""

    def spend(self, loss: Any, *, delta: Number = 0) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit."""

    @property
    def remaining(self) -> Any:
        """What may still be spent."""


def priced(loss: Priced, kind: type[L]) -> L:
    """Return a loss restated in a currency, by the theorem that leads there; refuse where none does."""
    if isinstance(loss, kind):
        return loss
    if not isinstance(loss, Loss | BrownianRun):
        raise InvalidBudget(
            "this filter has no price for it",
            rule=f"a loss that can be stated in {kind.__name__}",
            got=repr(loss),
            next_step="ExPost runs go to RogersExPostFilter or RogersConcurrentFilter",
        )
    return cast("L", _stated(loss, cast("Hashable", kind)))


@lru_cache(maxsize=4096)
def _stated(loss: Loss | BrownianRun, kind: type[Loss]) -> Loss:
    """Return the restatement, kept: a filter prices each loss when it is asked and again when it is told."""
    return loss.to(kind)


def split(loss: P) -> tuple[P | Loss, Fraction]:
    """Return a loss without the events that it leaves out, and their mass.

    >>> split(Approx(1, 0.25)), split(Zcdp(0.5))
    ((Pure(epsilon=1), Fraction(1, 4)), (Zcdp(rho=0.5), Fraction(0, 1)))
    """
    if not isinstance(loss, Loss) or not loss.slack:
        return loss, ZERO
    kind = Pure if isinstance(loss, Approx) else type(loss)
    return kind.of_amount(loss.amount), loss.slack


@dataclass(frozen=True, slots=True)
class AdditiveFilter(Generic[L]):
    """Say yes while spent + next <= total, exactly; `spend` returns the next state.

    Attributes:
        total: the most that may ever be spent.
        spent: what was let through so far.
        set_aside: the delta that all approximate terms together may use; 0 lets none through.
        delta_spent: the deltas of the approximate terms let through so far.

    Guarantee: everything let through is, together, as private as `total`, but for events of mass `set_aside`, however
        each loss was chosen from the outputs before it.
    Proof: pure [RogersRUV16], zCDP [FeldmanZ21; WhitehouseRRW23], GDP [SmithT22]; docs/proofs/privacy.filters.md.
    Assumes: `can_spend` is asked before the release is drawn, and each loss bounds its release given the past.
    Rounds: nothing; exact fractions. Prices from another currency are rounded up.

    >>> from farthing.privacy.loss import Gdp
    >>> books = AdditiveFilter(total=Gdp(1), spent=Gdp(0)).spend(Gdp(0.5))
    >>> books.can_spend(Gdp(0.86)), books.can_spend(Gdp(0.87))
    (True, False)
    """

    currency: ClassVar[type[Loss] | None] = None

    total: L
    spent: L = None  # type: ignore[assignment]  # nothing yet: __post_init__ writes the zero of the currency
    set_aside: Number = ZERO
    delta_spent: Fraction = ZERO

    def __post_init__(self) -> None:
        if not isinstance(self.total, Loss) or (self.currency is not None and type(self.total) is not self.currency):
            raise InvalidBudget(
                "a filter's total is a loss in its own currency",
                rule=f"total is a {self.currency.__name__ if self.currency else 'loss'}",
                got=repr(self.total),
                next_step="state the total first, e.g. GdpFilter(Gdp(0.5))",
            )
        if self.spent is None:
            object.__setattr__(self, "spent", type(self.total).of_farthings(0))
        object.__setattr__(self, "set_aside", exact(self.set_aside, "set_aside"))

    def can_spend(self, loss: Priced, *, delta: Number = 0) -> bool:
        """Tell whether a release of this loss may still be drawn; asking costs nothing.

        Args:
            loss: its price, in the filter's currency or one that leads there.
            delta: the mass of events left out, beside that which an `Approx` or approximate `Zcdp` carries itself.
        """
        price, left_out = self._asked(loss, delta)
        return self.delta_spent + left_out <= self.set_aside and self.spent + price <= self.total

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit."""
        if not self.can_spend(loss, delta=delta):
            raise too_much(loss, self.remaining, delta, self.delta_left)
        price, left_out = self._asked(loss, delta)
        return replace(self, spent=self.spent + price, delta_spent=self.delta_spent + left_out)

    def _asked(self, loss: Priced, delta: Number) -> tuple[L, Fraction]:
        """Return the price in the filter's currency, and the mass of the events left out of it."""
        rest, own = split(loss)
        return priced(rest, type(self.total)), own + exact(delta, "delta")

    @property
    def remaining(self) -> L:
        """What may still be spent."""
        return self.total - self.spent

    @property
    def delta_left(self) -> Fraction:
        """What approximate terms may still use of the delta set aside."""
        return Fraction(self.set_aside) - self.delta_spent


@dataclass(frozen=True, slots=True)
class PureFilter(AdditiveFilter[Pure]):
    """Sum of epsilons <= epsilon; with `set_aside`, sum of deltas <= delta too.

    Guarantee: everything let through is (epsilon, set_aside)-DP; epsilon-DP when nothing is set aside.
    Proof: [RogersRUV16, Thm 3.6]; docs/proofs/privacy.filters.md.
    Assumes: asked before the draw; each part is (epsilon_i, delta_i)-DP given the past.
    Rounds: nothing.

    >>> PureFilter(Pure(1)).spend(Pure(0.25)).remaining
    Pure(epsilon=0.75)
    """

    currency = Pure

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP, delta being kept for approximate terms."""
        return cls(total=Pure(positive(epsilon, "epsilon")), set_aside=delta)


@dataclass(frozen=True, slots=True)
class ZcdpFilter(AdditiveFilter[Zcdp]):
    """Sum of rhos <= rho: the filter to open when selections make up more than about a quarter of the spend.

    Guarantee: everything let through is rho-zCDP, but for events of mass `set_aside`.
    Proof: [FeldmanZ21, Thm 3.1; WhitehouseRRW23, Thm 1]; docs/proofs/privacy.filters.md.
    Assumes: asked before the draw; each part is delta_i-approximate rho_i-zCDP given the past.
    Rounds: nothing; from_epsilon down to whole farthings.

    >>> ZcdpFilter.from_epsilon(1, delta=1e-6).remaining
    Zcdp(rho=0.024356)
    """

    currency = Zcdp

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number, set_aside: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP, by the sharper conversion [CanonneKS20]."""
        rest = conversion_delta(delta, set_aside)
        return cls(Zcdp.of_amount(convert.zcdp_from_epsilon(positive(epsilon, "epsilon"), rest)), set_aside=set_aside)


@dataclass(frozen=True, slots=True)
class GdpFilter(AdditiveFilter[Gdp]):
    """Sum of squared mus <= mu squared: the default, exact for Gaussian noise.

    Guarantee: everything let through is mu-GDP, but for events of mass `set_aside`.
    Proof: [SmithT22, Thm 1]; docs/proofs/privacy.filters.md.
    Assumes: asked before the draw; each part is mu_i-GDP given the past, but for events of mass delta_i.
    Rounds: nothing; from_epsilon down to whole farthings.

    >>> GdpFilter(Gdp(1)).spend(Gdp(0.6)).remaining
    Gdp(mu=0.8)
    """

    currency = Gdp

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number, set_aside: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP, by the exact Gaussian curve [DongRS22]."""
        rest = conversion_delta(delta, set_aside)
        return cls(Gdp.of_amount(convert.gdp_from_epsilon(positive(epsilon, "epsilon"), rest)), set_aside=set_aside)


@dataclass(frozen=True, slots=True)
class RenyiFilter(AdditiveFilter[Rdp]):
    """Sum of Renyi divergences at one order, fixed when the filter is made, <= tau.

    Guarantee: everything let through has D_order <= tau, but for events of mass `set_aside`.
    Proof: [FeldmanZ21, Thm 3.1] at that order; the best of several orders afterwards is not a filter.
    Assumes: asked before the draw; each part's divergence at the order is at most its own tau given the past.
    Rounds: the total down to whole farthings; prices up.

    >>> RenyiFilter.from_epsilon(1, delta=1e-6, order=24).remaining
    Rdp(order=24, tau=0.580061)
    """

    currency = Rdp

    def __post_init__(self) -> None:
        if self.spent is None and isinstance(self.total, Rdp):
            object.__setattr__(self, "spent", self.total.of_curve((order, ZERO) for order in self.total.orders))
        super(RenyiFilter, self).__post_init__()

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number, order: Number, set_aside: Number = 0) -> Self:
        """Return the filter for (epsilon, delta)-DP at one order [CanonneKS20, Prop. 12]."""
        rest, at = conversion_delta(delta, set_aside), exact(order, "order")
        tau = convert.renyi_from_epsilon(positive(epsilon, "epsilon"), rest, at)
        return cls(Rdp.of_curve([(at, tau)]), set_aside=set_aside)

    def _asked(self, loss: Priced, delta: Number) -> tuple[Rdp, Fraction]:
        """Return the divergences at the filter's own orders, and the mass of the events left out."""
        rest, own = split(loss)
        curve = priced(rest, Rdp)
        return Rdp.of_curve((order, curve.bound(order)) for order in self.total.orders), own + exact(delta, "delta")


def filter_for(total: Booked) -> AdditiveFilter[Loss]:
    """Return the filter for a total, with nothing spent.

    >>> from farthing.privacy.loss import Zcdp
    >>> filter_for(Zcdp(0.5)).remaining
    Zcdp(rho=0.5)
    """
    return AdditiveFilter(total=total, spent=type(total).of_farthings(0))


def conversion_delta(delta: Number, set_aside: Number) -> Fraction:
    """Return the delta that is left for the conversion after some of it was set aside."""
    rest = within_unit(delta) - exact(set_aside, "set_aside")
    if rest <= 0:
        raise InvalidBudget(
            "nothing is left of delta for the conversion",
            rule="set_aside < delta",
            got=f"set_aside={set_aside}, delta={delta}",
            next_step="set aside a tenth of delta, or nothing",
        )
    return rest


def too_much(loss: object, left: Loss, delta: Number, delta_left: Fraction) -> BudgetExceeded:
    """Return the refusal, with what was asked and what is left."""
    return BudgetExceeded(
        "the loss does not fit in what is left",
        rule="spent + asked <= total, and so for delta",
        needed=loss,
        left=left,
        got=f"{loss}" + (f" with delta {float(delta):g}, {float(delta_left):g} left" if delta else ""),
        next_step=f"ask for at most {left}",
    )


__all__ = [
    "AdditiveFilter",
    "Filter",
    "GdpFilter",
    "Priced",
    "PureFilter",
    "RenyiFilter",
    "ZcdpFilter",
    "conversion_delta",
    "filter_for",
    "priced",
    "split",
    "too_much",
]
