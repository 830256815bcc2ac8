"""Books in a SQLite file, or in memory."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger.checking import require_noted
from farthing.ledger.migrating import migrate
from farthing.ledger.places import LedgerPlace
from farthing.ledger.turns import FREE, PLACE
from farthing.ledger.witness import Noted, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from farthing.ledger.chain import Totals
    from farthing.ledger.turns import Purpose, Turn
    from farthing.ledger.witness import Held

Mode = Literal["rw", "draft", "ro", "immutable", "carried"]
"""To write, to make, to look only, as it lies where no lock can be kept, or a copy in memory of the newest format."""

_URI: Final[dict[Mode, str]] = {
    "rw": "mode=rw",
    "draft": "mode=rw",
    "ro": "mode=ro",
    "immutable": "mode=ro&immutable=1",
    "carried": "mode=ro",
}

_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 0.016

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


def _lost() -> sqlite3.Connection:
    """Refuse to open a lost connection again behind the back of whoever uses it: its place would not be checked."""
    raise sqlite3.OperationalError("the connection to the ledger was lost")


_OPENING: Final[ContextVar[Callable[[], sqlite3.Connection]]] = ContextVar("opening", default=_lost)
"""How the connection is opened that is asked for just now."""


def _open_now() -> sqlite3.Connection:
    """Open the connection that is asked for."""
    return _OPENING.get()()


@cache
def _engine() -> sa.Engine:
    """Return the engine of all ledgers of this process: a statement that one of them compiled is compiled for all."""
    return sa.create_engine("sqlite://", creator=_open_now, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_engine.cache_clear)  # another thread may have held its locks


@dataclass(frozen=True, slots=True)
class SqliteStore:
    """A SQLite database, in a file or in memory.

    Writers are serialised by BEGIN IMMEDIATE; a commit is on disk when it returns (WAL, synchronous=FULL).

    Attributes:
        place: the file, or None for memory.
        mode: how it is opened.
        timeout_s: how long to wait for another writer.
    """

    place: Path | None
    mode: Mode = "rw"
    timeout_s: float = 30.0

    @property
    def writable(self) -> bool:
        """Whether it may be written."""
        return self.mode in {"rw", "draft"}

    @property
    def shared(self) -> bool:
        """Whether those who read may have connections of their own: a file that is used."""
        return self.place is not None and self.mode == "rw"

    def connect(self) -> sa.Connection:
        """Open a connection in autocommit: transactions are begun by name."""
        before = _OPENING.set(self._open)
        try:
            connection = _engine().connect()
        finally:
            _OPENING.reset(before)
        if self.mode == "carried":
            migrate(connection)
        if self.place is not None and self.mode == "rw":
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").all()  # opens the log and the locks
            connection.info[PLACE] = LedgerPlace.of(self.place)
        return connection

    @contextmanager
    def turn(self, wait_s: float) -> Iterator[Turn]:
        """Give the turn of one who writes a ledger's file, with its witness in hand; of others there is none."""
        if self.place is None or self.mode != "rw":
            yield FREE
            return
        with Witness.beside(self.place).held(wait_s) as held:
            yield _Turn(self.place, held)

    def begin(self, connection: sa.Connection, purpose: Purpose, wait_s: float) -> None:
        """Begin a transaction; a writer waits for its turn."""
        self.check(connection)
        if purpose == "read":
            connection.exec_driver_sql("BEGIN")
        elif not self._took_turn(_inner(connection), wait_s):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # which says why not

    def check(self, connection: sa.Connection) -> None:
        """Refuse files that are not where they were when the connection was opened."""
        place = connection.info.get(PLACE)
        if place is not None:
            place.require_unmoved()

    def in_transaction(self, connection: sa.Connection) -> bool:
        """Whether SQLite is inside a transaction now (it may have rolled back by itself)."""
        return _inner(connection).in_transaction

    def explain(self, error: sa.exc.DBAPIError) -> LedgerError:
        """Say which rule a failure of SQLite broke."""
        where = "in memory" if self.place is None else str(self.place)
        for prefix, what, rule, next_step in _FAILURES:
            if _code(error).startswith(prefix):
                return LedgerError(what, rule=rule, got=f"{where} ({error.orig})", next_step=next_step)
        return LedgerError(
            "the ledger failed",
            rule="SQLite must accept every entry",
            got=f"{where} ({error.orig})",
            next_step="check the disk and the file's permissions; what was reserved stays charged",
        )

    def _took_turn(self, inner: sqlite3.Connection, wait_s: float) -> bool:
        """Begin to write as soon as no other writer is there; return whether that was in time.

        SQLite's own waiting grows to a tenth of a second a try, in which a ledger of many writers stands still.
        """
        deadline, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
        inner.execute("PRAGMA busy_timeout=0")
        try:
            while True:
                try:
                    inner.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                        return False
                    time.sleep(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                else:
                    return True
        finally:
            inner.execute(f"PRAGMA busy_timeout={min(round(self.timeout_s * 1000), 2**31 - 1)}")

    def _open(self) -> sqlite3.Connection:
        """Open SQLite's own connection."""
        name = ":memory:" if self.place is None else f"{self.place.as_uri()}?{_URI[self.mode]}"
        connection = sqlite3.connect(
            name, timeout=self.timeout_s, uri=True, isolation_level=None, check_same_thread=False
        )
        if self.mode == "carried":
            with closing(connection) as old:
                copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                old.backup(copy)
                return copy
        connection.execute("PRAGMA synchronous=FULL")
        return connection


@dataclass(frozen=True, slots=True)
class _Turn:
    """The turn of one who writes a ledger's file.

    Attributes:
        place: the file.
        held: its witness.
    """

    place: Path
    held: Held

    def require_all(self, connection: sa.Connection) -> None:
        """Refuse to write behind the witness: entries whose receipts were given out are not there."""
        require_noted(connection, self.held.latest(), self.place)

    def note(self, identity: str, totals: Totals, *, sync: bool) -> None:
        """Note in the witness how far the ledger has come."""
        self.held.note(Noted.of(identity, totals), sync=sync)


def _inner(connection: sa.Connection) -> sqlite3.Connection:
    """Return SQLite's own connection."""
    inner = connection.connection.dbapi_connection
    assert isinstance(inner, sqlite3.Connection)  # noqa: S101  for the type checker: nothing else is ever opened here
    return inner


def _code(error: sa.exc.DBAPIError) -> str:
    """Return the name of SQLite's error code."""
    return getattr(error.orig, "sqlite_errorname", "")
