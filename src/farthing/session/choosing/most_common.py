"""The largest groups and their numbers: the groups are chosen first, then only those are measured.

Where a unit counts in many groups, releasing the numbers of all is expensive: the price grows with the groups of a
unit. A choice's price does not, and the numbers of the k chosen cost a unit k groups at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.planning.most_common import MostCommonPricing
from farthing.privacy.words import said
from farthing.query import Keys, Schema
from farthing.query.aftermath import Aftermath, Order
from farthing.query.aggregates import Count, CountUnits, Sum
from farthing.query.expressions import Column
from farthing.query.running_total import OverGroups
from farthing.query.words import describe
from farthing.session.answering import mixed_question
from farthing.session.answering.one_question import frame_of, refuse_hopeless
from farthing.session.choosing import top_k
from farthing.session.choosing.top_k import TopKRequest
from farthing.session.core.ceiling import require_below_ceiling
from farthing.session.core.refused import refusal
from farthing.session.reading.reader import CheckedQuestion, kinds_of

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.planning import Plan
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.release import Answer
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request

HALF: Final = 2
"""A choice may cost half of what its question may, the numbers of the chosen groups the other half."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """A question whose k largest groups are chosen first.

    Attributes:
        question: the question on all groups.
        scored: the same, with the aggregate alone that orders the groups.
        wanted: how good the choice is to be.
        stored: the groups of the same choice, made before, or None.
        made: the plan: the choice, then the numbers of k groups.
        choice: the price of the choice; zero where it was made before.
        cap: the most that the choice may cost, or None for all that is left.
        how: the choice in words, with what was compared.
    """

    question: CheckedQuestion
    scored: CheckedQuestion
    wanted: TopKRequest
    stored: pa.Table | None
    made: Plan
    choice: Booked
    cap: Booked | None
    how: str

    def cheaper(self, whole: Plan) -> bool:
        """Return whether it costs less than the numbers of all groups do, and its groups come as near as those do."""
        if self.cap is not None and self.choice > self.cap:
            return False
        near = self.made.half_width <= whole.half_width and math.isfinite(self.made.half_width)
        return self.made.worst_price < whole.worst_price and (self.made.reachable or near)

    def compared(self, whole: Plan) -> str:
        """Return both prices in words."""
        return (
            f"compared: {said(self.made.worst_price, whole.delta)} to choose the first {self.wanted.k} "
            f"({self.how}), {said(whole.worst_price, whole.delta)} for the numbers of all "
            f"{self.question.query.groups:,} groups"
        )


def shortlist(context: Context, question: CheckedQuestion, name: str, k: int, request: Request) -> Shortlist | None:
    """Return the plan to choose the k largest groups by an output and to measure only these.

    None where that cannot be: no absolute target, no count or sum, or k groups are all; or a share of a total, which
    is that of all groups.
    """
    query = question.query
    output = next((output for output in query.outputs if output.name == name), None)
    if output is None or not isinstance(output.aggregate, Count | CountUnits | Sum) or not query.by:
        return None
    if any(isinstance(one.aggregate, OverGroups) for one in query.outputs):
        return None
    target = None if request.mechanism is not None else request.target(name)
    if target is None or not target.absolute or target.confidence <= 0.5 or not 1 <= k < query.groups:
        return None
    wanted = TopKRequest(k, within=target.absolute, confidence=request.confidence)
    scored = CheckedQuestion(replace(query, outputs=(output,)), (output,))
    bought = top_k.offer(context, scored.query.arranged(), wanted)
    stored = top_k.stored_choice(context, scored, wanted)
    assert query.keys is not None  # noqa: S101  # there are groups
    on = _on(context, query, query.keys.table.slice(0, k) if stored is None else stored)
    counted = mixed_question.plan(context, on, _rest(request))
    choice = bought.price if stored is None else context.loss(0)
    numbers = counted.worst_price if stored is not None else max(counted.worst_price, counted.fresh_price)
    cap = frame_of(context, scored.query, _rest(request).about(scored.query, 1), 1).cap
    how = f"{bought.name} for {said(bought.price, counted.delta)}"
    whole = choice + context.loss(numbers.farthings)
    made = replace(
        counted,
        question=f"the {k} largest by {name} of {describe(query)}",
        worst_price=whole,
        fresh_price=whole,
        target_price=None,
        cap=counted.cap + counted.cap,
        free=counted.free and stored is not None,
        pricing=MostCommonPricing(f"the {k} largest by {name}, chosen by {how}", choice, counted.pricing),
    )
    return Shortlist(question, scored, wanted, stored, made, choice, cap, how)


def ordered(context: Context, question: CheckedQuestion, request: Request) -> tuple[Shortlist, Plan] | None:
    """Return the shortlist of SQL that shows the first groups by one number only, beside the plan for all groups.

    None where the text asks for anything else, and where the numbers of all groups are free or chosen to be paid.
    """
    asked = question.asked
    if asked is None or question.private or request.loss is not None:
        return None
    after = asked.aftermath
    if (
        after.having is not None
        or after.comparisons
        or after.limit is None
        or len(after.order) != 1
        or not after.order[0].descending
    ):
        return None
    if not isinstance(after.order[0].key, Column):
        return None
    found = shortlist(context, question, after.order[0].key.name, after.offset + after.limit, request)
    if found is None:
        return None
    whole = mixed_question.plan(context, question.query, request)
    return None if whole.free else (found, whole)


def ask(context: Context, found: Shortlist, request: Request, note: str = "") -> Answer:
    """Choose the groups, then answer the question for these.

    Guarantee: as private as what the ledger charged: for the choice, then for the numbers of the chosen groups.
    Proof: docs/proofs/session.choosing.top_k.md, "Then their numbers".
    Assumes: as `top_k.choose` and `mixed_question.ask`.
    Rounds: prices up to whole farthings.
    """
    request.check(found.question.query)
    refuse_hopeless(found.made, spend=request.spend)
    require_below_ceiling(context, found.made.worst_price)
    if not found.made.fits and not found.made.free:
        raise refusal(context, "the question", found.made.worst_price, found.made.fitting)
    chosen = top_k.choose(context, found.scored, found.wanted, found.cap)
    answer = mixed_question.ask(context, _on(context, found.question.query, chosen.keys), _rest(request))
    words = f"the groups are the {chosen.k} largest, {chosen.goal} beside that of the intervals"
    about = "; ".join([answer.about, words, *([note] if note else [])])
    return replace(answer, paid=answer.paid + chosen.paid, about=about)


def most_common(context: Context, question: CheckedQuestion, k: int, request: Request) -> Answer:
    """Return the k largest groups with their numbers, largest number first."""
    if question.private:
        raise UnsupportedQuery(
            "the most common of groups that are not listed",
            construct='keys="private"',
            rule="the groups are listed",
            got='keys="private"',
            next_step='top_k(..., keys="private", epsilon=0.1) chooses groups; then count with their list as keys',
        )
    (output,) = question.outputs
    target = request.target(output.name)
    if target is None or not target.absolute:
        raise InvalidTarget(
            "the choice has no stated quality or price",
            rule="absolute= says how much less than the k-th largest a chosen group may have",
            got=request.goal(question.query),
            next_step="absolute=50; add relative=0.05 for the numbers of large groups",
        )
    top_k.check(question, TopKRequest(k, within=target.absolute, confidence=request.confidence))
    first = Aftermath(order=(Order(Column(output.name), descending=True),))
    found = shortlist(context, question, output.name, k, request)
    if found is None:
        return mixed_question.ask(context, question.query, request).arranged(first)
    return ask(context, found, request).arranged(first)


def _rest(request: Request) -> Request:
    """Return the request as each half of the question may spend it."""
    return replace(request, shares=request.shares * HALF)


def _on(context: Context, query: Query, keys: pa.Table) -> Query:
    """Return a question on chosen groups."""
    return replace(
        query, keys=Keys.of(query.by, keys.select(list(query.by)), Schema.of(kinds_of(context.engine, query)))
    )
