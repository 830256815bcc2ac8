"""The books recomputed from their entries, and the chain from its content."""

from __future__ import annotations

import hashlib
import heapq
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import rows
from farthing.ledger.accounts import WHOLE, require_copies
from farthing.ledger.chain import damaged, link
from farthing.ledger.entry import Seal, Stored
from farthing.ledger.tables import (
    ACCOUNTS,
    ACTS,
    ALLOWED,
    DATA_SETS,
    KEY_DELTAS,
    LOOKS,
    MEASUREMENTS,
    RESERVATIONS,
    SETTLEMENTS,
    TERMS,
    TOTALS,
    UNSETTLED,
)
from farthing.ledger.witness import require_same, went_back

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from farthing.ledger.chain import Totals
    from farthing.ledger.witness import Noted

MOST_FAULTS: Final = 20
"""How many contradictions are told; one is enough to stop using the books."""

_STREAMED: Final = {"yield_per": 1000}
"""Rows come a thousand at a time, so that memory does not grow with the number of entries."""

_MOMENTS: Final = {
    RESERVATIONS: "opened_at",
    SETTLEMENTS: "closed_at",
    ACTS: "done_at",
    KEY_DELTAS: "charged_at",
    DATA_SETS: "declared_at",
    LOOKS: "begun_at",
}

_BOTH: Final = sa.outerjoin(RESERVATIONS, SETTLEMENTS)
_CHARGED: Final = sa.func.coalesce(SETTLEMENTS.c.amount, RESERVATIONS.c.reserved)
_IS_UNSETTLED: Final = sa.or_(SETTLEMENTS.c.state.is_(None), SETTLEMENTS.c.state == "failed")
_PLACE: Final = (RESERVATIONS.c.allotment, RESERVATIONS.c.partition, RESERVATIONS.c.part)

_SUMS: Final = sa.select(*_PLACE, sa.func.sum(_CHARGED).label("charged")).select_from(_BOTH).group_by(*_PLACE)

_REFUNDED: Final = (
    sa.select(RESERVATIONS.c.id)
    .select_from(_BOTH)
    .where(
        sa.or_(
            SETTLEMENTS.c.amount > RESERVATIONS.c.reserved,
            SETTLEMENTS.c.amount > ALLOWED,
            sa.and_(SETTLEMENTS.c.state == "failed", SETTLEMENTS.c.amount != ALLOWED),
        )
    )
)

_ASTRAY: Final = (
    sa.select(LOOKS.c.reservation)
    .outerjoin_from(LOOKS, RESERVATIONS)
    .where(sa.or_(RESERVATIONS.c.id.is_(None), LOOKS.c.amount > RESERVATIONS.c.reserved))
)

_ORPHANED: Final = (
    sa.select(SETTLEMENTS.c.reservation).outerjoin_from(SETTLEMENTS, RESERVATIONS).where(RESERVATIONS.c.id.is_(None))
)

_SAME: Final = sa.and_(UNSETTLED.c.question == RESERVATIONS.c.question, UNSETTLED.c.reservation == RESERVATIONS.c.id)

_FORGOTTEN: Final = (
    sa.select(RESERVATIONS.c.id)
    .select_from(_BOTH.outerjoin(UNSETTLED, _SAME))
    .where(UNSETTLED.c.reservation.is_not(None) != _IS_UNSETTLED)
)

_STRAY: Final = (
    sa.select(UNSETTLED.c.reservation)
    .select_from(sa.outerjoin(UNSETTLED, RESERVATIONS, _SAME))
    .where(RESERVATIONS.c.id.is_(None))
)

_RULES: Final = (
    (_REFUNDED, "settled above its reservation, or refunded on failure"),
    (_ASTRAY, "looked at above its reservation, or never reserved"),
    (_ORPHANED, "closed but never reserved"),
    (_FORGOTTEN, "unsettled, yet not counted against its question, or the reverse"),
    (_STRAY, "counted against a question that it never asked"),
)

