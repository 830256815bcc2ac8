"""Older formats carried over to the newest, inside one transaction: all of it or nothing.

Format 1 knew no chain, who, parts or allotments. Its entries are chained as they are found: reservations by number,
then what became of them, then the measurements that are stored, then the note that this was done. Format 2 knew no
delta of searches for keys: it gets an empty table for them. Format 3 had no hashes of its totals, accounts and
measurements: the whole books are verified once, and sealed. Format 4 had no looks, no list of what is open, and no
tags: it gets empty tables, and its chain stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import tables
from farthing.ledger.accounts import resealed
from farthing.ledger.chain import Tip, Totals, link, unsettled
from farthing.ledger.checking import check
from farthing.ledger.entry import Stored
from farthing.ledger.process import user
from farthing.ledger.rows import Act, add_act, advance, append, sealed_measurement
from farthing.ledger.shaping import make_append_only, make_tables, mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_REMADE: Final = (tables.UNSETTLED, tables.SETTLEMENTS, tables.RESERVATIONS, tables.TOTALS)  # what refers, first
_NEW: Final = (tables.RESERVATIONS, tables.SETTLEMENTS, tables.UNSETTLED, tables.TOTALS, tables.ACTS, tables.ACCOUNTS)
_FIFTH: Final = (tables.LOOKS, tables.OPENED, tables.TAGS)
_ADDED: Final = {2: (tables.KEY_DELTAS, tables.DATA_SETS, *_FIFTH), 3: (tables.DATA_SETS, *_FIFTH), 4: _FIFTH}
_SEALS: Final = {"totals": ("coins", "copies", "terms", "seal"), "accounts": ("seal",), "measurements": ("digest",)}
_SEALED: Final = 4
"""The first format whose totals and working copies carry hashes."""

_STILL_OPEN: Final = (
    "INSERT INTO opened (reservation, question, looks) SELECT u.reservation, u.question, 0 FROM unsettled u "
    "WHERE NOT EXISTS (SELECT 1 FROM settlements s WHERE s.reservation = u.reservation)"
)
_UNKNOWN: Final = {"who": "", "behind": 0}
_NOWHERE: Final = {"target": "", "allotment": "", "partition": "", "part": ""}


def migrate(connection: sa.Connection) -> None:
    """Carry SQLite's tables of an older format over, within the caller's transaction, if no other process was first.

    Raises:
        LedgerError: the old books contradict themselves; the caller's transaction undoes everything.
    """
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if version == tables.FORMAT:
        return
    if version > 1:
        add_tables(connection, version)
        return
    for table in _REMADE:
        connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME TO old_{table.name}")
    make_tables(connection, (*_NEW, *_ADDED[2]))
    _add_columns(connection, ("measurements",))
    _add_tagged(connection)
    spent = connection.exec_driver_sql("SELECT spent FROM old_totals").scalar_one()
    terms = dict(connection.execute(sa.select(tables.TERMS)).mappings().one())
    start = Tip(0, link("", tables.TERMS.name, terms), terms["made_at"])
    begun = Totals(spent, start, 0, 0, start.head)
    connection.execute(sa.insert(tables.TOTALS), {"only": 1, **begun.row()})
    connection.exec_driver_sql("INSERT INTO unsettled SELECT question, reservation FROM old_unsettled")
    tip = _chained(connection, start)
    for table in _REMADE:
        connection.exec_driver_sql(f"DROP TABLE old_{table.name}")
    make_append_only(connection, (tables.RESERVATIONS, tables.SETTLEMENTS, tables.ACTS, *_only_added(2)))
    mark(connection)
    connection.exec_driver_sql(_STILL_OPEN)
    _sealed(connection, begun, tip)


def add_tables(connection: sa.Connection, version: int) -> None:
    """Carry tables of formats 2 to 4 over, within the caller's transaction: make what they did not have.

    Format 2 had no delta of searches for keys, format 3 no hashes of the totals and of the working copies, and no
    data sets; format 4 no looks, and no hints of what is open and of what can answer what.
    """
    make_tables(connection, _ADDED[version])
    make_append_only(connection, _only_added(version))
    _add_tagged(connection)
    connection.exec_driver_sql(_STILL_OPEN)
    mark(connection)
    if version == _SEALED:  # no record was changed: the chain is as it was
        return
    _add_columns(connection, _SEALS)
    row = connection.execute(sa.select(tables.TOTALS)).one()
    terms = link("", tables.TERMS.name, dict(connection.execute(sa.select(tables.TERMS)).mappings().one()))
    texts = connection.execute(sa.select(tables.KEY_DELTAS.c.coins)).scalars()
    coins = sum(int(text) for text in texts if text.isdecimal())  # others are faults, found below
    held = Totals(row.spent, Tip(row.records, row.head, row.clock), coins, 0, terms)
    note = Act(kind="migrated", name=f"format {version}", amount=version, digest="")
    _sealed(connection, held, add_act(connection, note, user(), held.tip))


def _only_added(version: int) -> list[sa.Table]:
    """Return those of the tables that a format did not have to which rows are only ever added."""
    return [table for table in _ADDED[version] if table in tables.APPEND_ONLY]


def _add_tagged(connection: sa.Connection) -> None:
    """Add the column that says which measurements have tags: none of the older ones."""
    connection.exec_driver_sql("ALTER TABLE measurements ADD COLUMN tagged BIGINT NOT NULL DEFAULT 0")


def _add_columns(connection: sa.Connection, chosen: Iterable[str]) -> None:
    """Add the columns of hashes, empty, to tables that had none."""
    for name in chosen:
        for column in _SEALS[name]:
            connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")


def _sealed(connection: sa.Connection, held: Totals, tip: Tip) -> None:
    """Seal totals, accounts and measurements for the first time; refuse books that contradict themselves."""
    copies = resealed(connection)
    for row in connection.execute(sa.select(tables.UNSETTLED)):
        copies += unsettled(row.question, row.reservation)
    for key in connection.execute(sa.select(tables.MEASUREMENTS.c.question)).scalars().all():
        row = connection.execute(tables.LOAD, {"question": key}).one()
        hashed = sealed_measurement(key, Stored(row.version, row.blob))
        found = {"key": key, "next": row.version, "bytes": row.blob, "hash": hashed}
        connection.execute(tables.SHARPEN, found)
    advance(connection, held.after(tip, copies=copies))
    faults = check(connection)
    if faults:
        raise LedgerError(
            "the books of the older format contradict themselves",
            rule="only good books are carried over to a newer format; nothing was changed",
            got="; ".join(faults),
            next_step="restore the ledger from a copy, and charge nothing more to it",
        )


def _chained(connection: sa.Connection, tip: Tip) -> Tip:
    """Write every old entry as a record of the chain, and return its end."""
    for old in _rows(connection, "SELECT * FROM old_reservations ORDER BY id"):
        row = {**old, "exclusive": bool(old["exclusive"])} | _NOWHERE | _UNKNOWN
        tip = append(connection, tables.RESERVE, row, tip._replace(clock=max(tip.clock, old["opened_at"])))
    for old in _rows(connection, "SELECT * FROM old_settlements ORDER BY reservation"):
        row = old | {"stored": 0, "digest": ""} | _UNKNOWN
        tip = append(connection, tables.CLOSE, row, tip._replace(clock=max(tip.clock, old["closed_at"])))
    for stored in _rows(connection, "SELECT question, version, blob FROM measurements ORDER BY question"):
        held = Stored(stored["version"], stored["blob"])
        carried = Act(kind="carried", name=stored["question"], amount=held.version, digest=held.digest)
        tip = add_act(connection, carried, user(), tip)
    return add_act(connection, Act(kind="migrated", name="format 1", amount=1, digest=""), user(), tip)


def _rows(connection: sa.Connection, query: str) -> Iterator[dict[str, Any]]:
    """Give the rows of a query, one at a time."""
    yield from map(dict, connection.exec_driver_sql(query).mappings())
