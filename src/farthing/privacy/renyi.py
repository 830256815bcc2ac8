"""Losses stated by Renyi divergences: Rdp at chosen orders, Tcdp up to a last order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn, Self

from farthing.errors import InvalidBudget
from farthing.privacy import convert, group
from farthing.privacy.base import NO_PURE, Loss
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from farthing.privacy.numbers import Number

ORDERS: Final = tuple(
    Fraction(order)
    for order in (
        1.125,
        1.25,
        1.5,
        1.75,
        2,
        2.5,
        3,
        4,
        5,
        6,
        8,
        10,
        12,
        14,
        16,
        20,
        24,
        28,
        32,
        40,
        48,
        64,
        96,
        128,
        256,
        1024,
    )
)
"""The orders at which a line of zCDP is written down as an Rdp curve."""


class Rdp(Loss):
    """Renyi differential privacy: D_a <= tau at one order, or at each order of a curve.

    Attributes:
        curve: the pairs (order, tau), by rising order. Between them divergences are bounded by monotony and convexity.

    Guarantee: curves add order by order, also when each is chosen from the outputs before it, orders fixed in advance.
    Proof: [Mironov17, Prop. 1; FeldmanZ21, Thm 3.1].
    Assumes: each part's divergence is below its own curve given the past.
    Rounds: nothing; orders and taus are exact fractions.

    >>> Rdp(8, 0.5)
    Rdp(order=8, tau=0.5)
    >>> (Rdp({2: 0.25, 8: 1}) + Rdp(8, 0.5)).curve
    ((Fraction(2, 1), Fraction(3, 4)), (Fraction(8, 1), Fraction(3, 2)))
    """

    __slots__ = ("curve",)
    currency = "rdp"
    parameter = "tau"
    curve: tuple[tuple[Fraction, Fraction], ...]

    def __init__(self, order: Number | Mapping[Number, Number], tau: Number | None = None) -> None:
        given = order if isinstance(order, Mapping) else {order: tau}
        pairs = ((_order(a, "order"), exact(_number(t), "tau")) for a, t in given.items())
        curve = tuple(sorted(pairs))
        if not curve:
            raise InvalidBudget(
                "a curve without an order", rule="at least one order", got="{}", next_step="Rdp(8, 0.5)"
            )
        self._set(**_curve(curve))

    @classmethod
    def of_amount(cls, amount: Fraction) -> NoReturn:
        """Refuse: a curve is not a single number."""
        raise _no_amount(cls, amount)

    @classmethod
    def of_curve(cls, pairs: Iterable[tuple[Fraction, Fraction]]) -> Self:
        """Return the loss of exact pairs (order, tau)."""
        return cls.of_parts(**_curve(pairs))

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The orders of the curve, rising."""
        return tuple(order for order, _ in self.curve)

    def tau(self, order: Number) -> float:
        """Return the least known bound on D_order, rounded up; order at most the last of the curve."""
        return up(self.bound(_order(order, "order")))

    def bound(self, order: Fraction) -> Fraction:
        """Return the least known bound on D_order, exactly.

        Guarantee: D_order is at most the returned number.
        Proof: D_a rises with a, and (a - 1) D_a is convex and 0 at a = 1; docs/proofs/privacy.group.md.
        Assumes: 1 < order <= the last order of the curve.
        Rounds: nothing.
        """
        if order > self.curve[-1][0]:
            raise InvalidBudget(
                "the curve does not reach this order",
                rule=f"order <= {float(self.curve[-1][0]):g}",
                got=float(order),
                next_step="state the loss at a higher order",
            )
        at = next(i for i, (known, _) in enumerate(self.curve) if known >= order)
        (high, above), (low, below) = self.curve[at], self.curve[at - 1] if at else (Fraction(1), Fraction(0))
        if high == order or not at:
            return above
        share = (order - low) / (high - low)
        chord = ((1 - share) * (low - 1) * below + share * (high - 1) * above) / (order - 1)
        return min(chord, above)

    def epsilon(self, delta: Number = 1e-6) -> float:
        """Return the least epsilon that any order gives at delta, rounded up."""
        return convert.renyi_epsilon(self.curve, within_unit(delta, next_step=NO_PURE))

    def delta(self, epsilon: Number) -> float:
        """Return the least delta that any order gives at epsilon, rounded up."""
        return convert.renyi_delta(self.curve, exact(epsilon, "epsilon"))

    def for_group(self, k: int) -> Rdp:
        """Return the loss of k units at once: order a becomes a/k, orders up to k are lost (`group.renyi_group`).

        >>> Rdp({8: 0.8, 16: 1.6}).for_group(2)
        Rdp(2 orders from 4 to 8)
        """
        group.units(k)
        pairs = tuple(group.renyi_group(order, k, self._extended) for order in self.orders if order > k)
        if not pairs:
            raise InvalidBudget(
                "no order is left for a group this large",
                rule=f"an order above {k}",
                got=repr(self),
                next_step=f"state the loss at an order above {k}",
            )
        return self.of_curve(pairs)

    def _extended(self, order: Fraction) -> Fraction:
        return self.bound(order)

    def __add__(self, other: Loss) -> Self:
        self._same(other)
        assert isinstance(other, Rdp)  # noqa: S101  for the type checker; _same refused the rest
        top = min(self.curve[-1][0], other.curve[-1][0])
        orders = sorted({order for order in (*self.orders, *other.orders) if order <= top})
        return self.of_curve(tuple((order, self.bound(order) + other.bound(order)) for order in orders))

    def __sub__(self, other: Loss) -> Self:
        """Return what is left of this curve at its own orders, never below zero."""
        self._same(other)
        assert isinstance(other, Rdp)  # noqa: S101  as above
        left = ((order, max(Fraction(0), tau - other.bound(order))) for order, tau in self.curve)
        return self.of_curve(tuple(left))

    def __mul__(self, times: int) -> Self:
        return self.of_curve(tuple((order, tau * times) for order, tau in self.curve))

    def __le__(self, other: Loss) -> bool:
        """Tell whether this curve is below the other wherever that one says anything."""
        self._same(other)
        assert isinstance(other, Rdp)  # noqa: S101  as above
        reaches = self.curve[-1][0] >= other.curve[-1][0]
        return reaches and all(self.bound(order) <= tau for order, tau in other.curve)

    def __repr__(self) -> str:
        orders = [f"{float(order):g}" for order in self.orders]
        if len(orders) == 1:
            return f"Rdp(order={orders[0]}, tau={up(self.curve[0][1]):.6g})"
        return f"Rdp({len(orders)} orders from {orders[0]} to {orders[-1]})"

    def _parts(self) -> dict[str, Any]:
        return {"amount": self.amount, "slack": self.slack, "curve": self.curve}


