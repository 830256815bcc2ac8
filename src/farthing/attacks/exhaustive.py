"""Reconstruction by trying every world: few people, every subset of them, and the worlds that fit all answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.attacks.accepting import accepted
from farthing.attacks.coins import Coins
from farthing.attacks.compilers import ask_about
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.target import Conversation
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.attacks.target import AttackTarget, Claim

MOST_PEOPLE: Final = 14
"""With more people there are too many worlds."""

_BLOCK: Final = 256


def exhaustive(
    target: AttackTarget | Callable[[NDArray[np.bool_]], Any],
    error: float | None = None,
    queries: int | None = None,
    seed: int | None = 0,
    *,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Ask every subset, and keep every world that fits the answers within an error bound.

    [DinurN03, Thm 2]: if no answer is off by more than `error`, every world that is left is within 4 `error` secrets of
    the truth, however clever the answers; and `targets.Adversarial` shows that no attack can do better.

    Args:
        target: as `linear`, with at most 14 people.
        error: how far off answers are at most, in people; by default the least for which a world is left.
        queries: how many subsets are asked, in random order; by default all 2^n. It stops when one world is left.
        seed: of the order.
        bits: as `linear`.
        claim: as `linear`.

    Returns:
        The guess is the first world that is left; `details` has their number, the error that was used, and the secrets
        in which two of them differ at most.

    >>> exhaustive(lambda chosen: int(chosen[[0, 2]].sum()), bits=[1, 0, 1, 0]).accuracy
    1.0
    """
    started, asked = time.perf_counter(), Conversation(accepted(target, bits, claim))
    n = _few(asked.target.people.n)
    worlds = _subsets(n)
    order = Coins(seed, "exhaustive").order(2**n)[: 2**n if queries is None else queries]
    worst = np.zeros(len(worlds))  # of each world, how far it is from the answers so far
    for start in range(0, len(order), _BLOCK):
        if error is not None and np.count_nonzero(worst <= error) <= 1:
            break
        rows = worlds[order[start : start + _BLOCK]]
        answers = asked.all([ask_about(asked.target, row) for row in rows])
        gaps = np.abs(rows[~np.isnan(answers)].astype(np.float64) @ worlds.T - answers[~np.isnan(answers), None])
        worst = np.maximum(worst, gaps.max(axis=0, initial=0.0))
    used = float(worst.min()) if error is None else error
    left = worlds[worst <= used]
    # Without a bound only answers speak; a bound that no world meets was wrong, and the nearest world is the guess.
    guess = left[0] if len(left) else worlds[int(np.argmin(worst))]
    sure = np.abs(left.mean(axis=0) - 0.5) if len(left) else np.zeros(n)
    if not asked.answered:
        sure = np.full(n, np.nan)
    found: dict[str, Any] = {"worlds": len(left), "error": used, "diameter": _diameter(left)}
    return judged("exhaustive", asked, Guesses(guess, sure), started=started, seed=seed, least=n, **found)


def consistent(rows: NDArray[np.bool_], answers: NDArray[np.float64], error: float) -> NDArray[np.bool_]:
    """Return every world that fits the answers within an error bound: bool[worlds, n].

    Args:
        rows: bool[m, n], who is counted in each answer.
        answers: float64[m], in people; NaN for none.
        error: how far off they are at most.

    >>> consistent(np.array([[True, True]]), np.array([1.0]), error=0).astype(int).tolist()
    [[0, 1], [1, 0]]
    """
    worlds = _subsets(_few(rows.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        there = ~np.isnan(answers[start : start + _BLOCK])
        counts = rows[start : start + _BLOCK][there].astype(np.float64) @ worlds.T
        gaps = np.abs(counts - answers[start : start + _BLOCK][there, None])
        worlds = worlds[gaps.max(axis=0, initial=0.0) <= error]
    return worlds


def _subsets(n: int) -> NDArray[np.bool_]:
    """Return all 0/1 vectors of n entries, bool[2^n, n]."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)[::-1]) & 1).astype(bool)


def _diameter(worlds: NDArray[np.bool_]) -> int:
    """Return in how many secrets two of the worlds differ at most, over the first of them."""
    some = worlds[:_BLOCK].astype(np.int64)
    return int((some @ (1 - some).T + (1 - some) @ some.T).max(initial=0))


def _few(n: int) -> int:
    """Refuse more people than can be tried."""
    if n > MOST_PEOPLE:
        raise DataError(
            "too many people to try every world",
            rule=f"at most {MOST_PEOPLE}",
            got=n,
            next_step="attacks.linear, which takes hundreds",
        )
    return n
