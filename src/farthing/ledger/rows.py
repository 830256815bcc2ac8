"""Rows in and out of the tables, each record linked to the one before it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import tables
from farthing.ledger.chain import Tip, Totals, damaged, link, sealed
from farthing.ledger.entry import Entry, State, Stored
from farthing.ledger.process import Process, this_process

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class Reservation(TypedDict):
    """What a reservation writes down, apart from who made it and when."""

    id: int
    question: str
    reserved: int
    exclusive: bool
    version: int
    label: str
    target: str
    request: str | None
    allotment: str
    partition: str
    part: str


class Act(TypedDict):
    """What the owner did, or a newer version of farthing."""

    kind: str
    name: str
    amount: int
    digest: str


def totals(connection: sa.Connection) -> Totals:
    """Return the totals, checked. Nobody reads them but through here and `Totals.of`."""
    return Totals.of(connection.execute(sa.select(tables.TOTALS)).one())


def append(connection: sa.Connection, insert: sa.Insert, row: dict[str, Any], tip: Tip) -> Tip:
    """Write one record behind the tip of the chain, and return the new tip; the caller writes that to the totals."""
    number = tip.records + 1
    row["seq"] = number
    row["hash"] = link(tip.head, insert.table.name, row)
    connection.execute(insert, row)
    return Tip(number, row["hash"], tip.clock)


def add_reservation(connection: sa.Connection, reservation: Reservation, who: str, tip: Tip) -> Tip:
    """Book a reservation for this process."""
    maker, (moment, behind) = this_process(), tip.stamp(now())
    row = {**reservation, "who": who, "opened_at": moment, "behind": behind,
           "pid": maker.pid, "host": maker.host, "started": maker.started}  # fmt: skip
    tip = append(connection, tables.RESERVE, row, tip._replace(clock=moment))
    connection.execute(tables.UNSETTLE, {"question": reservation["question"], "reservation": reservation["id"]})
    return tip


def add_look(connection: sa.Connection, reservation: int, amount: int, who: str, tip: Tip) -> Tip:
    """Write up to which price a reservation may be measured from now on."""
    moment, behind = tip.stamp(now())
    row = {"reservation": reservation, "amount": amount, "who": who, "begun_at": moment, "behind": behind}
    return append(connection, tables.LOOK, row, tip._replace(clock=moment))


def add_settlement(
    connection: sa.Connection,
    number: int,
    state: State,
    amount: int,
    *,
    stored: Stored | str | None,
    who: str,
    tip: Tip,
) -> Tip:
    """Write what became of a reservation, and which measurement it stored, or a word on why there is none."""
    moment, behind = tip.stamp(now())
    row = {"reservation": number, "state": state, "amount": amount, "who": who, "closed_at": moment, "behind": behind}
    if isinstance(stored, Stored):
        row |= {"stored": stored.version, "digest": stored.digest}
    else:
        row |= {"stored": 0, "digest": stored or ""}
    return append(connection, tables.CLOSE, row, tip._replace(clock=moment))


def add_delta(connection: sa.Connection, reservation: int, coins: int, who: str, tip: Tip) -> Tip:
    """Charge a reservation's delta, for good."""
    moment, behind = tip.stamp(now())
    row = {"reservation": reservation, "coins": str(coins), "who": who, "charged_at": moment, "behind": behind}
    return append(connection, tables.CHARGE_DELTA, row, tip._replace(clock=moment))


def add_act(connection: sa.Connection, act: Act, who: str, tip: Tip) -> Tip:
    """Write what the owner did."""
    moment, behind = tip.stamp(now())
    row = {**act, "who": who, "done_at": moment, "behind": behind}
    return append(connection, tables.ACT, row, tip._replace(clock=moment))


class Known(TypedDict):
    """By which public metadata a data set is known."""

    name: str
    label: str
    mark: str


