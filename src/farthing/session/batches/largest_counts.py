"""The largest counts of a workload, picked one by one and each brought to its target, while one loss lasts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.largest_counts import LargestCounts, Picked
from farthing.accuracy.report import reported
from farthing.accuracy.schedule import Schedule
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, Coin, Measured, worst_cost
from farthing.mechanisms.top_k import TopK
from farthing.planning.gaussian_count import coin_of
from farthing.privacy.loss import Gdp, Zcdp
from farthing.privacy.residue import MOST_KAPPA, choice_cost
from farthing.query.aggregates import Count, CountUnits
from farthing.release import Cells
from farthing.session.answering.answer import answer
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.method import AskOutcome
from farthing.session.batches.shared_questions import SharedLossMember, again, mechanism_of, members, name_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, write_blob
from farthing.session.core.transaction import answer_and_book, begin_look, stored_measurement
from farthing.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning import Plan
    from farthing.privacy.loss import Booked
    from farthing.release import Answer
    from farthing.session.batches.draft import Draft
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_FORMAT: Final = b"farthing-largest-1"


def largest(
    context: Context, drafts: Sequence[Draft], plans: Mapping[str, Plan], allowed: Booked | None, *, dry_run: bool
) -> Workload:
    """Bring the largest counts of a workload to their targets, under one loss; see `Session.workload`.

    Guarantee: what leaves is as private as what the ledger charged, which is at most what was allowed.
    Proof: docs/proofs/session.batches.workload.md, "The largest first".
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: prices of picks up to whole grains, the whole up to whole farthings.
    """
    sharing = _members(context, drafts)
    question = name_of(context, sharing, allowed, strategy="largest")
    told: dict[str, Answer] = {}
    paid = context.loss(0)
    if dry_run:
        _LargestCountsJob.of(context, sharing, allowed, stored_measurement(context, question))
    else:
        done = answer_and_book(
            context, question, lambda stored: _LargestCountsJob.of(context, sharing, allowed, stored)
        )
        paid = done.paid
        made = {member.draft.name: _answer_of(context, done, member, plans[member.draft.name]) for member in sharing}
        told = {name: answer for name, answer in made.items() if answer is not None}
    return Workload(
        answers=told,
        unanswered={} if dry_run else {name: plan for name, plan in plans.items() if name not in told},
        plans=plans,
        paid=paid,
        allowed=allowed,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        dry=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _LargestCountsJob:
    """The counts, ready to be picked and measured, as a transaction books them.

    Attributes:
        context: the data and the books.
        members: the questions.
        plan: how the loss is spent.
        coin: how grains turn into loss.
        stored: what was released before, or None.
    """

    context: Context
    members: tuple[SharedLossMember, ...]
    plan: LargestCounts
    coin: Coin
    stored: Picked | None

    @classmethod
    def of(
        cls, context: Context, members: tuple[SharedLossMember, ...], allowed: Booked | None, found: Stored | None
    ) -> _LargestCountsJob:
        """Return the job of some questions, and what the ledger keeps of it."""
        coin = Coin(members[0].frame.gaussian, 1, 1)
        left = context.loss(context.ledger.remaining) if allowed is None else allowed
        limit = min(coin.grains(left), MOST_GRAINS)
        if found is None and limit < len(members):
            raise InvalidTarget(
                "the price allowed is too small to pick anything",
                rule="at least 2^-56 of mu^2 for each question",
                got=repr(left),
                next_step='cap="all", or fewer questions',
            )
        groups = [member.query.groups for member in members]
        made = LargestCounts(
            question=np.repeat(np.arange(len(members)), groups),
            max_groups=tuple(member.query.max_groups for member in members),
            schedules=tuple(_schedule(member, max(limit, 1)) for member in members),
            spread=float(max(member.query.sensitivity for member in members)),
            price=_smoothed_grains if coin.currency is Gdp else _pick_grains,
            residue=_residue if coin.currency is Gdp else lambda _: 0,
            limit=limit,
        )
        return cls(context, members, made, coin, None if found is None else _picked_of(found.blob))

    @property
    def bill(self) -> Bill | None:
        """What is allowed; None where it was spent before."""
        if self.stored is not None:
            return None
        most = self.coin.loss(self.plan.limit)
        return Bill(
            most,
            most,
            f"the largest of {len(self.plan.question):,} counts of {len(self.members)} questions",
            lambda: 'cap="all" spends at most what is left',
            "as many of the largest as can be, each to its target",
            name="the workload",
            looks=True,
        )

    def stored_answer(self) -> _LargestCountsDone:
        """Return what was released before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        return _LargestCountsDone(self, self.stored, self.context.loss(0), new=False)

    def measured(self, receipt: Receipt) -> tuple[_LargestCountsDone, Booked]:
        """Pick and measure, and price what was used."""
        found = _spent(self.context, self, receipt)
        price = self.context.loss(self.coin.loss(found.cost).farthings)
        return _LargestCountsDone(self, found, price, new=True), price

    def merged(self, current: bytes | None, answer: _LargestCountsDone, receipt: Receipt) -> bytes:
        """Return what is kept: what was released first."""
        return merge(current, _blob_of(answer.found), receipt, read=None, full=True)


class _LargestCountsDone(NamedTuple):
    """What was released, of which job, at which price, and whether it was paid for just now."""

    job: _LargestCountsJob
    found: Picked
    paid: Booked
    new: bool


def _members(context: Context, drafts: Sequence[Draft]) -> tuple[SharedLossMember, ...]:
    """Return the questions that share a loss; refuse those that cannot."""
    asking = "counts are refined in Gaussian noise here, and so with a delta > 0"
    return members(context, drafts, _refuse, strategy="largest", purpose="to pick from", asking=asking)


