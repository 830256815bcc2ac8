"""Books in a schema of a PostgreSQL database, through psycopg 3."""

from __future__ import annotations

import math
import re
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.errors import LedgerError, LedgerLost
from farthing.ledger.turns import FREE
from farthing.urls import SECRETS, shown_address

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from farthing.ledger.turns import Purpose, Turn

SCHEMA: Final = "farthing"
"""The schema of the books, unless the URL ends in ?schema=NAME."""

_ON_SERVER: Final = 0.9
"""What part of the time limit the server may work on a statement, so that it says why in time."""

_FOR_A_LOCK: Final = 0.8
"""What part of it the server may wait for a lock: less, so that a lock is told as one."""

_LONGEST_MS: Final = 2**31 - 1

_DRIVERS: Final = frozenset({"postgresql", "postgres", "postgresql+psycopg"})
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")

_BEGIN_WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {wait_ms}"

_BEGIN: Final[dict[Purpose, str]] = {
    "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    # The row is locked by a statement of its own: those after it see all that the last writer committed.
    "write": f"{_BEGIN_WRITING}; SELECT 1 FROM totals FOR UPDATE",
    "build": f"{_BEGIN_WRITING}; SELECT pg_advisory_xact_lock(6387)",
}

_MAY_USE: Final = (
    "SELECT coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s), true)"
)

