"""A database handle of each process's own: opened when it is used, never touched in a process that was forked.

A forked child has a copy of its parent's handle without the threads that work for it: to close it there, at exit too,
waits for them for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError
from farthing.forked import abandon

if TYPE_CHECKING:
    from collections.abc import Callable


class Own:
    """A handle that is opened again in every process.

    Args:
        opener: opens it.
        close: closes it, in the process that opened it.
        leave: called in a forked child with the parent's handle, which stays as it is.
    """

    def __init__(
        self, opener: Callable[[], Any], close: Callable[[Any], None], leave: Callable[[Any], None] = abandon
    ) -> None:
        self._opener, self._close, self._leave = opener, close, leave
        self._turn = threading.Lock()
        self._held: Any = None
        self._shut = False
        _ALL.add(self)

    def get(self) -> Any:
        """Return the handle."""
        with self._turn:
            if self._shut:
                raise DataError("the table is closed", rule="a closed session asks nothing", next_step="open it again")
            if self._held is None:
                self._held = self._opener()
            return self._held

    def close(self) -> None:
        """Close it for good, and its threads. Closing twice is fine."""
        with self._turn:
            self._shut = True
            if self._held is not None:
                self._close(self._held)
                self._held = None

    def rest(self) -> None:
        """Let nobody open it while the process forks."""
        self._turn.acquire()

    def wake(self) -> None:
        """Go on, in the parent."""
        self._turn.release()

    def wake_in_child(self) -> None:
        """Leave the parent's handle alone, for ever."""
        self._turn = threading.Lock()
        if self._held is not None:
            self._leave(self._held)
            self._held = None


def require_own(opened_by: int) -> None:
    """Refuse a table that belongs to the process that forked this one."""
    if os.getpid() != opened_by:
        raise DataError(
            "the table belongs to the process that forked this one",
            rule="connections, lazy frames and relations do not cross a fork; files and Arrow tables do",
            got=f"opened by process {opened_by}",
            next_step="open the session in the worker, or start workers with spawn",
        )


def busy() -> DataError:
    """Return the error of a table whose connection to DuckDB takes no question now."""
    return DataError(
        "the table's own connection to DuckDB cannot read it now",
        rule="it is open, with the table as it was, no unfinished result and no failed transaction whenever you ask",
        next_step="fetch the result to its end, or roll back; or use connection.cursor() for other work",
    )


_ALL: Final[weakref.WeakSet[Own]] = weakref.WeakSet()
_RESTING: Final[list[Own]] = []


def _before_fork() -> None:
    _RESTING[:] = list(_ALL)
    for each in _RESTING:
        each.rest()


def _in_parent() -> None:
    for each in _RESTING:
        each.wake()
    _RESTING.clear()


def _in_child() -> None:
    for each in _RESTING:
        each.wake_in_child()
    _RESTING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
