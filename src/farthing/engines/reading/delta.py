"""Delta tables: which files and columns a version has, by its own library; and its rows, which are read here.

The library does not read what Spark and Databricks write every day: columns that were renamed (by name and by number),
and rows that deletion vectors leave out. Both are in the log, and the files are Parquet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np

from farthing.engines.reading.version import DataFile, TableColumn, Version, local, nothing, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
        files,
        columns,
        beside=() if by_files_alone else _entry(folder, table.version()),
        plain=by_files_alone and not about.partition_columns and not widened,
        cut=frozenset(gone),
    )


def _needed(table: Any) -> frozenset[str]:
    """Return which features a table needs of its readers; ValueError where one is not read here."""
    protocol = table.protocol()
    named = protocol.reader_features or (["columnMapping"] if protocol.min_reader_version == _MAPPED else [])
    if protocol.min_reader_version > _NAMED or not _READ.issuperset(named):
        raise ValueError
    return frozenset(named)


def _files(
    table: Any, folder: Path, parted: Sequence[str], gone: Mapping[str, NDArray[np.int64]]
) -> tuple[DataFile, ...]:
    """Return the data files of a version."""
    import pyarrow as pa

    adds = pa.table(table.get_add_actions())
    found = []
    for place, name in enumerate(adds.column("path").to_pylist()):
        (path,) = local([_address(folder, name)])
        values = {column: adds.column("partition")[place][column] for column in parted}
        found.append(DataFile(path, values, gone=gone.get(path, nothing())))
    return tuple(found)


def _columns(table: Any, mode: str) -> tuple[TableColumn, ...]:
    """Return the columns of a version, in their order; KeyError for a way of telling them that is not known."""
    import pyarrow as pa

    keys: Mapping[str, Callable[[pa.Field], str | bytes]] = {
        "none": lambda field: field.name,
        "name": lambda field: field.metadata[b"delta.columnMapping.physicalName"].decode(),
        "id": lambda field: field.metadata[b"delta.columnMapping.id"],
    }
    fields = pa.schema(table.schema().to_arrow())
    return tuple(TableColumn(field.name, told(field.type), keys[mode](field)) for field in fields)


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
    return plain if "://" in path or path.startswith("file:/") else str(folder / plain)


def _deleted(table: Any) -> dict[str, NDArray[np.int64]]:
    """Return the places of the rows that deletion vectors leave out, by file."""
    import pyarrow as pa

    vectors = pa.table(table.deletion_vectors().read_all())
    return {
        local([unquote(file.as_py())])[0]: np.flatnonzero(~np.asarray(kept.values, np.bool_))
        for file, kept in zip(vectors.column("filepath"), vectors.column("selection_vector"), strict=True)
    }
