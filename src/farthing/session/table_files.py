"""What an owner does with files before there is a session: propose a reading of a CSV, or write it as Parquet."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from farthing.engines.opening import source_of
from farthing.engines.reading.declared import is_csv
from farthing.engines.reading.guess import guess
from farthing.engines.reading.lines import DAMAGED, damaged
from farthing.engines.reading.source import CsvFiles
from farthing.errors import DataError
from farthing.query.reading import WESTERN, Csv


def proposed(table: str) -> Csv | None:
    """Return how a CSV table seems to be written, for its owner to look at; None for Parquet.

    Raises:
        DataError: the file does not exist, is not whole, has no header, or is named Parquet and is none.
    """
    source = None
    with suppress(DataError):
        source = source_of(table)
    if source is None:  # a header in another encoding is none; what else is wrong is told
        source = source_of(Csv(table, encoding=WESTERN) if is_csv(table) else table)
    if not isinstance(source, CsvFiles):
        return None
    with suppress(*DAMAGED):
        return guess(table, source.files[0])
    raise damaged(table)


def convert(reading: Csv, place: Path) -> None:
    """Write a CSV table as a new Parquet file, in its declared types, for nobody but those who could read the CSV.

    Raises:
        DataError: it cannot be read or written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = source_of(reading)
    schema = source.load(None).schema
    part = place.with_name(f"{place.name}.part")
    try:
        part.touch(mode=0o600)
        with pq.ParquetWriter(part, schema) as writer:
            for batch in source.load(tuple(schema.names)):
                writer.write_batch(batch)
        part.chmod(Path(source.files[0]).stat().st_mode & 0o777)
        os.replace(part, place)  # noqa: PTH105  # one step
        written = True
    except (OSError, EOFError, pa.ArrowException):
        written = False
    if not written:
        part.unlink(missing_ok=True)
        raise DataError(
            "the CSV table cannot be written as Parquet",
            rule="the file can be read to its end, and its folder written",
            got=place,
            next_step="check the disk and the permissions",
        )
