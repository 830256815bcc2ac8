"""Private learners: the exponential mechanism on mistakes for finite classes, and how many rows that needs.

Every finite class can be learned with pure epsilon [KasiviswanathanLNRS08]; log of its size over epsilon is what that
takes. `farthing.mechanisms.stable_learner` has the learner that pays in delta what this one pays in size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from farthing.errors import InvalidBudget, InvalidTarget, NoiseError
from farthing.mechanisms.exponential import MOST_OPTIONS, Exponential
from farthing.mechanisms.geometric import GeometricRelease, half_width
from farthing.mechanisms.hypotheses import (
    DecisionStumps,
    FiniteClass,
    Hypotheses,
    Hypothesis,
    Points,
    Thresholds,
    labels_of,
    mistakes_of,
)
from farthing.privacy.balls import ball, lower, upper, working
from farthing.privacy.loss import Approx, BoundedRange, Pure
from farthing.privacy.numbers import exact
from farthing.rounding import FARTHING, coins_down, coins_up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from farthing.noise.bits import BitSource
    from farthing.privacy.balls import Ball
    from farthing.privacy.numbers import Number

__all__ = [
    "DecisionStumps",
    "FiniteClass",
    "FiniteClassLearner",
    "Learned",
    "NoisyMistakes",
    "Points",
    "Thresholds",
    "samples_limit",
    "samples_needed",
]

Promise = Literal["rows", "realizable", "agnostic"]
"""Whom an accuracy speaks of: the rows at hand, or new rows, with or without a hypothesis that is always right."""

_FREE: Final = 64
"""An epsilon beyond which more changes nothing: 1 - e^-64 is 1 to 27 digits."""


@dataclass(frozen=True, slots=True)
class NoisyMistakes:
    """A noisy number of mistakes, and what it cost.

    Attributes:
        count: rows that the hypothesis gets wrong, with noise; it can be below 0.
        half_width: rows; the truth is within `count +- half_width` with the confidence asked for.
        loss: what it cost.
    """

    count: int
    half_width: int
    loss: Pure


@dataclass(frozen=True, slots=True)
class Learned:
    """A hypothesis that was chosen privately. It holds nothing else of the data: no number of mistakes, no score.

    Attributes:
        hypothesis: the one that was chosen.
        loss: what that cost, to a unit of one row.
    """

    hypothesis: Hypothesis
    loss: BoundedRange | Approx

    def predict(self, features: Any) -> np.typing.NDArray[np.int64]:
        """Return 0 or 1 for each row, int64[rows]; free, on any features."""
        return self.hypothesis.predict(features)

    def error(
        self,
        features: Any,
        labels: ArrayLike,
        *,
        loss: Pure,
        confidence: float = 0.95,
        bits: BitSource | None = None,
    ) -> NoisyMistakes:
        """Return the noisy number of rows that the hypothesis gets wrong: an answer of its own, paid for beside it.

        Args:
            features: as for `fit`; the same rows, or others.
            labels: 0 or 1 for each row.
            loss: what may be paid, Pure; rounded down to whole coins of 2^-40.
            confidence: of the half-width, in (0, 1).
            bits: where random bits come from.

        Guarantee: epsilon-DP, for the epsilon of the loss.
        Proof: [GhoshRS12]: one row more is at most one mistake more.
        Assumes: add/remove one row; the hypothesis was public, or chosen at a price that is booked beside this one.
        Rounds: the loss down to coins before it is spent; the half-width up.

        >>> learned = FiniteClassLearner(Thresholds([0, 10, 20]), 100).fit([5, 15, 25], [0, 1, 1])
        >>> learned.error([5, 15, 25], [0, 1, 1], loss=Pure(50))
        NoisyMistakes(count=0, half_width=0, loss=Pure(epsilon=50))
        """
        farthings = coins_down(loss.amount) if isinstance(loss, Pure) else 0
        if not farthings:
            raise InvalidBudget(
                "mistakes are counted for a pure loss",
                rule="loss=Pure(epsilon), epsilon >= 2^-40",
                got=repr(loss),
                next_step="loss=Pure(0.1), or count predictions with a session",
            )
        truth = np.array([mistakes_of(self.hypothesis, features, labels_of(labels))])
        beta = float(1 - share_of("confidence", confidence))
        noisy = GeometricRelease(truth, bits=bits).release(farthings)
        return NoisyMistakes(int(noisy[0]), half_width(farthings, 1, beta), Pure(farthings * FARTHING))


@dataclass(frozen=True, slots=True)
class FiniteClassLearner:
    """Choose a hypothesis h of a finite, public class with P[h] proportional to exp(-epsilon * mistakes of h).

    One row more adds 0 or 1 to the mistakes of every hypothesis, all the same way, so that the range of the score
    change is 1. Replacing a row is removing one and adding one: that costs `loss.for_group(2)`, and units of m rows
    `loss.for_group(m)`.

    Attributes:
        hypotheses: the class, at most 2^20 hypotheses: `Thresholds`, `DecisionStumps`, `Points`, `FiniteClass`.
        epsilon: the bounded range of the choice, > 0; exact.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: epsilon-bounded range, so also epsilon-DP.
    Proof: [KasiviswanathanLNRS08; DurfeeR19]; docs/proofs/mechanisms.learner.md.
    Assumes: add/remove one row; the class, its grids too, does not depend on the data.
    Rounds: the rate down, so a choice costs no more than epsilon.

    >>> minutes, late = np.arange(-20, 100), np.arange(-20, 100) > 33
    >>> learned = FiniteClassLearner(Thresholds(range(-10, 60)), epsilon=30).fit(minutes, late)
    >>> learned.hypothesis, learned.loss
    (CutHypothesis(at=33.0, column=None, above=True), BoundedRange(eta=30))
    """

    hypotheses: Hypotheses
    epsilon: Number
    bits: BitSource | None = None

    def __post_init__(self) -> None:
        _size(self.hypotheses, MOST_OPTIONS)
        Exponential(self.epsilon)

    @property
    def loss(self) -> BoundedRange:
        """The loss of one `fit`."""
        return BoundedRange(self.epsilon)

    def fit(self, features: Any, labels: ArrayLike) -> Learned:
        """Return a hypothesis that was chosen by its mistakes on these rows.

        Args:
            features: what the class reads: one column, an array [rows, columns], or a table (Arrow, pandas, a mapping).
            labels: 1, or 0 or -1, or bool, for each row; a row with any other label counts nowhere. A feature that is
                no number is above no cut.

        Raises:
            DataError: other shapes and types, lengths that differ. No row decides that.
        """
        mistakes = self.hypotheses.mistakes(features, labels_of(labels))
        chosen = Exponential(self.epsilon).choose(-mistakes, 1, monotone=True, bits=self.bits)
        return Learned(self.hypotheses[int(chosen)], self.loss)

    @classmethod
    def for_accuracy(
        cls,
        hypotheses: Hypotheses,
        samples: int,
        *,
        within: float | Fraction = 0.05,
        confidence: float | Fraction = 0.95,
        promise: Promise = "rows",
        bits: BitSource | None = None,
    ) -> FiniteClassLearner:
        """Return the learner with the least epsilon that is accurate enough on that many rows, or more.

        Args:
            hypotheses: the class.
            samples: rows that there surely are; a public number.
            within: by how much the chosen hypothesis may be worse than the best one, as a part of the rows; in (0, 1).
            confidence: the chance that it is within that, in (0, 1).
            promise: "rows": on these very rows, whatever they are. For rows drawn independently from one population, on
                new rows of that population: "realizable" if some hypothesis of the class is never wrong, else
                "agnostic".
            bits: for the learner.

        Guarantee: the promise. For "rows" no smaller epsilon keeps it for every class of this size and every data set.
        Proof: docs/proofs/mechanisms.learner.md.
        Assumes: at least `samples` rows; for new rows, drawn independently.
        Rounds: epsilon up to whole coins of 2^-40.

        >>> learner = FiniteClassLearner.for_accuracy(Thresholds(range(100)), 2000, within=0.05)
        >>> f"{learner.loss.value:.4f}"
        '0.0746'
        """
        if promise not in get_args(Promise):
            raise InvalidTarget(
                "the promise is out of range",
                rule=" or ".join(get_args(Promise)),
                got=repr(promise),
                next_step='promise="rows" needs no assumption',
            )
        rows, part, sure = _count("samples", samples), share_of("within", within), share_of("confidence", confidence)
        with working() as flint:
            others = flint.arb(_size(hypotheses, MOST_OPTIONS) - 1)
            if promise == "rows":
                needed = _for_rows(flint, others, rows, part, sure)
            elif promise == "realizable":
                needed = _for_realizable(flint, others, rows, part, sure)
            else:
                needed = _for_agnostic(flint, others, rows, part, sure)
            if needed is not None:
                return cls(hypotheses, max(1, coins_up(upper(needed))) * FARTHING, bits)
        least = samples_needed(hypotheses, part, 1 - sure, _FREE, agnostic=promise == "agnostic")
        raise InvalidTarget(
            "too few rows for that accuracy at any epsilon",
            rule=f"at least {least} rows, by the theorem that is used",
            got=samples,
            next_step="raise within, or lower the confidence",
        )


def samples_needed(
    hypotheses: Hypotheses | int,
    error: float | Fraction,
    failure: float | Fraction,
    epsilon: Number,
    *,
    agnostic: bool = False,
) -> int:
    """Return how many independent rows are enough to learn the class: true error at most `error`, but for `failure`.

    Args:
        hypotheses: the class, or its size (of any size).
        error: the chance that the hypothesis is wrong about a new row; if agnostic, beyond that of the best one.
        failure: the chance that the error is larger, over rows and choice; in (0, 1).
        epsilon: what the choice may cost.
        agnostic: whether no hypothesis need be right; else one of them always is.

    Guarantee: with that many rows or more, `FiniteClassLearner(hypotheses, epsilon)` keeps the promise.
    Proof: docs/proofs/mechanisms.learner.md; it is sharper than the O(log m) of [KasiviswanathanLNRS08].
    Assumes: rows drawn independently from one population.
    Rounds: up.

    >>> [samples_needed(2**bits, error=0.1, failure=0.05, epsilon=0.5) for bits in (4, 10, 20)]
    [141, 247, 419]
    >>> samples_needed(2**10, 0.1, 0.05, 0.5, agnostic=True)
    1976
    """
    part, miss = share_of("error", error), share_of("failure", failure)
    with working() as flint:
        others, rate, worse = flint.arb(_size(hypotheses) - 1), _epsilon(flint, epsilon), ball(flint, part)
        if agnostic:
            best = worse.atanh()
            each = (1 - worse**2).sqrt() if rate > best else rate.cosh() - worse * rate.sinh()
            odds = 1 / ball(flint, miss)
        else:
            each = 1 + worse * (-rate).expm1()
            odds = ball(flint, 1 / miss - 1)
        return _rows(others * odds, each)


def samples_limit(concepts: int, mass: float | Fraction, failure: float | Fraction, epsilon: Number) -> int:
    """Return a number of rows below which no pure learner succeeds, whatever it does.

    Args:
        concepts: how many populations no hypothesis can serve two of: size - 1 for `Points`, the size for `Thresholds`.
        mass: the chance that a row tells them apart: the error for points, twice the error for thresholds; in (0, 1).
        failure: the chance that the learner may fail, in (0, 1).
        epsilon: what it may cost, as epsilon-DP under adding or removing a row.

    Guarantee: with fewer rows, every epsilon-DP learner that outputs hypotheses of the class fails on some population.
    Proof: docs/proofs/mechanisms.learner.md, by packing [HardtT10].
    Assumes: nothing of the learner but that it is proper: it outputs hypotheses of the class.
    Rounds: down.

    >>> [samples_limit(2**bits, mass=0.1, failure=0.05, epsilon=0.5) for bits in (4, 10, 20)]
    [44, 110, 220]
    """
    part, miss = share_of("mass", mass), share_of("failure", failure)
    with working() as flint:
        grown = 1 + ball(flint, part) * _epsilon(flint, epsilon).expm1()
        wanted = _size(concepts) * ball(flint, 1 - miss)
        return max(0, math.ceil(lower(wanted.log() / grown.log())))


def _for_rows(flint: Any, others: Ball, rows: int, part: Fraction, sure: Fraction) -> Ball:
    """Return epsilon for which others e^(-epsilon t) is the odds of a miss, t the least gap that is one."""
    gap = math.floor(part * rows) + 1
    return _log_of(flint, others * ball(flint, sure / (1 - sure))) / gap


def _for_realizable(flint: Any, others: Ball, rows: int, part: Fraction, sure: Fraction) -> Ball | None:
    """Return epsilon with others (1 - part (1 - e^-epsilon))^rows = the odds of a miss; None if there is none."""
    each = (-_log_of(flint, others * ball(flint, sure / (1 - sure))) / rows).exp()
    shown = (1 - each) / ball(flint, part)
    return -(-shown).log1p() if shown < 1 else None


def _for_agnostic(flint: Any, others: Ball, rows: int, part: Fraction, sure: Fraction) -> Ball | None:
    """Return the least epsilon with others (cosh epsilon - part sinh epsilon)^rows = the chance of a miss, or None."""
    each = (-_log_of(flint, others / ball(flint, 1 - sure)) / rows).exp()
    inside = each**2 - ball(flint, 1 - part**2)
    return ((each - inside.sqrt()) / ball(flint, 1 - part)).log() if inside >= 0 else None


def _log_of(flint: Any, x: Ball) -> Ball:
    """Return log x, or 0 where x is below 1: no hypothesis but one, or a miss that is allowed anyway."""
    return x.log() if x > 1 else flint.arb(0)


def _rows(odds: Ball, each: Ball) -> int:
    """Return the least n >= 1 with odds each^n <= 1, rounded up."""
    return max(1, math.ceil(upper(odds.log() / -each.log()))) if odds > 1 else 1


def _epsilon(flint: Any, epsilon: Number) -> Ball:
    """Return a positive epsilon as a ball."""
    return ball(flint, exact(Exponential(epsilon).epsilon, "epsilon"))


def _size(hypotheses: Hypotheses | int, most: int | None = None) -> int:
    """Return how many hypotheses there are; refuse none, and more than can be chosen from."""
    count = hypotheses if isinstance(hypotheses, int) else len(hypotheses)
    if isinstance(hypotheses, bool) or count < 1 or (most is not None and count > most):
        raise NoiseError(
            "no class to learn",
            rule="at least one hypothesis" if most is None else f"1 to {most} hypotheses",
            got=repr(hypotheses) if isinstance(hypotheses, int) else count,
            next_step="for example Thresholds(range(0, 100, 5)); a coarser grid has fewer",
        )
    return count


def _count(name: str, value: int) -> int:
    """Return a number of rows, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidTarget(
            f"{name} is not a number of rows",
            rule=f"{name} is a whole number >= 1",
            got=repr(value),
            next_step="state rows that there surely are, as a public number",
        )
    return value


def share_of(name: str, value: float | Fraction) -> Fraction:
    """Return a number strictly between 0 and 1 as the decimal it is written as, or refuse it."""
    if isinstance(value, bool) or not isinstance(value, float | Fraction) or not 0 < value < 1:
        raise InvalidTarget(f"{name} is out of range", rule=f"0 < {name} < 1", got=repr(value), next_step="0.05 is 5 %")
    return Fraction(str(value))
