"""Charge, look, speak: the one place where data, noise and ledger meet.

Reserve the worst price durably; ask the engine for the exact bounded answers; refine; settle to what was used; then
show. A crash in between leaves the reservation charged, an error too: there is no refund, since an error is an output.
"""

from __future__ import annotations

import time
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.errors import BudgetExceeded
from farthing.planning import Frame, Plan
from farthing.privacy.loss import Pure
from farthing.privacy.words import said
from farthing.query.aggregates import Count, CountUnits, Quantile, Sum
from farthing.session import free
from farthing.session.chained import Chained
from farthing.session.direct import Direct, summed
from farthing.session.jointly import Jointly
from farthing.session.ranked import Ranked
from farthing.session.relative import PREFIX, Relative
from farthing.session.shield import shielded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.accuracy.report import Report
    from farthing.ledger.entry import Receipt
    from farthing.query import Query
    from farthing.session.context import Context
    from farthing.session.method import Method, Outcome
    from farthing.session.request import Request

PATIENCE_S: Final = 30.0
"""How long an ask waits for another live process that is answering the very same question."""

_ASKED: Final[ContextVar[frozenset[str]]] = ContextVar("farthing_asked", default=frozenset())
"""The questions that this thread is in the middle of: it does not wait for itself."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A question, arranged, with what stands in the ledger about it.

    `method` answers it; `sums` is the answer already, where it adds up cells of another question.
    """

    question: str
    query: Query
    version: int
    method: Method
    plan: Plan
    sums: Report | None = None


def plan_one(context: Context, query: Query, request: Request, parts: int = 1) -> Plan:
    """Return the plan of a question of one kind, given what was released about it before.

    Args:
        context: the data and the books.
        query: the question.
        request: the target and the price.
        parts: among how many such questions the cap is shared.
    """
    return _find(context, query, request, parts).plan


def ask_one(context: Context, query: Query, request: Request, parts: int = 1) -> tuple[Plan, Outcome]:
    """Answer a question of one kind at the least loss that reaches its target, and book it.

    Guarantee: what leaves is as private as what the ledger charged: the sum over the ledger bounds the loss of
        everything released, however questions were chosen.
    Proof: mechanisms.gaussian for one run, privacy.filters for the sum; docs/proofs/session.ask.md.
    Assumes: engine and sampler keep their contracts; the ledger is durable.
    Rounds: prices up to whole farthings.
    """
    context.engine.check()
    found = _wait_for_others(context, query, request, parts)
    return found.plan, _told(found) if found.plan.free else _measured(context, found, request)


def _told(found: _Found) -> Outcome:
    """Return the answer that was released before."""
    return found.method.told(found.plan) if found.sums is None else summed(found.plan, found.sums)


def _measured(context: Context, found: _Found, request: Request) -> Outcome:
    """Reserve, measure, settle."""
    receipt = _reserve(context, found)
    asked = _ASKED.set(_ASKED.get() | {found.question})
    try:
        outcome = shielded(found.method.measured, context, found.plan, receipt, request)
        context.ledger.settle(
            receipt, outcome.price.farthings, lambda current: found.method.merged(current, outcome, receipt)
        )
    except BaseException:
        context.ledger.fail(receipt)  # no refund: noise may have been drawn, and the failure itself is an output
        raise
    finally:
        _ASKED.reset(asked)
    return outcome


def _method(query: Query, blob: bytes | None, mechanism: str | None, *, pure: bool) -> Method:
    """Return how a question is answered; `pure` says in which kind of books."""
    if mechanism is not None:
        return Relative.of(query, mechanism, blob)
    match query.outputs:
        case [one] if isinstance(one.aggregate, Count | CountUnits | Sum):
            return Chained.of(query, blob) if pure else Direct.of(query, blob)
        case [one] if isinstance(one.aggregate, Quantile):
            return Ranked.of(query, blob)
        case _:
            return Jointly.of(query, blob)


