"""Counts and sums that share one loss, so that the worst of their errors, in targets, is as small as it can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.shared_loss import SharedLoss
from farthing.accuracy.stop_rule import two_sided
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin, Measured
from farthing.planning.gaussian_count import coin_of
from farthing.query.aggregates import Single
from farthing.release import Cells
from farthing.session.answering.answer import answer
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.method import AskOutcome
from farthing.session.batches.shared_questions import SharedLossMember, again, mechanism_of, members, name_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, write_blob
from farthing.session.core.transaction import answer_and_book, begin_look, stored_measurement
from farthing.trace import MOST_GROUPS, TraceLook
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

_FORMAT: Final = b"farthing-together-1"
_COLUMNS: Final = ("values", "grains", "spent")


@dataclass(frozen=True, slots=True, eq=False)
class SharedLossState:
    """What was released of all counts, in the order of the questions.

    Attributes:
        values: float64[counts], the last measurements.
        grains: int64[counts], what these cost; their intervals follow.
        spent: int64[counts], what was spent on each in all.
    """

    values: Floats
    grains: Ints
    spent: Ints


def together(
    context: Context, drafts: Sequence[Draft], plans: Mapping[str, Plan], allowed: Booked | None, *, dry_run: bool
) -> Workload:
    """Spend one loss on the counts and sums of a workload; see `Session.workload`.

    Guarantee: what leaves is as private as what the ledger charged, which is at most what was allowed.
    Proof: docs/proofs/session.batches.workload.md; docs/proofs/accuracy.shared_loss.md for the intervals.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: the price up to whole farthings.
    """
    sharing = _members(context, drafts)
    question = name_of(context, sharing, allowed, strategy="together")
    told, paid = {}, context.loss(0)
    if dry_run:
        _SharedLossJob.of(context, sharing, allowed, stored_measurement(context, question))
    else:
        job, run, paid = answer_and_book(
            context, question, lambda stored: _SharedLossJob.of(context, sharing, allowed, stored)
        )
        for member, seen in zip(sharing, run.looks, strict=True):
            name = member.draft.name
            told[name] = _answer_of(
                context, job, member, plans[name], _SharedLossView(run.state, tuple(seen), new=run.new)
            )
    return Workload(
        answers=told,
        unanswered={},
        plans=plans,
        paid=paid,
        allowed=allowed,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        dry=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _SharedLossJob:
    """The counts, ready to be measured, as a transaction books them.

    Attributes:
        context: the data and the books.
        members: the questions.
        batch: how the loss is spent.
        coin: how grains turn into loss.
        stored: what was released before, or None.
    """

    context: Context
    members: tuple[SharedLossMember, ...]
    batch: SharedLoss
    coin: Coin
    stored: SharedLossState | None

    @classmethod
    def of(
        cls, context: Context, members: tuple[SharedLossMember, ...], allowed: Booked | None, found: Stored | None
    ) -> _SharedLossJob:
        """Return the job of some questions, and what the ledger keeps of it; refuse a loss too small for a look."""
        coin = Coin(members[0].frame.gaussian, 1, 1)
        left = context.loss(context.ledger.remaining) if allowed is None else allowed
        batch = _batch(members, min(coin.grains(left), MOST_GRAINS))
        stored = None if found is None else _state_of(found.blob)
        if stored is None and not batch.first:
            raise InvalidTarget(
                "the price allowed is too small to look at every count",
                rule="at least 2^-47 of mu^2 for each count that a unit can move",
                got=repr(left),
                next_step='cap="all", or fewer counts',
            )
        return cls(context, members, batch, coin, stored)

    @property
    def bill(self) -> Bill | None:
        """What is allowed; None where it was spent before."""
        if self.stored is not None:
            return None
        most = self.coin.loss(self.batch.limit)
        return Bill(
            most,
            most,
            f"{len(self.members)} questions together, {len(self.batch.question):,} counts",
            lambda: 'cap="all" spends at most what is left',
            "the worst error, in targets, as small as can be",
            name="the workload",
            looks=True,
        )

    def stored_answer(self) -> _SharedLossDone:
        """Return what was released before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        none = [list[TraceLook]() for _ in self.members]
        return _SharedLossDone(self, _SharedLossRun(self.stored, none, new=False), self.context.loss(0))

    def measured(self, receipt: Receipt) -> tuple[_SharedLossDone, Booked]:
        """Measure, and price what was used."""
        state, looks = _measured(self.context, self, receipt)
        price = self.context.loss(self.coin.loss(self.batch.cost(state.spent)).farthings)
        return _SharedLossDone(self, _SharedLossRun(state, looks, new=True), price), price

    def merged(self, current: bytes | None, answer: _SharedLossDone, receipt: Receipt) -> bytes:
        """Return what is kept: what was released first."""
        return merge(current, _blob_of(answer.run.state), receipt, read=None, full=True)


class _SharedLossRun(NamedTuple):
    """What was released, the looks of each question, and whether it was paid for just now."""

    state: SharedLossState
    looks: list[list[TraceLook]]
    new: bool


class _SharedLossDone(NamedTuple):
    """A run, its job, and its price."""

    job: _SharedLossJob
    run: _SharedLossRun
    paid: Booked


def _members(context: Context, drafts: Sequence[Draft]) -> tuple[SharedLossMember, ...]:
    """Return the questions that share a loss; refuse those that cannot."""
    asking = "counts share a loss in Gaussian noise, and so with a delta > 0"
    return members(context, drafts, _refuse, strategy="together", purpose="to share a loss", asking=asking)


