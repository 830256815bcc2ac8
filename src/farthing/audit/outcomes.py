"""Everything that an ask lets out beside its noisy numbers: class, words, columns, rows, prices, widths."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.chosen import Chosen
from farthing.errors import FarthingError, TargetMissed
from farthing.release import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.session import Session

NEWEST: Final = 4
"""How many entries of the books belong to an outcome: one ask makes one or two."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one ask, apart from the numbers that are noisy.

    Attributes:
        kind: "Answer", "Chosen", another type, or the name of the error: "unexpected ..." where it is not ours.
        words: the text of an error; of an answer what it is about.
        columns: names and types of the answer's columns.
        rows: the keys of its rows, in order; of a choice how many.
        paid: what it says it cost, exactly.
        spent, left: what the session's books say afterwards, exactly.
        accuracy: the widths of its intervals, the confidence and the goal.
        books: the newest entries of the ledger, without times and identities: questions, targets, charges.
    """

    kind: str
    words: str
    columns: str
    rows: str
    paid: str
    spent: str
    left: str
    accuracy: str
    books: str

    def differences(self, other: Outcome, *, but: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return which parts differ from another outcome, in words."""
        return tuple(
            f"{field.name} differs: {_short(mine)} with the unit, {_short(theirs)} without it"
            for field in fields(self)
            if field.name not in but and (mine := getattr(self, field.name)) != (theirs := getattr(other, field.name))
        )


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAsk:
    """An outcome with the object that came, or None where an error did.

    Attributes:
        outcome: what must not depend on anybody's rows.
        result: the Answer, Chosen or plan.
    """

    outcome: Outcome
    result: Any

    @property
    def finite(self) -> bool:
        """Whether all values are numbers; ends of intervals may be infinite, as those of a quotient by nothing are."""
        columns = self.result.columns if isinstance(self.result, Answer) else ()
        return all(
            np.isfinite(cells.value).all() and not np.isnan(cells.upper - cells.lower).any() for cells in columns
        )


def asked(session: Session, ask: Callable[[Session], Any]) -> ObservedAsk:
    """Return what comes of an ask. Errors that are not farthing's own count by their name and text as well."""
    try:
        result = ask(session)
    except TargetMissed as missed:
        return ObservedAsk(_outcome(session, missed.answer, type(missed).__name__), missed.answer)
    except FarthingError as refused:
        return ObservedAsk(_refused(session, refused), None)
    except failures() as failed:
        return ObservedAsk(_refused(session, failed), None)
    return ObservedAsk(_outcome(session, result, type(result).__name__), result)


def failures() -> tuple[type[Exception], ...]:
    """Return what an ask may fail with: farthing's own errors, those of Python, and those of the embedded engine."""
    import duckdb

    wrong = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, RuntimeError, OSError)
    return (FarthingError, *wrong, duckdb.Error)


def _refused(session: Session, error: Exception) -> Outcome:
    """Return the outcome of an error."""
    spent, left, books = _books(session)
    kind = type(error).__name__ if isinstance(error, FarthingError) else f"unexpected {type(error).__name__}"
    return Outcome(kind, str(error), "", "", "", spent, left, "", books)


def _outcome(session: Session, result: Any, kind: str) -> Outcome:
    """Return the outcome of an answer, a choice, or anything else."""
    spent, left, books = _books(session)
    match result:
        case Answer():
            keys = "" if result.keys is None else str(result.keys.to_pylist())
            return Outcome(
                kind,
                result.about,
                str(result.to_arrow().schema),
                keys,
                str(result.paid.amount),
                spent,
                left,
                _widths(result),
                books,
            )
        case Chosen():
            columns, goal = str(result.keys.schema), f"{result.goal}; {result.compared}"
            rows, paid = str(len(result)), str(result.paid.amount)
            return Outcome(kind, result.about, columns, rows, paid, spent, left, goal, books)
    return Outcome(kind, str(result), "", "", "", spent, left, "", books)


def _books(session: Session) -> tuple[str, str, str]:
    """Return what was spent, what is left, and the entries of the books."""
    entries = [
        (entry.label, entry.target, entry.reserved, entry.charged, entry.state) for entry in session.history(NEWEST)
    ]
    return str(session.spent.amount), str(session.remaining.amount), str(entries)


def _widths(answer: Answer) -> str:
    """Return the promise that was quoted: widths of intervals to nine digits, which noise shifts and no more."""
    widths = [[f"{width:.9g}" for width in cells.upper - cells.lower] for cells in answer.columns]
    return f"{widths}; {answer.confidence}; {answer.goal}"


def _short(text: str) -> str:
    """Return a text that fits on a line."""
    return repr(text if len(text) <= 120 else text[:117] + "...")