_STORED: Final = sa.union_all(
    sa.select(RESERVATIONS.c.question, SETTLEMENTS.c.seq, SETTLEMENTS.c.stored.label("version"), SETTLEMENTS.c.digest)
    .join_from(SETTLEMENTS, RESERVATIONS)
    .where(SETTLEMENTS.c.stored > 0),
    sa.select(ACTS.c.name, ACTS.c.seq, ACTS.c.amount, ACTS.c.digest).where(ACTS.c.kind == "carried"),
).subquery("stored")

_NEWEST: Final = sa.select(
    _STORED,
    sa.func.row_number().over(partition_by=_STORED.c.question, order_by=_STORED.c.seq.desc()).label("age"),
).subquery("newest")

_LATEST: Final = sa.select(_NEWEST).where(_NEWEST.c.age == 1).subquery("latest")

_KEPT: Final = sa.select(
    MEASUREMENTS.c.question,
    MEASUREMENTS.c.version,
    MEASUREMENTS.c.blob,
    MEASUREMENTS.c.digest.label("sealed"),
    _LATEST.c.version.label("booked"),
    _LATEST.c.digest,
).outerjoin_from(MEASUREMENTS, _LATEST, _LATEST.c.question == MEASUREMENTS.c.question)

_LOST: Final = (
    sa.select(_LATEST.c.question)
    .outerjoin_from(_LATEST, MEASUREMENTS, _LATEST.c.question == MEASUREMENTS.c.question)
    .where(MEASUREMENTS.c.question.is_(None))
)


def check(connection: sa.Connection, since: Seal | None = None) -> list[str]:
    """Return the ways in which the books contradict themselves, at most `MOST_FAULTS`; none in good books.

    With a seal, the hashes of the records up to it are not computed again.
    """
    everything = chain(
        _pages(connection),
        _chain(connection, since or Seal(0, _start(connection))),
        _seals(connection),
        _sums(connection),
        _entries(connection),
        _measurements(connection),
    )
    return list(islice(everything, MOST_FAULTS))


def require_good(connection: sa.Connection, noted: str | None = None, *, since: str | None = None) -> Seal:
    """Return the end of the chain of good books; refuse books that contradict themselves, or lost a noted head."""
    sealed = None if since is None else _sealed_at(connection, since)
    faults = check(connection, sealed)
    noted = noted or (since if sealed is None else None)
    end = connection.execute(sa.select(TOTALS)).one()
    if noted is not None and not _has_head(connection, noted):
        faults.append(f"the noted head {noted[:12]} is not in the chain: it was rewritten, or is an older copy")
    if faults:
        raise LedgerError(
            "the books contradict themselves",
            rule="every total is what its entries come to, and every record is as it was written",
            got="; ".join(faults),
            next_step="restore the ledger from a copy, and charge nothing more to it",
        )
    return Seal(end.records, end.head)


def _sealed_at(connection: sa.Connection, head: str) -> Seal | None:
    """Return the number of the record with a hash; None where there is none."""
    for table in _MOMENTS:
        number = connection.execute(sa.select(table.c.seq).where(table.c.hash == head)).scalar()
        if number is not None:
            return Seal(number, head)
    return None


def _has_head(connection: sa.Connection, head: str) -> bool:
    """Tell whether a hash that was noted earlier is still a link of the chain."""
    return head == _start(connection) or any(
        connection.execute(sa.select(sa.literal(1)).where(table.c.hash == head)).first() for table in _MOMENTS
    )


def has_record(connection: sa.Connection, number: int, head: str) -> bool:
    """Tell whether the chain has this record; usually it is the last one, or the one before."""
    tip = rows.totals(connection).tip
    if (tip.records, tip.head) == (number, head):
        return True
    if number == 0:
        return head == _start(connection)
    return any(
        connection.execute(sa.select(sa.literal(1)).where(table.c.seq == number, table.c.hash == head)).first()
        for table in _MOMENTS
    )


