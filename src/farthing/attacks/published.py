"""The attacks that broke Diffix, with the SQL of their authors; they run against anything that speaks SQL.

A linear attack needs random halves of the known people in one short condition. Cohen and Nissim took the digits of a
power of the client's id; when that was forbidden, Dick, Joseph and Schutzman took those of a column that isolates
nobody by itself.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.attacks.coins import Coins
from farthing.attacks.linear import exact_answers, solve
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.attacks.target import AttackTarget, Conversation, Question, quoted
from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from farthing.attacks.linear import Method
    from farthing.attacks.values import Hidden

PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
OFFSETS: Final = (5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
EXPONENTS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9)
HASHES: Final = tuple(itertools.product(EXPONENTS, PRIMES, OFFSETS))
"""(exponent, multiplier, offset) of the 3,500 conditions of 2018."""

POWERS: Final = range(50_000, 90_000)
"""The powers of the second attack, in ten-thousandths: 5.0000 to 8.9999."""


def cohen_nissim(
    target: AttackTarget, *, queries: int | None = None, method: Method = "box", seed: int = 0
) -> AttackResult:
    """Reconstruct the secret bits through a hash of the id column [CohenN20].

    Asks `... WHERE floor(o * pow(id * p, e) + 0.5) = floor(o * pow(id * p, e)) AND secret`, whose first condition holds
    for about half of the ids, evaluates it for the known ids, and solves for the bits.

    Args:
        target: speaks SQL; the ids of its people are numbers.
        queries: how many of the 3,500 conditions to use; by default eight for each person.
        method: how the equations are solved.
        seed: of the choice of conditions.

    Raises:
        DataError: the target does not speak SQL, or the ids are not numbers.
        InvalidOption: more queries than there are conditions, or none.

    >>> from farthing.attacks import tables
    >>> from farthing.attacks.diffix import Diffix
    >>> result = cohen_nissim(Diffix(tables.loans(seed=1)))
    >>> result.accuracy, result.verdict
    (1.0, 'broken')
    """
    started, people, asked = time.perf_counter(), target.people, Conversation(target)
    ids, count = _known(target, people.id), _count(queries, 8 * people.n, len(HASHES))
    chosen = [HASHES[place] for place in Coins(seed, "cohen-nissim").order(len(HASHES))[:count]]
    rows = np.array([hashed(ids, *constants) for constants in chosen])
    answers = _answers(asked, (people.count(hash_condition(people.id, *constants)) for constants in chosen), count)
    return _bits("cohen-nissim", asked, rows, answers, method, started=started, seed=seed)


def dick_joseph_schutzman(
    target: AttackTarget,
    hidden: Hidden | None = None,
    *,
    column: str = "pickup_latitude",
    queries: int | None = None,
    method: Method = "box",
    seed: int = 0,
) -> AttackResult:
    """Reconstruct bits, numbers or digits through a column that isolates nobody by itself [CohenNSU20].

    Asks `... WHERE FLOOR(column ^ e + 0.5) = FLOOR(column ^ e) AND ...`: counts for the secret bits, sums for numbers,
    and a sum for each digit of a text.

    Args:
        target: speaks SQL.
        hidden: numbers or digits to reconstruct; None for the secret bits of the target's people.
        column: known numbers of many digits, different for all known people.
        queries: how many conditions; by default 8 for each person for bits, 16 for a number, 24 for digits.
        method: how the equations are solved.
        seed: of the choice of conditions.

    Raises:
        DataError: the target does not speak SQL, or the column is not known, no numbers, or not all different.
        InvalidOption: more queries than there are powers, or none.

    >>> from farthing.attacks import tables
    >>> from farthing.attacks.diffix import Diffix
    >>> table = tables.rides(seed=1, known=60, rows=4000)
    >>> dick_joseph_schutzman(Diffix(table, "cedar"), queries=720).accuracy > 0.95
    True
    >>> dick_joseph_schutzman(Diffix(table, "dogwood"), queries=720).answered
    0
    """
    started, people, asked = time.perf_counter(), target.people, Conversation(target)
    each = 8 if hidden is None else 16 if len(hidden.parts) == 1 else 24
    values, count = _known(target, column), _count(queries, each * people.n, len(POWERS))
    powers = [POWERS[place] / 10_000 for place in Coins(seed, "dick-joseph-schutzman").order(len(POWERS))[:count]]
    rows = np.array([_low_digit(np.power(values, power)) for power in powers])
    conditions = [power_condition(column, power) for power in powers]
    if hidden is None:
        answers = _answers(asked, map(people.count, conditions), count)
        return _bits("dick-joseph-schutzman", asked, rows, answers, method, started=started, seed=seed)
    table = quoted(people.table)
    texts = (
        f"SELECT SUM({part.sql}) FROM {table} WHERE {where} AND {hidden.among}"
        for where in conditions
        for part in hidden.parts
    )
    answers = _answers(asked, texts, count * len(hidden.parts)).reshape(count, -1)
    found = hidden.guess(rows, answers, method)
    return found.judged("dick-joseph-schutzman", asked, started=started, seed=seed, least=people.n + 1)


def hash_condition(column: str, exponent: float, multiplier: int, offset: int) -> str:
    """Return the condition of Cohen and Nissim, in SQL.

    >>> hash_condition("client_id", 0.7, 2, 100)
    'floor(100 * pow(client_id * 2, 0.7) + 0.5) = floor(100 * pow(client_id * 2, 0.7))'
    """
    power = f"{offset} * pow({quoted(column)} * {multiplier}, {exponent})"
    return f"floor({power} + 0.5) = floor({power})"


def hashed(ids: NDArray[np.float64], exponent: float, multiplier: int, offset: int) -> NDArray[np.bool_]:
    """Return for which ids the condition of Cohen and Nissim holds: bool[n]."""
    return _low_digit(offset * np.power(ids * multiplier, exponent))


def power_condition(column: str, power: float) -> str:
    """Return the condition of Dick, Joseph and Schutzman, in SQL.

    >>> power_condition("pickup_latitude", 8.789)
    'FLOOR(pickup_latitude ^ 8.789 + 0.5) = FLOOR(pickup_latitude ^ 8.789)'
    """
    return f"FLOOR({quoted(column)} ^ {power} + 0.5) = FLOOR({quoted(column)} ^ {power})"


def _low_digit(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for which values the part behind the point is below one half."""
    return np.asarray(np.floor(values + 0.5) == np.floor(values))