def add_data_set(connection: sa.Connection, known: Known, who: str, tip: Tip) -> Tip:
    """Write by which public metadata a data set is known."""
    moment, behind = tip.stamp(now())
    row = {**known, "who": who, "declared_at": moment, "behind": behind}
    return append(connection, tables.DECLARE, row, tip._replace(clock=moment))


ADVANCED: Final = "farthing totals"
"""Where a transaction notes the totals that it wrote, for the witness."""


class Advanced(NamedTuple):
    """The totals that a transaction wrote, and whether the witness waits for the disk before anybody hears of it."""

    totals: Totals
    sync: bool


def advance(connection: sa.Connection, after: Totals, *, sync: bool = True) -> None:
    """Write the totals. Every transaction that changes the books does, last of all.

    Args:
        connection: the writer's.
        after: the totals.
        sync: False where the books would charge more, and not less, if all that is written here were lost.
    """
    connection.execute(tables.ADVANCE, after.row())
    before = connection.info.get(ADVANCED)
    connection.info[ADVANCED] = Advanced(after, sync or (before is not None and before.sync))


def sharpen(
    connection: sa.Connection, question: str, merge: Callable[[bytes | None], bytes], *, tagged: bool = False
) -> Stored:
    """Replace a question's measurement by its merge with what was measured.

    `tagged` says that its tags are written next: to note that later would write all of a new measurement again.
    """
    stored = load(connection, question)
    blob = merge(None if stored is None else stored.blob)
    if not isinstance(blob, bytes):
        raise LedgerError(
            "a merge must return bytes",
            rule="measurements are bytes",
            got=type(blob).__name__,
            next_step="return the combined measurement as bytes",
        )
    after = Stored(1 if stored is None else stored.version + 1, blob)
    hashed = sealed_measurement(question, after)
    if stored is None:
        row = {"question": question, "version": 1, "blob": blob, "digest": hashed, "tagged": int(tagged)}
        connection.execute(tables.STORE, row)
    else:
        row = {"key": question, "next": after.version, "bytes": blob, "hash": hashed}
        connection.execute(tables.SHARPEN, row)
    return after


def load(connection: sa.Connection, question: str) -> Stored | None:
    """Read a question's measurement; refuse one that is not as it was written."""
    row = connection.execute(tables.LOAD, {"question": question}).first()
    if row is None:
        return None
    stored = Stored(row.version, row.blob)
    if not isinstance(row.blob, bytes) or row.digest != sealed_measurement(question, stored):
        raise damaged("a stored measurement is not what was written", "measurements carry a hash of their own")
    return stored


def sealed_measurement(question: str, stored: Stored) -> str:
    """Return the hash of a row of a measurement."""
    return sealed("measurements", question=question, version=stored.version, blob=stored.digest)


def entry(row: Any, prefix: str) -> Entry:
    """Read an entry from a row of the history; the prefix that marks a part's questions is left out."""
    return Entry(
        id=row.id,
        request=row.request,
        question=row.question.removeprefix(prefix),
        label=row.label,
        reserved=row.reserved,
        settled=row.ended_amount,
        state=row.ended_state or "open",
        exclusive=row.exclusive,
        version=row.version,
        opened_at=moment(row.opened_at),
        closed_at=None if row.ended_closed_at is None else moment(row.ended_closed_at),
        pid=row.pid,
        host=row.host,
        alive=Process(row.pid, row.host, row.started).alive() if row.ended_state is None else None,
        who=row.who,
        target=row.target,
        allotment=row.allotment or None,
        partition=row.partition or None,
        part=row.part if row.partition else None,
        clock_behind=timedelta(microseconds=min(max(row.behind, row.ended_behind or 0), _LATEST)),
        hash=row.ended_hash or row.hash,
    )


def moment(microseconds: int) -> datetime:
    """Return a moment, exactly; the last one that can be written as a date for all that are later."""
    return _EPOCH + timedelta(microseconds=max(0, min(microseconds, _LATEST)))


def now() -> int:
    """Return microseconds since 1970, UTC; a clock beyond the year 9999 stands still there."""
    return min(time.time_ns() // 1000, _LATEST)
