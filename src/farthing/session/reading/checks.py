"""What a method call may name: refused in our own words before anything is charged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.query.expressions import Expression, check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.query.schema import Schema


def columns_of(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the grouping columns of a call."""
    columns = (by,) if isinstance(by, str) else by or ()
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str) for column in columns):
        raise UnsupportedQuery(
            "by does not name columns",
            construct="GROUP BY",
            rule="by is a column's name, or a list of them",
            got=repr(by),
            next_step='by="dest", or by=["dest", "month"]',
        )
    return tuple(columns)


def check_expression(where: Expression, schema: Schema) -> None:
    """Refuse a ready-made predicate that is none, or does not fit the table."""
    if not isinstance(where, Expression):
        raise UnsupportedQuery(
            "where is not a condition",
            construct="WHERE",
            rule="a condition as text",
            got=type(where).__name__,
            next_step='where="dep_delay > 15"',
        )
    check(where, schema)


def check_names(name: object, columns: tuple[str, ...]) -> None:
    """Refuse a name of the answer column that could not stand beside the others."""
    if not isinstance(name, str) or not name or {name, *columns} & {"met", "paid"}:
        raise UnsupportedQuery(
            "a column of the answer cannot have this name",
            construct="alias",
            rule="not empty, not met, not paid: every answer has these",
            got=", ".join([repr(name), *columns]),
            next_step="SELECT COUNT(*) AS n; for a grouping column, rename it in the table",
        )
    if {f"{name}_lower", f"{name}_upper"} & set(columns):
        raise UnsupportedQuery(
            "the interval's columns have the name of a grouping column",
            construct="alias",
            rule=f"{name}_lower and {name}_upper are the answer's own",
            got=", ".join(columns),
            next_step="give the count another name: COUNT(*) AS n",
        )


def several_quantiles(q: float | Sequence[float]) -> dict[str, float]:
    """Return the quantiles that are asked, by the endings of their columns; refused where they are not numbers."""
    if isinstance(q, int | float):
        return {"": q}
    found = tuple(q) if isinstance(q, Iterable) and not isinstance(q, str | bytes) else ()
    if not found or not all(isinstance(one, int | float) for one in found):
        raise InvalidTarget(
            "these are not quantiles",
            rule="a number from 0 to 1, or several",
            got=repr(q),
            next_step="0.5 is the median, (0.25, 0.5, 0.75) are the quartiles",
        )
    return {f"_{one}": one for one in found}
