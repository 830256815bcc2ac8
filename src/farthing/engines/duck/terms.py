"""Words of DuckDB's SQL: names, types, constants, the total reading of a column, and the keyed hash.

Questions are written as text and not through ibis: compiling there costs several milliseconds a question, as much as a
tenth of the whole answer. Every name is quoted, every constant is a literal of its own type.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from farthing.query.schema import Type

if TYPE_CHECKING:
    from datetime import date

    from farthing.query.expressions import Literal

TABLE: Final = "farthing_table"
KEYS: Final = "farthing_keys"
ZONED: Final = "TIMESTAMP WITH TIME ZONE"
_FINE: Final = "TIMESTAMPTZ_NS"
"""Nanoseconds with a zone, as pandas writes them to Parquet: a type of its own from DuckDB 2 on."""


def canonical_type(native: str) -> Type:
    """Return our type of a DuckDB type."""
    if native.startswith("DECIMAL"):
        return Type.DECIMAL
    if native.startswith("ENUM"):
        return Type.STRING
    return _TYPES.get(native, Type.OTHER)


_TYPES: Final = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), Type.INTEGER
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Type.FLOAT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", ZONED, _FINE), Type.TIMESTAMP),
    "VARCHAR": Type.STRING,
    "BOOLEAN": Type.BOOLEAN,
    "DATE": Type.DATE,
}


def quoted(name: str) -> str:
    """Return a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def row(name: str) -> str:
    """Return a column of the table that is scanned, told from names of our own."""
    return f"r.{quoted(name)}"


def reader(name: str, native: str) -> str:
    """Return the total expression that reads a column in the type in which it is compared, computed with and grouped.

    Floats are read as x + 0: a filter on the bare column may be handed to the reader of Arrow or Parquet, which can
    take -0.0 and 0.0 for different values; a filter on an expression stays with DuckDB, which does not. Days and times
    outside the years 1 to 9999 are NULL, infinite ones too. Coarse timestamps are cast only where the cast succeeds:
    TRY_CAST does raise there (DuckDB 1.5). Times with a zone are read in UTC, by what has passed since 1970: a cast
    would go by the session's zone.
    """
    column = row(name)
    if native in ("FLOAT", "DOUBLE"):
        return f"({column} + 0::DOUBLE)"
    if native.startswith("DECIMAL"):
        return _decimal(column, native)
    if native.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)"
    if native in _EDGES:
        first, last = (f"CAST('{moment}' AS {native})" for moment in _EDGES[native])
        read = _NAIVE.get(native, "CAST({} AS TIMESTAMP)").format(column)
        return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {read} END"
    return column


def _decimal(column: str, native: str) -> str:
    """Return a decimal as the nearest double: DuckDB's cast is that while it divides by an exact power of an exact one.

    >>> _decimal("x", "DECIMAL(15,2)")
    'CAST(x AS DOUBLE)'
    """
    digits, places = map(int, _DECIMAL.findall(native))
    plain, spelled = f"CAST({column} AS DOUBLE)", f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    if digits <= _EXACT_DIGITS:
        return plain
    if places > _EXACT_POWER:
        return spelled
    most = format(Decimal(2**53).scaleb(-places), "f")  # no exponent: DECIMAL(22,22) takes none
    edges = (f"CAST('{sign}{most}' AS {native})" for sign in ("-", ""))
    return f"(CASE WHEN {column} BETWEEN {' AND '.join(edges)} THEN {plain} ELSE {spelled} END)"


_DECIMAL: Final = re.compile(r"\d+")
_EXACT_DIGITS: Final = 15
_EXACT_POWER: Final = 22
"""The largest power of ten that is a double."""

_COMMON_ERA: Final = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
_EDGES: Final = {
    "DATE": ("0001-01-01", "9999-12-31"),
    "TIMESTAMP": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "TIMESTAMP_S": _COMMON_ERA,
    "TIMESTAMP_MS": _COMMON_ERA,
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 00:00:00"),
    _FINE: ("1677-09-22 00:00:00+00", "2262-04-11 00:00:00+00"),
    ZONED: ("0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00"),
}
_NAIVE: Final = {
    "DATE": "{}",
    "TIMESTAMP": "{}",
    ZONED: "make_timestamp(epoch_us({}))",
    _FINE: "CAST(make_timestamp_ns(epoch_ns({})) AS TIMESTAMP)",
}


def keyed_hash(unit: str, place: str, hash_key: int) -> str:
    """Return the hash that ranks the groups of a unit.

    The outer hash matters: the inner ones are only combined by exclusive or, which would favour the same groups in
    every unit.
    """
    return f"hash(xor(hash({unit}, {place}), {hash_key}::UBIGINT))"


def hash_probe() -> str:
    """Return SQL for one text that tells hash functions apart."""
    values = (keyed_hash(unit, "3::INTEGER", 5) for unit in ("7::BIGINT", "'N14228'", "1.5::DOUBLE"))
    return "SELECT concat_ws(',', " + ", ".join(values) + ")"


def constant(literal: Literal, *, real: bool = False) -> str:
    """Return a constant of its own type; a number as a double where that is asked."""
    value = literal.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return double(float(value)) if real or isinstance(value, float) else f"({value})"
    return text(value) if isinstance(value, str) else _moment(value)


def double(value: float) -> str:
    """Return a finite number as a double."""
    return f"({float(value)!r})::DOUBLE"


def text(value: str) -> str:
    """Return a text constant; a letter that SQL text might not carry travels as bytes."""
    if value.isascii() and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return "decode('" + "".join(f"\\x{byte:02X}" for byte in value.encode()) + "'::BLOB)"


def stored(value: date, native: str) -> str | None:
    """Return a date or time as a column of a native type holds it; None where that takes a cast of the column.

    >>> stored(datetime(2013, 1, 31, 12), ZONED)
    "CAST('2013-01-31 12:00:00+00' AS TIMESTAMP WITH TIME ZONE)"
    """
    if native == ZONED and isinstance(value, datetime):
        return f"CAST('{value.isoformat(sep=' ')}+00' AS {ZONED})"
    return _moment(value) if native in ("DATE", "TIMESTAMP") else None


def _moment(value: date) -> str:
    """Return a date or time constant."""
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"DATE '{value.isoformat()}'"
