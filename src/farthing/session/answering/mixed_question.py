"""Questions with several kinds of aggregates: each kind is asked by itself, and the answers stand side by side.

Counts, sums, means and variances of one question share one pass over the rows and one measurement; a quantile is found
from a histogram of its own. All share one cap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.planning.mixed_question import plan_mixed_question
from farthing.query.aggregates import Quantile
from farthing.session.answering import contribution_report
from farthing.session.answering.answer import answer
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.one_question import ask_one, plan_one, refuse_hopeless
from farthing.session.core.refused import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.planning import Plan
    from farthing.query import Query
    from farthing.release import Answer
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request


def kinds(query: Query) -> tuple[Query, ...]:
    """Return the questions, each of one kind, that a question consists of.

    Equal aggregates under two names are one measurement anyway: they are asked once.
    """
    ranked = [output for output in query.outputs if isinstance(output.aggregate, Quantile)]
    others = tuple(output for output in query.outputs if not isinstance(output.aggregate, Quantile))
    parts = [others] if others else []
    return tuple(replace(query, outputs=part) for part in [*parts, *((output,) for output in ranked)])


def plan(context: Context, query: Query, request: Request) -> Plan:
    """Return the plan of a question, given what was released about it before. Touches no data and is free."""
    request.check(query)
    asked = kinds(query)
    plans = [plan_one(context, part, request.about(part, len(query.outputs)), len(asked)) for part in asked]
    return plans[0] if len(plans) == 1 else plan_mixed_question(query, request.goal(query), plans)


def ask(context: Context, query: Query, request: Request) -> Answer:
    """Answer a question; refuse before anything is charged where not all of it fits."""
    request.check(query)
    asked = kinds(query)
    if len(asked) > 1:
        whole = plan(context, query, request)
        if not whole.fits:
            raise refusal(context, "the question", whole.worst_price, whole.fitting)
        refuse_hopeless(whole, spend=request.spend)
    done = [ask_one(context, part, request.about(part, len(query.outputs)), len(asked)) for part in asked]
    made, outcome = done[0] if len(done) == 1 else _beside(context, query, request, asked, done)
    again = request.without_progress()
    share, warned = contribution_report.kept(context, query, request)
    made = made.with_note(f"note: {warned}") if warned else made
    told = answer(
        context, query, request, made, outcome, refine=lambda **changes: ask(context, query, again.changed(**changes))
    )
    return told if share is None else replace(told, kept=share)


def _beside(
    context: Context, query: Query, request: Request, asked: Sequence[Query], done: Sequence[tuple[Plan, AskOutcome]]
) -> tuple[Plan, AskOutcome]:
    """Return several outcomes about the same groups as one, its columns in the order that was asked."""
    plans, outcomes = zip(*done, strict=True)
    columns = {
        output.name: cells
        for part, outcome in zip(asked, outcomes, strict=True)
        for output, cells in zip(part.outputs, outcome.columns, strict=True)
    }
    price = context.loss(sum(outcome.price.farthings for outcome in outcomes))
    paid = np.array([outcome.paid for outcome in outcomes])
    one = AskOutcome(
        columns=tuple(columns[output.name] for output in query.outputs),
        paid=np.sqrt((paid**2).sum(axis=0)) * (1 + 2.0**-50) if price.parameter == "mu" else paid.sum(axis=0),
        price=price,
        claims=max((outcome.claims for outcome in outcomes), key=sum),
    )
    return plan_mixed_question(query, request.goal(query), plans), one
