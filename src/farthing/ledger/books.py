"""One durable database: a connection per process, transactions, and failures told as ledger errors.

What differs between SQLite and PostgreSQL is a `Store`. Threads of one process take turns on its one connection that
writes; what several of them want to write at a time goes into one transaction, which waits for the disk once. Those who
read have connections of their own, and wait for nobody.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, TypeVar

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.forked import abandon
from farthing.ledger.forks import PATIENCE_S, RESTING, Readers, closed
from farthing.ledger.rows import ADVANCED
from farthing.ledger.turns import FREE, PLACE, WriteJob, WriteOutcome, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.ledger.places import LedgerPlace
    from farthing.ledger.turns import Purpose, Store, Turn

T = TypeVar("T")

_GATHER_S: Final = 0.002
"""How long at most a thread waits for others to write with it, where several did so last time."""


class Books:
    """A database with its connections: one that writes, and others that read.

    Writers are serialised; a commit is durable when it returns. No wait is longer than the store's time limit.

    Attributes:
        store: the database.
        identity: which ledger it holds, once that is known; its witness is kept from then on.
        closed: whether it was closed for good.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.identity = ""
        self._lock = threading.RLock()
        self._jobs: list[WriteJob] = []
        self._leaving = threading.Condition()
        self._led = False  # whether a thread writes for all just now
        self._crowd, self._took_s = 1, 0.0  # how many wrote in the last transaction, and how long that took
        self._owner: int | None = None  # the thread that is inside a transaction
        self._connection: sa.Connection | None = None
        self._readers = Readers(self._opened, self._require_unmoved, (store.timeout_s, self._busy))
        self._place: LedgerPlace | None = None
        self._resting = False
        self._clean = True  # whether the process that forked this one had closed its connections
        self._pid = os.getpid()
        self.closed = False
        RESTING.add(self)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a connection that sees one state of the books throughout; it waits for nobody who writes."""
        if not self.store.shared:
            with self._transaction("read", self._deadline()) as connection:
                yield connection
            return
        self._refuse_nested()
        with self._explained():
            self._require_usable()
            with self._readers.one() as connection, self._begun(connection, "read", 0.0):
                yield connection

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run work as the only writer, durably: all of it or nothing; what other threads want, too, in one commit.

        Work may be run again when a transaction of several is undone, and by another thread: it is a function of the
        connection and of nothing that it changes.
        """
        self._require_writable()
        self._refuse_nested()
        job = WriteJob(work)
        self._await(job, self._deadline())
        assert job.outcome is not None  # noqa: S101  for the type checker: it was awaited
        value: T = job.outcome.result()
        return value

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give the only writer's connection; commit durably at the end, or undo everything on any error."""
        self._require_writable()
        with self._transaction("write", self._deadline()) as connection:
            yield connection

    @contextmanager
    def building(self) -> Iterator[sa.Connection]:
        """Give the only connection that makes or rebuilds the tables, all of them or none."""
        with self._transaction("build", self._deadline()) as connection:
            yield connection

    @contextmanager
    def outside(self) -> Iterator[sa.Connection]:
        """Give the connection outside any transaction, for what a database only does there."""
        with self._turn(self._deadline()), self._explained():
            yield self._connect()

    def close(self) -> None:
        """Close the connection for good. Closing twice is fine."""
        with self._lock:
            self.closed = True
            if self._pid == os.getpid():
                self._readers.close()
                self._disconnect()

    def _deadline(self) -> float:
        """Return until when whoever begins now waits for all others together."""
        return time.monotonic() + self.store.timeout_s

    @contextmanager
    def _turn(self, until: float) -> Iterator[None]:
        """Wait until no other thread of this process uses the connection that writes."""
        if not self._lock.acquire(timeout=_left(until)):
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
            next_step="check that the disk or the server answers, then ask again; what was under way may stay charged",
        )

    def _await(self, job: WriteJob, until: float) -> None:
        """Wait until a job is done: by the thread that writes for all who wait, or as that thread."""
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
                self._lead(job, until)
        finally:
            with self._leaving, suppress(ValueError):
                self._jobs.remove(job)

    def _lead(self, job: WriteJob, until: float) -> None:
        """Write for all who wait, then let another thread do so."""
        try:
            with self._turn(until):
                self._gather()
                began = time.monotonic()
                self._write_all(job, until)
                self._took_s = time.monotonic() - began
        finally:
            with self._leaving:
                self._led = False
                self._leaving.notify_all()

    def _write_all(self, own: WriteJob, until: float) -> None:
        """Write what all threads want that wait now; where that fails, each writes its own."""
        jobs = [job for job in self._jobs if job.outcome is None and not job.alone]
        self._crowd = len(jobs)
        if own in jobs and len(jobs) > 1 and self._together(jobs, until):
            return
        outcome = WriteOutcome()
        with outcome, self._transaction("write", until) as connection:
            outcome.value = own.work(connection)
        own.outcome = outcome

    def _gather(self) -> None:
        """Wait a moment for the threads that came last time, too: no more than a part of what the disk takes."""
        until = time.monotonic() + min(_GATHER_S, self._took_s / 4)
        while sum(job.outcome is None for job in self._jobs) < self._crowd and time.monotonic() < until:
            time.sleep(_GATHER_S / 20)

    def _together(self, jobs: list[WriteJob], until: float) -> bool:
        """Write several jobs in one transaction; return whether it came to its commit. If not, nothing was written."""
        found: list[WriteOutcome] = []
        whole = WriteOutcome()
        with whole, self._transaction("write", until) as connection:
            found.extend(within(connection, job) for job in jobs)
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
    def _transaction(self, purpose: Purpose, until: float) -> Iterator[sa.Connection]:
        """Give the connection that writes, within a transaction; what was written is noted after it is on disk."""
        self._refuse_nested()
        with self._turn(until), self._explained():
            connection = self._connect()
            turn = nullcontext(FREE) if purpose == "read" else self.store.turn(_left(until))
            self._owner = threading.get_ident()
            try:
                with turn as mine:
                    connection.info.pop(ADVANCED, None)
                    with self._begun(connection, purpose, _left(until)):
                        self._require_all(connection, purpose, mine)
                        yield connection
                    self._note(connection, mine)
            finally:
                self._owner = None

    @contextmanager
    def _begun(self, connection: sa.Connection, purpose: Purpose, wait_s: float) -> Iterator[None]:
        """Begin a transaction and commit it, or undo it on any error; the files are where they were all the while."""
        try:
            self.store.begin(connection, purpose, wait_s)
            yield
            connection.exec_driver_sql("COMMIT")
            self.store.check(connection)
        except BaseException:
            self._undo(connection)
            raise

    def _require_all(self, connection: sa.Connection, purpose: Purpose, turn: Turn) -> None:
        """Refuse to charge where entries were lost; tables of an older format were compared when they were opened."""
        if purpose == "write" and self.identity:
            turn.require_all(connection)

    def _note(self, connection: sa.Connection, turn: Turn) -> None:
        """Note how far a transaction has come, which is on disk."""
        advanced = connection.info.pop(ADVANCED, None)
        if advanced is not None and self.identity:
            turn.note(self.identity, advanced.totals, sync=advanced.sync)

    def _undo(self, connection: sa.Connection) -> None:
        """Roll back what is left of a transaction; give up a connection that cannot even do that."""
        try:
            if not connection.invalidated and self.store.in_transaction(connection):
                connection.exec_driver_sql("ROLLBACK")
        except sa.exc.SQLAlchemyError:
            self._drop(connection)
        if connection.invalidated:
            self._drop(connection)

    def _drop(self, connection: sa.Connection) -> None:
        """Give a connection up: the one that writes, or one of those that read."""
        if connection is self._connection:
            self._disconnect()
        else:
            closed(connection)

    def _require_usable(self) -> None:
        """Refuse a ledger that was closed, and take one over from the process that forked this one."""
        if self.closed:
            raise LedgerError("the ledger is closed", rule="a closed ledger is not used", next_step="open it again")
        if self._pid != os.getpid():
            self._adopt()

    def _connect(self) -> sa.Connection:
        """Return this process's connection, opening it at first use."""
        self._require_usable()
        if self._connection is None:
            self._connection = self._opened()
        return self._connection

    def _opened(self) -> sa.Connection:
        """Open a connection, to the same file as all before it."""
        connection = self.store.connect()
        place = connection.info.get(PLACE)
        if place is not None:
            try:
                place.require_same(self._place or place)
            except LedgerError:
                closed(connection)
                raise
            self._place = place
        return connection

    def _adopt(self) -> None:
        """Let a forked child connect again; books in memory, and a connection still in use, stay the parent's."""
        if self.store.place is None or self._connection is not None or not self._clean:
            raise LedgerError(
                "the ledger belongs to the process that forked this one",
                rule="books in memory, and a connection in use, do not cross a fork",
                next_step="give the ledger a file, and start worker processes with spawn",
            )
        self._pid = os.getpid()

    def _require_unmoved(self) -> None:
        """Refuse to read where the files of the connection that writes are gone. Asked at the gate of readers."""
        if self._connection is not None:
            self.store.check(self._connection)

    def _disconnect(self) -> None:
        """Close the connection that writes, and its log with it; no reader looks for them from before that on."""
        with self._readers.kept_out():
            connection, self._connection = self._connection, None
        if connection is not None:
            closed(connection)

    @contextmanager
    def _explained(self) -> Iterator[None]:
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
        """Close all connections before a fork, and let no other thread begin until it is over.

        One that is in the middle of a transaction stays open: of this very thread, or of one that takes too long.
        """
        self._resting = self._lock.acquire(timeout=PATIENCE_S)
        alone, connection = self._readers.rest() and self._resting, self._connection
        if not alone or self.store.place is None or connection is None or self._pid != os.getpid():
            return
        if connection.invalidated or not self.store.in_transaction(connection):
            self._disconnect()

    def wake(self) -> None:
        """Go on after a fork, in the parent."""
        self._readers.wake()
        if self._resting:
            self._resting = False
            self._lock.release()

    def wake_in_child(self) -> None:
        """Forget a lock that another thread of the parent may hold, and what its threads wanted to write."""
        self._clean = self._readers.wake_in_child() and self._resting
        if self._connection is not None:
            abandon(self._connection)
        self._lock, self._leaving, self._resting = threading.RLock(), threading.Condition(), False
        self._jobs, self._led, self._owner = [], False, None


def _left(until: float) -> float:
    """Return how many seconds are left, as far as a thread may wait at all."""
    return min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)
