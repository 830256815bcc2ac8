"""Rows in and out of the tables."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from farthing.errors import LedgerError
from farthing.ledger import tables
from farthing.ledger.entry import Entry, State, Stored
from farthing.ledger.process import Process, this_process

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Reservation(TypedDict):
    """What a reservation writes down, apart from who made it and when."""

    question: str
    reserved: int
    exclusive: bool
    version: int
    label: str
    request: str | None


def add_reservation(connection: sa.Connection, reservation: Reservation) -> int:
    """Book a reservation for this process, and return its number."""
    maker = this_process()
    row = {**reservation, "opened_at": _now(), "pid": maker.pid, "host": maker.host, "started": maker.started}
    key = cast("tuple[int]", connection.execute(tables.RESERVE, row).inserted_primary_key)
    connection.execute(tables.OPENED, {"question": reservation["question"], "reservation": key[0]})
    if reservation["reserved"]:
        connection.execute(tables.ADD_SPENT, {"change": reservation["reserved"]})
    return key[0]


def add_settlement(connection: sa.Connection, number: int, state: State, amount: int) -> None:
    """Write what became of a reservation."""
    row = {"reservation": number, "state": state, "amount": amount, "closed_at": _now()}
    connection.execute(tables.CLOSE, row)


def sharpen(connection: sa.Connection, question: str, merge: Callable[[bytes | None], bytes]) -> None:
    """Replace a question's measurement by its merge with what was measured."""
    stored = load(connection, question)
    blob = merge(None if stored is None else stored.blob)
    if not isinstance(blob, bytes):
        raise LedgerError(
            "a merge must return bytes",
            rule="measurements are bytes",
            got=type(blob).__name__,
            next_step="return the combined measurement as bytes",
        )
    if stored is None:
        connection.execute(tables.STORE, {"question": question, "version": 1, "blob": blob})
    else:
        connection.execute(tables.SHARPEN, {"key": question, "next": stored.version + 1, "bytes": blob})


def load(connection: sa.Connection, question: str) -> Stored | None:
    """Read a question's measurement."""
    row = connection.execute(tables.LOAD, {"question": question}).first()
    return None if row is None else Stored(row.version, row.blob)


def entry(row: Any) -> Entry:
    """Read an entry from a row of the history."""
    return Entry(
        id=row.id,
        request=row.request,
        question=row.question,
        label=row.label,
        reserved=row.reserved,
        settled=row.amount,
        state=row.state or "open",
        exclusive=row.exclusive,
        version=row.version,
        opened_at=_moment(row.opened_at),
        closed_at=None if row.closed_at is None else _moment(row.closed_at),
        pid=row.pid,
        host=row.host,
        alive=Process(row.pid, row.host, row.started).alive() if row.state is None else None,
    )


def _now() -> int:
    """Return microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def _moment(microseconds: int) -> datetime:
    """Return a moment, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)
