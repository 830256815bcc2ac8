"""How sure several answers of one question are together: the chances that its claims may miss add up.

A *claim* is what one paid ask of a question showed: each of its intervals misses with a chance of at most beta. Whoever
chooses the next ask by what the last one showed has only the sum of these chances. An answer that is told again is the
same claim.
"""

from __future__ import annotations

from typing import Final

from farthing.errors import InvalidTarget

_NEARLY: Final = 1 + 1e-9


def together(claims: tuple[float, ...], many: int = 1) -> float:
    """Return the confidence with which all claims of a question hold at once.

    Args:
        claims: the chance of a miss of each claim, for one number.
        many: of how many numbers it is said at once; 1 for each by itself.

    Guarantee: whatever decided on each ask, all of a number's intervals hold their truth with at least this chance.
    Proof: docs/proofs/accuracy.chances.md: the union bound.
    Assumes: each claim misses with its chance at most, for asks that were fixed beforehand.
    Rounds: nothing.

    >>> round(together((0.05, 0.05)), 12)
    0.9
    """
    return max(0.0, 1 - many * sum(claims))


def holds(claims: tuple[float, ...], beta: float) -> bool:
    """Return whether claims are together within a chance of a miss."""
    return sum(claims) <= beta * _NEARLY


def next_chance(claims: tuple[float, ...], beta: float) -> float:
    """Return the chance of a miss that the next claim of a question may have, so that all are within beta for ever.

    The k-th claim takes 1/(k + 1) of what is left: beta/2, beta/6, beta/12, ... which add up to beta.

    Raises:
        InvalidTarget: nothing is left of beta.

    >>> [round(1 / next_chance((0.5,) * (k > 0) + (0.5 / 3,) * (k > 1), 1.0), 6) for k in range(3)]
    [2.0, 6.0, 12.0]
    """
    left = beta - sum(claims)
    if left <= beta * (_NEARLY - 1):
        raise InvalidTarget(
            "the answers of this question so far leave no room for another at this confidence, together",
            rule="their chances of a miss add up: sum <= 1 - confidence",
            got=f"{sum(claims):.4g} of {beta:.4g}",
            next_step="lower the confidence, or drop together=True; and begin with it next time",
        )
    return left / (len(claims) + 2)
