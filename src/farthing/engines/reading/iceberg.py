"""Iceberg tables: which files, columns and deleted rows a version has, by Iceberg's own library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.engines.reading.version import DataFile, TableColumn, Version, local, nothing, numbers, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    Deleted = Mapping[str, Mapping[str, NDArray[np.int64]]]


def opened(folder: Path) -> Version:
    """Return the current version of an Iceberg table; its library refuses rows that are deleted by their values."""
    from pyiceberg.table import StaticTable

    latest = _latest(folder)
    table = StaticTable.from_metadata(str(latest))
    tasks = list(table.scan().plan_files())
    deletes = {one.file_path: one for task in tasks for one in task.delete_files}
    deleted = {path: _places(one) for path, one in deletes.items()}
    data, columns = tuple(_file(table, task, deleted) for task in tasks), _columns(table)
    named = _named_alike([file.path for file in data], columns, bool(table.name_mapping()))
    by_files_alone = bool(data) and named and len(table.metadata.schemas) == 1 and not deletes
    beside = () if by_files_alone else (*local(deletes), str(latest))  # a new name of a column changes no other file
    return Version(data, columns, beside, by_files_alone)


def _named_alike(files: Sequence[str], columns: Sequence[TableColumn], mapped: bool) -> bool:
    """Return whether each column has its name and number in every file; ValueError for a file that tells neither.

    Guarantee: files that are read by names alone hold no values of a column that was dropped, or renamed since.
    Proof: a number is given to one column of a table, once, so that the same number under the same name is that column.
    Assumes: footers are public, as the schema is.
    Rounds: nothing.
    """
    import pyarrow.parquet as pq

    alike, wanted = True, {column.name: (column.key, column.numbers) for column in columns}
    for path in files:
        schema = pq.read_schema(path)
        found = {each.name: ((each.metadata or {}).get(b"PARQUET:field_id"), numbers(each.type)) for each in schema}
        if not (mapped or any(number for number, _ in found.values())):
            raise ValueError
        alike = alike and found == wanted
    return alike


def _columns(table: Any) -> tuple[TableColumn, ...]:
    """Return the columns of a table, which files tell by numbers, or by names where they were written without."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema, mapping = table.schema(), table.name_mapping()
    names = {one.field_id: frozenset(one.names) for one in mapping.root} if mapping else {}
    kinds, within = (schema_to_pyarrow(schema, include_field_ids=ids) for ids in (False, True))
    return tuple(
        TableColumn(
            each.name,
            told(kind.type),
            str(each.field_id).encode(),
            names.get(each.field_id, frozenset()),
            numbers(numbered.type),
        )
        for each, kind, numbered in zip(schema.fields, kinds, within, strict=True)
    )


def _places(delete: Any) -> dict[str, NDArray[np.int64]]:
    """Return the places of the rows that a file deletes, by the file that they are of."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyiceberg.manifest import FileFormat
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    path = _path(delete.file_path)
    if delete.file_format == FileFormat.PUFFIN:
        vectors = deletion_vectors_from_puffin_file(PuffinFile(Path(path).read_bytes()))
        return {_path(one.referenced_data_file): np.asarray(one.to_vector(), np.int64) for one in vectors}
    rows = pq.read_table(path, columns=["file_path", "pos"], partitioning=None)
    files = rows.column("file_path")
    return {
        _path(file): np.asarray(rows.filter(pc.equal(files, file)).column("pos"), np.int64)
        for file in pc.unique(files).to_pylist()
    }


def _path(address: str) -> str:
    """Return the path of a local file, however its address is spelled."""
    return local([address])[0]


def _file(table: Any, task: Any, deleted: Deleted) -> DataFile:
    """Return a data file, the values that it may lack, and which of its rows are deleted."""
    path, none = _path(task.file.file_path), nothing()
    gone = [deleted[one.file_path].get(path, none) for one in task.delete_files]
    return DataFile(
        path,
        missing=_missing(table.schema().fields, table.specs()[task.file.spec_id], task.file.partition),
        gone=np.unique(np.concatenate([none, *gone])),
    )


def _missing(fields: Sequence[Any], spec: Any, partition: Any) -> dict[str, pa.Scalar[Any]]:
    """Return the values of columns that a file may lack: those it is a part by, else those that a column began with."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import IdentityTransform

    parts = {
        part.source_id: partition[place]
        for place, part in enumerate(spec.fields)
        if isinstance(part.transform, IdentityTransform)
    }
    found = {}
    for each in fields:
        value = parts.get(each.field_id, each.initial_default)
        kind = told(schema_to_pyarrow(each.field_type, include_field_ids=False))
        if value is not None and not pa.types.is_nested(kind):
            found[each.name] = pa.scalar(getattr(value, "bytes", value), kind)  # a UUID is of bytes
    return found


def _latest(folder: Path) -> Path:
    """Return the newest description of an Iceberg table: files are numbered, 00001-... or v1."""
    found = list((folder / "metadata").glob("*.metadata.json"))
    return max(found, key=lambda file: (int(file.name.partition("-")[0].partition(".")[0].lstrip("v")), file.name))
