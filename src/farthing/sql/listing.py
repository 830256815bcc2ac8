"""The SELECT list and GROUP BY: aggregates with their names, and the grouping columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.errors import UnsupportedQuery
from farthing.query.aggregates import NamedAggregate
from farthing.query.expressions import Case, Column, Scalar, columns_of
from farthing.query.key_order import OrderKey
from farthing.query.running_total import OverGroups
from farthing.query.schema import Type
from farthing.query.share_of_total import ShareOfTotal
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.arithmetic import ADVICE
from farthing.sql.compared import is_sum_of, neighbour_in, read_compared, read_plain
from farthing.sql.grouping_sets import is_level, node_sets
from farthing.sql.rounded import peeled
from farthing.sql.total import total_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.aggregates import Aggregate
    from farthing.query.rounding import Rounding
    from farthing.sql.asked_numbers import Read
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node, SqlText
    from farthing.sql.translator import Translator

MOST_COLUMNS: Final = 100
"""The most columns of an answer."""

MOST_BITS: Final = 31
"""The most columns that one GROUPING tells of."""


@dataclass(frozen=True, slots=True)
class Group:
    """A grouping column: its name in the answer, what it is, and where it stands in the text."""

    name: str
    scalar: Scalar
    node: Node


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the SELECT list: an aggregate, a grouping column, or GROUPING of some (neither of them)."""

    node: Node
    alias: str | None
    read: Read | None
    scalar: Scalar | None

    @property
    def body(self) -> Node:
        """The item without its alias."""
        return self.node.this if self.alias is not None else self.node


@dataclass(frozen=True, slots=True)
class Listed:
    """The SELECT list."""

    source: SqlText
    items: tuple[Item, ...]

    @classmethod
    def of(cls, select: Node, reader: Translator, aggregates: Aggregates) -> Listed:
        """Return the items of a SELECT list; at least one is an aggregate."""
        items = []
        for node in select.expressions:
            alias = str(node.alias) if type(node).__name__ == "Alias" else None
            body = node.this if alias is not None else node
            read = read_number(body, aggregates, select)
            if read is not None:
                items.append(Item(node, alias, read, None))
            elif is_level(body):
                items.append(Item(node, alias, None, None))
            else:
                items.append(Item(node, alias, None, cls._scalar(body, reader)))
        if not any(item.read for item in items):
            raise reader.source.refuse(
                "SELECT without an aggregate", "rows never leave: add COUNT(*)", select, "SELECT"
            )
        return cls(reader.source, tuple(items))

    @staticmethod
    def _scalar(body: Node, reader: Translator) -> Scalar:
        """Return a value of the SELECT list that should be a grouping column."""
        kind = type(body).__name__
        if kind == "Star" or (kind == "Column" and type(body.this).__name__ == "Star"):
            raise reader.source.refuse("SELECT *", "rows never leave: write SELECT COUNT(*)", body)
        if any(inner(part) is not None for part in body.walk()) and kind != "Subquery":
            nested = next(part for part in body.walk() if inner(part) is not None)
            if kind == "Anonymous":
                what = f"{str(body.name).upper()[:40]} of an aggregate"
                raise reader.source.refuse(what, "leave it out, and compute with the answer: that is free", body)
            raise reader.source.refuse("arithmetic with an aggregate", ADVICE, nested)
        return reader.typed(body)[0] if kind != "Column" else reader.scalar(body)

    def at(self, digits: str) -> Item | None:
        """Return the item at a place, counted from 1."""
        place = int(digits) if digits.isdigit() and len(digits) < 5 else 0
        return self.items[place - 1] if 1 <= place <= len(self.items) else None

    def called(self, name: str) -> Item | None:
        """Return the item with an alias."""
        return next((item for item in self.items if (item.alias or "").casefold() == name.casefold()), None)

    def of_scalar(self, scalar: Scalar) -> Item | None:
        """Return the item that is a value."""
        text = scalar.canonical()
        return next((item for item in self.items if item.scalar is not None and item.scalar.canonical() == text), None)

    def named(self, groups: list[Group], reader: NodeReader) -> tuple[tuple[NamedAggregate, ...], tuple[str, ...]]:
        """Return the aggregates with their names, and the names of all items; other columns are refused.

        What is computed of released numbers is left to `comparisons`.
        """
        taken = {group.name.casefold() for group in groups}
        taken |= {item.alias.casefold() for item in self.items if item.scalar is None and item.alias}
        outputs, columns = list[NamedAggregate](), list[str]()
        for item in self.items:
            if item.scalar is not None:
                columns.append(self._group(item, groups))
                continue
            name = item.alias or free_name("grouping" if item.read is None else item.read.name, taken)
            if name in columns or any(name.casefold() == group.name.casefold() for group in groups):
                raise self.source.refuse(
                    f"alias {name!r}", "the answer needs a name of its own: COUNT(*) AS n", item.node, name.upper()
                )
            taken.add(name.casefold())
            if item.read is not None and item.read.compared is None:
                outputs.append(NamedAggregate(name, within(item.read, groups_by_text(groups), reader)))
            columns.append(name)
        return tuple(outputs), tuple(columns)

    def rounded(self, columns: tuple[str, ...]) -> dict[str, Rounding]:
        """Return what is done to the items that are shown in fewer digits, by the names of all items."""
        pairs = zip(self.items, columns, strict=True)
        return {name: item.read.rounding for item, name in pairs if item.read and item.read.rounding}

    def _group(self, item: Item, groups: list[Group]) -> str:
        """Return the name of the grouping column that an item is."""
        assert item.scalar is not None, "only values are grouping columns"  # noqa: S101
        text = item.scalar.canonical()
        for group in groups:
            if group.scalar.canonical() == text:
                return group.name
        shown = f"column {item.scalar.name!r}" if isinstance(item.scalar, Column) else "a value"
        raise self.source.refuse(f"{shown} outside of GROUP BY", "rows never leave; group by it, or drop it", item.node)


