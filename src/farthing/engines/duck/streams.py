"""Rows that come as a stream, for questions that read a table more than once: each scan has a stream of its own."""

from __future__ import annotations

import os
from contextlib import nullcontext
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_TURNS: Final[dict[int, Any]] = {}
"""Whose turn it is, by process: a forked child does not wait for a thread of its parent's."""


def turn(*, taken: bool) -> AbstractContextManager[Any]:
    """Return the turn to read streams of connections, which end each other: one question of the process at a time.

    Args:
        taken: whether the question reads such streams; others wait for nobody.
    """
    return _TURNS.setdefault(os.getpid(), RLock()) if taken else nullcontext()


def rescanned(load: Callable[[], Any], *, alone: bool = False) -> Any:
    """Return what a source loads, as something that DuckDB may scan any number of times.

    A stream ends with its first scan: a second one, as of a table that is joined with features of its own rows, would
    find no rows, or those that the first one left.

    Args:
        load: returns the rows, a table or a stream; the same ones each time.
        alone: whether two streams cannot be read side by side, as those of one connection: then all rows are held, as
            they are for DuckDB 1.4, which asks for one stream and reads it at every scan.
    """
    import duckdb
    import pyarrow as pa

    first = load()
    if not isinstance(first, pa.RecordBatchReader):
        return first
    return first.read_all() if alone or duckdb.__version__.startswith("1.4.") else Rescanned(first, load)


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
