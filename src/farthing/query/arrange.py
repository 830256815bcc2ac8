"""One order for the keys of a question, and where the keys of one list stand in another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from farthing.plain_arrays import numbers_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


def arrangement(table: pa.Table) -> NDArray[np.int64] | None:
    """Return the rows of a table of distinct keys in their one order, or None if they are in it already.

    The order is that of the columns by name, then of the values, NULL last: the same for the same keys, however they
    were listed.

    >>> import pyarrow as pa
    >>> arrangement(pa.table({"k": ["b", None, "a"]})).tolist()
    [2, 0, 1]
    """
    codes = _codes([_ranks(table.column(name)) for name in sorted(table.column_names)])
    return None if bool((codes[1:] > codes[:-1]).all()) else np.argsort(codes, kind="stable")


def places(stored: pa.Table, wanted: pa.Table) -> NDArray[np.int64] | None:
    """Return where each wanted key stands among distinct stored ones; None when one of them is not there.

    Both tables have the same columns, in any order, and the same types.

    >>> import pyarrow as pa
    >>> places(pa.table({"k": ["a", "b", None]}), pa.table({"k": [None, "a"]})).tolist()
    [2, 0]
    """
    import pyarrow as pa

    names = sorted(stored.column_names)
    if names != sorted(wanted.column_names):
        return None
    stored, wanted = (table.select(names).replace_schema_metadata(None) for table in (stored, wanted))
    if stored.schema != wanted.schema:
        return None
    both = pa.concat_tables([stored, wanted])
    codes = _codes([_ranks(both.column(name)) for name in names])
    has, asked = codes[: len(stored)], codes[len(stored) :]
    order = np.argsort(has, kind="stable")
    found = np.minimum(np.searchsorted(has[order], asked), len(has) - 1)
    at = np.asarray(order[found], np.int64)
    return at if bool((has[at] == asked).all()) else None


def distinct(column: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values of a column, in the order in which they come.

    Numbers that rise, as long lists of keys mostly do, are put into no table of hashes, which is five times as large.

    >>> import pyarrow as pa
    >>> distinct(pa.chunked_array([[1, 2, 5]])).to_pylist(), distinct(pa.chunked_array([[2, 1, 2, None]])).to_pylist()
    ([1, 2, 5], [2, 1, None])
    """
    import pyarrow.compute as pc

    return column.combine_chunks() if _rising(column) else pc.unique(column)


def _rising(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds whole numbers, each larger than the one before, and no NULL."""
    import pyarrow as pa

    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    values = numbers_of(column)
    return bool((values[1:] > values[:-1]).all())


def _ranks(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return each value's place among the distinct values of a column, NULL last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if _rising(column):
        return np.arange(len(column))
    encoded = pc.dictionary_encode(column.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary
    rank = np.empty(len(values) + 1, np.int64)
    rank[numbers_of(pc.sort_indices(values))] = np.arange(len(values))
    rank[-1] = len(values)
    indices = numbers_of(encoded.indices.fill_null(len(values)) if encoded.indices.null_count else encoded.indices)
    return np.asarray(rank[indices], np.int64)


def _codes(ranks: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return one number a row that orders rows as their ranks do, first column first."""
    sizes = [int(rank.max(initial=0)) + 1 for rank in ranks]
    if math.prod(sizes) < 2**62:
        code = np.zeros(len(ranks[0]), np.int64)
        for rank, size in zip(ranks, sizes, strict=True):
            code = code * size + rank
        return code
    _, code = np.unique(np.stack(ranks, axis=1), axis=0, return_inverse=True)
    return np.asarray(code.reshape(-1), np.int64)
