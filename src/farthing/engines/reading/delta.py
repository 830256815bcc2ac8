"""Delta tables: which files and columns a version has, by its own library; and its rows, which are read here.

The library does not read what Spark and Databricks write every day: columns that were renamed (by name and by number),
and rows that deletion vectors leave out. Both are in the log, and the files are Parquet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np

from farthing.engines.reading.text import is_text, valid
from farthing.engines.reading.version import Version, local, widens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

_READ: Final = frozenset({
    *("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview", "v2Checkpoint"),
    *("vacuumProtocolCheck", "variantType", "variantType-preview"),
})  # fmt: skip
"""What a table may need of its readers: done here, done by the library when it reads the log, or about no rows."""

_MAPPED: Final = 2
_NAMED: Final = 3
"""Versions of the protocol for readers: the one that maps columns, and the one that names each feature."""

_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 19}
"""Digits of the whole numbers of so many bits."""

_EXACT: Final = 15
"""Digits of which every number is a double."""

_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY: Final = 86_400_000_000
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class _File:
    """A data file.

    Attributes:
        path: where it is.
        values: the values of the columns that are parts of its path, by name.
        gone: the places of its rows that were deleted.
    """

    path: str
    values: Mapping[str, pa.Scalar[Any]]
    gone: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table.

    Attributes:
        name: its name in the table.
        kind: its type, in which it is handed over.
        key: what tells it in a file: a name, or a number where the table goes by these.
    """

    name: str
    kind: pa.DataType
    key: str | bytes


def opened(folder: Path) -> Version:
    """Return the current version of a Delta table; ValueError where it needs what is not read here."""
    from deltalake import DeltaTable

    folder = folder.resolve()  # as its library spells paths
    table = DeltaTable(folder)
    about, needed = table.metadata(), _needed(table)
    mode = about.configuration.get("delta.columnMapping.mode", "none") if "columnMapping" in needed else "none"
    gone = _deleted(table) if "deletionVectors" in needed else {}
    files, columns = _files(table, folder, about.partition_columns, gone), _columns(table, mode)
    by_files_alone = bool(files) and mode == "none" and not gone
    widened = any(name.startswith("typeWidening") for name in needed)
    return Version(
        files=local(file.path for file in files),
        beside=() if by_files_alone else _entry(folder, table.version()),
        plain=by_files_alone and not about.partition_columns and not widened,
        names=tuple(columns),
        stream=lambda names: _rows(files, [columns[name] for name in names]),
        odd=lambda: _odd(files, tuple(columns.values())),
        cut=frozenset(gone),
    )


def _needed(table: Any) -> frozenset[str]:
    """Return which features a table needs of its readers; ValueError where one is not read here."""
    protocol = table.protocol()
    named = protocol.reader_features or (["columnMapping"] if protocol.min_reader_version == _MAPPED else [])
    if protocol.min_reader_version > _NAMED or not _READ.issuperset(named):
        raise ValueError
    return frozenset(named)


def _files(table: Any, folder: Path, parted: Sequence[str], gone: Mapping[str, NDArray[np.int64]]) -> list[_File]:
    """Return the data files of a version."""
    import pyarrow as pa

    adds, none = pa.table(table.get_add_actions()), np.zeros(0, np.int64)
    found = []
    for place, name in enumerate(adds.column("path").to_pylist()):
        (path,) = local([_address(folder, name)])
        values = {column: adds.column("partition")[place][column] for column in parted}
        found.append(_File(path, values, gone.get(path, none)))
    return found


def _columns(table: Any, mode: str) -> dict[str, _Column]:
    """Return the columns of a version, by name; KeyError for a way of telling them that is not known."""
    import pyarrow as pa

    keys: Mapping[str, Callable[[pa.Field], str | bytes]] = {
        "none": lambda field: field.name,
        "name": lambda field: field.metadata[b"delta.columnMapping.physicalName"].decode(),
        "id": lambda field: field.metadata[b"delta.columnMapping.id"],
    }
    found = {}
    for field in pa.schema(table.schema().to_arrow()):
        kind = pa.list_(pa.bool_()) if pa.types.is_nested(field.type) else field.type  # of these only whether they are
        found[field.name] = _Column(field.name, kind, keys[mode](field))
    return found


def _entry(folder: Path, version: int) -> tuple[str, ...]:
    """Return the entry of a version in the log: what tells it apart where no data file does."""
    found = sorted(map(str, (folder / "_delta_log").glob(f"{version:020}.*")))
    return tuple(path for path in found if path.endswith(".json"))[:1] or tuple(found[:1])


def _address(folder: Path, path: str) -> str:
    """Return the address of a file that a Delta log names: below the folder, or whole; written as in a URI.

    >>> from pathlib import Path
    >>> _address(Path("/a%20b"), "s=x%2520y/one.parquet"), _address(Path("/a"), "file:///b%20c/one.parquet")
    ('/a%20b/s=x%20y/one.parquet', 'file:///b c/one.parquet')
    """
    plain = unquote(path)
    return plain if "://" in path else str(folder / plain)


