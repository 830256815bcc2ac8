"""Charge, look, speak: the one place where data, noise and ledger meet.

Reserve the worst price durably; ask the engine for the exact bounded answers; refine; settle to what was used; then
show. A crash in between leaves the reservation charged, an error too: there is no refund, since an error is an output.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.baselines import doubling_cost
from farthing.accuracy.kept import Kept
from farthing.accuracy.report import Report, reported
from farthing.accuracy.schedule import FIRST_GRAINS
from farthing.errors import BudgetExceeded, TargetMissed
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, Coin, GaussianRefinement, Measured, worst_cost
from farthing.mechanisms.geometric import GeometricRelease
from farthing.planning import Plan, Standing, plan
from farthing.privacy.words import said, state
from farthing.release import Answer, Cells
from farthing.session import free
from farthing.session.records import Record, keys_to_bytes
from farthing.session.refine import refine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.engines import Engine
    from farthing.ledger.entry import Receipt, Stored
    from farthing.ledger.store import Ledger
    from farthing.privacy.budget import Budget
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.request import Request

PATIENCE_S: Final = 30.0
"""How long an ask waits for another live process that is answering the very same question."""

_ASKED: Final[ContextVar[frozenset[str]]] = ContextVar("farthing_asked", default=frozenset())
"""The questions that this thread is in the middle of: it does not wait for itself."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every ask of a session shares.

    Attributes:
        engine: the protected table.
        ledger: the books.
        budget: the total, as the owner wrote it.
        data_set: the identity of the data as its owner declares it.
    """

    engine: Engine
    ledger: Ledger
    budget: Budget
    data_set: str

    def loss(self, farthings: int) -> Booked:
        """Return a ledger's farthings as a loss of its currency."""
        return self.budget.currency.of_farthings(farthings)

    def data(self, query: Query) -> str:
        """Return the identity of the bounded data that a question is about: of the rows, and of the hash that cuts."""
        return f"{self.data_set} {self.engine.fingerprint(query)}"

    @property
    def where_kept(self) -> str:
        """Where the books are, in words."""
        path = self.ledger.path
        return "books in memory only, forgotten with the session" if path is None else f"books in {path}"

    def status(self) -> dict[str, Any]:
        """Return the state of the books as plain values."""
        delta = self.budget.report_delta
        spent = self.ledger.spent
        return {
            "budget": self.budget.describe(),
            "unit": self.ledger.terms.unit,
            "ledger": None if self.ledger.path is None else str(self.ledger.path),
            "total": state(self.budget.total, delta),
            "spent": state(self.loss(spent), delta),
            "remaining": state(self.budget.total - self.loss(spent), delta),
            "open": [
                {"label": entry.label, "reserved": state(self.loss(entry.reserved), delta), "pid": entry.pid,
                 "host": entry.host, "alive": entry.alive}
                for entry in self.ledger.open_reservations
            ],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    """A question, arranged, with what stands in the ledger about it.

    `record` is what its answer may be computed from; `sums` is that answer, where it adds up cells of another question.
    """

    question: str
    query: Query
    stored: Stored | None
    record: Record | None
    plan: Plan
    sums: Report | None = None


def plan_for(context: Context, query: Query, request: Request) -> Plan:
    """Return the plan of a question, given what was released about it before."""
    return _find(context, query, request).plan


def ask(context: Context, query: Query, request: Request) -> Answer:
    """Answer a question at the least loss that reaches its target, and book it.

    Guarantee: what leaves is as private as what the ledger charged: the sum over the ledger bounds the loss of
        everything released, however questions were chosen.
    Proof: mechanisms.gaussian for one run, privacy.filters for the sum; docs/proofs/session.ask.md.
    Assumes: engine and sampler keep their contracts; the ledger is durable.
    Rounds: prices up to whole farthings.
    """
    context.engine.check()
    found = _wait_for_others(context, query, request)
    if found.plan.free and found.record is not None:
        measured = found.record.measured if found.sums is None else Measured.nothing(query.groups)
        outcome = _Outcome(measured, measured, context.loss(0), found.sums)
        return _answer(context, query, request, found.plan, outcome)
    receipt = _reserve(context, found, request)
    asked = _ASKED.set(_ASKED.get() | {found.question})
    try:
        outcome = _measure(context, query, request, found, receipt)
        _settle(context, query, found, receipt, outcome)
    except BaseException:
        context.ledger.fail(receipt)  # no refund: noise may have been drawn, and the failure itself is an output
        raise
    finally:
        _ASKED.reset(asked)
    return _answer(context, query, request, found.plan, outcome)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What an ask did: the public state before and after it, and its price."""

    before: Measured
    after: Measured
    price: Booked
    sums: Report | None = None


def _find(context: Context, query: Query, request: Request) -> _Found:
    """Load what is known of a question and plan it; look for released cells that answer it where it would cost."""
    query = query.arranged()
    data = context.data(query)
    question = free.identity(data, query.family(), query.canonical())
    stored = context.ledger.load(question)
    record = None if stored is None else Record.from_bytes(stored.blob)
    own = _Found(question, query, stored, record, _planned(context, query, request, record))
    if own.plan.free or request.target is None:
        return own
    return next(_free(context, data, own, request), own)


def _free(context: Context, data: str, own: _Found, request: Request) -> Iterator[_Found]:
    """Give the ways in which cells of other questions answer this one for nothing."""
    assert request.target is not None  # noqa: S101  # a named loss is paid
    made = own.plan
    for other in free.found(context.ledger, data, own.query, context.engine.schema):
        if other.cells.shape[1] == 1:
            again = _planned(context, own.query, request, other.chosen)
            if again.free:
                taken = replace(again, about=f"{again.about}; taken from groups that were released before")
                yield replace(own, record=other.chosen, plan=taken)
            continue
        sums = free.summed(
            other,
            request.target,
            request.beta(own.query.groups),
            per_grain=None if made.coin is None else made.coin.per_grain,
            sensitivity=own.query.sensitivity,
        )
        if sums is not None:
            about = f"{made.about}; each number is a sum of {other.cells.shape[1]:,} groups that were released before"
            width = float((sums.upper - sums.lower).max()) / 2
            zero = context.loss(0)
            free_plan = replace(made, worst_price=zero, fresh_price=zero, free=True, reachable=True)
            summed = replace(free_plan, about=about, half_width=width)
            yield replace(own, record=other.record, sums=sums, plan=summed)


def _planned(context: Context, query: Query, request: Request, record: Record | None) -> Plan:
    """Plan an arranged question, given what was released about it."""
    standing = None
    if record is not None:
        top = np.sort(record.measured.information)[-query.max_groups :]
        standing = Standing(record.kept, tuple(int(n) for n in top))
    limit = context.budget.loss(request.max_epsilon) if request.max_epsilon is not None else request.cap
    return plan(
        query,
        target=request.target,
        loss=request.loss,
        confidence=request.confidence,
        beta=request.beta(query.groups),
        limit=limit,
        budget=context.budget,
        remaining=context.loss(context.ledger.remaining),
        standing=standing,
    )


def _wait_for_others(context: Context, query: Query, request: Request) -> _Found:
    """Plan a question, after any live process that is just answering it is done: its answer may serve for free."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = _find(context, query, request)
        if found.plan.free or time.monotonic() > deadline or found.question in _ASKED.get():
            return found
        held = [entry for entry in context.ledger.open_reservations if entry.question == found.question]
        if not any(entry.alive for entry in held):
            return found
        time.sleep(0.02)


def _reserve(context: Context, found: _Found, request: Request) -> Receipt:
    """Reserve the worst price; say what would fit when it does not."""
    made = found.plan
    increase, fresh = made.worst_price.farthings, made.fresh_price.farthings
    goal = f"at {made.worst_price!r}" if made.target is None else f"within {made.target}"
    try:
        return context.ledger.reserve(
            increase=increase,
            fresh=max(fresh, increase),
            question=found.question,
            version=0 if found.stored is None else found.stored.version,
            label=made.question,
            target=f"{goal}, {request.confidence:.4g}",
        )
    except BudgetExceeded:
        raise BudgetExceeded(
            "the question does not fit in the budget" if made.remaining else "the budget is used up",
            needed=made.worst_price,
            left=made.remaining,
            rule="worst price <= what is left; nothing was charged",
            got=f"needs {said(made.worst_price, made.delta)}, left {said(made.remaining, made.delta)}",
            next_step=made.fitting,
        ) from None


def _measure(context: Context, query: Query, request: Request, found: _Found, receipt: Receipt) -> _Outcome:
    """Ask the engine, draw noise, and price what was drawn as the receipt says."""
    query = found.query
    truth = context.engine.measure(query, context.ledger.hash_key)[0]
    made = found.plan
    before = Measured.nothing(query.groups) if found.record is None else found.record.measured
    if made.schedule is None or made.coin is None:
        noisy = GeometricRelease(truth, query.sensitivity, query.max_groups).release(made.farthings)
        paid = np.full(query.groups, made.farthings, np.int64)
        return _Outcome(before, Measured(noisy, paid, 0), context.loss(receipt.reserved))
    mechanism = GaussianRefinement(truth, query.sensitivity, query.max_groups)
    after = refine(mechanism, made.schedule, before, request.progress)
    if receipt.exclusive:
        grains = worst_cost(after.information, query.max_groups) - worst_cost(before.information, query.max_groups)
    else:
        grains = worst_cost(after.information - before.information, query.max_groups)
    return _Outcome(before, after, made.coin.loss(grains))


def _settle(context: Context, query: Query, found: _Found, receipt: Receipt, outcome: _Outcome) -> None:
    """Lower the reservation to what was used, and keep the measurements for whoever asks again.

    If others sharpened the question since we read it, they or we paid the full price of measurements that nobody will
    build on. Whoever was charged an increase over a stored record must store its own; else theirs stays, unless ours
    was first in line and is the finer one.
    """
    before = None if found.stored is None else found.stored.blob
    keys = found.query.keys
    listed = b"" if keys is None or query.cuts_groups else keys_to_bytes(keys.table)
    kept = _kept(found.plan)
    blob = Record(outcome.after, kept, "" if keys is None else keys.fingerprint, listed).to_bytes()

    def merge(current: bytes | None) -> bytes:
        if current is None or current == before:
            return blob
        paid_in_full = not receipt.exclusive or receipt.version == 0
        theirs = Record.from_bytes(current).kept
        serves = not receipt.exclusive or theirs.covers(kept.relative, kept.absolute, kept.beta, kept.grains)
        return current if paid_in_full and serves else blob

    context.ledger.settle(receipt, outcome.price.farthings, merge)


def _kept(made: Plan) -> Kept:
    """Return the promise that measurements stopped by this plan keep."""
    if made.schedule is None:
        absolute = made.half_width if made.target is None else made.target.absolute
        return Kept(0.0, absolute, made.half_width, made.beta, 0.0, made.farthings)
    schedule = made.schedule
    return Kept(
        relative=schedule.relative,
        absolute=schedule.absolute,
        floor=schedule.floor,
        beta=made.beta,
        critical=schedule.critical,
        grains=int(schedule.looks[-1]),
        futility=schedule.futility.width if schedule.futility else 0.0,
    )


def _answer(context: Context, query: Query, request: Request, made: Plan, outcome: _Outcome) -> Answer:
    """Return the answer that released measurements give, dropping or raising where targets were missed."""
    report = _report(made, outcome.after) if outcome.sums is None else outcome.sums
    met = report.met if outcome.sums is not None else _met(request, outcome.after.values, report)
    cells = Cells(report.value, report.lower, report.upper, met, _group_paid(made, outcome))
    keys = None if query.keys is None else query.keys.table
    if query.keys is not None and query.keys.order is not None:
        cells = cells.keep(np.argsort(query.keys.order, kind="stable"))  # back into the order that was asked
        met = cells.met
    if request.on_miss == "drop" and keys is not None and not met.all():
        cells, keys = cells.keep(met), keys.filter(met)
    asked = request.without_progress()
    answer = Answer(
        name=query.name,
        keys=keys,
        cells=cells,
        target=request.target,
        confidence=request.confidence,
        paid=context.loss(outcome.price.farthings),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=f"{made.about}; {context.where_kept}",
        _doubling=lambda: None if outcome.sums is not None else _doubling(made, query, outcome.after),
        _refine=lambda **changes: ask(context, query, asked.changed(**changes)),
    )
    if request.on_miss == "raise" and not met.all():
        raise TargetMissed(
            f"{int((~met).sum()):,} of {len(met):,} groups missed the target",
            answer=answer,
            rule='on_miss="raise"; the answer was paid for and is attached as .answer',
            next_step=made.advice or "allow a larger cap, or ask for a larger absolute error",
        )
    return answer


def _report(made: Plan, measured: Measured) -> Report:
    """Return values and intervals of released measurements."""
    if made.schedule is None:
        value = measured.values
        return Report(value, value - made.half_width, value + made.half_width, np.ones(len(value), np.bool_))
    futile = ~made.schedule.stopped(measured.information, measured.values)
    return reported(measured.values, measured.information, made.schedule, futile)


def _met(request: Request, values: Any, report: Report) -> Any:
    """Return which intervals are as narrow as was asked; all of them where a loss was named instead."""
    if request.target is None:
        return np.ones(len(values), np.bool_)
    half = (report.upper - report.lower) / 2
    return half <= np.maximum(request.target.relative * np.abs(values), request.target.absolute) * (1 + 1e-9)


def _group_paid(made: Plan, outcome: _Outcome) -> Any:
    """Return each group's own loss in this ask, as the currency's parameter, rounded up."""
    if made.coin is None:
        paid = outcome.after.information if outcome.price else np.zeros_like(outcome.after.information)
        return paid * 2.0**-40
    gained = (outcome.after.information - outcome.before.information).astype(np.float64) * float(GRAIN)
    parameter = np.sqrt(gained) if made.coin.currency.parameter == "mu" else gained / 2
    return parameter * (1 + 2.0**-50)


def _doubling(made: Plan, query: Query, measured: Measured) -> Booked | None:
    """Return what the doubling baseline would have paid for these released answers."""
    if made.schedule is None or made.coin is None or made.target is None:
        return None
    per_grain = made.coin.per_grain
    cost = doubling_cost(
        np.maximum(measured.values, 0.0),
        made.target.relative,
        made.target.absolute,
        made.beta,
        first=FIRST_GRAINS * per_grain,
        last=int(made.schedule.looks[-1]) * per_grain,
    )
    return Coin(made.coin.currency, 1, 1).loss(
        worst_cost(np.minimum(np.rint(cost / per_grain), MOST_GRAINS).astype(np.int64), query.max_groups)
    )
