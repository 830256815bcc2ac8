"""From an outcome to the answer that people see: their order of keys, their terms on misses, the facts beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from farthing.accuracy.claim_chances import together
from farthing.errors import TargetMissed
from farthing.release import Answer, Cells
from farthing.session.answering import optimality
from farthing.session.answering.facts import question_facts
from farthing.trace import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.planning import Plan
    from farthing.query import Query
    from farthing.session.answering.method import AskOutcome
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request
    from farthing.trace import Trace


def answer(
    context: Context,
    query: Query,
    request: Request,
    plan: Plan,
    outcome: AskOutcome,
    *,
    refine: Callable[..., Answer],
) -> Answer:
    """Return the answer of a question, dropping or raising where targets were missed."""
    rows = _in_asked_order(query, plan, outcome, nonnegative=request.nonnegative)
    reached = rows.reached
    said = notes(query, nonnegative=request.nonnegative)
    if request.share == 1 and not reached.all():
        said += _stopped(plan, outcome)
    if request.on_miss == "drop" and rows.keys is not None and not reached.all():
        rows = rows.without_missed()
    told = Answer(
        names=tuple(output.name for output in query.outputs),
        columns=rows.columns,
        keys=rows.keys,
        paid_by_group=rows.paid,
        target=plan.target,
        goal=plan.goal,
        confidence=request.confidence,
        paid=context.loss(outcome.price.farthings),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about="; ".join([plan.about, *said, context.where_kept]),
        _doubling=outcome.doubling,
        _refine=refine,
        _strict=rows.strict,
        _by_size=outcome.strict is not None,
        _optimality=outcome.optimality or partial(optimality.refuse, query),
        _data_set=context.data_set,
        facts=question_facts(context, query, plan, request.confidence),
        _trace=rows.traced,
        _together=together(outcome.claims, request.many(query)) if outcome.claims else None,
    )
    if request.on_miss == "raise" and not reached.all():
        raise TargetMissed(
            f"{int((~reached).sum()):,} of {len(reached):,} groups missed the target",
            answer=told,
            rule='on_miss="raise"; the answer was paid for and is attached as .answer',
            next_step=plan.advice or "allow a larger cap, or ask for a larger absolute error",
        )
    return told


def _in_asked_order(query: Query, plan: Plan, outcome: AskOutcome, *, nonnegative: bool) -> _Rows:
    """Return what was measured in the order of the keys that was asked."""
    columns, paid, strict = outcome.columns, outcome.paid, outcome.strict
    if nonnegative:
        columns = tuple(_nonnegative(cells) for cells in columns)
    if strict is None:
        strict = np.broadcast_to(float(plan.worst_price.value), len(paid))
    keys = None if query.keys is None else query.keys.table
    rows = _Rows(columns, paid, strict, keys, partial(_traced, query, plan.goal, outcome, columns))
    if query.keys is None or query.keys.order is None:
        return rows
    return rows.at(np.argsort(query.keys.order, kind="stable"))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of an answer: numbers, prices, strictest prices, keys, and how to trace their looks."""

    columns: tuple[Cells, ...]
    paid: NDArray[np.float64]
    strict: NDArray[np.float64]
    keys: pa.Table | None
    traced: Callable[[], Trace]

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which rows met every target."""
        return cast("NDArray[np.bool_]", np.logical_and.reduce([cells.met for cells in self.columns]))

    def at(self, places: NDArray[Any]) -> _Rows:
        """Return the rows at some places, or those of a mask; keys stay as they were."""
        columns = tuple(cells.keep(places) for cells in self.columns)
        return replace(self, columns=columns, paid=self.paid[places], strict=self.strict[places])

    def without_missed(self) -> _Rows:
        """Return the rows that met every target."""
        assert self.keys is not None  # noqa: S101  for the type checker: one row without keys is never dropped
        reached = self.reached
        keys = self.keys.filter(reached)
        return replace(self.at(reached), keys=keys, traced=partial(_kept, self.traced, np.flatnonzero(reached), keys))


def _traced(query: Query, goal: str, outcome: AskOutcome, columns: tuple[Cells, ...]) -> Trace:
    """Return every look of an ask, its groups in the order that was asked."""
    made = trace(
        tuple(output.name for output in query.outputs),
        [(cells.value, cells.lower, cells.upper) for cells in columns],
        outcome.paid,
        outcome.looks,
        parameter=outcome.price.parameter,
        goal=goal,
    )
    if query.keys is None:
        return made
    order = query.keys.order
    places = np.arange(query.groups) if order is None else np.argsort(order, kind="stable")
    return made.keep(places, query.keys.table)


def _kept(traced: Callable[[], Trace], places: NDArray[np.int64], keys: pa.Table) -> Trace:
    """Return the rows of some groups."""
    return traced().keep(places, keys)


def notes(query: Query, *, nonnegative: bool) -> list[str]:
    """Return what else must be said of the numbers."""
    found = ["values below zero are shown as zero, which biases totals"] if nonnegative else []
    extremes = {0.0: "the least", 1.0: "the greatest"}
    for output in query.outputs:
        q: Any = getattr(output.aggregate, "q", None)
        if q in extremes:
            found.append(f"{output.name} is a value at about the rank of {extremes[q]}, not that value itself")
    return found


def _stopped(plan: Plan, outcome: AskOutcome) -> list[str]:
    """Return why groups miss their target, or why nothing was charged though they do, in the words of the plan.

    Groups may measure under what another group has cost before: the question is charged for the most expensive one.
    """
    if outcome.price:
        return [plan.advice] if plan.advice and not math.isfinite(plan.half_width) else []
    raising = "; nothing is left" if not plan.remaining else '; a larger cap=, or cap="all", goes on'
    paid = "what the groups that are not met cost so far is all that the cap allows"
    if plan.pricing.gives_up:
        paid = "the groups that are not met were given up, or have paid all that the cap allows"
    happened = "nothing more was charged" if outcome.paid.any() else "nothing was measured"
    return [f"{happened}: {paid}{raising}"]


def _nonnegative(cells: Cells) -> Cells:
    """Return the numbers with all below zero shown as zero."""
    value, lower, upper = (np.maximum(column, 0.0) for column in (cells.value, cells.lower, cells.upper))
    estimate = None if cells.own_estimate is None else np.maximum(cells.own_estimate, 0.0)
    return Cells(value, lower, upper, cells.met, estimate)
