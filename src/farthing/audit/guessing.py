"""One run is enough: secret bits drawn at random, guessed from a single output."""

from __future__ import annotations

from math import exp, log

from farthing.audit.bounds import CONFIDENCE, LowerBound, checked, rate_lower
from farthing.errors import InvalidTarget


def one_run(
    right: int, guesses: int, *, secrets: int | None = None, delta: float = 0.0, confidence: float = CONFIDENCE
) -> LowerBound:
    """Bound epsilon from below by how many of many secret bits were guessed from one run.

    The secrets are independent fair coins, each deciding whether one unit is there; the attacker may abstain on any of
    them, choosing by the output.

    Args:
        right: how many guesses were right.
        guesses: how many were made.
        secrets: how many there were; by default as many as guesses. It counts where delta > 0.
        delta: the delta at which epsilon is bounded, at most 1 / (2 secrets).
        confidence: the chance that the bound is one.

    Raises:
        InvalidTarget: counts that are none, or a number out of range.

    Guarantee: with the confidence, no (epsilon, delta)-DP mechanism has an epsilon below the bound.
    Proof: [SteinkeNJ23, Thm 5.2]; docs/proofs/audit.bounds.md for the search over epsilon.
    Assumes: fair, independent secrets, each of which changes one unit; guesses that depend on the output only.
    Rounds: the search stops below the crossing.

    >>> one_run(455, 455).epsilon_lower
    4.18...
    """
    secrets = guesses if secrets is None else secrets
    significance = 1 - checked(confidence, delta)
    if not 0 <= right <= guesses <= secrets or guesses < 1:
        raise InvalidTarget(
            "the counts of guesses are out of range",
            rule="0 <= right <= guesses <= secrets, guesses >= 1",
            got=f"right={right}, guesses={guesses}, secrets={secrets}",
            next_step="count the guesses that were made, and how many of them were right",
        )
    if 2 * secrets * delta > 1:
        raise InvalidTarget(
            "delta is too large for one run",
            rule="delta <= 1 / (2 secrets)",
            got=f"delta={delta} with {secrets} secrets",
            next_step="use fewer secrets, or two_samples",
        )
    value = _least(right, guesses, secrets, delta, significance)
    return LowerBound(value, delta, confidence, (guesses,), f"{right} of {guesses} guesses right")


def p_value(right: int, guesses: int, secrets: int, epsilon: float, delta: float) -> float:
    """Return the chance, at most, that an (epsilon, delta)-DP mechanism lets so many guesses be right.

    >>> p_value(100, 100, 100, 0.0, 0.0) == 0.5**100
    True
    """
    import numpy as np
    from scipy.stats import binom

    rate = 1 / (1 + exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, rate))
    if not delta or not right:
        return tail
    steps = np.arange(1, right + 1)
    below = np.cumsum(binom.pmf(right - steps, guesses, rate))  # P[right - i <= W < right]
    return min(1.0, tail + 2 * secrets * delta * float(np.max(below / steps)))


def _least(right: int, guesses: int, secrets: int, delta: float, significance: float) -> float:
    """Return an epsilon that is still disproved, within 1e-9 of the first that is not."""
    if not delta:
        rate = rate_lower(right, guesses, significance)
        return max(0.0, log(rate) - log(1 - rate)) if rate > 0.5 else 0.0
    low, high = 0.0, 64.0  # the p-value rises with epsilon, since 2 secrets delta <= 1
    if p_value(right, guesses, secrets, low, delta) >= significance:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if p_value(right, guesses, secrets, middle, delta) < significance:
            low = middle
        else:
            high = middle
    return low
