"""From a question as it is read to its plan or its answer: bounds first, then the keys, then the numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from farthing.errors import TargetMissed
from farthing.query import AutoBounds
from farthing.query.aggregates import Count, CountUnits
from farthing.session import finding, several, shortlist
from farthing.session.ask import refuse_hopeless
from farthing.session.bounds import FOR_NOW, bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.planning import Plan
    from farthing.privacy.budget import Budget
    from farthing.query import Bounds
    from farthing.release import Answer
    from farthing.session.bounds import Read
    from farthing.session.context import Context
    from farthing.session.request import Request
    from farthing.sql.asked import Options


def planned(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Plan:
    """Return the plan of a question; it spends nothing."""
    question, _ = bounded(context, read, given, request, free=True)
    if question.private:
        return finding.plan(context, question, request)
    ordered = shortlist.ordered(context, question, request)
    if ordered is None:
        return several.plan(context, question.query, request)
    found, whole = ordered
    return (found.made if found.cheaper(whole) else whole).told(found.compared(whole))


def answered(context: Context, read: Read, given: Bounds | AutoBounds, request: Request) -> Answer:
    """Answer a question, as HAVING, ORDER BY and LIMIT leave it; the price of chosen bounds is in it."""
    if isinstance(given, AutoBounds):
        _refuse_hopeless(context, read, request)
    question, paid = bounded(context, read, given, request)
    asked = question.asked

    def told(answer: Answer) -> Answer:
        """Return the answer as it is shown."""
        whole = replace(answer, paid=answer.paid + paid) if paid else answer
        return whole if asked is None else whole.arranged(asked.aftermath, asked.columns)

    try:
        if question.private:
            return told(finding.ask(context, question, request))
        ordered = shortlist.ordered(context, question, request)
        if ordered is not None and ordered[0].cheaper(ordered[1]):
            return told(shortlist.ask(context, ordered[0], request, ordered[0].compared(ordered[1])))
        return told(several.ask(context, question.query, request))
    except TargetMissed as missed:
        missed.answer = told(missed.answer)
        raise


def _refuse_hopeless(context: Context, read: Read, request: Request) -> None:
    """Refuse counts that would be out of reach under any bounds, before bounds are chosen."""
    tried = read(FOR_NOW)
    if not tried.private and all(isinstance(output.aggregate, Count | CountUnits) for output in tried.outputs):
        refuse_hopeless(planned(context, read, FOR_NOW, request), request)


def said(options: Options, budget: Budget, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a question is to be answered: what its text says, and over that what its caller says.

    An epsilon in the text is a cap where an accuracy is asked for, and else the price that is named.
    """
    facts = {name: getattr(options, name) for name in ("relative", "absolute", "confidence", "max_epsilon")}
    found = {name: value for name, value in facts.items() if value is not None} | dict(how)
    if options.epsilon is None or "loss" in found or "cap" in found or "max_epsilon" in found:
        return found
    loss = budget.loss(options.epsilon) if options.delta is None else budget.loss_at(options.epsilon, options.delta)
    asked = any(name in found for name in ("relative", "absolute", "rank"))
    return found | ({"cap": loss} if asked else {"loss": loss})
