"""What two rates of one event tell of a loss: the lower bounds of every currency, by testing D against its neighbour.

Each bound reads the same pair: the event happens on one data set with chance `hit` at least, on its neighbour with
chance `alarm` at most. Whatever is a bound for the event is one for its complement, with the rates swapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.errors import InvalidTarget
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp

if TYPE_CHECKING:
    from farthing.privacy.loss import Loss

ORDERS: Final = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0)
"""The Renyi orders at which rho is bounded; 1 is the Kullback-Leibler divergence."""

Pair: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rates:
    """The chance of an event on one data set, at least, and on its neighbour, at most.

    Attributes:
        hit, alarm: chances in [0, 1]; they tell something where hit > alarm.

    Guarantee: every loss below is at most what a mechanism with such an event has.
    Proof: docs/proofs/audit.bounds.md, after [KairouzOV15; DongRS22; BunS16].
    Assumes: the rates are those of one event, fixed before they were measured.
    Rounds: double precision, to the nearest; `LowerBound.exceeds` leaves a part in 10^9 for it.

    >>> Rates(0.95, 0.05).epsilon()
    2.94...
    >>> Rates(0.95, 0.05).mu
    3.28...
    >>> Rates(0.95, 0.05).rho
    2.64...
    """

    hit: float
    alarm: float

    @classmethod
    def of_interval(cls, confidence: float) -> Rates:
        """Return the rates of an interval that covers two truths, which never both fit in it, with the confidence."""
        return cls(confidence, 1 - confidence)

    @property
    def tells(self) -> bool:
        """Whether the event is surely likelier on the first data set."""
        return self.hit > self.alarm

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the least epsilon at a delta: the larger log(P - delta) - log(Q) of the event and its complement."""
        ratios = (_log_ratio(above - delta, below) for above, below in self._sides())
        return max(0.0, *ratios) if self.tells else 0.0

    def delta(self, epsilon: float) -> float:
        """Return the least delta at an epsilon: the hockey-stick P - e^epsilon Q of the event or its complement."""
        return max(0.0, *(above - exp(epsilon) * below for above, below in self._sides())) if self.tells else 0.0

    @property
    def mu(self) -> float:
        """The least mu: the distance of two unit normals that can be told apart so well."""
        from scipy.special import ndtri

        return float(ndtri(self.hit) - ndtri(self.alarm)) if self.tells else 0.0

    def renyi(self, order: float) -> float:
        """Return the larger Renyi divergence of this order of the two coins, one from the other; order 1 is KL."""
        return max(_divergence(*pair, order) for pair in self._directions()) if self.tells else 0.0

    @property
    def rho(self) -> float:
        """The least rho: the largest divergence over its order."""
        return max(self.renyi(order) / order for order in ORDERS)

    def against(self, claim: Loss) -> float:
        """Return the lower bound in a claim's own parameter, to be compared with `claim.value`.

        Raises:
            InvalidTarget: a kind of loss that nothing here bounds.
        """
        match claim:
            case Gdp():
                return self.mu
            case Zcdp() if not claim.slack:
                return self.rho
            case Pure():
                return self.epsilon()
            case Approx():
                return self.epsilon(float(claim.slack))
        raise InvalidTarget(
            "this loss cannot be audited",
            rule="a Pure, Approx, Zcdp or Gdp loss",
            got=repr(claim),
            next_step="state the claim as (epsilon, delta): Approx(epsilon, delta)",
        )

    def _sides(self) -> tuple[Pair, Pair]:
        """Return (likely, unlikely) of the event, and of its complement."""
        return (self.hit, self.alarm), (1 - self.alarm, 1 - self.hit)

    def _directions(self) -> tuple[Pair, Pair]:
        """Return the coins in both orders."""
        return (self.hit, self.alarm), (self.alarm, self.hit)


def _log_ratio(above: float, below: float) -> float:
    """Return log(above / below): -inf where nothing is above, inf where nothing is below."""
    if above <= 0:
        return -inf
    return log(above) - log(below) if below > 0 else inf


def _divergence(p: float, q: float, order: float) -> float:
    """Return the Renyi divergence of a coin of chance p from one of chance q."""
    pairs = [(above, below) for above, below in ((p, q), (1 - p, 1 - q)) if above > 0]
    if any(below <= 0 for _, below in pairs):
        return inf
    if order <= 1:
        return sum(above * log(above / below) for above, below in pairs)
    logs = [order * log(above) + (1 - order) * log(below) for above, below in pairs]
    top = max(logs)
    return (top + log(sum(exp(each - top) for each in logs))) / (order - 1)
