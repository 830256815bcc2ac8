"""A question of one kind: what stands about it, its plan, and its answer, which a transaction books."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

from farthing.accuracy.claim_chances import holds, next_chance
from farthing.errors import InvalidTarget, OutOfReach
from farthing.planning import Frame, Plan
from farthing.planning.gaussian_count import GaussianCountPricing
from farthing.planning.laplace_count import LaplaceCountPricing
from farthing.privacy.loss import Pure
from farthing.privacy.words import said
from farthing.query.aggregates import Quantile, Single
from farthing.query.running_total import OverGroups, RunningTotal
from farthing.session.answering import reuse
from farthing.session.answering.facts import question_facts
from farthing.session.answering.gaussian_count import GaussianCountMethod, summed
from farthing.session.answering.joint_chains import JointChainsMethod
from farthing.session.answering.joint_measures import JointMeasuresMethod
from farthing.session.answering.joint_quantiles import JointQuantilesMethod
from farthing.session.answering.laplace_count import LaplaceCountMethod
from farthing.session.answering.laplace_measures import LaplaceMeasuresMethod
from farthing.session.answering.laplace_running_total import LaplaceRunningTotalMethod
from farthing.session.answering.looks import in_looks
from farthing.session.answering.method import P
from farthing.session.answering.quantile import QuantileMethod
from farthing.session.answering.relative_count import PREFIX, RelativeCountMethod
from farthing.session.answering.share_of_total import ShareOfTotalMethod, refuse_pure_parts
from farthing.session.core.booked_question import Bill
from farthing.session.core.records import claims_of, with_claims
from farthing.session.core.refused import refusal
from farthing.session.core.transaction import answer_and_book, charged_fresh, stored_measurement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.accuracy.report import IntervalReport
    from farthing.ledger.entry import Receipt, Stored
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.answering.method import AnswerMethod, AskOutcome
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request


@dataclass(frozen=True, slots=True)
class _ArrangedQuestion:
    """A question of one kind, arranged.

    Attributes:
        context: the data and the books.
        query: the question, arranged.
        request: the target and the price.
        parts: among how many such questions the cap is shared.
    """

    context: Context
    query: Query
    request: Request
    parts: int

    @property
    def question(self) -> str:
        """Its identity in the ledger."""
        identity = reuse.identity(self.context.data(self.query), self.query.family(), self.query.canonical())
        if self.request.mechanism is None:
            return identity
        return f"{PREFIX}{self.request.mechanism}.{identity}"  # which other questions are not answered from


@dataclass(frozen=True, slots=True)
class _PlannedQuestion(Generic[P]):
    """A question with what stands in the ledger about it, as a transaction books it.

    `method` answers it; `sums` is the answer already, where it adds up cells of another question. `kept` says whether
    the ledger has a record of it. `claims` are the chances of a miss of what the question has shown, `beta` that of
    what it shows next.
    """

    asked: _ArrangedQuestion
    method: AnswerMethod[P]
    plan: Plan[P]
    kept: bool = False
    claims: tuple[float, ...] = ()
    beta: float = 0.0
    sums: IntervalReport | None = None

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged; None if there is nothing. Refused where all of it would buy no group its target."""
        made = self.plan
        if made.free:
            return None
        if not made.remaining:
            raise refusal(self.asked.context, made.question, made.worst_price, made.fitting)
        if made.fits:
            refuse_hopeless(made, spend=self.asked.request.spend)
        by = f", {self.method.mechanism} noise" if isinstance(self.method, RelativeCountMethod) else ""
        return Bill(
            made.worst_price,
            made.fresh_price,
            made.question,
            lambda: made.fitting,
            f"{made.goal.removesuffix(' (named)')}, {made.confidence:.4g}{by}",
            looks=in_looks(made.pricing),
        )

    def stored_answer(self) -> tuple[Plan[P], AskOutcome]:
        """Return the answer that was released before."""
        told = self.method.stored_answer(self.plan) if self.sums is None else summed(self.plan, self.sums)
        *before, last = self.claims or (0.0,)
        own = self.kept and self.sums is None
        return self.plan, replace(told, claims=(*before, max(last, self.beta)) if own else (*self.claims, self.beta))

    def measured(self, receipt: Receipt) -> tuple[tuple[Plan[P], AskOutcome], Booked]:
        """Measure, under a receipt."""
        outcome = self.method.measured(self.asked.context, self.plan, receipt, self.asked.request.progress)
        return (self.plan, replace(outcome, claims=(*self.claims, self.beta))), outcome.price

    def merged(self, current: bytes | None, answer: tuple[Plan, AskOutcome], receipt: Receipt) -> bytes:
        """Return what the ledger is to keep."""
        kept = self.method.merged(current, answer[1], receipt)
        facts = question_facts(self.asked.context, self.asked.query, self.plan, self.asked.request.confidence)
        return with_claims(kept, (*(claims_of(current) or self.claims), self.beta), facts)


