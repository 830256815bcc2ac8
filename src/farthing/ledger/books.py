"""One durable SQLite database: a connection per process, transactions, and failures told as ledger errors.

SQLite forgets its file locks across a fork, so a connection never crosses one: it is closed before and opened again on
both sides. Threads of one process take turns on its one connection.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

import sqlalchemy as sa

from farthing.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Mode = Literal["rw", "ro", "immutable"]

# Name of SQLite's error code, what it means here, the rule, the next step.
_FAILURES: Final = (
    ("SQLITE_BUSY", "the ledger is locked", "a writer must be free within the time limit",
     "let the other process finish, or raise timeout_s"),
    ("SQLITE_LOCKED", "the ledger is locked", "a writer must be free within the time limit",
     "let the other process finish, or raise timeout_s"),
    ("SQLITE_NOTADB", "this file is not a ledger", "a ledger is a file that farthing made", "name another file"),
    ("SQLITE_CORRUPT", "the ledger file is damaged or cut off", "every page of a ledger must be there",
     "restore it from a copy; what it had charged stays spent"),
    ("SQLITE_ERROR", "the ledger file is damaged", "every table of a ledger must be there",
     "restore it from a copy; what it had charged stays spent"),
    ("SQLITE_READONLY", "the ledger is read-only", "a charge must be written before noise is drawn",
     "make the file and its folder writable"),
    ("SQLITE_PERM", "the ledger may not be opened", "the file and its folder must be readable and writable",
     "ask its owner for access"),
    ("SQLITE_CANTOPEN", "the ledger cannot be opened", "the file and its folder must be readable and writable",
     "make the file and its folder writable"),
    ("SQLITE_FULL", "the disk is full", "a charge must be written before noise is drawn", "free some space"),
    ("SQLITE_TOOBIG", "the measurement is too large to store", "at most about 1 GB a question", "ask for fewer groups"),
)  # fmt: skip


class Books:
    """A SQLite database, in a file or in memory.

    Writers are serialised by BEGIN IMMEDIATE; a commit is on disk when it returns (WAL, synchronous=FULL).
    """

    def __init__(self, path: Path | None, *, mode: Mode = "rw", timeout_s: float = 30.0) -> None:
        self.path = path
        self.mode: Mode = mode
        self._timeout_s = timeout_s
        self._lock = threading.RLock()
        self._connection: sa.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        _BOOKS.add(self)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that sees one state of the books throughout."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give the only writer's connection; commit durably at the end, or undo everything on any error."""
        if self.mode != "rw":
            raise LedgerError(
                "the ledger was opened for reading", rule="an inspected ledger is not written", next_step="open it"
            )
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def use_write_ahead_log(self) -> None:
        """Let readers go on while one process writes; the file remembers it."""
        with self._lock, self._told():
            self._connect().exec_driver_sql("PRAGMA journal_mode=WAL")

    def close(self) -> None:
        """Close the connection for good. Closing twice is fine."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sa.Connection]:
        with self._lock, self._told():
            connection = self._connect()
            if _in_transaction(connection):
                raise LedgerError(
                    "the ledger was used from inside its own merge",
                    rule="a merge only combines bytes",
                    next_step="return the bytes and nothing else",
                )
            connection.exec_driver_sql(begin)
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                if _in_transaction(connection):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    def _connect(self) -> sa.Connection:
        """Return this process's connection, opening it at first use."""
        if self._closed:
            raise LedgerError("the ledger is closed", rule="a closed ledger is not used", next_step="open it again")
        if self._pid != os.getpid():
            self._adopt()
        if self._connection is None:
            engine = sa.create_engine(
                "sqlite://", creator=self._sqlite, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT"
            )
            self._connection = engine.connect()
        return self._connection

    def _adopt(self) -> None:
        """Let a forked child open the file anew; books in memory, and a connection still in use, stay the parent's."""
        if self.path is None or self._connection is not None:
            raise LedgerError(
                "the ledger belongs to the process that forked this one",
                rule="books in memory, and a connection in use, do not cross a fork",
                next_step="give the ledger a file, and start worker processes with spawn",
            )
        self._pid = os.getpid()

    def _sqlite(self) -> sqlite3.Connection:
        """Open SQLite's own connection, in autocommit: transactions are begun by name."""
        name = ":memory:" if self.path is None else f"{self.path.as_uri()}?{_URI[self.mode]}"
        connection = sqlite3.connect(
            name, timeout=self._timeout_s, uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _disconnect(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell SQLite's failures as ledger errors."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self._explain(error.orig) from error

    def _explain(self, cause: BaseException | None) -> LedgerError:
        """Say which rule a failure of SQLite broke."""
        where = "in memory" if self.path is None else str(self.path)
        code = getattr(cause, "sqlite_errorname", "")
        for prefix, what, rule, next_step in _FAILURES:
            if code.startswith(prefix):
                return LedgerError(what, rule=rule, got=f"{where} ({cause})", next_step=next_step)
        return LedgerError(
            "the ledger failed",
            rule="SQLite must accept every entry",
            got=f"{where} ({cause})",
            next_step="check the disk and the file's permissions; what was reserved stays charged",
        )

    def rest(self) -> None:
        """Close the connection before a fork, unless it is in the middle of a transaction of this very thread."""
        with self._lock:
            if self.path is not None and self._connection is not None and not _in_transaction(self._connection):
                self._disconnect()

    def wake_in_child(self) -> None:
        """Forget a lock that another thread of the parent may hold."""
        self._lock = threading.RLock()


_URI: Final[dict[Mode, str]] = {"rw": "mode=rw", "ro": "mode=ro", "immutable": "mode=ro&immutable=1"}
_BOOKS: Final[weakref.WeakSet[Books]] = weakref.WeakSet()


def _in_transaction(connection: sa.Connection) -> bool:
    """Whether SQLite is inside a transaction now (it may have rolled back by itself)."""
    inner = connection.connection.dbapi_connection
    return isinstance(inner, sqlite3.Connection) and inner.in_transaction


def _before_fork() -> None:
    for books in list(_BOOKS):
        books.rest()


def _in_child() -> None:
    for books in list(_BOOKS):
        books.wake_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
