"""The columns of an answer before it is asked: drivers want them with their types when they prepare a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.errors import UnsupportedQuery
from farthing.server.wire import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NUMBERS: Final = {"integer": values.INT8, "float": values.FLOAT8}
"""Types of columns that are numbers, by the wire's numbers of types."""
TYPES: Final = NUMBERS | {"date": values.DATE, "timestamp": values.TIMESTAMP, "boolean": values.BOOL}
"""Types of columns other than texts."""


def told(selects: Iterable[Any], known: Mapping[str, str], *, intervals: bool) -> list[tuple[str, int]]:
    """Return the columns of an answer, from what its question selects: no row is read and nothing is paid.

    Values are numbers, keys have the types of their columns.

    Args:
        selects: the expressions after SELECT.
        known: the columns of the table, with their types.
        intervals: whether each value has the ends of its interval beside it.

    Raises:
        UnsupportedQuery: the columns cannot be told before the answer is there.
    """
    found = [_column(one, known) for one in selects]
    if not intervals:
        return [(name, oid) for name, oid, _ in found]
    return [*_with_intervals(found), ("met", values.BOOL), ("paid", values.FLOAT8)]


def _column(node: Any, known: Mapping[str, str]) -> tuple[str, int, bool]:
    """Return the name of a column of an answer, the number of its type, and whether it is a value; else it is a key."""
    from sqlglot import exp

    inner = node.unalias()
    if inner.is_star:
        raise UnsupportedQuery(
            "refused: * in a prepared statement",
            construct="*",
            rule="a question names its columns: group keys and aggregates, no rows",
            next_step="SELECT zone, COUNT(*) AS n FROM rides WHERE x < $1 GROUP BY zone",
        )
    counted = next(inner.find_all(exp.AggFunc, exp.Anonymous), None)
    if counted is not None:
        beside = counted.find(exp.Column)
        name = str(counted.sql_name()).lower() + (f"_{beside.name}" if beside is not None else "")
        return node.alias or name, values.FLOAT8, True
    if isinstance(inner, exp.Extract):
        return node.alias or "extract", values.INT8, False
    plain = known.get(inner.name, "") if isinstance(inner, exp.Column) else ""
    return node.alias_or_name or inner.key, TYPES.get(plain, values.TEXT), False


def _with_intervals(columns: list[tuple[str, int, bool]]) -> Iterator[tuple[str, int]]:
    """Yield columns, and after each value the ends of its interval."""
    for name, oid, counted in columns:
        yield name, oid
        if counted:
            yield from ((f"{name}_{end}", oid) for end in ("lower", "upper"))
