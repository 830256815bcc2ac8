"""Joins of lists of rows, and the keys and orders of values that they and the groups share."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.evaluate import holds
from farthing.errors import UnsupportedQuery
from farthing.query.expressions import Column, Compare, Operator, explicit
from farthing.query.normal import conjuncts, normal
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.joins import Join


NAN: Final = math.nan
"""One object for all: it equals itself where tuples are compared and looked up."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A table that questions may join.

    Attributes:
        rows: its rows, as those of the protected table.
        schema: its columns.
        public: whether it is public; else it carries the unit column.
    """

    rows: Sequence[Mapping[str, Any]]
    schema: Schema
    public: bool = True


def as_read(rows: Sequence[Mapping[str, Any]], schema: Schema) -> list[dict[str, Any]]:
    """Return rows as engines read them: doubles in columns of doubles, times with a zone in UTC."""
    kinds = dict(schema.columns)
    return [{name: _as_read(value, kinds.get(name)) for name, value in row.items()} for row in rows]


def _as_read(value: Any, kind: Type | None) -> Any:
    """Return a value of a column as engines read it; None for a time that is outside the years 1 to 9999 in UTC."""
    if kind is Type.FLOAT and value is not None:
        return float(value)
    if kind is Type.TIMESTAMP and value is not None and value.tzinfo is not None:
        try:
            return value.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            return None
    return value


def key_of(value: Any, *, exact: bool = False) -> Any:
    """Return a value that equals another exactly where the two group together; one NaN for all.

    Args:
        value: of one column, so of one type.
        exact: whether decimals that are one double stay apart, as units do.
    """
    if isinstance(value, Decimal) and not exact:
        value = float(value)
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def order_of(value: Any) -> Any:
    """Return what sorts values of one type, NULL last and NaN before it; tuples by their parts."""
    if isinstance(value, tuple):
        return tuple(map(order_of, value))
    if value is None:
        return 2, 0
    if isinstance(value, float | Decimal) and math.isnan(value):
        return 1, 0
    return 0, value


def joined(
    rows: list[tuple[Any, dict[str, Any]]], join: Join, tables: Mapping[str, Beside], unit: PrivacyUnit, scope: Schema
) -> list[tuple[Any, dict[str, Any]]]:
    """Return rows (each with its unit) beside the rows of one more table that they meet.

    Guarantee: one row meets at most `join.fan_out` rows of a public table where rows are units; a row of one unit meets
        rows of a protected table that are of the same unit only.
    Proof: the rows that a row meets share one combination of what ON holds equal, and of each combination no more than
        that many are kept, chosen by the public table alone; units are compared here, whatever ON says.
    Assumes: a table that is declared public is.
    Rounds: nothing.
    """
    table = tables.get(join.table)
    if table is None or (unit.is_row and not (join.public and table.public)):
        raise UnsupportedQuery(
            "a table that cannot be joined",
            construct="JOIN",
            got=join.table,
            rule="joined tables are declared, and public where each row is a unit",
            next_step="declare the table at opening",
        )
    on = explicit(join.on, scope)
    named = [
        {f"{join.table}.{name}": row[name] for name in table.schema.names} for row in as_read(table.rows, table.schema)
    ]
    if unit.is_row or join.fan_out is not None:
        named = _fanned(named, join, scope)
    unit_name = f"{join.table}.{unit.column}"
    nothing = {f"{join.table}.{name}": None for name in table.schema.names}
    found = []
    for own, row in rows:
        mine = [
            row | other
            for other in named
            if join.public or key_of(other[unit_name], exact=True) == key_of(own, exact=True)
        ]
        met = [both for both in mine if holds(on, both) is True]
        found += [(own, both) for both in met or ([row | nothing] if join.left else [])]
    return found


def _fanned(named: list[dict[str, Any]], join: Join, scope: Schema) -> list[dict[str, Any]]:
    """Return the first rows of a public table, by all its columns, for each combination of what ON holds equal."""
    plain = [name for name in (named[0] if named else ()) if scope.require(name) is not Type.OTHER]
    equal = _equal_columns(join, scope)
    kept: defaultdict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(named, key=lambda row: order_of(tuple(row[name] for name in plain))):
        key = tuple(key_of(float(row[name]) if real and row[name] is not None else row[name]) for name, real in equal)
        kept[key].append(row)
    return [row for rows in kept.values() for row in rows[: join.fan_out or 1]]


def _equal_columns(join: Join, scope: Schema) -> list[tuple[str, bool]]:
    """Return the columns of a joined table that ON holds equal to columns of others, and whether as doubles."""
    prefix = f"{join.table}."
    found = []
    for part in conjuncts(normal(join.on)):
        match part:
            case Compare(Column(left), Operator.EQ, Column(right)):
                real = bool({scope.require(left), scope.require(right)} & REAL_TYPES)
                if left.startswith(prefix) is not right.startswith(prefix):
                    found.append((left if left.startswith(prefix) else right, real))
            case _:
                pass
    return found
