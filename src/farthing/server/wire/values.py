"""Values as the PostgreSQL wire carries them: each type with its number, as text or as bytes."""

from __future__ import annotations

import re
import struct
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    import pyarrow as pa

BOOL, INT8, TEXT, FLOAT8, DATE, TIMESTAMP = 16, 20, 25, 701, 1082, 1114
SIZES: Final = {BOOL: 1, INT8: 8, TEXT: -1, FLOAT8: 8, DATE: 4, TIMESTAMP: 8}
_EPOCH: Final = datetime(2000, 1, 1)  # noqa: DTZ001  # the wire's times have no zone
_NUMBERS: Final = {20: ">q", 21: ">h", 23: ">i", 700: ">f", 701: ">d"}


def oid_of(kind: pa.DataType) -> int:
    """Return the wire's number of an Arrow type; what has none leaves as text.

    >>> import pyarrow as pa
    >>> oid_of(pa.float64()), oid_of(pa.string())
    (701, 25)
    """
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return BOOL
    if pa.types.is_integer(kind):
        return INT8
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return FLOAT8
    if pa.types.is_date(kind):
        return DATE
    return TIMESTAMP if pa.types.is_timestamp(kind) else TEXT


def encoded(value: Any, oid: int, *, binary: bool) -> bytes | None:
    """Return a value as the wire carries it; None is NULL.

    >>> encoded(True, BOOL, binary=False), len(encoded(2, INT8, binary=True))
    (b't', 8)
    """
    if value is None:
        return None
    return _bytes(value, oid) if binary else _text(value, oid).encode()


def _text(value: Any, oid: int) -> str:
    """Return a value as text."""
    if oid == BOOL:
        return "t" if value else "f"
    if oid == FLOAT8:
        return repr(float(value))
    if oid == TIMESTAMP and isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _bytes(value: Any, oid: int) -> bytes:
    """Return a value in the wire's own bytes."""
    if oid == BOOL:
        return b"\1" if value else b"\0"
    if oid == INT8:
        return struct.pack(">q", int(value))
    if oid == FLOAT8:
        return struct.pack(">d", float(value))
    if oid == DATE and isinstance(value, date):
        return struct.pack(">i", (value - _EPOCH.date()).days)
    if oid == TIMESTAMP and isinstance(value, datetime):
        apart = value.replace(tzinfo=None) - _EPOCH
        return struct.pack(">q", (apart.days * 86_400 + apart.seconds) * 1_000_000 + apart.microseconds)
    return _text(value, TEXT).encode()


def decoded(value: bytes | None, oid: int, *, binary: bool) -> str | float | bool | date | None:
    """Return a parameter; one of no known type is a text.

    Raises:
        ValueError: bytes that are not a value of the type.

    >>> decoded(b"12", INT8, binary=False), decoded(b"abc", 0, binary=False)
    (12, 'abc')
    """
    if value is None:
        return None
    if binary and oid in _NUMBERS:
        try:
            number: int | float = struct.unpack(_NUMBERS[oid], value)[0]
        except struct.error:
            number = float("nan")
        if number != number:  # noqa: PLR0124  # NaN, or bytes of another length
            raise ValueError("parameter")
        return number
    if binary and oid == BOOL:
        return value != b"\0"
    if oid in {DATE, TIMESTAMP}:
        return _time(value, oid, binary=binary)
    text = bytes(value).decode()
    if oid in _NUMBERS:
        return float(text) if oid in {700, 701} else int(text)
    return text.lower() in {"t", "true", "1", "on", "yes"} if oid == BOOL else text


def _time(value: bytes, oid: int, *, binary: bool) -> date:
    """Return a day or a time; the wire counts them from the year 2000.

    >>> _time(b"2024-01-02", DATE, binary=False), _time((366).to_bytes(4, "big"), DATE, binary=True)
    (datetime.date(2024, 1, 2), datetime.date(2001, 1, 1))
    """
    try:
        if not binary:
            kind = date if oid == DATE else datetime
            return kind.fromisoformat(bytes(value).decode())
        (count,) = struct.unpack(">i" if oid == DATE else ">q", value)
        return (_EPOCH + timedelta(days=count)).date() if oid == DATE else _EPOCH + timedelta(microseconds=count)
    except (struct.error, OverflowError):
        pass
    raise ValueError("parameter")


def bound(text: str, types: list[int], formats: list[int], given: list[bytes | None]) -> str:
    """Return a statement with its parameters in place, each as a literal of its type.

    >>> bound("SELECT COUNT(*) FROM t WHERE x = $1 AND y = $2", [INT8], [], [b"3", b"it's"])
    "SELECT COUNT(*) FROM t WHERE x = 3 AND y = 'it''s'"
    """
    if not given:
        return text
    import sqlglot
    from sqlglot import exp

    def filled(node: Any) -> Any:
        """Return a literal for a parameter."""
        if not isinstance(node, exp.Parameter | exp.Placeholder) or not str(node.name).isdigit():
            return node
        place = int(node.name) - 1
        if not 0 <= place < len(given):
            raise unsupported("a parameter that was not given")
        oid = types[place] if place < len(types) else 0
        return exp.convert(decoded(given[place], oid, binary=format_of(formats, place) == 1))

    try:
        tree = sqlglot.parse_one(text, dialect="postgres")
        found = str(tree.transform(filled).sql(dialect="postgres"))
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        found = ""
    if not found:
        raise unsupported("a statement or a parameter that cannot be read")
    return found


def parameters(text: str) -> int:
    """Return how many parameters a statement has.

    >>> parameters("SELECT $1 + $2")
    2
    """
    return max((int(one) for one in re.findall(r"\$(\d{1,4})\b", text)), default=0)


def format_of(formats: list[int], place: int) -> int:
    """Return the format of one column: the list has one for each, one for all, or none.

    >>> format_of([0, 1], 1), format_of([], 3)
    (1, 0)
    """
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def unsupported(what: str) -> UnsupportedQuery:
    """Return the refusal of a part of the protocol."""
    return UnsupportedQuery(
        f"refused: {what}",
        construct="protocol",
        rule="questions, prepared questions and settings",
        next_step="send one statement at a time",
    )