# Start of PostgreSQL's error code, what it means here, the rule, the next step.
_FAILURES: Final = (
    ("55P03", "the ledger is locked", "a writer must be free within the time limit",
     "let the other process finish, or raise timeout_s"),
    ("57014", "the server did not answer in time", "a statement is done within the time limit",
     "see what keeps the server busy, or raise timeout_s"),
    ("53100", "the server's disk is full", "a charge must be written before noise is drawn", "free some space"),
    ("53200", "the server is out of memory", "a charge must be written before noise is drawn", "free some memory"),
    ("53300", "the server takes no more connections", "every process has one connection to its ledger",
     "close some sessions, or raise max_connections"),
    ("25006", "the server is read-only", "a charge must be written before noise is drawn", "name the primary server"),
    ("42501", "the ledger may not be opened", "the user must own the ledger's schema", "ask its owner for access"),
    ("3F000", "the ledger's schema is gone, or may not be used", "the user must own the ledger's schema",
     "ask its owner for access"),
    ("42P01", "the ledger is damaged", "every table of a ledger must be there",
     "restore it from a copy; what it had charged stays spent"),
    ("42703", "the ledger is damaged", "every column of a ledger must be there",
     "restore it from a copy; what it had charged stays spent"),
    ("54000", "a name is too long to be booked", "questions, requests and parts are at most about 2,000 bytes",
     "shorten it"),
    ("23", "the ledger failed", "PostgreSQL must accept every entry", "run `farthing verify`"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PostgresStore:
    """A schema of a PostgreSQL database.

    Writers are serialised by a lock on the row of totals; a commit is on disk when it returns (synchronous_commit=on,
    and a server with fsync=off is refused).

    Attributes:
        url: where the server is, with its secrets; never shown.
        schema: the schema of the books.
        writable: whether it may be written.
        timeout_s: how long to wait for a connection, or for another writer.
    """

    url: sa.URL = field(repr=False)
    schema: str = SCHEMA
    writable: bool = True
    timeout_s: float = 30.0

    @classmethod
    def of(cls, text: str, *, writable: bool = True, timeout_s: float = 30.0) -> PostgresStore:
        """Return the store that a URL names; its text is in no error, since it may hold a password."""
        try:
            url = sa.make_url(text)
        except (sa.exc.ArgumentError, ValueError):
            raise _bad_url("no URL that can be read", "postgresql+psycopg://USER@HOST:5432/DATABASE") from None
        if "@" in (url.host or ""):
            raise _bad_url("an address that can be read in two ways", "an @ within a password is written %40")
        if url.drivername not in _DRIVERS or not url.database:
            raise _bad_url(f"{url.drivername}://", "a path, or postgresql+psycopg://USER@HOST:5432/DATABASE")
        schema = url.query.get("schema", SCHEMA)
        if not isinstance(schema, str) or not _NAME.fullmatch(schema):
            raise _bad_url("an odd schema", "?schema=NAME, of small letters, digits and _")
        url = url.set(drivername="postgresql+psycopg").difference_update_query(["schema"])
        return cls(url, schema, writable, timeout_s)

    @property
    def place(self) -> str:
        """The URL without its secrets."""
        schema = {} if self.schema == SCHEMA else {"schema": self.schema}
        server = self.url.set(query={}).render_as_string(hide_password=False)
        return shown_address(server, {**schema, **self.url.query})

    def connect(self) -> sa.Connection:
        """Open a connection in autocommit: transactions are begun by name."""
        wait_ms = max(1, round(_ON_SERVER * self.timeout_s * 1000))
        settings = {
            "search_path": self.schema,
            "synchronous_commit": "on",
            "lock_timeout": max(1, round(_FOR_A_LOCK * self.timeout_s * 1000)),
            "statement_timeout": wait_ms,
            # A writer that was stopped or cut off must not hold the lock for ever.
            "idle_in_transaction_session_timeout": 2 * wait_ms,
            "client_min_messages": "warning",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        how: dict[str, Any] = {
            "connect_timeout": max(2, math.ceil(self.timeout_s)),
            "options": f"{self.url.query.get('options', '')} {options}".strip(),
            "application_name": "farthing",
            "client_encoding": "utf8",  # whatever the role's own is
            "keepalives": 1,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": max(1, round(self.timeout_s * 1000)),
        }
        try:
            engine = sa.create_engine(
                self.url, connect_args=how, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", hide_parameters=True
            )
        except ModuleNotFoundError:
            raise LedgerError(
                "the PostgreSQL driver is missing",
                rule="books on PostgreSQL need psycopg 3",
                next_step="python -m pip install 'farthing[postgres]'",
            ) from None
        sa.event.listen(engine, "do_connect", self._connect)
        connection = engine.connect()
        self._require_durable(connection)
        self._require_usage(connection)
        return connection

    def _connect(self, *given: Any) -> Any:
        """Return a connection of the driver's that waits for no answer longer than the time limit."""
        _, _, args, named = given  # dialect and record are of no use here
        return _bounded()(self.timeout_s).connect(*args, **named)

    @property
    def shared(self) -> bool:
        """Those who read have connections of their own, and never wait for those who write."""
        return True

    def turn(self, wait_s: float) -> AbstractContextManager[Turn]:  # noqa: ARG002  # as every store
        """Give a turn: it is the server that lets one write at a time."""
        return nullcontext(FREE)

    def begin(self, connection: sa.Connection, purpose: Purpose, wait_s: float) -> None:
        """Begin a transaction; a writer waits for its turn, no longer than what is left of its time."""
        wait_ms = max(1, min(round(_FOR_A_LOCK * wait_s * 1000), _LONGEST_MS))
        connection.exec_driver_sql(_BEGIN[purpose].format(wait_ms=wait_ms))

    def check(self, connection: sa.Connection) -> None:
        """A server is where it is."""

    def in_transaction(self, connection: sa.Connection) -> bool:
        """Whether the server is inside a transaction of this connection."""
        from psycopg import Connection
        from psycopg.pq import TransactionStatus

        inner = connection.connection.dbapi_connection
        driver = getattr(inner, "driver_connection", inner)
        return isinstance(driver, Connection) and driver.info.transaction_status in {
            TransactionStatus.INTRANS,
            TransactionStatus.INERROR,
            TransactionStatus.ACTIVE,
        }

    def explain(self, error: sa.exc.DBAPIError) -> LedgerError:
        """Say which rule a failure of PostgreSQL broke, without any secret."""
        code = getattr(error.orig, "sqlstate", None) or ""
        got = f"{self.place} ({self._without_secrets(str(error.orig))})"
        for prefix, what, rule, next_step in _FAILURES:
            if code.startswith(prefix):
                return LedgerError(what, rule=rule, got=got, next_step=next_step)
        if error.connection_invalidated or not code or code[:2] in {"08", "57", "28", "3D"}:
            return LedgerLost(
                "the ledger's server cannot be reached, or was lost",
                rule="a charge must be written before noise is drawn; an answer that was drawn is kept until then",
                got=got,
                next_step="check that the server runs and lets this user in, then ask again",
            )
        return LedgerError(
            "the ledger failed",
            rule="PostgreSQL must accept every entry",
            got=got,
            next_step="check the disk and the file's permissions; what was reserved stays charged",
        )

    def _require_usage(self, connection: sa.Connection) -> None:
        """Refuse a schema that is there and may not be used: its tables would seem to be missing."""
        if not connection.exec_driver_sql(_MAY_USE, (self.schema,)).scalar_one():
            connection.close()
            raise LedgerError(
                "the ledger may not be opened",
                rule="the user needs USAGE of the ledger's schema",
                got=self.place,
                next_step="ask its owner for access",
            )

    def _require_durable(self, connection: sa.Connection) -> None:
        """Refuse to write on a server that does not wait for its disk."""
        if self.writable and connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
            connection.close()
            raise LedgerError(
                "the server does not wait for its disk",
                rule="a charge must be on disk before noise is drawn",
                got=f"{self.place} (fsync=off)",
                next_step="set fsync = on in postgresql.conf",
            )

    def _without_secrets(self, text: str) -> str:
        """Return a message of the driver without the password, should it ever hold it."""
        query = [self.url.query.get(name) for name in SECRETS]
        for secret in [self.url.password, *query]:
            if secret:
                text = text.replace(str(secret), "***")
        return " ".join(text.split())


@cache
def _bounded() -> Callable[[float], Any]:
    """Return what makes the class of connections with a time limit; the driver is imported when it is needed."""
    from psycopg import Connection, OperationalError

    @cache
    def within(timeout_s: float) -> Any:
        class Bounded(Connection[Any]):
            """A connection that is given up when the server does not answer in time."""

            def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
                """Wait for an answer; a server that keeps still is as good as lost."""
                return super().wait(self._watched(gen), *given, **named)

            def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
                """Give what the driver waits for, until the time is over."""
                deadline = time.monotonic() + timeout_s
                try:
                    wanted = next(gen)
                    while True:
                        ready = yield wanted
                        if not ready and time.monotonic() > deadline:
                            self.pgconn.finish()
                            raise OperationalError(f"no answer within {timeout_s:g} s")
                        wanted = gen.send(ready)
                except StopIteration as end:
                    return end.value

        return Bounded

    return within


def _bad_url(got: str, rule: str) -> LedgerError:
    return LedgerError("a ledger cannot be kept there", rule=rule, got=got, next_step="name a file, or such a URL")
