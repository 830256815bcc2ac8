"""AboveThreshold: the first of many scores that passes a threshold, and by how much, at the price of one choice."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import NoiseError
from farthing.mechanisms.refined_max import check_target
from farthing.mechanisms.scores import B, checked_scores, priced, rate_of, require_threshold, restated, spread_of
from farthing.mechanisms.stopping import Stopped, look_until, score_told
from farthing.noise.races import LEAD_BITS, Field, Noisy, first_above, first_lead
from farthing.privacy.loss import Pure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from farthing.mechanisms.stopping import Level, PrivateTest, Refinable
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

BAR_SHARE: Final = Fraction(38648, 100000)
"""The part of epsilon for the noise on the threshold: 1/(1 + 4^(1/3)), which makes the variance of the two least."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The score that ended a run, and how far it is above the threshold, noise in both.

    Attributes:
        place: which of the scores passed.
        gap: the score less the threshold as they were compared, in the scores' unit; noise in both, their means off.
        rate: of the noise on the score, in 1 over the scores' unit.
    """

    place: int
    gap: float
    rate: float

    def at_least(self, confidence: float = 0.95) -> float:
        """Return how far the true score is above the threshold at least, or -inf where the gap proves nothing.

        Guarantee: P[what is returned is above the true excess] <= 1 - confidence, wherever the run ended, however many
            scores came before, and whatever they were.
        Proof: docs/proofs/mechanisms.select.md, "What a gap proves".
        Assumes: exponential noise, the rate of a score at most that of the threshold, as `AboveThreshold` draws it.
        Rounds: down, by the step of the gap.

        >>> Passed(2, gap=1000.0, rate=0.5).at_least(0.95) > 993, Passed(0, gap=1.0, rate=0.5).at_least()
        (True, -inf)
        """
        check_target(1.0, confidence)
        sure = self.gap - (2.0**-LEAD_BITS - math.log(1 - confidence)) / self.rate
        return sure if sure > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """Say of each score, in turn, whether score + noise passes threshold + noise, and stop at the first that does.

    Both noises are exponential and one-sided, less their means: half the variance of Laplace noise at the same price.

    Attributes:
        threshold: what the scores are held against, public.
        epsilon: the price of the whole run, however long; exact.
        sensitivity: the most that one unit moves a score.
        monotone: whether one unit moves all scores the same way.

    Guarantee: epsilon-DP for the whole run and the gap where it stops, for scores chosen from the answers before them.
    Proof: docs/proofs/mechanisms.select.md, "AboveThreshold" and "The gap"; after [DworkNRRV09; LyuSL17; DingWZK19].
    Assumes: the run is charged at its start, and outside a pure ledger at its whole price; exact comparisons.
    Rounds: the rates down.

    >>> AboveThreshold(1000, epsilon=1).first([3, 5, 2000, 4])
    2
    """

    threshold: Number
    epsilon: Number
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        priced(self.epsilon)
        spread_of(self.sensitivity, monotone=self.monotone)
        require_threshold(self.threshold)

    @property
    def loss(self) -> Pure:
        """The loss of a whole run."""
        return Pure(self.epsilon)

    def price(self, currency: type[B], answer: B | None = None) -> B:
        """Return the price of a whole run in a ledger's currency, and of an answer that is released where it stops.

        Args:
            currency: Pure, Zcdp or Gdp.
            answer: the price of what is released at the stop. In a pure ledger it may be the ex-post loss of the
                answer that the stop chose from a chain of finer and finer ones: stopping on private scores then costs
                epsilon and that loss [LigettNRWW17].

        >>> AboveThreshold(0, 1).price(Pure, answer=Pure(0.5))
        Pure(epsilon=1.5)
        """
        own = restated(self.loss, currency)
        return own if answer is None else own + answer

    @property
    def rates(self) -> tuple[float, float]:
        """The rates of the noise on the threshold and of that on each score, in 1 over the scores' unit."""
        epsilon, moves = priced(self.epsilon), spread_of(self.sensitivity, monotone=True)
        share = Fraction(1, 2) if self.monotone else BAR_SHARE
        return (
            rate_of(epsilon * share, moves),
            rate_of(epsilon * (1 - share), spread_of(self.sensitivity, monotone=self.monotone)),
        )

    def start(self, bits: BitSource | None = None) -> Watch:
        """Return a run: the noise on the threshold is drawn, and stays secret inside."""
        bar, score = (Fraction(rate) for rate in self.rates)
        # In units of the scores' noise: score * rate + E >= threshold * rate + E_0 * rate/bar, means taken off.
        centre = score * Fraction(self.threshold) + 1 - score / bar
        return Watch(self, Noisy.draw("exponential", centre, score / bar, bits), bits)

    def first(self, scores: ArrayLike, *, bits: BitSource | None = None) -> int | None:
        """Return the index of the first score that passes in a run of its own, or None."""
        return self.start(bits).first(scores)

    def first_with_gap(self, scores: ArrayLike, *, bits: BitSource | None = None) -> Passed | None:
        """Return the first score that passes in a run of its own with how far it passed, or None.

        >>> passed = AboveThreshold(1000, epsilon=1).first_with_gap([3, 5, 2000, 4])
        >>> passed.place, 900 < passed.gap < 1100, passed.at_least(0.95) > 0
        (2, True, True)
        """
        return self.start(bits).first_with_gap(scores)

    def run(
        self, refinement: Refinable, levels: Sequence[Level], test: PrivateTest, *, bits: BitSource | None = None
    ) -> Stopped:
        """Refine along rising levels until a private test of what was shown passes the threshold.

        Args:
            refinement: a `LaplaceRefinement`.
            levels: the epsilons of its looks, rising.
            test: the score, of a sensitivity within this mechanism's.
            bits: where random bits come from; None is the system's stream cipher.

        Returns:
            what was released, and what it cost: epsilon and the last level reached.
        """
        watch = self.start(bits)
        look, passed = look_until(refinement, levels, test, self, lambda score, _: watch.above(score))
        return Stopped(look, passed, self.loss)


