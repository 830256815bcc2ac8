"""Every function of SQL that is understood, by name; the others are refused with what to write instead."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from farthing.query.expressions import Call, Case, Cast, Compare, FunctionName, IsNull, Literal, Not, Operator, Scalar
from farthing.query.schema import Type
from farthing.sql.aggregates import NAMES as AGGREGATES
from farthing.sql.instead import INSTEAD, NEVER
from farthing.sql.meeting import alike, moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node


def call(reader: NodeReader, node: Node) -> Scalar:
    """Return a call of a function that is known by its name.

    Raises:
        UnsupportedQuery: an unknown function with the nearest match, or too few or too many arguments.
    """
    inner = _safe(node)
    name = str(inner.name).upper()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(reader, inner, name)
    if name not in _PLAIN:
        raise instead(reader, inner)
    function, least, most = _PLAIN[name]
    arguments = inner.expressions
    _count(reader, inner, name, (least, most))
    return Call(function, scalars(reader, arguments))


def scalars(reader: NodeReader, nodes: list[Node]) -> tuple[Scalar, ...]:
    """Return arguments that meet each other: texts become dates where they meet one."""
    return alike(reader, *(reader.scalar(node) for node in nodes))


def _safe(node: Node) -> Node:
    """Return the call in SAFE.name(...); every function here is safe."""
    if type(node).__name__ == "Dot" and str(node.this.name).upper() == "SAFE":
        return node.expression
    return node


def _count(reader: NodeReader, node: Node, name: str, takes: tuple[int, int]) -> None:
    """Refuse a call with too few or too many arguments."""
    least, most = takes
    given = len(node.expressions)
    if not least <= given <= most:
        wanted = f"{least}" if least == most else f"{least} or more" if most >= _MANY else f"{least} to {most}"
        raise reader.source.refuse(f"{name} with {given} arguments", f"{name} takes {wanted}", node)


_MANY: Final = 100

_PLAIN: Final[dict[str, tuple[FunctionName, int, int]]] = {
    "ABS": (FunctionName.ABS, 1, 1),
    "SIGN": (FunctionName.SIGN, 1, 1),
    "FLOOR": (FunctionName.FLOOR, 1, 1),
    **dict.fromkeys(("CEIL", "CEILING"), (FunctionName.CEIL, 1, 1)),
    "ROUND": (FunctionName.ROUND, 1, 2),
    **dict.fromkeys(("TRUNC", "TRUNCATE"), (FunctionName.TRUNC, 1, 1)),
    "SQRT": (FunctionName.SQRT, 1, 1),
    "EXP": (FunctionName.EXP, 1, 1),
    "LN": (FunctionName.LN, 1, 1),
    "LOG10": (FunctionName.LOG10, 1, 1),
    **dict.fromkeys(("POWER", "POW"), (FunctionName.POWER, 2, 2)),
    "MOD": (FunctionName.MODULO, 2, 2),
    "DIV": (FunctionName.INTEGER_DIVIDE, 2, 2),
    **dict.fromkeys(("DIVIDE", "SAFE_DIVIDE"), (FunctionName.DIVIDE, 2, 2)),
    **dict.fromkeys(("ADD", "SAFE_ADD"), (FunctionName.ADD, 2, 2)),
    **dict.fromkeys(("SUBTRACT", "SAFE_SUBTRACT"), (FunctionName.SUBTRACT, 2, 2)),
    **dict.fromkeys(("MULTIPLY", "SAFE_MULTIPLY"), (FunctionName.MULTIPLY, 2, 2)),
    "SAFE_NEGATE": (FunctionName.NEGATE, 1, 1),
    "LEAST": (FunctionName.LEAST, 1, _MANY),
    "GREATEST": (FunctionName.GREATEST, 1, _MANY),
    "COALESCE": (FunctionName.COALESCE, 1, _MANY),
    **dict.fromkeys(("IFNULL", "NVL"), (FunctionName.COALESCE, 2, 2)),
    "NULLIF": (FunctionName.NULLIF, 2, 2),
    **dict.fromkeys(("LOWER", "LCASE"), (FunctionName.LOWER, 1, 1)),
    **dict.fromkeys(("UPPER", "UCASE"), (FunctionName.UPPER, 1, 1)),
    **dict.fromkeys(("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), (FunctionName.LENGTH, 1, 1)),
    "SUBSTR": (FunctionName.SUBSTRING, 2, 3),
    "CONCAT": (FunctionName.CONCAT, 2, _MANY),
    "REPLACE": (FunctionName.REPLACE, 3, 3),
    **dict.fromkeys(("STARTS_WITH", "PREFIX"), (FunctionName.STARTS_WITH, 2, 2)),
    **dict.fromkeys(("ENDS_WITH", "SUFFIX"), (FunctionName.ENDS_WITH, 2, 2)),
    "CONTAINS": (FunctionName.CONTAINS, 2, 2),
    "LIKE": (FunctionName.LIKE, 2, 2),
    "DAYS_BETWEEN": (FunctionName.DAYS_BETWEEN, 2, 2),
}
"""Name: the function of the language that it is, and how many arguments it takes at least and at most."""


def trimmed(reader: NodeReader, node: Node, function: FunctionName, arguments: list[Node]) -> Scalar:
    """Return a trimmed text; only spaces are trimmed."""
    text, letters = reader.scalar(arguments[0]), [reader.scalar(argument) for argument in arguments[1:]]
    if letters not in ([], [Literal(" ")]):
        raise reader.source.refuse("TRIM of other letters", "trim spaces: TRIM(text)", node)
    return Call(function, (text,))


def _trim(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return LTRIM, RTRIM or BTRIM."""
    _count(reader, node, name, (1, 2))
    function = {"LTRIM": FunctionName.LTRIM, "RTRIM": FunctionName.RTRIM, "BTRIM": FunctionName.TRIM}[name]
    return trimmed(reader, node, function, node.expressions)


