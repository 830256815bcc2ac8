"""Learning by global stability: run a learner on disjoint parts, and tell the hypothesis that most parts agree on.

Agreement is counted with noise, and a count that one row alone could make stays hidden but for a chance delta. What
is paid does not depend on how many hypotheses there are: there may be infinitely many [BunLM20].
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import DataError, InvalidBounds, InvalidBudget, InvalidTarget
from farthing.mechanisms.columns import entries
from farthing.mechanisms.exponential import uniform_below
from farthing.mechanisms.geometric import GeometricRelease, rate_of
from farthing.mechanisms.hypotheses import Hypothesis, Point, labels_of
from farthing.mechanisms.learner import Learned, share_of
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.loss import Approx
from farthing.privacy.numbers import exact, within_unit
from farthing.rounding import DELTA_COIN, FARTHING, coins_down, coins_up

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]

__all__ = ["GlobalStability", "points_needed", "stable_point"]

MOST_PARTS: Final = 1 << 20
_NEVER: Final = 1e-12  # a chance that is left out of the law of an accuracy


@dataclass(frozen=True, slots=True)
class GlobalStability:
    """Deal the rows at random to `parts` parts, let each part vote for a hypothesis, tell the one with most votes.

    Attributes:
        learner: from the features and labels of a part (arrays, rows in their order) to a hashable hypothesis, or None
            to abstain. It is not called for a part without rows: that abstains.
        epsilon: for both counts that a row can move; exact, rounded down to coins of 2^-40.
        delta: the chance that a hypothesis is told that one row alone put there.
        parts: how many; a public number, at most 2^20.
        moves: how many counts of votes one row can move: 2, or 1 for a learner whose vote, when a row is added, never
            changes from one hypothesis to another (only from or to None).
        bits: where random bits come from; None is the system's stream cipher.
        threshold: the least noisy number of votes that is told; follows from the rest.

    Guarantee: (epsilon, delta)-DP, and that delta is reached.
    Proof: docs/proofs/mechanisms.learner.md; the construction is that of [BunLM20, sec. 5].
    Assumes: add/remove one row; the learner uses nothing but its part, keeps its `moves`, and raises no error that
        depends on rows; exact sampler.
    Rounds: epsilon down before it is spent, the threshold up, delta up to coins of 2^-80.

    >>> learner = GlobalStability(stable_point, epsilon=1, delta=1e-6, parts=1000, moves=1)
    >>> learner.loss, learner.threshold
    (Approx(epsilon=1, delta=6.07896e-07), 15)
    >>> code, ours = np.arange(10_000) % 4 + 2**60, np.arange(10_000) % 4 == 1
    >>> learner.fit(code, ours).hypothesis
    Point(at=1152921504606846977)
    """

    learner: Callable[[Any, Int64], Hashable | None]
    epsilon: Number
    delta: Number
    parts: int
    moves: int = 2
    bits: BitSource | None = None
    threshold: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.moves not in {1, 2}:
            raise InvalidBounds(
                "moves is out of range", rule="1 or 2", got=repr(self.moves), next_step="2 holds for every learner"
            )
        if isinstance(self.parts, bool) or not isinstance(self.parts, int) or not 1 <= self.parts <= MOST_PARTS:
            raise InvalidBounds(
                "the number of parts is out of range",
                rule=f"a whole number from 1 to {MOST_PARTS}",
                got=repr(self.parts),
                next_step="twice the threshold is the least that makes sense",
            )
        if within_unit(self.delta) < DELTA_COIN or not self.farthings:
            raise InvalidBudget(
                "the price is out of range",
                rule="epsilon >= 2^-39, delta >= 2^-80",
                got=f"epsilon={float(self.epsilon):.3g}, delta={float(self.delta):.3g}",
                next_step="epsilon=1, delta=1e-6 is usual",
            )
        object.__setattr__(self, "threshold", self._least_threshold())

    @property
    def farthings(self) -> int:
        """Epsilon for one count, in coins of 2^-40."""
        return coins_down(exact(self.epsilon, "epsilon") / self.moves)

    @property
    def rate(self) -> float:
        """The decay of the noise a vote: P[k] proportional to exp(-rate |k|)."""
        return rate_of(self.farthings, 1)

    def _least_threshold(self) -> int:
        """Return the least threshold for which `delta` holds."""
        with working() as flint:
            rate = flint.arb(self.rate)
            steps = -(ball(flint, self._coins * DELTA_COIN) * (1 + (-rate).exp())).log() / rate
            return 1 + max(0, math.ceil(upper(steps)))

    @property
    def _coins(self) -> int:
        """Delta as it was allowed, in coins of 2^-80."""
        return coins_down(within_unit(self.delta), DELTA_COIN)

    @property
    def loss(self) -> Approx:
        """The loss of one `fit`: delta is that of the threshold, P[1 + noise >= threshold]."""
        with working() as flint:
            rate = flint.arb(self.rate)
            told = (-(self.threshold - 1) * rate).exp() / (1 + (-rate).exp())
            slack = min(coins_up(upper(told), DELTA_COIN), self._coins) * DELTA_COIN
        return Approx.of_parts(amount=self.moves * self.farthings * FARTHING, slack=slack)

    def fit(self, features: ArrayLike, labels: ArrayLike) -> Learned | None:
        """Return the hypothesis with most votes, by the noisy count; None if no hypothesis has enough.

        Args:
            features: array [rows] or [rows, columns].
            labels: 1, or 0 or -1, or bool, for each row. A row with any other label, or with a feature that is NaN or
                None, is left out.

        Raises:
            DataError: other shapes, lengths that differ. No row decides that.
        """
        rows, label = entries(features), labels_of(labels)
        if rows.ndim not in {1, 2} or len(rows) != len(label):
            raise DataError(
                "these are not features",
                rule="an array of one row for each label",
                got=f"{rows.dtype}, {rows.ndim} dimensions",
                next_step="take both from one table",
            )
        there = (label >= 0) & ~_missing(rows)
        rows, label = rows[there], label[there]
        votes = self._votes(rows, label)
        if not votes:
            return None
        noisy = GeometricRelease(np.array(list(votes.values())), bits=self.bits).release(self.farthings)
        if noisy.max() < self.threshold:
            return None
        tied = np.flatnonzero(noisy == noisy.max())  # by lot: the order of the votes is private
        chosen = tied[int(uniform_below(np.array([len(tied)]), self.bits)[0])]
        return Learned(list(votes)[int(chosen)], self.loss)

    def _votes(self, rows: NDArray[Any], labels: Int64) -> Counter[Any]:
        """Return how many parts vote for each hypothesis that has a vote."""
        # Each row is dealt by lot on its own: dealt by place, one row more would move all that follow.
        part = uniform_below(np.full(len(labels), self.parts), self.bits)
        order = np.argsort(part, kind="stable")
        borders = np.flatnonzero(np.diff(part[order])) + 1
        hands = [hand for hand in np.split(order, borders) if hand.size]
        votes = Counter(self.learner(rows[hand], labels[hand]) for hand in hands)
        del votes[None]
        return votes


def _missing(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows have an entry that is NaN, None or no single value, bool[rows]."""
    if rows.dtype.kind == "O":
        odd = np.array([_odd(value) for value in rows.ravel()], bool).reshape(rows.shape)
    elif rows.dtype.kind == "f":
        odd = np.isnan(rows)
    else:
        odd = np.zeros(rows.shape, bool)
    return odd if odd.ndim == 1 else np.asarray(odd.any(axis=1))


