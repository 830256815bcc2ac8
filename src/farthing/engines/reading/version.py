"""One version of a Delta or Iceberg table: which files and columns it has, and its rows as a stream.

Files were written at different times, by names and types of columns that may have changed since, and some of their rows
may have been deleted by entries elsewhere. What the table says they are now is told here, for all values alike.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.engines.engine import engine_failed
from farthing.engines.reading.moments import moments
from farthing.engines.reading.text import is_text, valid
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
"""Digits of the whole numbers of so many bits."""

_EXACT: Final = 15
"""Digits of which every number is a double."""


def nothing() -> NDArray[np.int64]:
    """Return the places of no rows."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file of the table.

    Attributes:
        path: where it is.
        values: the values of columns that are told beside the file, whatever it holds, by name.
        missing: those of columns that it may lack, by name; others are NULL there.
        gone: the places of its rows that were deleted.
    """

    path: str
    values: Mapping[str, pa.Scalar[Any]] = field(default_factory=dict)
    missing: Mapping[str, pa.Scalar[Any]] = field(default_factory=dict)
    gone: NDArray[np.int64] = field(default_factory=nothing)

    def holds(self, column: TableColumn, schema: pa.Schema) -> pa.Scalar[Any] | str | None:
        """Return the value of a column beside the file, else its name in the file; None where it is not there."""
        return self.values[column.name] if column.name in self.values else column.within(schema)

    def mark(self) -> list[int]:
        """Return a digest of the values beside the file, by which the same file is other rows; nothing without any."""
        import pyarrow as pa

        plain = {
            name: value.value if pa.types.is_temporal(value.type) else value.as_py()  # Python's own calendar ends
            for name, value in self.values.items()
        }
        return [int.from_bytes(hashlib.sha256(repr(plain).encode()).digest()[:6])] if plain else []


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table.

    Attributes:
        name: its name in the table.
        kind: its type, in which it is handed over.
        key: what tells it in a file: a name, or a number where the table goes by these.
        names: its names in files without numbers.
        numbers: those of the fields within it, where the table goes by numbers.
    """

    name: str
    kind: pa.DataType
    key: str | bytes
    names: frozenset[str] = frozenset()
    numbers: tuple[bytes, ...] = ()

    def within(self, schema: pa.Schema) -> str | None:
        """Return its name in a file; None where it is not there.

        Raises:
            DataError: two columns of the file have its name, which upper and lower case do not tell apart.
        """
        numbers = {(each.metadata or {}).get(b"PARQUET:field_id"): each.name for each in schema}
        if isinstance(self.key, str):
            alike = [name for name in schema.names if name.lower() == self.key.lower()]
            if len(alike) > 1:
                raise DataError(
                    "two columns of a file have the same name",
                    rule="names differ in more than upper and lower case",
                    got=self.name,
                    next_step="write the table again with one of them",
                )
            return alike[0] if alike else None
        if {*numbers} != {None}:
            return numbers.get(self.key)
        return next((name for name in schema.names if name in self.names), None)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table.

    Attributes:
        data: its data files.
        columns: its columns.
        beside: other files that say which rows these are, such as those that delete rows or name columns.
        plain: whether the rows of the files, column by column, are those of the table.
        cut: the files from which rows are left out by their places.
    """

    data: tuple[DataFile, ...]
    columns: tuple[TableColumn, ...]
    beside: tuple[str, ...] = ()
    plain: bool = False
    cut: frozenset[str] = frozenset()

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of its data files, in an order of their own."""
        return tuple(sorted({each.path for each in self.data}))

    @property
    def marks(self) -> dict[str, list[int]]:
        """What tells its data files apart beside the files themselves, by path."""
        return {each.path: each.mark() for each in self.data}

    @property
    def names(self) -> tuple[str, ...]:
        """The table's columns."""
        return tuple(column.name for column in self.columns)

    def read(self, columns: tuple[str, ...] | None) -> Any:
        """Return columns as an Arrow stream whose text is UTF-8; None: all columns, no rows.

        Guarantee: whatever fails is told without a word of a row.
        Proof: [design, errors are outputs] what a library says of a file is dropped.
        Assumes: the files are those of the version.
        Rounds: nothing.
        """
        named = {column.name: column for column in self.columns}
        reader = None
        with suppress(Exception):  # whatever a file fails with may quote a row
            reader = stream(self.data, [named[name] for name in (self.names if columns is None else columns)])
        if reader is None:
            raise engine_failed()
        return reader.schema.empty_table() if columns is None else reader

    def readable(self) -> Version:
        """Return the version with the columns that are read on every value: lists and the like as files hold them.

        Guarantee: what a question reads is converted only where no value can fail, so none decides between an answer
            and an error; and no two values become one, which would make one unit of two.
        Proof: each column of each file has the table's type, or one all of whose values are told in it.
        Assumes: footers are public, as the schema is.
        Rounds: nothing.

        Raises:
            DataError: a column of numbers, texts or moments is of another type in a file.
        """
        import pyarrow.types as of

        odd = {*self._odd()}
        nested = {column.name for column in self.columns if of.is_nested(column.kind)}
        if odd - nested:
            raise DataError(
                "files of the table hold columns in other types than it declares",
                rule="where rows of several files are put together, types are the table's, or narrower: no value can "
                "fail",
                got=", ".join(sorted(odd - nested)[:5]),
                next_step="rewrite the table in its declared types",
            )
        return replace(self, columns=tuple(column for column in self.columns if column.name not in odd))

    def _odd(self) -> Iterator[str]:
        """Return the columns of which a file holds values that may not fit the table's type."""
        import pyarrow.parquet as pq

        for file in self.data:
            schema = pq.read_schema(file.path)
            for column in self.columns:
                inside = file.holds(column, schema)
                if not isinstance(inside, str):
                    continue
                kind = schema.field(inside).type
                if not becomes(kind, column.kind) or (column.numbers and numbers(kind) != column.numbers):
                    yield column.name


