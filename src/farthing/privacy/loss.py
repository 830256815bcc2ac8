"""What a release costs, as exact values: Pure, Approx, Zcdp, Gdp, and BoundedRange for prices of selections.

A loss holds one exact number, its *amount* in the additive coin of its currency (epsilon, rho, mu^2): composing losses
is adding amounts. Some hold a *slack* besides: a delta of events that are left out. Floats come out rounded up.
`farthing.privacy.renyi` has Rdp and Tcdp; `farthing.privacy.roads` leads from one kind to another.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

from farthing.errors import InvalidBudget
from farthing.privacy import convert, group
from farthing.privacy.base import NO_PURE, Loss, allowed, slack_of
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import sqrt_up, up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from farthing.privacy.numbers import Number


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
        self._set(amount=exact(epsilon, "epsilon"))

    def epsilon(self, delta: Number = 0) -> float:
        """Return the least epsilon at delta, rounded up: epsilon itself at delta 0, a little less above."""
        return convert.pure_epsilon(self.amount, allowed(self, delta))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.pure_delta(self.amount, exact(epsilon, "epsilon"))

    def for_group(self, k: int) -> Pure:
        """Return the loss of k units at once, k epsilon [Vadhan17, Lemma 2.2].

        >>> Pure(0.5).for_group(3)
        Pure(epsilon=1.5)
        """
        return self * group.units(k)


class Approx(Loss):
    """(epsilon, delta)-DP: epsilon-DP but for events of chance delta, about which nothing is said.

    Its epsilon is `value` and its delta is `slack`; `epsilon(...)` and `delta(...)` restate it elsewhere on the curve.

    Guarantee: epsilons add and deltas add, also when each is chosen from the outputs before it.
    Proof: [DworkMNS06; RogersRUV16, Thm 3.6].
    Assumes: each part is (epsilon_i, delta_i)-DP given the past.
    Rounds: nothing; both are exact fractions.

    >>> Approx(1, 0.25) + Approx(0.5, 0.125)
    Approx(epsilon=1.5, delta=0.375)
    """

    __slots__ = ()
    currency = "approx"
    parameter = "epsilon"

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._set(amount=exact(epsilon, "epsilon"), slack=slack_of(delta))

    def epsilon(self, delta: Number | None = None) -> float:
        """Return the least epsilon at a delta that is not below this one's, rounded up."""
        return convert.approx_epsilon(self.amount, self.slack, allowed(self, self.slack if delta is None else delta))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.approx_delta(self.amount, self.slack, exact(epsilon, "epsilon"))

    def for_group(self, k: int) -> Approx:
        """Return the loss of k units at once: (k eps, delta (e^(k eps) - 1)/(e^eps - 1)) [Vadhan17, Lemma 2.2].

        >>> Approx(1, 1e-6).for_group(3)
        Approx(epsilon=3, delta=1.11073e-05)
        """
        slack = group.approx_group_delta(self.amount, self.slack, group.units(k))
        if slack >= 1:
            raise InvalidBudget(
                "nothing is promised to a group this large",
                rule="delta (e^(k eps) - 1)/(e^eps - 1) < 1",
                got=f"{self!r}.for_group({k})",
                next_step="for Gaussian noise Gdp(mu).for_group(k) promises far more",
            )
        return self.of_parts(amount=self.amount * k, slack=slack)


