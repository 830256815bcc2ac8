"""Iceberg tables: the current version, whose rows the embedded engine scans or Iceberg's own library reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.engines.reading.version import Version, local, widens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa


def opened(folder: Path) -> Version:
    """Return the current version of an Iceberg table."""
    from pyiceberg.table import StaticTable

    latest = _latest(folder)
    table = StaticTable.from_metadata(str(latest))
    tasks = list(table.scan().plan_files())
    deletes = local({one.file_path for task in tasks for one in task.delete_files})
    names = tuple(field.name for field in table.schema().fields)

    def stream(columns: tuple[str, ...]) -> pa.RecordBatchReader:
        return table.scan(selected_fields=columns).to_arrow_batch_reader()

    files = local(task.file.file_path for task in tasks)
    plain = len(table.metadata.schemas) == 1 and not deletes
    beside = () if plain else (*deletes, str(latest))  # a column that is renamed changes no other file
    version = Version(files, beside, plain, names, stream, odd=lambda: _odd(version, files))
    return version


def _odd(version: Version, files: Sequence[str]) -> Iterator[str]:
    """Return the columns of files that the library would convert by a cast which fails on some values."""
    import pyarrow.parquet as pq

    table = {_key(field): field for field in version.read(None).schema}
    numbered = any(isinstance(key, bytes) for key in table)
    for file in files:
        for field in pq.read_schema(file):
            key = _key(field)
            if (numbered and not isinstance(key, bytes)) or (key in table and not widens(field.type, table[key].type)):
                yield field.name


def _key(field: pa.Field) -> bytes | str:
    """Return what tells a column: the number that Iceberg gives it, or its name."""
    number: bytes | None = (field.metadata or {}).get(b"PARQUET:field_id")
    return field.name if number is None else number


def _latest(folder: Path) -> Path:
    """Return the newest description of an Iceberg table: files are numbered, 00001-... or v1."""
    found = list((folder / "metadata").glob("*.metadata.json"))
    return max(found, key=lambda file: (int(file.name.partition("-")[0].partition(".")[0].lstrip("v")), file.name))
