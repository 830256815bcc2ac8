"""When a look is good enough: a test on the private excess risk, a bound from released numbers, or theory alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from farthing.mechanisms.reduced_threshold import BAR_SHARE as REDUCED_SHARE
from farthing.mechanisms.reduced_threshold import ReducedAboveThreshold
from farthing.mechanisms.threshold import BAR_SHARE, AboveThreshold
from farthing.models.bounds import StatisticsNoise, shown_bound
from farthing.rounding import FARTHING, coins_up

if TYPE_CHECKING:
    from farthing.mechanisms.reduced_threshold import ReducedWatch
    from farthing.mechanisms.threshold import Watch
    from farthing.models.problems import Problem
    from farthing.models.purses import Purse
    from farthing.models.rows import Float64
    from farthing.models.vectors import Statistics

SHARE: Final = 0.5
"""The part of sqrt(target) that the test's noise may take; the model's own error has the rest."""

CEILING: Final = 2.0
"""Scores stop growing at this many times sqrt(target) of root excess: what is far off need not be told apart."""

EARLY: Final = 4
"""A test starts when a level costs a quarter of the test: stopping sooner could save no more than that."""

RESOLUTION: Final = 2.0**-30
"""Excess risks are read in float64: a score errs by less than this, which its sensitivity counts."""

_FLOOR: Final = 2.0**-34
_REDUCED: Final = ReducedAboveThreshold(0)


@dataclass(frozen=True, slots=True)
class FitLook:
    """One look, as a stop sees it.

    Attributes:
        number: from 1.
        left: looks that can still follow, this one included.
        coins: its level.
        paid: the coins paid so far.
        values: what was shown.
        theta: the hypothesis that it tells.
    """

    number: int
    left: int
    coins: int
    paid: int
    values: Float64
    theta: Float64


class Stop(Protocol):
    """Says of looks, in turn, whether to stop, and what saying so has cost."""

    @property
    def epsilon(self) -> Fraction:
        """The price of the test so far."""

    def worst(self, coins: int) -> Fraction:
        """Return the most that the test can have cost after a look at a level."""

    def accepts(self, look: FitLook) -> bool:
        """Tell whether this look is good enough."""


def reduced_hurdle(looks: int, failure: float) -> float:
    """Return the same for ReducedAboveThreshold, times the level at which each score is asked.

    With rates r of a score and r0 of the threshold, two-sided: P[E/r - 1/r - L/r0 >= x] <= e^(-r x - 1)/(1 - (r/r0)^2).

    >>> round(reduced_hurdle(20, 0.1), 2)
    17.23
    """
    bar = float(REDUCED_SHARE)
    score = (1 - bar) / 2
    level = math.log(looks / (failure * (1 - (score / bar) ** 2))) / score
    return max(0.0, level - 1 / score) * (1 + 2.0**-20) + 2.0**-12


def hurdle(looks: int, failure: float) -> float:
    """Return how far noise of AboveThreshold at epsilon 1, sensitivity 1, lifts none of some scores, but for `failure`.

    With rates r0 and r: P[E_k/r - 1/r - E_0/r0 + 1/r0 >= x for some k] <= looks e^(-r (x + 1/r - 1/r0)) / (1 + r/r0).

    >>> round(hurdle(20, 0.1), 2)
    14.69
    """
    bar, score = float(BAR_SHARE), (1 - float(BAR_SHARE)) / 2
    level = math.log(looks / (failure * (1 + score / bar))) / score
    return max(0.0, level - 1 / score + 1 / bar) * (1 + 2.0**-20)


def price_of_test(problem: Problem, target: float, *, looks: int, failure: float, length: float = 0.0) -> Fraction:
    """Return the epsilon of a test whose noise takes half of sqrt(target), for hypotheses of about some length."""
    moves = problem.moves(length, CEILING * math.sqrt(target)) + RESOLUTION
    needed = hurdle(looks, failure) * moves / (SHARE * math.sqrt(target))
    return coins_up(Fraction(needed)) * FARTHING


def best_score(problem: Problem, theta: Float64, target: float) -> float:
    """Return the score of a hypothesis without any excess: public, given theta."""
    root = math.sqrt(target)
    moves = problem.moves(float(np.linalg.norm(theta)), CEILING * root) * (1 + 2.0**-30) + RESOLUTION
    return root / moves


def score_of(problem: Problem, theta: Float64, target: float) -> float:
    """Return (sqrt(target) - sqrt(excess)) over the most that one row moves it; positive where the target is met.

    Guarantee: given theta, one row moves it by at most 1.
    Proof: docs/proofs/models.regressions.md, "The root of the excess".
    Assumes: rows clamped; add/remove one row.
    Rounds: the excess is read to 2^-34; what that moves is counted.
    """
    missing = math.sqrt(max(problem.excess(theta), _FLOOR) / target)
    return best_score(problem, theta, target) * (1 - min(missing, CEILING))


@dataclass(slots=True)
class PrivateStop:
    """AboveThreshold on the root of the private excess risk, started when its price is no longer the larger part.

    Attributes:
        problem: what is minimised; private.
        purse: what levels and tests cost.
        target: the excess risk asked for, in the problem's units.
        failure: the chance that it stops at a hypothesis that misses the target.
        theory: the level at which the fit ends anyway, in coins, or None.
        bits: where random bits come from.

    Guarantee: a run costs `epsilon`, and stops at a hypothesis that misses the target with probability at most
        `failure`.
    Proof: docs/proofs/models.regressions.md, "A stop that reads the excess risk"; docs/proofs/mechanisms.select.md.
    Assumes: the test is charged beside the look that it stops at, by `Purse.total`.
    Rounds: epsilon up to farthings.
    """

    problem: Problem
    purse: Purse
    target: float
    failure: float
    theory: int | None = None
    bits: Any = None
    epsilon: Fraction = Fraction(0)
    _watch: Watch | None = field(default=None, repr=False)

    @property
    def least(self) -> Fraction:
        """The least that a run can cost: for one look at a hypothesis of length 0."""
        return price_of_test(self.problem, self.target, looks=1, failure=self.failure)

    def worst(self, coins: int) -> Fraction:
        """Return the price of the run, if one was started."""
        del coins
        return self.epsilon

    def accepts(self, look: FitLook) -> bool:
        """Tell whether the noisy score passes; start the test if it is time."""
        if self._watch is None:
            self._watch = self._begin(look)
        return self._watch is not None and self._watch.above(score_of(self.problem, look.theta, self.target))

    def _begin(self, look: FitLook) -> Watch | None:
        """Return a run if it is time for one; all that is read is public or was released."""
        length = float(np.linalg.norm(look.theta))
        price = price_of_test(self.problem, self.target, looks=look.left, failure=self.failure, length=length)
        if not self.purse.holds(look.paid, price) or not self._saves(look.paid, price):
            return None
        if not self.purse.matters(look.paid, price, EARLY) and self.purse.holds(2 * look.paid, price):
            return None
        self.epsilon = price
        return AboveThreshold(Fraction(hurdle(look.left, self.failure)) / price, price).start(self.bits)

    def _saves(self, paid: int, price: Fraction) -> bool:
        """Tell whether a stop soon, test and all, would be cheaper than going on until theory ends the fit."""
        none = Fraction(0)
        return self.theory is None or self.purse.total(paid, price).amount < self.purse.total(self.theory, none).amount


@dataclass(slots=True)
class ReducedStop:
    """ReducedAboveThreshold on the root of the private excess risk, its level that of the look.

    Attributes:
        problem: what is minimised; private.
        purse: what levels and tests cost; `Pure` or `Approx`.
        target: the excess risk asked for, in the problem's units.
        failure: the chance that it stops at a hypothesis that misses the target.
        looks: the most looks there are.
        bits: where random bits come from.

    Guarantee: a run costs `epsilon`, ex post, and stops at a hypothesis that misses the target with probability at most
        `failure`.
    Proof: docs/proofs/models.regressions.md, "A stop that reads the excess risk"; docs/proofs/mechanisms.laplace.md.
    Assumes: the test's ex-post epsilon is charged beside the look that it stops at, by `Purse.total`.
    Rounds: levels down to farthings.
    """

    problem: Problem
    purse: Purse
    target: float
    failure: float
    looks: int
    bits: Any = None
    _watch: ReducedWatch | None = field(default=None, repr=False)

    @property
    def epsilon(self) -> Fraction:
        """What the run has cost so far."""
        return Fraction(0) if self._watch is None else self._watch.loss.amount

    @property
    def least(self) -> Fraction:
        """The least that a run can cost: at the least level at which a score can pass, that of a length of 0."""
        best = best_score(self.problem, np.zeros(1), self.target)
        return REDUCED_SHARE * Fraction(reduced_hurdle(self.looks, self.failure) / best)

    def worst(self, coins: int) -> Fraction:
        """Return what the run has cost if it stops at a look; no stop costs no more."""
        level = self._level(coins)
        return self._watch.price_of_stop(level) if self._watch else _REDUCED.price(level, Fraction(0))

    def _level(self, coins: int) -> Fraction:
        """Return the level that a look is asked at."""
        return Fraction(math.ceil(self.purse.level(coins) / FARTHING)) * FARTHING

    def accepts(self, look: FitLook) -> bool:
        """Tell whether the noisy score passes; a score that could not pass whatever the rows are is not asked."""
        level = self._level(look.coins)
        needed = reduced_hurdle(self.looks, self.failure) / float(level)
        if needed >= best_score(self.problem, look.theta, self.target):
            return False
        if self._watch is None:
            self._watch = _REDUCED.start(self.bits)
        return self._watch.above(score_of(self.problem, look.theta, self.target) - needed, level)


@dataclass(frozen=True, slots=True)
class ShownStop:
    """Stop where a bound from the released statistics alone is within the target: free.

    Attributes:
        vector: the statistics; only what is public of them is read.
        purse: what levels cost.
        target: the excess risk asked for, in the problem's units.
        failure: the chance that it stops at a hypothesis that misses the target.
        looks: the most looks there are; each has its part of the failure.

    Guarantee: it stops at a hypothesis that misses the target with probability at most `failure`; it costs nothing.
    Proof: docs/proofs/models.regressions.md, "A stop that reads released numbers only".
    Assumes: Gaussian noise; at most N rows.
    Rounds: in float64; nothing private depends on it.
    """

    vector: Statistics
    purse: Purse
    target: float
    failure: float
    looks: int
    epsilon: Fraction = Fraction(0)

    def worst(self, coins: int) -> Fraction:
        """Return 0."""
        del coins
        return self.epsilon

    def accepts(self, look: FitLook) -> bool:
        """Tell whether the bound is within the target."""
        noise = StatisticsNoise.of(self.vector, self.purse, look.coins, look.number)
        return shown_bound(self.vector, look.values, noise, self.failure / self.looks) <= self.target


@dataclass(frozen=True, slots=True)
class NoStop:
    """Never stop before theory says so."""

    epsilon: Fraction = Fraction(0)

    def worst(self, coins: int) -> Fraction:
        """Return 0."""
        del coins
        return self.epsilon

    def accepts(self, look: FitLook) -> bool:
        """Return False."""
        del look
        return False