def require_noted(connection: sa.Connection, noted: Noted | None, place: Path) -> None:
    """Refuse a ledger that went back behind its witness, or has another one's.

    Guarantee: every record that the witness knew when it was read is in the chain.
    Proof: docs/proofs/ledger.witness.md.
    Assumes: the witness was read before the transaction began, or is held.
    Rounds: nothing.
    """
    if noted is None:
        return
    terms = connection.execute(sa.select(TERMS.c.identity, TERMS.c.budget)).one()
    require_same(noted, terms.identity, place)
    if not has_record(connection, noted.records, noted.head):
        raise went_back(place, noted, rows.totals(connection), budget=terms.budget)


def _start(connection: sa.Connection) -> str:
    """Return the hash of the terms, with which the chain begins."""
    return link("", TERMS.name, dict(connection.execute(sa.select(TERMS)).mappings().one()))


def _pages(connection: sa.Connection) -> Iterator[str]:
    """Give damaged pages of a file."""
    if connection.dialect.name == "sqlite":
        pages = connection.exec_driver_sql("PRAGMA quick_check").scalars()
        yield from (f"page check: {text}" for text in pages if text != "ok")


def require_sealed(connection: sa.Connection) -> None:
    """Refuse books whose totals, terms or working copies are not as they were written; quick, for every opening."""
    require_copies(connection, require_terms(connection))


def require_terms(connection: sa.Connection) -> Totals:
    """Refuse terms that are not as they were written; return the totals, which say what they were."""
    held = rows.totals(connection)
    if held.terms != _start(connection):
        raise damaged("the terms of the ledger are not what was written", "the totals carry a hash of the terms")
    return held


def _seals(connection: sa.Connection) -> Iterator[str]:
    """Give what `require_sealed` refuses."""
    try:
        require_sealed(connection)
    except LedgerError as error:
        yield error.what


def _chain(connection: sa.Connection, since: Seal) -> Iterator[str]:
    """Give every record after a seal that is missing, or not as it was written; reads one record at a time."""
    terms = connection.execute(sa.select(TERMS)).one()
    head, last, clock = since.head, since.records, terms.made_at
    for number, table, row in heapq.merge(*(_records(connection, table, last) for table in _MOMENTS), key=_number):
        if number != last + 1:
            yield f"record {last + 1} is missing" if number > last else f"record {number} is there twice"
        if link(head, table.name, row) != row["hash"]:
            yield f"record {number} (of {table.name}) or one before it was changed"
        head, last = row["hash"], number
        moment = row[_MOMENTS[table]]
        clock = max(clock, moment) if isinstance(moment, int) else clock
    end = connection.execute(sa.select(TOTALS)).one()
    if end.only != 1 or terms.only != 1:
        yield "terms and totals are not the first row of their tables"
    if (end.records, end.head) != (last, head):
        yield f"the chain ends at record {last} ({head[:12]}), the totals say {end.records} ({str(end.head)[:12]})"
    if end.clock != clock and (not since.records or end.records > since.records):
        yield f"the latest moment is {clock}, the totals say {end.clock}"


def _number(record: tuple[int, sa.Table, Any]) -> int:
    """Return a record's number."""
    return record[0]


def _records(connection: sa.Connection, table: sa.Table, after: int) -> Iterator[tuple[int, sa.Table, Any]]:
    """Give one table's records after a number, by their number."""
    wanted = sa.select(table).order_by(table.c.seq)
    found = connection.execute(wanted.where(table.c.seq > after) if after else wanted, execution_options=_STREAMED)
    names = [column.name for column in table.columns]
    for row in found:
        record = dict(zip(names, row, strict=True))
        yield (record["seq"] if type(record["seq"]) is int else -1), table, record


