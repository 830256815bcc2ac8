"""Questions with several kinds of aggregates: each kind is asked by itself, and the answers stand side by side.

Counts, sums, means and variances of one question share one pass over the rows and one measurement; a quantile is found
from a histogram of its own, and several quantiles of one column by rank together, from one. A share of a total is
measured beside what is asked with it. All share one cap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.planning.joint_quantiles import MOST, cheaper_together
from farthing.planning.mixed_question import plan_mixed_question
from farthing.query.aggregates import Quantile
from farthing.query.running_total import OverGroups
from farthing.session.answering import contribution_report
from farthing.session.answering.answer import answer
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.one_question import ask_one, frame_of, is_kept, plan_one, refuse_hopeless
from farthing.session.core.refused import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.planning import Plan
    from farthing.query import NamedAggregate, Query
    from farthing.release import Answer, Cells
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request


def kinds(context: Context, query: Query, request: Request) -> tuple[Query, ...]:
    """Return the questions, each of one kind, that a question consists of.

    Equal aggregates under two names are one measurement anyway: they are asked once.
    """
    others = tuple(output for output in query.outputs if not isinstance(output.aggregate, Quantile | OverGroups))
    parts = [replace(query, outputs=others)] if others else []
    parts += [replace(query, outputs=(one,)) for one in query.outputs if isinstance(one.aggregate, OverGroups)]
    columns: dict[str, list[NamedAggregate]] = {}
    for output in query.outputs:
        if isinstance(output.aggregate, Quantile):
            columns.setdefault(replace(output.aggregate, q=0.5).canonical(), []).append(output)
    for ranked in columns.values():
        parts += _of_one_column(context, replace(query, outputs=tuple(ranked)), request)
    return tuple(parts)


def _of_one_column(context: Context, query: Query, request: Request) -> list[Query]:
    """Return the questions that quantiles of one column consist of: what was asked alone before and still serves is
    told again, the rest is asked together where that is cheaper. The same one twice, at one target, is asked once.
    """
    asked = {(output.aggregate.canonical(), request.rank_of(output.name)): output for output in query.outputs}
    outputs = sorted(asked.values(), key=lambda output: getattr(output.aggregate, "q", 0.0))
    parts = [replace(query, outputs=tuple(outputs[start : start + MOST])) for start in range(0, len(outputs), MOST)]
    return [one for part in parts for one in _of_a_few(context, part, request.about(query, len(query.outputs)))]


def _of_a_few(context: Context, whole: Query, request: Request) -> list[Query]:
    """Return the questions that a few quantiles of one column consist of."""
    each = [replace(whole, outputs=(output,)) for output in whole.outputs]
    if not _together(context, whole, request):
        return each
    if is_kept(context, whole):
        return [whole]
    alone = [one for one in each if plan_one(context, one, request.about(one, request.numbers)).free]
    others = [one for one in each if one not in alone]
    rest = replace(whole, outputs=tuple(one.outputs[0] for one in others))
    return [*alone, rest] if others and _together(context, rest, request) else [*alone, *others]


def _together(context: Context, query: Query, request: Request) -> bool:
    """Return whether different quantiles of one column are cheaper together."""
    names = {output.aggregate.canonical() for output in query.outputs}
    if len(names) < len(query.outputs) or request.loss is not None or request.mechanism is not None:
        return False
    return cheaper_together(frame_of(context, query, request.about(query, request.numbers), 1))


def plan(context: Context, query: Query, request: Request) -> Plan:
    """Return the plan of a question, given what was released about it before. Touches no data and is free."""
    request.check(query)
    asked = kinds(context, query, request)
    plans = [plan_one(context, part, request.about(part, len(query.outputs)), len(asked)) for part in asked]
    return plans[0] if len(plans) == 1 else plan_mixed_question(query, request.goal(query), plans)


def ask(context: Context, query: Query, request: Request) -> Answer:
    """Answer a question; refuse before anything is charged where not all of it fits."""
    request.check(query)
    asked = kinds(context, query, request)
    if len(asked) > 1:
        whole = plan(context, query, request)
        if not whole.fits:
            raise refusal(context, "the question", whole.worst_price, whole.fitting)
        refuse_hopeless(whole, spend=request.spend)
    done = [ask_one(context, part, request.about(part, len(query.outputs)), len(asked)) for part in asked]
    columns = _columns(query, request, asked, [outcome for _, outcome in done])
    made, outcome = done[0] if len(done) == 1 else _beside(context, query, request, done)
    outcome = replace(outcome, columns=columns)
    again = request.without_progress()
    share, warned = contribution_report.kept(context, query, request)
    made = made.with_note(f"note: {warned}") if warned else made
    told = answer(
        context, query, request, made, outcome, refine=lambda **changes: ask(context, query, again.changed(**changes))
    )
    return told if share is None else replace(told, kept=share)


def _columns(
    query: Query, request: Request, asked: Sequence[Query], outcomes: Sequence[AskOutcome]
) -> tuple[Cells, ...]:
    """Return the columns of several outcomes in the order that was asked; what was asked once is told of each name."""
    found = {
        _same(output, request): cells
        for part, outcome in zip(asked, outcomes, strict=True)
        for output, cells in zip(part.outputs, outcome.columns, strict=True)
    }
    return tuple(found[_same(output, request)] for output in query.outputs)


def _same(output: NamedAggregate, request: Request) -> object:
    """Return what outputs have in common that are asked once: a quantile and its rank target; else the name."""
    if isinstance(output.aggregate, Quantile):
        return output.aggregate.canonical(), request.rank_of(output.name)
    return output.name


def _beside(
    context: Context, query: Query, request: Request, done: Sequence[tuple[Plan, AskOutcome]]
) -> tuple[Plan, AskOutcome]:
    """Return several outcomes about the same groups as one."""
    plans, outcomes = zip(*done, strict=True)
    price = context.loss(sum(outcome.price.farthings for outcome in outcomes))
    paid = np.array([outcome.paid for outcome in outcomes])
    one = AskOutcome(
        columns=(),
        paid=np.sqrt((paid**2).sum(axis=0)) * (1 + 2.0**-50) if price.parameter == "mu" else paid.sum(axis=0),
        price=price,
        claims=max((outcome.claims for outcome in outcomes), key=sum),
    )
    return plan_mixed_question(query, request.goal(query), plans), one
