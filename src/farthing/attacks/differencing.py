"""Two innocent questions, one guilty difference: predicates that differ by one person, in disguise or over time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from farthing.attacks.accepting import accepted
from farthing.attacks.averaging import chosen_victims, mean_of
from farthing.attacks.coins import Coins
from farthing.attacks.compilers import listed
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.target import Conversation, Question, literal, quoted
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from farthing.attacks.target import AttackTarget, Claim, People

Trick = Literal["pair", "complement", "tracker", "range", "null"]


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceTerm:
    """One question of a difference.

    Attributes:
        weight: what its answer is multiplied by.
        chosen: bool[n], whom it counts.
        where: the predicate that says so in SQL.
        counting: the aggregate in SQL, or None for the people's own.
    """

    weight: int
    chosen: NDArray[np.bool_]
    where: str
    counting: str | None = None

    def question(self, target: AttackTarget) -> Question:
        """Return it in the target's language."""
        if target.speaks == "vector":
            return Question(chosen=self.chosen)
        text = target.people.count(self.where)
        return Question(text=text if self.counting is None else text.replace(target.people.counting, self.counting, 1))


def differencing(
    target: AttackTarget | Callable[[NDArray[np.bool_]], Any],
    repeats: int = 1,
    seed: int | None = 0,
    *,
    trick: Trick = "pair",
    victims: int | None = None,
    bits: Any = None,
    claim: Claim | None = None,
) -> AttackResult:
    """Find out one person at a time from questions that differ by that person.

    Args:
        target: as `linear`.
        repeats: how often each difference is taken, with other bystanders where the trick has any.
        seed: of victims and bystanders.
        trick: "pair": a random half with the victim, and without. "complement": everybody, and all but the victim.
            "tracker": T or victim, plus not T or victim, minus everybody, for a random half T. "range":
            ids up to the victim's, and below it. "null": COUNT(*) and a COUNT of an expression that is NULL for the
            victim only.
        victims: how many people; by default all, at most 100.
        bits: as `linear`.
        claim: as `linear`.

    >>> from farthing.attacks import secrets, targets
    >>> differencing(targets.Exact(secrets(30, seed=2).bits), trick="tracker").accuracy
    1.0
    """
    if trick not in get_args(Trick):
        raise DataError(
            "unknown trick", rule=", ".join(get_args(Trick)), got=trick, next_step='leave trick= out for "pair"'
        )
    started, asked = time.perf_counter(), Conversation(accepted(target, bits, claim))
    people, coins = asked.target.people, Coins(seed, "differencing", trick)
    scores = np.full(people.n, np.nan)
    for victim in chosen_victims(people.n, victims, seed, "differencing"):
        found = []
        for _ in asked.turns(repeats):
            terms = _TERMS[trick](people, int(victim), coins)
            found.append(math.fsum(term.weight * asked.ask(term.question(asked.target)) for term in terms))
        scores[victim] = mean_of(found)
    return judged(
        "differencing",
        asked,
        Guesses.from_scores(scores),
        started=started,
        seed=seed,
        trick=trick,
        repeats=repeats,
    )


def before_after(snapshots: Sequence[AttackTarget], repeats: int = 1, seed: int | None = 0) -> AttackResult:
    """Find out newcomers from one question about everybody, asked as people are loaded one by one.

    Args:
        snapshots: the target after each load, each with one person more at the end than the one before.
        repeats: how often each is asked.
        seed: nothing is drawn; it is for the record.

    >>> from farthing.attacks import secrets, targets
    >>> bits = secrets(40, seed=4).bits
    >>> before_after([targets.Exact(bits[:many]) for many in range(10, 41)]).right
    30
    """
    sizes = [snapshot.people.n for snapshot in snapshots]
    if len(sizes) < 2 or np.any(np.diff(sizes) != 1):
        raise DataError(
            "these are not snapshots of a growing table",
            rule="two targets or more, each with one person more than the one before",
            got=f"sizes {sizes[:5]}",
            next_step="one target for the table after each load",
        )
    started, asked = time.perf_counter(), Conversation(snapshots[0])
    totals = []
    for snapshot in snapshots:
        everybody = np.ones(snapshot.people.n, dtype=bool)
        question = (
            Question(chosen=everybody) if snapshot.speaks == "vector" else Question(text=snapshot.people.count("1 = 1"))
        )
        totals.append(mean_of([asked.ask(question, snapshot) for _ in range(repeats)]))
    newcomers = snapshots[-1].people.bits[sizes[0] :]
    guesses = Guesses.from_scores(np.diff(totals), newcomers)
    return judged("before and after", asked, guesses, started=started, seed=seed, repeats=repeats)


