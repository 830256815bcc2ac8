"""Public group keys, as people type them: a list, a range, a calendar, or the column of a public file or table."""

from __future__ import annotations

import csv
import glob
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli.input.typed import nearest
from farthing.errors import DataError, FarthingError, InvalidKeys
from farthing.folders import shares_files
from farthing.urls import is_address, paths_at, shown_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

HOW: Final = "--keys dest=ATL,ORD or --keys dest=@airports.csv:faa"
"""How keys are given, for error messages."""

_RANGE: Final = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*(?:\.\.\s*0*([1-9]\d*)\s*)?")
_SPAN: Final = re.compile(r"\s*([\dQTW:\- ]*\d)\s*\.\.\s*(\d[\dQTW:\- ]*?)\s*")
_TABLE_COLUMN: Final = re.compile(r"[^\W\d]\w*\.\w+")

_MOMENTS: Final = (
    ("year", r"\d{4}", "{}-01-01"),
    ("quarter", r"\d{4}-Q[1-4]", "{}-01"),
    ("month", r"\d{4}-\d\d", "{}-01"),
    ("week", r"\d{4}-W\d\d", "{}-1"),
    ("day", r"\d{4}-\d\d-\d\d", "{}"),
    ("hour", r"\d{4}-\d\d-\d\d[T ]\d\d", "{}:00:00"),
    ("minute", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", "{}:00"),
)
"""How the ends of a calendar are written: the unit, its form, and the first moment of it in ISO."""
_QUARTERS: Final = {"Q1": "01", "Q2": "04", "Q3": "07", "Q4": "10"}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where keys may come from, and where not.

    Attributes:
        folder: where relative paths start.
        protected: the paths and patterns of the protected tables, which are not source of public keys.
        public: the columns of the declared public tables, with their types.
    """

    folder: Path
    protected: Sequence[str]
    public: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def split(option: str) -> tuple[str, str]:
    """Return column and values of one --keys option.

    >>> split("dest=ATL,ORD")
    ('dest', 'ATL,ORD')
    """
    column, equals, values = option.partition("=")
    if not equals or not column.strip():
        raise InvalidKeys("--keys names no column", rule="COLUMN=VALUES", got=option, next_step=HOW)
    return column.strip(), values


def read(column: str, values: str, kind: str, sources: Sources) -> Any:
    """Return the keys of one column of a type, from their text; a public table's column stays a text.

    >>> from pathlib import Path
    >>> read("dest", "airports.faa", "string", Sources(Path(), (), {"airports": {"faa": "string"}}))
    'airports.faa'
    """
    if values.startswith("@"):
        return from_file(column, values[1:], kind, sources)
    listed = of_table(column, values, sources.public)
    if listed is not None:
        return listed
    return typed(column, values, kind)


def of_table(column: str, values: str, public: Mapping[str, Mapping[str, str]]) -> str | None:
    """Return keys that name a column of a declared public table, as in airports.faa; None where they name none.

    Raises:
        InvalidKeys: there is no such column, or no such table: a typing error would be a key of its own, and paid for.
    """
    table, dot, name = values.strip().partition(".")
    if table in public and dot:
        if name not in public[table]:
            raise InvalidKeys(
                f"keys of {column!r} name an unknown column of {table}",
                rule="TABLE.COLUMN names a column of a declared public table",
                got=values,
                next_step=nearest(name, public[table]),
            )
        return f"{table}.{name}"
    if _TABLE_COLUMN.fullmatch(values.strip()):
        known = nearest(table, public) if public else "declare it in [public] of farthing.toml"
        raise InvalidKeys(
            f"keys of {column!r} name an unknown table",
            rule="TABLE.COLUMN names a column of a declared public table",
            got=values,
            next_step=f"{known}, or quote a value: --keys '{column}=\"{values.strip()}\"'",
        )
    return None


def calendar_of(column: str, values: str, kind: str) -> Any:
    """Return a calendar of days, months, years ... from its ends; None where the text is none.

    >>> calendar_of("day", "2013-01..2013-03", "date")
    [datetime.date(2013, 1, 1), datetime.date(2013, 2, 1), datetime.date(2013, 3, 1)]
    """
    from farthing.query.calendar import calendar

    span = _SPAN.fullmatch(values)
    if span is None or kind not in {"date", "timestamp"}:
        return None
    for unit, form, whole in _MOMENTS:
        if all(re.fullmatch(form, end) for end in span.groups()):
            first, last = (whole.format(re.sub("Q.", lambda q: _QUARTERS[q[0]], end)) for end in span.groups())
            return calendar(first, last, unit)
    raise _wrong(column, kind, values)


def typed(column: str, values: str, kind: str) -> Any:
    """Return typed keys: values with commas between them, 1..12 or a calendar; NULL is the key of missing values.

    >>> typed("month", "1..12", "integer"), typed("decade", "0..90..10", "integer")
    (range(1, 13), range(0, 91, 10))
    >>> typed("dest", '"New York, NY",NULL', "string")
    ['New York, NY', None]
    """
    span = _RANGE.fullmatch(values)
    if span and kind in {"integer", "float", "decimal"}:
        return _span(column, int(span[1]), int(span[2]), int(span[3] or 1))
    moments = calendar_of(column, values, kind)
    if moments is not None:
        return moments
    read = _READERS.get(kind, str)
    words = next(csv.reader([values], skipinitialspace=True), [])
    with suppress(ValueError):
        return [None if word == "NULL" else read(word if kind == "string" else word.strip()) for word in words]
    raise _wrong(column, kind, values)


def _span(column: str, first: int, last: int, step: int) -> range:
    """Return a range of whole numbers, both ends included; refuse one without end before it fills the memory."""
    from farthing.query.keys import MOST_GROUPS

    if last < first:
        raise InvalidKeys(
            f"the range of keys of {column!r} runs backwards",
            rule="a range is written from the least to the greatest, both included",
            got=f"{first}..{last}",
            next_step=f"write {last}..{first}",
        )
    if (last - first) // step >= MOST_GROUPS or max(abs(first), abs(last)) >= 2**63:
        raise InvalidKeys(
            f"too many keys of {column!r}",
            rule=f"at most {MOST_GROUPS:,} groups an answer, of 64-bit whole numbers",
            got=f"{first}..{last}",
            next_step="list fewer, or in steps, as in 0..90..10",
        )
    return range(first, last + 1, step)


def from_file(column: str, source: str, kind: str, sources: Sources) -> Any:
    """Return the keys in a column of a CSV or Parquet file, written airports.csv:faa.

    Args:
        column: the grouping column.
        source: path and column.
        kind: the grouping column's type, which the file's column must have.
        sources: where the path starts, and which files are protected.
    """
    path, colon, name = source.rpartition(":")
    if not colon or not path or not name:
        raise InvalidKeys(f"keys of {column!r} name no column", rule="@FILE:COLUMN", got="@" + source, next_step=HOW)
    file = sources.folder / path
    if not os.path.isfile(file):  # noqa: PTH113  # a name that no file can have is no error here
        raise DataError(
            "the file of keys does not exist",
            got=shown_address(path) if is_address(path) else file,
            next_step="check the path and the working folder",
            rule="@FILE:COLUMN names a file that exists",
        )
    _refuse_protected(column, file, sources.protected)
    found = _parquet(file, name) if file.suffix.lower() in {".parquet", ".pq"} else _csv(column, file, name, kind)
    if found is None:
        raise InvalidKeys(
            f"the file of keys has no column {name!r}",
            got=file,
            next_step="check the file's header",
            rule="@FILE:COLUMN names a column of the file",
        )
    return found


def _refuse_protected(column: str, file: Path, protected: Sequence[str]) -> None:
    """Refuse a file of a protected table, and any file beside a protected address that does not tell its files."""
    for table in protected:
        if shares_files(glob.escape(str(file)), table):
            raise InvalidKeys(
                f"keys of {column!r} would be read from the protected table",
                rule="the groups of an answer are public: which ones exist in the data is private",
                got=file,
                next_step="list the keys, or name a public file",
            )
        if paths_at(table) is None:
            raise InvalidKeys(
                f"keys of {column!r} might be read from the protected table, whose address does not tell its files",
                rule="the groups of an answer are public: which ones exist in the data is private",
                got=f"{file}, beside {shown_address(table)}",
                next_step="list the keys, or name a column of a public table",
            )


def same_file(file: Path, table: str) -> bool:
    """Return whether a file is (one of those of) a table, given as a path or pattern."""
    files = [table, *(glob.glob(table, recursive=True) if glob.has_magic(table) else [])]  # noqa: PTH207  absolute
    return file.exists() and any(Path(path).exists() and file.samefile(path) for path in files)


def _parquet(file: Path, name: str) -> Any:
    """Return a column of a Parquet file; None if there is none of that name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with suppress(pa.ArrowException, OSError):
        known = pq.read_schema(file).names
        return pq.read_table(file, columns=[name], partitioning=None).column(0) if name in known else None
    raise DataError(
        "the file of keys cannot be read as Parquet",
        got=file,
        rule="a file ending in .parquet is Parquet",
        next_step="check the file, or give the keys as a list",
    )


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
        problem: FarthingError = _wrong(column, kind, f"@{file}:{name}")
    except (OSError, UnicodeDecodeError, csv.Error):
        problem = DataError(
            "the file of keys cannot be read as CSV",
            got=file,
            rule="a file of keys is CSV with a header, or Parquet",
            next_step="check the file, or give the keys as a list",
        )
    raise problem


def _wrong(column: str, kind: str, got: str) -> InvalidKeys:
    """Return the error for keys that cannot be read in their column's type."""
    hints = {
        "date": "2013-01-30,2013-01-31, 2013-01-01..2013-12-31 or, for months, 2013-01..2013-12",
        "timestamp": "2013-01-31T12:00:00, 2013-01-01..2013-12-31 or, for months, 2013-01..2013-12",
        "boolean": "true,false",
        "integer": "1,2, 1..12 or, in steps of ten, 0..90..10",
        "float": "0.5,1 or, in steps of ten, 0..90..10",
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