def _refuse(draft: Draft, question: CheckedQuestion) -> None:
    """Refuse a question with a cap of its own, and one that is not a count or sum with an absolute target."""
    outputs, request = question.outputs, draft.request
    single = len(outputs) == 1 and isinstance(outputs[0].aggregate, Single)
    target = request.target(outputs[0].name) if single else None
    special = question.private or request.mechanism is not None or request.share < 1
    limits = {name: getattr(request, name) for name in ("cap", "max_epsilon", "at_most")}
    given = [f"{name}={limit!r}" for name, limit in limits.items() if limit is not None]
    if given:
        raise InvalidTarget(
            f"{draft.name!r} has a cap of its own",
            rule='with strategy="together" one cap is for all; no question has one to itself',
            got=", ".join(given),
            next_step="drop it from the question, and name cap= or max_epsilon= for the workload",
        )
    if not single or target is None or not target.absolute or special:
        raise UnsupportedQuery(
            f"{draft.name!r} cannot share a loss",
            construct="together",
            rule="each question is one count or sum, of listed groups if any, with a target that has absolute=",
            got=", ".join(str(output.aggregate) for output in outputs),
            next_step="absolute=20 says which errors do not matter; or leave strategy= out",
        )


def _batch(members: Sequence[SharedLossMember], limit: int) -> SharedLoss:
    """Return how so many grains are spent."""
    targets = [member.frame.target for member in members]
    groups = [member.query.groups for member in members]

    def each(values: list[float]) -> Floats:
        """Return a number of each question at each of its counts."""
        return np.repeat(np.array(values, np.float64), groups)

    return SharedLoss(
        question=np.repeat(np.arange(len(members)), groups),
        max_groups=tuple(member.query.max_groups for member in members),
        per_grain=each([coin_of(member.frame).per_grain for member in members]),
        relative=each([0.0 if target is None else target.relative for target in targets]),
        absolute=each([0.0 if target is None else target.absolute for target in targets]),
        critical=each([two_sided(member.frame.beta) for member in members]),
        limit=limit,
    )


def _measured(context: Context, job: _SharedLossJob, receipt: Receipt) -> tuple[SharedLossState, list[list[TraceLook]]]:
    """Ask the engine once for every question, and spend the loss."""
    mechanisms = [mechanism_of(member.query, context.engine.measure(member.query, receipt)[0])
                  for member in job.members]  # fmt: skip
    looks = [list[TraceLook]() for _ in job.members]
    spent = np.zeros(len(job.batch.question), np.int64)

    def measure(cells: Ints, grains: Ints) -> Floats:
        """Begin a look, and return fresh noisy values of some counts."""
        values = np.zeros(len(cells))
        spent[cells] += grains
        begin_look(receipt, job.coin.loss(job.batch.cost(spent)))
        for number in np.unique(job.batch.question[cells]).tolist():
            mine, member = np.flatnonzero(job.batch.question[cells] == number), job.members[number]
            groups = cells[mine] - member.cells.start
            fresh = mechanisms[number].measure(Measured.nothing(len(mine)), grains[mine], groups)
            values[mine] = fresh.values
            if member.query.groups <= MOST_GROUPS:
                half = job.batch.critical[cells[mine]] / np.sqrt(grains[mine] * job.batch.per_grain[cells[mine]])
                ends = (values[mine], values[mine] - half, values[mine] + half)
                paid = parameter_of(spent[cells[mine]], job.coin.loss(0))
                looks[number].append(
                    TraceLook(member.query.outputs[0].name, len(looks[number]) + 1, groups, *ends, paid)
                )
        return values

    return SharedLossState(*job.batch.run(measure)), looks


@dataclass(frozen=True, slots=True, eq=False)
class _SharedLossView:
    """What is told of a run: its state, one question's looks, and whether it was paid for just now."""

    state: SharedLossState
    looks: tuple[TraceLook, ...]
    new: bool


def _answer_of(
    context: Context, job: _SharedLossJob, member: SharedLossMember, plan: Plan, run: _SharedLossView
) -> Answer:
    """Return the answer of one question."""
    part, state = job.batch.of(member.cells), run.state
    values, grains = state.values[member.cells], state.grains[member.cells]
    spent = state.spent[member.cells] * run.new
    half = part.half_widths(grains)
    price = job.coin.loss(part.cost(spent))
    outcome = AskOutcome(
        columns=(Cells(values, values - half, values + half, part.off(values, grains) <= 1),),
        paid=parameter_of(spent, price),
        price=price,
        looks=run.looks,
    )
    request = member.draft.request.without_progress()
    about = f"{plan.about}; one of {len(job.members)} questions that shared a loss"
    made = replace(plan, worst_price=job.coin.loss(job.batch.limit), about=about)
    return answer(context, member.shown, request, made, outcome, refine=partial(again, context, member, request))


def _blob_of(state: SharedLossState) -> bytes:
    """Return the blob that the ledger keeps."""
    return write_blob({name: getattr(state, name) for name in _COLUMNS}, {_FORMAT: b"{}"})


def _state_of(blob: bytes) -> SharedLossState:
    """Return the state in a blob."""
    columns, _ = read_blob(blob, _FORMAT)
    return SharedLossState(*(columns[name] for name in _COLUMNS))
