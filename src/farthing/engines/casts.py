"""Casts between Python values: None where a value has no counterpart in the other type."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.functions import in_64_bits, nearest
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
"""A text that is an integer."""

REAL: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]+)?)([eE][+-]?[0-9]{1,2})?")
"""A text that is a real, if it has at most 15 digits before its exponent."""

DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A text that is a date, if that date exists."""

TIME: Final = re.compile(f"({DAY.pattern})" + r"[ T]((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)")
"""A text that is a time, if its date exists."""

MOST_DIGITS: Final = 15
"""A decimal of 15 digits has one nearest double, on which all libraries agree."""


def cast(value: Any, kind: Type) -> Any:
    """Return a value as another type; None where it has no value of that type.

    >>> cast("2013-02-28", Type.DATE), cast("2013-02-29", Type.DATE), cast(-2.5, Type.INTEGER)
    (datetime.date(2013, 2, 28), None, -3)
    """
    if value is None:
        return None
    return _CASTS[kind](value)


def _integer(value: bool | float | str) -> int | None:
    """Return an integer of 64 bits: reals rounded, halves away from zero; truth values as 0 and 1."""
    if isinstance(value, str):
        return int(value) if WHOLE.fullmatch(value) else None
    if isinstance(value, float):
        return in_64_bits(nearest(value)) if math.isfinite(value) else None
    return int(value)


def _real(value: float | str) -> float | None:
    """Return a double."""
    if not isinstance(value, str):
        return float(value)
    found = REAL.fullmatch(value)
    return float(value) if found and len(found[1].replace(".", "")) <= MOST_DIGITS else None


def _text(value: bool | int | str | date) -> str:
    """Return the one spelling of a value: ISO's, a fraction of a second without its last zeros."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            whole = value.replace(microsecond=0).isoformat(sep=" ")
            return whole + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _boolean(value: bool | str) -> bool | None:
    """Return a truth value."""
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else value


def _date(value: str | date) -> date | None:
    """Return a date; of a time, its day."""
    if isinstance(value, str):
        return date.fromisoformat(value) if DAY.fullmatch(value) and _exists(value) else None
    return value.date() if isinstance(value, datetime) else value


def _time(value: str | date) -> datetime | None:
    """Return a time; of a date, its midnight."""
    if isinstance(value, str):
        found = TIME.fullmatch(value)
        if found is None or not _exists(found[1]):
            return None
        seconds, _, fraction = found[2].partition(".")
        return datetime.fromisoformat(f"{found[1]} {seconds}.{fraction:0<6}")
    return value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())


def _exists(day: str) -> bool:
    """Return whether a text of the form of a date is one."""
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


_CASTS: Final[dict[Type, Callable[[Any], Any]]] = {
    Type.INTEGER: _integer,
    Type.FLOAT: _real,
    Type.STRING: _text,
    Type.BOOLEAN: _boolean,
    Type.DATE: _date,
    Type.TIMESTAMP: _time,
}