def _find(context: Context, query: Query, request: Request, parts: int) -> _Found:
    """Load what is known of a question and plan it; look for released cells that answer it where it would cost."""
    query = query.arranged()
    data = context.data(query)
    question = free.identity(data, query.family(), query.canonical())
    if request.mechanism is not None:  # releases of their own, which other questions are not answered from
        question = f"{PREFIX}{request.mechanism}.{question}"
    stored = context.ledger.load(question)
    blob = None if stored is None else stored.blob
    method = _method(query, blob, request.mechanism, pure=context.budget.currency is Pure)
    frame = frame_of(context, query, request, parts)
    own = _Found(question, query, 0 if stored is None else stored.version, method, method.plan(frame))
    if own.plan.free or not isinstance(method, Direct | Chained) or frame.target is None:
        return own
    return next(_free(context, data, own, frame, type(method)), own)


def frame_of(context: Context, query: Query, request: Request, parts: int) -> Frame:
    """Return what the plan of a question begins with."""
    limit = context.budget.loss(request.max_epsilon) if request.max_epsilon is not None else request.cap
    return Frame.of(
        query,
        request=request,
        limit=limit,
        parts=parts * request.shares,
        budget=context.budget,
        remaining=context.loss(context.ledger.remaining),
    )


def _free(context: Context, data: str, own: _Found, frame: Frame, kind: type[Direct | Chained]) -> Iterator[_Found]:
    """Give the ways in which cells of other questions, measured by the same kind of method, answer this one."""
    assert frame.target is not None  # noqa: S101  # a named loss is paid
    made = own.plan
    for other in free.found(context.ledger, data, own.query, context.engine.schema):
        if other.cells.shape[1] == 1:
            method = kind(own.query, None, other.chosen)
            again = method.plan(frame)
            if again.free:
                about = f"{again.about}; taken from groups that were released before"
                yield replace(own, method=method, plan=replace(again, about=about))
            continue
        sums = free.summed(other, frame, made.pricing)
        if sums is not None:
            about = f"{made.about}; each number is a sum of {other.cells.shape[1]:,} groups that were released before"
            width = float((sums.upper - sums.lower).max()) / 2
            zero = context.loss(0)
            free_plan = replace(made, worst_price=zero, fresh_price=zero, free=True, reachable=True)
            yield replace(own, sums=sums, plan=replace(free_plan, about=about, half_width=width))


def _wait_for_others(context: Context, query: Query, request: Request, parts: int) -> _Found:
    """Plan a question, after any live process that is just answering it is done: its answer may serve for free."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = _find(context, query, request, parts)
        if found.plan.free or time.monotonic() > deadline or found.question in _ASKED.get():
            return found
        held = [entry for entry in context.ledger.open_reservations if entry.question == found.question]
        if not any(entry.alive for entry in held):
            return found
        time.sleep(0.02)


def _reserve(context: Context, found: _Found) -> Receipt:
    """Reserve the worst price; say what would fit when it does not."""
    made = found.plan
    increase, fresh = made.worst_price.farthings, made.fresh_price.farthings
    by = f", {found.method.mechanism} noise" if isinstance(found.method, Relative) else ""
    with suppress(BudgetExceeded):
        return context.ledger.reserve(
            increase=increase,
            fresh=max(fresh, increase),
            question=found.question,
            version=found.version,
            label=made.question,
            target=f"{made.goal.removesuffix(' (named)')}, {made.confidence:.4g}{by}",
        )
    raise too_dear(made)


def too_dear(made: Plan) -> BudgetExceeded:
    """Return the refusal of a question that does not fit, with what would."""
    return BudgetExceeded(
        "the question does not fit in the budget" if made.remaining else "the budget is used up",
        needed=made.worst_price,
        left=made.remaining,
        rule="worst price <= what is left; nothing was charged",
        got=f"needs {said(made.worst_price, made.delta)}, left {said(made.remaining, made.delta)}",
        next_step=made.fitting,
    )
