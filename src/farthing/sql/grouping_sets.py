"""CUBE, ROLLUP and GROUPING SETS: which sets of columns a question groups by, as nodes of its text."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText

MOST_SETS: Final = 4_096
"""The most sets of columns of one question."""

_PARTS: Final = ("grouping_sets", "cube", "rollup")


def node_sets(group: Node, source: SqlText) -> list[tuple[Node, ...]] | None:
    """Return the nodes of each set that GROUP BY names, parts beside each other crossed; None where it names no sets.

    Raises:
        UnsupportedQuery: too many sets, GROUP BY ALL beside sets, or WITH CUBE and WITH ROLLUP.
    """
    parts = [part for name in _PARTS for part in group.args.get(name) or ()]
    if not parts:
        return None
    if group.args.get("all"):
        raise source.refuse("GROUP BY ALL with grouping sets", "name the columns", group, "GROUP")
    found = [tuple(chain.from_iterable(_columns(node) for node in group.expressions))]
    for part in parts:
        sets = _sets(part, source)
        _check_many(len(found) * len(sets), source, part)
        found = [(*before, *more) for before, more in product(found, sets)]
    return found


def is_level(node: Node) -> bool:
    """Return whether a node is GROUPING(...) or GROUPING_ID(...)."""
    return type(node).__name__ == "Anonymous" and str(node.name).upper() in ("GROUPING", "GROUPING_ID")


def _sets(node: Node, source: SqlText) -> list[tuple[Node, ...]]:
    """Return the sets of one CUBE, ROLLUP or GROUPING SETS, the largest first of a CUBE or ROLLUP."""
    kind, inside = type(node).__name__, list(node.expressions)
    if not inside:
        raise source.refuse(f"WITH {kind.upper()}", f"write {kind.upper()} (a, b)", node, "WITH")
    if kind == "GroupingSets":
        found: list[Any] = []
        for each in inside:
            nested = type(each).__name__ in ("Cube", "Rollup", "GroupingSets")
            found += _sets(each, source) if nested else [_columns(each)]
            _check_many(len(found), source, node)
        return found
    units, many = [_columns(each) for each in inside], len(inside)
    if kind == "Cube":
        _check_many(2 ** min(many, 64), source, node)
        chosen: Any = (some for size in range(many, -1, -1) for some in combinations(units, size))
    else:
        chosen = (units[:size] for size in range(many, -1, -1))
    return [tuple(chain.from_iterable(some)) for some in chosen]


def _columns(node: Node) -> tuple[Node, ...]:
    """Return the columns of one element: itself, or those between its brackets."""
    if type(node).__name__ == "Tuple":
        return tuple(node.expressions)
    return (node.this,) if type(node).__name__ == "Paren" else (node,)


def _check_many(many: int, source: SqlText, node: Node) -> None:
    """Refuse more sets than anybody reads."""
    if many > MOST_SETS:
        raise source.refuse(f"more than {MOST_SETS:,} grouping sets", "ask for fewer columns at a time", node)
