"""Subqueries that make one row of a unit's rows: GROUP BY of the unit, and SELECT DISTINCT with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import Column, Scalar, columns_of, rewrite
from farthing.query.per_unit import PerUnit, scoped
from farthing.query.schema import Schema, Type
from farthing.sql.features import FeatureReader, is_feature, is_window
from farthing.sql.names import Names, Place
from farthing.sql.translator import Translator

if TYPE_CHECKING:
    from farthing.query.per_unit import Feature
    from farthing.sql.rows import Flat, Owned
    from farthing.sql.text import Node, SqlText

MOST_FEATURES: Final = 50
"""The most aggregates of one such subquery."""

GATHERED: Final = ("expressions", "from", "joins", "where", "with", "order", "group", "having", "distinct")
"""The clauses of such a subquery."""

_MIXES: Final = "each row of a subquery belongs to one unit"


def makes_rows(select: Node) -> bool:
    """Return whether a subquery makes rows of several."""
    if type(select).__name__ != "Select":
        return False
    items = [*select.expressions, *(item for item in (select.args.get("having"),) if item is not None)]
    parts = (part for item in items for part in item.walk(prune=is_window))
    return bool(select.args.get("group") or select.args.get("distinct")) or any(map(is_feature, parts))


def per_unit_rows(select: Node, source: SqlText, owned: Owned, rows: Flat, named: tuple[str, tuple[str, ...]]) -> Flat:
    """Return the rows that a subquery makes of each unit's.

    Args:
        select: the subquery, of known clauses.
        source: the text.
        owned: what the owner declared.
        rows: the rows that it is of.
        named: what the rows are called, and the new names of its first columns.

    Raises:
        UnsupportedQuery: it groups by something else than the unit, so that rows of several units would be one.
    """
    return _Making(select, source, owned, rows).rows(*named)


def named_rows(rows: Flat, alias: str) -> Flat:
    """Return rows under another name."""
    return replace(rows, names=Names((replace(rows.names.places[0], table=alias),)))


def beside(rows: Flat) -> Flat:
    """Return derived rows as they are named where they are joined; other rows as they are."""
    if rows.source is None:
        return rows

    def moved(node: Any) -> Any:
        return Column(f"{rows.table}.{node.name}") if isinstance(node, Column) else node

    place = rows.names.places[0]
    scope = Schema(tuple((f"{rows.table}.{name}", kind) for name, kind in place.scope.columns))
    columns = tuple((name, rewrite(scalar, moved)) for name, scalar in place.columns)
    names = Names((replace(place, scope=scope, columns=columns, own=()),))  # type: ignore[arg-type]
    where: Any = None if rows.where is None else rewrite(rows.where, moved)
    return replace(rows, names=names, where=where)


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of the SELECT list."""

    node: Node
    body: Node
    alias: str | None


