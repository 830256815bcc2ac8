"""The largest groups in the right order: counts are refined until released intervals prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.privacy.loss import Pure
from farthing.session.answering import mixed_question
from farthing.session.choosing.leads import describe_choice
from farthing.session.choosing.top_k import check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from farthing.chosen import Chosen
    from farthing.privacy.loss import Booked
    from farthing.release import Cells
    from farthing.session.choosing.top_k import TopKRequest
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request

LOOKS: Final = 14
"""How often the counts are looked at, each time at twice the loss: the first sees leads 90 times those of the last."""


def in_order(
    context: Context, question: CheckedQuestion, wanted: TopKRequest, request: Request, cap: Booked | None
) -> Chosen:
    """Refine the counts until released intervals prove which groups are the k largest, and in which order.

    Args:
        context: the data and the books.
        question: one count or sum, by listed groups.
        wanted: k, and the chance that an order that is told as proved is right.
        request: the terms of the ask.
        cap: the most that all looks may cost, or None for all that is left.

    Guarantee: with probability at least `order_correct`, an order that is told as proved is right; the price is that
        of the counts, `ask.ask_one`.
    Proof: docs/proofs/session.choosing.top_k.md, "The right order".
    Assumes: as the counts.
    Rounds: losses of looks down to whole farthings.
    """
    check(question, wanted)
    assert wanted.order is not None  # noqa: S101  # callers want an order
    last = replace(request, confidence=1 - (1 - wanted.order) * 2.0**-LOOKS, simultaneous=True)
    last.beta(question.query.groups)  # refuses, before anything is paid, what the last look could not promise
    paid, answer = context.loss(0), None
    for place, loss in enumerate(_losses(context, cap), 1):
        share = (1 - wanted.order) * 2.0**-place
        asked = replace(
            request, relative=None, absolute=None, loss=loss, cap=None, max_epsilon=None, confidence=1 - share,
            simultaneous=True,
        )  # fmt: skip
        if answer is not None and not mixed_question.plan(context, question.query, asked).fits:
            break
        answer = mixed_question.ask(context, question.query, asked)
        paid += answer.paid
        if proves(answer.cells, wanted.k):
            break
    assert answer is not None  # noqa: S101  # there is a first look
    proved = proves(answer.cells, wanted.k)
    note = (
        "the order is proved by released intervals"
        if proved
        else "the order is that of released numbers, and not proved: the leads are too small for this price"
    )
    assert answer.keys is not None  # noqa: S101  # there are groups
    keys = answer.keys.take(ranked(answer.cells)[: wanted.k])
    return describe_choice(context, question, (wanted.k, wanted.words), keys, paid, note, proved=proved)


def proves(cells: Cells, k: int) -> bool:
    """Return whether intervals prove the k largest and their order: each begins above the ends of all after it.

    >>> import numpy as np
    >>> from farthing.release import Cells
    >>> value = np.array([9.0, 1.0, 5.0])
    >>> [proves(Cells(value, value - width, value + width, value > 0), 2) for width in (1.9, 2.0)]
    [True, False]
    """
    order = ranked(cells)
    above = np.maximum.accumulate(cells.upper[order][::-1])[::-1]
    places = min(k, len(order) - 1)
    return bool((cells.lower[order][:places] > above[1 : places + 1]).all())


def ranked(cells: Cells) -> NDArray[np.int64]:
    """Return the places of groups, the largest estimate first."""
    return np.argsort(-cells.estimate, kind="stable")


def _losses(context: Context, cap: Booked | None) -> Iterator[Booked]:
    """Give the losses up to which the counts are refined, each twice the one before, up to the cap.

    A pure ledger refines nothing: each look is paid whole, so that the last may have half the cap.
    """
    most = (context.budget.total if cap is None else cap).farthings >> (context.budget.currency is Pure)
    most = max(1, most - LOOKS)  # each look is rounded up to a whole farthing
    for look in range(1, LOOKS + 1):
        farthings = most >> (LOOKS - look)
        if farthings:
            yield context.loss(farthings)
