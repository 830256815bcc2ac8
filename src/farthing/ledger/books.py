"""One durable database: a connection per process, transactions, and failures told as ledger errors.

What differs between SQLite and PostgreSQL is a `Store`. A connection never crosses a fork (SQLite forgets its file
locks there, and two processes would talk over one socket): it is closed before and opened again on both sides. Threads
of one process take turns on its one connection; what several of them want to write at a time goes into one transaction,
which waits for the disk once.
"""

from __future__ import annotations

import copy
import os
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeVar

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger.rows import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from farthing.ledger.chain import Totals

Purpose = Literal["read", "write", "build"]

T = TypeVar("T")

_GATHER_S: Final = 0.002
"""How long at most a thread waits for others to write with it, where several did so last time."""


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

    @property
    def timeout_s(self) -> float:
        """How long to wait for another writer, or for an answer."""
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

    def note(self, identity: str, totals: Totals, *, sync: bool) -> None:
        """Note beside the database how far it has come, once that is on disk, where it has a witness."""
        ...


class _Outcome:
    """What became of some work: a value, or an error that is raised later, by the thread whose work it was."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Keep an error; interrupts go on."""
        if isinstance(error, Exception):
            self.error = error
            return True
        return False

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class _Job:
    """What one thread wants to write, and what became of it once it is done."""

    def __init__(self, work: Callable[[sa.Connection], Any]) -> None:
        self.work = work
        self.alone = False
        self.outcome: _Outcome | None = None