def told(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column of the table is handed over.

    >>> import pyarrow as pa
    >>> told(pa.timestamp("ns")), told(pa.string())
    (TimestampType(timestamp[us]), DataType(string))
    """
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def numbers(kind: pa.DataType) -> tuple[bytes, ...]:
    """Return the numbers of all fields within a list, struct or map, in their order.

    >>> import pyarrow as pa
    >>> numbers(pa.list_(pa.field("element", pa.int32(), metadata={"PARQUET:field_id": "7"})))
    (b'7',)
    """
    found: list[bytes] = []
    for place in range(kind.num_fields):
        each = kind.field(place)
        own = (each.metadata or {}).get(b"PARQUET:field_id")
        found += [*([] if own is None else [own]), *numbers(each.type)]
    return tuple(found)


def stream(files: Iterable[DataFile], columns: Iterable[TableColumn]) -> pa.RecordBatchReader:
    """Return a stream of columns of files without their deleted rows; NULL where a file has no such column.

    Guarantee: a row is in the stream exactly if its place in its file is not among those that are deleted.
    Proof: batches come in the order of the file's rows, which their lengths count.
    Assumes: places are counted from the file's first row, as Delta's protocol says of deletion vectors.
    Rounds: nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([pa.field(column.name, column.kind) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for one in files:
            with pq.ParquetFile(one.path, coerce_int96_timestamp_unit="us") as file:
                there = {column: one.holds(column, file.schema_arrow) for column in columns}
                read, first = [inside for inside in there.values() if isinstance(inside, str)], 0
                for batch in file.iter_batches(columns=read or file.schema_arrow.names[:1]):  # one tells how many rows
                    rows, first = _left(batch, first, one.gone), first + batch.num_rows
                    yield pa.record_batch([_column(rows, *each, one) for each in there.items()], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _left(batch: pa.RecordBatch, first: int, gone: NDArray[np.int64]) -> pa.RecordBatch:
    """Return the rows of a batch, the first of which has a place in its file, that were not deleted."""
    import pyarrow as pa

    here = gone[(gone >= first) & (gone < first + batch.num_rows)] - first
    if not here.size:
        return batch
    mask = np.ones(batch.num_rows, np.bool_)
    mask[here] = False
    return batch.filter(pa.array(mask))


def _column(rows: pa.RecordBatch, column: TableColumn, inside: Any, file: DataFile) -> Any:
    """Return a column of rows of a file: as it is named there, or of one value."""
    import pyarrow as pa

    if isinstance(inside, str):
        return _become(rows.column(inside), column.kind)
    value = file.missing.get(column.name) if inside is None else inside
    return pa.nulls(rows.num_rows, column.kind) if value is None else pa.repeat(value, rows.num_rows).cast(column.kind)


def becomes(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether every value of a type is told in another: widened, or as moments, NULL where these are too far.

    >>> import pyarrow as pa
    >>> becomes(pa.int32(), pa.float64()), becomes(pa.int64(), pa.float64()), becomes(pa.string(), pa.int64())
    (True, False, False)
    """
    import pyarrow as pa

    kind = told(kind.value_type if pa.types.is_dictionary(kind) else kind)
    if kind == to or pa.types.is_null(kind) or (is_text(kind) and is_text(to)) or (_is_bytes(kind) and _is_bytes(to)):
        return True
    whole = pa.types.is_signed_integer(kind)
    if (whole and pa.types.is_signed_integer(to)) or (pa.types.is_floating(kind) and pa.types.is_floating(to)):
        return bool(kind.bit_width <= to.bit_width)
    if pa.types.is_timestamp(to):
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))
    if pa.types.is_decimal(to) and (whole or pa.types.is_decimal(kind)):
        digits, scale = (_DIGITS[kind.bit_width], 0) if whole else (kind.precision - kind.scale, kind.scale)
        return bool(to.precision - to.scale >= digits and to.scale >= scale)
    return bool(whole and pa.types.is_float64(to) and _DIGITS[kind.bit_width] <= _EXACT)


def _become(values: Any, kind: pa.DataType) -> Any:
    """Return values in a type that they become.

    Guarantee: no value fails: text that is not UTF-8 is NULL, and so are moments more than 292,000 years from 1970.
    Proof: text is made valid first; numbers are widened; moments are whole numbers of at most 64 bits by a comparison.
    Assumes: `becomes` says that they do.
    Rounds: moments finer than a microsecond, down to it.
    """
    import pyarrow as pa

    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if is_text(values.type):
        batch = valid(pa.record_batch([values], names=["text"]))
        values = batch.column("text")
    if values.type == kind:
        return values
    if pa.types.is_timestamp(kind):
        return moments(values, kind)
    return values.cast(kind, safe=False)


def _is_bytes(kind: pa.DataType) -> bool:
    """Return whether values of a type are bytes of any number."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def local(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of local files; refuse others.

    >>> local(["/a/b", "file:///a/b", "file:/a/c"])
    ('/a/b', '/a/c')
    """
    paths = {address.removeprefix("file://").removeprefix("file:") for address in addresses}
    if any("://" in path for path in paths):
        raise ValueError
    return tuple(sorted(paths))


def shown(path: str | Path) -> str:
    """Return a path as errors say it: without the values of rows that its folders are named for.

    >>> shown("/t/name=Ann/year=2024/part-0.parquet")
    '/t/name=.../year=.../part-0.parquet'
    """
    return re.sub("=[^/]*/", "=.../", str(path))
