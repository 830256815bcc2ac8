"""Answers, plans, books and errors as plain values: the one shape in which they leave the server."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import (
    BudgetExceeded,
    DataError,
    FarthingError,
    InvalidBounds,
    InvalidBudget,
    InvalidKeys,
    InvalidOption,
    InvalidTarget,
    LedgerError,
    TargetMissed,
    UnsupportedQuery,
)
from farthing.privacy.words import state

if TYPE_CHECKING:
    from farthing.ledger.entry import Entry
    from farthing.planning import Plan
    from farthing.planning.release import ReleasePlan
    from farthing.release import Answer
    from farthing.session import Progress

_STATUS: Final[tuple[tuple[type[FarthingError], int], ...]] = (
    (BudgetExceeded, 402),
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


class RefusedRequest(FarthingError):  # noqa: N818  # as its siblings are named
    """What the server itself refuses: a stranger, a request that cannot be read, too many of them.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, what: str, *, status: int, **facts: Any) -> None:
        self.status = status
        super().__init__(what, **facts)


def status_of(error: FarthingError) -> int:
    """Return the HTTP status of an error.

    >>> status_of(BudgetExceeded("no")), status_of(RefusedRequest("who are you?", status=401))
    (402, 401)
    """
    if isinstance(error, RefusedRequest):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def of_error(error: FarthingError) -> dict[str, Any]:
    """Return an error: its kind and its four facts, none of which depends on a row."""
    facts = {"message": error.what, "rule": error.rule, "got": error.got, "next": error.next_step}
    return {"error": {"kind": type(error).__name__} | facts}


def inside() -> RefusedRequest:
    """Return the one error of whatever goes wrong inside: its cause may hold data."""
    return RefusedRequest(
        "the server could not answer",
        status=500,
        rule="an error inside is told without its cause",
        next_step="ask again; what was measured before is not charged twice",
    )


def of_plan(plan: Plan | ReleasePlan) -> dict[str, Any]:
    """Return a price, before it is paid."""
    return {
        "question": plan.question,
        "goal": plan.goal,
        "confidence": plan.confidence,
        "worst_price": state(type(plan.worst_price).of_farthings(plan.worst_price.farthings), plan.delta),
        "cap": state(plan.cap, plan.delta),
        "remaining": state(plan.remaining, plan.delta),
        "half_width": plan.half_width if math.isfinite(plan.half_width) else None,
        "fits": plan.fits,
        "reachable": plan.reachable,
        "free": plan.free,
        "prices": plan.prices,
        "measured": list(plan.steps),
        "advice": plan.advice,
        "about": plan.about,
    }


def of_answer(answer: Answer) -> dict[str, Any]:
    """Return an answer: its rows, its price, its promise."""
    target = answer.target
    return {
        "answers": answer.rows(),
        "paid": state(answer.paid, answer.delta),
        "remaining": state(answer.remaining, answer.delta),
        "target": None if target is None else asdict(target),
        "goal": answer.goal,
        "confidence": answer.confidence,
        "confidence_together": answer.confidence_together,
        "about": answer.about,
    }


def of_progress(progress: Progress, delta: float) -> dict[str, Any]:
    """Return where a refinement stands, from released numbers only."""
    return {
        "look": progress.look,
        "groups": progress.groups,
        "done": progress.done,
        "half_width": progress.half_width if math.isfinite(progress.half_width) else None,
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
