"""What is said of an answer wherever its numbers go: in Arrow and Parquet, in the ledger's record, in its export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.query.aggregates import clamping
from farthing.query.arrange import distinct
from farthing.version import VERSION

if TYPE_CHECKING:
    from farthing.planning import Plan
    from farthing.query import Query
    from farthing.session.core.context import Context

MOST_KEYS: Final = 1000
"""Keys of more values than that are told by their number."""


def question_facts(context: Context, query: Query, plan: Plan, confidence: float) -> dict[str, Any]:
    """Return what a question was, as plain values that stay the same when it is asked again.

    Args:
        context: the data and the books.
        query: the question.
        plan: its plan.
        confidence: the chance that an interval holds its truth.
    """
    clamps = {
        output.name: [part.lower, part.upper]
        for output in query.outputs
        for part in clamping(output.aggregate)
        if part is output.aggregate
    }
    return {
        "version": VERSION,
        "data": context.ledger.data_label,
        "question": plan.question,
        "unit": query.unit.label.removeprefix("column:"),
        "bounds": {"max_groups": query.max_groups, "max_rows": query.max_rows, "clamps": clamps},
        "keys": _keys(query),
        "targets": plan.goal,
        "confidence": confidence,
    }


def _keys(query: Query) -> dict[str, Any]:
    """Return the listed values of each grouping column, or how many there are."""
    if query.keys is None:
        return {}
    listed = {name: distinct(column) for name, column in zip(query.by, query.keys.table.columns, strict=True)}
    return {name: len(values) if len(values) > MOST_KEYS else values.to_pylist() for name, values in listed.items()}