def read_number(node: Node, aggregates: Aggregates, select: Node) -> Read | None:
    """Return what a number of the SELECT list is, with the rounding around it; None for anything else."""
    body, rounding = peeled(node, aggregates.reader.source)
    read = read_over_groups(body, aggregates, select) or read_plain(body, aggregates, select)
    return read if rounding is None or read is None else replace(read, rounding=rounding)


def read_over_groups(node: Node, aggregates: Aggregates, select: Node) -> Read | None:
    """Return a number that is made of several groups: a share, a total, LAG, and what computes with them; else None."""
    if neighbour_in(node) is not None:
        return read_compared(node, aggregates, select)
    if total_in(node) is None:
        return None
    try:
        return read_plain(node, aggregates, select)
    except UnsupportedQuery as refused:
        if not is_sum_of(node):
            raise
        try:
            return read_compared(node, aggregates, select)
        except UnsupportedQuery:
            raise refused from None


def groups_by_text(groups: list[Group]) -> dict[str, str]:
    """Return the names of grouping columns, by their canonical texts."""
    return {group.scalar.canonical(): group.name for group in groups}


def within(read: Read, named: Mapping[str, str], reader: NodeReader) -> Aggregate:
    """Return an aggregate; what is told of several groups with the names of the columns that it names.

    Args:
        read: the aggregate as it was read.
        named: the names of the grouping columns, by their canonical texts.
        reader: reads columns.
    """
    if not isinstance(read.aggregate, OverGroups):
        return read.aggregate
    over = tuple(sorted(groups_of("PARTITION BY", read.over, reader, named)))
    if isinstance(read.aggregate, ShareOfTotal):
        return replace(read.aggregate, over=over)
    order = order_of(read.order, reader, named)
    if read.each and set(named.values()) - {*over, *(key.column for key in order)}:
        advice = "add the other columns of GROUP BY to ORDER BY or PARTITION BY, or leave ROWS out"
        raise reader.source.refuse("a running total over ROWS that are alike in ORDER BY", advice, read.order[0])
    return replace(read.aggregate, over=over, order=order)


def order_of(nodes: tuple[Node, ...], reader: NodeReader, named: Mapping[str, str]) -> tuple[OrderKey, ...]:
    """Return the keys of an order of groups."""
    names = groups_of("ORDER BY", tuple(node.this for node in nodes), reader, named)
    pairs = zip(names, nodes, strict=True)
    return tuple(OrderKey(name, *(bool(node.args.get(how)) for how in ("desc", "nulls_first"))) for name, node in pairs)


