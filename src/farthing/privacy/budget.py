"""The total that a ledger may spend, as the owner writes it and as the books hold it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from farthing.errors import InvalidBudget
from farthing.privacy import convert
from farthing.privacy.loss import Booked, Gdp, Loss, Pure, Zcdp
from farthing.privacy.numbers import exact
from farthing.rounding import DELTA_COIN, coins_down, coins_up

if TYPE_CHECKING:
    from farthing.privacy.numbers import Number

REPORT_DELTA = 1e-6
"""The delta at which an epsilon is reported when the budget names none (Budget(mu=) and Budget(rho=))."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The total loss that one ledger may spend, in exactly one of four forms.

    `Budget(epsilon=1, delta=1e-6)` keeps its books in GDP (exact for Gaussian noise); `Budget(mu=0.2)` says it
    directly; `Budget(rho=0.02)` keeps them in zCDP; `Budget(epsilon=1)` is pure differential privacy.

    Attributes:
        epsilon, delta: the (epsilon, delta) promise; delta 0 or absent means pure.
        rho: a zCDP total.
        mu: a GDP total.
        keys_delta: the part of delta set aside, at opening, for group keys found privately; mu comes from the rest.

    Guarantee: whatever the filter lets through is (epsilon, delta)-DP, rho-zCDP or mu-GDP, as written.
    Proof: privacy.convert for the conversion, privacy.filters for the adaptive sum.
    Assumes: every charge in the ledger is a true upper bound of its release.
    Rounds: the total down to whole farthings.

    Raises:
        InvalidBudget: a number out of range, none or several totals, keys_delta above delta (or equal to it without
            epsilon).

    >>> Budget(epsilon=1, delta=1e-6).total
    Gdp(mu=0.236704)
    >>> Budget(epsilon=1).total
    Pure(epsilon=1)
    """

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    mu: Number | None = None
    keys_delta: Number = 0
    total: Booked = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = [name for name in ("epsilon", "rho", "mu") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidBudget(
                "a budget names one total",
                rule="exactly one of epsilon, rho, mu",
                got=" and ".join(given) or "none",
                next_step="Budget(epsilon=1, delta=1e-6) is usual",
            )
        if exact(getattr(self, given[0]), given[0]) == 0:
            raise InvalidBudget(
                f"{given[0]} is zero", rule="a budget is > 0", got=0, next_step="nothing could be asked"
            )
        self._check_deltas()
        total = self._total()
        if not total:
            raise InvalidBudget(
                "the budget is less than one farthing",
                rule="at least 2^-40",
                got=repr(self),
                next_step="state a larger budget",
            )
        object.__setattr__(self, "total", total)

    def _check_deltas(self) -> None:
        """Refuse deltas out of range, and a keys_delta that leaves nothing."""
        delta = exact(self.delta or 0, "delta")
        keys = exact(self.keys_delta, "keys_delta")
        if delta >= 1:
            raise InvalidBudget(
                "delta is out of range", rule="0 <= delta < 1", got=self.delta, next_step="1e-6 is usual"
            )
        if keys > delta or (keys and keys == delta and self.epsilon is None):
            raise InvalidBudget(
                "keys_delta leaves nothing for the answers",
                rule="keys_delta < delta; or keys_delta = delta with epsilon, which keeps the answers pure",
                got=f"keys_delta={self.keys_delta}, delta={self.delta}",
                next_step="set aside a tenth of delta, or nothing",
            )
        if self.epsilon is not None and 0 < delta < DELTA_COIN:
            raise InvalidBudget(
                "delta is below the books' coin",
                rule="delta is 0 or >= 2^-80",
                got=self.delta,
                next_step="1e-6 is usual",
            )

    def _total(self) -> Booked:
        """Return the total loss in the currency of the books, rounded down to whole farthings."""
        if self.rho is not None:
            return Zcdp.of_farthings(coins_down(exact(self.rho, "rho")))
        if self.mu is not None:
            return Gdp.of_farthings(coins_down(exact(self.mu, "mu") ** 2))
        epsilon = exact(self.epsilon or 0, "epsilon")
        if not self.answers_delta:
            return Pure.of_farthings(coins_down(epsilon))
        return Gdp.of_amount(convert.gdp_from_epsilon(epsilon, self.answers_delta))

    @property
    def currency(self) -> type[Booked]:
        """The type of loss the books are kept in."""
        return type(self.total)

    @property
    def answers_delta(self) -> Fraction:
        """The delta that is left for answers after keys_delta was set aside, exact; 0 for a pure budget."""
        coins = coins_down(exact(self.delta or 0, "delta"), DELTA_COIN) - self.keys_coins
        return coins * DELTA_COIN

    @property
    def keys_coins(self) -> int:
        """keys_delta in coins of 2^-80, rounded up."""
        return coins_up(exact(self.keys_delta, "keys_delta"), DELTA_COIN)

    @property
    def report_delta(self) -> float:
        """The delta at which epsilons of this budget are reported; 0.0 for a pure budget."""
        if self.currency is Pure:
            return 0.0
        return float(self.delta) if self.delta else REPORT_DELTA

    def loss(self, value: Number) -> Loss:
        """Return the loss that an epsilon means at this budget's delta, rounded down (a cap): for `max_epsilon=`."""
        epsilon = exact(value, "max_epsilon")
        if not epsilon:
            raise InvalidBudget(
                "max_epsilon is zero",
                rule="max_epsilon > 0",
                got=value,
                next_step="leave it out, or give a positive epsilon",
            )
        return self._loss_at(epsilon, self.answers_delta or Fraction(REPORT_DELTA))

    def loss_at(self, epsilon: Number, delta: Number) -> Booked:
        """Return the loss that (epsilon, delta) means in this budget's currency, rounded down.

        >>> Budget(mu=0.2).loss_at(1, 1e-6)
        Gdp(mu=0.236704)
        """
        given = exact(epsilon, "epsilon"), exact(delta, "delta")
        if not given[0] or (self.currency is not Pure and not DELTA_COIN <= given[1] < 1):
            raise InvalidBudget(
                "epsilon or delta is out of range",
                rule="epsilon > 0, and 2^-80 <= delta < 1 in a ledger with a delta",
                got=f"epsilon={epsilon}, delta={delta}",
                next_step="epsilon=0.1, delta=1e-6",
            )
        return self._loss_at(*given)

    def _loss_at(self, epsilon: Fraction, delta: Fraction) -> Booked:
        """Return the loss that (epsilon, delta) means in this budget's currency, rounded down."""
        if self.currency is Pure:
            return Pure.of_farthings(coins_down(epsilon))
        if self.currency is Zcdp:
            return Zcdp.of_amount(convert.zcdp_from_epsilon(epsilon, delta))
        return Gdp.of_amount(convert.gdp_from_epsilon(epsilon, delta))

    def describe(self) -> str:
        """Return the budget as its owner wrote it, for messages and for the ledger."""
        names = ("epsilon", "delta", "rho", "mu")
        parts = [f"{name}={float(getattr(self, name)):g}" for name in names if getattr(self, name) is not None]
        return ", ".join(parts + ([f"keys_delta={float(self.keys_delta):g}"] if self.keys_delta else []))


__all__ = ["REPORT_DELTA", "Budget"]
