"""Rows that come as a stream, for questions that read a table more than once: each scan has a stream of its own."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def rescanned(load: Callable[[], Any], *, alone: bool = False) -> Any:
    """Return what a source loads, as something that DuckDB may scan any number of times.

    A stream ends with its first scan: a second one, as of a table that is joined with features of its own rows, would
    find no rows, or those that the first one left.

    Args:
        load: returns the rows, a table or a stream; the same ones each time.
        alone: whether two streams cannot be read side by side, as those of one connection: then all rows are held.
    """
    import pyarrow as pa

    first = load()
    if not isinstance(first, pa.RecordBatchReader):
        return first
    return first.read_all() if alone else Rescanned(first, load)


class Rescanned:
    """A stream of rows that begins again for each scan, as Arrow's C interface has it."""

    def __init__(self, first: Any, load: Callable[[], Any]) -> None:
        self._schema, self._first, self._load, self._lock = first.schema, [first], load, Lock()

    def __arrow_c_schema__(self) -> object:
        """Return the columns."""
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a stream of all rows."""
        with self._lock:
            stream = self._first.pop() if self._first else self._load()
        return stream.__arrow_c_stream__(requested_schema)
