"""Everything on one person: the whole budget for one secret, and the last digits of one answer."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.attacks.accepting import several
from farthing.attacks.averaging import chosen_victims, mean_of
from farthing.attacks.compilers import ask_about
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.target import Conversation
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from farthing.attacks.target import AttackTarget, Claim

Place = tuple["AttackTarget", int]


def single_target(
    target: AttackTarget | Iterable[AttackTarget] | Callable[[NDArray[np.bool_]], Any],
    questions: int = 100,
    seed: int | None = 0,
    *,
    victims: int | None = None,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Spend the whole budget on one person, then go on to the next one: an honest ledger has nothing left for that.

    Over many fresh targets, with one person each (`targets.each`), it reaches the cap e^epsilon / (1 + e^epsilon) of an
    honest mechanism exactly, and so sees noise that is smaller than its price. Over one target it sees a ledger that
    does not refuse.

    Args:
        target: as `linear`; or several, each with its own people, of whom the first is the victim.
        questions: how often each victim is asked about, at most.
        seed: of the order of victims, where there is one target.
        victims: how many people, where there is one target; by default all, at most 100.
        bits: as `linear`.
        claim: as `linear`.

    >>> from farthing.attacks import secrets, targets
    >>> honest = targets.each(targets.Honest, secrets(1000, seed=5).bits, epsilon=1)
    >>> found = single_target(honest, questions=2)
    >>> found.verdict, abs(found.accuracy - found.cap) < 0.05
    ('holds', True)
    """
    started, doors = time.perf_counter(), several(target, bits, claim)
    asked, places = Conversation(doors[0]), _places(doors, victims, seed)
    scores = np.full(len(places), np.nan)
    for number, (door, victim) in enumerate(places):
        question = ask_about(door, np.arange(door.people.n) == victim)
        answers = []
        for _ in asked.turns(questions, pooled=len(doors) > 1):
            answers.append(asked.ask(question, door))
            if math.isnan(answers[-1]):  # refused: the next one
                break
        scores[number] = mean_of(answers)
    guesses = Guesses.from_scores(scores, _truth(places))
    return judged("single target", asked, guesses, started=started, seed=seed, questions=questions)


def precision(
    target: AttackTarget | Iterable[AttackTarget] | Callable[[NDArray[np.bool_]], Any],
    seed: int | None = 0,
    *,
    grid: float = 1.0,
    victims: int | None = None,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Read a secret in the last digits of a noisy answer.

    [Mironov12]: 1 plus noise, rounded to a float, is a multiple of 2^-53 wherever the sum is small; noise alone has
    finer digits. A small answer with such digits was not made from a 1, for certain. Only those guesses are made.

    Args:
        target: as `single_target`.
        seed: of the order of victims, where there is one target.
        grid: where all answers are multiples of this public number their digits tell nothing, and the target holds.
        victims: as `single_target`.
        bits: as `linear`.
        claim: as `linear`.

    >>> from farthing.attacks import secrets, targets
    >>> precision(targets.each(targets.Floats, secrets(400, seed=5).bits, epsilon=1)).verdict
    'broken'
    """
    started, doors = time.perf_counter(), several(target, bits, claim)
    asked, places = Conversation(doors[0]), _places(doors, victims, seed)
    asks = [ask_about(door, np.arange(door.people.n) == victim) for door, victim in places]
    answers = np.array([asked.ask(question, door) for question, (door, _) in zip(asks, places, strict=True)])
    fine = np.ldexp(answers, 53)
    zero = (np.abs(answers) < 0.25) & (fine != np.floor(fine))
    guesses = Guesses(np.zeros(len(places), dtype=bool), np.where(zero, 1.0, np.nan), _truth(places))
    known = answers[~np.isnan(answers)]
    on_grid = bool(known.size) and bool(np.all(known / grid == np.floor(known / grid)))
    holds = f"every answer is a multiple of {grid:g}: its digits tell nothing" if on_grid else ""
    return judged("precision", asked, guesses, started=started, seed=seed, holds=holds, on_grid=on_grid)


def _places(doors: list[AttackTarget], victims: int | None, seed: int | None) -> list[Place]:
    """Return who is attacked where: many people of one target, or the first person of each of many."""
    if len(doors) == 1:
        return [(doors[0], int(victim)) for victim in chosen_victims(doors[0].people.n, victims, seed, "single target")]
    if victims is not None or len({(door.claim, door.people.prior) for door in doors}) > 1:
        raise DataError(
            "these targets cannot be pooled",
            rule="fresh targets with the same claim and prior, one victim each",
            got=f"{len(doors)} targets, victims={victims}",
            next_step="leave victims= out, and make the targets with targets.each",
        )
    return [(door, 0) for door in doors]


def _truth(places: list[Place]) -> NDArray[np.bool_]:
    """Return the secrets of the victims."""
    return np.array([door.people.bits[victim] for door, victim in places])
