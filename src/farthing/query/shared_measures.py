"""The measures that several aggregates are functions of together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.query.aggregates import Sum
from farthing.query.measures import Rows, Total

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farthing.query.aggregates import Aggregate
    from farthing.query.measures import Measure


def needed(aggregates: Iterable[Aggregate]) -> tuple[Measure, ...]:
    """Return the measures that aggregates are functions of, each once, in their order.

    A sum beside a mean of the same clamped values needs none of its own: it is the centred sum and centre times count.
    """
    asked = tuple(aggregates)
    others = {measure for aggregate in asked if not isinstance(aggregate, Sum) for measure in aggregate.measures}
    spare = {
        Total(total.value, total.lower, total.upper)
        for total in others
        if isinstance(total, Total) and total.power == 1 and Rows(total.value) in others
    }
    found = dict.fromkeys(measure for aggregate in asked for measure in aggregate.measures)
    return tuple(measure for measure in found if measure in others or measure not in spare)
