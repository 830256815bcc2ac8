"""Values: columns, constants, arithmetic, CASE, CAST and the functions with a grammar of their own."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

from farthing.query.expressions import Call, Case, Cast, Compare, Expression, FunctionName, Literal, Operator, Scalar
from farthing.query.schema import Type
from farthing.sql.functions import call, extract, trimmed
from farthing.sql.meeting import MOMENTS, alike, moment
from farthing.sql.nodes import FALSE, surely

if TYPE_CHECKING:
    from farthing.sql.nodes import NodeReader, Rule
    from farthing.sql.text import Node


_SHORT: Final = 18  # digits of any 64-bit number


def number(reader: NodeReader, node: Node, text: str) -> Literal:
    """Return a numeric constant: an integer where it is written as one."""
    digits = text.replace("_", "")
    if digits.lstrip("-").isdigit() and len(digits) < 40:
        return Literal(int(digits))
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise reader.source.refuse("a number out of range", "write a finite number", node)
    return Literal(value)


def plain(node: Node) -> Literal | None:
    """Return a text, or a whole number of at most 18 digits, without more ado; None for any other node."""
    if type(node).__name__ != "Literal":
        return None
    text = str(node.this)
    if node.is_string:
        return Literal(text)
    return Literal(int(text)) if len(text) <= _SHORT and text.isdecimal() and text.isascii() else None


def _literal(reader: NodeReader, node: Node) -> Scalar:
    """Return a text or a number."""
    return Literal(str(node.this)) if node.is_string else number(reader, node, str(node.this))


def _boolean(reader: NodeReader, node: Node) -> Scalar:  # noqa: ARG001  # all rules are called alike
    """Return TRUE or FALSE."""
    return Literal(bool(node.this))


def _bracketed(reader: NodeReader, node: Node) -> Scalar:
    """Return what stands in brackets."""
    reader.only(node, "this")
    return reader.scalar(node.this)


def _negative(reader: NodeReader, node: Node) -> Scalar:
    """Return a negated scalar; a negative number is a constant."""
    from sqlglot import exp

    reader.only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(reader, node, "-" + str(node.this.this))
    return Call(FunctionName.NEGATE, (reader.scalar(node.this),))


def _arithmetic(reader: NodeReader, node: Node) -> Scalar:
    """Return a sum, difference, product, quotient, remainder, power or joined text; dates differ by days."""
    reader.only(node, "this", "expression", "typed", "safe")
    left, right = reader.scalar(node.this), reader.scalar(node.expression)
    function = _ARITHMETIC[type(node).__name__]
    if function is FunctionName.SUBTRACT:
        left, right = alike(reader, left, right)
        if reader.type(left) is reader.type(right) is Type.DATE:
            return Call(FunctionName.DAYS_BETWEEN, (right, left))
    return Call(function, (left, right))


_ARITHMETIC: Final = {
    "Add": FunctionName.ADD,
    "Sub": FunctionName.SUBTRACT,
    "Mul": FunctionName.MULTIPLY,
    "Div": FunctionName.DIVIDE,
    "IntDiv": FunctionName.INTEGER_DIVIDE,
    "Mod": FunctionName.MODULO,
    "Pow": FunctionName.POWER,
    "DPipe": FunctionName.CONCAT,
}


def _cast(reader: NodeReader, node: Node) -> Scalar:
    """Return a cast; DATE '2013-01-31' and the like are constants."""
    from sqlglot import exp

    reader.only(node, "this", "to", "safe", "action")
    zoned = _zoned(reader, node)
    kind = zoned or cast_type(reader, node.args["to"], node)
    if kind in MOMENTS and isinstance(node.this, exp.Literal) and node.this.is_string:
        return moment(reader, str(node.this.this), kind, node)
    value = reader.scalar(node.this)
    same = zoned is not None and reader.type(value) is zoned
    return value if same else Cast(value, kind)


def _zoned(reader: NodeReader, node: Node) -> Type | None:
    """Return the type of a cast to a time with a zone, of a constant, a date or a time: all times are in UTC here."""
    to = node.args["to"]
    if str(getattr(to.this, "value", to.this)).upper() != "TIMESTAMPTZ" or to.expressions:
        return None
    text = type(node.this).__name__ == "Literal" and node.this.is_string
    return Type.TIMESTAMP if text or reader.type(reader.scalar(node.this)) in MOMENTS else None


def cast_type(reader: NodeReader, to: Node, node: Node) -> Type:
    """Return our type of a type of SQL."""
    name = str(getattr(to.this, "value", to.this)).upper()
    kind = _TYPES.get(name)
    if kind is None or to.expressions or to.args.get("nested"):
        written = to.sql(dialect="duckdb")[:40]
        advice = f"write CAST(x AS {kind.value.upper()})" if kind else "cast to " + ", ".join(_NAMED)
        if kind is Type.FLOAT and to.expressions:
            advice = "write ROUND(x, 2) for decimal places"
        raise reader.source.refuse(f"CAST to {written}", advice, node)
    return kind


_NAMED: Final = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")
_TYPES: Final = {
    "BOOLEAN": Type.BOOLEAN,
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "MEDIUMINT", "BIGINT"), Type.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL", "BIGDECIMAL"), Type.FLOAT),
    **dict.fromkeys(("VARCHAR", "TEXT", "CHAR", "NVARCHAR"), Type.STRING),
    "DATE": Type.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), Type.TIMESTAMP),
}


def _case(reader: NodeReader, node: Node) -> Scalar:
    """Return a CASE, with or without an operand."""
    from sqlglot import exp

    reader.only(node, "this", "ifs", "default")
    branches = []
    for branch in node.args["ifs"]:
        condition = branch.this if node.this is None else exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        branches.append((condition, branch.args.get("true")))
    return _chosen(reader, node, branches, node.args.get("default"))


def _if(reader: NodeReader, node: Node) -> Scalar:
    """Return IF(condition, value, value)."""
    reader.only(node, "this", "true", "false")
    return _chosen(reader, node, [(node.this, node.args.get("true"))], node.args.get("false"))


def _chosen(reader: NodeReader, node: Node, branches: list[tuple[Node, Node]], default: Node | None) -> Scalar:
    """Return a CASE; THEN NULL leaves the value out, and so does ELSE NULL."""
    conditions = [reader.predicate(condition) for condition, _ in branches]
    values = [_value(reader, value) for _, value in branches]
    otherwise = None if default is None else _value(reader, default)
    there = [value for value in (*values, otherwise) if value is not None]
    if not there:
        raise reader.source.refuse("CASE without a value", "give one branch a value that is not NULL", node)
    met = dict(zip(map(id, there), alike(reader, *there), strict=True))
    pairs = [
        (condition, None if value is None else met[id(value)])
        for condition, value in zip(conditions, values, strict=True)
    ]
    chosen = cases(pairs, None if otherwise is None else met[id(otherwise)])
    assert chosen is not None, "some branch has a value"  # noqa: S101
    return chosen


def cases(branches: list[tuple[Expression, Scalar | None]], otherwise: Scalar | None) -> Scalar | None:
    """Return a CASE some of whose values are NULL, or None when all are.

    WHEN a THEN NULL followed by a rest is: the rest where a is not TRUE.
    """
    for at, (condition, value) in enumerate(branches):
        if value is None:
            rest = cases(branches[at + 1 :], otherwise)
            if rest is not None:
                rest = Case(((Compare(surely(condition), Operator.EQ, FALSE), rest),))
            return cases(branches[:at], rest)
    filled = tuple((condition, value) for condition, value in branches if value is not None)
    return Case(filled, otherwise) if filled else otherwise


def _value(reader: NodeReader, node: Node) -> Scalar | None:
    """Return the value of a branch, None for NULL."""
    return None if type(node).__name__ == "Null" else reader.scalar(node)


def _like(reader: NodeReader, node: Node) -> Scalar:
    """Return a test of a text against a constant pattern."""
    reader.only(node, "this", "expression")
    return Call(FunctionName.LIKE, (reader.scalar(node.this), reader.scalar(node.expression)))


def _ilike(reader: NodeReader, node: Node) -> Scalar:
    """Return a test of a text against a constant pattern of ASCII letters, large or small: LOWER knows no others."""
    pattern = plain(node.expression)
    if not isinstance(pattern, Literal) or not str(pattern.value).isascii():
        raise reader.source.refuse("ILIKE of other letters than ASCII", "write LOWER(text) LIKE 'pattern'", node)
    reader.only(node, "this", "expression")
    text = Call(FunctionName.LOWER, (reader.scalar(node.this),))
    return Call(FunctionName.LIKE, (text, Literal(str(pattern.value).lower())))


def _extract(reader: NodeReader, node: Node) -> Scalar:
    """Return EXTRACT(part FROM x)."""
    reader.only(node, "this", "expression")
    return extract(reader, node, node.this, node.expression)


def _substring(reader: NodeReader, node: Node) -> Scalar:
    """Return SUBSTRING(text, start, length) or SUBSTRING(text FROM start FOR length)."""
    reader.only(node, "this", "start", "length")
    parts = [node.args.get(part) for part in ("this", "start", "length")]
    return Call(FunctionName.SUBSTRING, tuple(reader.scalar(part) for part in parts if part is not None))


def _trim(reader: NodeReader, node: Node) -> Scalar:
    """Return TRIM([LEADING | TRAILING | BOTH] [' '] FROM text)."""
    reader.only(node, "this", "position", "expression")
    function = {"LEADING": FunctionName.LTRIM, "TRAILING": FunctionName.RTRIM}.get(
        node.args.get("position"), FunctionName.TRIM
    )
    letters = node.args.get("expression")
    return trimmed(reader, node, function, [node.this, *([] if letters is None else [letters])])


@cache
def rules() -> dict[str, Rule]:
    """Return the whole whitelist of values, by the names of the parser's nodes."""
    return {
        "Column": lambda reader, node: reader.column(node),
        "Paren": _bracketed,
        "Literal": _literal,
        "Boolean": _boolean,
        "Neg": _negative,
        **dict.fromkeys(_ARITHMETIC, _arithmetic),
        **dict.fromkeys(("Cast", "TryCast"), _cast),
        "Case": _case,
        "If": _if,
        "Like": _like,
        "ILike": _ilike,
        "Extract": _extract,
        "Substring": _substring,
        "Trim": _trim,
        "Anonymous": call,
        "Dot": call,
    }
