"""What a database and its writers owe to each other: stores, and the turn in which one writes, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

import sqlalchemy as sa

from farthing.ledger.rows import ADVANCED

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from farthing.errors import LedgerError
    from farthing.ledger.chain import Totals

PLACE: Final = "farthing place"
"""Where a connection to a file keeps which files it opened."""

Purpose = Literal["read", "write", "build"]


class Turn(Protocol):
    """The turn of one who writes: nobody else does meanwhile."""

    def require_all(self, connection: sa.Connection) -> None:
        """Refuse books that have lost what was noted of them."""
        ...

    def note(self, identity: str, totals: Totals, *, sync: bool) -> None:
        """Note beside the database how far it has come, once that is on disk, where it has a witness."""
        ...


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
    def shared(self) -> bool:
        """Whether those who read may have connections of their own, beside the one that writes."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long to wait for another writer, or for an answer."""
        ...

    def connect(self) -> sa.Connection:
        """Open a connection that begins and ends transactions by name."""
        ...

    def turn(self, wait_s: float) -> AbstractContextManager[Turn]:
        """Wait until no other process writes; give the turn."""
        ...

    def begin(self, connection: sa.Connection, purpose: Purpose, wait_s: float) -> None:
        """Begin a transaction: "read" sees one state throughout; of those that "write" there is one at a time."""
        ...

    def check(self, connection: sa.Connection) -> None:
        """Refuse a connection to files that are not where they were when it was opened."""
        ...

    def in_transaction(self, connection: sa.Connection) -> bool:
        """Whether the database is inside a transaction now (it may have rolled back by itself)."""
        ...

    def explain(self, error: sa.exc.DBAPIError) -> LedgerError:
        """Say which rule a failure of the database broke, without any secret."""
        ...


class _Free:
    """The turn where nothing is noted: in memory, on a server, of a file that is only looked at."""

    def require_all(self, connection: sa.Connection) -> None:
        """Nothing was noted."""

    def note(self, identity: str, totals: Totals, *, sync: bool) -> None:
        """Nothing is: a server has no file beside it that a client could write; its owner notes the head elsewhere."""


FREE: Final = _Free()


class WriteOutcome:
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


class WriteJob:
    """What one thread wants to write, and what became of it once it is done."""

    def __init__(self, work: Callable[[sa.Connection], Any]) -> None:
        self.work = work
        self.alone = False
        self.outcome: WriteOutcome | None = None


def within(connection: sa.Connection, job: WriteJob) -> WriteOutcome:
    """Run one job of a transaction of several; a refusal undoes that job alone, a failure of the database all."""
    connection.exec_driver_sql("SAVEPOINT job")
    before = connection.info.get(ADVANCED)
    outcome = WriteOutcome()
    with outcome:
        outcome.value = job.work(connection)
    if isinstance(outcome.error, (sa.exc.SQLAlchemyError, MemoryError, OSError)):
        raise outcome.error
    if outcome.error is not None:
        connection.exec_driver_sql("ROLLBACK TO SAVEPOINT job")
        connection.info[ADVANCED] = before
    connection.exec_driver_sql("RELEASE SAVEPOINT job")
    return outcome
