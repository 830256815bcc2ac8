"""Columns of an answer that a SELECT above it shows rounded: names below it are the numbers as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.query.expressions import Column, Scalar
from farthing.query.rounding import UNROUNDED
from farthing.sql.released_columns import ENDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.aftermath import Aftermath
    from farthing.sql.released_columns import ReleasedColumns
    from farthing.sql.text import Node


def hidden(below: ReleasedColumns, released: ReleasedColumns) -> dict[str, str]:
    """Return the columns of an answer that a SELECT above it shows rounded, with what they were before."""
    names = {name for name, how in released.rounded.items() if how != below.rounded.get(name)}
    known = names & set(below.numbers)
    return {name + end: name + end + UNROUNDED for name in known for end in ("", *ENDS)}


def read_twice(before: Aftermath, above: frozenset[str], below: ReleasedColumns, hidden: Mapping[str, str]) -> bool:
    """Return whether a column is read as the question below rounded it, where the SELECT above rounds it once more."""
    known = {name + end for name in below.rounded for end in ("", *ENDS)}
    twice = {shown: was for shown, was in hidden.items() if shown in known}
    return bool(before.columns & twice.keys() or above & set(twice.values()))


def called_above(node: Node, called: Mapping[str, str], below: Mapping[str, str], alias: str) -> Scalar | None:
    """Return the column that a name stands for: a new one, or one of the answer below that is shown rounded."""
    if type(node).__name__ != "Column":
        return None
    table, word = node.args.get("table"), str(node.name).casefold()
    if table is None:
        name = called.get(word)
    else:
        name = below.get(word) if str(table.name).casefold() == alias.casefold() else None
    return None if name is None else Column(name)
