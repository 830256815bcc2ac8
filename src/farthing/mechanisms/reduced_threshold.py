"""ReducedAboveThreshold: stop on private scores, at a price that is known afterwards and grows only as it is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBudget, NoiseError
from farthing.mechanisms.scores import checked_scores, priced, rate_of, require_threshold, spread_of
from farthing.mechanisms.stopping import Stopped, epsilon_of, look_until, schedule, score_told
from farthing.noise.bits import system_bits
from farthing.noise.gradual import finer_geometric
from farthing.noise.races import LAWS, Field, Noisy, first_above
from farthing.privacy.loss import Pure
from farthing.rounding import down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.mechanisms.stopping import Level, PrivateTest, Refinable
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

BAR_STEPS: Final = 1 << 16
"""The noise on the threshold is a whole number of these parts of the sensitivity."""

BAR_SHARE: Final = Fraction(4425, 10000)
"""The part of a level for the noise on the threshold: about 1/(1 + 2^(1/3)), which makes the variance of both least."""

MONOTONE_SHARE: Final = Fraction(5575, 10000)
"""The same where all scores move one way: about 1/(1 + 2^(-1/3))."""

_GRID: Final = 16  # what the steps of the threshold's noise may add: so many of them, times the level
_FLOATS: Final = Fraction(1, 1 << 40)  # what rounding may take from a loss that is computed in floats


@dataclass(frozen=True, slots=True)
class ReducedAboveThreshold:
    """Say of each score, in turn, whether score + noise passes threshold + noise; both noises get less as levels rise.

    The noise on the threshold is a Laplace chain; that on a score is fresh, exponential and one-sided, less its mean.

    Attributes:
        threshold: what the scores are held against, public.
        sensitivity: the most that one unit moves a score.
        monotone: whether one unit moves all scores the same way.

    Guarantee: ex post, a run that stops at a score has the loss `price(level, before)`, where `level` is that of the
        score and `before` that of the score before it; while nothing has passed, the threshold's share of the level.
    Proof: docs/proofs/mechanisms.laplace.md, "ReducedAboveThreshold" and "What a stop loses"; after [WhitehouseRWR22].
    Assumes: levels and scores are chosen from what was shown; in a pure ledger (elsewhere charge the highest level).
    Rounds: the rates down, prices up.

    >>> run = ReducedAboveThreshold(1000).start()
    >>> run.above(3, epsilon=0.5), run.above(2000, epsilon=1)
    (False, True)
    >>> 0.56 < run.loss.amount < 0.562
    True
    """

    threshold: Number
    sensitivity: Number = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        spread_of(self.sensitivity, monotone=self.monotone)
        require_threshold(self.threshold)

    @property
    def share(self) -> Fraction:
        """The part of each level that the noise on the threshold costs."""
        return MONOTONE_SHARE if self.monotone else BAR_SHARE

    def price(self, level: Fraction, before: Fraction) -> Fraction:
        """Return the epsilon of a stop at a level, given that of the score before it; 0 if there is none.

        >>> either = ReducedAboveThreshold(0)
        >>> [round(float(either.price(Fraction(1), Fraction(part, 4))), 3) for part in range(5)]
        [0.443, 0.443, 0.561, 0.759, 1.0]
        """
        part = Fraction(stop_loss(float(self.share), float(before / level), monotone=self.monotone))
        return level * min(Fraction(1), max(self.share, part + _FLOATS + _GRID * level / BAR_STEPS))

    def start(self, bits: BitSource | None = None) -> ReducedWatch:
        """Return a run; its threshold's noise stays secret inside."""
        return ReducedWatch(self, bits)

    def run(
        self,
        refinement: Refinable,
        levels: Sequence[Level],
        prices: Sequence[Level],
        test: PrivateTest,
        *,
        bits: BitSource | None = None,
    ) -> Stopped:
        """Refine along rising levels until a private test of what was shown passes the threshold.

        Args:
            refinement: a `LaplaceRefinement`.
            levels: the epsilons of its looks, rising.
            prices: the test's own level at each look, one for each; they may stay as they are, but not fall.
            test: the score, of a sensitivity within this mechanism's.
            bits: where random bits come from; None is the system's stream cipher.

        Returns:
            what was released, and what it cost: the last level reached and the last price, or its share.
        """
        watch, given, asked = self.start(bits), schedule(levels), _never_falling(prices)
        if len(asked) != len(given):
            raise InvalidBudget(
                "prices and looks differ in number",
                rule="one price of the test for each look",
                got=f"{len(asked)} prices, {len(given)} looks",
                next_step="prices=levels, say",
            )
        look, passed = look_until(refinement, given, test, self, lambda score, at: watch.above(score, asked[at]))
        return Stopped(look, passed, watch.loss)


