"""Private multiplicative weights online: queries come one by one, adaptively, and most of them are free.

A public histogram answers each query. A run of AboveThreshold watches in secret how far off it is, and on which side;
where that passes the threshold the run ends, and the gap over the threshold, which is free, tells the answer. The
histogram learns from it. What a run costs is fixed beforehand, and a theorem bounds how many runs any sequence of
queries can take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidTarget, NoiseError
from farthing.mechanisms.linear_queries import BITS, steps_of
from farthing.mechanisms.multiplicative_weights import reweighed
from farthing.mechanisms.noisy_answers import deviation
from farthing.mechanisms.scores import restated
from farthing.mechanisms.threshold import AboveThreshold
from farthing.privacy.loss import Pure
from farthing.sealed import opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.linear_queries import MatrixQueries
    from farthing.mechanisms.threshold import Watch
    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked
    from farthing.sealed import Sealed

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

STEP: Final = 1 << BITS
"""Weights and answers are in steps of 2^-16."""

_SAFE: Final = 1 + Fraction(1, 1 << 9)
"""Noise is kept so much further within its margin: that holds the roundings to steps, where `absolute` is 1 or more."""


@dataclass(frozen=True)
class OnlineRule:
    """What an online run promises, and the numbers that follow: thresholds, noise, how many runs there can be.

    Attributes:
        absolute: the error of every answer, in rows, >= 1.
        queries: how many queries there will be at most.
        cells: how many cells the domain has.
        rows: an upper bound on the number of rows, which is believed: the promise hangs on it, privacy does not.
        confidence: the chance that all answers are within the error.
        reach: the most rows that one unit adds.
        currency: of the ledger.

    Guarantee: with the stated chance every answer is within `absolute`, and at most `updates` runs end.
    Proof: [HardtR10]; docs/proofs/mechanisms.online_weights.md.
    Assumes: at most `rows` rows; at most `queries` queries, each chosen from the answers before it.
    Rounds: epsilons and noise to the safe side.

    >>> OnlineRule(2_000, 10_000, 4096, 20_000).updates
    4259
    """

    absolute: float
    queries: int
    cells: int
    rows: int
    confidence: float = 0.95
    reach: int = 1
    currency: type[Booked] = Pure

    def __post_init__(self) -> None:
        usable = isinstance(self.absolute, int | float) and math.isfinite(self.absolute) and self.absolute >= 1
        if not usable or not 0 < self.confidence < 1 or self.queries < 1 or self.rows < 1 or self.cells < 1:
            raise InvalidTarget(
                "an online run has no usable promise",
                rule="absolute >= 1, 0 < confidence < 1, at least one query, row and cell",
                got=f"absolute={self.absolute!r}, confidence={self.confidence!r}, queries={self.queries!r}, "
                f"rows={self.rows!r}",
                next_step="absolute=500, queries=10_000, rows=50_000",
            )

    @property
    def miss(self) -> float:
        """The chance of a miss that each of the kinds of noise has: scores with thresholds, and the total."""
        return (1 - self.confidence) / 2

    @property
    def updates(self) -> int:
        """The most runs that can end: 2 log(cells) rows^2 over the square of the least gap that ends one."""
        return math.ceil(2 * math.log(self.cells) * (self.rows / self.gap) ** 2)

    @property
    def gap(self) -> float:
        """The least distance, in rows, of the histogram from the truth where a run ends: 5/8 of what is promised.

        What all runs cost goes with 1 over its square and the margin, which is least where it is four margins.
        """
        return self.absolute * 5 / 8

    @property
    def margin(self) -> float:
        """How far all noise of scores and thresholds may reach, in rows, and the error of what ends a run."""
        return self.absolute * 5 / 32

    @property
    def off(self) -> float:
        """How far the number of rows may be off, in rows: it is told once."""
        return self.absolute / 16

    @property
    def threshold(self) -> float:
        """The threshold, in rows: the gap, its margin, and that of the total."""
        return self.gap + self.margin + self.off

    @cached_property
    def epsilon(self) -> Fraction:
        """The epsilon of one run of AboveThreshold: such that all its noise stays within the margin."""
        events = 2 * self.queries + self.updates + 1  # a query is two scores, one on either side
        reach = math.log(events / self.miss) + 1
        first, second = AboveThreshold(0, 1, self.reach).rates
        return Fraction((reach / first + reach / second) / self.margin) * _SAFE

    @cached_property
    def opening(self) -> Booked:
        """What telling the number of rows costs, such that it stays within what it may be off."""
        return self._within(self.off)

    @property
    def run(self) -> Booked:
        """What one run costs: watching. The answer where it ends is the gap, which is free."""
        watching: Booked = restated(Pure(self.epsilon), self.currency)
        return watching

    def _within(self, most: float) -> Booked:
        """Return the least loss whose noise stays within `most`, in rows."""
        from scipy.special import ndtri

        chance = self.miss
        if self.currency is Pure:  # P[|geometric| >= m] <= 2 exp(-rate m)
            return Pure(Fraction(self.reach * math.log(2 / chance) / most) * _SAFE)
        low, high = Fraction(0), Fraction(1 << 20)
        sigma = most / float(-ndtri(chance / 2) * _SAFE)
        for _ in range(100):
            middle = (low + high) / 2
            loss = self.currency.of_amount(middle)
            wide = not middle or deviation(loss, squares=self.reach**2, total=self.reach) > sigma
            low, high = (middle, high) if wide else (low, middle)
            if not wide and high - low < high / (1 << 20):
                break
        return self.currency.of_amount(high)


@dataclass(eq=False)
class OnlineRun:
    """One run: it answers queries from the public histogram, until one is found to be off; by how much, ends it.

    Attributes:
        rule: the promise.
        truth: the exact histogram, sealed.
        weights: float64[cells], the public histogram when the run began.
        total: the number of rows, as it was measured.
        bits: where random bits come from.

    Guarantee: a run costs `rule.run`, however many queries it answers.
    Proof: docs/proofs/mechanisms.online_weights.md, section 1; docs/proofs/mechanisms.select.md, "The gap".
    Assumes: it is charged when it starts; one unit adds at most `rule.reach` rows.
    Rounds: noise up.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries, uniform
    >>> from farthing.sealed import sealed
    >>> rule = OnlineRule(absolute=200, queries=100, cells=2, rows=1000)
    >>> run = OnlineRun(rule, sealed(np.array([900, 100])), uniform(2, 1000.0), 1000.0)
    >>> answer = run.ask(MatrixQueries([[1, 0]]))
    >>> run.ended, bool(abs(answer - 900) < 200), bool(run.weights[0] > 500)
    (True, True, True)
    """

    rule: OnlineRule
    truth: Sealed = field(repr=False)
    weights: Float64
    total: float
    bits: BitSource | None = None
    ended: bool = False
    _watch: Watch = field(init=False, repr=False)

    def __post_init__(self) -> None:
        threshold = Fraction(self.rule.threshold) * STEP
        watching = AboveThreshold(threshold, self.rule.epsilon, self.rule.reach * STEP)
        self._watch = watching.start(self.bits)

    def ask(self, query: MatrixQueries) -> float:
        """Return the answer of one query, in rows; `ended` tells whether it was measured.

        Raises:
            NoiseError: the run has ended.
        """
        if self.ended:
            raise NoiseError(
                "this run has ended", rule="a run tells one query", got="a query after it", next_step="start another"
            )
        exact = query.exact(opened(self.truth))
        told = steps_of(query.of(self.weights), query)
        above = int(exact[0]) - int(told[0])
        passed = self._watch.first_with_gap([above, -above])
        if passed is None:
            return float(query.of(self.weights)[0])
        self.ended = True
        away = self.rule.threshold * STEP + passed.gap
        answer = float((int(told[0]) + (away if passed.place == 0 else -away)) * query.step)
        self.weights = learned(self.weights, query, answer, self.rule, self.total)
        return answer


def learned(weights: Float64, query: MatrixQueries, answer: float, rule: OnlineRule, total: float) -> Float64:
    """Return the histogram after one update towards an answer: its potential falls by (gap/rows)^2 / 2 or more.

    The further off the histogram surely was, the larger is the step.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> rule = OnlineRule(absolute=200, queries=100, cells=2, rows=1000)
    >>> learned(np.array([500.0, 500.0]), MatrixQueries([[1, 0]]), 900.0, rule, 1000.0).round(1).tolist()
    [588.1, 411.9]
    """
    behind = answer - float(query.of(weights)[0])
    rate = max(rule.gap, abs(behind) - rule.margin - rule.off) / rule.rows
    return reweighed(weights, rate * math.copysign(1.0, behind) * query.back(np.ones(1)), total)