def pair_accuracy(variance: float, repeats: int = 1) -> float:
    """Return the accuracy of differences of two answers, each with fresh noise of this variance.

    >>> [f"{pair_accuracy(10, repeats):.3f}" for repeats in (1, 10, 100)]
    ['0.545', '0.638', '0.868']
    """
    return 0.5 * (1 + math.erf(math.sqrt(repeats) / (2 * math.sqrt(2 * variance)) / math.sqrt(2)))


def _only(people: People, victim: int) -> NDArray[np.bool_]:
    """Return the victim alone."""
    return np.asarray(np.arange(people.n) == victim)


def _names(people: People, victim: int) -> tuple[str, str]:
    """Return the id column and the victim's id in SQL."""
    return quoted(people.id), literal(people.ids[victim])


def _pair(people: People, victim: int, coins: Coins) -> list[DifferenceTerm]:
    """Return a random half with the victim, and without."""
    name, said = _names(people, victim)
    half = coins.bits(people.n) | _only(people, victim)
    where = listed(people, half)
    return [
        DifferenceTerm(1, half, where),
        DifferenceTerm(-1, half & ~_only(people, victim), f"{where} AND {name} <> {said}"),
    ]


def _complement(people: People, victim: int, _: Coins) -> list[DifferenceTerm]:
    """Return everybody, and all but the victim."""
    name, said = _names(people, victim)
    everybody = np.ones(people.n, dtype=bool)
    return [DifferenceTerm(1, everybody, "1 = 1"), DifferenceTerm(-1, ~_only(people, victim), f"{name} <> {said}")]


def _tracker(people: People, victim: int, coins: Coins) -> list[DifferenceTerm]:
    """Return T or victim, not T or victim, and everybody: the victim is counted once too often."""
    name, said = _names(people, victim)
    half, only = coins.bits(people.n), _only(people, victim)
    where = listed(people, half)
    return [
        DifferenceTerm(1, half | only, f"({where} OR {name} = {said})"),
        DifferenceTerm(1, ~half | only, f"(NOT ({where}) OR {name} = {said})"),
        DifferenceTerm(-1, np.ones(people.n, dtype=bool), "1 = 1"),
    ]


def _range(people: People, victim: int, _: Coins) -> list[DifferenceTerm]:
    """Return the ids up to the victim's, and those below it."""
    name, said = _names(people, victim)
    known = people.ids
    return [
        DifferenceTerm(1, known <= known[victim], f"{name} <= {said}"),
        DifferenceTerm(-1, known < known[victim], f"{name} < {said}"),
    ]


def _null(people: People, victim: int, _: Coins) -> list[DifferenceTerm]:
    """Return everybody, counted as rows and as values that are NULL for the victim."""
    name, said = _names(people, victim)
    everybody = np.ones(people.n, dtype=bool)
    blind = f"COUNT(CASE WHEN {name} = {said} THEN NULL ELSE 1 END)"
    return [DifferenceTerm(1, everybody, "1 = 1"), DifferenceTerm(-1, ~_only(people, victim), "1 = 1", counting=blind)]


_TERMS: Final[dict[str, Callable[[People, int, Coins], list[DifferenceTerm]]]] = {
    "pair": _pair,
    "complement": _complement,
    "tracker": _tracker,
    "range": _range,
    "null": _null,
}
