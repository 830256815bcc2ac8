"""One version of a Delta or Iceberg table: its files, and its rows as a stream."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.engines.engine import engine_failed
from farthing.engines.reading.text import is_text, valid
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a table.

    Attributes:
        files: absolute paths of its data files, in an order of their own.
        beside: other files that say which rows these are, such as those that delete rows or name columns.
        plain: whether the rows of the files, column by column, are those of the table.
        names: the table's columns.
        stream: returns named columns as an Arrow stream.
        odd: returns the columns that a file holds in a type of which a value may not fit the table's.
        cut: the files from which rows are left out by their places.
    """

    files: tuple[str, ...]
    beside: tuple[str, ...]
    plain: bool
    names: tuple[str, ...]
    stream: Callable[[tuple[str, ...]], pa.RecordBatchReader]
    odd: Callable[[], Iterable[str]]
    cut: frozenset[str] = frozenset()

    def read(self, columns: tuple[str, ...] | None) -> Any:
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

    def require_lossless(self) -> None:
        """Refuse a version that is read by conversions which fail on some values.

        Guarantee: what a question reads is converted only where no value can fail, so none decides between an answer
            and an error.
        Proof: each column of each file has the table's type, or one all of whose values are told in it.
        Assumes: who reads converts what differs, and nothing else; footers are public, as the schema is.
        Rounds: nothing.
        """
        odd = {*self.odd()}
        if odd:
            raise DataError(
                "files of the table hold columns in other types than it declares",
                rule="where rows of several files are put together, types are the table's, or narrower: no value can "
                "fail",
                got=", ".join(sorted(odd)[:5]),
                next_step="rewrite the table in its declared types",
            )


def widens(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether every value of a type is one of another.

    >>> import pyarrow as pa
    >>> widens(pa.int32(), pa.int64()), widens(pa.timestamp("ns"), pa.timestamp("us"))
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


def local(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of local files; refuse others."""
    paths = {address.removeprefix("file://") for address in addresses}
    if any("://" in path for path in paths):
        raise ValueError
    return tuple(sorted(paths))