class _Making:
    """Reads one subquery.

    Args:
        select: the subquery.
        source: the text.
        owned: what the owner declared.
        rows: what it is of.
    """

    def __init__(self, select: Node, source: SqlText, owned: Owned, rows: Flat) -> None:
        self._select = select
        self._source = source
        self._owned = owned
        self._rows = rows
        self._inside = Translator(source, rows.names, "a subquery")
        self._items = [_item(node, source) for node in select.expressions]
        self._read = FeatureReader(self._inside)
        self._features: dict[str, tuple[str, Feature]] = {}
        self._units = rows.units(owned.unit.column)
        self._aliases: dict[str, Scalar] = {}
        self._by = self._grouped()

    def rows(self, name: str, renamed: tuple[str, ...]) -> Flat:
        """Return the rows, one for each unit and combination of the other groups."""
        having = self._select.args.get("having")
        for node in (*(item.body for item in self._items), *(() if having is None else (having.this,))):
            self._gather(node)
        made = self._made(name)
        derived = (*self._rows.derived, made)
        owned = self._owned
        schema = scoped(owned.schema, owned.tables, owned.unit.column, derived)[made.name]
        own = Names((Place(made.name, None, schema, tuple((name, Column(name)) for name in schema.names)),))
        reader = Translator(self._source, own, "a subquery", self._known)
        columns = self._columns(reader, renamed)
        where = None if having is None else reader.within("HAVING").whole(having.this)
        place = Place(made.name, None, schema, columns, schema.names)
        return self._rows.made(place, derived, where)

    def _made(self, name: str) -> PerUnit:
        """Return what is made."""
        by = tuple((self._key(place), scalar) for place, scalar in enumerate(self._by.values()))
        features = tuple(self._features.values())
        source = None if self._rows.table == self._owned.table else self._rows.table
        return PerUnit(name, source, self._rows.joins, self._rows.where, by, features)

    def _grouped(self) -> dict[str, Scalar]:
        """Return the groups beside the unit, by their identity; refuse those without it."""
        group = self._select.args.get("group")
        nodes = [item.body for item in self._items] if self._select.args.get("distinct") else []
        if self._select.args.get("distinct"):
            nodes = self._distinct(nodes)
        if group is not None:
            nodes = self._listed(group)
        found = [(node, self._value(node)) for node in nodes]
        if not any(scalar in self._units for _, scalar in found):
            raise self._mixed(group)
        by: dict[str, Scalar] = {}
        for node, scalar in found:
            if scalar not in self._units and columns_of(scalar):
                if self._inside.type(scalar) is Type.OTHER:
                    raise self._source.refuse("GROUP BY of a column of another type", "group by plain values", node)
                by.setdefault(scalar.canonical(), scalar)
        return by

    def _distinct(self, nodes: list[Node]) -> list[Node]:
        """Return the groups of SELECT DISTINCT: all columns; refuse aggregates and groups beside it."""
        distinct = self._select.args["distinct"]
        if distinct.args.get("on") or self._select.args.get("group") or any(map(is_feature, nodes)):
            raise self._source.refuse(
                "DISTINCT beside groups", "leave DISTINCT out: rows of groups differ", self._select
            )
        return nodes

    def _listed(self, group: Node) -> list[Node]:
        """Return the nodes of GROUP BY: places, names of the list and ALL are what they stand for."""
        for part, value in group.args.items():
            if value and part not in ("expressions", "all"):
                raise self._source.refuse(f"GROUP BY {part.upper()} in a subquery", "list the columns", group)
        if group.args.get("all"):
            return [item.body for item in self._items if not any(map(is_feature, item.body.walk()))]
        return [self._meant(node) for node in group.expressions]

    def _meant(self, node: Node) -> Node:
        """Return what a place or a name of the list stands for in GROUP BY."""
        kind = type(node).__name__
        if kind == "Literal" and not node.is_string:
            place = int(node.this) if str(node.this).isdigit() and len(str(node.this)) < 5 else 0
            if not 1 <= place <= len(self._items):
                raise self._source.refuse(f"GROUP BY {str(node.this)[:20]}", "name the column", node)
            return self._items[place - 1].body
        if kind == "Column" and node.args.get("table") is None:
            name = str(node.name).casefold()
            named = [item.body for item in self._items if (item.alias or "").casefold() == name]
            if named and name not in self._rows.names.taken:
                return named[0]
        return node

    def _mixed(self, group: Node | None) -> Exception:
        """Return the refusal of groups in which rows of several units meet."""
        unit = self._owned.unit.column
        if unit is None:
            advice = f"with one row as the unit nothing is made of several rows: {_MIXES}"
        else:
            advice = f"group by {unit} too, or in the outermost SELECT alone: {_MIXES}"
        distinct = bool(self._select.args.get("distinct"))
        clause = "GROUP BY" if group is not None else "an aggregate"
        parts = [part for item in self._items for part in item.body.walk() if is_feature(part)]
        if distinct:
            return self._source.refuse("DISTINCT in a subquery", advice, self._select, "DISTINCT")
        found = group if group is not None else parts[0] if parts else self._select
        return self._source.refuse(f"{clause} in a subquery", advice, found)

    def _value(self, node: Node) -> Scalar:
        """Return a value of a row below."""
        if any(map(is_feature, node.walk())):
            raise self._source.refuse("GROUP BY of an aggregate", "group by columns", node)
        return self._inside.scalar(node) if type(node).__name__ == "Column" else self._inside.typed(node)[0]

    def _gather(self, node: Node) -> None:
        """Read every aggregate below a node."""
        for part in node.walk():
            if type(part).__name__ == "Window":
                advice = "write the window in a subquery of its own"
                raise self._source.refuse("a window (OVER) beside GROUP BY in a subquery", advice, part)
        for part in node.walk(prune=is_feature):
            if is_feature(part):
                self._named(part)

    def _named(self, node: Node) -> Scalar:
        """Return the column that an aggregate is."""
        with self._source.located(node):
            feature = self._read.feature(node)
        if len(self._features) >= MOST_FEATURES:
            raise self._source.refuse(f"more than {MOST_FEATURES} aggregates in a subquery", "name fewer", node)
        name, _ = self._features.setdefault(feature.canonical(), (self._free(f"f{len(self._features)}"), feature))
        return Column(name)

    def _columns(self, reader: Translator, renamed: tuple[str, ...]) -> tuple[tuple[str, Scalar], ...]:
        """Return the columns, by name."""
        columns = []
        for item in self._items:
            name = item.alias
            if name is None and type(item.body).__name__ == "Column":
                name = self._inside.named(item.body)[0]
            if name is None:
                raise self._source.refuse(
                    "a value without a name in a subquery", "give it one: value AS name", item.node
                )
            columns.append((name, reader.typed(item.body)[0]))
        self._aliases.update((name.casefold(), scalar) for name, scalar in columns)
        if len(renamed) > len(columns):
            raise self._source.refuse("more names than columns", f"there are {len(columns)} columns", self._select)
        named = [(new, scalar) for new, (_, scalar) in zip(renamed, columns, strict=False)]
        return (*named, *columns[len(renamed) :])

    def _known(self, node: Node) -> Scalar | None:
        """Return the column that a node is of what is made: an aggregate, a group, or a name of the list."""
        if is_feature(node):
            return self._named(node)
        if type(node).__name__ == "Column":
            return self._called(node) or self._grouping(node)
        if any(is_feature(part) or self._called(part) is not None for part in node.walk()):
            return None
        if not any(type(part).__name__ == "Column" for part in node.walk()):
            return None
        return self._found(self._inside.scalar(node))

    def _called(self, node: Node) -> Scalar | None:
        """Return what a name of the SELECT list stands for where no column has it, as in HAVING."""
        if type(node).__name__ != "Column" or node.args.get("table") is not None:
            return None
        name = str(node.name).casefold()
        return None if name in self._rows.names.taken else self._aliases.get(name)

    def _grouping(self, node: Node) -> Scalar:
        """Return the column of a group that is a column."""
        found = self._found(self._inside.column(node))
        if found is None:
            name = str(node.name)[:60]
            raise self._source.refuse(f"column {name!r} outside of GROUP BY", "group by it too, or aggregate it", node)
        return found

    def _found(self, scalar: Scalar) -> Scalar | None:
        """Return the column of a group, None for a value that is none."""
        if scalar in self._units:
            return self._units[0]
        keys = list(self._by)
        return Column(self._key(keys.index(scalar.canonical()))) if scalar.canonical() in keys else None

    def _key(self, place: int) -> str:
        """Return the name of the column of a group."""
        return self._free(f"k{place}")

    def _free(self, name: str) -> str:
        """Return a name for a column of what is made that the unit does not have, in any case."""
        return f"{name}'" if name.casefold() == str(self._owned.unit.column).casefold() else name


def _item(node: Node, source: SqlText) -> _Item:
    """Return an item of the SELECT list."""
    kind = type(node).__name__
    if kind == "Star" or (kind == "Column" and type(node.this).__name__ == "Star"):
        raise source.refuse("* beside GROUP BY in a subquery", "name aggregates and groups", node)
    alias = str(node.alias) if kind == "Alias" else None
    return _Item(node, node.this if alias is not None else node, alias)