class Zcdp(Loss):
    """rho-zCDP: every Renyi divergence of order a is at most a rho; with a delta, but for events of that chance.

    Guarantee: losses add, also when each is chosen from the outputs before it; deltas add beside them.
    Proof: [BunS16, Lemma 2.3 and sec. 8; FeldmanZ21, Thm 3.1; WhitehouseRRW23, Thm 1].
    Assumes: each part is (delta_i-approximately) rho_i-zCDP given the past.
    Rounds: nothing; rho is an exact fraction.

    >>> Zcdp(0.25) < Zcdp(0.5)
    True
    """

    __slots__ = ()
    currency = "zcdp"
    parameter = "rho"

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        self._set(amount=exact(rho, "rho"), slack=slack_of(delta))

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number) -> Zcdp:
        """Return the largest rho that gives (epsilon, delta)-DP by the sharper conversion, rounded down."""
        return cls.of_amount(convert.zcdp_from_epsilon(exact(epsilon, "epsilon"), within_unit(delta)))

    @property
    def rho(self) -> float:
        """The zCDP parameter, rounded up."""
        return up(self.amount)

    def epsilon(self, delta: Number = 1e-6, *, route: str = "sharper") -> float:
        """Return epsilon at delta, rounded up; route "classic" is rho + 2 sqrt(rho log(1/delta)).

        >>> round(Zcdp(0.1).epsilon(delta=1e-6), 4), round(Zcdp(0.1).epsilon(delta=1e-6, route="classic"), 4)
        (2.1419, 2.4508)
        """
        d = allowed(self, within_unit(delta, next_step=NO_PURE), strictly=True)
        left = (d - self.slack) / (1 - self.slack)
        routes = {"sharper": convert.zcdp_epsilon, "classic": convert.zcdp_epsilon_classic}
        if route not in routes:
            raise InvalidBudget(
                "the conversion is unknown", rule=" or ".join(routes), got=route, next_step="leave route out"
            )
        return routes[route](self.amount, left)

    def delta(self, epsilon: Number) -> float:
        """Return the least known delta at a given epsilon, rounded up."""
        delta = convert.zcdp_delta(self.amount, exact(epsilon, "epsilon"))
        return up(self.slack + (1 - self.slack) * Fraction(delta))

    def deltas(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `delta` at each epsilon; float64[...]."""
        return super().deltas(epsilons) if self.slack else convert.zcdp_deltas(self.rho, epsilons)

    def for_group(self, k: int) -> Zcdp:
        """Return the loss of k units at once, k^2 rho [BunS16, Prop. 1.9]; refused with a delta.

        >>> Zcdp(0.1).for_group(3)
        Zcdp(rho=0.9)
        """
        if self.slack:
            raise InvalidBudget(
                "approximate zCDP has no group rule of its own",
                rule="state it as (epsilon, delta) first",
                got=repr(self),
                next_step=f"loss.to(Approx, delta=1e-6).for_group({k})",
            )
        return self * group.units(k) ** 2


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
        self._set(amount=exact(mu, "mu") ** 2)

    @classmethod
    def from_epsilon(cls, epsilon: Number, *, delta: Number) -> Gdp:
        """Return the largest mu that gives (epsilon, delta)-DP, rounded down; exact for Gaussian noise.

        >>> Gdp.from_epsilon(1, delta=1e-6)
        Gdp(mu=0.236704)
        """
        return cls.of_amount(convert.gdp_from_epsilon(exact(epsilon, "epsilon"), within_unit(delta)))

    @property
    def mu(self) -> float:
        """The GDP parameter, rounded up."""
        return sqrt_up(self.amount)

    @property
    def value(self) -> float:
        """The GDP parameter mu, rounded up."""
        return self.mu

    def epsilon(self, delta: Number = 1e-6) -> float:
        """Return the least epsilon at delta, rounded up; exact for Gaussian noise.

        >>> round(Gdp(1).epsilon(delta=1e-6), 4)
        4.8866
        """
        return convert.gdp_epsilon(self.amount, within_unit(delta, next_step=NO_PURE))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.gdp_delta(self.amount, exact(epsilon, "epsilon"))

    def deltas(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `delta` at each epsilon; float64[...]."""
        return convert.gdp_deltas(self.mu, epsilons)

    def for_group(self, k: int) -> Gdp:
        """Return the loss of k units at once, k mu [DongRS22, Thm 2.14].

        >>> Gdp(0.5).for_group(3)
        Gdp(mu=1.5)
        """
        return self * group.units(k) ** 2


class BoundedRange(Loss):
    """eta-bounded range: the log-likelihood ratio lies in some interval of length eta. The price of a selection.

    Bounded ranges are not added: when questions are chosen from earlier outputs the sum is not a bounded range.

    Guarantee: an eta-bounded-range mechanism is eta-DP, eta^2/8-zCDP, and GDP as an (eta/2)-DP one.
    Proof: [DurfeeR19; DongDR20; CesarR21].
    Assumes: the interval depends on the pair of data sets only.
    Rounds: conversions up.

    >>> BoundedRange(1).to(Zcdp).rho
    0.125
    """

    __slots__ = ()
    currency = "bounded-range"
    parameter = "eta"

    def __init__(self, eta: Number) -> None:
        self._set(amount=exact(eta, "eta"))

    def epsilon(self, delta: Number = 0) -> float:
        """Return the least epsilon at delta, rounded up: eta itself at delta 0, less above."""
        return convert.bounded_range_epsilon(self.amount, allowed(self, delta))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta at a given epsilon, rounded up."""
        return convert.bounded_range_delta(self.amount, exact(epsilon, "epsilon"))

    def for_group(self, k: int) -> BoundedRange:
        """Return the loss of k units at once, k eta: k intervals of length eta add to one of length k eta."""
        return self.of_parts(amount=self.amount * group.units(k))

    def __add__(self, other: Loss) -> NoReturn:
        raise InvalidBudget(
            "bounded ranges do not add",
            rule="only losses with a theorem for adaptive sums are added",
            got=f"{self!r} and {other!r}",
            next_step="add their prices: loss.to(Zcdp), loss.to(Gdp) or loss.to(Pure)",
        )

    def __mul__(self, times: int) -> NoReturn:
        self.__add__(self)


Booked = Gdp | Zcdp | Pure
"""The losses that a ledger can be kept in."""

__all__ = ["Approx", "Booked", "BoundedRange", "Gdp", "Loss", "Pure", "Zcdp", "exact"]
