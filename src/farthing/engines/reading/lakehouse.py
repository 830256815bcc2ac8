"""Delta and Iceberg tables: the version that is current when a table is opened, as the files that make it up.

Their own libraries say which files these are. Where the files are the table as it is, the embedded engine scans them.
Where columns came later, are parts of paths, or rows were deleted, the library reads them, and hands over Arrow.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np

from farthing.engines.engine import engine_failed
from farthing.engines.reading.text import is_text, valid
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    Columns = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table.

    Attributes:
        files: absolute paths of its data files, in an order of their own.
        deletes: those of the files that say which rows were deleted.
        plain: whether the rows of the files, column by column, are those of the table.
        names: the table's columns.
        stream: returns named columns as an Arrow stream.
        held: returns the columns of the files, in the types in which they are read before they become the table's.
        cut: the files from which rows are left out by their places.
    """

    files: tuple[str, ...]
    deletes: tuple[str, ...]
    plain: bool
    names: tuple[str, ...]
    stream: Callable[[tuple[str, ...]], pa.RecordBatchReader]
    held: Callable[[], Iterable[pa.Schema]]
    cut: frozenset[str] = frozenset()

    def read(self, columns: Columns) -> Any:
        """Return columns as an Arrow stream whose text is UTF-8; None: all columns, no rows.

        Guarantee: whatever fails is told without a word of a row.
        Proof: [design, errors are outputs] what a library says of a file is dropped.
        Assumes: the library keeps to the version.
        Rounds: nothing.
        """
        import pyarrow as pa

        reader = None
        with suppress(Exception):  # whatever the library fails with may quote a row
            reader = self.stream(self.names if columns is None else columns)
        if reader is None:
            raise engine_failed()
        if columns is None:
            return reader.schema.empty_table()
        schema = reader.schema

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                yield from valid(pa.Table.from_batches([batch])).cast(schema).to_batches()

        return pa.RecordBatchReader.from_batches(schema, batches())


def require_lossless(version: Version) -> None:
    """Refuse a version that its library reads by conversions which fail on some values, such as times of nanoseconds.

    Guarantee: what a question reads is converted only where no value can fail, so none decides between an answer and
        an error.
    Proof: each column of each file has the table's type, or a narrower one of its kind.
    Assumes: the library converts what differs, and nothing else; footers are public, as the schema is.
    Rounds: nothing.
    """
    table = {_key(field): field for field in version.read(None).schema}
    numbered = any(isinstance(key, bytes) for key in table)
    odd = {
        field.name
        for schema in version.held()
        for field in schema
        if (numbered and not isinstance(_key(field), bytes))
        or (_key(field) in table and not _widens(field.type, table[_key(field)].type))
    }
    if odd:
        raise DataError(
            "files of the table hold columns in other types than it declares",
            rule="where a library puts the rows together, types are the table's, or narrower: no value can fail",
            got=", ".join(sorted(odd)[:5]),
            next_step="rewrite the table in its declared types: times of microseconds in place of nanoseconds",
        )


def _key(field: pa.Field) -> bytes | str:
    """Return what tells a column: the number that Iceberg gives it, or its name."""
    number: bytes | None = (field.metadata or {}).get(b"PARQUET:field_id")
    return field.name if number is None else number


