"""A release as it is asked: which tables of which rows, how accurate, at what price; read and checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidOption, InvalidTarget
from farthing.limits.tables import Residuals
from farthing.session.answering.release_booking import BaseReleaseRequest
from farthing.session.answering.release_options import (
    MOST_COLUMNS,
    AskedRows,
    Wanted,
    check_name,
    identity_of,
    refuse_pure,
    rows_and_goal,
    wanted,
)
from farthing.workloads import Marginals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion, QuestionReader
    from farthing.session.reading.request import Request

MOST_CELLS: Final = 10**8
"""The most cells of all tables of one release."""

MECHANISMS: Final = ("auto", "residuals")


@dataclass(frozen=True, slots=True)
class ReleaseRequest(BaseReleaseRequest):
    """A release of tables, read and checked; its query is by all columns in the order of their names.

    Attributes:
        shown: the values of each column as they were listed, by column.
    """

    shown: Mapping[str, Keys]

    @property
    def basis(self) -> Residuals:
        """The residuals of the workload."""
        place = {name: at for at, name in enumerate(self.query.by)}
        tables = tuple(tuple(sorted(place[column] for column in table)) for table in self.workload.tables)
        return Residuals(tuple(map(len, self.lists)), tables, self.workload.weights)

    @property
    def question(self) -> str:
        """Its identity in the ledger: that of the rows, whatever tables of them are wanted."""
        return identity_of(self.context, self.query, self.lists, "tables")


def read(
    context: Context,
    reader: QuestionReader,
    workload: object,
    rows: AskedRows,
    options: Mapping[str, Any],
) -> ReleaseRequest:
    """Return a release, read and checked; nothing is charged.

    Args:
        context: the data and the books.
        reader: reads keys and conditions.
        workload: which tables.
        rows: which rows.
        options: relative, absolute, rms, loss, confidence, simultaneous, max_epsilon, cap, mechanism.
    """
    if not isinstance(workload, Marginals):
        raise InvalidOption(
            "this is not a workload",
            rule="a workload of farthing.workloads",
            got=type(workload).__name__,
            next_step='farthing.workloads.marginals(["sex", "age"], ways=2)',
        )
    _check_workload(context, workload)
    columns = tuple(sorted(workload.columns))
    found, goal = rows_and_goal(
        reader,
        rows,
        options,
        lambda under: under.read(reader, columns, keys=under.keys),
        (lambda given: wanted(given, MECHANISMS), {"absolute": 1.0}),
    )
    return _checked(context, found, workload, goal, rows.name)


def of_sets(context: Context, question: CheckedQuestion, request: Request) -> ReleaseRequest:
    """Return the release of the grouping sets of a SQL text; nothing is charged.

    Args:
        context: the data and the books.
        question: the text as it was read, with the listed values of its columns.
        request: the target and the price, as of any question.
    """
    asked = question.asked
    assert asked is not None  # noqa: S101  # grouping sets are written in SQL
    workload = Marginals(asked.sets, (1.0,) * len(asked.sets))
    _check_workload(context, workload)
    goal = wanted(_options(request, asked.name), MECHANISMS)
    return _checked(context, (question.query, question.lists), workload, goal, asked.name)


def _options(request: Request, name: str) -> dict[str, Any]:
    """Return the options of a release from those of a question; refuse those that tables do not have."""
    terms = {
        "rank": request.rank is not None,
        "share": request.share < 1,
        "nonnegative": request.nonnegative,
        "on_miss": request.on_miss != "return",
        "found_above": request.found_above is not None,
        "mechanism": request.mechanism is not None,
    }
    for term, given in terms.items():
        if given:
            raise InvalidTarget(
                f"{term}= with grouping sets",
                rule="tables at once take relative=, absolute=, loss=, confidence=, simultaneous=, max_epsilon=, cap=",
                got=f"{term}=",
                next_step="leave it out, or ask for each set with a plain GROUP BY",
            )
    found = {
        each: getattr(request, each)
        for each in ("loss", "confidence", "simultaneous", "together", "max_epsilon", "cap")
    }
    target = request.target(name)
    if target is None:
        return found
    return found | {"relative": target.relative or None, "absolute": target.absolute or None}


def _checked(
    context: Context, rows: tuple[Query, tuple[Keys, ...]], workload: Marginals, goal: Wanted, name: str
) -> ReleaseRequest:
    """Return a release, its size and name checked."""
    (query, shown), (request, errors, relative) = rows, goal
    cells = _check_cells(workload, dict(zip(query.by, map(len, shown), strict=True)))
    lists = tuple(one.arranged() for one in shown)
    by_name = dict(zip(query.by, shown, strict=True))
    check_name(name, query.by)
    return ReleaseRequest(
        context=context,
        query=query,
        lists=lists,
        workload=workload,
        request=request,
        errors=errors,
        name=name,
        relative=relative,
        many=cells,
        what="cell",
        shown=by_name,
    )


def _check_workload(context: Context, workload: Marginals) -> None:
    """Refuse what cannot be released, whatever its keys."""
    _check_columns(workload)
    refuse_pure(context)


def _check_columns(workload: Marginals) -> None:
    """Refuse a workload of the total alone, and one of too many columns."""
    many = len(workload.columns)
    if not 1 <= many <= MOST_COLUMNS:
        raise InvalidOption(
            "a release is of tables by columns",
            rule=f"from 1 to {MOST_COLUMNS} columns in all tables together",
            got=f"{many} columns",
            next_step="session.count(absolute=50) counts all rows" if not many else "release fewer columns at once",
        )


def _check_cells(workload: Marginals, sizes: Mapping[str, int]) -> int:
    """Return the number of cells; refuse more than a release can hold."""
    cells = sum(math.prod(sizes[column] for column in table) for table in workload.tables)
    if cells > MOST_CELLS:
        raise InvalidOption(
            "too many cells",
            rule=f"at most {MOST_CELLS:,} cells in all tables",
            got=f"{cells:,}",
            next_step="fewer ways, fewer columns, or fewer listed values",
        )
    return cells
