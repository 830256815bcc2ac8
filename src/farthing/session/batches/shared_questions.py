"""The questions of a workload that share one loss: which they are, and their name in the ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.mechanisms.gaussian import GaussianMeasurements
from farthing.privacy.loss import Pure
from farthing.session.answering import mixed_question, reuse
from farthing.session.answering.bounds import bounded
from farthing.session.answering.one_question import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from farthing.planning import Frame
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.release import Answer
    from farthing.session.batches.draft import Draft
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request

MOST_COUNTS: Final = 20_000
"""So many counts can share a loss."""


@dataclass(frozen=True, slots=True)
class SharedLossMember:
    """One question of a workload that shares its loss.

    Attributes:
        draft: as it was read.
        shown: the question in the order that was asked.
        query: the same, arranged.
        frame: its target.
        cells: its places among all counts.
    """

    draft: Draft
    shown: Query
    query: Query
    frame: Frame
    cells: slice


def members(
    context: Context,
    drafts: Sequence[Draft],
    refuse: Callable[[Draft, CheckedQuestion], None],
    *,
    strategy: str,
    purpose: str,
    asking: str,
) -> tuple[SharedLossMember, ...]:
    """Return the questions that share a loss, each with its places among all counts; refuse those that cannot.

    Args:
        context: the data and the books.
        drafts: the questions, as they were read.
        refuse: raises for a question that the strategy cannot answer.
        strategy: its name.
        purpose: what it does with counts, for errors, such as "to share a loss".
        asking: what needs Gaussian noise, for errors.

    Raises:
        InvalidTarget: the budget is a pure one.
        UnsupportedQuery: there are too many counts.
    """
    if context.budget.currency is Pure:
        raise InvalidTarget(
            asking,
            rule=f'strategy="{strategy}" measures counts step by step, each step paid for by itself',
            got="a pure budget",
            next_step="leave strategy= out, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    found: list[SharedLossMember] = []
    start = 0
    for draft in drafts:
        question, _ = bounded(context, draft.read, draft.given, draft.request, free=True)
        refuse(draft, question)
        draft.request.check(question.query)
        query = question.query.arranged()
        frame, end = frame_of(context, query, draft.request, 1), start + query.groups
        found.append(SharedLossMember(draft, question.query, query, frame, slice(start, end)))
        start = end
    if start > MOST_COUNTS:
        raise UnsupportedQuery(
            f"too many counts {purpose}",
            construct=strategy,
            rule=f"at most {MOST_COUNTS:,} counts",
            got=f"{start:,}",
            next_step="leave strategy= out: each group then stops by itself",
        )
    return tuple(found)


def name_of(context: Context, members: Sequence[SharedLossMember], allowed: Booked | None, *, strategy: str) -> str:
    """Return the name of all together in the ledger."""
    facts = [
        [context.data(each.query), each.query.family(), each.query.canonical(), str(each.frame.target)]
        for each in members
    ]
    return reuse.identity("", strategy, json.dumps([facts, None if allowed is None else allowed.farthings]))


def mechanism_of(query: Query, truth: NDArray[np.int64]) -> GaussianMeasurements:
    """Return a question's exact answers behind their noise."""
    step_log2 = query.measures[0].step_log2
    return GaussianMeasurements(truth, query.sensitivity, query.max_groups, step_log2=step_log2)


def again(context: Context, member: SharedLossMember, request: Request, **changes: Any) -> Answer:
    """Ask one question by itself, with some terms changed: an ask of its own, from nothing."""
    return mixed_question.ask(context, member.shown, request.changed(**changes))