class Books:
    """A database with its one connection.

    Writers are serialised; a commit is durable when it returns.

    Attributes:
        store: the database.
        identity: which ledger it holds, once that is known; its witness is kept from then on.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.identity = ""
        self._lock = threading.RLock()
        self._jobs: list[_Job] = []
        self._leaving = threading.Condition()
        self._led = False  # whether a thread writes for all just now
        self._crowd, self._took_s = 1, 0.0  # how many wrote in the last transaction, and how long that took
        self._owner: int | None = None  # the thread that is inside a transaction
        self._connection: sa.Connection | None = None
        self._pid = os.getpid()
        self._closed = False
        _BOOKS.add(self)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that sees one state of the books throughout."""
        with self._transaction("read") as connection:
            yield connection

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run work as the only writer, durably: all of it or nothing; what other threads want, too, in one commit.

        Work may be run again when a transaction of several is undone, and by another thread: it is a function of the
        connection and of nothing that it changes.
        """
        self._require_writable()
        self._refuse_nested()
        job = _Job(work)
        self._await(job)
        assert job.outcome is not None  # noqa: S101  for the type checker: it was awaited
        value: T = job.outcome.result()
        return value

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give the only writer's connection; commit durably at the end, or undo everything on any error."""
        self._require_writable()
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
        with self._turn(), self._told():
            yield self._connect()

    def close(self) -> None:
        """Close the connection for good. Closing twice is fine."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until no other thread of this process uses the connection; no longer than for another process."""
        if not self._lock.acquire(timeout=min(self.store.timeout_s, threading.TIMEOUT_MAX)):
            raise self._busy()
        try:
            yield
        finally:
            self._lock.release()

    def _busy(self) -> LedgerError:
        """Return the error of a thread that waited too long for the others."""
        return LedgerError(
            "the ledger is busy: another thread of this process waits for its answer",
            rule="its connection must be free within the time limit",
            got=self.store.place or "in memory",
            next_step="see that disk or server answer, then ask again; what was under way may stay charged",
        )

    def _await(self, job: _Job) -> None:
        """Wait until a job is done: by the thread that writes for all who wait, or as that thread."""
        until = time.monotonic() + self.store.timeout_s
        with self._leaving:
            self._jobs.append(job)
        try:
            while job.outcome is None:
                with self._leaving:
                    if self._led and job.outcome is None and not self._leaving.wait(_left(until)):
                        raise self._busy()
                    if self._led or job.outcome is not None:
                        continue
                    self._led = True
                self._lead(job)
        finally:
            with self._leaving, suppress(ValueError):
                self._jobs.remove(job)

    def _lead(self, job: _Job) -> None:
        """Write for all who wait, then let another thread do so."""
        try:
            with self._turn():
                self._gather()
                began = time.monotonic()
                self._write_all(job)
                self._took_s = time.monotonic() - began
        finally:
            with self._leaving:
                self._led = False
                self._leaving.notify_all()

    def _write_all(self, own: _Job) -> None:
        """Write what all threads want that wait now; where that fails, each writes its own."""
        jobs = [job for job in self._jobs if job.outcome is None and not job.alone]
        self._crowd = len(jobs)
        if own in jobs and len(jobs) > 1 and self._together(jobs):
            return
        outcome = _Outcome()
        with outcome, self._transaction("write") as connection:
            outcome.value = own.work(connection)
        own.outcome = outcome

    def _gather(self) -> None:
        """Wait a moment for the threads that came last time, too: no more than a part of what the disk takes."""
        until = time.monotonic() + min(_GATHER_S, self._took_s / 4)
        while sum(job.outcome is None for job in self._jobs) < self._crowd and time.monotonic() < until:
            time.sleep(_GATHER_S / 20)

    def _together(self, jobs: list[_Job]) -> bool:
        """Write several jobs in one transaction; return whether it came to its commit. If not, nothing was written."""
        found: list[_Outcome] = []
        whole = _Outcome()
        with whole, self._transaction("write") as connection:
            found.extend(_within(connection, job) for job in jobs)
        if whole.error is not None and len(found) < len(jobs):
            for job in jobs:
                job.alone = True
            return False
        for job, outcome in zip(jobs, found, strict=True):
            if whole.error is not None:  # the commit or the witness failed: for all of them
                outcome.error = copy.copy(whole.error)
            job.outcome = outcome
        return True

    def _require_writable(self) -> None:
        """Refuse to write what was opened to look at."""
        if not self.store.writable:
            raise LedgerError(
                "the ledger was opened for reading", rule="an inspected ledger is not written", next_step="open it"
            )

    def _refuse_nested(self) -> None:
        """Refuse work from inside of work."""
        if self._owner == threading.get_ident():
            raise LedgerError(
                "the ledger was used from inside its own merge",
                rule="a merge only combines bytes",
                next_step="return the bytes and nothing else",
            )

    @contextmanager
    def _transaction(self, purpose: Purpose) -> Iterator[sa.Connection]:
        self._refuse_nested()
        with self._turn(), self._told():
            connection = self._connect()
            connection.info.pop(ADVANCED, None)
            self._owner = threading.get_ident()
            try:
                self.store.begin(connection, purpose)
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._undo(connection)
                raise
            finally:
                self._owner = None
            advanced = connection.info.pop(ADVANCED, None)
            if advanced is not None and self.identity:
                self.store.note(self.identity, advanced.totals, sync=advanced.sync)

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
        except MemoryError:
            told = LedgerError(
                "memory ran out while the ledger was used",
                rule="what was reserved stays charged",
                got=self.store.place or "in memory",
                next_step="free some memory, or ask for fewer groups",
            )
        except (sa.exc.SQLAlchemyError, UnicodeError, OverflowError) as error:
            told = LedgerError(
                "the ledger failed",
                rule="the database gives back what was written into it",
                got=f"{self.store.place or 'in memory'} ({type(error).__name__})",
                next_step="run `farthing verify`; what was reserved stays charged",
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
        """Forget a lock that another thread of the parent may hold, and what its threads wanted to write."""
        self._lock, self._leaving = threading.RLock(), threading.Condition()
        self._jobs, self._led, self._owner = [], False, None


def _left(until: float) -> float:
    """Return how many seconds are left, as far as a thread may wait at all."""
    return min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)


def _within(connection: sa.Connection, job: _Job) -> _Outcome:
    """Run one job of a transaction of several; a refusal undoes that job alone, a failure of the database all."""
    connection.exec_driver_sql("SAVEPOINT job")
    before = connection.info.get(ADVANCED)
    outcome = _Outcome()
    with outcome:
        outcome.value = job.work(connection)
    if isinstance(outcome.error, (sa.exc.SQLAlchemyError, MemoryError, OSError)):
        raise outcome.error
    if outcome.error is not None:
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT job")
        connection.info[ADVANCED] = before
    connection.exec_driver_sql("RELEASE SAVEPOINT job")
    return outcome


_BOOKS: Final[weakref.WeakSet[Books]] = weakref.WeakSet()


def _before_fork() -> None:
    for books in list(_BOOKS):
        books.rest()


def _in_child() -> None:
    for books in list(_BOOKS):
        books.wake_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
