"""Linear algebra in one thread, where there are many small products: threads would mostly wait for one another."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = Lock()
_HELD: list[Any] = []  # for each block that is open, the limits that stand: the first one's


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy's linear algebra take one thread in a block, and as many as before once no block is open.

    The number is the whole process's: blocks of several threads at once share it, and the last one out restores it.
    """
    from threadpoolctl import threadpool_limits

    with _LOCK:
        _HELD.append(_HELD[0] if _HELD else threadpool_limits(1, "blas"))
    try:
        yield
    finally:
        with _LOCK:
            limits = _HELD.pop()
            if not _HELD:
                limits.restore_original_limits()
