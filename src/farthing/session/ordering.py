"""The largest groups in the right order: counts are refined until released intervals prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.session import several
from farthing.session.choosing import check, told

if TYPE_CHECKING:
    from farthing.chosen import Chosen
    from farthing.privacy.loss import Booked
    from farthing.release import Answer, Cells
    from farthing.session.choosing import Wanted
    from farthing.session.context import Context
    from farthing.session.reading import Question
    from farthing.session.request import Request

LOOKS: Final = 14
"""How often all counts are looked at, each time at twice the loss: the first look sees leads 90 times the last one's."""


def in_order(context: Context, question: Question, wanted: Wanted, request: Request, cap: Booked | None) -> Chosen:
    """Refine the counts until released intervals prove which groups are the k largest, and in which order.

    Args:
        context: the data and the books.
        question: one count or sum, by listed groups.
        wanted: k, and the chance that an order that is told as proved is right.
        request: the terms of the ask.
        cap: the most that all looks may cost, or None for all that is left.

    Guarantee: with probability at least `order_correct`, an order that is told as proved is right; the price is that
        of the counts, `ask.ask_one`.
    Proof: docs/proofs/session.choosing.md, "The right order".
    Assumes: as the counts.
    Rounds: losses of looks down to whole farthings.
    """
    check(question, wanted)
    assert wanted.order is not None  # noqa: S101  # callers want an order
    left = context.loss(context.ledger.remaining)
    most = left if cap is None else min(cap, left)
    paid, proved, answer = context.loss(0), False, None
    for place, loss in enumerate(_losses(context, most), 1):
        share = (1 - wanted.order) * 2.0**-place
        asked = replace(request, relative=None, absolute=None, loss=loss, cap=None, max_epsilon=None,
                        confidence=1 - share, simultaneous=True)  # fmt: skip
        answer = several.ask(context, question.query, asked)
        paid += answer.paid
        proved = proves(answer.cells, wanted.k)
        if proved:
            break
    keys = _best(answer, wanted.k)
    note = "the order is proved by released intervals" if proved else (
        "the order is that of released numbers, and not proved: leads are too small for this price"
    )  # fmt: skip
    return told(context, question, wanted, keys, paid, note, proved=proved)
