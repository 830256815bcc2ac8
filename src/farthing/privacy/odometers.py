"""How much has been spent so far: upper bounds that hold at all times at once, with no total fixed in advance.

V is 2 times the sum of rho. A filter promises (epsilon, delta)-DP of everything; an odometer says, at any moment, which
epsilon the privacy loss has not passed, and is right at all moments together with probability 1 - delta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from farthing.privacy.additive import priced, split
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.ex_post import positive
from farthing.privacy.loss import Zcdp
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import up

if TYPE_CHECKING:
    from typing import Self

    from farthing.privacy.additive import Priced
    from farthing.privacy.numbers import Number

NOTHING = Zcdp(0)


class Odometer(Protocol):
    """A running bound on what has been spent; it never refuses."""

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the odometer after a release of this loss."""


@dataclass(frozen=True, slots=True)
class FilterLikeOdometer:
    """u(V) = sqrt(y L/2) + sqrt(L/(2y)) V + V/2, a line: as tight as a filter at one epsilon, more expensive elsewhere.

    Attributes:
        delta: the chance that the loss ever passes the bound, in (0, 1).
        tight_at: the epsilon at which the bound equals the classic zCDP conversion.
        spent: the zCDP loss so far.
        delta_spent: the deltas of approximate terms so far; they add to `delta`.

    Guarantee: with probability 1 - delta - delta_spent the privacy loss so far is at most `epsilon`, always at once.
    Proof: [WhitehouseRRW23, odometers], L = log(1/delta), y = (sqrt(2L + 2e) - sqrt(2L))^2;
        docs/proofs/privacy.odometers.md.
    Assumes: each release is rho-zCDP given the past (after leaving out its delta); `tight_at` is fixed at the start.
    Rounds: up.

    >>> odometer = FilterLikeOdometer(delta=1e-6, tight_at=1).spend(Zcdp(0.01)).spend(Zcdp(0.007468))
    >>> round(odometer.epsilon, 4)
    1.0
    """

    delta: Number
    tight_at: Number
    spent: Zcdp = NOTHING
    delta_spent: Number = 0

    def __post_init__(self) -> None:
        within_unit(self.delta)
        positive(self.tight_at, "tight_at")

    def at(self, spent: Zcdp) -> float:
        """Return the bound when this much has been spent, rounded up."""
        with working() as flint:
            exponent, volume = _setting(flint, self.delta, spent)
            root = (2 * exponent + 2 * ball(flint, Fraction(self.tight_at))).sqrt() - (2 * exponent).sqrt()
            half = (exponent / 2).sqrt()
            return up(upper(root * half + half / root * volume + volume / 2))

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""
        return self.at(self.spent)

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the odometer after a release of this loss (in zCDP, or what has a price there)."""
        return replace(self, **_more(self, loss, delta))


@dataclass(frozen=True, slots=True)
class MixtureOdometer:
    """u(V) = sqrt(2(V+g) log(sqrt((V+g)/g)/delta)) + V/2: good over many sizes, tight at none.

    Attributes:
        delta: the chance that the loss ever passes the bound, in (0, 1).
        gamma: where it is best, as a V; about V/(2 log(1/delta)) for the V that is expected.
        spent: the zCDP loss so far.
        delta_spent: the deltas of approximate terms so far; they add to `delta`.

    Guarantee: with probability 1 - delta - delta_spent the privacy loss so far is at most `epsilon`, always at once.
    Proof: [WhitehouseRRW23, odometers]; docs/proofs/privacy.odometers.md.
    Assumes: each release is rho-zCDP given the past (after leaving out its delta); `gamma` is fixed at the start.
    Rounds: up.

    >>> odometer = MixtureOdometer(delta=1e-6, gamma=0.001).spend(Zcdp(0.017468))
    >>> round(odometer.epsilon, 3)
    1.077
    """

    delta: Number
    gamma: Number
    spent: Zcdp = NOTHING
    delta_spent: Number = 0

    def __post_init__(self) -> None:
        within_unit(self.delta)
        positive(self.gamma, "gamma")

    def at(self, spent: Zcdp) -> float:
        """Return the bound when this much has been spent, rounded up."""
        with working() as flint:
            exponent, volume = _setting(flint, self.delta, spent)
            gamma = ball(flint, Fraction(self.gamma))
            wide = volume + gamma
            return up(upper((2 * wide * ((wide / gamma).log() / 2 + exponent)).sqrt() + volume / 2))

    @property
    def epsilon(self) -> float:
        """The bound now, rounded up."""
        return self.at(self.spent)

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the odometer after a release of this loss (in zCDP, or what has a price there)."""
        return replace(self, **_more(self, loss, delta))


def _setting(flint: Any, delta: Number, spent: Zcdp) -> tuple[Any, Any]:
    """Return log(1/delta) and V = 2 rho as balls."""
    return -ball(flint, Fraction(delta)).log(), ball(flint, 2 * spent.amount)


def _more(odometer: FilterLikeOdometer | MixtureOdometer, loss: Priced, delta: Number) -> dict[str, Any]:
    """Return what was spent after one more loss, and the deltas beside it, exact."""
    price, own = split(priced(loss, Zcdp))
    deltas = Fraction(odometer.delta_spent) + own + exact(delta, "delta")
    return {"spent": odometer.spent + price, "delta_spent": deltas}


__all__ = ["FilterLikeOdometer", "MixtureOdometer", "Odometer"]