def _answers(asked: Conversation, texts: Iterable[str], count: int) -> NDArray[np.float64]:
    """Return the answers, NaN for none; after a budget is spent nothing more is asked."""
    answers = np.full(count, math.nan)
    for place, text in enumerate(texts):
        answers[place] = asked.ask(Question(text=text))
        if asked.exhausted:
            break
    return answers


def _bits(
    attack: str,
    asked: Conversation,
    rows: NDArray[np.bool_],
    answers: NDArray[np.float64],
    method: Method,
    *,
    started: float,
    seed: int,
) -> AttackResult:
    """Return the result of guesses from counts."""
    people = asked.target.people

    def solved(given: NDArray[np.float64]) -> Guesses:
        return Guesses.from_scores(solve(rows, given, method=method))

    return judged(
        attack,
        asked,
        solved(answers),
        started=started,
        seed=seed,
        least=people.n + 1,
        exact=lambda: solved(exact_answers(rows, people.bits, answers)),
    )


def _known(target: AttackTarget, column: str) -> NDArray[np.float64]:
    """Return the known numbers of a column, one for each person and no two alike."""
    known = target.people.columns.get(column, np.array([]))
    if target.speaks != "sql" or known.dtype.kind not in "iuf" or len(np.unique(known)) != target.people.n:
        raise DataError(
            "the attack has nothing to hash",
            rule="a target that speaks SQL, and a column of numbers, known and different for all people",
            got=f"a target that speaks {target.speaks}, column {column!r} of {len(np.unique(known))} numbers",
            next_step=f"name another column; known are {', '.join(target.people.columns)}",
        )
    return known.astype(np.float64)


def _count(queries: int | None, usual: int, most: int) -> int:
    """Return how many conditions to use."""
    count = min(usual, most) if queries is None else queries
    if not 0 < count <= most:
        raise InvalidOption(
            "the number of queries is out of range", rule=f"1 to {most:,}", got=count, next_step="leave it out"
        )
    return count
