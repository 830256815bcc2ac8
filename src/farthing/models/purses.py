"""What a fit may cost and has cost: one currency for the noise on the vector and for the test that stops it.

The kind of the cap chooses the noise. `Pure`: two-sided geometric noise, a chain. `Gdp` and `Zcdp`: Gaussian noise, as
a ledger of that currency books it. `Approx`: Gaussian noise, told as an ex-post epsilon that holds but for delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, sigma_of
from farthing.mechanisms.laplace import MOST_FARTHINGS, rates_of
from farthing.mechanisms.scores import restated
from farthing.privacy.ex_post import LinearBoundary
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from farthing.models.rows import Norm

Price = Pure | Gdp | Zcdp | Approx
KINDS: Final = (Pure, Gdp, Zcdp, Approx)


@dataclass(frozen=True, slots=True)
class Purse:
    """A cap, and the prices of levels and tests in its currency. A level is a whole number of coins.

    Coins are farthings of epsilon (2^-40) for a chain, grains of mu^2 (2^-56) for Gaussian noise.

    Attributes:
        cap: the most that the fit may cost, all in all.

    Guarantee: a fit that ended with `coins` on the vector and a test of `epsilon` has the loss `total(coins, epsilon)`:
        in `Pure` the epsilon of what came out, surely; in `Gdp` and `Zcdp` what a filter of that currency is charged;
        in `Approx` the privacy loss of the whole run is at most its epsilon but for delta.
    Proof: docs/proofs/models.regressions.md, "Prices"; [LigettNRWW17; WhitehouseRWR22].
    Assumes: levels rise; the test is charged whole.
    Rounds: up.

    >>> Purse(Gdp(1)).total(1 << 54, Fraction(0))
    Gdp(mu=0.5)
    """

    cap: Price

    def __post_init__(self) -> None:
        if type(self.cap) not in KINDS or not self.cap.amount:
            raise InvalidBudget(
                "the cap is not a loss that a fit can have",
                rule="Pure, Gdp, Zcdp or Approx, above 0",
                got=repr(self.cap),
                next_step="cap=Gdp(1) or cap=Pure(1)",
            )
        if isinstance(self.cap, Zcdp | Approx) and bool(self.cap.slack) is isinstance(self.cap, Zcdp):
            raise InvalidBudget(
                "that cap has no price for Gaussian noise",
                rule="Zcdp without delta; Approx with delta > 0",
                got=repr(self.cap),
                next_step="cap=Zcdp(0.1), or cap=Approx(1, 1e-6)",
            )

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return not isinstance(self.cap, Pure)

    @property
    def norm(self) -> Norm:
        """The norm in which the noise counts what one row moves."""
        return "l2" if self.gaussian else "l1"

    @property
    def finest(self) -> int:
        """The finest level that can be drawn."""
        return MOST_GRAINS if self.gaussian else MOST_FARTHINGS

    def total(self, coins: int, epsilon: Fraction) -> Price:
        """Return the loss of a vector released at a level beside a test."""
        match self.cap:
            case Pure():
                return Pure(coins * FARTHING + epsilon)
            case Gdp():
                return Gdp.of_amount(coins * GRAIN + _price(epsilon, Gdp))
            case Zcdp():
                return Zcdp.of_amount(coins * GRAIN / 2 + _price(epsilon, Zcdp))
            case Approx():
                return Approx(self._boundary(coins) + epsilon, self.cap.slack)

    def holds(self, coins: int, epsilon: Fraction = Fraction(0)) -> bool:
        """Tell whether a level and a test fit under the cap."""
        return coins <= self.finest and self.total(coins, epsilon).amount <= self.cap.amount

    def matters(self, coins: int, epsilon: Fraction, part: int) -> bool:
        """Tell whether a level costs at least one `part`-th of what a test does; for Gaussian noise in GDP's coin."""
        if not self.gaussian:
            return coins * FARTHING * part >= epsilon
        return coins * GRAIN * part >= _price(epsilon, Gdp)

    def most(self, epsilon: Fraction = Fraction(0)) -> int:
        """Return the finest level that fits beside a test; 0 if none does."""
        low, high = 0, self.finest + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.holds(middle, epsilon) else (low, middle)
        return low

    def coins(self, level: float) -> int:
        """Return a level told as epsilon, or as mu, in whole coins, rounded down."""
        exact = Fraction(level)
        return math.floor(exact**2 / GRAIN) if self.gaussian else math.floor(exact / FARTHING)

    def level(self, coins: int) -> float:
        """Return a level as epsilon, or as mu."""
        return math.sqrt(coins * GRAIN) if self.gaussian else float(coins * FARTHING)

    def spread(self, coins: int, sensitivity: int) -> float:
        """Return the noise in steps: sigma, or one over the rate of a geometric law."""
        each = np.array([coins])
        if self.gaussian:
            return float(sigma_of(each, sensitivity)[0])
        return float(1 / rates_of(each, sensitivity)[0])

    def _boundary(self, coins: int) -> Fraction:
        """Return the ex-post epsilon of Gaussian noise at a level, tightest where it takes a quarter of the cap."""
        if not coins:
            return Fraction(0)
        exponent = -math.log(self.cap.slack)
        root = math.sqrt(exponent + float(self.cap.amount) / 4) - math.sqrt(exponent)
        tight = Fraction(1 / (2 * root * root))
        return LinearBoundary(self.cap.slack, tight).at(1 / (coins * GRAIN)).amount


@lru_cache(maxsize=256)
def _price(epsilon: Fraction, currency: type[Gdp | Zcdp]) -> Fraction:
    """Return the price of a test in a currency, as an amount: that of randomised response, rounded up."""
    return restated(Pure(epsilon), currency).amount if epsilon else Fraction(0)
