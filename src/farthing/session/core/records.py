"""What the ledger keeps of a question: its public measurements, and the tightest rule they were stopped by.

One Arrow-IPC blob a question: int64 means and informations, one row per group, and a few facts in the schema's
metadata, among them the public keys, so that other questions can be answered from it. It is compressed with zstd, but
where it has many columns of very many groups: noise is what no compression makes much smaller. Everything in it was
released or declared; nothing in it is secret.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.stored_promise import OwnPromises, StoredPromise
from farthing.errors import LedgerError
from farthing.mechanisms.gaussian import Measured
from farthing.plain_arrays import arrow_array, numbers_of
from farthing.query.arrange import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    import pyarrow as pa

    from farthing.query import Query

_FORMAT = b"farthing-record-1"
_KEYS = b"farthing-keys"
_CLAIMS = b"farthing-claims"
_FOUND = b"farthing-found-1"
LEADS = b"farthing-leads"
"""Beside chosen groups: how far each was ahead, in JSON."""

_FACTS = b"farthing-facts"

_BATCH = 1 << 18
"""How many rows of a record are written, and read where they are passed on, at a time."""

_MANY = 1 << 17
"""More groups than so many are not compressed where they have many columns: to write them takes less time."""

_LARGE = 1 << 29
"""More bytes than so many are compressed in any case: a ledger holds no record of twice as many."""

_WHOLE = (np.dtype(np.int8), np.dtype(np.int16), np.dtype(np.int32))
"""The types that whole numbers are written in where they are small enough."""

_NARROW = b"-narrow"
"""What the form of such a record ends with: older versions, which would compute in these types, refuse it."""

_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, MemoryError)
"""What reading bytes that are not ours may raise, beside the errors of Arrow."""


@dataclass(frozen=True, slots=True)
class Record:
    """The public state of a question.

    Attributes:
        measured: means and informations of all groups, in the order of the key list.
        kept: the promise it keeps: the tightest rule so far.
        keys: the fingerprint of the key list, a check that the rows mean what we think.
        listed: the keys themselves, as `keys_to_bytes` writes them; empty where other questions cannot use the cells.
        own: the claims of groups that keep an earlier one; None where there are none.
    """

    measured: Measured
    kept: StoredPromise
    keys: str
    listed: bytes = b""
    own: OwnPromises | None = None

    @classmethod
    def of(cls, query: Query, measured: Measured, kept: StoredPromise, own: OwnPromises | None = None) -> Self:
        """Return the record of a question, arranged."""
        keys = query.keys
        listed = b"" if keys is None or query.cuts_groups else keys_to_bytes(keys.table)
        own = own if own is not None and own.any else None
        return cls(measured, kept, "" if keys is None else keys.fingerprint, listed, own)

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores."""
        import pyarrow as pa

        facts = {"kept": asdict(self.kept), "unit_log2": self.measured.unit_log2, "keys": self.keys}
        columns: dict[str, Any] = {"mean": self.measured.mean, "information": self.measured.information}
        if self.own is not None:
            columns |= {"own_half": self.own.half, "own_beta": self.own.beta}
        metadata = {_FORMAT: json.dumps(facts).encode()} | ({_KEYS: self.listed} if self.listed else {})
        written = pa.table({name: arrow_array(column) for name, column in columns.items()})
        return _written(written.replace_schema_metadata(metadata))

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Return the record in a blob; refuse one that is not ours."""
        table = _read(blob)
        try:
            metadata = table.schema.metadata or {}
            facts = json.loads(metadata[_FORMAT])
            mean, information = (numbers_of(table.column(name)) for name in ("mean", "information"))
            mean, information = (column.astype(np.int64, copy=False) for column in (mean, information))
            measured = Measured(mean, information, int(facts["unit_log2"]))
            own = None
            if "own_half" in table.column_names:
                own = OwnPromises(
                    *(numbers_of(table.column(name)).astype(np.float64) for name in ("own_half", "own_beta"))
                )
            return cls(measured, StoredPromise(**facts["kept"]), facts["keys"], metadata.get(_KEYS, b""), own)
        except _DAMAGED as error:
            problem = error
        raise unreadable(problem)


def listed_of(blob: bytes) -> tuple[int, int, bytes]:
    """Return the groups of a record, the least information of one, and the keys; refuse any other blob.

    It is read batch by batch: no more of it is in memory than one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    groups, least = 0, 1 << 62
    try:
        with pa.ipc.open_stream(blob) as batches:
            metadata = batches.schema.metadata or {}
            json.loads(metadata[_FORMAT])
            for batch in batches:
                batch.validate(full=True)
                groups += batch.num_rows
                least = min(least, pc.min(batch.column("information")).as_py() if batch.num_rows else least)
        return groups, int(least), metadata.get(_KEYS, b"")
    except (*_DAMAGED, pa.ArrowException) as error:
        problem = error
    raise unreadable(problem)


