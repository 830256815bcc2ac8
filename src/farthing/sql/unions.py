"""UNION ALL in a subquery: rows of several SELECTs, each of the unit that it has there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.query.expressions import Cast, Column, Scalar
from farthing.query.per_row import Stacked, StackedPart
from farthing.query.per_unit import scoped
from farthing.query.schema import NUMBER_TYPES, Type
from farthing.sql.names import Place
from farthing.sql.translator import Translator

if TYPE_CHECKING:
    from farthing.sql.rows import Flat, Owned
    from farthing.sql.text import Node, SqlText

_TWICE: Final = "a row of UNION ALL belongs to the unit that it has in its SELECT"


def selects(union: Node, source: SqlText) -> list[Node]:
    """Return the SELECTs of UNION ALL, in order.

    Raises:
        UnsupportedQuery: UNION without ALL, or with what comes behind it.
    """
    found, left = [], [union]
    while left:
        node = left.pop()
        while type(node).__name__ == "Subquery" and not node.args.get("alias"):
            node = node.this
        if type(node).__name__ != "Union":
            found.append(node)
            continue
        if node.args.get("distinct") is not False:
            advice = "write UNION ALL: which rows are left would depend on rows of other units"
            raise source.refuse("UNION in a subquery", advice, node, "UNION")
        for part, value in node.args.items():
            if value and part.strip("_") not in ("this", "expression", "with"):
                raise source.refuse(f"UNION ALL with {part.strip('_').upper()}", "leave that part out", node, "UNION")
        left += [node.expression, node.this]
    return found


def stacked_rows(
    union: Node, source: SqlText, owned: Owned, parts: list[Flat], named: tuple[str, tuple[str, ...]]
) -> Flat:
    """Return the rows of UNION ALL.

    Args:
        union: its node.
        source: the text.
        owned: what the owner declared.
        parts: the rows of each of its SELECTs.
        named: what the rows are called, and the new names of their first columns.

    Raises:
        UnsupportedQuery: rows without a unit, other numbers of columns, or other types.
    """
    name, renamed = named
    unit = owned.unit.column
    if unit is None:
        raise source.refuse(
            "UNION ALL where each row is a unit", f"ask each SELECT on its own: {_TWICE}", union, "UNION"
        )
    for rows in parts:
        if not rows.names.places[0].own:
            advice = f"name {rows.table!r} itself in FROM, if its rows belong to units: {_TWICE}"
            raise source.refuse(f"UNION ALL of table {rows.table!r}", advice, union, "UNION")
    values = _alike(union, source, parts)
    names = [shown for shown, _ in parts[0].names.places[0].columns]
    if len(renamed) > len(names):
        raise source.refuse("more names than columns", f"there are {len(names)} columns", union, "UNION")
    names = [*renamed, *names[len(renamed) :]]
    units = [
        all(one[place] in rows.units(unit) for rows, one in zip(parts, values, strict=True))
        for place in range(len(names))
    ]
    free = "c" if str(unit).casefold()[:1] != "c" else "v"
    kept = [place for place, is_unit in enumerate(units) if not is_unit]
    branches = tuple(
        StackedPart(
            None if rows.table == owned.table else rows.table,
            rows.joins,
            rows.where,
            tuple(one[place] for place in kept),
        )
        for rows, one in zip(parts, values, strict=True)
    )
    made = Stacked(name, tuple(f"{free}{place}" for place in kept), branches)
    derived = (*dict.fromkeys(each for rows in parts for each in rows.derived), made)
    schema = scoped(owned.schema, owned.tables, unit, derived)[name]
    shown = [
        (new, Column(unit if is_unit else f"{free}{place}"))
        for place, (new, is_unit) in enumerate(zip(names, units, strict=True))
    ]
    return parts[0].made(Place(name, None, schema, tuple(shown), schema.names), derived, None)


def _alike(union: Node, source: SqlText, parts: list[Flat]) -> list[list[Scalar]]:
    """Return the values of each SELECT, of one type in each place."""
    listed = [[scalar for _, scalar in rows.names.places[0].columns] for rows in parts]
    if len({len(one) for one in listed}) > 1:
        shown = " and ".join(str(len(one)) for one in listed)
        raise source.refuse(f"UNION ALL of {shown} columns", "name as many in each SELECT", union, "UNION")
    readers = [Translator(source, rows.names, "UNION ALL") for rows in parts]
    for place, (name, _) in enumerate(parts[0].names.places[0].columns):
        kinds = [reader.type(one[place]) for reader, one in zip(readers, listed, strict=True)]
        plain = {Type.FLOAT if kind is Type.DECIMAL else kind for kind in kinds}
        if Type.OTHER in plain or (len(plain) > 1 and not plain <= set(NUMBER_TYPES)):
            shown = " and ".join(dict.fromkeys(map(str, kinds)))
            raise source.refuse(f"UNION ALL of {shown} in {name!r}", "CAST the values to one type", union, "UNION")
        for one, kind in zip(listed, kinds, strict=True):
            if len(plain) > 1 and kind is Type.INTEGER:
                one[place] = Cast(one[place], Type.FLOAT)
    return listed