class Tcdp(Loss):
    """(rho, omega)-tCDP: D_a <= a rho for the orders 1 < a < omega only; omega may be infinite (that is zCDP).

    Guarantee: rhos add and the smaller omega stays, also when each rho is chosen from the outputs before it.
    Proof: [BunDRS18; FeldmanZ21, Thm 3.1] order by order.
    Assumes: each part is (rho_i, omega_i)-tCDP given the past, with the omegas fixed in advance.
    Rounds: nothing; both are exact fractions.

    >>> Tcdp(0.25, 64) + Tcdp(0.5, 32)
    Tcdp(rho=0.75, omega=32)
    """

    __slots__ = ("omega",)
    currency = "tcdp"
    parameter = "rho"
    omega: Fraction | float

    def __init__(self, rho: Number, omega: Number) -> None:
        last = math.inf if omega == math.inf else _order(omega, "omega")
        self._set(amount=exact(rho, "rho"), omega=last)

    @classmethod
    def of_amount(cls, amount: Fraction) -> NoReturn:
        """Refuse: rho alone does not say up to which order it holds."""
        raise _no_amount(cls, amount)

    @property
    def rho(self) -> float:
        """The slope of the line, rounded up."""
        return up(self.amount)

    def epsilon(self, delta: Number = 1e-6) -> float:
        """Return the least epsilon that any order up to omega gives at delta, rounded up."""
        return convert.zcdp_epsilon(self.amount, within_unit(delta, next_step=NO_PURE), self._last())

    def delta(self, epsilon: Number) -> float:
        """Return the least delta that any order up to omega gives at epsilon, rounded up."""
        return convert.zcdp_delta(self.amount, exact(epsilon, "epsilon"), self._last())

    def for_group(self, k: int) -> Tcdp:
        """Return the loss of k units at once, (k^2 rho, omega/k) [BunDRS18; docs/proofs/privacy.group.md].

        >>> Tcdp(0.1, 64).for_group(2)
        Tcdp(rho=0.4, omega=32)
        """
        if self.omega <= group.units(k):
            raise InvalidBudget(
                "no order is left for a group this large",
                rule=f"omega > {k}",
                got=repr(self),
                next_step="a larger omega",
            )
        return self.of_parts(amount=self.amount * k**2, omega=self.omega / k)

    def _last(self) -> Fraction | None:
        """Return the last order that may be used, or None. D_a is continuous from below, so omega itself may be."""
        return self.omega if isinstance(self.omega, Fraction) else None

    def __add__(self, other: Loss) -> Self:
        self._same(other)
        assert isinstance(other, Tcdp)  # noqa: S101  for the type checker; _same refused the rest
        return self.of_parts(amount=self.amount + other.amount, omega=min(self.omega, other.omega))

    def __sub__(self, other: Loss) -> Self:
        """Return what is left of rho at this omega, never below zero."""
        self._same(other)
        return self.of_parts(amount=max(Fraction(0), self.amount - other.amount), omega=self.omega)

    def __mul__(self, times: int) -> Self:
        return self.of_parts(amount=self.amount * times, omega=self.omega)

    def __le__(self, other: Loss) -> bool:
        """Tell whether this promise is at least as strong."""
        self._same(other)
        assert isinstance(other, Tcdp)  # noqa: S101  as above
        return self.amount <= other.amount and self.omega >= other.omega

    def __repr__(self) -> str:
        return f"Tcdp(rho={self.value:.6g}, omega={float(self.omega):.6g})"

    def _parts(self) -> dict[str, Any]:
        return {"amount": self.amount, "slack": self.slack, "omega": self.omega}


