"""FROM and JOIN: the protected table, and the tables beside it that its owner declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.query.expressions import And, Column, Compare, Expression, Operator, check
from farthing.query.joins import Join
from farthing.sql.names import Names, Place
from farthing.sql.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.schema import Schema
    from farthing.sql.text import Node, SqlText


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


def read_tables(source: SqlText, select: Node, owned: Owned) -> tuple[Names, tuple[Join, ...]]:
    """Return what names mean in a question, and its joins.

    Raises:
        UnsupportedQuery: another table, a join that is none of the two kinds, or one without the unit column.
    """
    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise source.refuse("SELECT without FROM", f"write FROM {owned.table}", select)
    name, alias = _table(source, clause.this, owned.table, "FROM")
    if name != owned.table and name.casefold() != owned.table.casefold():
        raise source.refuse(f"table {name!r}", f"the protected table is {owned.table!r}", clause.this)
    names = Names((Place(owned.table, alias, owned.schema),))
    joins: list[Join] = []
    for node in select.args.get("joins") or ():
        names, join = _join(source, node, owned, names)
        joins.append(join)
    return names, tuple(joins)


def _table(source: SqlText, named: Node, own: str, word: str) -> tuple[str, str | None]:
    """Return the name and alias of a table; refuse whatever else may stand there."""
    from sqlglot import exp

    if isinstance(named, exp.Query):
        raise source.refuse("a subquery", f"ask FROM {own} directly", named)
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise source.refuse("a table function", f"write FROM {own}", named, word)
    for part, value in named.args.items():
        if value and part not in ("this", "alias"):
            found, advice = _TABLE_PARTS.get(part.strip("_"), (f"a table with {part.strip('_')}", f"write FROM {own}"))
            raise source.refuse(found, advice, named)
    alias = named.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise source.refuse("renamed columns", "use the table's own column names", named)
    return str(named.name), None if alias is None else str(alias.name)


_TABLE_PARTS = {
    "sample": ("SAMPLE", "ask the whole table"),
    "joins": ("JOIN", "join without brackets: FROM t JOIN u ON ... JOIN v ON ..."),
    "laterals": ("LATERAL", "ask one table"),
    "pivots": ("PIVOT", "write one aggregate with FILTER (WHERE ...) for each column"),
}


def _join(source: SqlText, node: Node, owned: Owned, names: Names) -> tuple[Names, Join]:
    """Return the names after a join, and the join."""
    left = _side(source, node)
    name, alias = _table(source, node.this, owned.table, "JOIN")
    known = {table.casefold(): table for table in owned.tables}
    table = name if name in owned.tables else known.get(name.casefold(), "")
    if not table:
        listed = ", ".join(sorted(owned.tables)[:20])
        advice = f"the tables that may be joined are {listed}" if listed else "the owner declared no table to join"
        raise source.refuse(f"JOIN of table {name!r}", advice, node.this)
    taken = [word for place in names.places for word in (place.table, place.alias) if word]
    if (alias or table).casefold() in map(str.casefold, taken) or table in (place.table for place in names.places):
        raise source.refuse(f"table {name!r} twice", "join each table once; declare it under a second name", node.this)
    joined = Place(table, alias, owned.tables[table], own=False)
    before, names = names, Names((*names.places, joined), names.merged)
    _check_names(source, node, names)
    using = node.args.get("using")
    if using:
        on = _using(source, using, before, joined, names)
        names = Names(names.places, names.merged | {str(column.name).casefold() for column in using})
    else:
        on = _condition(source, node, names)
    public = table in owned.public
    if not public:
        _check_unit(source, node, owned, on, table)
    return names, Join(table, on, left=left, public=public)


def _side(source: SqlText, node: Node) -> bool:
    """Return whether rows without a match are kept; refuse all joins but JOIN and LEFT JOIN."""
    side, kind, method = (str(node.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    plain = side in ("", "LEFT") and kind in ("", "INNER", "OUTER") and not method
    bare = not node.args.get("on") and not node.args.get("using")
    if not plain:
        words = " ".join(word for word in (method, side, kind) if word)
        raise source.refuse(f"{words} JOIN", "write JOIN ... ON, or LEFT JOIN ... ON", node.this)
    if bare:
        raise source.refuse("JOIN without ON", "write JOIN table ON condition", node.this)
    for part, value in node.args.items():
        if value and part not in ("this", "side", "kind", "on", "using"):
            raise source.refuse(f"JOIN with {part}", "write JOIN table ON condition", node.this)
    return side == "LEFT"


def _check_names(source: SqlText, node: Node, names: Names) -> None:
    """Refuse a join after which a quoted column and a joined one would have one name."""
    every = names.schema.names
    if len(set(every)) < len(every):
        raise source.refuse("a column that is named like a joined one", "rename one of the two tables", node.this)


def _condition(source: SqlText, node: Node, names: Names) -> Expression:
    """Return the condition of ON."""
    return Translator(source, names, "ON").whole(node.args["on"])


def _using(source: SqlText, using: list[Any], before: Names, joined: Place, names: Names) -> Expression:
    """Return the equality of the columns of USING."""
    from sqlglot import exp

    parts = []
    for identifier in using:
        node = exp.Column(this=identifier.copy())
        first = Column(before.column(source, node))
        second = Column(Names((joined,)).column(source, node))
        equal = Compare(first, Operator.EQ, second)
        with source.located(node):
            check(equal, names.schema)
        parts.append(equal)
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _check_unit(source: SqlText, node: Node, owned: Owned, on: Expression, table: str) -> None:
    """Refuse a join of two protected tables that does not keep each unit's rows to itself.

    Guarantee: every joined row is of one unit: the rows of both tables that meet carry the same unit.
    Proof: [design, bound last] the equality of both unit columns is one of the conditions that must all hold.
    Assumes: tables that are not declared public carry the unit column.
    Rounds: nothing.
    """
    unit = owned.unit.column
    if unit is None:
        raise source.refuse(
            f"JOIN of the protected table {table!r}", "with one row as the unit, join public tables only", node.this
        )
    sides = {Column(unit), Column(f"{table}.{unit}")}
    parts = on.operands if isinstance(on, And) else (on,)
    if not any(
        isinstance(part, Compare) and part.operator is Operator.EQ and {part.left, part.right} == sides
        for part in parts
    ):
        raise source.refuse(
            f"JOIN of {table!r} without the unit column",
            f"both tables are protected: write ON {owned.table}.{unit} = {table}.{unit}, and more with AND",
            node.this,
        )