def _sums(connection: sa.Connection) -> Iterator[str]:
    """Give every total that is not what its entries come to."""
    budget = connection.execute(sa.select(TERMS.c.budget)).scalar_one()
    spent = connection.execute(sa.select(TOTALS.c.spent)).scalar_one()
    due = _due(connection)
    total = due.pop((WHOLE, "", ""), 0)
    if spent != total:
        yield f"running total {spent}, entries sum to {total}"
    if total > budget:
        yield f"entries sum to {total}, over the budget of {budget}"
    coins, allowed = _deltas(connection)
    if coins is None or coins > allowed:
        yield f"deltas for keys sum to {coins}, over the {allowed} that are set aside"
    booked = connection.execute(sa.select(TOTALS.c.coins)).scalar_one()
    if booked != str(coins):
        yield f"deltas for keys sum to {coins}, the totals say {booked}"
    shares = _shares(connection)
    for row in connection.execute(sa.select(ACCOUNTS)):
        account = (row.allotment, row.partition, row.part)
        owed, share = due.pop(account, 0), None if row.partition else shares.pop(row.allotment, None)
        if row.spent != owed:
            yield f"account {account} says {row.spent}, its entries come to {owed}"
        if row.share != share:
            yield f"account {account} has a share of {row.share}, allotted was {share}"
        if share is not None and owed > share:
            yield f"account {account} spent {owed}, over its share of {share}"
    yield from (f"account {account} is missing; its entries come to {owed}" for account, owed in due.items() if owed)
    yield from (f"the allotment of {name} is missing" for name in shares)


def _deltas(connection: sa.Connection) -> tuple[int | None, int]:
    """Return the coins that searches for keys were charged (None where one is not a number), and those set aside."""
    allowed = int(connection.execute(sa.select(TERMS.c.keys_delta)).scalar_one())
    coins = list(connection.execute(sa.select(KEY_DELTAS.c.coins)).scalars())
    return (sum(map(int, coins)) if all(text.isdecimal() for text in coins) else None), allowed


def _due(connection: sa.Connection) -> dict[tuple[str, str, str], int]:
    """Return what every account should say, from the entries: sums outside partitions, and the maximum over parts."""
    parts: dict[tuple[str, str, str], int] = {}
    due: dict[tuple[str, str, str], int] = {}
    for allotment, partition, part, charged in connection.execute(_SUMS):
        for owner in {WHOLE, allotment}:
            place, kept = (owner, partition, part), (parts if partition else due)
            kept[place] = kept.get(place, 0) + int(charged)
    most: dict[tuple[str, str], int] = {}
    for (owner, partition, _), charged in parts.items():
        most[owner, partition] = max(most.get((owner, partition), 0), charged)
    for (owner, _), charged in most.items():
        due[owner, "", ""] = due.get((owner, "", ""), 0) + charged
    return due | parts


def _shares(connection: sa.Connection) -> dict[str, int]:
    """Return every allotment's latest share."""
    acts = sa.select(ACTS.c.name, ACTS.c.amount).where(ACTS.c.kind == "allotted").order_by(ACTS.c.seq)
    return {row.name: row.amount for row in connection.execute(acts)}


def _entries(connection: sa.Connection) -> Iterator[str]:
    """Give every entry that breaks a rule of its own."""
    for rule, meaning in _RULES:
        for number in connection.execute(rule.limit(MOST_FAULTS)).scalars():
            yield f"entry {number} is {meaning}"


def _measurements(connection: sa.Connection) -> Iterator[str]:
    """Give every stored measurement that is not the one that was booked last."""
    for row in connection.execute(_KEPT, execution_options=_STREAMED):
        if (row.version, hashlib.sha256(_bytes(row.blob)).hexdigest()) != (row.booked, row.digest):
            yield f"the measurement of question {row.question!r} is not the one that was booked"
        elif row.sealed != rows.sealed_measurement(row.question, Stored(row.version, _bytes(row.blob))):
            yield f"the hash of the measurement of question {row.question!r} is not its own"
    for question in connection.execute(_LOST.limit(MOST_FAULTS)).scalars():
        yield f"the measurement of question {question!r} is missing"


def _bytes(blob: object) -> bytes:
    """Return a blob as bytes; a text in its place is some other measurement."""
    return blob if isinstance(blob, bytes) else repr(blob).encode()
