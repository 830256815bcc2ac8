"""Secrets that are not bits: whole numbers, and text that is guessed digit by digit, through noisy sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.attacks.linear import solve
from farthing.attacks.result import AttackResult, Guesses, judged
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.attacks.linear import Method
    from farthing.attacks.target import Conversation


@dataclass(frozen=True, slots=True, eq=False)
class HiddenNumber:
    """A whole number that each of the known people has.

    Attributes:
        sql: the expression that gives it.
        lowest, highest: what it can be, as everybody knows.
        truth: int64[n], what it is; scores the guesses and nothing else.
    """

    sql: str
    lowest: int
    highest: int
    truth: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """A secret of one or more numbers, guessed right if all of them are.

    A verdict assumes that they were drawn for each person alone, no value with a chance above one half.

    Attributes:
        parts: the numbers.
        among: SQL that is true for the known people and nobody else.
    """

    parts: tuple[HiddenNumber, ...]
    among: str

    @classmethod
    def number(cls, sql: str, truth: Any, *, among: str) -> Hidden:
        """Return the secret that is one number; its range is what everybody knows of it.

        >>> Hidden.number("passenger_count", [1, 1, 6], among="trip_distance = 0.87").parts[0].highest
        6
        """
        values = _whole(truth)
        return cls((HiddenNumber(sql, int(values.min()), int(values.max()), values),), among)

    @classmethod
    def digits(cls, sql: str, truth: Any, *, places: Sequence[int], among: str) -> Hidden:
        """Return the secret that is a text with digits at some places, counted from 1.

        >>> Hidden.digits("ssn", ["078-05-1120"], places=(1, 2), among="trip_distance = 0.87").parts[1].sql
        'CAST(SUBSTRING(ssn, 2, 1) AS INTEGER)'
        """
        texts = [str(text) for text in truth]
        columns = [_whole([_digit(text, place) for text in texts]) for place in places]
        sqls = [f"CAST(SUBSTRING({sql}, {place}, 1) AS INTEGER)" for place in places]
        return cls(tuple(HiddenNumber(one, 0, 9, column) for one, column in zip(sqls, columns, strict=True)), among)

    def guess(self, rows: NDArray[np.bool_], answers: NDArray[np.float64], method: Method) -> Values:
        """Return the guesses of sums, NaN for none: rows bool[m, n], answers float64[m, parts]."""
        found = [_estimated(part, rows, answers[:, place], method) for place, part in enumerate(self.parts)]
        nearest = [np.clip(np.rint(x), part.lowest, part.highest) for part, x in zip(self.parts, found, strict=True)]
        surety = [0.5 - np.abs(x - near) for x, near in zip(found, nearest, strict=True)]
        return Values(self, np.array(nearest), np.min(surety, axis=0))

    @property
    def baseline(self) -> float:
        """The share that always guessing the most frequent value gets."""
        whole = np.stack([part.truth for part in self.parts], axis=1)
        counts = np.unique(whole, axis=0, return_counts=True)[1]
        return float(counts.max() / counts.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What an attack thinks the numbers are.

    Attributes:
        hidden: the secret.
        numbers: float64[parts, n], the guesses; NaN where there is none.
        surety: float64[n], how sure each is.
    """

    hidden: Hidden
    numbers: NDArray[np.float64]
    surety: NDArray[np.float64]

    def judged(self, attack: str, asked: Conversation, *, started: float, seed: int, least: int) -> AttackResult:
        """Return the result: a guess is right if every part of it is."""
        hits = np.array([guess == part.truth for guess, part in zip(self.numbers, self.hidden.parts, strict=True)])
        guesses = Guesses(np.asarray(hits.all(axis=0)), self.surety, of=np.ones(hits.shape[1], dtype=np.bool_))
        shares = hits.mean(axis=1).tolist()
        result = judged(attack, asked, guesses, started=started, seed=seed, least=least, parts=shares)
        return replace(result, baseline=self.hidden.baseline)


def _estimated(
    part: HiddenNumber, rows: NDArray[np.bool_], answers: NDArray[np.float64], method: Method
) -> NDArray[np.float64]:
    """Return estimates of the numbers, solved for on the scale from 0, the lowest, to 1, the highest."""
    width = max(part.highest - part.lowest, 1)
    return part.lowest + width * solve(rows, (answers - part.lowest * rows.sum(axis=1)) / width, method=method)


def _whole(values: Any) -> NDArray[np.int64]:
    """Return numbers as whole ones, or refuse them."""
    array = np.asarray(values)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise DataError(
            "the secrets are not whole numbers",
            rule="one whole number for each known person",
            got=f"an array of {array.dtype} and shape {array.shape}",
            next_step="round them to a grid, or attack a yes/no question",
        )
    return array.astype(np.int64)


def _digit(text: str, place: int) -> int:
    """Return the digit at a place of a text, counted from 1."""
    found = text[place - 1 : place]
    if place < 1 or not (found.isascii() and found.isdigit()):
        raise DataError(
            "there is no digit at that place",
            rule="every text has a digit at every place, counted from 1",
            got=f"place {place} of a text of {len(text)} letters",
            next_step="leave that place out",
        )
    return int(found)