def _left(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return the first letters of a text."""
    _count(reader, node, name, (2, 2))
    text, length = node.expressions
    return Call(FunctionName.SUBSTRING, (reader.scalar(text), Literal(1), reader.scalar(length)))


def _clamp(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return CLAMP(x, lower, upper): NULL stays NULL."""
    _count(reader, node, name, (3, 3))
    value, lower, upper = scalars(reader, node.expressions)
    clamped = Call(FunctionName.LEAST, (Call(FunctionName.GREATEST, (value, lower)), upper))
    return Case(((Not(IsNull(value)), clamped),))


def _date(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return DATE(x), DATE('2013-01-31') or TIMESTAMP('2013-01-31 10:00:00')."""
    _count(reader, node, name, (1, 1))
    kind = Type.DATE if name == "DATE" else Type.TIMESTAMP
    value = reader.scalar(node.expressions[0])
    if isinstance(value, Literal) and isinstance(value.value, str):
        return moment(reader, value.value, kind, node)
    return Cast(value, kind)


def _made_date(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return MAKE_DATE(2013, 1, 31), of constants."""
    _count(reader, node, name, (3, 3))
    parts = [reader.scalar(each) for each in node.expressions]
    told = [part.value for part in parts if isinstance(part, Literal) and type(part.value) is int]
    text = f"{told[0]:04}-{told[1]:02}-{told[2]:02}" if len(told) == 3 else ""
    if not text:
        raise reader.source.refuse(f"{name} of what is not a constant", "write DATE '2013-01-31'", node)
    return moment(reader, text, Type.DATE, node)


def _bucket(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return TIME_BUCKET('1 hour', x), where it is what DATE_TRUNC is: of one unit, or its seconds."""
    _count(reader, node, name, (2, 2))
    width, value = node.expressions
    inner = width.this if type(width).__name__ == "Interval" else width
    unit = str(width.args.get("unit") or "") if inner is not width else ""
    told = f"{inner.this} {unit}".strip().lower() if inner is not None and _is_text(inner) else ""
    found = re.fullmatch(r"1 (second|minute|hour|day|week|month|quarter|year)s?", told)
    seconds = re.fullmatch(r"([0-9]{1,6})(?:\.0*)?s(?:econds?)?", told.replace(" ", ""))
    chosen = found[1] if found else _LENGTHS.get(int(seconds[1])) if seconds else None
    if chosen is None:
        raise reader.source.refuse(
            f"{name} of other widths than one unit", "write DATE_TRUNC('hour', x), or another unit", node
        )
    return Call(FunctionName.DATE_TRUNC, (Literal(chosen), reader.scalar(value)))


_LENGTHS: Final = {1: "second", 60: "minute", 3_600: "hour", 86_400: "day"}
"""Units by their seconds: no zone makes one longer in UTC."""


def _spelled(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return TO_CHAR(x, 'YYYY-MM'): STRFTIME with the words of PostgreSQL."""
    from sqlglot import exp

    _count(reader, node, name, (2, 2))
    value, form = node.expressions
    twice = _TWICE.search(str(form.this)) if _is_text(form) else None
    if twice:
        raise reader.source.refuse(f"{name} with {twice[0]!r}", f"write {twice[1]} once, or a mark between", node)
    words = _WORDS.split(str(form.this)) if _is_text(form) else ["?"]
    for at, word in enumerate(words):
        if word in _CHARS:
            words[at] = _CHARS[word]
        elif re.search(r"[A-Za-z\"%]", word) or not _is_text(form):
            raise reader.source.refuse(
                f"{name} with {word[:20]!r}", f"the parts are {', '.join(_CHARS)}; or write DAYNAME(x)", node
            )
    asked = exp.Anonymous(this="STRFTIME", expressions=[value.copy(), exp.Literal.string("".join(words))])
    return _formatted(reader, asked, "STRFTIME")


_CHARS: Final = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}
_WORDS: Final = re.compile(f"({'|'.join(_CHARS)})")
_TWICE: Final = re.compile(rf"{_WORDS.pattern}\1")
"""One part twice in a row: PostgreSQL reads SSSS as the seconds of the day, and DDDD as the day of the year."""


def _written(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return TO_DATE('2013-01-31', 'YYYY-MM-DD') or TO_TIMESTAMP('...', 'YYYY-MM-DD HH24:MI:SS'), of a constant.

    TO_TIMESTAMP(1357000000) is so many seconds after the beginning of 1970, in UTC.
    """
    if name == "TO_TIMESTAMP" and len(node.expressions) == 1:
        seconds = reader.scalar(node.expressions[0])
        if isinstance(seconds, Literal) and type(seconds.value) is int and abs(seconds.value) < _LAST:
            return Literal(datetime(1970, 1, 1) + timedelta(seconds=seconds.value))  # noqa: DTZ001  # no zones here
    _count(reader, node, name, (2, 2))
    text, form = node.expressions
    kind = Type.DATE if name == "TO_DATE" else Type.TIMESTAMP
    told = str(form.this).upper() if _is_text(text) and _is_text(form) else ""
    if told not in _WRITTEN[kind]:
        told = " or ".join(f"'{each}'" for each in _WRITTEN[kind])
        raise reader.source.refuse(
            f"{name} of what is not a constant in ISO's form", f"write {name}(a text, {told})", node
        )
    if not re.fullmatch(_WRITTEN[kind][told], str(text.this)):
        raise reader.source.refuse(
            f"{name} of a text that is not in its form", f"write a text in the form '{told}', with all its digits", node
        )
    return moment(reader, str(text.this), kind, node)


_LAST: Final = 10**10
"""Seconds after 1970, in the years that every calendar has."""

_DAY: Final = r"\d{4}-\d\d-\d\d"
_SECOND: Final = _DAY + r" \d\d:\d\d:\d\d"
_WRITTEN: Final = {
    Type.DATE: {"YYYY-MM-DD": _DAY},
    Type.TIMESTAMP: {
        "YYYY-MM-DD HH24:MI:SS.US": _SECOND + r"\.\d{1,6}",
        "YYYY-MM-DD HH24:MI:SS": _SECOND,
        "YYYY-MM-DD": _DAY,
    },
}
"""Forms of constants, as PostgreSQL writes them, that are ISO's, and the texts that are in them."""


def _truncated(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return DATE_TRUNC('month', x), as DuckDB and PostgreSQL have it, or DATE_TRUNC(x, MONTH), as BigQuery has it."""
    _count(reader, node, name, (2, 2))
    first, second = node.expressions
    if _is_text(first):
        unit, value = str(first.this).lower(), second
    else:
        unit, value = _bare_unit(reader, second, name), first
    unit = _UNITS.get(unit, unit)
    if unit not in _UNITS.values():
        raise reader.source.refuse(
            f"{name} to {unit[:40]}", "the units are " + ", ".join(sorted(set(_UNITS.values()))), node
        )
    return Call(FunctionName.DATE_TRUNC, (Literal(unit), reader.scalar(value)))


def _bare_unit(reader: NodeReader, node: Node, name: str) -> str:
    """Return the unit of BigQuery's DATE_TRUNC(x, MONTH); its WEEK begins on Sunday, which no other dialect's does."""
    if type(node).__name__ == "Anonymous" and [argument.name.upper() for argument in node.expressions] == ["MONDAY"]:
        return str(node.name).lower()
    unit = str(node.name).lower() if type(node).__name__ in ("Column", "Var") else ""
    if unit in ("", "week"):
        advice = "write WEEK(MONDAY) or ISOWEEK" if unit else f"write {name}('month', x) or {name}(x, MONTH)"
        raise reader.source.refuse(f"{name} to WEEK" if unit else f"{name} without a unit", advice, node)
    return unit


def _is_text(node: Node) -> bool:
    """Return whether a node is a text constant."""
    return type(node).__name__ == "Literal" and bool(node.is_string)


_UNITS: Final = {
    "year": "year", "years": "year", "quarter": "quarter", "month": "month", "months": "month", "mon": "month",
    "week": "week", "isoweek": "week", "day": "day", "days": "day", "hour": "hour", "minute": "minute",
    "second": "second",
}  # fmt: skip

_PARTS: Final = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "doy")},
    "isodow": "dow",
    "weekday": "",
    "dow": "",
    "isoweek": "week",
    "dayofyear": "doy",
}
"""The parts of a date; "" for those where Sunday is 0, as DuckDB and PostgreSQL have it: the ISO day modulo 7."""


def extract(reader: NodeReader, node: Node, part: Node, value: Node) -> Scalar:
    """Return a part of a date or time, as DuckDB counts it."""
    name = str(part.name).lower()
    if name not in _PARTS:
        near = get_close_matches(name[:40], _PARTS, n=1) or ["isodow" if name == "dayofweek" else ""]
        advice = f"write EXTRACT({near[0]} FROM x)" if near[0] else "the parts are " + ", ".join(_PARTS)
        advice = "write DATE_TRUNC('hour', x): groups of time are moments here" if name == "epoch" else advice
        raise reader.source.refuse(f"EXTRACT of {name[:40]}", advice, node)
    scalar = reader.scalar(value)
    if _PARTS[name]:
        return Call(FunctionName.EXTRACT, (Literal(_PARTS[name]), scalar))
    return Call(FunctionName.MODULO, (Call(FunctionName.EXTRACT, (Literal("dow"), scalar)), Literal(7)))


def _date_part(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return DATE_PART('month', x)."""
    _count(reader, node, name, (2, 2))
    part, value = node.expressions
    return extract(reader, node, part, value)


def _named_part(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return YEAR(x), MONTH(x) and their like."""
    from sqlglot import exp

    _count(reader, node, name, (1, 1))
    return extract(reader, node, exp.var(name), node.expressions[0])


def _named(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return DAYNAME(x) or MONTHNAME(x), in English as DuckDB has it."""
    _count(reader, node, name, (1, 1))
    part, names = ("dow", _DAYS) if name == "DAYNAME" else ("month", _MONTHS)
    number = Call(FunctionName.EXTRACT, (Literal(part), reader.scalar(node.expressions[0])))
    tests = (Compare(number, Operator.EQ, Literal(place)) for place in range(1, len(names) + 1))
    return Case(tuple((test, Literal(each)) for test, each in zip(tests, names, strict=True)))


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                  "November", "December")  # fmt: skip
_SPELLED: Final = {"Y": (1, 4), "m": (6, 2), "d": (9, 2), "H": (12, 2), "M": (15, 2), "S": (18, 2)}
"""Where the parts of a moment are in its one spelling, 2013-01-31 10:00:00."""


def _formatted(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return STRFTIME(x, '%Y-%m'), its arguments in either order: parts of the one spelling of a moment."""
    _count(reader, node, name, (2, 2))
    form, value = sorted(node.expressions, key=_is_text, reverse=True)
    spelled = Cast(Cast(reader.scalar(value), Type.TIMESTAMP), Type.STRING)
    parts: list[Scalar] = []
    for told in _FORMS.findall(str(form.this)) if _is_text(form) else []:
        if told == "%%" or not told.startswith("%"):
            parts.append(Literal(told.replace("%%", "%")))
        elif told[1:] in _SPELLED:
            parts.append(Call(FunctionName.SUBSTRING, (spelled, *map(Literal, _SPELLED[told[1:]]))))
        else:
            raise reader.source.refuse(f"{name} with {told}", f"the parts are %{', %'.join(_SPELLED)} and %%", node)
    if not any(isinstance(part, Call) for part in parts):
        raise reader.source.refuse(f"{name} without parts", f"write {name}(x, '%Y-%m')", node)
    return parts[0] if len(parts) == 1 else Call(FunctionName.CONCAT, tuple(parts))


_FORMS: Final = re.compile(r"%.?|[^%]+", re.DOTALL)


def _days(reader: NodeReader, node: Node, name: str) -> Scalar:
    """Return DATE_DIFF('day', a, b), which is b - a, or BigQuery's DATE_DIFF(a, b, DAY), which is a - b."""
    _count(reader, node, name, (3, 3))
    first, second, third = node.expressions
    if _is_text(first):
        unit, before, after = str(first.this).lower(), second, third
    else:
        unit, before, after = str(third.name).lower(), second, first
    if unit not in ("day", "days"):
        raise reader.source.refuse(f"{name} in {unit[:40]}s", f"write {name}('day', a, b)", node)
    return Call(FunctionName.DAYS_BETWEEN, scalars(reader, [before, after]))


_SPECIAL: Final[dict[str, Callable[[NodeReader, Any, str], Scalar]]] = {
    **dict.fromkeys(("LTRIM", "RTRIM", "BTRIM"), _trim),
    "LEFT": _left,
    "CLAMP": _clamp,
    **dict.fromkeys(("DATE", "TIMESTAMP", "DATETIME"), _date),
    **dict.fromkeys(("DATE_TRUNC", "DATETRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _truncated),
    **dict.fromkeys(("DATE_PART", "DATEPART"), _date_part),
    **dict.fromkeys(
        ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFYEAR", "ISODOW"), _named_part
    ),
    **dict.fromkeys(("DATE_DIFF", "DATEDIFF"), _days),
    **dict.fromkeys(("DAYNAME", "MONTHNAME"), _named),
    "STRFTIME": _formatted,
    "TO_CHAR": _spelled,
    "MAKE_DATE": _made_date,
    "TIME_BUCKET": _bucket,
    **dict.fromkeys(("TO_DATE", "TO_TIMESTAMP"), _written),
}

NAMES: Final = frozenset({*_PLAIN, *_SPECIAL, "CASE", "IF", "CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM"})
"""Every function that is understood."""

LISTED: Final = "a question has the functions that are listed in docs/reference/sql.md, and no others"
"""The rule that any other function breaks."""

_ALIKE: Final = 0.75  # names that are less alike mean something else


def instead(reader: NodeReader, node: Node) -> Exception:
    """Return the refusal of a node, by the name SQL has for it, and what to write instead of it."""
    kind = type(node).__name__
    refuse = reader.source.refuse
    if kind in INSTEAD:
        return refuse(*INSTEAD[kind], node)
    name = str(node.name if kind == "Anonymous" else getattr(node, "sql_name", str)()).upper()
    if name in AGGREGATES:
        return refuse(f"aggregate {name} in {reader.where}", "aggregates come last: in the SELECT list", node)
    if name in NEVER:
        return refuse(f"function {name}", NEVER[name], node, rule=LISTED)
    if name:
        near = get_close_matches(name[:40], sorted(NAMES | AGGREGATES), n=1, cutoff=_ALIKE)
        written = str(node.name) if kind == "Anonymous" else name
        advice = f"did you mean {near[0]}?" if near else "look for one of that list that will do"
        return refuse(f"function {written[:60]}", advice, node, rule=LISTED)
    if hasattr(node, "expression") and hasattr(node, "left"):
        return refuse(f"operator {kind}", "the operators are + - * / // % ^ ||, comparisons, AND, OR and NOT", node)
    return refuse(kind, "write columns, constants, operators and functions", node)
