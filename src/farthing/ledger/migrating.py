"""Older formats carried over to the newest, inside one transaction: all of it or nothing.

Format 1 knew no chain, who, parts or allotments. Its entries are chained as they are found: reservations by number,
then what became of them, then the measurements that are stored, then the note that this was done. Format 2 knew no
delta of searches for keys: it gets an empty table for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import tables
from farthing.ledger.chain import Tip, link
from farthing.ledger.checking import check
from farthing.ledger.process import user
from farthing.ledger.rows import Act, add_act, advance, append, digest, tip_of
from farthing.ledger.shaping import make_append_only, make_tables, mark

if TYPE_CHECKING:
    from collections.abc import Iterator

_REMADE: Final = (tables.UNSETTLED, tables.SETTLEMENTS, tables.RESERVATIONS, tables.TOTALS)  # what refers, first
_NEW: Final = (tables.RESERVATIONS, tables.SETTLEMENTS, tables.UNSETTLED, tables.TOTALS, tables.ACTS, tables.ACCOUNTS)
_ADDED: Final = (tables.KEY_DELTAS,)
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
    if version == 2:
        add_tables(connection)
        return
    for table in _REMADE:
        connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME TO old_{table.name}")
    make_tables(connection, (*_NEW, *_ADDED))
    spent = connection.exec_driver_sql("SELECT spent FROM old_totals").scalar_one()
    terms = dict(connection.execute(sa.select(tables.TERMS)).mappings().one())
    start = Tip(0, link("", tables.TERMS.name, terms), terms["made_at"])
    connection.execute(sa.insert(tables.TOTALS), {"only": 1, "spent": spent, **start._asdict()})
    connection.exec_driver_sql("INSERT INTO unsettled SELECT question, reservation FROM old_unsettled")
    advance(connection, _chained(connection, start), 0)
    for table in _REMADE:
        connection.exec_driver_sql(f"DROP TABLE old_{table.name}")
    make_append_only(connection, (tables.RESERVATIONS, tables.SETTLEMENTS, tables.ACTS, *_ADDED))
    mark(connection)
    faults = check(connection)
    if faults:
        raise LedgerError(
            "the books of the older format contradict themselves",
            rule="only good books are carried over to a newer format; nothing was changed",
            got="; ".join(faults),
            next_step="restore the ledger from a copy, and charge nothing more to it",
        )


def add_tables(connection: sa.Connection) -> None:
    """Carry tables of format 2 over, within the caller's transaction: make those that it did not have."""
    make_tables(connection, _ADDED)
    make_append_only(connection, _ADDED)
    mark(connection)
    tip = tip_of(connection.execute(sa.select(tables.TOTALS)).one())
    advance(connection, add_act(connection, Act(kind="migrated", name="format 2", amount=2, digest=""), user(), tip), 0)


def _chained(connection: sa.Connection, tip: Tip) -> Tip:
    """Write every old entry as a record of the chain, and return its end."""
    for old in _rows(connection, "SELECT * FROM old_reservations ORDER BY id"):
        row = {**old, "exclusive": bool(old["exclusive"])} | _NOWHERE | _UNKNOWN
        tip = append(connection, tables.RESERVE, row, tip._replace(clock=max(tip.clock, old["opened_at"])))
    for old in _rows(connection, "SELECT * FROM old_settlements ORDER BY reservation"):
        row = old | {"stored": 0, "digest": ""} | _UNKNOWN
        tip = append(connection, tables.CLOSE, row, tip._replace(clock=max(tip.clock, old["closed_at"])))
    for stored in _rows(connection, "SELECT question, version, blob FROM measurements ORDER BY question"):
        carried = Act(kind="carried", name=stored["question"], amount=stored["version"], digest=digest(stored["blob"]))
        tip = add_act(connection, carried, user(), tip)
    return add_act(connection, Act(kind="migrated", name="format 1", amount=1, digest=""), user(), tip)


def _rows(connection: sa.Connection, query: str) -> Iterator[dict[str, Any]]:
    """Give the rows of a query, one at a time."""
    yield from map(dict, connection.exec_driver_sql(query).mappings())
