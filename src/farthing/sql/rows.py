"""The rows that FROM stands for, and what the owner of a table declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.query.expressions import Column
from farthing.sql.names import Names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.expressions import Expression
    from farthing.query.joins import Join
    from farthing.query.per_unit import Derived
    from farthing.query.schema import Schema
    from farthing.sql.names import Place


@dataclass(frozen=True, slots=True)
class Owned:
    """What the owner of a table declared.

    Attributes:
        table: the name of the protected table.
        schema: its columns.
        tables: the columns of the tables that may be joined, by name.
        public: which of these are public; the others carry the unit column.
        unit: the privacy unit.
    """

    table: str
    schema: Schema
    tables: Mapping[str, Schema]
    public: frozenset[str]
    unit: PrivacyUnit

    def free(self, number: int, derived: tuple[Derived, ...]) -> str:
        """Return a name for rows that a subquery makes, which no table has and no other such rows."""
        taken = {self.table, *self.tables, *(each.name for each in derived)}
        name = f"subquery {number}"
        while name in taken:
            name += "'"
        return name


@dataclass(frozen=True, slots=True)
class Flat:
    """The rows that FROM stands for, whatever subqueries it has: those of one table, joined and filtered.

    Guarantee: every row belongs to exactly one unit, to that of the one row of the protected table that it came from.
    Proof: docs/proofs/sql.tables.md: a subquery only names values of one row, joins as `_joined` allows,
        and drops rows by their own values; what would make one row of several is refused.
    Assumes: conditions on rows of the left of a join may be asked after it, as `JOIN` and `LEFT JOIN` keep them.
    Rounds: nothing.

    Attributes:
        table: the name of the table that the rows are of.
        names: what names mean.
        joins: the tables that come beside it, in order.
        where: the rows that are left, or None for all.
        derived: the rows made of one unit's rows each that the rows are of, or are made of, in order.
    """

    table: str
    names: Names
    joins: tuple[Join, ...] = ()
    where: Expression | None = None
    derived: tuple[Derived, ...] = ()

    @property
    def source(self) -> str | None:
        """The derived rows that these are of; None where they are of a table."""
        return self.table if self.table in (each.name for each in self.derived) else None

    def units(self, unit: str | None) -> tuple[Column, ...]:
        """Return the columns that hold the unit of a row, the first of all: its own, and those of joined tables."""
        joined = (f"{join.table}.{unit}" for join in self.joins if not join.public and not join.left)
        return () if unit is None else tuple(map(Column, (unit, *joined)))

    def made(self, place: Place, derived: tuple[Derived, ...], where: Expression | None) -> Flat:
        """Return rows that are made of these: the last of the derived ones, as a condition leaves them."""
        return Flat(place.table, Names((place,)), (), where, derived)