def groups_of(word: str, nodes: tuple[Node, ...], reader: NodeReader, named: Mapping[str, str]) -> list[str]:
    """Return the grouping columns that nodes name, each once; refuse other values."""
    found: list[str] = []
    for node in nodes:
        name = _group_of(node, reader.within(word), named)
        if name is None or (name in found and word == "ORDER BY"):
            raise reader.source.refuse(f"{word} of another value", "name columns of GROUP BY, each once", node)
        found += [name] * (name not in found)
    return found


def read_groups(select: Node, reader: Translator, listed: Listed) -> list[Group]:
    """Return the grouping columns: columns, expressions, and names or places of the SELECT list."""
    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part not in ("expressions", "all"):
            word = part.upper().replace("_", " ")
            raise reader.source.refuse(f"GROUP BY {word}", "list the columns", group, part.upper())
    if len(group.expressions) > MOST_COLUMNS:
        raise reader.source.refuse(f"more than {MOST_COLUMNS} columns", "group by fewer", group.expressions[-1])
    if group.args.get("all"):
        found = [(item.node, item.scalar) for item in listed.items if item.scalar is not None]
    else:
        found = [(node, _grouped(node, reader, listed)) for node in group.expressions]
    groups: list[Group] = []
    for node, scalar in found:
        _check_group(node, scalar, reader, groups)
        name = _group_name(node, scalar, reader, listed, {known.name.casefold() for known in groups})
        groups.append(Group(name, scalar, node))
    return groups


def read_grouping(select: Node, reader: Translator, listed: Listed) -> tuple[list[Group], tuple[tuple[str, ...], ...]]:
    """Return the grouping columns, and the names of those of each grouping set; no sets for a plain GROUP BY."""
    group = select.args.get("group")
    sets = None if group is None else node_sets(group, reader.source)
    if sets is None:
        return read_groups(select, reader, listed), ()
    groups, known, found = list[Group](), dict[int, Group](), list[tuple[str, ...]]()
    for nodes in sets:
        for node in nodes:
            if id(node) not in known:
                known[id(node)] = _once(node, reader, listed, groups)
        found.append(tuple(dict.fromkeys(known[id(node)].name for node in nodes)))
    _check_sets(found, reader.source, group)
    return groups, tuple(found)


def _once(node: Node, reader: Translator, listed: Listed, groups: list[Group]) -> Group:
    """Return a grouping column, which may have been named before; a new one joins the others."""
    scalar = _grouped(node, reader, listed)
    for group in groups:
        if group.scalar.canonical() == scalar.canonical():
            return group
    _check_group(node, scalar, reader, groups)
    name = _group_name(node, scalar, reader, listed, {known.name.casefold() for known in groups})
    groups.append(Group(name, scalar, node))
    return groups[-1]


def _check_sets(sets: list[tuple[str, ...]], source: SqlText, group: Node) -> None:
    """Refuse a set that is there twice, and sets without any column."""
    if not any(sets):
        raise source.refuse("grouping sets without a column", "leave GROUP BY out", group, "GROUP")
    seen = set[frozenset[str]]()
    for columns in sets:
        if frozenset(columns) in seen:
            shown = f"({', '.join(columns)})"[:60]
            raise source.refuse(f"the grouping set {shown} twice", "name each set once", group, "GROUP")
        seen.add(frozenset(columns))


