"""Replaying a real attack: recorded answers of a commercial system, and the people they were about.

The files are the user's: nothing of them is part of farthing. They have the columns of the attack of Cohen and Nissim,
whose questions were `count(DISTINCT client_id)` of the clients with status "C" in a range of ids for whom
`floor(offset * pow(client_id * multiplier, exponent) + 0.5) = floor(offset * pow(client_id * multiplier, exponent))`.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from farthing.attacks.linear import solve
from farthing.attacks.published import hashed
from farthing.attacks.result import BROKEN, HOLDS, UNDECIDED
from farthing.attacks.target import UNSTATED
from farthing.attacks.verdict import CONFIDENCE, best_look, innocent
from farthing.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.attacks.linear import Method
    from farthing.attacks.target import Claim, Verdict

_RANGE: Final = ("range_low", "range_high")
_QUESTION: Final = ("exponent", "multiplier", "offset")
ANSWER_COLUMNS: Final = (*_RANGE, *_QUESTION, "answer")
PEOPLE_COLUMNS: Final = (*_RANGE, "client_id", "status_is_c")

_TIMES: Final = 2
_MORE: Final = 100
"""An answer is at most so many times the number of people and so many more: noise may pass it, not by much."""

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class IdRange:
    """One range of ids.

    Attributes:
        range_low, range_high: its ends.
        people: how many people it has.
        answers: how many usable answers; zeros are suppressed ones.
        wrong: how many bits were guessed wrong.
        noise_sd: the standard deviation of the errors of the answers.
    """

    range_low: int
    range_high: int
    people: int
    answers: int
    wrong: int
    noise_sd: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the recorded answers gave away.

    Attributes:
        people: how many secrets there were.
        wrong: how many of them were guessed wrong.
        verdict: "broken" if a system that keeps `claim` would almost never let so many be guessed.
        epsilon_lower: the system's epsilon for a change of one bit is at least this, with `confidence`.
        confidence: of the verdict.
        prior: the share of the more frequent secret, which the verdict takes for the chance of one.
        answers: how many usable answers there were.
        parts: the ranges, in order.
        seconds: wall time, with reading.
    """

    people: int
    wrong: int
    verdict: Verdict
    epsilon_lower: float
    confidence: float
    prior: float
    answers: int
    parts: tuple[IdRange, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return asdict(self)


def replay(
    answers_path: str | Path, people_path: str | Path, *, claim: Claim = UNSTATED, method: Method = "least_squares"
) -> Replayed:
    """Solve for the secrets of real people from recorded answers, and count the wrong ones.

    Args:
        answers_path: CSV or Parquet with the columns `ANSWER_COLUMNS`, one row per question.
        people_path: CSV or Parquet with the columns `PEOPLE_COLUMNS`, one row per person.
        claim: what the verdict is about.
        method: how the equations are solved.

    Raises:
        DataError: a file that cannot be read, lacks a column or has values that make no sense, or people without
            answers.
    """
    started = time.perf_counter()
    answers, people = _numbers(answers_path, ANSWER_COLUMNS), _numbers(people_path, PEOPLE_COLUMNS)
    _check(answers, people, answers_path, people_path)
    ranges = sorted(set(zip(people["range_low"].tolist(), people["range_high"].tolist(), strict=True)))
    solved = [_solve(_within(answers, ends), _within(people, ends), ends, method) for ends in ranges]
    parts = tuple(part for part, _, _ in solved)
    right = np.concatenate([hits for _, hits, _ in solved])
    surety = np.concatenate([sure for _, _, sure in solved])
    share = float(np.mean(people["status_is_c"]))
    prior = min(max(share, 1 - share, 0.5), 1 - 1 / (2 * len(right)))
    look = best_look(right, surety, claim, n=len(right), prior=prior)
    enough = innocent(len(right), claim, prior=prior) < len(right) and all(one.answers > one.people for one in parts)
    enough = enough and len(np.unique(answers["answer"])) > 1  # the same answer to everything tells nothing
    return Replayed(
        people=len(right),
        wrong=int((~right).sum()),
        verdict=BROKEN if look.broken else HOLDS if enough else UNDECIDED,
        epsilon_lower=look.epsilon_lower,
        confidence=CONFIDENCE,
        prior=prior,
        answers=sum(part.answers for part in parts),
        parts=parts,
        seconds=time.perf_counter() - started,
    )


def _solve(
    answers: Columns, people: Columns, ends: tuple[float, float], method: Method
) -> tuple[IdRange, NDArray[np.bool_], NDArray[np.float64]]:
    """Return what one range gives: the figures, which guesses are right, and how sure each is."""
    ids, bits = people["client_id"], people["status_is_c"] == 1
    questions = zip(*(answers[name].tolist() for name in _QUESTION), strict=True)
    rows = np.array([hashed(ids, *constants) for constants in questions])
    given = np.where(answers["answer"] == 0, np.nan, answers["answer"])
    scores = solve(rows, given, method=method)
    right = (scores > 0.5) == bits
    usable = np.isfinite(given)
    error = (given - rows @ bits.astype(np.float64))[usable]
    spread = float(error.std()) if error.size else 0.0
    part = IdRange(int(ends[0]), int(ends[1]), len(ids), int(usable.sum()), int((~right).sum()), spread)
    return part, right, np.abs(scores - 0.5)


def _within(columns: Columns, ends: tuple[float, float]) -> Columns:
    """Return the rows of one range."""
    rows = (columns["range_low"] == ends[0]) & (columns["range_high"] == ends[1])
    return {name: values[rows] for name, values in columns.items()}


def _numbers(path: str | Path, names: tuple[str, ...]) -> Columns:
    """Return the named columns of a file, as numbers."""
    table = _read(Path(path))
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise _wrong(path, f"the columns {', '.join(names)}", f"without {', '.join(missing)}", "rename its columns")
    try:
        columns = {name: np.asarray(table[name].cast("float64").to_numpy()) for name in names}
    except (ValueError, NotImplementedError):  # their own words would quote a value
        got = ", ".join(f"{name}: {table[name].type}" for name in names)
        raise _wrong(path, "numbers in every column", got, "leave other rows out") from None
    odd = {name: int(np.count_nonzero(~np.isfinite(values))) for name, values in columns.items()}
    if not table.num_rows or any(odd.values()):
        got = ", ".join(f"{count:,} in the column {name}" for name, count in odd.items() if count) or "no row"
        raise _wrong(path, "at least one row, and no value missing or infinite", got, "leave such rows out")
    return columns


def _read(path: Path) -> pa.Table:
    """Return the table in a CSV or Parquet file."""
    from pyarrow import ArrowInvalid, csv, parquet

    try:
        return parquet.read_table(path) if path.suffix.lower() == ".parquet" else csv.read_csv(path)
    except (OSError, ArrowInvalid) as error:
        raise _wrong(path, "a CSV or Parquet file", str(error), "pass the paths of the recorded attack") from error


def _check(answers: Columns, people: Columns, answers_path: str | Path, people_path: str | Path) -> None:
    """Refuse people and answers that make no sense, or do not belong together."""
    ids = list(zip(people["range_low"].tolist(), people["client_id"].tolist(), strict=True))
    if len(set(ids)) != len(ids):
        raise _wrong(people_path, "one row per person", "a client_id twice in a range", "leave one of them out")
    if not np.isin(people["status_is_c"], (0, 1)).all():
        raise _wrong(
            people_path, "status_is_c is 0 or 1", "another number", "write 1 for the status that was asked for"
        )
    inside = (people["range_low"] <= people["client_id"]) & (people["client_id"] <= people["range_high"])
    if not inside.all():
        raise _wrong(people_path, "every client_id lies in its range", "one that does not", "mend the ranges")
    if (answers["answer"] < 0).any() or (answers["multiplier"] <= 0).any():
        raise _wrong(answers_path, "answers >= 0, multipliers > 0", "a smaller number", "leave such rows out")
    asked = set(zip(answers["range_low"].tolist(), answers["range_high"].tolist(), strict=True))
    ranges = set(zip(people["range_low"].tolist(), people["range_high"].tolist(), strict=True))
    if ranges - asked:
        low, high = min(ranges - asked)
        raise _wrong(answers_path, "answers for every range of people", f"none for {low:g} to {high:g}", "add them")
    for ends in sorted(ranges):
        most, given = len(_within(people, ends)["client_id"]), _within(answers, ends)["answer"].max()
        if given > _TIMES * most + _MORE:
            got = f"{given:g} of {most:,} people, {ends[0]:g} to {ends[1]:g}"
            raise _wrong(answers_path, "no answer is far above the number of people", got, "leave such rows out")


def _wrong(path: str | Path, rule: str, got: str, next_step: str) -> DataError:
    """Return the refusal of a file."""
    return DataError(f"{Path(path).name} cannot be replayed", rule=rule, got=got, next_step=next_step)
