"""The largest groups in the right order, with their numbers: only groups whose place is not settled are refined."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from farthing.accuracy.ranking import RankingContest
from farthing.chosen import Ranking
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.mechanisms.gaussian import worst_cost
from farthing.privacy import Pure
from farthing.privacy.words import said
from farthing.query.aggregates import Count, CountUnits, Sum
from farthing.query.words import about
from farthing.session.answering import reuse
from farthing.session.answering.bounds import bounded
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.one_question import frame_of
from farthing.session.choosing.ranking_noise import noise_of
from farthing.session.choosing.ranking_record import blob_of, standing_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.transaction import answer_and_book, charged_fresh

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.ranking import RankingState
    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning import Frame
    from farthing.privacy.loss import Booked
    from farthing.query import AutoBounds, Bounds, Query
    from farthing.session.answering.bounds import Read
    from farthing.session.choosing.ranking_noise import GaussianNoise, LaplaceNoise, Lead
    from farthing.session.choosing.ranking_record import RankingRequest
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request
_TERMS: Final = {"k": "k", "confidence": "confidence", "apart": "apart", "apart_relative": "relative"}
"""What may be changed of a ranking, and what it is called in `RankingRequest`."""

_RULE: Final = "mixture, ties at their distance, leads within small blocks, chances that grow as places are settled"
"""How leads are proved: what another rule has cut is not gone on from, since each rule may err with the whole beta."""

_LINES: Final = ", lines that share the chance"
"""The same under a pure budget, where a line may have to be begun again."""

_PRICE: Final = ("cap", "max_epsilon")
"""What may be said of its price."""


def rank(context: Context, read: Read, given: Bounds | AutoBounds, wanted: RankingRequest, request: Request) -> Ranking:
    """Return the k largest groups in order, and what is settled of it.

    Guarantee: the numbers, the order and when it was settled are together as private as what the ledger charged.
    Proof: mechanisms.gaussian and mechanisms.laplace for one run, privacy.filters for the sum;
        docs/proofs/accuracy.ranking_places.md for the order.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: prices up to whole farthings.
    """
    question, chosen = bounded(context, read, given, request)
    check(question, wanted)
    query = question.query.arranged()
    name = _identity(context, query, wanted)

    def planned(stored: Stored | None) -> _RankingJob:
        """Plan it, given what the ledger keeps of it."""
        frame, whole = frame_of(context, query, request, 1), charged_fresh(context, name)
        return _RankingJob.of(context, query, wanted, frame, stored, whole=whole)

    job, standing, paid = answer_and_book(context, name, planned)

    def again(**changes: Any) -> Ranking:
        """Rank again, with some terms changed."""
        refuse_unknown({name: value for name, value in changes.items() if name not in {*_TERMS, *_PRICE}})
        terms = {field: changes.pop(name) for name, field in _TERMS.items() if name in changes}
        asked = replace(wanted, **terms)
        return rank(context, read, given, asked, request.changed(**changes, confidence=asked.confidence))

    return _ranking_of(context, question, job, standing, paid=paid + chosen, again=again)


def check(question: CheckedQuestion, wanted: RankingRequest) -> None:
    """Refuse what cannot be ranked."""
    query, outputs = question.query, question.outputs
    kind = Count | CountUnits | Sum
    if question.private or len(outputs) != 1 or not isinstance(outputs[0].aggregate, kind) or not query.by:
        raise UnsupportedQuery(
            "groups are ranked by one count or sum",
            construct="ranking",
            rule="listed groups of a column, by their rows, or by a value that is added up",
            got=", ".join(str(output.aggregate) for output in outputs) + (" of unlisted groups" * question.private),
            next_step='session.ranking("dest", k=10, keys={"dest": [...]})',
        )
    if query.groups < 2:
        raise InvalidTarget(
            "a single group has no order",
            rule="two keys at least",
            got=f"{query.groups} keys",
            next_step="list more keys; or ask for the number, as in session.count(by=..., keys=..., absolute=50)",
        )
    if wanted.k > query.groups:
        raise InvalidTarget(
            "more places are wanted than groups are listed",
            rule="k <= the number of keys",
            got=f"k={wanted.k}, {query.groups} keys",
            next_step="lower k, or list more keys",
        )
    if wanted.relative and getattr(query.aggregate, "lower", 0.0) < 0:
        raise InvalidTarget(
            "a relative distance of sums that may be negative",
            rule="apart_relative is for counts, and sums of values with lower >= 0",
            got=str(query.aggregate),
            next_step="apart=50, in the units of the sum",
        )


def refuse_unknown(options: dict[str, Any]) -> None:
    """Refuse options that a ranking has not."""
    if options:
        raise InvalidTarget(
            f"unknown option {', '.join(sorted(options))}",
            rule=f"{', '.join([*_TERMS, *_PRICE])}",
            got=", ".join(f"{name}={value!r}" for name, value in options.items())[:80],
            next_step="apart=50 or apart_relative=0.05 says which leads do not matter",
        )


@dataclass(frozen=True, slots=True)
class _RankingJob:
    """A ranking, ready to be run, as a transaction books it.

    Attributes:
        context: the data and the books.
        query: the question, arranged.
        wanted: what is wanted of it.
        noise: how groups are measured, and what it costs.
        contest: how its places are settled.
        blob: what the ledger keeps of it, or None.
        stored: the same, read.
        frame: the price and what is left.
    """

    context: Context
    query: Query
    wanted: RankingRequest
    noise: GaussianNoise | LaplaceNoise
    contest: RankingContest
    blob: bytes | None
    stored: RankingState | None
    frame: Frame

    @classmethod
    def of(
        cls, context: Context, query: Query, wanted: RankingRequest, frame: Frame, found: Stored | None, *, whole: bool
    ) -> _RankingJob:
        """Return the job of a question, given what the ledger keeps of it, and whether it pays for that once more."""
        stored = None if found is None else standing_of(found.blob)
        noise = noise_of(context, query, frame, stored)
        going = noise.carried(stored)
        top = (0,) * query.max_groups if going is None or whole else _top(going, query.max_groups)
        limit = noise.level(frame.remaining, top) if frame.cap is None else noise.level(frame.cap, (0,) * len(top))
        contest = RankingContest(wanted.k, frame.beta, noise.per_grain, limit, wanted.apart, wanted.relative, noise.law)
        if limit < noise.fewest and (stored is None or contest.goes_on(stored)):
            raise InvalidTarget(
                "the allowed price is too small to look at the groups",
                rule=f"at least {noise.least} for each of a unit's groups",
                got=repr(frame.cap or frame.remaining),
                next_step='allow more with cap= or max_epsilon=, or cap="all"',
            )
        blob = None if found is None else found.blob
        return cls(context, query, wanted, noise, contest, blob, stored, frame)

    @property
    def bill(self) -> Bill | None:
        """What the cap allows; None where what stands settles what is asked, as far as it may."""
        before, most = self.stored, self.contest.cap_grains
        if before is not None and not self.contest.goes_on(before):
            return None
        before = self.noise.carried(before)
        query = self.query
        top = (0,) * query.max_groups if before is None else _top(before, query.max_groups)
        return Bill(
            self.noise.loss(sum(max(most - has, 0) for has in top)),
            self.noise.loss(most * query.max_groups),
            f"the order of the {self.wanted.k} largest {', '.join(query.by)} of {query.table} by {query.aggregate}",
            lambda: 'cap="all" spends at most what is left',
            self.wanted.words,
            name="the ranking",
            looks=True,
        )

    def stored_answer(self) -> _RankingRelease:
        """Return what was released before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        return _RankingRelease(self, self.stored, self.context.loss(0))

    def measured(self, receipt: Receipt) -> tuple[_RankingRelease, Booked]:
        """Run the contest, and price what it used."""
        context, query = self.context, self.query
        before = self.noise.carried(self.stored, exclusive=receipt.exclusive)
        held = np.zeros(query.groups, np.int64) if before is None else before.paid
        looks = BegunLooks(receipt, held, query.max_groups, self.noise.loss)
        lines = self.noise.lines(context, query, receipt, before)

        def begun(measure: Callable[[Ints, Ints], Floats]) -> Callable[[Ints, Ints], Floats]:
            """Return looks that are begun in the books first."""

            def look(grains: Ints, groups: Ints) -> Floats:
                """Begin a look, and return what it shows of some groups."""
                looks.begin(grains, groups)
                return measure(grains, groups)

            return look

        def begun_leads(measure: Lead) -> Lead:
            """Return looks at leads that are begun first, by both groups of each."""

            def look(grains: Ints, first: Ints, second: Ints) -> Floats:
                """Begin a look at both groups, and return what it shows of their leads."""
                looks.begin(np.repeat(grains, 2), np.stack([first, second], axis=1).ravel())
                return measure(grains, first, second)

            return look

        leads = None if lines[2] is None else begun_leads(lines[2])
        line = 0 if self.stored is None else self.stored.lines
        after = self.contest.run(before, query.groups, begun(lines[0]), begun(lines[1]), leads, line=line)
        price = context.loss(looks.price(after.paid - held).farthings)
        return _RankingRelease(self, replace(after, step_log2=self.noise.step_log2), price), price

    def merged(self, current: bytes | None, answer: _RankingRelease, receipt: Receipt) -> bytes:
        """Return what is kept, one ranking: see `merging`; it tells how many lines were begun, kept or not."""
        ours = answer.standing
        blob = merge(current, blob_of(ours), receipt, read=self.blob, worth=partial(self._worth, ours))
        kept = standing_of(blob)
        return blob if kept.lines >= ours.lines else blob_of(replace(kept, lines=ours.lines))

    def _worth(self, ours: RankingState, theirs: bytes) -> bool:
        """Tell whether a ranking settles what is asked, or has cost as much as another one."""
        paid, before = (worst_cost(each.paid, self.query.max_groups) for each in (ours, standing_of(theirs)))
        return paid >= before or not self.contest.unsettled(ours)


