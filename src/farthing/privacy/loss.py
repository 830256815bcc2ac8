"""What a release costs, as exact ordered values: Pure, Zcdp, Gdp, and BoundedRange for prices of selections.

A loss holds one exact number, its *amount* in the additive coin of its currency (epsilon, rho, mu^2): composing losses
is adding amounts. Floats come out rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from farthing.errors import InvalidBudget
from farthing.privacy import convert
from farthing.rounding import FARTHING, coins_up, sqrt_up, up

if TYPE_CHECKING:
    from farthing.privacy.convert import Number


def exact(value: Number, name: str) -> Fraction:
    """Return a user's number as a fraction; refuse what is no finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidBudget(
            f"{name} is not a number", rule=f"{name} is a number >= 0", got=repr(value), next_step="pass a number"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidBudget(
            f"{name} is not finite", rule=f"{name} is a finite number >= 0", got=value, next_step="pass a finite number"
        )
    if value < 0:
        raise InvalidBudget(
            f"{name} is negative",
            rule=f"{name} is a number >= 0",
            got=value,
            next_step="pass a number that is not negative",
        )
    return Fraction(value)


class Loss:
    """A privacy loss: frozen, exact, ordered and additive within one currency.

    Attributes:
        amount: the exact loss in the currency's additive coin (epsilon, rho or mu^2).
    """

    __slots__ = ("amount",)
    amount: Fraction
    currency: ClassVar[str]
    parameter: ClassVar[str]

    @classmethod
    def of_amount(cls, amount: Fraction) -> Self:
        """Return the loss of an exact additive amount."""
        loss = cls.__new__(cls)
        object.__setattr__(loss, "amount", amount)
        return loss

    @classmethod
    def of_farthings(cls, farthings: int) -> Self:
        """Return the loss of a whole number of farthings, as the ledger holds it."""
        return cls.of_amount(farthings * FARTHING)

    @property
    def farthings(self) -> int:
        """The loss in whole farthings, rounded up: what the ledger books."""
        return coins_up(self.amount)

    @property
    def value(self) -> float:
        """The currency's own parameter (epsilon, rho or mu), rounded up."""
        return up(self.amount)

    def epsilon(self, delta: float) -> float:
        """Return the least known epsilon with (epsilon, delta)-DP, rounded up."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a loss is frozen: cannot set {name}")

    def __add__(self, other: Loss) -> Self:
        return type(self).of_amount(self.amount + self._same(other))

    def __sub__(self, other: Loss) -> Self:
        """Return what is left of this loss, never below zero."""
        return type(self).of_amount(max(Fraction(0), self.amount - self._same(other)))

    def __mul__(self, times: int) -> Self:
        """Return the loss of `times` releases of this price."""
        return type(self).of_amount(self.amount * times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and type(other) is type(self) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.amount))

    def __lt__(self, other: Loss) -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: Loss) -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: Loss) -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: Loss) -> bool:
        return self.amount >= self._same(other)

    def __bool__(self) -> bool:
        return self.amount > 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.parameter}={self.value:.6g})"

    def __reduce__(self) -> tuple[object, tuple[Fraction]]:
        return (type(self).of_amount, (self.amount,))

    def _same(self, other: Loss) -> Fraction:
        """Return the other's amount; refuse another currency."""
        if type(other) is not type(self):
            raise InvalidBudget(
                "losses of different currencies do not add or compare",
                rule=f"one currency per ledger, here {type(self).__name__}",
                got=type(other).__name__,
                next_step="state both in one currency first",
            )
        return other.amount


def _checked_delta(delta: float) -> Fraction:
    """Return delta as a fraction; refuse what is not strictly between 0 and 1."""
    value = exact(delta, "delta")
    if not 0 < value < 1:
        raise InvalidBudget("delta is out of range", rule="0 < delta < 1", got=delta, next_step="1e-6 is usual")
    return value


class Pure(Loss):
    """epsilon-DP: the log-likelihood ratio never passes epsilon.

    Guarantee: losses add, also when each is chosen from the outputs before it.
    Proof: [DworkMNS06; RogersRUV16, Thm 3.6].
    Assumes: each part is epsilon_i-DP given the past.
    Rounds: nothing; epsilon is an exact fraction.

    >>> Pure(1) + Pure(0.5)
    Pure(epsilon=1.5)
    """

    __slots__ = ()
    currency = "pure"
    parameter = "epsilon"

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "amount", exact(epsilon, "epsilon"))

    def epsilon(self, delta: float = 0.0) -> float:
        """Return epsilon, whatever the delta (a larger delta could only lower it)."""
        if delta:
            _checked_delta(delta)
        return up(self.amount)

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.pure_delta(self.amount, exact(epsilon, "epsilon"))

    def to(self, kind: type[Loss]) -> Loss:
        """Return the tightest known price of this loss in another currency, rounded up.

        >>> Pure(1).to(Zcdp)
        Zcdp(rho=0.462117)
        """
        if kind is Pure:
            return self
        if kind is Zcdp:
            return Zcdp(convert.pure_zcdp(self.amount))
        if kind is Gdp:
            return Gdp.of_amount(convert.pure_gdp(self.amount))
        raise _no_route(self, kind)

    def for_group(self, k: int) -> Pure:
        """Return the loss of k units at once, k epsilon [Vadhan17, Lemma 2.2]."""
        return self * _group(k)


