"""Losses that are known only afterwards: Brownian runs, their ex-post boundaries, and what a filter is told of them.

A Brownian run shows f + N(0, v) at falling variance v and stops when it likes what it has shown. `information` is 1/v.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol

from farthing.errors import InvalidBudget
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.loss import Gdp, Loss, Pure, Zcdp
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import coins_up

if TYPE_CHECKING:
    from farthing.privacy.numbers import Number


ANY: Final = 1 << 1000


def positive(value: Number, name: str) -> Fraction:
    """Return a number > 0 as an exact fraction; it need not be a loss, and may be large."""
    found = exact(value, name, most=ANY)
    if not found:
        raise InvalidBudget(f"{name} is zero", rule=f"{name} > 0", got=value, next_step=f"give {name} a value above 0")
    return found


@dataclass(frozen=True, slots=True)
class ExPost:
    """What a filter is told before an ex-post private run starts: its loss may be anything up to `cap`.

    Attributes:
        cap: the most that the run's ex-post loss can be, whatever comes out.
        delta: the chance that the realised statement is wrong.

    >>> ExPost(cap=Pure(0.5), delta=1e-8)
    ExPost(cap=Pure(epsilon=0.5), delta=1e-08)
    """

    cap: Pure
    delta: Number = 0

    def __post_init__(self) -> None:
        if type(self.cap) is not Pure:
            raise InvalidBudget(
                "an ex-post cap is an epsilon", rule="cap is a Pure loss", got=self.cap, next_step="ExPost(Pure(0.5))"
            )
        if exact(self.delta, "delta"):
            within_unit(self.delta, next_step="0, or 1e-8, say")


@dataclass(frozen=True, slots=True)
class BrownianRun:
    """A stretch of a Brownian run: from information `start` to information `stop`, priced by what it adds.

    Attributes:
        stop: information (1/variance) after the stretch, in answer units to the power -2.
        start: information before it; 0 for a run that begins.
        sensitivity: the L2 sensitivity of the answer, in answer units.

    Guarantee: the stretch costs rho = (stop - start) D^2/2 in zCDP and mu^2 = (stop - start) D^2 in GDP; a run that was
        stopped at information t by what it showed has paid t D^2/2 in all.
    Proof: the increment of information-time Brownian motion is one fresh Gaussian measurement;
        [RogersSRW23, section 6; WhitehouseRWR22], docs/proofs/privacy.filters.md.
    Assumes: each stretch is paid before it is drawn; stopping looks at what was shown only.
    Rounds: nothing; exact fractions.

    >>> from farthing.privacy.loss import Zcdp
    >>> BrownianRun(stop=Fraction(1, 100)).to(Zcdp)
    Zcdp(rho=0.005)
    >>> BrownianRun(stop=Fraction(1, 100)).further(Fraction(1, 25)).to(Zcdp)
    Zcdp(rho=0.015)
    """

    stop: Number
    start: Number = 0
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        positive(self.sensitivity, "sensitivity")
        if exact(self.start, "start", most=ANY) >= exact(self.stop, "stop", most=ANY):
            raise InvalidBudget(
                "a run has to gain information",
                rule="start < stop",
                got=f"start={self.start}, stop={self.stop}",
                next_step="state information, 1/variance, which rises as the noise falls",
            )

    @property
    def mu_squared(self) -> Fraction:
        """The GDP price, exact."""
        return (Fraction(self.stop) - Fraction(self.start)) * Fraction(self.sensitivity) ** 2

    def further(self, stop: Number) -> BrownianRun:
        """Return the next stretch of the same run, from where this one stops."""
        return BrownianRun(stop=stop, start=self.stop, sensitivity=self.sensitivity)

    def to(self, kind: type[Loss]) -> Loss:
        """Return the price in zCDP or GDP; a Gaussian run has no pure price, and it is refused."""
        return Gdp.of_amount(self.mu_squared).to(kind)


class Boundary(Protocol):
    """An ex-post loss statement for one Brownian run, true at all its looks at once."""

    @property
    def delta(self) -> Number:
        """The chance that the statement fails at any time."""

    def at(self, variance: Number) -> Pure:
        """Return the ex-post loss of a run that ended at this variance."""

    def until(self, variance: Number) -> ExPost:
        """Return what to tell a filter about a run that will not go below this variance."""


@dataclass(frozen=True, slots=True)
class LinearBoundary:
    """psi(v) = D^2/(2v) + D b + D a/v with 2ab = log(1/delta): tight at one variance, with a floor D b.

    Attributes:
        delta: the chance that the loss passes psi at any time, in (0, 1).
        tight_at: the variance at which the statement is tightest, in squared answer units.
        sensitivity: the L2 sensitivity D of the answer, in answer units.

    Guarantee: with probability 1 - delta the loss of the run is at most psi(v) at every v, also where it stops.
    Proof: [WhitehouseRWR22, linear boundary]; docs/proofs/privacy.odometers.md.
    Assumes: `delta` and `tight_at` are fixed before the run; stopping looks at what was shown only.
    Rounds: up, to whole farthings of epsilon.

    >>> psi = LinearBoundary(delta=1e-8, tight_at=2862)
    >>> round(psi.at(2862).value, 4), round(psi.at(10_000).value, 4)
    (0.1136, 0.073)
    """

    delta: Number
    tight_at: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        _check(self.delta, self.sensitivity, self.tight_at, "tight_at")

    def at(self, variance: Number) -> Pure:
        """Return the ex-post loss of a run that ended at this variance, rounded up."""
        v = positive(variance, "variance")
        with working() as flint:
            spread, exponent, ratio = _setting(flint, v, self.delta, self.sensitivity, self.tight_at)
            return _epsilon(spread * spread / 2 + spread * (exponent / (2 * ratio)).sqrt() * (1 + ratio))

    def until(self, variance: Number) -> ExPost:
        """Return what to tell a filter about a run that will not go below this variance: psi falls as v grows."""
        return ExPost(cap=self.at(variance), delta=self.delta)


@dataclass(frozen=True, slots=True)
class MixtureBoundary:
    """psi(v) = D^2/(2v) + (D/v) sqrt(2(v+r) log(sqrt((v+r)/r)/delta)): nowhere tight, no floor.

    Attributes:
        delta: the chance that the loss passes psi at any time, in (0, 1).
        r: where it is best, as a variance, in squared answer units; about v/(2 log(1/delta)) for runs that end near v.
        sensitivity: the L2 sensitivity D of the answer, in answer units.

    Guarantee: with probability 1 - delta the loss of the run is at most psi(v) at every v, also where it stops.
    Proof: [WhitehouseRWR22, mixture boundary]; docs/proofs/privacy.odometers.md.
    Assumes: `delta` and `r` are fixed before the run; stopping looks at what was shown only.
    Rounds: up, to whole farthings of epsilon.

    >>> psi = MixtureBoundary(delta=1e-8, r=100)
    >>> round(psi.at(2862).value, 4), psi.at(1e12) < Pure(1e-4)
    (0.1208, True)
    """

    delta: Number
    r: Number
    sensitivity: Number = 1

    def __post_init__(self) -> None:
        _check(self.delta, self.sensitivity, self.r, "r")

    def at(self, variance: Number) -> Pure:
        """Return the ex-post loss of a run that ended at this variance, rounded up."""
        v = positive(variance, "variance")
        with working() as flint:
            spread, exponent, ratio = _setting(flint, v, self.delta, self.sensitivity, self.r)
            size = 2 * (1 + ratio) * ((1 + 1 / ratio).log() / 2 + exponent)
            return _epsilon(spread * spread / 2 + spread * size.sqrt())

    def until(self, variance: Number) -> ExPost:
        """Return what to tell a filter about a run that will not go below this variance: psi falls as v grows."""
        return ExPost(cap=self.at(variance), delta=self.delta)


@dataclass(frozen=True, slots=True)
class RenyiStatement:
    """What a told price says at one Renyi order, with no delta: the loss is below `at(paid)` in the exponential mean.

    With a the order, Z the loss of a unit and E the told loss, E[exp((a - 1)(Z - E))] <= 1. Statements about releases
    that follow one another add. Whatever is computed from an answer and its price has the statement of that price;
    where outcomes of several prices become one, that of the largest.

    Attributes:
        order: a > 1, fixed before the release.

    Guarantee: E[exp((order - 1)(Z - at(paid)))] <= 1 for the price that is told of a release in Gaussian DP, zCDP or
        a pure ledger, wherever it stopped; with chance 1 - delta, Z <= surely(paid, delta).
    Proof: docs/proofs/privacy.odometers.md, "A told price at one order".
    Assumes: each look's price is known before it is drawn, and what is told is at least their sum.
    Rounds: up, to whole farthings of epsilon.

    >>> statement = RenyiStatement(order=100)
    >>> statement.at(Gdp(0.0625)), statement.surely(Gdp(0.0625), delta=1e-6)
    (Pure(epsilon=0.195312), Pure(epsilon=0.334863))
    >>> statement.at(Pure(0.25))
    Pure(epsilon=0.25)
    """

    order: Number

    def __post_init__(self) -> None:
        if exact(self.order, "order") <= 1:
            raise InvalidBudget(
                "the order is out of range", rule="order > 1", got=self.order, next_step="order=100 suits a small loss"
            )

    def at(self, paid: Gdp | Zcdp | Pure) -> Pure:
        """Return the loss that a told price stands for: order times rho; a told epsilon stands for itself."""
        if isinstance(paid, Pure):
            return paid
        return Pure.of_farthings(coins_up(Fraction(self.order) * paid.to(Zcdp).amount))

    def surely(self, paid: Gdp | Zcdp | Pure, delta: Number) -> Pure:
        """Return what the loss is at most, with chance 1 - delta; this alone is not closed under post-processing."""
        if isinstance(paid, Pure):
            return paid  # surely indeed, and closed
        with working() as flint:
            margin = -ball(flint, within_unit(delta)).log() / ball(flint, Fraction(self.order) - 1)
            return _epsilon(ball(flint, Fraction(self.order) * paid.to(Zcdp).amount) + margin)


def _check(delta: Number, sensitivity: Number, variance: Number, name: str) -> None:
    """Refuse the numbers of a boundary that is none."""
    within_unit(delta)
    positive(sensitivity, "sensitivity")
    positive(variance, name)


def _setting(flint: Any, v: Fraction, delta: Number, sensitivity: Number, other: Number) -> tuple[Any, Any, Any]:
    """Return D/sqrt(v), log(1/delta) and the boundary's own variance over v, as balls."""
    spread = (ball(flint, Fraction(sensitivity) ** 2 / v)).sqrt()
    return spread, -ball(flint, Fraction(delta)).log(), ball(flint, Fraction(other) / v)


def _epsilon(value: Any) -> Pure:
    """Return a ball as an epsilon, rounded up to whole farthings."""
    return Pure.of_farthings(coins_up(upper(value)))


__all__ = ["Boundary", "BrownianRun", "ExPost", "LinearBoundary", "MixtureBoundary", "RenyiStatement", "positive"]
