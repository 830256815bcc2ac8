"""When an attack proves that a promise is broken: an audit of one run, valid for any attack and any target.

The secrets were drawn independently. If the target keeps (epsilon, 0)-differential privacy for a change of one bit,
then each guess, whatever it was made of, is right with odds of at most e^epsilon times the prior odds, even given all
the others; so the number of right guesses is at most binomial. Too many right guesses refute the promise, and the
largest epsilon that they refute is a lower bound on the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.attacks.target import Claim

CONFIDENCE: Final = 0.999
"""A verdict of "broken" is wrong with probability at most 1 - CONFIDENCE."""

LOOKS: Final = ((1.0, 0.9), (0.5, 0.05), (0.25, 0.05))
"""Which guesses are judged: (share of the surest guesses, share of the level). All; the surest half and quarter too,
since a target that leaks some people wholly and others not at all does not show in the average."""

_MOST_EPSILON: Final = 700.0
_HALVINGS: Final = 80
_MOST_GUESSES: Final = 2**20


def p_value(
    right: int, attempted: int, epsilon: float, *, delta: float = 0.0, n: int | None = None, prior: float = 0.5
) -> float:
    """Return the chance of at least so many right guesses against a target that keeps (epsilon, delta) for one bit.

    Guarantee: an upper bound of that chance, for every target that keeps the promise and every attack on it.
    Proof: [SteinkeNJ23, Thm 5.2]; with delta = 0, posterior odds are at most e^epsilon times prior odds.
    Assumes: secrets drawn independently, 1 with chance `prior`; guesses and which of them count depend on answers only.
    Rounds: nothing; floating-point error is far below any level in use.

    Args:
        right: how many guesses were right.
        attempted: how many guesses were made.
        epsilon: of the promise.
        delta: of the promise; > 0 only with prior 1/2.
        n: how many secrets were drawn; by default `attempted`.
        prior: the chance of a secret to be 1.

    >>> p_value(700, 1000, 0.5)
    1.66...e-07
    """
    from scipy.special import bdtrc

    _check(right, attempted, delta, prior)
    if right == 0:
        return 1.0
    odds = epsilon + _logit(max(prior, 1 - prior))
    chance = 1 / (1 + math.exp(-min(odds, _MOST_EPSILON)))
    tail = float(bdtrc(right - 1, attempted, chance))
    if not delta:
        return tail
    return min(1.0, tail + 2 * (n or attempted) * delta * _steepest(right, attempted, chance))


def epsilon_lower(
    right: int,
    attempted: int,
    *,
    confidence: float = CONFIDENCE,
    delta: float = 0.0,
    n: int | None = None,
    prior: float = 0.5,
) -> float:
    """Return the largest epsilon that so many right guesses refute; 0 if they refute none.

    Guarantee: at most the true epsilon, with probability at least `confidence`.
    Proof: inverts `p_value`, which grows with epsilon until it passes the level.
    Assumes: as `p_value`.
    Rounds: down.

    >>> f"{epsilon_lower(455, 455):.2f} {epsilon_lower(130, 200):.2f} {epsilon_lower(120, 200):.2f}"
    '4.18 0.16 0.00'
    """
    if not attempted:
        return 0.0
    return largest_refuted(
        lambda epsilon: p_value(right, attempted, epsilon, delta=delta, n=n, prior=prior), 1 - confidence
    )


def largest_refuted(chance: Callable[[float], float], level: float) -> float:
    """Return the largest epsilon at which a p-value is at most the level; 0 if it is above it even there.

    Args:
        chance: the p-value at an epsilon; grows with it until it has passed the level.
        level: what it must not pass.

    >>> largest_refuted(lambda epsilon: epsilon / 100, 0.02)
    2.0
    """
    low, high = 0.0, 1.0
    if chance(low) > level:
        return 0.0
    while high < _MOST_EPSILON and chance(high) <= level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= level else (low, middle)
    return low


def shown_chance(chance: float) -> float:
    """Return a p-value as it is shown: none is shown to be less than the level that verdicts are made for.

    >>> shown_chance(0.25), shown_chance(5e-76)
    (0.25, 0.001)
    """
    return max(chance, round(1 - CONFIDENCE, 12))


def innocent(attempted: int, claim: Claim, *, confidence: float = CONFIDENCE, prior: float = 0.5) -> int:
    """Return the most right guesses that do not refute a claim; `attempted` if none would.

    >>> from farthing.attacks.target import Claim
    >>> [innocent(200, Claim(epsilon)) for epsilon in (0.1, 0.5, 1, 2)]
    [127, 145, 165, 189]
    """
    one = claim.of_a_bit
    low, high = 0, attempted + 1  # p_value falls in the number of right guesses
    while high - low > 1:
        middle = (low + high) // 2
        if p_value(middle, attempted, one.epsilon, delta=one.delta, prior=prior) <= 1 - confidence:
            high = middle
        else:
            low = middle
    return low


def needed(claim: Claim, *, confidence: float = CONFIDENCE, prior: float = 0.5) -> int | None:
    """Return the fewest guesses that could refute a claim if all were right; None if not even a million could.

    >>> from farthing.attacks.target import Claim
    >>> needed(Claim(1)), needed(Claim(4)), needed(Claim(1, delta=0.1))
    (23, 381, None)
    """
    # All right: the correction for delta is at least 2 delta (1 - tail), however many guesses there are.
    if 2 * claim.of_a_bit.delta > 1 - confidence:
        return None
    tried = 1
    while innocent(tried, claim, confidence=confidence, prior=prior) == tried:
        tried *= 2
        if tried > _MOST_GUESSES:
            return None
    low, high = tried // 2, tried
    while high - low > 1:
        middle = (low + high) // 2
        enough = innocent(middle, claim, confidence=confidence, prior=prior) < middle
        low, high = (low, middle) if enough else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class JudgedGuesses:
    """The guesses that were judged, and what they refute.

    Attributes:
        attempted, right: how many guesses, and how many of them were right.
        epsilon_lower: the largest epsilon that they refute at the look's share of the level.
        broken: whether they refute the claim.
        level: that share.
        p_value: of the claim, over the share of the level: the smallest of all looks is a p-value.
    """

    attempted: int
    right: int
    epsilon_lower: float
    broken: bool
    level: float
    p_value: float


def best_look(
    right: NDArray[np.bool_], surety: NDArray[np.float64], claim: Claim, *, n: int, prior: float = 0.5
) -> JudgedGuesses:
    """Return what the guesses refute: all of them, the surest half or the surest quarter, whichever refutes most.

    Guarantee: a claim that holds is refuted with probability at most 1 - CONFIDENCE.
    Proof: `p_value`, and the union bound over LOOKS.
    Assumes: `surety` depends on the answers only.
    Rounds: as `p_value`.

    Args:
        right: bool[attempted], which guesses were right.
        surety: float64[attempted], how sure the attack was of each; any increasing function of it will do.
        claim: the promise.
        n: how many secrets were drawn.
        prior: the chance of a secret to be 1.
    """
    order, one = np.argsort(-surety, kind="stable"), claim.of_a_bit
    looks = []
    for share, part in LOOKS:
        kept = right[order[: math.ceil(share * len(right))]]
        level, good = (1 - CONFIDENCE) * part, int(kept.sum())
        lower = epsilon_lower(good, len(kept), confidence=1 - level, delta=one.delta, n=n, prior=prior)
        chance = p_value(good, len(kept), one.epsilon, delta=one.delta, n=n, prior=prior) if len(kept) else 1.0
        looks.append(
            JudgedGuesses(len(kept), good, lower, chance <= level and lower > one.epsilon, level, min(1, chance / part))
        )
    return max(looks, key=lambda look: (look.broken, look.epsilon_lower))  # the first of equals: all guesses


def _steepest(right: int, attempted: int, chance: float) -> float:
    """Return the largest mean of the binomial probabilities of the last few counts below `right`."""
    from scipy.special import bdtr, bdtrc

    steps = np.arange(1, right + 1)
    below = bdtr(right - 1, attempted, chance)
    if below > 0.5:  # the difference of the small tails, not of two numbers near 1
        sums = bdtrc(np.maximum(right - 1 - steps, 0), attempted, chance) - bdtrc(right - 1, attempted, chance)
        sums[-1] = below
    else:
        sums = below - np.where(steps < right, bdtr(np.maximum(right - 1 - steps, 0), attempted, chance), 0.0)
    return float(np.max(sums / steps))


def _check(right: int, attempted: int, delta: float, prior: float) -> None:
    """Refuse counts that are none, and the one case the theorem does not cover."""
    if not 0 <= right <= attempted:
        raise DataError(
            "these are not counts of guesses",
            rule="0 <= right <= attempted",
            got=f"{right} of {attempted}",
            next_step="count the guesses that were made, and those of them that were right",
        )
    if delta and not math.isclose(prior, 0.5):
        raise DataError(
            "no verdict on a claim with delta about secrets that are not fair bits",
            rule="delta = 0, or secrets drawn with chance 1/2",
            got=f"delta={delta}, prior={prior}",
            next_step="draw the secrets with attacks.secrets(n, seed)",
        )


def _logit(chance: float) -> float:
    """Return the logarithm of the odds."""
    return math.log(chance) - math.log1p(-chance)
