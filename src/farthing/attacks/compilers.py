"""The same random subsets of people, said in five ways, so that one attack speaks to every target.

A compiler returns a `Design`: the questions, and which people each of them counts, as the attacker computes it from
what it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.attacks.target import Question, literal, quoted
from farthing.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.attacks.coins import Coins
    from farthing.attacks.target import AttackTarget, People


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Questions, and whom each of them counts.

    Attributes:
        rows: bool[questions, n], the matrix of the linear system.
        questions: what is sent.
    """

    rows: NDArray[np.bool_]
    questions: list[Question]


Compiler = Callable[["People", int, "Coins"], Design]


def vectors(people: People, queries: int, coins: Coins) -> Design:
    """Return random subsets as 0/1 vectors, each person in with chance 1/2."""
    rows = coins.bits(queries, people.n)
    return Design(rows, [Question(chosen=row) for row in rows])


def ids(people: People, queries: int, coins: Coins) -> Design:
    """Return random subsets as lists of ids, each person in with chance 1/2: `id IN (2, 3, 7)`."""
    rows = coins.bits(queries, people.n)
    return Design(rows, [in_sql(people, row) for row in rows])


def hashes(people: People, queries: int, coins: Coins) -> Design:
    """Return subsets by a digit of a power of the id, in SQL arithmetic, so that one condition makes a random subset.

    The predicate `floor(o * pow(id * p, e) + 0.5) = floor(o * pow(id * p, e))` is true if a digit of (id p)^e is below
    5. Primes p, offsets o and exponents e are drawn without repetition; the attacker evaluates the same predicate.
    [CohenN20]
    """
    known, column = _numbers(people), quoted(people.id)
    offsets, exponents = (10, 50, 100, 500, 1000, 5000, 10000, 50000), [k / 10 for k in range(5, 20) if k != 10]
    primes = _primes(max(25, -(-queries // (len(offsets) * len(exponents)))))
    grid = list(product(primes, offsets, exponents))
    rows, questions = np.empty((queries, people.n), dtype=bool), []
    for number, place in enumerate(coins.order(len(grid))[:queries]):
        prime, offset, exponent = grid[place]
        power = offset * np.power(known * prime, exponent)
        rows[number] = np.floor(power + 0.5) == np.floor(power)
        said = f"{offset} * POWER({column} * {prime}, {exponent})"
        questions.append(Question(text=people.count(f"FLOOR({said} + 0.5) = FLOOR({said})")))
    return Design(rows, questions)


def equalities(people: People, queries: int, coins: Coins) -> Design:
    """Return random subsets of the combinations of what is known besides the id, by equality.

    People whom nothing but the id tells apart are in or out together.
    """
    cells, place = _cells(people)
    chosen = coins.bits(queries, len(cells))
    questions = [
        Question(text=people.count("(" + (" OR ".join(np.array(cells, dtype=object)[row]) or "1 = 0") + ")"))
        for row in chosen
    ]
    return Design(chosen[:, place], questions)


def marginals(people: People, queries: int, coins: Coins) -> Design:
    """Return conjunctions, as a table of marginals asks them: one to three columns, each with half of its values."""
    names = [name for name in people.columns if name != people.id] or [people.id]
    rows, questions = np.ones((queries, people.n), dtype=bool), []
    for number in range(queries):
        said = []
        for name in [names[place] for place in coins.order(len(names))[: 1 + int(coins.integers(3, 1)[0])]]:
            values, place = np.unique(people.columns[name], return_inverse=True)
            kept = coins.bits(len(values))
            kept[coins.integers(len(values), 1)] = True  # never none
            rows[number] &= kept[place]
            said.append(f"{quoted(name)} IN ({', '.join(map(literal, values[kept]))})")
        questions.append(Question(text=people.count(" AND ".join(said))))
    return Design(rows, questions)


COMPILERS: Final[dict[str, Compiler]] = {
    "vectors": vectors,
    "ids": ids,
    "hashes": hashes,
    "equalities": equalities,
    "marginals": marginals,
}
"""The compilers by name."""


def compiler(target: AttackTarget, wanted: str | Compiler | None) -> Compiler:
    """Return the compiler of a name; by default vectors, or for SQL hashes of number ids and lists of others."""
    if wanted is None and target.speaks == "vector":
        return vectors
    if wanted is None:
        return hashes if target.people.ids.dtype.kind in "iu" else ids
    if callable(wanted):
        return wanted
    if wanted not in COMPILERS:
        raise DataError(
            "unknown query compiler",
            rule=", ".join(COMPILERS),
            got=wanted,
            next_step="leave compiler= out for the one that suits the target",
        )
    return COMPILERS[wanted]


def ask_about(target: AttackTarget, chosen: NDArray[np.bool_]) -> Question:
    """Return the question about these people in the target's language."""
    return Question(chosen=chosen) if target.speaks == "vector" else in_sql(target.people, chosen)


def in_sql(people: People, chosen: NDArray[np.bool_]) -> Question:
    """Return the question about these people by a list of their ids."""
    return Question(text=people.count(listed(people, chosen)))


def listed(people: People, chosen: NDArray[np.bool_]) -> str:
    """Return the predicate that is true for these people."""
    if not chosen.any():
        return "1 = 0"
    return f"{quoted(people.id)} IN ({', '.join(map(literal, people.ids[chosen]))})"


def _cells(people: People) -> tuple[list[str], NDArray[np.intp]]:
    """Return the combinations of what is known besides the id, as predicates, and everybody's place among them."""
    names = [name for name in people.columns if name != people.id] or [people.id]
    codes = np.column_stack([np.unique(people.columns[name], return_inverse=True)[1] for name in names])
    _, first, place = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    cells = [
        "(" + " AND ".join(f"{quoted(name)} = {literal(people.columns[name][who])}" for name in names) + ")"
        for who in first
    ]
    return cells, place.reshape(-1)


def _numbers(people: People) -> NDArray[np.float64]:
    """Return the ids as numbers > 0, or refuse."""
    known: NDArray[Any] = people.ids
    if known.dtype.kind not in "iuf" or not (known > 0).all():
        raise DataError(
            "these ids have no digits to hash",
            rule="hash predicates need ids that are numbers > 0",
            got=str(known.dtype),
            next_step='compiler="ids", or another id column',
        )
    return known.astype(np.float64)


def _primes(count: int) -> list[int]:
    """Return the first primes."""
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
