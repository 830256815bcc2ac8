"""Text that is not UTF-8, in Arrow and in Parquet: NULL in its row, and nothing to any other.

DuckDB believes Arrow: a function of such text ends the whole database. Of Parquet it reads nothing more. So Arrow is
looked through before it is handed over, and Parquet is read by pyarrow, which does not mind, where DuckDB gave up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farthing.engines.reading.moments import moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def valid(table: Any) -> Any:
    r"""Return an Arrow table or record batch whose text is UTF-8: what was not is NULL.

    >>> import pyarrow as pa
    >>> odd = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ann", b"b\xff"], pa.binary()).buffers())
    >>> valid(pa.table({"name": odd})).column("name").to_pylist()
    ['ann', None]
    """
    for place, column in enumerate(table.columns):
        if is_text(column.type) and not _fits(column):
            table = table.set_column(place, table.schema.field(place).name, _mended(column))
    return table


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type are text, dictionaries of text among them."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parquet(files: tuple[str, ...], columns: tuple[str, ...]) -> pa.RecordBatchReader:
    """Return a stream of columns of Parquet files, their text made valid; files agree on the columns' types."""
    import pyarrow as pa

    whole = types(files)
    schema = pa.schema([whole.field(column) for column in columns])

    def batches() -> Iterator[pa.RecordBatch]:
        for path in files:
            with _opened(path) as file:
                for batch in file.iter_batches(columns=list(columns)):
                    rows = valid(pa.table({name: _dense(batch.column(name)) for name in columns}))
                    yield from rows.cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def types(files: tuple[str, ...]) -> pa.Schema:
    """Return the columns of Parquet files in the types in which `parquet` hands them over, from the first file.

    They are those in which DuckDB scans them, where pyarrow has such a type: what a question computes must not depend
    on which of the two reads, since one row's text decides that.
    """
    import pyarrow as pa

    with _opened(files[0]) as file:
        return pa.schema([_plain(field) for field in file.schema_arrow])


def _opened(path: str) -> Any:
    """Return a Parquet file whose times of 96 bits are read to the microsecond, as DuckDB does."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


def _plain(field: pa.Field) -> pa.Field:
    """Return a field that may hold NULL, of text where it is a dictionary of text."""
    return field.with_type(_type(field.type)).with_nullable(nullable=True).remove_metadata()


def _type(kind: pa.DataType) -> pa.DataType:
    """Return a type without its dictionary, as DuckDB scans it in Parquet: coarse times to the microsecond."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_timestamp(kind) and kind.unit in {"s", "ms"}:
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.int64()
    return pa.float32() if pa.types.is_float16(kind) else kind


def _dense(column: Any) -> Any:
    """Return a column in the type in which it is handed over; moments that it cannot tell are NULL."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type != _type(column.type):
        return moments(column, _type(column.type))
    return column.cast(_type(column.type)) if column.type != _type(column.type) else column


def _fits(column: Any) -> bool:
    """Return whether all values of a column are what its type says."""
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _mended(column: Any) -> Any:
    """Return a text column with NULL for what is not UTF-8, without its dictionary."""
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    kind = _type(column.type)
    texts = [_texts(_dense(chunk)) for chunk in chunks]
    mended = [pa.array(chunk, kind) for chunk in texts]
    return pa.chunked_array(mended, kind) if isinstance(column, pa.ChunkedArray) else mended[0]


def _texts(chunk: Any) -> list[str | None]:
    """Return the values of a chunk one by one."""
    import pyarrow as pa

    found: list[str | None] = []
    for value in chunk.cast(pa.binary_view() if pa.types.is_string_view(chunk.type) else pa.large_binary()).to_pylist():
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            found.append(None)
    return found