class _RankingRelease(NamedTuple):
    """What was released of a ranking, the job that released it, and what it cost now."""

    job: _RankingJob
    standing: RankingState
    paid: Booked


def _identity(context: Context, query: Query, wanted: RankingRequest) -> str:
    """Return the name of a ranking in the ledger."""
    rule = _RULE + _LINES * (context.budget.currency is Pure)
    facts = [query.canonical(), wanted.confidence, bool(wanted.apart or wanted.relative), rule]
    return reuse.identity(context.data(query), f"ranking {query.family()}", json.dumps(facts))


def _top(standing: RankingState, most: int) -> tuple[int, ...]:
    """Return the largest informations, as many as one unit can touch."""
    return tuple(int(n) for n in np.sort(standing.paid)[-most:])


def _ranking_of(
    context: Context,
    question: CheckedQuestion,
    job: _RankingJob,
    standing: RankingState,
    *,
    paid: Booked,
    again: Callable[..., Ranking],
) -> Ranking:
    """Return the places with what there is to say of them."""
    k, values = job.wanted.k, job.contest.shown(standing)
    unsettled, rows, place = set(job.contest.unsettled(standing)), list[Any](), 1
    for number, block in enumerate(standing.blocks):
        order = block[np.argsort(-values[block], kind="stable")]
        rows += [(int(group), place, number not in unsettled, len(block) > 1) for group in order]
        place += len(block)
        if len(rows) >= k:
            break
    groups, first, settled, several = (np.array(column) for column in zip(*rows[:k], strict=True))
    width = job.contest.places(standing).half_widths(standing.information)[groups]
    lower, upper = standing.means[groups] - width, standing.means[groups] + width
    assert job.query.keys is not None  # noqa: S101  # there are groups
    return Ranking(
        keys=job.query.keys.table.take(groups).select(list(question.query.by)),
        place=first,
        value=np.clip(values[groups], lower, upper),
        lower=lower,
        upper=upper,
        settled=settled,
        tied=settled & several,
        paid=paid,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        goal=job.wanted.words,
        about="; ".join(
            [*_advice(job, standing, settled), *_shared(len(rows) - k), about(question.query), context.where_kept]
        ),
        _refine=again,
    )


def _shared(more: int) -> list[str]:
    """Return that the last place is shared with groups that are not shown."""
    if not more:
        return []
    groups = "1 group that is" if more == 1 else f"{more:,} groups that are"
    return [f"the last place is shared with {groups} not shown: which of them are in it is not told"]


def _advice(job: _RankingJob, standing: RankingState, settled: Any) -> list[str]:
    """Return what to do where not every place is settled."""
    if settled.all():
        return ["all places are settled"]
    told = f"{int((~settled).sum())} of {len(settled)} places are not settled at this price: the leads are too small"
    grains = job.contest.enough(standing) if job.wanted.apart else 0
    price = job.noise.loss((grains + (grains >> 14)) * job.query.max_groups)  # told with six digits
    if grains and job.noise.level(price, (0,) * job.query.max_groups) >= grains:
        needed = said(price, job.frame.budget.report_delta)
        return [f"{told}; an order wrong by less than {job.wanted.apart:,.6g} would take at most about {needed}"]
    return [f"{told}; allow more with cap=, or name a distance that does not matter, as in apart=50"]