@dataclass(slots=True, eq=False)
class ReducedWatch:
    """One run of ReducedAboveThreshold, which ends where a score passes."""

    mechanism: ReducedAboveThreshold
    _bits: BitSource | None = field(default=None, repr=False)
    level: Fraction = Fraction(0)
    stopped: bool = False
    _bar: int = field(default=0, repr=False)
    _bar_rate: float = field(default=0.0, repr=False)
    _before: Fraction = Fraction(0)

    @property
    def loss(self) -> Pure:
        """What the run has cost: the price of the stop, or the threshold's share while no score has passed."""
        if not self.stopped:
            return Pure(self.level * self.mechanism.share)
        return Pure(self.mechanism.price(self.level, self._before))

    def price_of_stop(self, level: Fraction) -> Fraction:
        """Return the epsilon of the run if the next score is asked at a level and passes."""
        return self.mechanism.price(level, self.level)

    def above(self, score: Number, epsilon: Number) -> bool:
        """Tell whether one more score passes, at a level not below the last; the run ends if it does.

        Raises:
            NoiseError: the run has ended, or the score is not a number.
            InvalidBudget: a level below the last one.
        """
        level = priced(epsilon)
        if self.stopped or level < self.level:
            raise _ended() if self.stopped else _falls(epsilon)
        table = checked_scores([score_told(score)], one_row=True)
        self._sharpen(level)
        rate = rate_of(level * (1 - self.mechanism.share), self._spread)
        value = Fraction(rate) * Fraction(table[0].item())
        race = Field("exponential", np.array([[float(value)]]), lambda _race, _place: value)
        self.stopped = first_above(race, self._threshold(rate), self._bits) is not None
        return self.stopped

    @property
    def _spread(self) -> Fraction:
        """What the noise on a score must cover: twice the sensitivity, or once where all scores move one way."""
        return spread_of(self.mechanism.sensitivity, monotone=self.mechanism.monotone)

    def _sharpen(self, level: Fraction) -> None:
        """Draw the threshold's noise at a level, given what it was."""
        rate = down(level * self.mechanism.share / BAR_STEPS)
        if rate > self._bar_rate:
            self._bar = int(finer_geometric(np.array([self._bar]), self._bar_rate, rate, self._bits)[0])
            self._bar_rate = rate
        self._before, self.level = self.level, level

    def _threshold(self, rate: float) -> Noisy:
        """Return the noisy threshold, in units of the score's noise, whose mean of one is added here."""
        step = Fraction(self.mechanism.sensitivity) / BAR_STEPS
        centre = Fraction(rate) * (Fraction(self.mechanism.threshold) + step * self._bar) + 1
        return Noisy(LAWS["exponential"], centre, Fraction(0), 0, system_bits() if self._bits is None else self._bits)


def stop_loss(share: float, ratio: float, *, monotone: bool) -> float:
    """Return the most that a stop loses, as a part of its level, where the level before it was `ratio` times that.

    Between neighbours the likelihood of the run changes by at most e^x, x the mean of a function that is -r below 0 and
    up to r + 2t above it, under weights that depend on two places; at a corner of these the mean is largest.

    Guarantee: no scores, however they are chosen and moved by one unit, make a stop lose more.
    Proof: docs/proofs/mechanisms.laplace.md, "What a stop loses".
    Assumes: continuous noise; `ReducedAboveThreshold.price` adds what the grid may add.
    Rounds: nothing.

    >>> round(stop_loss(0.4425, 0.5, monotone=False), 4)
    0.5608
    """
    if ratio >= 1:
        return 1.0
    bar, before = share, share * ratio
    rate = 1 - share if monotone else (1 - share) / 2
    moved, moves = (1 - ratio * ratio) / 2, rate if monotone else 2 * rate
    last = 1 / (bar + rate) - moved / (bar + rate + before)
    places = [
        (low, middle, above)
        for above in (last, moved / (bar + rate - before))
        for low, middle in ((0.0, moved / (bar + before - rate)), (moved / (bar + before), 0.0))
    ]
    means = [
        moves + (bar * (above - middle) - (bar + moves) * low) / (above + middle + low) for low, middle, above in places
    ]
    return min(1.0, max(bar, *means))


def _never_falling(prices: Sequence[Level]) -> tuple[Fraction, ...]:
    """Return the test's prices; refuse one that is below the one before it, before anything is shown."""
    found = tuple(epsilon_of(price) for price in schedule(prices))
    for early, late in pairwise(found):
        if late < early:
            raise _falls(float(late))
    return found


def _ended() -> NoiseError:
    """Return the refusal of a score after the one that passed."""
    return NoiseError(
        "this run has ended",
        rule="a run tells one score that passes",
        got="a score after it",
        next_step="start another run, at its own price",
    )


def _falls(epsilon: Number) -> InvalidBudget:
    """Return the refusal of a level below the last."""
    return InvalidBudget(
        "the level falls", rule="levels do not fall", got=epsilon, next_step="repeat the last level, or raise it"
    )
