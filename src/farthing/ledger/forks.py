"""Connections of those who read, and what becomes of connections when a process forks.

A connection never crosses a fork: SQLite forgets its file locks there, and two processes would talk over one socket. So
all of them are closed before, and whoever wants one waits until the fork is over: a thread that is inside of SQLite
just then would leave its locks held in the child for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

import sqlalchemy as sa

from farthing.forked import abandon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_IDLE: Final = 4
"""How many connections are kept for the next who read."""

PATIENCE_S: Final = 10.0
"""How long a fork waits for transactions under way; a child that is made within one gets no ledger."""


Refusal = tuple[float, "Callable[[], Exception]"]
"""How long one waits, in seconds, and what is raised then."""


class Rests(Protocol):
    """What has connections that do not cross a fork."""

    def rest(self) -> None:
        """Close connections, and let nobody begin until `wake` or `wake_in_child`."""

    def wake(self) -> None:
        """Go on, in the parent."""

    def wake_in_child(self) -> None:
        """Go on in the child: forget locks that other threads of the parent may hold."""


class Readers:
    """Connections of those who read: one for each at a time, some kept for the next.

    Args:
        connect: opens one.
        admit: refuses to let one begin. Nothing is closed or opened by another thread while it looks.
        refuse: how long one waits for the others, in seconds, and what is raised then.
    """

    def __init__(self, connect: Callable[[], sa.Connection], admit: Callable[[], None], refuse: Refusal) -> None:
        self._connect = connect
        self._admit = admit
        self._refuse = refuse
        self._idle: list[sa.Connection] = []
        self._used: dict[sa.Connection, int] = {}  # and by which thread
        self._gate = threading.Condition(threading.RLock())
        self._resting = False

    @contextmanager
    def one(self) -> Iterator[sa.Connection]:
        """Give a connection; it is kept for the next unless something went wrong with it."""
        wait_s, busy = self._refuse
        gate = self._gate  # another one after a fork
        if not gate.acquire(timeout=min(wait_s, threading.TIMEOUT_MAX)):
            raise busy()
        try:
            self._admit()
            connection = self._idle.pop() if self._idle else self._connect()
            self._used[connection] = threading.get_ident()
        finally:
            gate.release()
        good = False
        try:
            yield connection
            good = not connection.closed and not connection.invalidated
        finally:
            with self._gate:
                if self._used.pop(connection, None) is not None:  # None in a child
                    if good and len(self._idle) < _MOST_IDLE:
                        self._idle.append(connection)
                    else:
                        closed(connection)
                self._gate.notify_all()

    @contextmanager
    def kept_out(self) -> Iterator[None]:
        """Let nobody begin within: for the moment in which something changes that `admit` looks at."""
        with self._gate:
            yield

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._gate:
            while self._idle:
                closed(self._idle.pop())

    def rest(self) -> bool:
        """Wait for those under way, close all, and let nobody begin; return whether nobody will."""
        self._resting = self._gate.acquire(timeout=PATIENCE_S)
        if self._resting:
            mine = threading.get_ident()
            self._gate.wait_for(lambda: all(owner == mine for owner in self._used.values()), PATIENCE_S)
            self.close()
        return self._resting

    def wake(self) -> None:
        """Go on."""
        if self._resting:
            self._resting = False
            self._gate.release()

    def wake_in_child(self) -> bool:
        """Go on in a child, and tell whether all of the parent's connections were closed."""
        clean = self._resting and not self._used
        self._gate, self._resting = threading.Condition(threading.RLock()), False
        for connection in (*self._idle, *self._used):
            abandon(connection)
        self._idle, self._used = [], {}
        return clean


def closed(connection: sa.Connection) -> None:
    """Close a connection; one that was lost needs no closing."""
    with suppress(sa.exc.DBAPIError):
        connection.close()


RESTING: Final[weakref.WeakSet[Rests]] = weakref.WeakSet()
"""All that rests while a process forks."""


def _before_fork() -> None:
    for each in list(RESTING):
        each.rest()


def _in_parent() -> None:
    for each in list(RESTING):
        each.wake()


def _in_child() -> None:
    for each in list(RESTING):
        each.wake_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