def _refuse(draft: Draft, question: CheckedQuestion) -> None:
    """Refuse a question that is not one count with a target and without a cap of its own."""
    outputs, request = question.outputs, draft.request
    single = len(outputs) == 1 and isinstance(outputs[0].aggregate, Count | CountUnits)
    target = request.target(outputs[0].name) if single else None
    capped = any(limit is not None for limit in (request.cap, request.max_epsilon, request.at_most))
    special = question.private or request.mechanism is not None or request.share < 1 or request.together
    if not single or target is None or special or capped:
        raise UnsupportedQuery(
            f"{draft.name!r} cannot be picked from",
            construct="largest",
            rule="each question is one count, of listed groups if any, with a target and without a cap of its own",
            got=", ".join(str(output.aggregate) for output in outputs),
            next_step="relative=0.1 says how accurate each count must be; or leave strategy= out",
        )


def _schedule(member: SharedLossMember, limit: int) -> Schedule:
    """Return when counts of a question are looked at; each may cost as much as there is."""
    frame, target = member.frame, member.frame.target
    assert target is not None  # noqa: S101  # refused before
    per_grain = coin_of(frame).per_grain
    return Schedule.plan(
        target.relative, target.absolute, frame.beta, per_grain=per_grain, cap_grains=limit, futility=False
    )


@lru_cache(maxsize=4096)
def _pick_grains(epsilon: float, _left: int) -> int:
    """Return the grains, half of rho, that one pick of a bounded range costs in a zCDP ledger, rounded up."""
    return math.ceil(2 * TopK(1, epsilon).price(Zcdp).amount / GRAIN)


def _smoothed_grains(epsilon: float, left: int) -> int:
    """Return the grains of mu squared that one pick of a bounded range takes where so many are left, rounded up.

    Guarantee: the picks and measurements of a run that keeps `_residue` of each pick, or its limit, are worth what is
        charged.
    Proof: docs/proofs/session.batches.workload.md, "The largest first".
    Assumes: `left` is at most what may be spent after the pick, its own price included.
    Rounds: up.
    """
    return math.ceil(choice_cost(Fraction(epsilon), left * Fraction(GRAIN)) / GRAIN)


def _residue(epsilon: float) -> int:
    """Return the grains beyond which what is left changes the price of a pick no more, rounded up."""
    return math.ceil(MOST_KAPPA * Fraction(epsilon) ** 2 / GRAIN)


def _spent(context: Context, job: _LargestCountsJob, receipt: Receipt) -> Picked:
    """Ask the engine once for every question, then pick and measure while the loss lasts."""
    truths = [context.engine.measure(member.query, receipt)[0] for member in job.members]
    scores = np.concatenate(truths)
    mechanisms = [mechanism_of(member.query, truth) for member, truth in zip(job.members, truths, strict=True)]

    def pick(among: Ints, epsilon: float, many: int) -> Ints:
        """Return the places of what one race picks."""
        return among[TopK(many, epsilon).choose(scores[among], int(job.plan.spread), monotone=True)]

    def measure(cell: int, grains: int) -> float:
        """Return a fresh noisy value of one count."""
        number = int(job.plan.question[cell])
        group = np.array([cell - job.members[number].cells.start])
        return float(mechanisms[number].measure(Measured.nothing(1), np.array([grains]), group).values[0])

    def begin(grains: int) -> None:
        """Begin a look: all that was measured then has cost so many grains."""
        begin_look(receipt, job.coin.loss(grains))

    return job.plan.run(pick, measure, begin)


def _answer_of(context: Context, done: _LargestCountsDone, member: SharedLossMember, plan: Plan) -> Answer | None:
    """Return the answer of one question: its counts that were returned; None where none was."""
    job, found = done.job, done.found
    values, grains = found.values[member.cells], found.grains[member.cells]
    returned = np.isin(np.arange(member.cells.start, member.cells.stop), found.order)
    if not returned.any():
        return None
    schedule = job.plan.schedules[int(job.plan.question[member.cells.start])]
    told = reported(values, np.maximum(grains, 1), schedule, ~returned)
    lower, upper = (np.where(returned, end, sign * np.inf) for end, sign in ((told.lower, -1), (told.upper, 1)))
    spent = job.coin.loss(worst_cost(grains, member.query.max_groups))
    outcome = AskOutcome(
        columns=(Cells(told.value, lower, upper, told.met & returned, told.estimate),),
        paid=parameter_of(grains * done.new, spent),
        price=context.loss(spent.farthings if done.new else 0),
    )
    request = replace(member.draft.request.without_progress(), on_miss="drop")
    about = f"{plan.about}; {len(found.order)} counts of {len(job.members)} questions were picked, the largest first"
    made = replace(
        plan, worst_price=job.coin.loss(job.plan.limit), about=f"{about}; what picking cost is not in `paid`"
    )
    return answer(context, member.shown, request, made, outcome, refine=partial(again, context, member, request))


def _blob_of(found: Picked) -> bytes:
    """Return the blob that the ledger keeps."""
    place = np.full(len(found.grains), -1, np.int64)
    place[found.order] = np.arange(len(found.order))
    cost = np.full(len(found.grains), found.cost, np.int64)
    return write_blob({"values": found.values, "grains": found.grains, "place": place, "cost": cost}, {_FORMAT: b"{}"})


def _picked_of(blob: bytes) -> Picked:
    """Return what is in a blob."""
    columns, _ = read_blob(blob, _FORMAT)
    place = columns["place"]
    order = np.argsort(place, kind="stable")[int((place < 0).sum()) :]
    return Picked(columns["values"], columns["grains"], order, int(columns["cost"][0]))
