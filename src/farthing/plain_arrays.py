"""Arrow arrays of plain values, made and read through their buffers.

pyarrow's own ways ask whether a value belongs to pandas, and import pandas for that where it is installed: a third of a
second in each process. What is not plain goes those ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

_KINDS: Final = "iuf"
_LARGEST: Final = 1 << 63
_MOST_TEXTS: Final = 100_000  # many more might not fit into one chunk


def arrow_array(values: Any) -> pa.Array:
    """Return any list of values as an Arrow array, exactly as `pyarrow.array` does.

    >>> arrow_array(["a", None]).type, arrow_array(range(2)).type, arrow_array([1.5]).to_pylist()
    (DataType(string), DataType(int64), [1.5])
    """
    import pyarrow as pa

    if isinstance(values, range):
        values = np.arange(values.start, values.stop, values.step)
    if isinstance(values, list | tuple) and values:
        kinds = {type(value) for value in values}
        if kinds <= {str, type(None)} and str in kinds and len(values) <= _MOST_TEXTS:
            return _texts(values)
        if (kinds == {int} and min(values) >= -_LARGEST and max(values) < _LARGEST) or kinds == {float}:
            values = np.array(values, np.int64 if kinds == {int} else np.float64)
    if type(values) is not np.ndarray or values.ndim != 1 or not _plain(values):
        return pa.array(values)
    kept = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), [None, pa.py_buffer(kept)])


def numbers_of(column: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers without NULL as they lie in memory; a column of truths as 0 and 1.

    >>> import pyarrow as pa
    >>> numbers_of(pa.array([7, 8, 9]).slice(1)).tolist(), numbers_of(pa.array([True, False])).tolist()
    ([8, 9], [1, 0])
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # more than one chunk can hold
        return np.asarray(column.to_numpy())
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    kind = np.dtype(column.type.to_pandas_dtype()) if pa.types.is_primitive(column.type) else None
    if kind is None or kind.kind not in _KINDS or column.null_count:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    held = column.buffers()[1]
    return np.zeros(0, kind) if held is None else np.frombuffer(held, kind, len(column), column.offset * kind.itemsize)


def _plain(values: NDArray[Any]) -> bool:
    """Return whether an Arrow array of the same type lies in memory as this one does."""
    return (
        values.dtype.kind in _KINDS and values.dtype.isnative and 1 <= values.dtype.itemsize <= np.dtype("i8").itemsize
    )


def _texts(values: Sequence[str | None]) -> pa.Array:
    """Return texts, of which some may be None, as an Arrow array."""
    import pyarrow as pa

    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()