def _odd(value: object) -> bool:
    """Return whether an entry is not a value that a hypothesis could be about."""
    return value is None or getattr(value, "__hash__", None) is None or bool(value != value)  # noqa: PLR0124  # NaN


def stable_point(features: NDArray[Any], labels: Int64) -> Hypothesis | None:
    """Return the one point that has label 1, as a learner for `GlobalStability` that moves 1 count; else None.

    >>> stable_point(np.array([5, 7, 7]), np.array([0, 1, 1]))
    Point(at=7)
    >>> stable_point(np.array([5, 7]), np.array([1, 1])) is None
    True
    """
    found = set(features[labels == 1].tolist())
    return Point(found.pop()) if len(found) == 1 else None


def points_needed(learner: GlobalStability, error: float | Fraction, failure: float | Fraction) -> int:
    """Return the least number of independent rows from which point functions are learned by stability.

    The learner is `GlobalStability(stable_point, ..., moves=1)`, where None stands for `Point()`. However many points
    there are, the number is the same.

    Args:
        learner: its noise, threshold and parts count.
        error: the chance that the hypothesis is wrong about a new row, in (0, 1).
        failure: the chance that the error is larger, over rows, parts and noise; in (0, 1).

    Guarantee: with that many rows or more, the error is at most `error` with chance 1 - failure, in the realizable
        case, whatever the population; with one row fewer it is not, for some population.
    Proof: docs/proofs/mechanisms.learner.md.
    Assumes: rows drawn independently; one point function is always right.
    Rounds: the chance of a failure up, by parts in 10^9.

    >>> learner = GlobalStability(stable_point, epsilon=0.5, delta=1e-6, parts=1000, moves=1)
    >>> points_needed(learner, error=0.1, failure=0.05)
    385
    """
    from scipy.stats import binom

    part, miss = float(share_of("error", error)), float(share_of("failure", failure))
    hidden = _hidden(learner, most=miss * _NEVER)

    def fails(rows: int) -> bool:
        seen = binom.pmf(np.arange(len(hidden)), rows, part)
        return float(seen @ hidden) * (1 + 1e-9) > miss

    low, high = 0, 1
    while fails(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(middle) else (low, middle)
    return high


def _hidden(learner: GlobalStability, most: float) -> NDArray[np.float64]:
    """Return the chance that the point is not told after 0, 1, 2 ... rows with label 1, until it is at most `most`."""
    q, threshold, parts = math.exp(-learner.rate), learner.threshold, learner.parts
    enough = threshold + math.ceil(-math.log(most) / learner.rate)
    if enough > parts // 2:
        raise InvalidTarget(
            "too few parts to agree on anything",
            rule=f"parts >= {2 * enough}",
            got=parts,
            next_step="raise parts: more of them never need more rows",
        )
    votes = np.arange(enough + 1)
    short = threshold - votes  # the point is hidden if the noise is below this
    tail = q ** np.where(short > 0, short, 1 - short) / (1 + q)
    silent = np.where(short > 0, 1 - tail, tail)
    silent[0] = 1.0
    law = np.eye(1, enough + 1)[0]
    found: list[float] = []
    while not found or found[-1] > most:
        found.append(float(law @ silent))
        fresh = law * (1 - votes / parts)  # the next row falls on a part that has not voted yet
        fresh[-1] = 0
        law = law - fresh
        law[1:] += fresh[:-1]
    return np.array(found)
