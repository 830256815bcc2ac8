"""Selection by a large margin: where the k best stand clear of the rest, the rest need not be chosen against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.exponential import Exponential
from farthing.mechanisms.scores import B, chance, checked_scores, priced, rate_of, restated, spread_of, whole
from farthing.noise.races import Noisy
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.loss import Approx, Pure
from farthing.rounding import up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LargeMargin:
    """If the gap behind the k-th best score is large enough, noise and all, choose among the k best; else nothing.

    The chance to find the gap does not fall with the number of options. The test spends `share` of epsilon, the
    exponential mechanism among the k best the rest; with k = 1 there is nothing to choose and the test has it all.

    Attributes:
        epsilon: the price, > 0; exact.
        delta: the chance that a gap is found which is none, in (0, 1); exact.
        k: how many options stand in front of the gap.
        share: of epsilon, for the test of the gap, in (0, 1); unused if k is 1.

    Guarantee: (epsilon, delta)-DP; but for outcomes of chance `delta`, epsilon_1-DP for the test and then
        epsilon_2-bounded range for the choice.
    Proof: docs/proofs/mechanisms.select.md, "A large margin"; after [ChaudhuriHS14; BunDRS18].
    Assumes: R as in `Exponential`; options do not depend on the data; exact comparisons.
    Rounds: the rates down, the threshold up.

    >>> margin = LargeMargin(epsilon=1, delta=1e-6)
    >>> margin.choose([3, 700, 5]), margin.choose([699, 700, 5]), margin.loss
    (1, None, Approx(epsilon=1, delta=1e-06))
    """

    epsilon: Number
    delta: Number
    k: int = 1
    share: Number = Fraction(1, 2)

    def __post_init__(self) -> None:
        priced(self.epsilon)
        chance(self.delta)
        whole(self.k, "k")
        if not 0 < self.share < 1:
            raise InvalidBudget(
                "share is out of range", rule="0 < share < 1", got=self.share, next_step="a half is usual"
            )

    @property
    def loss(self) -> Approx:
        """The price, (epsilon, delta)."""
        return Approx(self.epsilon, self.delta)

    def price(self, currency: type[B]) -> B:
        """Return the price in a ledger's currency, but for outcomes of chance `delta`, which is booked beside it.

        >>> from farthing.privacy import Zcdp
        >>> LargeMargin(1, 1e-6, k=4).price(Zcdp)
        Zcdp(rho=0.153601)
        """
        if currency is Pure or self.k == 1:
            return restated(Pure(priced(self.epsilon)), currency)
        return restated(Pure(self.for_test), currency) + Exponential(self.for_choice).price(currency)

    @property
    def for_test(self) -> Fraction:
        """The part of epsilon that finds the gap."""
        return priced(self.epsilon) * (1 if self.k == 1 else Fraction(self.share))

    @property
    def for_choice(self) -> Fraction:
        """The part of epsilon that chooses in front of it."""
        return priced(self.epsilon) - self.for_test

    @property
    def threshold(self) -> float:
        """What gap times rate plus standard Laplace noise must pass: epsilon_1 + log(1/(2 delta)), rounded up.

        A gap of at most R passes it with chance delta at most, and every larger gap leaves the k best the same.
        """
        with working() as flint:
            tail = -(2 * ball(flint, chance(self.delta))).log()
            return up(upper(tail.max(flint.arb(0))) + self.for_test)

    def needed(self, confidence: float, sensitivity: Number = 1, *, monotone: bool = False) -> float:
        """Return the gap that is found with the confidence, in (1/2, 1).

        >>> round(LargeMargin(1, 1e-6).needed(0.95, monotone=True), 2)
        16.42
        """
        rate = rate_of(self.for_test, spread_of(sensitivity, monotone=monotone))
        return (self.threshold - math.log(2 * (1 - confidence))) / rate

    def choose(
        self, scores: ArrayLike, sensitivity: Number = 1, *, monotone: bool = False, bits: BitSource | None = None
    ) -> int | None:
        """Return the index of the chosen option, or None where no gap was found.

        Args:
            scores: int64 or float64[options], larger is better, more than k of them.
            sensitivity: the most that one unit moves a score.
            monotone: whether one unit moves all scores the same way.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: scores that are not numbers, or not more than k.
        """
        table = checked_scores(scores, at_least=self.k + 1, one_row=True)
        spread = spread_of(sensitivity, monotone=monotone)
        best, gap = _front(table, self.k)
        seen = Noisy.draw("laplace", Fraction(rate_of(self.for_test, spread)) * gap, Fraction(1), bits)
        bar = Noisy(seen.law, Fraction(self.threshold), Fraction(0), 0, seen.bits)
        if not seen.exceeds(bar):
            return None
        if self.k == 1:
            return int(best[0])
        among = Exponential(self.for_choice).choose(table[best], sensitivity, monotone=monotone, bits=bits)
        return int(best[int(among)])

    def probabilities(self, scores: ArrayLike, sensitivity: Number = 1, *, monotone: bool = False) -> Float64:
        """Return the probability of each option of one row, and last that of None, float64[options + 1].

        >>> bool(np.allclose(LargeMargin(1, 0.25).probabilities([0, 1], monotone=True), [0, 0.25, 0.75]))
        True
        """
        table = checked_scores(scores, at_least=self.k + 1, one_row=True)
        best, gap = _front(table, self.k)
        over = self.threshold - rate_of(self.for_test, spread_of(sensitivity, monotone=monotone)) * float(gap)
        passed = math.exp(-over) / 2 if over > 0 else 1 - math.exp(over) / 2
        out = np.zeros(len(table) + 1)
        out[-1] = 1 - passed
        among = Exponential(self.for_choice or 1).probabilities(table[best], sensitivity, monotone=monotone)
        out[best] = passed * among
        return out


def _front(table: NDArray[np.int64] | Float64, k: int) -> tuple[NDArray[np.int64], Fraction]:
    """Return the k best options in order of their index, and how far the next one is behind the worst of them."""
    order = np.argpartition(table, len(table) - k - 1)
    best = np.sort(order[len(table) - k :])
    gap = Fraction(table[best].min().item()) - Fraction(table[order[len(table) - k - 1]].item())
    return best, gap
