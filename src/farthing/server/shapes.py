"""Books and errors as plain values, and all plain values as JSON: the one shape in which they leave the server.

Answers and plans say themselves what they are as plain values (`to_dict`).
"""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any, Final, TypeVar

from farthing.advice import Face, told
from farthing.client import RefusedRequest
from farthing.errors import (
    BudgetExceeded,
    DataError,
    FarthingError,
    Frozen,
    InvalidBounds,
    InvalidBudget,
    InvalidKeys,
    InvalidOption,
    InvalidTarget,
    LedgerError,
    PriceRisen,
    TargetMissed,
    UnsupportedQuery,
)
from farthing.privacy.words import state
from farthing.query.outward import finite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from farthing.ledger.entry import Entry
    from farthing.session import Progress

_LONGEST: Final = 2_000
"""The longest fact of an error, in characters: what was sent is not sent back whole."""

LOG: Final = logging.getLogger("farthing.server")

T = TypeVar("T")

_STATUS: Final[tuple[tuple[type[FarthingError], int], ...]] = (
    (PriceRisen, 409),
    (BudgetExceeded, 402),
    (Frozen, 403),
    (TargetMissed, 409),
    (InvalidTarget, 422),
    (InvalidKeys, 422),
    (InvalidBounds, 422),
    (InvalidBudget, 422),
    (InvalidOption, 422),
    (UnsupportedQuery, 422),
    (LedgerError, 503),
    (DataError, 503),
)
"""The HTTP status of each kind of error; the first that fits."""


def status_of(error: FarthingError) -> int:
    """Return the HTTP status of an error.

    >>> status_of(BudgetExceeded("no")), status_of(RefusedRequest("who are you?", status=401))
    (402, 401)
    """
    if isinstance(error, RefusedRequest):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


FACE: Final = "farthing-face"
"""The header by which a client says in whose words it wants advice; JSON's where it says nothing."""


def face_of(headers: Mapping[str, str]) -> Face:
    """Return the face of a client: Python for sessions of `farthing.connect`, else JSON.

    >>> face_of({"farthing-face": "Python"}), face_of({})
    (<Face.PYTHON: 'Python'>, <Face.HTTP: 'JSON'>)
    """
    return Face.PYTHON if headers.get(FACE) == Face.PYTHON.value else Face.HTTP


def of_error(error: FarthingError, face: Face = Face.HTTP) -> dict[str, Any]:
    """Return an error: its kind and its four facts, none of which depends on a row; advice in the words of a face."""
    ours = isinstance(error, LedgerError | DataError)  # what it got may name a file of ours
    facts = {
        "message": in_words(error, error.what, face),
        "rule": in_words(error, error.rule, face),
        "got": "" if ours else error.got,
        "next": "ask the owner of the server" if ours else in_words(error, error.next_step, face),
    }
    facts = {name: fact if len(fact) <= _LONGEST else f"{fact[:_LONGEST]} ..." for name, fact in facts.items()}
    answer = in_face(error.answer.to_dict(), face) if isinstance(error, TargetMissed) else {}  # it was paid for
    return answer | {"error": {"kind": type(error).__name__} | facts}


WORDED: Final = ("about", "advice", "fitting")
"""The members of a plan and of an answer that advise, in Python's words where they are made."""


def in_face(facts: Mapping[str, Any], face: Face = Face.HTTP) -> dict[str, Any]:
    """Return a plan or an answer with its advice in the words of a face: the one door of what is not an error.

    >>> in_face({"goal": "within 27", "advice": 'absolute=27 fits this cap; cap="all" raises the cap'})
    {'goal': 'within 27', 'advice': '"absolute": 27 fits this cap; "cap": "all" raises the cap'}
    """
    return {name: told(fact, face) if name in WORDED else fact for name, fact in facts.items()}


def in_words(error: FarthingError, text: str, face: Face) -> str:
    """Return a fact of an error in the words of a face; what the server itself refuses speaks of requests already."""
    return text if isinstance(error, RefusedRequest) else told(text, face)


def inside() -> RefusedRequest:
    """Return the one error of whatever goes wrong inside: its cause may hold data."""
    return RefusedRequest(
        "the server could not answer",
        status=500,
        rule="an error inside the server is reported without its cause",
        next_step="ask again; what was measured before is not charged twice",
    )


async def only_ours(work: Awaitable[T]) -> T:
    """Return what work comes to; what fails inside is raised as one constant error, without its cause or context."""
    try:
        return await work
    except FarthingError:
        raise
    except Exception as error:  # noqa: BLE001  # what went wrong inside may hold data: its type is told, to the log
        LOG.error("an error inside: %s", type(error).__name__)  # noqa: TRY400  # a traceback may hold data
    raise inside()


def dumped(value: Any) -> str:
    """Return plain values as JSON: dates and the like as texts, what is not finite as null.

    >>> from datetime import date
    >>> dumped({"day": date(2024, 1, 2), "width": math.inf})
    '{"day": "2024-01-02", "width": null}'
    """
    return json.dumps(finite(value), default=str, allow_nan=False)


def of_progress(progress: Progress, delta: float) -> dict[str, Any]:
    """Return where a refinement stands, from released numbers only."""
    return {
        "look": progress.look,
        "groups": progress.groups,
        "done": progress.done,
        "half_width": progress.half_width if math.isfinite(progress.half_width) else None,
        "furthest": progress.furthest,
        "target": progress.target,
        "paid": None if progress.paid is None else state(progress.paid, delta),
    }


def of_entry(entry: Entry, paid: dict[str, float] | None) -> dict[str, Any]:
    """Return an entry of the books."""
    return {
        "id": entry.id,
        "who": entry.who,
        "question": entry.label,
        "target": entry.target,
        "state": entry.state,
        "paid": paid,
        "opened": entry.opened_at.isoformat(),
        "closed": None if entry.closed_at is None else entry.closed_at.isoformat(),
    }