def plan_one(context: Context, query: Query, request: Request, parts: int = 1) -> Plan:
    """Return the plan of a question of one kind, given what was released about it before.

    Args:
        context: the data and the books.
        query: the question.
        request: the target and the price.
        parts: among how many such questions the cap is shared.
    """
    asked = _ArrangedQuestion(context, query.arranged(), request, parts)
    return _find(asked, stored_measurement(context, asked.question)).plan


def is_kept(context: Context, query: Query) -> bool:
    """Return whether the ledger keeps what was measured of a question of one kind."""
    query = query.arranged()
    identity = reuse.identity(context.data(query), query.family(), query.canonical())
    return stored_measurement(context, identity) is not None


def plan_afresh(context: Context, query: Query, request: Request, parts: int = 1) -> Plan:
    """Return the plan of a question of one kind as if nothing had been released about it."""
    method = _method(query, None, request.mechanism, pure=context.budget.currency is Pure)
    return method.plan(frame_of(context, query, request, parts))


def refuse_hopeless(made: Plan, *, spend: bool) -> None:
    """Refuse a question whose target no group can meet under its cap, unless it is to be paid for nevertheless."""
    if made.hopeless and not spend:
        raise OutOfReach(
            "the target is out of reach under the cap of the question",
            needed=made.worst_price if made.target_price is None else made.target_price,
            left=made.cap,
            rule="nothing is paid for a target that no group can meet; nothing was charged",
            got=f"{made.goal}, {made.confidence:.4g} confidence, at most {said(made.cap, made.delta)}",
            next_step=made.advice,
        )


def ask_one(context: Context, query: Query, request: Request, parts: int = 1) -> tuple[Plan, AskOutcome]:
    """Answer a question of one kind at the least loss that reaches its target, and book it.

    Guarantee: what leaves is as private as what the ledger charged: the sum over the ledger bounds the loss of
        everything released, however questions were chosen.
    Proof: mechanisms.gaussian for one run, privacy.filters for the sum; docs/proofs/session.answering.one_question.md.
    Assumes: engine and sampler keep their contracts; the ledger is durable.
    Rounds: prices up to whole farthings.
    """
    asked = _ArrangedQuestion(context, query.arranged(), request, parts)
    return answer_and_book(context, asked.question, lambda stored: _find(asked, stored))


def _method(  # noqa: PLR0911  # one a kind of question
    query: Query, blob: bytes | None, mechanism: str | None, *, pure: bool
) -> AnswerMethod[Any]:
    """Return how a question is answered; `pure` says in which kind of books."""
    if mechanism is not None:
        return RelativeCountMethod.of(query, mechanism, blob)
    match query.outputs:
        case [one] if isinstance(one.aggregate, OverGroups) and not pure:
            return ShareOfTotalMethod.of(query, blob)
        case [one] if isinstance(one.aggregate, RunningTotal):
            refuse_pure_parts(query)
            return LaplaceRunningTotalMethod.of(query, blob)
        case [one] if isinstance(one.aggregate, Single):
            return LaplaceCountMethod.of(query, blob) if pure else GaussianCountMethod.of(query, blob)
        case [one] if isinstance(one.aggregate, Quantile):
            return QuantileMethod.of(query, blob)
        case outputs if all(isinstance(one.aggregate, Quantile) for one in outputs):
            return JointChainsMethod.of(query, blob) if pure else JointQuantilesMethod.of(query, blob)
        case _:
            return LaplaceMeasuresMethod.of(query, blob) if pure else JointMeasuresMethod.of(query, blob)


