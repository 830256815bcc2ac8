"""CUBE, ROLLUP and GROUPING SETS: a release of tables that agree, told as the rows of one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.target import Target
from farthing.release import Answer, Cells
from farthing.session.answering import release, release_request
from farthing.trace import trace

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.planning.release import ReleasePlan
    from farthing.released import Release
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request
    from farthing.sql import Asked


def plan(context: Context, question: CheckedQuestion, request: Request) -> ReleasePlan:
    """Return the price of a question by grouping sets; it spends nothing."""
    return release.plan(release_request.of_sets(context, question, request))


def ask(context: Context, question: CheckedQuestion, request: Request) -> Answer:
    """Answer a question by grouping sets: one row a cell of each set, in the order of the sets.

    Guarantee: what leaves is as private as what the ledger charged: the tables of one release, beside one another.
    Proof: [design, charge look speak] post-processing of `release.release`.
    Assumes: nothing beyond a release.
    Rounds: nothing.
    """
    return _answer(context, question, release.release(release_request.of_sets(context, question, request)))


def _answer(context: Context, question: CheckedQuestion, made: Release) -> Answer:
    """Return a release as one answer."""
    asked = question.asked
    assert asked is not None  # noqa: S101  # grouping sets are written in SQL
    goal, tables = made._plan.goal, [made[columns] for columns in asked.sets]  # noqa: SLF001  # what it was made by
    value, half_width = (np.concatenate(parts) for parts in zip(
        *((table.value.reshape(-1), table.half_width.reshape(-1)) for table in tables), strict=True
    ))  # fmt: skip
    cells = Cells(
        value, value - half_width, value + half_width, np.concatenate([table.met.reshape(-1) for table in tables])
    )
    keys, paid = _keys(asked, made), np.full(len(value), made.paid.value)
    traced = trace(
        (made.name,), [(cells.value, cells.lower, cells.upper)], paid, (), parameter=made.paid.parameter, goal=made.goal
    )
    return Answer(
        names=(made.name,),
        columns=(cells,),
        keys=keys,
        paid_by_group=paid,
        target=None
        if goal.absolute is None
        else Target(goal.relative, goal.absolute, goal.confidence, goal.simultaneous),
        goal=made.goal,
        confidence=made.confidence,
        paid=made.paid,
        remaining=made.remaining,
        delta=made.delta,
        about=made.about,
        _doubling=lambda: None,
        _refine=lambda **changes: _answer(context, question, made.refine(**changes)).arranged(
            asked.aftermath, asked.columns
        ),
        _strict=paid,
        _by_size=False,
        _optimality=made.optimality,
        _trace=lambda: traced.keep(np.arange(len(value)), keys),
        _data_set=context.data_set,
        _together=made.confidence_together,
    )


def _keys(asked: Asked, made: Release) -> pa.Table:
    """Return the keys of all rows: NULL where a column is rolled up, and a bit of GROUPING, the first the highest."""
    import pyarrow as pa

    parts = []
    for columns in asked.sets:
        cells = made[columns].to_arrow()
        found: dict[str, Any] = {
            name: cells.column(name) if name in columns else pa.nulls(len(cells), made[name].keys[name].type)
            for name in asked.by
        }
        for name, of in asked.levels:
            bits = sum((column not in columns) << place for place, column in enumerate(reversed(of)))
            found[name] = pa.array(np.full(len(cells), bits, np.int64))
        parts.append(pa.table(found))
    return pa.concat_tables(parts).combine_chunks()
