"""Records checked as they are read: each has the hash that its content and the record before it come to.

A bit that a disk flipped would otherwise be shown as what was asked and paid. To see that nothing is missing, numbers
are compared: those of entries have no gaps, and what follows the newest entry in the chain are other records.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.ledger import rows, tables
from farthing.ledger.chain import damaged, link

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ASKED: Final = 500
"""So many records are looked for in one statement."""

_NUMBERS: Final[sa.BindParameter[int]] = sa.bindparam("numbers", expanding=True)
_HASHES: Final = sa.union_all(*(sa.select(t.c.seq, t.c.hash).where(t.c.seq.in_(_NUMBERS)) for t in tables.RECORDS))
_BEYOND: Final = sa.union_all(
    *(sa.select(sa.func.count()).where(t.c.seq > sa.bindparam("newest")) for t in tables.RECORDS)  # entries first
)


_RESERVED: Final = [column.name for column in tables.RESERVATIONS.columns]
_ENDED: Final = [column.name for column in tables.SETTLEMENTS.columns]


def require_entries(connection: sa.Connection, found: Sequence[Any]) -> None:
    """Refuse rows of the history that are not as they were written.

    Guarantee: whatever bits of an entry or of what became of it were changed, and nothing else, it is refused; so is
        one whose settlement is missing.
    Proof: docs/proofs/ledger.chain.md.
    Assumes: SHA-256 has no collisions that chance finds.
    Rounds: nothing.
    """
    records = [(tables.RESERVATIONS, _reservation(row)) for row in found]
    records += [(tables.SETTLEMENTS, _settlement(row)) for row in found if row.ended_reservation is not None]
    _require_linked(connection, records)
    if any(bool(row.is_unsettled) is (row.ended_state == "settled") for row in found):
        raise _wrong("what became of an entry is missing")


def require_opened(connection: sa.Connection) -> None:
    """Refuse a list of open reservations from which one is missing."""
    ended = tables.UNSETTLED.c.reservation == tables.SETTLEMENTS.c.reservation
    both = sa.outerjoin(tables.UNSETTLED, tables.SETTLEMENTS, ended)
    open_ones = sa.select(sa.func.count()).select_from(both).where(tables.SETTLEMENTS.c.reservation.is_(None))
    listed = sa.select(sa.func.count()).select_from(tables.OPENED)
    if connection.execute(open_ones).scalar_one() != connection.execute(listed).scalar_one():
        raise _wrong("an open reservation is missing")


def require_reservation(connection: sa.Connection, found: Any) -> None:
    """Refuse a reservation that is not as it was written; None says nothing."""
    if found is not None:
        _require_linked(connection, [(tables.RESERVATIONS, _reservation(found))])


def require_acts(connection: sa.Connection, found: Sequence[dict[str, Any]]) -> None:
    """Refuse acts of the owner that are not as they were written, or not all of them."""
    _require_linked(connection, [(tables.ACTS, row) for row in found])
    if sum(_beyond(connection, 0)) != rows.totals(connection).tip.records:
        raise _wrong("a record is missing")


def require_next(numbers: Sequence[int], after: int, step: int) -> None:
    """Refuse entries that are not numbered on from one before, up or down."""
    if any(number != wanted for number, wanted in zip(numbers, count(after + step, step))):
        raise _wrong("an entry is missing")


def require_newest(connection: sa.Connection, seq: int) -> None:
    """Refuse an entry for the newest where the chain goes on with others, or with records that are not there.

    Args:
        connection: a reader's.
        seq: its number in the chain; 0 where there is no entry.
    """
    entries, *others = _beyond(connection, seq)
    if entries or sum(others) != rows.totals(connection).tip.records - seq:
        raise _wrong("an entry is missing")


def _beyond(connection: sa.Connection, seq: int) -> list[int]:
    """Return how many records of each table follow one in the chain."""
    return list(connection.execute(_BEYOND, {"newest": seq}).scalars())


def _require_linked(connection: sa.Connection, records: Iterable[tuple[sa.Table, dict[str, Any]]]) -> None:
    """Refuse records that do not come to their hashes."""
    listed = list(records)
    numbers = {row["seq"] - 1 for _, row in listed if type(row["seq"]) is int}
    before = {row["seq"]: row["hash"] for _, row in listed}  # most come one after the other
    before |= _hashes(connection, numbers - before.keys())
    for table, row in listed:
        number = row["seq"] - 1 if type(row["seq"]) is int else None
        if number not in before or link(before[number], table.name, row) != row["hash"]:
            raise _wrong("an entry is not what was written")


def _hashes(connection: sa.Connection, numbers: set[int]) -> dict[int | None, str]:
    """Return the hashes of records by their number; that of the terms for 0."""
    found: dict[int | None, str] = {0: rows.totals(connection).terms}
    wanted = sorted(numbers)
    for first in range(0, len(wanted), _ASKED):
        part = {"numbers": wanted[first : first + _ASKED]}
        found |= {row.seq: row.hash for row in connection.execute(_HASHES, part)}
    return found


def _reservation(row: Any) -> dict[str, Any]:
    """Return the record of a reservation in a row of the history, whose columns come first."""
    return dict(zip(_RESERVED, row, strict=False))


def _settlement(row: Any) -> dict[str, Any]:
    """Return the record of what became of it, whose columns come next."""
    return dict(zip(_ENDED, row[len(_RESERVED) :], strict=False))


def _wrong(what: str) -> Exception:
    """Return the error of records that are not as they were written."""
    return damaged(what, "every record carries a hash of its own, and none is missing")
