"""Constants that meet dates, times and numbers: texts are read as what they meet."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from farthing.query.expressions import Literal, Scalar
from farthing.query.schema import Type

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText

MOMENTS: Final = (Type.DATE, Type.TIMESTAMP)
NUMBERS: Final = (Type.FLOAT, Type.DECIMAL, Type.INTEGER)


class Meeting(Protocol):
    """What knows types, and how to refuse."""

    @property
    def source(self) -> SqlText:
        """The text, for places in messages."""

    def type(self, scalar: Scalar) -> Type:
        """Return the type of a scalar."""


def alike(reader: Meeting, *scalars: Scalar) -> tuple[Scalar, ...]:
    """Return scalars that meet each other: texts as dates, times or numbers where they meet one, dates as midnights.

    Raises:
        UnsupportedQuery: a text that is not a date where one is met.
    """
    if not any(isinstance(scalar, Literal) for scalar in scalars):
        return scalars
    kinds = {reader.type(scalar) for scalar in scalars}
    met = next((kind for kind in reversed(MOMENTS) if kind in kinds), None)
    if met is None:
        number = next((kind for kind in NUMBERS if kind in kinds), None)
        return scalars if number is None else tuple(_counted(scalar, number) for scalar in scalars)
    others = {reader.type(scalar) for scalar in scalars if not isinstance(scalar, Literal)}
    if met is Type.TIMESTAMP and others == {Type.DATE} and all(map(_is_day, scalars)):
        met = Type.DATE
    return tuple(_as(reader, scalar, met) for scalar in scalars)


def _counted(scalar: Scalar, met: Type) -> Scalar:
    """Return a text as the number that it meets, where it is one: so SQL reads constants in quotes."""
    match scalar:
        case Literal(str() as text) if re.fullmatch(r"-?[0-9]{1,18}", text):
            return Literal(int(text))
        case Literal(str() as text) if met is not Type.INTEGER and re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text):
            return Literal(float(text))
        case _:
            return scalar


def _is_day(scalar: Scalar) -> bool:
    """Return whether a scalar is a midnight, the text of a day, or not a constant."""
    match scalar:
        case Literal(datetime() as at):
            return at.tzinfo is None and at.time() == time()
        case Literal(str() as text):
            return len(text) == len("2013-01-31")
        case _:
            return True


def _as(reader: Meeting, scalar: Scalar, met: Type) -> Scalar:
    """Return a constant as the date or time that it meets."""
    match scalar:
        case Literal(str() as text):
            return moment(reader, text, met, None)
        case Literal(datetime() as at) if met is Type.DATE:
            return Literal(at.date())
        case Literal(date() as day) if met is Type.TIMESTAMP and not isinstance(day, datetime):
            return Literal(datetime(day.year, day.month, day.day))  # noqa: DTZ001  # times here have no zone
        case _:
            return scalar


def moment(reader: Meeting, text: str, kind: Type, node: Node | None) -> Literal:
    """Return a date or time constant from its ISO text; a time in UTC may say so."""
    try:
        if kind is Type.DATE:
            return Literal(date.fromisoformat(text))
        made = datetime.fromisoformat(text)
        return Literal(made.replace(tzinfo=None) if made.utcoffset() == timedelta() else made)
    except ValueError:
        form = "'2013-01-31'"
        if kind is Type.TIMESTAMP:
            form = "'2013-01-31 10:00:00', in UTC where the table has zones, without another zone"
        raise reader.source.refuse(f"{kind} {text[:40]!r}", f"write a {kind} as {form}", node) from None
