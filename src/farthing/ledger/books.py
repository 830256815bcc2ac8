"""One durable database: a connection per process, transactions, and failures told as ledger errors.

What differs between SQLite and PostgreSQL is a `Store`. A connection never crosses a fork (SQLite forgets its file
locks there, and two processes would talk over one socket): it is closed before and opened again on both sides. Threads
of one process take turns on its one connection.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal, Protocol

import sqlalchemy as sa

from farthing.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Purpose = Literal["read", "write", "build"]


class Store(Protocol):
    """A database in which books are kept."""

    @property
    def place(self) -> Path | str | None:
        """The file, or the server's URL without its secrets; None for memory."""
        ...

    @property
    def writable(self) -> bool:
        """Whether it may be written."""
        ...

    def connect(self) -> sa.Connection:
        """Open a connection that begins and ends transactions by name."""
        ...

    def begin(self, connection: sa.Connection, purpose: Purpose) -> None:
        """Begin a transaction: "read" sees one state throughout; of those that "write" there is one at a time."""
        ...

    def in_transaction(self, connection: sa.Connection) -> bool:
        """Whether the database is inside a transaction now (it may have rolled back by itself)."""
        ...

    def explain(self, error: sa.exc.DBAPIError) -> LedgerError:
        """Say which rule a failure of the database broke, without any secret."""
        ...


class Books:
    """A database with its one connection.

    Writers are serialised; a commit is durable when it returns.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.RLock()
        self._connection: sa.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        _BOOKS.add(self)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that sees one state of the books throughout."""
        with self._transaction("read") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give the only writer's connection; commit durably at the end, or undo everything on any error."""
        if not self.store.writable:
            raise LedgerError(
                "the ledger was opened for reading", rule="an inspected ledger is not written", next_step="open it"
            )
        with self._transaction("write") as connection:
            yield connection

    @contextmanager
    def building(self) -> Iterator[sa.Connection]:
        """Give the only connection that makes or rebuilds the tables, all of them or none."""
        with self._transaction("build") as connection:
            yield connection

    @contextmanager
    def outside(self) -> Iterator[sa.Connection]:
        """Give the connection outside any transaction, for what a database only does there."""
        with self._lock, self._told():
            yield self._connect()

    def close(self) -> None:
        """Close the connection for good. Closing twice is fine."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    @contextmanager
    def _transaction(self, purpose: Purpose) -> Iterator[sa.Connection]:
        with self._lock, self._told():
            connection = self._connect()
            if self.store.in_transaction(connection):
                raise LedgerError(
                    "the ledger was used from inside its own merge",
                    rule="a merge only combines bytes",
                    next_step="return the bytes and nothing else",
                )
            try:
                self.store.begin(connection, purpose)
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    def _undo(self, connection: sa.Connection) -> None:
        """Roll back what is left of a transaction; give up a connection that cannot even do that."""
        try:
            if not connection.invalidated and self.store.in_transaction(connection):
                connection.exec_driver_sql("ROLLBACK")
        except sa.exc.SQLAlchemyError:
            self._disconnect()
        if connection.invalidated:
            self._disconnect()

    def _connect(self) -> sa.Connection:
        """Return this process's connection, opening it at first use."""
        if self._closed:
            raise LedgerError("the ledger is closed", rule="a closed ledger is not used", next_step="open it again")
        if self._pid != os.getpid():
            self._adopt()
        if self._connection is None:
            self._connection = self.store.connect()
        return self._connection

    def _adopt(self) -> None:
        """Let a forked child connect anew; books in memory, and a connection still in use, stay the parent's."""
        if self.store.place is None or self._connection is not None:
            raise LedgerError(
                "the ledger belongs to the process that forked this one",
                rule="books in memory, and a connection in use, do not cross a fork",
                next_step="give the ledger a file, and start worker processes with spawn",
            )
        self._pid = os.getpid()

    def _disconnect(self) -> None:
        """Close the connection, if there is one; one that was lost needs no closing."""
        if self._connection is not None:
            with suppress(sa.exc.DBAPIError):
                self._connection.close()
            self._connection = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell the database's failures as ledger errors."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            told = self.store.explain(error)
        except sa.exc.NoResultFound:
            told = LedgerError(
                "the ledger is damaged",
                rule="terms and totals have one row each",
                got=self.store.place or "in memory",
                next_step="restore it from a copy; what it had charged stays spent",
            )
        else:
            return
        raise told  # without the driver's error behind it: a traceback must not show a password

    def rest(self) -> None:
        """Close the connection before a fork, unless it is in the middle of a transaction of this very thread."""
        with self._lock:
            connection = self._connection
            if self.store.place is None or connection is None or self._pid != os.getpid():
                return
            if connection.invalidated or not self.store.in_transaction(connection):
                self._disconnect()

    def wake_in_child(self) -> None:
        """Forget a lock that another thread of the parent may hold."""
        self._lock = threading.RLock()


_BOOKS: Final[weakref.WeakSet[Books]] = weakref.WeakSet()


def _before_fork() -> None:
    for books in list(_BOOKS):
        books.rest()


def _in_child() -> None:
    for books in list(_BOOKS):
        books.wake_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
