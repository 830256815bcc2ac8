"""Ask again: noise that is new and free every time averages out."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from farthing.attacks.accepting import several
from farthing.attacks.coins import Coins
from farthing.attacks.compilers import ask_about
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.rewriting import rewrites
from farthing.attacks.target import Conversation
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from farthing.attacks.target import AttackTarget, Claim, People, Question

Words = Literal["verbatim", "rewritten"]

MOST_VICTIMS = 100
"""How many people are attacked one by one, unless said otherwise."""


def averaging(
    target: AttackTarget | Iterable[AttackTarget] | Callable[[NDArray[np.bool_]], Any],
    repeats: int = 100,
    seed: int | None = 0,
    *,
    words: Words = "verbatim",
    victims: int | None = None,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Ask about one person at a time, again and again, and average.

    Everybody is asked about once before anybody is asked about twice: a budget that ends has told of all of them.

    Args:
        target: as `linear`; or several targets over the same people, asked in turn: sessions of several analysts, one
            session before and after a restart (`targets.Forked` for workers that were forked).
        repeats: how often each person is asked about.
        seed: of the choice of victims.
        words: "verbatim", or "rewritten" into SQL that means the same.
        victims: how many people; by default all, at most 100.
        bits: as `linear`.
        claim: as `linear`.

    >>> from farthing.attacks import secrets, targets
    >>> averaging(targets.FreshGaussian(secrets(50, seed=1).bits, sigma=10**0.5), repeats=400).verdict
    'broken'
    """
    started, doors = time.perf_counter(), several(target, bits, claim)
    people, asked = doors[0].people, Conversation(doors[0])
    _same_people(doors, people)
    chosen = chosen_victims(people.n, victims, seed, "averaging")
    forms = {int(victim): _forms(doors[0], int(victim), words) for victim in chosen}
    answers: dict[int, list[float]] = {victim: [] for victim in forms}
    places = [(turn, victim) for turn in range(repeats) for victim in forms]
    for place in asked.turns(len(places)):
        turn, victim = places[place]
        answers[victim].append(asked.ask(forms[victim][turn % len(forms[victim])], doors[turn % len(doors)]))
    scores = np.full(people.n, np.nan)
    for victim, said in answers.items():
        scores[victim] = mean_of(said)
    facts: dict[str, Any] = {"repeats": repeats, "words": words, "targets": len(doors)}
    guesses = Guesses.from_scores(scores)
    return judged("averaging", asked, guesses, started=started, seed=seed, **facts)


def averaged_accuracy(sigma: float, repeats: int) -> float:
    """Return the chance that the mean of fresh noisy answers rounds to the true count.

    >>> [f"{averaged_accuracy(10**0.5, repeats):.3f}" for repeats in (50, 100, 200, 400)]
    ['0.736', '0.886', '0.975', '0.998']
    """
    return math.erf(0.5 * math.sqrt(repeats) / sigma / math.sqrt(2))


def refinement_gain(answers: NDArray[np.float64], truth: float) -> float:
    """Return what an average gains over the last answer of chains of refinements: its variance over the last one's.

    Answers that sharpen one another share their noise, and the last one holds all that is known: the ratio is at least
    about 1. Refinements with fresh noise are worth averaging: about 1/2, where each halves the variance. Below 0.85
    over hundreds of chains a system gives more away than its last answer, and charges less for it than it should.

    Args:
        answers: float64[chains, looks], each row the answers to one question as it was refined.
        truth: the exact answer.

    >>> fresh = Coins(1, "doc").normal(400, 7) * 2.0 ** -np.arange(0, 3.5, 0.5)
    >>> refinement_gain(fresh, truth=0) < 0.85
    True
    """
    errors = np.asarray(answers, dtype=np.float64) - truth
    if errors.ndim != 2 or min(errors.shape) < 2 or not np.isfinite(errors).all():
        raise DataError(
            "these are not chains of refinements",
            rule="finite answers, two chains of two looks or more",
            got=f"shape {errors.shape}",
            next_step="one row for each chain, the coarsest answer first",
        )
    variances = np.mean(errors**2, axis=0)
    weights = 1 / np.maximum(variances, np.finfo(float).tiny)
    combined = errors @ (weights / weights.sum())
    return float(np.mean(combined**2) / variances[-1])


def chosen_victims(n: int, victims: int | None, seed: int | None, label: str) -> NDArray[np.int64]:
    """Return who is attacked, in random order."""
    count = min(n, MOST_VICTIMS) if victims is None else victims
    if not 1 <= count <= n:
        raise DataError(
            "the number of victims is out of range", rule=f"1 .. {n}", got=count, next_step="leave victims= out"
        )
    return Coins(seed, label).order(n)[:count]


def mean_of(answers: list[float]) -> float:
    """Return the mean of the answers that there are, NaN for none."""
    known = [answer for answer in answers if not math.isnan(answer)]
    return math.fsum(known) / len(known) if known else math.nan


def _forms(target: AttackTarget, victim: int, words: Words) -> list[Question]:
    """Return the ways to ask about one person."""
    if words == "verbatim":
        return [ask_about(target, np.arange(target.people.n) == victim)]
    if words != "rewritten" or target.speaks != "sql":
        raise DataError(
            "this question cannot be worded in another way",
            rule='words is "verbatim", or "rewritten" for a target that speaks SQL',
            got=f"{words} for {target.speaks}",
            next_step='words="verbatim"',
        )
    return rewrites(target.people, victim)


def _same_people(doors: list[AttackTarget], people: People) -> None:
    """Refuse targets over other people."""
    if any(not np.array_equal(door.people.bits, people.bits) for door in doors):
        raise DataError(
            "these targets hold different people",
            rule="several sessions over one table",
            got=f"{len(doors)} targets",
            next_step="attacks.single_target pools targets over different people",
        )
