"""The order of charge, look, speak, and what the books must never do: forget, refund, overdraw, or sell twice."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.audit.bounds import SLACK
from farthing.audit.findings import Finding
from farthing.errors import BudgetExceeded, TargetMissed
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.release import Answer
    from farthing.session import Progress

ROWS: Final = 200


class _Stopped(Exception):  # noqa: N818  # it is not an error: the caller stops listening
    """Raised by a caller who has seen enough."""


def books() -> tuple[Finding, ...]:
    """Check the books of fresh sessions by what can be seen of them from outside.

    Charged before the first look; kept when the caller breaks off or the target is missed; nothing for a refusal; no
    sum of charges beyond the budget; the same answer again, free; a sharper one for the difference; a ledger file
    that remembers, whoever opens it.
    """
    checks: tuple[Callable[[], str], ...] = (
        charged_first,
        kept_when_stopped,
        kept_when_missed,
        refused_for_nothing,
        never_overdrawn,
        the_same_again,
        sharper_for_the_difference,
        remembered,
    )
    return tuple(Finding("books", check.__name__, what) for check in checks if (what := check()))


def charged_first() -> str:
    """By the time the caller sees anything, the books hold at least what it costs in the end."""
    session, seen = _session(), []

    def look(_: Progress) -> None:
        """Note what the books say."""
        seen.append(session.spent)

    answer = _refined(session, look)
    if not seen or not all(answer.paid <= spent for spent in seen):
        return f"the first look saw {seen[0] if seen else 'nothing'} charged, the answer cost {answer.paid!r}"
    return "" if session.spent == answer.paid else f"spent {session.spent!r}, told {answer.paid!r}"


def kept_when_stopped() -> str:
    """A caller who breaks off after a look does not get the money back."""
    session = _session()

    def look(_: Progress) -> None:
        """Break off."""
        raise _Stopped

    try:
        _refined(session, look)
    except _Stopped:
        return "" if session.spent else "a look was had free of charge"
    return "an error of the caller was swallowed"


def kept_when_missed() -> str:
    """An answer that comes as an error costs what an answer costs."""
    session = _session()
    try:
        session.count(absolute=4, relative=0.001, cap=Gdp(0.3), on_miss="raise")
    except TargetMissed as missed:
        paid = missed.answer.paid
        return "" if paid and session.spent == paid else f"spent {session.spent!r} for an answer of {paid!r}"
    return "a target that cannot be met was met"


def refused_for_nothing() -> str:
    """What does not fit is refused, and costs nothing."""
    session = _session()
    try:
        session.count(loss=Gdp(2))
    except BudgetExceeded:
        return f"a refusal cost {session.spent!r}" if session.spent else ""
    return "twice the budget was granted"


def never_overdrawn() -> str:
    """Fresh questions are answered until the budget is gone, and not one longer."""
    session = _session()
    granted = 0
    try:
        for place in range(12):
            session.count(where=f"x > {place}", loss=Gdp(0.5))
            granted += 1
    except BudgetExceeded:
        spent = session.spent
        return "" if granted == 4 and spent <= Gdp(1) else f"{granted} of 4 answers fitted, spent {spent!r}"
    return "12 answers at mu 0.5 fitted in mu 1"


def the_same_again() -> str:
    """The same question gives the same answer, free of charge."""
    session = _session()
    first, again = (session.count(absolute=10, cap="all") for _ in range(2))
    if first.value == again.value and not again.paid and session.spent == first.paid:
        return ""
    return f"{first.value} for {first.paid!r}, then {again.value} for {again.paid!r}"


def sharper_for_the_difference() -> str:
    """A coarse answer and its refinement cost together what the sharp one costs at once, no less."""
    session, fresh = _session(), _session()
    coarse = session.count(absolute=20, cap="all")
    sharp = coarse.refine(absolute=5)
    at_once = fresh.count(absolute=5, cap="all").paid
    if session.spent == coarse.paid + sharp.paid and at_once.value <= session.spent.value * (1 + SLACK):
        return ""
    return f"{coarse.paid!r} and {sharp.paid!r} booked as {session.spent!r}, at once {at_once!r}"


def remembered() -> str:
    """A ledger file remembers what was spent; who opens it again has what is left and no more."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit.ledger"
        with _session(path) as one:
            one.count(loss=Gdp(0.8))
            spent = one.spent
        with _session(path) as two, _session(path) as three:
            if two.spent != spent:
                return f"spent {spent!r}, remembered {two.spent!r}"
            two.count(where="x > 1", loss=Gdp(0.5))
            try:
                three.count(where="x > 2", loss=Gdp(0.5))
            except BudgetExceeded:
                return ""
    return "two sessions on one ledger spent more than its budget"


def _session(ledger: Path | None = None) -> Session:
    """Open a session on a column of numbers, with mu 1 to spend."""
    import pyarrow as pa

    return Session(pa.table({"x": list(range(ROWS))}), budget=Budget(mu=1), ledger=ledger)


def _refined(session: Session, look: Callable[[Progress], None]) -> Answer:
    """Ask for a count that is looked at several times."""
    options: dict[str, Any] = {"relative": 0.05, "absolute": 3, "cap": "all"}
    return session.count(progress=look, **options)