def write_blob(columns: dict[str, Any], metadata: dict[bytes, bytes]) -> bytes:
    """Return a blob of columns, one row per group, with a few facts beside them."""
    import pyarrow as pa

    many = max(map(len, columns.values()), default=0) > _MANY
    held = {name: _narrow(column) for name, column in columns.items()} if many else columns
    if any(held[name] is not columns[name] for name in held):
        metadata = {form + _NARROW: facts for form, facts in metadata.items()}
    written = pa.table(held)
    plain = many and written.nbytes <= _LARGE
    return _written(written.replace_schema_metadata(metadata), compression=None if plain else "zstd")


def _narrow(column: Any) -> Any:
    """Return whole numbers in the least type that holds them all; all else as it is."""
    if isinstance(column, np.ndarray) and column.dtype == np.int64 and column.size:
        least, most = int(column.min()), int(column.max())
        kinds = (kind for kind in _WHOLE if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
        return column.astype(next(kinds, column.dtype), copy=False)
    return column


def _wide(column: Any) -> Any:
    """Return whole numbers as int64 again."""
    return column.astype(np.int64) if column.dtype in _WHOLE else column


def read_blob(blob: bytes, *forms: bytes) -> tuple[dict[str, Any], Any]:
    """Return the columns, as arrays, and the facts of a blob of one of the forms; LedgerError for any other."""
    table = _read(blob)
    try:
        metadata = table.schema.metadata or {}
        held = next((form for form in (*forms, *(form + _NARROW for form in forms)) if form in metadata), forms[0])
        facts = json.loads(metadata[held])
        return {name: _wide(table.column(name).to_numpy()) for name in table.column_names}, facts
    except _DAMAGED as error:
        problem = error
    raise unreadable(problem)


def claims_of(blob: bytes | None) -> tuple[float, ...] | None:
    """Return the chances of a miss of the claims that a question made, in order; None where they were not kept yet."""
    if blob is None:
        return ()
    try:
        facts = json.loads((_read(blob).schema.metadata or {}).get(_CLAIMS, b"null"))
        return None if facts is None else tuple(float(chance) for chance in facts)
    except _DAMAGED as error:
        problem = error
    raise unreadable(problem)


def with_claims(blob: bytes, claims: tuple[float, ...], facts: Mapping[str, Any] | None = None) -> bytes:
    """Return a blob, of any kind of question, with the claims that the question made, and what it was.

    Only its first message, the schema, is another: the batches stay as they were compressed.
    """
    import pyarrow as pa

    said = {_CLAIMS: json.dumps(claims).encode()} | ({_FACTS: json.dumps(facts, default=str).encode()} if facts else {})
    try:
        with pa.BufferReader(blob) as source:
            schema = pa.ipc.read_schema(source)
            rest = memoryview(blob)[source.tell() :]
        return b"".join((schema.with_metadata((schema.metadata or {}) | said).serialize(), rest))
    except (*_DAMAGED, pa.ArrowException) as error:
        problem = error
    raise unreadable(problem)


def facts_of(blob: bytes) -> dict[str, Any]:
    """Return a blob as plain values: what the question was, and its released numbers, as they were measured.

    Of counts and sums that is `value`, with noise, group by group in the order of the arranged keys; of other
    questions the columns as they are kept.
    """
    table = _read(blob)
    try:
        metadata = table.schema.metadata or {}
        facts: dict[str, Any] = json.loads(metadata.get(_FACTS, b"{}"))
    except _DAMAGED as error:
        problem = error
    else:
        return facts | {"released": _released(blob, table)}
    raise unreadable(problem)


def _released(blob: bytes, table: pa.Table) -> dict[str, list[Any]]:
    """Return the released numbers of a blob, by columns; None where nothing was measured."""
    if _FORMAT not in (table.schema.metadata or {}):
        found = {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}
    else:
        measured = Record.from_bytes(blob).measured
        found = {"value": np.where(measured.information > 0, measured.values, np.nan).tolist()}
    return {name: [None if isinstance(one, float) and not math.isfinite(one) else one for one in values]
            for name, values in found.items()}  # fmt: skip


def unreadable(error: Exception) -> LedgerError:
    """Return the error of a blob that is not ours."""
    return LedgerError(
        "a stored measurement cannot be read",
        rule="written by this version or an older one",
        got=type(error).__name__,
        next_step="update farthing, or declare a new data version to start the question from scratch",
    )


def _read(blob: bytes) -> pa.Table:
    """Return the table in a blob; refuse bytes that are none, whatever the reader stumbles over."""
    import pyarrow as pa

    try:
        table = pa.ipc.open_stream(blob).read_all()
        table.validate(full=True)
    except (*_DAMAGED, pa.ArrowException) as error:
        problem = error
    else:
        return table
    raise unreadable(problem)


def keys_to_bytes(table: pa.Table) -> bytes:
    """Return arranged keys as bytes; a cross product as its lists only.

    >>> import pyarrow as pa
    >>> keys = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"]})
    >>> keys_from_bytes(keys_to_bytes(keys)).equals(keys)
    True
    """
    import pyarrow as pa

    table = table.replace_schema_metadata(None)
    lists = {name: distinct(table.column(name)) for name in table.column_names}
    if math.prod(map(len, lists.values())) > table.num_rows:
        return _written(table)
    return _written(
        pa.table(
            {
                name: pa.ListArray.from_arrays(arrow_array(np.array([0, len(values)], np.int32)), values)
                for name, values in lists.items()
            }
        )
    )


def write_keys(table: pa.Table) -> bytes:
    """Return keys that were found privately as a blob, with their leads; there may be none."""
    return _written(table.replace_schema_metadata({_FOUND: b"1"} | _leads(table)))


def read_keys(blob: bytes) -> pa.Table:
    """Return keys that were found privately."""
    table = _read(blob)
    if _FOUND not in (table.schema.metadata or {}):
        raise unreadable(KeyError())
    return table.replace_schema_metadata(_leads(table) or None)


def _leads(table: pa.Table) -> dict[bytes, bytes]:
    """Return the leads beside chosen groups."""
    return {name: value for name, value in (table.schema.metadata or {}).items() if name == LEADS}


def keys_from_bytes(blob: bytes) -> pa.Table:
    """Return the keys that `keys_to_bytes` wrote, in their order."""
    import pyarrow as pa

    table = _read(blob)
    if not all(pa.types.is_list(kind) for kind in table.schema.types):
        return table
    lists = {name: table.column(name).combine_chunks().flatten() for name in table.column_names}
    if len(lists) == 1:
        return pa.table(lists)
    places = np.unravel_index(np.arange(math.prod(map(len, lists.values()))), [len(given) for given in lists.values()])
    return pa.table(
        {name: given.take(arrow_array(at)) for (name, given), at in zip(lists.items(), places, strict=True)}
    )


def _written(table: pa.Table, compression: str | None = "zstd") -> bytes:
    """Return a table as a stream, compressed."""
    return _streamed(table.schema, table.to_batches(_BATCH), compression)


def _streamed(schema: pa.Schema, batches: Iterable[pa.RecordBatch], compression: str | None) -> bytes:
    """Return batches as a stream: no more of them in memory than one."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
