"""What the ends of Parquet files say of their columns: read before anything is asked, and never with a row."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from farthing.engines.reading.version import shown
from farthing.errors import DataError


def require_alike(files: tuple[str, ...]) -> None:
    """Refuse Parquet files that were cut off, or whose columns differ: read as one table, they could fail on a row.

    Guarantee: what is read as a column of one type is of that type in every file, so no value decides between an answer
        and an error.
    Proof: [design, errors are outputs] DuckDB reads all files as the first one says and casts the values of the others,
        which fails on a value that does not fit; here there is nothing to cast.
    Assumes: footers are public, as the schema is; a file whose last row group is whole was not cut off.
    Rounds: nothing.
    """
    first: frozenset[tuple[str, str, str]] | None = None
    for path in files:
        found = footer(path)
        if first is not None and found != first:
            raise DataError(
                "two files of one table have different columns",
                rule="all Parquet files of a table have the same columns, of the same types",
                got=", ".join(sorted({name for name, *_ in found ^ first})[:5]),
                next_step="open them one by one, or write them again with one schema",
            )
        first = found


def footer(path: str) -> frozenset[tuple[str, str, str]]:
    """Return the columns of a Parquet file, with their types; refuse a file without its end or its middle."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = None
    with suppress(pa.ArrowException, OSError):
        about = pq.read_metadata(path)
        if about.num_row_groups and _end(about) > Path(path).stat().st_size - about.serialized_size - 8:
            about = None
    if about is None:
        raise DataError(
            "the table cannot be read",
            rule="a Parquet file is whole: its rows and its footer are there",
            got=shown(path),
            next_step="write the file again, or leave it out of the pattern",
        )
    columns = map(about.schema.column, range(about.num_columns))
    kinds = ((each.path, each.physical_type, str(each.logical_type).partition(", is_from_")[0]) for each in columns)
    return frozenset(kinds)


def packed(path: str) -> frozenset[str]:
    """Return the columns that a Parquet file stores as dictionaries much shorter than themselves.

    An index takes 2 bytes or so and a plain number 8: up to 3 bytes a row, few rows have an entry of their own.

    Guarantee: no value decides between a table that opens and one that does not.
    Proof: only encodings and sizes are read. Statistics hold values: DuckDB's `parquet_metadata` spells the least and
        the greatest of each column, which fails on moments that it has no text for, and on some ends the process.
    Assumes: sizes of columns are public, as footers are; nothing that is answered depends on them.
    Rounds: nothing.
    """
    import pyarrow.parquet as pq

    about = pq.read_metadata(path)
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    found = set()
    for place in range(about.num_columns if groups else 0):
        chunks = [group.column(place) for group in groups]
        short = sum(each.total_uncompressed_size for each in chunks) <= 3 * sum(each.num_values for each in chunks)
        if short and all(any("_DICTIONARY" in kind for kind in each.encodings) for each in chunks):
            found.add(str(chunks[0].path_in_schema))
    return frozenset(found)


def coarse(path: str) -> frozenset[str]:
    """Return the columns of a Parquet file that are times of milliseconds, or hold some.

    DuckDB reads them as microseconds and fails on those that these cannot tell, in rows and in statistics alike.
    """
    import pyarrow.parquet as pq

    about = pq.read_metadata(path)
    leaves = [(each.path, str(each.logical_type)) for each in map(about.schema.column, range(about.num_columns))]
    paths = [path for path, kind in leaves if kind.startswith("Timestamp(") and "timeUnit=milliseconds" in kind]
    names = about.schema.to_arrow_schema().names if paths else []
    if len({name.casefold() for name in names}) < len(names):
        raise DataError(
            "two columns have the same name",
            rule="names differ in more than upper and lower case",
            next_step="rename one of them",
        )
    return frozenset(name for name in names for leaf in paths if leaf == name or leaf.startswith(f"{name}."))


def _end(about: Any) -> int:
    """Return where the last row group of a Parquet file ends, in bytes from its beginning."""
    last = about.row_group(about.num_row_groups - 1)
    chunks = [last.column(place) for place in range(last.num_columns)]
    return max((_start(chunk) + chunk.total_compressed_size for chunk in chunks), default=0)


def _start(chunk: Any) -> int:
    """Return where a column of a row group begins."""
    return int(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
