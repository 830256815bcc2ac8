"""A question in words: what it counts, and what its numbers are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.query.query import Query


def describe(query: Query) -> str:
    """Return a question in words, for people and for the ledger's history."""
    by = f" BY {', '.join(query.by)} [{query.groups:,} groups]" if query.by else ""
    where = f" WHERE {query.where}" if query.where is not None else ""
    return f"COUNT(*) AS {query.name} FROM {query.table}{where}{by}"


def about(query: Query) -> str:
    """Return what the numbers are about: the privacy unit, and the bounds that the truth is taken after."""
    if query.unit.is_row:
        return "privacy unit: one row, added or removed"
    rows = _many(query.sensitivity, "row")
    bound = (
        f"in at most {_many(query.max_groups, 'group')}, with at most {rows} in each"
        if query.by
        else f"for at most {rows}"
    )
    return (
        f"privacy unit: one {query.unit.column}, with all its rows; the numbers are of the bounded data: each "
        f"{query.unit.column} counts {bound}; what the bounds cut is not in the intervals"
    )


def _many(count: int, thing: str) -> str:
    """Return a number of things."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
