"""A question under its contribution bounds: those that were given, or those that are chosen privately for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.errors import InvalidBounds
from farthing.planning.relative_count import require
from farthing.query import AutoBounds, Bounds
from farthing.session.answering import contribution_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request

Read: TypeAlias = "Callable[[Bounds], CheckedQuestion]"
"""How a question is read under given bounds."""

FOR_NOW: Final = Bounds(max_groups=1, max_rows=1, lower=0, upper=1)
"""Bounds under which a question is read before its own are known."""


def bounded(
    context: Context, read: Read, given: Bounds | AutoBounds, request: Request, *, free: bool = False
) -> tuple[CheckedQuestion, Booked]:
    """Return a question under the bounds that were given, or that are chosen privately, and what choosing cost."""
    tried = read(FOR_NOW if isinstance(given, AutoBounds) else given)
    if tried.lists and isinstance(given, AutoBounds):
        raise InvalidBounds(
            "bounds are not chosen for grouping sets",
            rule="bounds have to be named for several tables at once",
            got="Bounds.auto",
            next_step="bounds=Bounds(max_groups=5, max_rows=20), with numbers that fit the data",
        )
    if not tried.lists:
        request.check_search(private=tried.private)
        require(request.mechanism, tried.outputs, context.budget.currency, private=tried.private)
    request.check_signs(tried.outputs)
    if not isinstance(given, AutoBounds):
        return tried, context.loss(0)
    if tried.query.one_row and _named(read):
        return read(Bounds()), context.loss(0)  # a unit has one row, and the text says what it may be
    found, paid = contribution_report.chosen(context, tried, request, given.loss, free=free)
    return read(found), paid


def _named(read: Read) -> bool:
    """Return whether a question names every bound that it needs."""
    try:
        read(Bounds())
    except InvalidBounds:
        return False
    return True
