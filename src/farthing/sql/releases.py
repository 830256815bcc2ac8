"""HAVING, ORDER BY, LIMIT and OFFSET: what is done to the released answer, in terms of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.errors import FarthingError
from farthing.query.aftermath import Aftermath, Order
from farthing.query.expressions import Column, Expression, Scalar
from farthing.query.schema import Schema, Type
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.grouping_sets import is_level
from farthing.sql.listing import level_of
from farthing.sql.names import Names, Place

if TYPE_CHECKING:
    from farthing.query.aggregates import NamedAggregate
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node, SqlText

ENDS = ("_lower", "_upper")
"""The ends of an interval are answer columns, too: n_lower and n_upper."""


@dataclass(frozen=True, slots=True)
class ReleasedColumns:
    """The columns of an answer.

    Attributes:
        columns: the names of the SELECT list, in its order.
        groups: (name, scalar) of every grouping column.
        outputs: the aggregates.
        aggregates: reads an aggregate in HAVING or ORDER BY.
        levels: (name, columns) of each GROUPING.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[str, Scalar], ...]
    outputs: tuple[NamedAggregate, ...]
    aggregates: Aggregates
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def names(self) -> Names:
        """What names mean after the release."""
        reader = self.aggregates.reader
        kinds = {name: reader.type(scalar) for name, scalar in self.groups}
        kinds |= {name: Type.INTEGER for name, _ in self.levels}
        for output in self.outputs:
            kinds[output.name] = Type.FLOAT
            for end in ENDS:
                kinds.setdefault(output.name + end, Type.FLOAT)
        return Names((Place("the answer", None, Schema.of(kinds)),))

    def stands_for(self, node: Node) -> Scalar | None:
        """Return the answer column that a node is: an aggregate of the SELECT list, or a grouping expression.

        Raises:
            UnsupportedQuery: an aggregate that is not in the SELECT list.
        """
        if inner(node) is not None:
            return self._aggregate(node)
        if is_level(node):
            return self._level(node)
        kind = type(node).__name__
        if kind in ("Literal", "Boolean", "Paren", "Null") or (kind == "Column" and self._is_answer(node)):
            return None
        try:
            scalar = self.aggregates.reader.scalar(node)
        except FarthingError:  # no expression of the table: its parts may be answer columns
            return None
        text = scalar.canonical()
        return next((Column(name) for name, group in self.groups if group.canonical() == text), None)

    def _is_answer(self, node: Node) -> bool:
        """Return whether a column is named as the answer names it."""
        known = {name.casefold() for name, _ in self.groups}
        known |= {name.casefold() for name, _ in self.levels}
        known |= {output.name.casefold() + end for output in self.outputs for end in ("", *ENDS)}
        return node.args.get("table") is None and str(node.name).casefold() in known

    def _level(self, node: Node) -> Scalar:
        """Return the column of a GROUPING(...)."""
        reader = self.aggregates.reader
        columns = level_of(node, reader, {scalar.canonical(): name for name, scalar in self.groups})
        found = next((name for name, of in self.levels if of == columns), None)
        if found is None:
            raise reader.source.refuse("GROUPING that is not selected", "put it in the SELECT list", node)
        return Column(found)

    def _aggregate(self, node: Node) -> Scalar | None:
        """Return the column of an aggregate; None for a ratio that is none, whose parts may be."""
        text = self.aggregates.read(node).aggregate.canonical()
        for output in self.outputs:
            if output.aggregate.canonical() == text:
                return Column(output.name)
        if type(inner(node)).__name__ == "Div":
            return None
        raise self.aggregates.reader.source.refuse(
            "an aggregate that is not selected", "put it in the SELECT list, so that it is released", node
        )


def read_aftermath(select: Node, released: ReleasedColumns) -> Aftermath:
    """Return what a question does to its answer.

    Raises:
        UnsupportedQuery: anything that is not a function of the answer's columns.
    """
    reader = released.aggregates.reader.naming(released.names, released.stands_for)
    having = select.args.get("having")
    condition: Expression | None = None
    if having is not None:
        condition = reader.within("HAVING").whole(having.this)
        with reader.source.located(having.this):
            Aftermath(condition)
    order = select.args.get("order")
    keys = () if order is None else tuple(_order(key, reader.within("ORDER BY"), released) for key in order.expressions)
    limit, offset = _limit(reader.source, select)
    return Aftermath(condition, keys, limit, offset)


def _order(node: Node, reader: NodeReader, released: ReleasedColumns) -> Order:
    """Return one key of ORDER BY; a number stands for a place in the SELECT list."""
    reader.only(node, "this", "desc", "nulls_first")
    key = node.this
    if type(key).__name__ == "Literal" and not key.is_string:
        place = int(key.this) if str(key.this).isdigit() and len(key.this) < 5 else 0
        if not 1 <= place <= len(released.columns):
            raise reader.source.refuse(f"ORDER BY {str(key.this)[:20]}", "name the column", key)
        scalar: Scalar = Column(released.columns[place - 1])
    else:
        scalar, _ = reader.typed(key)
    order = Order(scalar, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))
    with reader.source.located(key):
        Aftermath(order=(order,))
    return order


def _limit(source: SqlText, select: Node) -> tuple[int | None, int]:
    """Return LIMIT (or FETCH FIRST) and OFFSET."""
    limit, offset = select.args.get("limit"), select.args.get("offset")
    most = None
    if limit is not None:
        count = limit.args.get("count") if type(limit).__name__ == "Fetch" else limit.expression
        extra = limit.args.get("limit_options")
        if (extra is not None and (extra.args.get("percent") or extra.args.get("with_ties"))) or any(
            value and part not in ("expression", "count", "direction", "limit_options", "offset")
            for part, value in limit.args.items()
        ):
            raise source.refuse("LIMIT with more than a number", "write LIMIT 10", limit, "LIMIT")
        offset = offset or limit.args.get("offset")
        most = _whole(source, count, "LIMIT")
    inside = getattr(offset, "expression", None) if type(offset).__name__ == "Offset" else offset
    return most, 0 if inside is None else _whole(source, inside, "OFFSET")


def _whole(source: SqlText, node: Any, word: str) -> int:
    """Return a whole number that is written out."""
    digits = "" if node is None else str(node.name)
    if type(node).__name__ != "Literal" or not digits.isdigit() or len(digits) > 15:
        raise source.refuse(f"{word} of anything but a number", f"write {word} 10", node, word)
    return int(digits)