def _widens(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether every value of a type is one of another.

    >>> import pyarrow as pa
    >>> _widens(pa.int32(), pa.int64()), _widens(pa.timestamp("ns"), pa.timestamp("us"))
    (True, False)
    """
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if kind == to or pa.types.is_nested(to) or (is_text(kind) and is_text(to)):
        return True  # nested columns are not read
    whole = pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(to)
    real = pa.types.is_floating(kind) and pa.types.is_floating(to)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(to):
        return bool(kind.unit == to.unit and (kind.tz is None) == (to.tz is None))
    return bool((whole or real) and kind.bit_width <= to.bit_width)


def version_of(folder: Path) -> Version | None:
    """Return the current version of the Delta or Iceberg table in a folder; None where there is neither.

    Raises:
        DataError: its library is missing, or cannot read it.
    """
    if (folder / "_delta_log").is_dir():
        return _opened(folder, "Delta", "deltalake", _delta)
    if any((folder / "metadata").glob("*.metadata.json")):
        return _opened(folder, "Iceberg", "pyiceberg", _iceberg)
    return None


def _opened(folder: Path, kind: str, library: str, of: Callable[[Path], Version]) -> Version:
    """Return the version that a library says, or refuse."""
    if find_spec(library) is None:
        raise DataError(
            f"{kind} tables are read by {library}, which is not installed",
            rule=f"a folder with a {kind} table needs {library}",
            got=folder,
            next_step="pip install 'farthing[lakehouse]'",
        )
    found = None
    with suppress(Exception):  # what the library says may be of any kind
        found = of(folder)
    if found is None or not found.files:
        raise DataError(
            f"the {kind} table cannot be read",
            rule=f"{library} reads its current version, which has a row or more, from local files",
            got=folder,
            next_step=f"see what {library} says of it; of Delta, column mapping and deletion vectors of partitioned "
            "tables are not read",
        )
    _require_listed(found.cut, found.files)
    return found


def _delta(folder: Path) -> Version:
    """Return the current version of a Delta table."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    folder = folder.resolve()  # as its library spells paths
    table = DeltaTable(folder)
    protocol, parted = table.protocol(), bool(table.metadata().partition_columns)
    needed = frozenset(protocol.reader_features or ())
    names = tuple(field.name for field in table.schema().fields)
    files = _local(_address(folder, path) for path in pa.table(table.get_add_actions()).column("path").to_pylist())
    if "deletionVectors" in needed and needed <= _WITH_DELETED and not parted:
        deleted, schema = _deleted(table), pa.schema(table.schema().to_arrow())
        log = folder / "_delta_log" / f"{table.version():020}.json"  # what changes when rows are deleted: no file does
        return Version(
            files, _local([str(log)]), plain=False, names=names,
            stream=lambda columns: _kept(files, deleted, pa.schema([schema.field(name) for name in columns])),
            held=lambda: (_by_name(pq.read_schema(file)) for file in files), cut=frozenset(deleted),
        )  # fmt: skip
    rows = table.to_pyarrow_dataset()
    plain = protocol.min_reader_version == 1 and not parted
    return Version(
        files, (), plain, names,
        stream=lambda columns: rows.scanner(list(columns)).to_reader(),
        held=lambda: (_by_name(fragment.physical_schema) for fragment in rows.get_fragments()),
    )  # fmt: skip


_WITH_DELETED: Final = frozenset({"deletionVectors", "timestampNtz"})
"""The reader features of a Delta table of which deleted rows are left out here; its library reads no vectors so."""


def _address(folder: Path, path: str) -> str:
    """Return the address of a file that a Delta log names: below the folder, or whole; written as in a URI.

    >>> from pathlib import Path
    >>> _address(Path("/a%20b"), "s=x%2520y/one.parquet"), _address(Path("/a"), "file:///b%20c/one.parquet")
    ('/a%20b/s=x%20y/one.parquet', 'file:///b c/one.parquet')
    """
    plain = unquote(path)
    return plain if "://" in path else str(folder / plain)


def _require_listed(cut: frozenset[str], files: Sequence[str]) -> None:
    """Refuse deleted rows of files that the version does not list: they would be counted.

    Raises:
        DataError: a path of one is not, letter by letter, a path of the other.
    """
    odd = sorted(cut.difference(files))
    if odd:
        raise DataError(
            "rows of the Delta table are deleted from a file that it does not list",
            rule="each file from which rows were deleted is one of the files of the version",
            got=odd[0],
            next_step="write the table again without deletion vectors: REORG TABLE ... APPLY (PURGE) in Spark",
        )


def _by_name(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a Delta file, which are told by their names, whatever numbers they have."""
    import pyarrow as pa

    return pa.schema([field.remove_metadata() for field in schema])


def _deleted(table: Any) -> dict[str, NDArray[np.int64]]:
    """Return the places of the rows that deletion vectors leave out, by file."""
    import pyarrow as pa

    vectors = pa.table(table.deletion_vectors().read_all())
    return {
        _local([unquote(file.as_py())])[0]: np.flatnonzero(~np.asarray(kept.values, np.bool_))
        for file, kept in zip(vectors.column("filepath"), vectors.column("selection_vector"), strict=True)
    }


def _kept(files: Sequence[str], deleted: Mapping[str, NDArray[np.int64]], schema: pa.Schema) -> pa.RecordBatchReader:
    """Return a stream of columns of Parquet files without their deleted rows; NULL where a file has no such column.

    Guarantee: a row is in the stream exactly if its place in its file is not among those that are deleted.
    Proof: batches come in the order of the file's rows, which their lengths count.
    Assumes: places are counted from the file's first row, as Delta's protocol says of deletion vectors.
    Rounds: nothing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def batches() -> Iterator[pa.RecordBatch]:
        for path in files:
            gone, first = deleted.get(path, np.zeros(0, np.int64)), 0
            with pq.ParquetFile(path) as file:
                there = file.schema_arrow.names
                read = [name for name in schema.names if name in there] or there[
                    :1
                ]  # one tells how many rows there are
                for batch in file.iter_batches(columns=read):
                    mask = np.ones(batch.num_rows, np.bool_)
                    mask[gone[(gone >= first) & (gone < first + batch.num_rows)] - first] = False
                    first += batch.num_rows
                    rows = valid(pa.Table.from_batches([batch])).filter(pa.array(mask))
                    columns = [
                        rows.column(field.name).cast(field.type) if field.name in read
                        else pa.nulls(rows.num_rows, field.type)
                        for field in schema
                    ]  # fmt: skip
                    yield from pa.table(columns, schema=schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _iceberg(folder: Path) -> Version:
    """Return the current version of an Iceberg table."""
    import pyarrow.parquet as pq
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(_latest(folder)))
    tasks = list(table.scan().plan_files())
    deletes = _local({one.file_path for task in tasks for one in task.delete_files})
    names = tuple(field.name for field in table.schema().fields)

    def stream(columns: tuple[str, ...]) -> pa.RecordBatchReader:
        return table.scan(selected_fields=columns).to_arrow_batch_reader()

    files = _local(task.file.file_path for task in tasks)
    plain = len(table.metadata.schemas) == 1 and not deletes
    return Version(files, deletes, plain, names, stream, held=lambda: map(pq.read_schema, files))


def _latest(folder: Path) -> Path:
    """Return the newest description of an Iceberg table: files are numbered, 00001-... or v1."""
    found = list((folder / "metadata").glob("*.metadata.json"))
    return max(found, key=lambda file: (int(file.name.partition("-")[0].partition(".")[0].lstrip("v")), file.name))


def _local(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of local files; refuse others."""
    paths = {address.removeprefix("file://") for address in addresses}
    if any("://" in path for path in paths):
        raise ValueError
    return tuple(sorted(paths))
