"""Shares of a total in the SELECT list: refused by name, with the ways in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.sql.aggregates import inner

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText

_ADVICE: Final = (
    "count the groups with together=True, and divide by their sum: that is free; or ask for single shares without "
    "GROUP BY, each with an interval of its own: COUNT(*) FILTER (WHERE zone = 'centre') / COUNT(*)"
)

_QUERIES: Final = ("Subquery", "Select")


def refuse_share(node: Node, source: SqlText) -> None:
    """Refuse a number of the SELECT list that is divided by a total over other groups than its own.

    Raises:
        UnsupportedQuery: a window over aggregates, or a subquery beside one.
    """
    parts = list(node.walk(prune=_whole))
    for part in parts:
        kind = type(part).__name__
        totals = kind == "Window" and any(inner(one) is not None for one in _arguments(part))
        beside = kind in _QUERIES and any(type(one).__name__ not in _QUERIES and inner(one) for one in parts)
        if totals or beside:
            raise source.refuse("a share of a total", _ADVICE, part)


def _whole(node: Node) -> bool:
    """Return whether a node is an aggregate or a subquery, of which nothing within is divided by anything."""
    kind = type(node).__name__
    return kind in ("Window", "Filter", "WithinGroup", *_QUERIES) or (kind == "Anonymous" and inner(node) is not None)


def _arguments(window: Node) -> list[Node]:
    """Return what the function of a window is of, to any depth."""
    function = window.this
    while type(function).__name__ in ("Filter", "WithinGroup", "IgnoreNulls", "RespectNulls"):
        function = function.this
    return [one for argument in function.expressions for one in argument.walk()]