def levels(
    listed: Listed, columns: tuple[str, ...], groups: list[Group], reader: Translator
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the name of each GROUPING(...) of the SELECT list, with the grouping columns that it is of."""
    pairs = zip(listed.items, columns, strict=True)
    return tuple((name, level_of(item.body, reader, groups_by_text(groups)))
                 for item, name in pairs if item.read is None and item.scalar is None)  # fmt: skip


def level_of(node: Node, reader: NodeReader, named: Mapping[str, str]) -> tuple[str, ...]:
    """Return the grouping columns that GROUPING(...) is of.

    Args:
        node: the call.
        reader: reads its arguments.
        named: the names of the grouping columns, by their canonical texts.
    """
    found = [_group_of(argument, reader, named) for argument in node.expressions]
    if not found or len(found) > MOST_BITS or None in found:
        raise reader.source.refuse("GROUPING of another value", "name columns of GROUP BY: GROUPING(a)", node)
    return tuple(name for name in found if name is not None)


def _group_of(node: Node, reader: NodeReader, named: Mapping[str, str]) -> str | None:
    """Return the grouping column that a node names: by alias where no column has that name, or by the value itself."""
    if type(node).__name__ == "Column" and node.args.get("table") is None:
        wanted = str(node.name).casefold()
        called = next((name for name in named.values() if name.casefold() == wanted), None)
        if called is not None and wanted not in {name.casefold() for name in reader.schema.names}:
            return called
    return named.get(reader.scalar(node).canonical())


def _grouped(node: Node, reader: Translator, listed: Listed) -> Scalar:
    """Return what GROUP BY names: by place, by alias where no column has that name, or the value itself."""
    kind = type(node).__name__
    item = None
    if kind == "Literal" and not node.is_string:
        item = listed.at(str(node.this))
        if item is None or item.scalar is None:
            raise reader.source.refuse(f"GROUP BY {str(node.this)[:20]}", "name the column", node)
    elif kind == "Column" and node.args.get("table") is None:
        wanted = str(node.name).casefold()
        item = None if wanted in reader.names.taken else listed.called(wanted)
    if item is not None and item.read is not None:
        raise reader.source.refuse("GROUP BY of an aggregate", "group by columns of the table", node)
    if item is not None and item.scalar is not None:
        return item.scalar
    return reader.scalar(node) if kind == "Column" else reader.typed(node)[0]


def _check_group(node: Node, scalar: Scalar, reader: Translator, groups: list[Group]) -> None:
    """Refuse a grouping column that is a constant, or that is there already."""
    if not columns_of(scalar):
        raise reader.source.refuse("GROUP BY of a constant", "group by columns of the table", node)
    if reader.type(scalar) is Type.OTHER:
        raise reader.source.refuse("GROUP BY of a column of another type", "group by plain values", node)
    if any(known.scalar.canonical() == scalar.canonical() for known in groups):
        raise reader.source.refuse(f"GROUP BY {str(scalar)[:60]} twice", "name each column once", node)


def _group_name(node: Node, scalar: Scalar, reader: Translator, listed: Listed, taken: set[str]) -> str:
    """Return the name of a grouping column: its alias, its own name, or one made of its words."""
    own = {name.casefold(): name for name in reader.names.places[0].own}
    item = listed.of_scalar(scalar)
    alias = None if item is None else item.alias
    called = alias if alias is not None else _called(node if item is None else item.node, scalar, reader)
    if called is None:
        made = scalar.name.rpartition(".")[2] if isinstance(scalar, Column) else _words(scalar)
        return free_name(made, taken | set(own))
    if called.casefold() in taken:
        raise reader.source.refuse(f"alias {called!r}", "give each column a name of its own", node)
    return own[called.casefold()] if scalar == Column(own.get(called.casefold(), "")) else called


def _called(node: Node, scalar: Scalar, reader: Translator) -> str | None:
    """Return the name that a column has in its table or subquery; None for a value, and for a joined table's own."""
    if type(node).__name__ != "Column":
        return scalar.name if isinstance(scalar, Column) and scalar.name in reader.names.places[0].own else None
    name = reader.named(node)[0]
    joined = isinstance(scalar, Column) and scalar.name not in reader.names.places[0].own
    return None if joined and isinstance(scalar, Column) and scalar.name.rpartition(".")[2] == name else name


def _words(scalar: Scalar) -> str:
    """Return the words of a value, joined: date_trunc('month', day) is date_trunc_month_day.

    >>> _words(Column("a b"))
    'a_b'
    """
    if isinstance(scalar, Case):
        return "case"
    return "_".join(re.findall(r"\w+", str(scalar)))[:40].lower() or "value"


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: count, count_2, count_3."""
    tried, number = name, 2
    while tried.casefold() in taken:
        tried, number = f"{name}_{number}", number + 1
    return tried