def _order(value: Number, name: str) -> Fraction:
    """Return a Renyi order as a fraction; refuse what is not above 1."""
    order = exact(value, name)
    if order <= 1:
        raise InvalidBudget(
            f"{name} is out of range", rule=f"{name} > 1", got=value, next_step=f"{name} 8 or 32 is usual"
        )
    return order


def _number(tau: Number | None) -> Number:
    """Return tau; refuse an order without one."""
    if tau is None:
        raise InvalidBudget("an order without its tau", rule="Rdp(order, tau)", got="no tau", next_step="Rdp(8, 0.5)")
    return tau


def _curve(pairs: Iterable[tuple[Fraction, Fraction]]) -> dict[str, Any]:
    """Return the parts of an Rdp, with the curve raised nowhere and lowered where a higher order says more."""
    rising: list[tuple[Fraction, Fraction]] = []
    least: Fraction | None = None
    for order, tau in sorted(pairs, reverse=True):
        least = tau if least is None else min(least, tau)
        rising.append((order, least))
    return {"amount": max(tau for _, tau in rising), "curve": tuple(reversed(rising))}


def _no_amount(kind: type[Loss], amount: Fraction) -> InvalidBudget:
    """Return the refusal to make a loss of several numbers from one."""
    return InvalidBudget(
        f"{kind.__name__} is not one number",
        rule="only additive losses are booked in farthings",
        got=float(amount),
        next_step="keep the books in Gdp, Zcdp or Pure",
    )
