"""A question in words: what it counts, and what its numbers are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.query.aggregates import clamping
from farthing.query.running_total import RunningTotal
from farthing.query.share_of_total import ShareOfTotal

if TYPE_CHECKING:
    from farthing.query.query import Query


def describe(query: Query) -> str:
    """Return a question in words, for people and for the ledger's history."""
    many = "1 group" if query.groups == 1 else f"{query.groups:,} groups"
    by = f" BY {', '.join(query.by)} [{many}]" if query.by else ""
    where = f" WHERE {query.where}" if query.where is not None else ""
    part = f" [part {query.part}]" if query.part is not None else ""
    asked = ", ".join(f"{output.aggregate} AS {output.name}" for output in query.outputs)
    joins = "".join(f" {join}" for join in query.joins)
    made = "".join(f" WITH {each}" for each in query.derived)
    source = query.table if query.source is None else query.source
    return f"{asked} FROM {source}{joins}{part}{where}{by}{made}"


def about(query: Query) -> str:
    """Return what the numbers are about: the privacy unit, and the bounds that the truth is taken after."""
    part = _clamped(query)
    part += "" if query.part is None else f"; only the part of the data where {query.part}"
    if query.unit.is_row:
        met = "" if not query.joins else f"; a row counts at most {_many(query.fan_out, 'time')} after joins"
        return f"privacy unit: one row, added or removed{met}{part}"
    if query.part is not None:
        part += (
            f", and of each {query.unit.column} with rows in several {query.part.column} parts only those in the one "
            f"that a keyed hash chose"
        )
    rows = _many(query.max_rows, "row")
    bound = (
        f"in at most {_many(query.max_groups, 'group')}, with at most {rows} in each"
        if query.by
        else f"for at most {rows}"
    )
    return (
        f"privacy unit: one {query.unit.column}, with all its rows; the numbers are of the bounded data: each "
        f"{query.unit.column} counts {bound}{part}; what the bounds cut is not in the intervals"
    )


def _clamped(query: Query) -> str:
    """Return which values are clamped, and how, and what shares are of."""
    found = dict.fromkeys(
        getattr(aggregate, "words", "") or f"{aggregate.value} clamped into [{aggregate.lower:g}, {aggregate.upper:g}]"
        for output in query.outputs
        for aggregate in clamping(output.aggregate)
    )
    kinds = {type(output.aggregate) for output in query.outputs}
    total = "; each share is of the total of the groups that are answered" if ShareOfTotal in kinds else ""
    total += "; totals over groups are of the groups that are answered" if RunningTotal in kinds else ""
    return (f"; {', '.join(found)}" if found else "") + total


def _many(count: int, thing: str) -> str:
    """Return a number of things."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
