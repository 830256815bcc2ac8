"""Public group keys, as people type them: a list, a range, or the column of a public file."""

from __future__ import annotations

import csv
import glob
import re
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError, InvalidKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOW: Final = "--keys dest=ATL,ORD or --keys dest=@airports.csv:faa"
"""How keys are given, for error messages."""

_RANGE: Final = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")


def split(option: str) -> tuple[str, str]:
    """Return column and values of one --keys option.

    >>> split("dest=ATL,ORD")
    ('dest', 'ATL,ORD')
    """
    column, equals, values = option.partition("=")
    if not equals or not column.strip():
        raise InvalidKeys("--keys names no column", rule="COLUMN=VALUES", got=option, next_step=HOW)
    return column.strip(), values


def typed(column: str, values: str, kind: str) -> Any:
    """Return typed keys: values with commas between them, or the range 1..12; NULL is the key of missing values.

    >>> typed("month", "1..12", "integer")
    range(1, 13)
    >>> typed("dest", '"New York, NY",NULL', "string")
    ['New York, NY', None]
    """
    span = _RANGE.fullmatch(values)
    if span and kind == "integer":
        return range(int(span[1]), int(span[2]) + 1)
    read = _READERS.get(kind, str)
    words = next(csv.reader([values], skipinitialspace=True), [])
    try:
        return [None if word == "NULL" else read(word if kind == "string" else word.strip()) for word in words]
    except ValueError:
        raise _wrong(column, kind, values) from None


def from_file(column: str, source: str, kind: str, *, folder: Path, table: str) -> Any:
    """Return the keys in a column of a CSV or Parquet file, written airports.csv:faa.

    Args:
        column: the grouping column.
        source: path and column; a relative path starts at `folder`.
        kind: the grouping column's type, which the file's column must have.
        folder: where relative paths start.
        table: the protected table, which is no source of public keys.
    """
    path, colon, name = source.rpartition(":")
    if not colon or not path or not name:
        raise InvalidKeys(f"keys of {column!r} name no column", rule="@FILE:COLUMN", got="@" + source, next_step=HOW)
    file = folder / path
    if not file.is_file():
        raise DataError(
            "no such file of keys",
            got=file,
            next_step="check the path and the working folder",
            rule="@FILE:COLUMN names a file that exists",
        )
    _refuse_protected(column, file, table)
    found = _parquet(file, name) if file.suffix.lower() in {".parquet", ".pq"} else _csv(column, file, name, kind)
    if found is None:
        raise InvalidKeys(
            f"the file of keys has no column {name!r}",
            got=file,
            next_step="check the file's header",
            rule="@FILE:COLUMN names a column of the file",
        )
    return found


def _refuse_protected(column: str, file: Path, table: str) -> None:
    """Refuse to read keys from the protected table itself: which groups exist in it is private."""
    protected = [table, *(glob.glob(table, recursive=True) if glob.has_magic(table) else [])]  # noqa: PTH207  absolute
    if any(Path(path).exists() and file.samefile(path) for path in protected):
        raise InvalidKeys(
            f"keys of {column!r} would be read from the protected table",
            rule="the groups of an answer are public: which ones exist in the data is private",
            got=file,
            next_step="list the keys, or name a public file",
        )


def _parquet(file: Path, name: str) -> Any:
    """Return a column of a Parquet file; None if there is none of that name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        known = pq.read_schema(file).names
        return pq.read_table(file, columns=[name], partitioning=None).column(0) if name in known else None
    except (pa.ArrowException, OSError):
        raise DataError(
            "the file of keys cannot be read as Parquet",
            got=file,
            rule="a file ending in .parquet is Parquet",
            next_step="check the file, or give the keys as a list",
        ) from None


def _csv(column: str, file: Path, name: str, kind: str) -> Any:
    """Return a column of a CSV file in the type of the grouping column; None if there is none of that name."""
    import pyarrow as pa
    import pyarrow.csv as pc

    types = {
        "integer": pa.int64(),
        "float": pa.float64(),
        "decimal": pa.float64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            known = next(csv.reader(lines), [])
        if name not in known:
            return None
        convert = pc.ConvertOptions(include_columns=[name], column_types={name: types.get(kind, pa.string())})
        return pc.read_csv(file, convert_options=convert).column(0)
    except pa.ArrowInvalid:
        raise _wrong(column, kind, f"@{file}:{name}") from None
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(
            "the file of keys cannot be read as CSV",
            got=file,
            rule="a file of keys is CSV with a header, or Parquet",
            next_step="check the file, or give the keys as a list",
        ) from None


def _wrong(column: str, kind: str, got: str) -> InvalidKeys:
    """Return the error for keys that cannot be read in their column's type."""
    hints = {
        "date": "2013-01-31",
        "timestamp": "2013-01-31T12:00:00",
        "boolean": "true,false",
        "integer": "1,2 or 1..12",
    }
    return InvalidKeys(
        f"keys of {column!r} have the wrong type",
        rule=f"keys of a column have its type, {kind}",
        got=got,
        next_step=f"write them as in {hints[kind]}" if kind in hints else f"give {kind} values",
    )


def _truth(word: str) -> bool:
    """Return true or false."""
    known = {"true": True, "false": False}
    if word.lower() not in known:
        raise ValueError(word)
    return known[word.lower()]


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "integer": int,
    "float": float,
    "decimal": float,
    "boolean": _truth,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}
