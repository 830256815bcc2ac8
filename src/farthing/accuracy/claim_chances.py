"""How sure several answers of one question are together, whatever was decided by looking at them.

A *claim* is what one paid ask of a question showed: each of its intervals misses with a chance of at most beta, if its
target was fixed beforehand. Whoever chooses the next target by what the last answer showed has less than the sum of
these chances: `worst` tells how much less, at worst. An answer that is told again is the same claim.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from farthing.errors import InvalidTarget
from farthing.normal import ndtr, ndtri

MOST: Final = 16
"""So many claims of a question can hold together."""

SPARE: Final = 0.98
"""The part of the chance of a miss that is shared out: the rest is for what the bound of a chain leaves out."""

_NEARLY: Final = 1 + 1e-9
_CELLS: Final = 96  # of a deviation's size, alike in its square
_TURNS: Final = 32  # of the part of the next measurement that is fresh, alike in the angle
_TRIES: Final = 12
_BELOW: Final = 0.995  # of what a straight line says, since chances are not straight
_LEAST: Final = 1e-300


@lru_cache(maxsize=1024)
def worst(claims: tuple[float, ...]) -> float:
    """Return the chance that any of these claims misses, if somebody who sees all errors chooses every next width.

    Guarantee: however the width of each ask was chosen, some interval of a number misses with this chance at most.
    Proof: docs/proofs/accuracy.claim_chances.md, by a recursion over the asks that rounds upwards.
    Assumes: Gaussian measurements that are refined; each claim's half-width is z(its chance) standard deviations.
    Rounds: deviations outwards; how much is fresh, to one of 32 angles (measured: less than what the cells add).

    >>> worst((0.05,))
    0.05
    >>> 0.1 < worst((0.05, 0.05)) < 0.13
    True
    """
    if len(claims) < 2:
        return float(sum(claims))
    critical = -ndtri(np.minimum(np.maximum(claims, _LEAST), 1.0) / 2)
    angles = np.linspace(0, np.pi / 2, _TURNS + 1)[1:]
    kept, fresh = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    parts, value = np.sqrt(np.linspace(0, 1, _CELLS + 1)[1:]), np.zeros(_CELLS)
    for last, now in zip(critical[-2::-1], critical[:0:-1], strict=True):
        steps = np.diff(np.concatenate([value, [1.0]]))  # beyond each edge it is worth so much more
        start, edges = kept * (last * parts)[:, None], now * parts
        beyond = ndtr((start - edges) / fresh) + ndtr((-start - edges) / fresh)
        value = (value[0] + beyond @ steps).max(axis=0)
    steps = np.diff(np.concatenate([value, [1.0]]))
    found = value[0] + 2 * ndtr(-critical[0] * parts) @ steps
    return float(min(max(found, sum(claims)), 1.0))  # never less than what follows from nothing


def together(claims: tuple[float, ...], many: int = 1) -> float:
    """Return the confidence with which all claims of a question hold at once.

    Args:
        claims: the chance of a miss of each claim, for one number.
        many: of how many numbers it is said at once; 1 for each by itself.

    Guarantee: whatever decided on each ask, all of a number's intervals hold their truth with at least this chance.
    Proof: docs/proofs/accuracy.claim_chances.md.
    Assumes: as `worst`.
    Rounds: nothing.

    >>> round(together((0.05, 0.05)), 2)
    0.89
    """
    return max(0.0, 1 - many * worst(claims))


def holds(claims: tuple[float, ...], beta: float) -> bool:
    """Return whether claims are together within a chance of a miss, whatever was decided by looking."""
    return worst(claims) <= beta * _NEARLY


def next_chance(claims: tuple[float, ...], beta: float) -> float:
    """Return the chance of a miss that the next claim of a question may have, so that all are within beta.

    The k-th claim takes beta/(k (k + 1)) times a part, for which the worst case of `MOST` claims is within beta.

    Raises:
        InvalidTarget: nothing is left of beta, or there were MOST claims.

    >>> first = next_chance((), 0.05)
    >>> round(first / next_chance((first,), 0.05), 6)
    3.0
    """
    standard = _shared((), beta) if claims else ()
    if claims and claims == standard[: len(claims)] and len(claims) < MOST:
        return standard[len(claims)]
    shared = _shared(claims, beta)
    if not shared:
        raise InvalidTarget(
            "the answers of this question so far leave no room for another at this confidence, together",
            rule=f"{MOST} answers, and chances of a miss, whatever was decided by looking, of at most 1 - confidence",
            got=f"{len(claims)} answers, {worst(claims):.4g} of {beta:.4g}",
            next_step="lower the confidence, or drop together=True; the next question can start with together=True",
        )
    return shared[0]


@lru_cache(maxsize=256)
def _shared(claims: tuple[float, ...], beta: float) -> tuple[float, ...]:
    """Return the chances of all claims that may follow these, so that the worst case is within beta; () for none."""
    left, goal = beta - sum(claims), beta * SPARE
    if left <= beta * (_NEARLY - 1) or len(claims) >= MOST:
        return ()
    parts = np.array([1 / (k * (k + 1)) for k in range(len(claims) + 1, MOST + 1)])
    parts *= left / (parts.sum() + 1 / (MOST + 1))
    part = 1.0
    for _ in range(_TRIES):
        tail = tuple((part * parts).tolist())
        found = worst((*claims, *tail))
        if found <= goal:
            return tail
        room = goal - worst(claims)
        if room <= 0:
            return ()
        part *= _BELOW * room / (found - worst(claims))
    return ()