@dataclass(slots=True)
class Watch:
    """One run of AboveThreshold, which ends where a score passes."""

    mechanism: AboveThreshold
    _bar: Noisy = field(repr=False)
    _bits: BitSource | None = field(default=None, repr=False)
    stopped: bool = False

    def above(self, score: Number) -> bool:
        """Tell whether one more score passes; the run ends if it does.

        Raises:
            NoiseError: the run has ended, or the score is not a number.
        """
        return self.first([score_told(score)]) is not None

    def first(self, scores: ArrayLike) -> int | None:
        """Return the index of the first of some more scores that passes, or None; the run ends if one does."""
        table = self._more(scores)
        place = first_above(*self._race(table), bits=self._bits) if table.size else None
        self.stopped = place is not None
        return place

    def first_with_gap(self, scores: ArrayLike) -> Passed | None:
        """Return the first of some more scores that passes, with how far; the run ends if one does.

        The gap costs nothing beside the run.
        """
        table, rate = self._more(scores), self.mechanism.rates[1]
        led = first_lead(*self._race(table), bits=self._bits) if table.size else None
        self.stopped = led is not None
        return None if led is None else Passed(led[0], led[1] / rate, rate)

    def _more(self, scores: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return some more scores of a run that goes on, or refuse them."""
        if self.stopped:
            raise NoiseError(
                "this run has ended",
                rule="a run tells one score that passes",
                got="a score after it",
                next_step="start another run, at its own price",
            )
        if np.ndim(scores) == 1 and not np.size(scores):
            return np.zeros(0, np.int64)
        return checked_scores(scores, one_row=True)

    def _race(self, table: NDArray[np.int64] | NDArray[np.float64]) -> tuple[Field, Noisy]:
        """Return the scores and the threshold as contenders, in units of the scores' noise."""
        rate = self.mechanism.rates[1]

        def exact(_: int, place: int) -> Fraction:
            return Fraction(rate) * Fraction(table[place].item())

        return Field("exponential", rate * table.astype(np.float64)[None], exact), self._bar