def _deleted(table: Any) -> dict[str, NDArray[np.int64]]:
    """Return the places of the rows that deletion vectors leave out, by file."""
    import pyarrow as pa

    vectors = pa.table(table.deletion_vectors().read_all())
    return {
        local([unquote(file.as_py())])[0]: np.flatnonzero(~np.asarray(kept.values, np.bool_))
        for file, kept in zip(vectors.column("filepath"), vectors.column("selection_vector"), strict=True)
    }


def _odd(files: Sequence[_File], columns: Sequence[_Column]) -> Iterator[str]:
    """Return the columns of which a file holds values that may not fit the table's type."""
    import pyarrow.parquet as pq

    for file in files:
        schema = pq.read_schema(file.path)
        there = _there(schema, columns)
        for column in columns:
            inside = None if column.name in file.values else there.get(column.name)
            if inside is not None and not _becomes(schema.field(inside).type, column.kind):
                yield column.name


def _there(schema: pa.Schema, columns: Sequence[_Column]) -> dict[str, str]:
    """Return what the columns that a file has are named there, by their names in the table."""
    numbers = {(field.metadata or {}).get(b"PARQUET:field_id"): field.name for field in schema}
    names = {name: name for name in schema.names}
    found = {column.name: (names | numbers).get(column.key) for column in columns}
    return {name: inside for name, inside in found.items() if inside is not None}


def _rows(files: Sequence[_File], columns: Sequence[_Column]) -> pa.RecordBatchReader:
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
                there, first = _there(file.schema_arrow, columns), 0
                read = [there[name] for name in schema.names if name in there and name not in one.values]
                for batch in file.iter_batches(columns=read or file.schema_arrow.names[:1]):  # one tells how many rows
                    rows, first = _left(batch, first, one.gone), first + batch.num_rows
                    yield _told(rows, there, one, columns, schema)

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


def _told(
    rows: pa.RecordBatch, there: Mapping[str, str], one: _File, columns: Sequence[_Column], schema: pa.Schema
) -> pa.RecordBatch:
    """Return rows of a file as rows of the table."""
    import pyarrow as pa

    made = []
    for column in columns:
        if column.name in one.values:
            made.append(pa.repeat(one.values[column.name], rows.num_rows).cast(column.kind))
        elif column.name in there:
            made.append(_become(rows.column(there[column.name]), column.kind))
        else:
            made.append(pa.nulls(rows.num_rows, column.kind))
    return pa.record_batch(made, schema=schema)


def _becomes(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether every value of a type is told in another: widened, or as moments, NULL where these are too far.

    >>> import pyarrow as pa
    >>> _becomes(pa.int32(), pa.float64()), _becomes(pa.int64(), pa.float64()), _becomes(pa.string(), pa.int64())
    (True, False, False)
    """
    import pyarrow as pa

    if pa.types.is_nested(kind) != pa.types.is_nested(to):
        return False
    if widens(kind, to) or pa.types.is_null(kind):
        return True
    if pa.types.is_timestamp(to):
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))
    if pa.types.is_decimal(to) and (pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind)):
        whole = _DIGITS[kind.bit_width] if pa.types.is_signed_integer(kind) else kind.precision - kind.scale
        scale = 0 if pa.types.is_signed_integer(kind) else kind.scale
        return bool(to.precision - to.scale >= whole and to.scale >= scale)
    return bool(pa.types.is_float64(to) and pa.types.is_signed_integer(kind) and _DIGITS[kind.bit_width] <= _EXACT)


def _become(values: Any, kind: pa.DataType) -> Any:
    """Return values in a type that they become.

    Guarantee: no value fails: text that is not UTF-8 is NULL, and so are moments more than 292,000 years from 1970.
    Proof: text is made valid first; numbers are widened; moments are whole numbers of at most 64 bits by a comparison.
    Assumes: `_becomes` says that they do.
    Rounds: moments finer than a microsecond, down to it.
    """
    import pyarrow as pa

    if pa.types.is_nested(kind):
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(len(values) + 1, np.int32)), pa.array([], pa.bool_()), mask=values.is_null()
        )
    if is_text(values.type):
        batch = valid(pa.record_batch([values], names=["text"]))
        values = batch.column("text")
    if values.type == kind:
        return values
    if pa.types.is_timestamp(kind):
        return _moments(values).cast(kind)
    return values.cast(kind, safe=False)


def _moments(values: Any) -> Any:
    """Return days or times of any unit as times of microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pa.types.is_date32(values.type)
    ticks = values.cast(pa.int32()).cast(pa.int64()) if days else values.cast(pa.int64())
    if not days and values.type.unit == "ns":
        micros = pa.array(np.asarray(ticks.fill_null(0)) // 1000, pa.int64(), mask=np.asarray(ticks.is_null()))
    else:
        each = _DAY if days else _MICROS[values.type.unit]
        near = pc.and_(pc.less_equal(ticks, _MOST // each), pc.greater_equal(ticks, -(_MOST // each)))
        micros = pc.multiply(pc.if_else(near, ticks, None), each)
    return micros.cast(pa.timestamp("us"))
