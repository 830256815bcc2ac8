"""What is said of a choice, its order and the leads that it tells: kept beside its groups, for whoever asks again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.chosen import Chosen
from farthing.query.words import about
from farthing.session.core.records import LEADS

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.mechanisms.leads import Led
    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion

_TOLD: Final = ("ahead", "settled")


def with_leads(keys: pa.Table, led: Led, step: float) -> pa.Table:
    """Return chosen groups with their leads, in answer units, of which a step of the scores is `step`."""
    facts = {"ahead": (led.ahead * step).tolist(), "settled": led.settled.tolist()}
    return keys.replace_schema_metadata({LEADS: json.dumps(facts).encode()})


def without_order(keys: pa.Table) -> pa.Table:
    """Return chosen groups of which no order was told."""
    return keys.replace_schema_metadata({LEADS: json.dumps({"ordered": False}).encode()})


def describe_choice(  # noqa: PLR0917  # what there is to say, in order
    context: Context,
    question: CheckedQuestion,
    goal: tuple[int, str],
    keys: pa.Table,
    paid: Booked,
    note: str,
    compared: tuple[tuple[str, Booked], ...] = (),
    proved: bool | None = None,
) -> Chosen:
    """Return the chosen groups with what there is to say of them, their columns in the order that was asked.

    Args:
        context: the data and the books.
        question: one count or sum, by groups.
        goal: how many groups were wanted, and what of them, in words.
        keys: the chosen groups, with their leads if there are any.
        paid: what the choice cost.
        note: how it was made.
        compared: the selections that give the same promise.
        proved: whether released counts prove the order.
    """
    facts = json.loads((keys.schema.metadata or {}).get(LEADS, b"{}"))
    ahead, settled = (np.array(facts[name]) if name in facts else None for name in _TOLD)
    return Chosen(
        keys=keys.select(list(question.query.by)).replace_schema_metadata(None),
        k=goal[0],
        paid=paid,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        goal=goal[1],
        about="; ".join([note, about(question.query), context.where_kept]),
        compared=compared,
        proved=proved,
        ahead=ahead,
        settled=settled,
        ordered=facts.get("ordered", True),
    )
