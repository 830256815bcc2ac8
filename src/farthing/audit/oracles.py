"""Two tests that need no statistics: neighbours must get equal outcomes, and no interval may be too good for its price.

Both ask a fresh session, `make_session(table)`, on D and on neighbours of it, so they fit any table and any
question; both return findings, and none where the promise holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from farthing.audit.bounds import SLACK
from farthing.audit.findings import Finding
from farthing.audit.outcomes import asked
from farthing.audit.rates import Rates
from farthing.release import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from farthing.audit.outcomes import Outcome
    from farthing.privacy.loss import Loss
    from farthing.session import Session

Table = TypeVar("Table")

NOISY = frozenset({"paid", "spent", "left", "books", "accuracy"})
"""What noise may move where an ask stops by what it sees: relative targets, and means and variances."""


@dataclass(frozen=True, slots=True)
class AuditQuestion:
    """One ask of many that are put to the same two sessions.

    Attributes:
        name: how findings call it, such as its SQL.
        ask: the ask, of a session.
        noisy: parts of `Outcome` that noise decides. They are outputs of the mechanism, to be audited by samples.
    """

    name: str
    ask: Callable[[Session], Any]
    noisy: frozenset[str] = frozenset()


def neighbours(
    make_session: Callable[[Table], Session],
    table: Table,
    neighbour: Table,
    ask: Callable[[Session], Any],
    *,
    question: str = "",
    noisy: frozenset[str] = frozenset(),
) -> tuple[Finding, ...]:
    """Ask the same of two neighbours: everything but the noisy numbers must be equal, to the letter.

    Outcome class, error type and text, columns, rows, price, what is left, the books, quoted accuracy. What differs is
    released without a price. Answers must be finite, too, whatever the rows hold.

    Args:
        make_session: opens a session on a table, with new books.
        table: D.
        neighbour: D without one unit.
        ask: the question, of a session.
        question: its name in findings.
        noisy: parts of `Outcome` that noise decides: `NOISY` where a relative target stops by what it sees.

    Returns:
        A finding for each part that differs.
    """
    sessions = make_session(table), make_session(neighbour)
    return compared(sessions, AuditQuestion(question, ask, noisy))[1]


def all_neighbours(
    make_session: Callable[[Table], Session], table: Table, neighbour: Table, questions: Iterable[AuditQuestion]
) -> tuple[Finding, ...]:
    """Put many questions to the same two sessions, in turn; those with a noisy price to two of their own."""
    sessions = make_session(table), make_session(neighbour)
    found: list[Finding] = []
    for question in questions:
        pair = (make_session(table), make_session(neighbour)) if question.noisy else sessions
        found += compared(pair, question)[1]
    return tuple(found)


def compared(sessions: tuple[Session, Session], question: AuditQuestion) -> tuple[Outcome, tuple[Finding, ...]]:
    """Return what came on the first of two neighbouring sessions, and in what the second differed."""
    here, there = (asked(session, question.ask) for session in sessions)
    wrong = list(here.outcome.differences(there.outcome, but=question.noisy))
    if not (here.finite and there.finite):
        wrong.append("an answer is not finite")
    if here.outcome.kind.startswith("unexpected"):
        wrong.append(f"{here.outcome.kind}: {here.outcome.words}")
    return here.outcome, tuple(Finding("neighbour equality", question.name, what) for what in wrong)


def price_floor(
    make_session: Callable[[Table], Session],
    table: Table,
    smaller: Iterable[tuple[int, Table]],
    ask: Callable[[Session], Answer],
    truth: Callable[[Table], Any],
    *,
    question: str = "",
) -> tuple[Finding, ...]:
    """Refuse an interval that is too good for its price, by brute force: no sampling, no knowledge of the mechanism.

    Where k units fewer move the truth by more than the interval is wide, the interval tells the two tables apart as
    surely as it covers; the ledger must have charged what that costs a group of k.

    Args:
        make_session: opens a session on a table, with new books.
        table: D.
        smaller: (k, D without k units), as many as wanted: all single units, and chains of them.
        ask: the question, with an absolute target or a named loss, so that its intervals have a fixed width.
        truth: the exact answers, groups in the order of the answer; not computed by what is audited.
        question: its name in findings.

    Returns:
        A finding where the price of the first answer column is below the floor, or where no Answer came.

    Guarantee: a finding means that the interval does not cover as stated, or that the loss is above what was charged.
    Proof: docs/proofs/audit.bounds.md.
    Assumes: `truth` is what the intervals are about; on all the tables they are as wide as on the first.
    Rounds: a part in 10^9 is left for double precision.
    """
    session = make_session(table)
    came = asked(session, ask)
    answer = came.result
    if not isinstance(answer, Answer):
        what = f"no answer came whose price could be judged: {came.outcome.kind} {came.outcome.words}"
        return (Finding("price floor", question, what),)
    width = answer.cells.upper - answer.cells.lower
    exact = _numbers(truth(table))
    found: list[Finding] = []
    for units, other in smaller:
        moved = np.abs(exact - _numbers(truth(other)))
        if np.any(moved > width) and (what := _too_cheap(session.spent, answer.confidence, units)):
            farthest = int(np.argmax(moved - width))
            note = f"+-{width[farthest] / 2:.6g} where {units} fewer move the truth by {moved[farthest]:.6g}: {what}"
            found.append(Finding("price floor", question, note))
    return tuple(found[:1])


def floor_of(claim: Loss, confidence: float, units: int = 1) -> float:
    """Return the least that a group of k must pay for an interval that tells it, in the claim's parameter.

    log((1 - b) / b) in epsilon, 2 z in mu and (1 - 2b) log((1 - b) / b) in rho, for a chance b of a miss. A unit pays a
    k-th of it (of rho a k^2-th).

    >>> from farthing import Gdp, Pure, Zcdp
    >>> [f"{floor_of(kind(1), 0.95):.4g}" for kind in (Pure, Gdp, Zcdp)]
    ['2.944', '3.29', '2.65']
    """
    told = Rates.of_interval(confidence).against(claim)
    return told / (units * units if claim.parameter == "rho" else units)


def _too_cheap(spent: Loss, confidence: float, units: int) -> str:
    """Return what is wrong with a price, in words, or "" where it is enough."""
    least = floor_of(spent, confidence, units)
    if spent.value * (1 + SLACK) >= least:
        return ""
    return f"charged {spent.parameter} {spent.value:.6g}, at least {least:.6g} is needed"


def _numbers(values: Any) -> NDArray[np.float64]:
    """Return exact answers as an array of one number a group."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


Question = AuditQuestion
"""The name by which users know it."""
