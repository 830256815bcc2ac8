"""A CSV table as a source of typed rows, block by block."""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from farthing.engines.own import Own
from farthing.engines.reading.lines import DAMAGED, blocks, clean, damaged, header, in_utf8
from farthing.engines.reading.records import arrow_types, converter, fields, typed
from farthing.engines.reading.version import shown
from farthing.errors import DataError
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from farthing.query.reading import Csv

WORKERS: Final = min(os.cpu_count() or 1, 8)


class HeldFiles(Protocol):
    """Files that were listed when the table was opened."""

    @property
    def files(self) -> tuple[str, ...]:
        """Their paths."""

    def check(self) -> None:
        """Find out cheaply that they are still there."""

    def identity(self) -> list[list[int]]:
        """Return what tells one state of them from another without looking at rows."""


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """CSV files, listed when the table was opened, and read again for every question, by several threads.

    Attributes:
        held: the files.
        reading: how a line is read.
        names: the columns that the header names.
    """

    held: HeldFiles
    reading: Csv
    names: tuple[str, ...]
    _casts: Own = field(default_factory=lambda: Own(converter, _close), repr=False, compare=False)

    @property
    def files(self) -> tuple[str, ...]:
        """The files: absolute paths."""
        return self.held.files

    @property
    def categories(self) -> Mapping[str, tuple[str, ...]]:
        """None: text declares no values."""
        return {}

    def scan(self) -> None:
        """Nothing for DuckDB to scan: its own reader of CSV lets a line decide how others are read."""

    def load(self, columns: tuple[str, ...] | None) -> Any:
        """Return a stream of the given columns; None: all columns, no rows."""
        import pyarrow as pa

        names = self.names if columns is None else columns
        kinds = arrow_types()
        schema = pa.schema([(name, kinds[self.reading.type_of(name)]) for name in names])
        if columns is None:
            return schema.empty_table()
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def check(self) -> None:
        """Refuse a file that is gone, a folder or empty."""
        self.held.check()

    def close(self) -> None:
        """Close what casts their text."""
        self._casts.close()

    def identity(self) -> list[list[int]]:
        """Return what tells the files' state, and how they are read: read otherwise, they are other rows."""
        told = repr(replace(self.reading, path="-"))  # a file may move
        if (self.reading.encoding, self.reading.decimal) != ("utf-8", "."):
            told += f" {self.reading.encoding} {self.reading.decimal}"
        if self.reading.thousands is not None:
            told += f" thousands {self.reading.thousands}"
        declared = hashlib.sha256(told.encode()).digest()
        return [*self.held.identity(), [int.from_bytes(declared[:6])]]

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of their lines."""
        wanted = [self.names.index(name) for name in schema.names]
        ahead: deque[Any] = deque()
        with ThreadPoolExecutor(WORKERS) as pool:
            for path in self.files:
                for block in blocks(path):
                    ahead.append(pool.submit(self._rows, block, schema, wanted))
                    if len(ahead) > WORKERS:
                        yield from ahead.popleft().result()
            while ahead:
                yield from ahead.popleft().result()

    def _rows(self, block: bytes, schema: pa.Schema, wanted: list[int]) -> list[pa.RecordBatch]:
        """Return the rows of one block."""
        reading = self.reading
        lines = clean(in_utf8(block, reading.encoding), reading.quote, str(reading.delimiter))
        texts = fields(lines, reading, len(self.names), wanted)
        kinds = [reading.type_of(name) for name in schema.names]
        if all(kind is Type.STRING for kind in kinds):
            return list(texts.rename_columns(schema.names).to_batches())
        sql = ", ".join(typed(f"c{place}", name, kind, reading)
                        for place, name, kind in zip(wanted, schema.names, kinds, strict=True))  # fmt: skip
        cursor = self._casts.get().cursor()
        try:
            cursor.register("lines", texts)
            return list(cursor.sql(f"SELECT {sql} FROM lines").to_arrow_table().cast(schema).to_batches())
        finally:
            cursor.close()


def _close(connection: Any) -> None:
    """Close a connection, and wait for its threads."""
    connection.close()


def from_csv(held: HeldFiles, reading: Csv) -> CsvFiles:
    """Return CSV files as a source.

    Raises:
        DataError: a header is not a list of names, differs from the others, or lacks a declared column.
    """
    found = {names_of(path, _first_line(path), reading): path for path in reversed(held.files)}
    if len(found) > 1:
        raise DataError(
            "two files of one table have different headers",
            rule="all files of a table have the same columns in the same order",
            got=", ".join(list(found.values())[:2]),
            next_step="open them one by one, or write them again with one header",
        )
    names = next(iter(found))
    missing = [column for column in reading.columns if column not in names]
    if missing:
        raise DataError(
            f"the CSV table has no column {missing[0]!r}",
            rule="types are declared for columns that the header names",
            got=", ".join(names[:20]),
            next_step="correct the name in the declaration; upper and lower case differ",
        )
    return CsvFiles(held, reading, names)


def names_of(path: str, line: bytes, reading: Csv) -> tuple[str, ...]:
    """Return the columns that the first line of a file names; those without a name get one.

    Raises:
        DataError: the line is not a list of names that differ.
    """
    first, line = line, in_utf8(line, reading.encoding).removesuffix(b"\n").removesuffix(b"\r") + b"\n"
    kept = clean(line, reading.quote, str(reading.delimiter))
    if not kept.strip():
        what, next_step = next((told for has, told in _NO_HEADERS if has(first)), _NO_HEADER)
        raise DataError(
            what,
            rule=f"the first line names the columns, in {reading.encoding}, with quotes as RFC 4180 has them",
            got=shown(path),
            next_step=next_step,
        )
    if _SEPARATOR.fullmatch(kept):
        raise DataError(
            "the first line names the separator, not the columns",
            rule="the first line names the columns; a line before it that begins with sep is read by Excel alone",
            got=shown(path),
            next_step="take the first line away: tail -n +2 FILE > NEW.csv",
        )
    names = tuple(name or f"column{place}" for place, name in enumerate(split(kept, reading)))
    if len({name.casefold() for name in names}) < len(names):
        raise DataError(
            "two columns have the same name",
            rule="names differ in more than upper and lower case",
            got=shown(path),
            next_step="rename one of them in the first line",
        )
    return names


_NO_HEADER: Final = (
    "the CSV file has no header",
    "write the names of the columns there, or declare the encoding: farthing init proposes one",
)
_NO_HEADERS: Final[tuple[tuple[Callable[[bytes], bool], tuple[str, str]], ...]] = (
    (lambda line: line.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")),
     ("the file is an archive or a workbook, not CSV", "save the sheet as CSV in UTF-8, or unpack the file")),
    (lambda line: line.startswith(b"\x1f\x8b"),
     ("the file is packed by gzip, and its name does not say so", "give it a name that ends in .csv.gz")),
    (lambda line: line.startswith(b"PAR1"),
     ("the file is Parquet, and its name does not say so", "give it a name that ends in .parquet")),
    (lambda line: line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line,
     ("the CSV file is in UTF-16, or is not text", "write it in UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW.csv")),
    (lambda line: b"\r" in line.removesuffix(b"\n").removesuffix(b"\r"),
     ("lines of the CSV file end with CR alone", "end them with LF: tr '\\r' '\\n' < FILE > NEW.csv")),
)  # fmt: skip
"""What a first line is that names no columns, by its own bytes, which are public."""

_SEPARATOR: Final = re.compile(rb'"?sep=.?"?\s*')


def _first_line(path: str) -> bytes:
    """Return the header of a file."""
    with suppress(*DAMAGED):
        return header(path)
    raise damaged(shown(path))


def split(line: bytes, reading: Csv) -> list[str]:
    """Return the fields of one clean line."""
    text, quote = line.decode().rstrip("\r\n"), reading.quote
    fields, rest = [], text + str(reading.delimiter)
    while rest:
        if quote and rest.startswith(quote):
            end = _closing(rest, quote)
            fields.append(rest[1:end].replace(quote * 2, quote))
            rest = rest[end + 2 :]
        else:
            field, _, rest = rest.partition(str(reading.delimiter))
            fields.append(field)
    return fields


def _closing(rest: str, quote: str) -> int:
    """Return where the quote is that closes the field at the start of a text."""
    end = rest.index(quote, 1)
    while rest[end + 1 : end + 2] == quote:
        end = rest.index(quote, end + 2)
    return end
