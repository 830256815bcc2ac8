"""Rows that are made of one unit's rows each: what a subquery with GROUP BY of the unit stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from farthing.query.expressions import Expression, Scalar, type_of
from farthing.query.per_row import Stacked, StackedPart, Windowed
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.joins import Join

FINEST: Final = 32
"""A unit's sum of reals is told in steps of 2^-FINEST: sums of whole numbers have no order."""

COARSEST: Final = 31
"""The places of the lower of the two parts of a whole number before it is added: both parts fit 32 bits."""

FURTHEST: Final = 2.0**62
"""Reals beyond this magnitude are added as this magnitude."""


class FeatureKind(StrEnum):
    """What may be made of the rows of a unit."""

    COUNT = "count"
    DISTINCT = "count distinct"
    SUM = "sum"
    MEAN = "avg"
    MIN = "min"
    MAX = "max"
    FIRST = "arg_min"
    LAST = "arg_max"


@dataclass(frozen=True, slots=True)
class Feature:
    """One value made of some rows of one unit. NULL and NaN are not values.

    Guarantee: it depends on these rows alone, and not on their order.
    Proof: docs/proofs/query.per_unit.md.
    Assumes: rows of one unit.
    Rounds: reals that are added, each to 2^-32.

    Attributes:
        kind: what is made.
        value: of what; None for COUNT(*). COUNT, MIN and MAX are of any type that compares, SUM and AVG of numbers.
        key: of FIRST and LAST: the value of the row with the least or greatest key; of several, the least value.
    """

    kind: FeatureKind
    value: Scalar | None = None
    key: Scalar | None = None

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The scalars that it reads."""
        return tuple(scalar for scalar in (self.value, self.key) if scalar is not None)

    def type(self, schema: Schema) -> Type:
        """Return the type of the value, of rows with some columns."""
        if self.kind in (FeatureKind.COUNT, FeatureKind.DISTINCT) or self.value is None:
            return Type.INTEGER
        return Type.FLOAT if self.kind is FeatureKind.MEAN else type_of(self.value, schema)

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps([self.kind.value, *(scalar.canonical() for scalar in self.scalars)])

    def __str__(self) -> str:
        match self.kind:
            case FeatureKind.COUNT:
                return f"COUNT({'*' if self.value is None else self.value})"
            case FeatureKind.DISTINCT:
                return f"COUNT(DISTINCT {self.value})"
            case _:
                return f"{self.kind.value.upper()}({', '.join(map(str, self.scalars))})"


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for every unit, and every combination of `by` that some of its rows have.

    Guarantee: a row is a function of the rows of one unit, and has that unit.
    Proof: docs/proofs/query.per_unit.md.
    Assumes: every row of its source belongs to one unit.
    Rounds: nothing but what features do.

    Attributes:
        name: what joins and questions call these rows; no table has that name.
        source: the rows that they are made of: an earlier name, another table of the same unit, or None for the
            protected table.
        joins: the tables beside these, in order.
        where: the rows that count, or None for all.
        by: the names of grouping columns beside the unit, and what they are.
        features: the names of the other columns, and what they are.
    """

    name: str
    source: str | None
    joins: tuple[Join, ...]
    where: Expression | None
    by: tuple[tuple[str, Scalar], ...]
    features: tuple[tuple[str, Feature], ...]

    def canonical(self) -> str:
        """Return the identity text."""
        joins = [join.canonical() for join in self.joins]
        where = "" if self.where is None else self.where.canonical()
        made = [[name, one.canonical()] for name, one in (*self.by, *self.features)]
        return json.dumps([self.name, self.source, joins, where, len(self.by), made])

    def __str__(self) -> str:
        shown = ", ".join(f"{one} AS {name}" for name, one in self.features)
        joins = "".join(f" {join}" for join in self.joins)
        where = "" if self.where is None else f" WHERE {self.where}"
        by = "".join(f", {scalar} AS {name}" for name, scalar in self.by)
        return f"{self.name} = ({shown} FROM {self.source or 'the table'}{joins}{where} BY unit{by})"


Derived: TypeAlias = PerUnit | Windowed | Stacked
"""Rows that a subquery stands for: each belongs to one unit, and is made of that unit's rows alone."""


Part: TypeAlias = PerUnit | Windowed | StackedPart
"""What derived rows are of: a source, with joins and a condition."""


def parts_of(each: Derived) -> tuple[Part, ...]:
    """Return what derived rows are of: one part, or the SELECTs of UNION ALL."""
    return each.branches if isinstance(each, Stacked) else (each,)


def one_row(
    derived: tuple[Derived, ...], source: str | None, joins: tuple[Join, ...], where: Expression | None = None
) -> bool:
    """Return whether a unit has at most one row of a source beside what it is joined with, as a condition leaves them.

    >>> each = PerUnit("each", None, (), None, (), (("n", Feature(FeatureKind.COUNT)),))
    >>> one_row((each,), "each", ()), one_row((each,), None, ())
    (True, False)
    """
    known = {each.name: each for each in derived}
    if not _single(known.get(source or ""), where, ""):
        return False
    return all(not join.public and _single(known.get(join.table), join.on, f"{join.table}.") for join in joins)


def _single(each: Derived | None, condition: Expression | None, prefix: str) -> bool:
    """Return whether a unit has at most one of some rows where a condition holds."""
    match each:
        case PerUnit():
            return not each.by
        case Windowed():
            return each.first(condition, prefix)
        case Stacked() | None:
            return False
        case _:
            assert_never(each)


def scoped(
    own: Schema, tables: Mapping[str, Schema], unit: str | None, derived: tuple[Derived, ...]
) -> Mapping[str | None, Schema]:
    """Return the columns of every source: of tables by name, of the protected table under None, and of made rows."""
    found: dict[str | None, Schema] = {None: own}
    found.update(tables)
    for each in derived:
        part = parts_of(each)[0]
        schema = columns_of_source(found, part.source, part.joins)
        units = () if unit is None else ((unit, found[part.source].require(unit)),)
        found[each.name] = Schema((*units, *_columns(each, schema)))
    return found


def _columns(each: Derived, schema: Schema) -> tuple[tuple[str, Type], ...]:
    """Return the columns of made rows beside the unit, of what they are made of."""
    match each:
        case PerUnit():
            by = tuple((name, type_of(scalar, schema)) for name, scalar in each.by)
            return (*by, *((name, one.type(schema)) for name, one in each.features))
        case Windowed():
            kept = tuple((name, type_of(scalar, schema)) for name, scalar in each.columns)
            return (*kept, *((name, one.type(schema)) for name, one in each.windows))
        case Stacked():
            values = each.branches[0].values
            return tuple((name, type_of(one, schema)) for name, one in zip(each.columns, values, strict=True))
        case _:
            assert_never(each)


def columns_of_source(known: Mapping[str | None, Schema], source: str | None, joins: tuple[Join, ...]) -> Schema:
    """Return the columns that expressions may name: a source's own, and "table.column" of joined ones."""
    joined = [(f"{join.table}.{name}", kind) for join in joins for name, kind in known[join.table].columns]
    return Schema((*known[source].columns, *joined))
