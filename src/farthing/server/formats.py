"""The rows of an answer as Arrow, Parquet or CSV, for who asks by `Accept`."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from farthing import tabular
from farthing.client import ARROW
from farthing.query import outward

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

Written: TypeAlias = "tuple[str, Callable[[Mapping[str, Any]], bytes]]"
"""A media type, with what writes it."""


def enclosed(written: Written, told: Mapping[str, Any]) -> dict[str, str]:
    """Return an answer in another format as plain values, for an event: the bytes in base 64."""
    kind, write = written
    return {"type": kind, "content": b64encode(write(told)).decode()}


def wanted(accept: str) -> Written | None:
    """Return the first type of an `Accept` header that is not JSON, with what writes it; None for JSON."""
    for one in accept.split(","):
        kind = one.partition(";")[0].strip().lower()
        if kind in _WRITERS:
            return kind, _WRITERS[kind]
    return None


def _table(told: Mapping[str, Any]) -> pa.Table:
    """Return the rows; what is not a row is in the schema's metadata."""
    import pyarrow as pa

    facts = {name: json.dumps(fact, default=str) for name, fact in told.items() if name != "answers"}
    return pa.Table.from_pylist(told["answers"]).replace_schema_metadata(facts)


def _arrow(told: Mapping[str, Any]) -> bytes:
    """Return the rows as an Arrow stream."""
    import pyarrow as pa

    table, sink = _table(told), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _parquet(told: Mapping[str, Any]) -> bytes:
    """Return the rows as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(_table(told), sink)
    return bytes(sink.getvalue())


def _csv(told: Mapping[str, Any]) -> bytes:
    """Return the rows as CSV, in which no text is a formula of a spreadsheet."""
    return tabular.csv_bytes(_table(told), outward.cell)


_WRITERS: Final[dict[str, Callable[[Mapping[str, Any]], bytes]]] = {
    ARROW: _arrow,
    "application/vnd.apache.parquet": _parquet,
    "text/csv": _csv,
}