def _find(asked: _ArrangedQuestion, stored: Stored | None) -> _PlannedQuestion[Any]:
    """Plan a question under what is known of it; look for released cells that answer it where it would cost."""
    context, query, request = asked.context, asked.query, asked.request
    blob = None if stored is None else stored.blob
    method = _method(query, blob, request.mechanism, pure=context.budget.currency is Pure)
    began = frame_of(context, query, request, asked.parts)
    began = began.of_leavings if stored is None else began
    claims = _claims(context, asked.question, blob, began)
    frame, made = _chosen(method, began, claims, together=request.together)
    fresh = made.worst_price != made.fresh_price and charged_fresh(context, asked.question)
    if fresh:
        if isinstance(method, LaplaceCountMethod | LaplaceMeasuresMethod):
            again: AnswerMethod[Any] = method.anew  # a chain is carried on by whoever holds it alone
            method = again  # so what stands is no use to this line
            frame, made = _chosen(again, began, claims, together=request.together)
        elif began.cap is None and made.fresh_price.farthings > began.remaining.farthings:
            whole = replace(began, cap=began.remaining)  # what was paid before is no part of it
            frame, made = _chosen(method, whole, claims, together=request.together)
        made = replace(made, worst_price=made.fresh_price)
    own = _PlannedQuestion(asked, method, made, stored is not None, claims, frame.beta)
    if made.free:
        return own
    if isinstance(method, GaussianCountMethod | LaplaceCountMethod) and not (frame.target is None or request.together):
        known = next(_free(own, frame, type(method)), None)
        if known is not None:
            return known
    if isinstance(made.pricing, GaussianCountPricing | LaplaceCountPricing):
        _require_within_cap(began, made, stands=0 if fresh else made.pricing.stands.farthings)
    return own


def _require_within_cap(frame: Frame, made: Plan, *, stands: int) -> None:
    """Refuse what could cost more than its cap, given the farthings that its question has cost so far.

    Looks go on to where the earlier ones ended at the latest, also under a smaller cap: intervals are made for that.
    """
    if frame.cap is None or made.free or not made.worst_price:
        return
    most = stands + made.worst_price.farthings
    if most > frame.cap.farthings + 1:  # the two were rounded up apart
        raise InvalidTarget(
            "the price allowed is less than a sharper answer can cost from what stands",
            rule="a cap counts what a question has cost before, and looks go on to where earlier ones ended: "
            f"up to {said(frame.budget.currency.of_farthings(most), made.delta)}",
            got=f"at most {said(frame.cap, made.delta)}",
            next_step='max_epsilon= or cap="all" raises the cap; what was asked before is free',
        )


def _claims(context: Context, question: str, blob: bytes | None, frame: Frame) -> tuple[float, ...]:
    """Return the chances of a miss of the claims that a question made; a record that does not tell is of a ledger whose
    entries do: every one of them counts as a claim at the present chance.
    """
    claims = claims_of(blob)
    if claims is not None:
        return claims
    return (frame.beta,) * max(1, sum(entry.question == question for entry in context.ledger.entries()))


def _chosen(
    method: AnswerMethod[P], frame: Frame, claims: tuple[float, ...], *, together: bool
) -> tuple[Frame, Plan[P]]:
    """Return the frame at the chance of a miss that the next claim has, and its plan.

    Where all claims have to hold together, the one that stands is told again if it serves; else the next one takes its
    part of what is left of the chance.
    """
    if not together:
        return frame, method.plan(frame)
    if claims and holds(claims, frame.beta):
        standing = replace(frame, beta=claims[-1])
        made = method.plan(standing)
        if made.free:
            return standing, made
    frame = replace(frame, beta=next_chance(claims, frame.beta))
    return frame, method.plan(frame)


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


def _free(
    own: _PlannedQuestion[Any], frame: Frame, kind: type[GaussianCountMethod | LaplaceCountMethod]
) -> Iterator[_PlannedQuestion[Any]]:
    """Give the ways in which cells of other questions, measured by the same kind of method, answer this one."""
    assert frame.target is not None  # noqa: S101  # a named loss is paid
    made, context, query = own.plan, own.asked.context, own.asked.query
    for other in reuse.found(context, query):
        if other.cells.shape[1] == 1:
            method = kind(query, None, other.chosen)
            again = method.plan(frame)
            if again.free:
                about = f"{again.about}; taken from groups that were released before"
                yield replace(own, method=method, plan=replace(again, about=about))
            continue
        sums = reuse.summed(other, frame, made.pricing)
        if sums is not None:
            about = f"{made.about}; each number is a sum of {other.cells.shape[1]:,} groups that were released before"
            width = float((sums.upper - sums.lower).max()) / 2
            zero = context.loss(0)
            free_plan = replace(made, worst_price=zero, fresh_price=zero, free=True, reachable=True)
            yield replace(own, sums=sums, plan=replace(free_plan, about=about, half_width=width))
