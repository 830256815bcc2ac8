"""ORDER BY, LIMIT and OFFSET: in which order the groups of an answer are shown, and how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.query.aftermath import Aftermath, Order
from farthing.query.expressions import Column, Scalar

if TYPE_CHECKING:
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node, SqlText


def read_orders(order: Node | None, reader: NodeReader, columns: tuple[str, ...]) -> tuple[Order, ...]:
    """Return the keys of ORDER BY; ALL stands for all columns of the SELECT list."""
    if order is None:
        return ()
    every = [key for key in order.expressions if type(key.this).__name__ == "Var" and key.this.name.upper() == "ALL"]
    if every and len(order.expressions) == 1:
        (key,) = every
        return tuple(
            Order(Column(name), bool(key.args.get("desc")), bool(key.args.get("nulls_first"))) for name in columns
        )
    return tuple(_order(key, reader.within("ORDER BY"), columns) for key in order.expressions)


def _order(node: Node, reader: NodeReader, columns: tuple[str, ...]) -> Order:
    """Return one key of ORDER BY; a number stands for a place in the SELECT list."""
    reader.only(node, "this", "desc", "nulls_first")
    key = node.this
    if type(key).__name__ == "Literal" and not key.is_string:
        place = int(key.this) if str(key.this).isdigit() and len(key.this) < 5 else 0
        if not 1 <= place <= len(columns):
            raise reader.source.refuse(f"ORDER BY {str(key.this)[:20]}", "name the column", key)
        scalar: Scalar = Column(columns[place - 1])
    else:
        scalar, _ = reader.typed(key)
    order = Order(scalar, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))
    with reader.source.located(key):
        Aftermath(order=(order,))
    return order


def read_limit(source: SqlText, select: Node) -> tuple[int | None, int]:
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
