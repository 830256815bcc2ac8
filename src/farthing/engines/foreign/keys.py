"""The listed keys as a table of the backend, and the place of each row's key among them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.foreign.backend import Backend
    from farthing.query.keys import Keys

KEYS: Final = "farthing_keys"


def listed(query: BoundedQuery) -> dict[str, pa.Table]:
    """Return the table of a question's keys by its name, if it has any."""
    return {} if query.keys is None else {KEYS: numbered(query.keys)}


def numbered(keys: Keys) -> pa.Table:
    """Return the table of (i, k0, k1, ...); where NULL is listed, f0, f1, ... tell NULLs.

    Joins compare NULLs in ways that differ between backends, so a stand-in beside a flag is compared instead. Whole
    numbers beyond 64 bits with sign travel as texts, and so are they compared: not every backend has such numbers.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: dict[str, Any] = {"i": pa.array(np.arange(len(keys), dtype=np.int64))}
    for place, name in enumerate(keys.names):
        values = keys.column(name)
        if pa.types.is_large_string(values.type) or pa.types.is_uint64(values.type):
            values = values.cast(pa.string())
        if values.null_count:
            columns[f"f{place}"] = values.is_null()
            values = pc.fill_null(values, pa.scalar(_stand_in(values.type), values.type))
        columns[f"k{place}"] = values
    return pa.table(columns)


def with_places(query: BoundedQuery, backend: Backend, rows: Any, keys: Sequence[str]) -> Any:
    """Return rows with the place i of their group instead of its keys; others are dropped."""
    import ibis

    if query.keys is None:
        rest = [name for name in rows.columns if name not in keys]
        return rows.select(*rest, i=ibis.literal(0).cast("int64"))
    return met(backend, rows, keys, backend.beside(numbered(query.keys), KEYS))


def met(backend: Backend, rows: Any, keys: Sequence[str], table: Any, place_name: str = "i") -> Any:
    """Return rows with the place of their values in a table of `numbered`, instead of these; others are dropped."""
    import ibis

    rest = [name for name in rows.columns if name not in keys]
    tests = []
    spelled = [
        name for at, name in enumerate(keys) if rows[name].type().is_integer() and table[f"k{at}"].type().is_string()
    ]
    rows = rows.mutate(**{name: rows[name].cast("string") for name in spelled}) if spelled else rows
    flagged = {}
    for place, name in enumerate(keys):
        value = rows[name]
        if f"f{place}" in table.columns:
            flagged[f"f{place}"] = backend.is_null(value)
            stand_in = _stand_in(value.type())
            sent = backend.moment(stand_in) if value.type().is_temporal() else stand_in
            flagged[name] = ibis.ifelse(backend.is_null(value), sent, value)
    rows = rows.mutate(**flagged) if flagged else rows
    for place, name in enumerate(keys):
        tests.append(rows[name] == table[f"k{place}"])
        if f"f{place}" in flagged:
            tests.append(rows[f"f{place}"] == table[f"f{place}"])
    return rows.join(table, tests).select(*(rows[name] for name in rest), table["i"].name(place_name))


def portable(table: pa.Table) -> pa.Table:
    """Return Arrow rows in the types that every backend takes; columns of other types are left out."""
    import pyarrow as pa
    import pyarrow.types as t

    kinds = (
        (t.is_boolean, pa.bool_()),
        (t.is_integer, pa.int64()),
        (t.is_floating, pa.float64()),
        (t.is_decimal, pa.float64()),
        (t.is_date, pa.date32()),
        (t.is_timestamp, pa.timestamp("us")),
        (lambda kind: t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind), pa.string()),
    )
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.cast(column.type.value_type) if t.is_dictionary(column.type) else column
        kind = next((one for test, one in kinds if test(values.type)), None)
        if kind is not None:
            columns[name] = values.cast(kind, safe=kind == pa.int64())
    return pa.table(columns)


def _stand_in(kind: Any) -> Any:
    """Return a value of an Arrow or ibis type."""
    text = str(kind)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001  # no zones
    values = (("timestamp", epoch), ("date", epoch.date()), ("string", ""), ("bool", False))
    return next((value for word, value in values if text.startswith(word)), 0)
