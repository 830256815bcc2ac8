"""What the processes of a server share beside the ledger: the key of plans, and requests by their idempotency keys.

It lies where the ledger lies: in a file beside it, or in a schema of its own in the ledger's database.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa

from farthing.client import RefusedRequest
from farthing.errors import DataError
from farthing.ledger.postgres import PostgresStore
from farthing.urls import is_address

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

BESIDE: Final = "-server"
"""What the name of the file has after that of the ledger."""
LASTS_S: Final = 86_400
"""Seconds for which a request is known by its key."""
LARGEST: Final = 1 << 20
"""The longest response that is kept, in characters; a longer one is asked of the ledger again, which is free."""

_TRIES, _PAUSE_S = 200, 0.05
"""How often, and how long apart, the place is made while others make it, too."""

_META: Final = sa.MetaData()
_KEYS: Final = sa.Table(
    "server_keys",
    _META,
    sa.Column("only", sa.Integer, sa.CheckConstraint('"only" = 1'), primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
)
_REPEATS: Final = sa.Table(
    "server_repeats",
    _META,
    sa.Column("who", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),  # a digest: of what was asked nothing is kept
    sa.Column("told", sa.Text, nullable=True),
    sa.Column("made_at", sa.BigInteger, nullable=False, index=True),
)


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared part of a server.

    Guarantee: all processes over one ledger have one key; a request that was made under somebody's idempotency key is
        not another request's in any of them, and a retry is told what the first was told.
    Proof: key and requests are rows with a primary key, which one process inserts and all others read.
    Assumes: whoever can read the place is trusted with the ledger; where a response was not kept, the ledger has the
        answer, free.
    Rounds: nothing.
    """

    _engine: sa.Engine

    @classmethod
    def beside(cls, ledger: Path | str) -> Shared:
        """Return what is shared over a ledger, making it if there is none."""
        return cls(_explained(lambda: _made(ledger)))

    def key(self) -> bytes:
        """Return the key that signs plans: 32 random bytes, drawn once."""
        return _explained(self._key)

    def begun(self, who: str, key: str, body: str) -> Any | None:
        """Note a request before it is made; return what it was told if it was made before, else None.

        Raises:
            RefusedRequest: the key was used for another request.
        """
        digest = hashlib.sha256(body.encode()).hexdigest()
        found = _explained(lambda: self._noted(who, key, digest))
        if found is not None and found.body != digest:
            raise used_for_another()
        return None if found is None or found.told is None else json.loads(found.told)

    def _key(self) -> bytes:
        """Return the key; draw it if nobody has."""
        with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
            if connection.execute(sa.select(_KEYS.c.key)).first() is None:
                connection.execute(sa.insert(_KEYS), {"only": 1, "key": secrets.token_bytes(32)})
        with self._engine.begin() as connection:
            return bytes(connection.execute(sa.select(_KEYS.c.key)).scalar_one())

    def _noted(self, who: str, key: str, digest: str) -> Any | None:
        """Note a request; return what is there of it where another process was first."""
        now = int(time.time())
        with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
            connection.execute(sa.delete(_REPEATS).where(_REPEATS.c.made_at < now - LASTS_S))
            row = {"who": who, "key": key, "body": digest, "told": None, "made_at": now}
            connection.execute(sa.insert(_REPEATS), row)
            return None
        with self._engine.begin() as connection:
            return connection.execute(sa.select(_REPEATS).where(_mine(who, key))).first()

    def ended(self, who: str, key: str, told: str) -> None:
        """Keep what a request was told; where that fails, the ledger has the answer."""
        if len(told) <= LARGEST:
            with suppress(sa.exc.SQLAlchemyError), self._engine.begin() as connection:
                connection.execute(sa.update(_REPEATS).where(_mine(who, key)).values(told=told))

    def failed(self, who: str, key: str) -> None:
        """Forget a request that came to nothing, so that its key can be used again."""
        with suppress(sa.exc.SQLAlchemyError), self._engine.begin() as connection:
            connection.execute(sa.delete(_REPEATS).where(_mine(who, key), _REPEATS.c.told.is_(None)))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def used_for_another() -> RefusedRequest:
    """Return the refusal of a key that stands for another request."""
    return RefusedRequest(
        "this idempotency key was used for another request",
        status=409,
        rule="a key stands for one request",
        next_step="choose a new key for each request",
    )


def _mine(who: str, key: str) -> sa.ColumnElement[bool]:
    """Return the condition that finds one request."""
    return (_REPEATS.c.who == who) & (_REPEATS.c.key == key)


def _in_file(ledger: Path) -> sa.Engine:
    """Return the engine of a file beside a ledger; only its owner may read it."""
    place = ledger.with_name(ledger.name + BESIDE)
    with suppress(FileExistsError):  # closing a file that SQLite has open would end its locks
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(place)), connect_args={"timeout": 30})
    sa.event.listen(engine, "connect", _prepared)
    return engine


def _prepared(connection: Any, _: Any) -> None:
    """Let readers go on while one process writes; what is lost in a power failure the ledger knows."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _on_server(url: str) -> sa.Engine:
    """Return the engine of a schema beside that of a ledger."""
    store = PostgresStore.of(url)
    schema = f"{store.schema}_server"[:63]
    settings = {"options": f"-c search_path={schema}", "connect_timeout": 10}
    engine = sa.create_engine(store.url, connect_args=settings, pool_pre_ping=True)
    with suppress(sa.exc.IntegrityError, sa.exc.ProgrammingError), engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema, if_not_exists=True))
    return engine


def _made(ledger: Path | str) -> sa.Engine:
    """Return the engine of the place, with its tables; another process may be making them just now."""
    engine = _on_server(ledger) if isinstance(ledger, str) and is_address(ledger) else _in_file(Path(ledger))
    for _ in range(_TRIES):
        with suppress(sa.exc.ProgrammingError, sa.exc.OperationalError, sa.exc.IntegrityError):
            _META.create_all(engine)
            return engine
        time.sleep(_PAUSE_S)
    _META.create_all(engine)
    return engine


def _explained(work: Callable[[], T]) -> T:
    """Return what work comes to; tell the database's failures as one error, without the driver's behind it."""
    try:
        return work()
    except (sa.exc.SQLAlchemyError, OSError) as error:
        kind = type(error).__name__
    raise DataError(
        "what the server keeps beside the ledger cannot be used",
        rule="its processes share a file beside the ledger, or a schema of its database",
        got=kind,
        next_step="check that the disk or the database server answers",
    )