class Zcdp(Loss):
    """rho-zCDP: every Renyi divergence of order a is at most a rho.

    Guarantee: losses add, also when each is chosen from the outputs before it.
    Proof: [BunS16, Lemma 2.3; FeldmanZ21, Thm 3.1; WhitehouseRRW23, Thm 1].
    Assumes: each part is rho_i-zCDP given the past.
    Rounds: nothing; rho is an exact fraction.

    >>> Zcdp(0.25) < Zcdp(0.5)
    True
    """

    __slots__ = ()
    currency = "zcdp"
    parameter = "rho"

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "amount", exact(rho, "rho"))

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: float) -> Zcdp:
        """Return the largest rho that gives (epsilon, delta)-DP by the sharper conversion, rounded down."""
        return cls.of_amount(convert.zcdp_from_epsilon(exact(epsilon, "epsilon"), _checked_delta(delta)))

    @property
    def rho(self) -> float:
        """The zCDP parameter, rounded up."""
        return up(self.amount)

    def epsilon(self, delta: float = 1e-6, *, route: str = "sharper") -> float:
        """Return epsilon at delta, rounded up; route "classic" is rho + 2 sqrt(rho log(1/delta))."""
        d = _checked_delta(delta)
        return (
            convert.zcdp_epsilon_classic(self.amount, d) if route == "classic" else convert.zcdp_epsilon(self.amount, d)
        )

    def delta(self, epsilon: Number) -> float:
        """Return the least known delta at a given epsilon, rounded up."""
        return convert.zcdp_delta(self.amount, exact(epsilon, "epsilon"))

    def to(self, kind: type[Loss]) -> Loss:
        """Return this loss in another currency; there is no road from zCDP to GDP or pure DP, and it is refused."""
        if kind is Zcdp:
            return self
        raise _no_route(self, kind)

    def for_group(self, k: int) -> Zcdp:
        """Return the loss of k units at once, k^2 rho [BunS16, Prop. 1.9]."""
        return self * _group(k) ** 2


class Gdp(Loss):
    """mu-GDP: at least as hard to test as N(0, 1) against N(mu, 1).

    Guarantee: the squares add, also when each mu is chosen from the outputs before it.
    Proof: [DongRS22, Cor. 3.3; SmithT22, Thm 1]; docs/proofs/privacy.filters.md.
    Assumes: each part is mu_i-GDP given the past.
    Rounds: nothing; mu^2 is an exact fraction.

    >>> (Gdp(3) + Gdp(4)).mu
    5.0
    """

    __slots__ = ()
    currency = "gdp"
    parameter = "mu"

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "amount", exact(mu, "mu") ** 2)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: float) -> Gdp:
        """Return the largest mu that gives (epsilon, delta)-DP, rounded down; exact for Gaussian noise."""
        return cls.of_amount(convert.gdp_from_epsilon(exact(epsilon, "epsilon"), _checked_delta(delta)))

    @property
    def mu(self) -> float:
        """The GDP parameter, rounded up."""
        return sqrt_up(self.amount)

    @property
    def value(self) -> float:
        """The GDP parameter mu, rounded up."""
        return self.mu

    def epsilon(self, delta: float = 1e-6) -> float:
        """Return the least epsilon at delta, rounded up; exact for Gaussian noise.

        >>> round(Gdp(1).epsilon(delta=1e-6), 4)
        4.8866
        """
        return convert.gdp_epsilon(self.amount, _checked_delta(delta))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.gdp_delta(self.amount, exact(epsilon, "epsilon"))

    def to(self, kind: type[Loss]) -> Loss:
        """Return this loss in another currency: mu-GDP is mu^2/2-zCDP; no GDP loss is pure."""
        if kind is Gdp:
            return self
        if kind is Zcdp:
            return Zcdp(self.amount / 2)
        raise _no_route(self, kind)

    def for_group(self, k: int) -> Gdp:
        """Return the loss of k units at once, k mu [DongRS22, Thm 2.14]."""
        return self * _group(k) ** 2


class BoundedRange(Loss):
    """eta-bounded range: the log-likelihood ratio lies in some interval of length eta. The price of a selection.

    Guarantee: an eta-bounded-range mechanism is eta-DP, eta^2/8-zCDP, and GDP as an (eta/2)-DP one.
    Proof: [DurfeeR19; DongDR20; CesarR21].
    Assumes: nothing more.
    Rounds: conversions up.

    >>> BoundedRange(1).to(Zcdp).rho
    0.125
    """

    __slots__ = ()
    currency = "bounded-range"
    parameter = "eta"

    def __init__(self, eta: Number) -> None:
        object.__setattr__(self, "amount", exact(eta, "eta"))

    def epsilon(self, delta: float = 0.0) -> float:
        """Return eta: a bounded range of eta is eta-DP."""
        if delta:
            _checked_delta(delta)
        return up(self.amount)

    def to(self, kind: type[Loss]) -> Loss:
        """Return the price in a ledger's currency; `convert.bounded_range_zcdp` has a slightly lower rho."""
        if kind is Pure:
            return Pure(self.amount)
        if kind is Zcdp:
            return Zcdp(self.amount**2 / 8)
        if kind is Gdp:
            return Gdp.of_amount(convert.bounded_range_gdp(self.amount))
        raise _no_route(self, kind)


def _no_route(loss: Loss, kind: type[Loss]) -> InvalidBudget:
    """Return the refusal to convert where no theorem leads."""
    return InvalidBudget(
        f"no conversion leads from {type(loss).__name__} to {kind.__name__}",
        rule="a loss is restated only by a theorem",
        got=repr(loss),
        next_step="open the ledger in a currency that every mechanism can be priced in",
    )


def _group(k: int) -> int:
    """Return a group size; refuse what is no whole number >= 1."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidBudget(
            "a group has a whole number of units",
            rule="k >= 1",
            got=repr(k),
            next_step="for_group(2) is two units at once",
        )
    return k


Booked = Gdp | Zcdp | Pure
"""The losses that a ledger can be kept in."""
