"""ROUND and its like around what is released: taken off before a number is read, and done to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.query.rounding import WAYS, Rounding
from farthing.sql.aggregates import inner

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText

MOST_DIGITS: Final = 15
"""The most places before or after the point that numbers are rounded to."""

_NAMES: Final = {**{name: name for name in WAYS}, "CEILING": "CEIL", "TRUNCATE": "TRUNC"}
_WHOLE: Final = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT", "INT128", "UINT", "UBIGINT"})
_ANY_PLACES: Final = ("18", "3")
"""What the grammar takes DECIMAL for where the text names no places: nothing is rounded then, as PostgreSQL has it."""


def peeled(node: Node, source: SqlText) -> tuple[Node, Rounding | None]:
    """Return a number of the SELECT list without the rounding around it, and that rounding; None for none.

    Numbers that a rounded aggregate is multiplied or divided by go within: 100 * ROUND(x, 4) is ROUND(100 * x, 2).

    Raises:
        UnsupportedQuery: a number of places that is not written out.
    """
    kind = type(node).__name__
    if kind == "Paren":
        return peeled(node.this, source)
    if not any(inner(part) is not None for part in node.walk()):
        return node, None
    own = _rounding(node, source)
    if own is not None:
        within, before = peeled(node.expressions[0] if kind == "Anonymous" else node.this, source)
        return within, own.after(before)
    if kind in ("Cast", "TryCast") and _is_plain_decimal(node):
        return peeled(node.this, source)
    return _scaled(node, source) if kind in ("Mul", "Div") else (node, None)


def _scaled(node: Node, source: SqlText) -> tuple[Node, Rounding | None]:
    """Return a product or a quotient, in which a number stands within what is rounded."""
    from sqlglot import exp

    above = type(node).__name__ == "Mul"
    sides = [(node.this, node.expression), (node.expression, node.this)]
    for side, other in sides if above else sides[:1]:
        within, before = peeled(side, source)
        number = _positive(other)
        if before is not None and number is not None:
            made = type(node)(this=exp.Paren(this=within.copy()), expression=other.copy())
            return made, before.times(number if above else 1 / number)
    return node, None


def _rounding(node: Node, source: SqlText) -> Rounding | None:
    """Return what a node itself rounds to."""
    if type(node).__name__ in ("Cast", "TryCast"):
        kind = str(getattr(node.args["to"].this, "value", node.args["to"].this)).upper()
        if kind in _WHOLE:
            return Rounding(1.0)
        places = _places(node)
        return Rounding(10.0 ** -int(places)) if places is not None and not _is_plain_decimal(node) else None
    way = _NAMES.get(str(node.name).upper()) if type(node).__name__ == "Anonymous" else None
    if way is None or not 1 <= len(node.expressions) <= (1 if way in ("FLOOR", "CEIL") else 2):
        return None
    digits = _digits(node.expressions[1]) if len(node.expressions) == 2 else 0
    if digits is None or abs(digits) > MOST_DIGITS:
        what = f"{str(node.name).upper()} to that many places"
        raise source.refuse(what, f"write a whole number, -{MOST_DIGITS} to {MOST_DIGITS}", node.expressions[1])
    return Rounding(10.0**-digits, way)


def _digits(node: Node) -> int | None:
    """Return a whole number that is written out; None for anything else."""
    negative = type(node).__name__ == "Neg"
    literal = node.this if negative else node
    written = str(literal.this) if type(literal).__name__ == "Literal" and not literal.is_string else ""
    return (-int(written) if negative else int(written)) if written.isdigit() and len(written) < 4 else None


def _places(node: Node) -> str | None:
    """Return the places behind the point of CAST(x AS DECIMAL(p, s)); None for other types."""
    kind = str(getattr(node.args["to"].this, "value", node.args["to"].this)).upper()
    given = [str(one.name) for one in node.args["to"].expressions]
    if kind != "DECIMAL" or not all(one.isdigit() and len(one) < 3 for one in given) or len(given) > 2:
        return None
    return given[1] if len(given) == 2 else "0"


def _is_plain_decimal(node: Node) -> bool:
    """Return whether a cast is to DECIMAL without places."""
    return _places(node) is not None and tuple(one.name for one in node.args["to"].expressions) in ((), _ANY_PLACES)


def _positive(node: Node) -> float | None:
    """Return a number above 0 that is written out; None for anything else."""
    literal = type(node).__name__ == "Literal" and not node.is_string
    return float(node.this) if literal and float(node.this) > 0 else None
