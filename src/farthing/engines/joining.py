"""Which joins no engine runs: those that could not be kept within a unit's bounds. One rule for every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Sized

    from farthing.engines.bounded import BoundedQuery
    from farthing.query.joins import Join


def check(
    query: BoundedQuery,
    public: Mapping[str, bool],
    held: Callable[[Join], Sized],
    unit_type: Callable[[str | None], object],
) -> None:
    """Refuse joins that an engine cannot run, or could not keep within the bounds.

    Args:
        query: the question.
        public: the tables that may be joined, and whether each is not a unit's.
        held: returns the columns of a joined table that its condition holds to columns of the tables so far.
        unit_type: returns the type of the unit column in a joined table (None: in the protected one), None without it.

    Raises:
        UnsupportedQuery: which, and what to do.
    """
    named = [join.table for join in query.joins]
    for join in query.joins:
        if named.count(join.table) > 1 or join.table == query.source or join.table not in public:
            raise refused("a table is joined twice, or was never declared", join.table, "declared tables, each once")
        if query.unit.is_row:
            _check_row_unit(join, declared_public=public[join.table], held=held)
        elif not join.public:
            here, there = unit_type(None), unit_type(join.table)
            if here is None or here != there:
                unit = query.unit.column or ""
                raise refused("the joined table does not carry the unit", str(join), f"both have {unit!r}, of one type")


def _check_row_unit(join: Join, *, declared_public: bool, held: Callable[[Join], Sized]) -> None:
    """Refuse a join in which one row could become any number of rows."""
    if not (join.public and declared_public):
        raise refused("a protected table joined where each row is a unit", str(join), "both tables carry a unit column")
    if join.fan_out is None or not len(held(join)):
        raise refused(
            "a join without a limit on the rows that one row becomes",
            str(join),
            "with rows as units, ON has an equality of a column of each table, and the fan-out is declared",
        )


def check_units(found: Sequence[object], unit: str) -> None:
    """Refuse rows of several sources whose unit columns have several types, or are not there: they would not be one.

    Args:
        found: the engine's type of the unit column in each source, None without it.
        unit: its name.

    Raises:
        UnsupportedQuery: the types differ.
    """
    if None in found or any(kind != found[0] for kind in found):
        raise UnsupportedQuery(
            "tables of UNION ALL that do not carry the unit alike",
            construct="UNION ALL",
            got=", ".join(map(str, found))[:200],
            rule=f"every table of it has {unit!r}, of one type",
            next_step="store the unit in one type in all tables",
        )


def refused(what: str, got: str, rule: str) -> UnsupportedQuery:
    """Return the refusal of a join."""
    return UnsupportedQuery(
        what,
        construct="JOIN",
        got=got[:200],
        rule=rule,
        next_step="declare a public table at opening and join it as in JOIN zones ON trips.zone = zones.id",
    )
