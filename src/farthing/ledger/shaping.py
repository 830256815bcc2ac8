"""The tables made in an empty database, their triggers, and the header that every ledger has."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger.chain import Tip, Totals, link
from farthing.ledger.entry import Terms
from farthing.ledger.rows import now
from farthing.ledger.tables import APPEND_ONLY, FORMAT, INDEXES, META, TERMS, TOTALS

if TYPE_CHECKING:
    from collections.abc import Iterable

APPLICATION_ID: Final = 0x66726468
"""Marks a SQLite database as a ledger ("frdh")."""

FORMATS: Final = sa.Table("format", sa.MetaData(), sa.Column("version", sa.Integer, nullable=False))
"""Where PostgreSQL keeps the version of the tables; SQLite has a place for it in its header."""

_REFUSE: Final = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'entries are only ever added' USING ERRCODE = 'integrity_constraint_violation'; END $$
"""


@dataclass(frozen=True, slots=True)
class Header:
    """What is fixed in a ledger.

    Attributes:
        terms: the promise it keeps.
        identity: tells it apart from every other ledger.
        hash_key: 64 random bits, a salt for engines.
    """

    terms: Terms
    identity: str
    hash_key: int


def build(connection: sa.Connection, terms: Terms) -> None:
    """Write an empty ledger's tables and terms into an empty database."""
    make_tables(connection, META.sorted_tables)
    make_append_only(connection, APPEND_ONLY)
    index_records(connection)
    mark(connection)
    made_at = now()
    row = {
        "only": 1,
        "identity": secrets.token_hex(16),
        "hash_key": secrets.token_bytes(8),
        "currency": terms.currency,
        "budget": terms.budget,
        "delta": str(terms.delta),
        "keys_delta": str(terms.keys_delta),
        "unit": terms.unit,
        "description": terms.description,
        "made_at": made_at,
    }
    connection.execute(sa.insert(TERMS), row)
    head = link("", "terms", row)
    start = Totals(0, Tip(0, head, made_at), 0, 0, head)
    connection.execute(sa.insert(TOTALS), {"only": 1, **start.row()})


def make_tables(connection: sa.Connection, chosen: Iterable[sa.Table]) -> None:
    """Make tables."""
    for table in chosen:
        connection.exec_driver_sql(_made(table, connection.dialect))


@lru_cache(maxsize=64)
def _made(table: sa.Table, dialect: sa.Dialect) -> str:
    """Return the text that makes a table: all SQLite ledgers of a process have one dialect, so it is made once."""
    return str(sa.schema.CreateTable(table).compile(dialect=dialect))


def index_records(connection: sa.Connection) -> None:
    """Let rows be found by what they are sought by, where no older version of farthing saw to it."""
    for name, what in INDEXES.items():
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {name} ON {what}")


def is_indexed(connection: sa.Connection) -> bool:
    """Return whether a SQLite file has the indexes of `index_records`."""
    found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'index'").scalars()
    return set(INDEXES) <= set(found)


def make_append_only(connection: sa.Connection, chosen: Iterable[sa.Table]) -> None:
    """Let the database itself refuse to change or delete what was booked."""
    if connection.dialect.name == "sqlite":
        for table in chosen:
            for action in ("UPDATE", "DELETE"):
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {table.name}_refuse_{action.lower()} BEFORE {action} ON {table.name} "
                    f"BEGIN SELECT RAISE(ABORT, 'entries are only ever added'); END"
                )
        return
    if connection.exec_driver_sql("SELECT to_regproc('refuse') IS NULL").scalar_one():
        connection.exec_driver_sql(_REFUSE)
    for table in chosen:
        connection.exec_driver_sql(
            f"CREATE TRIGGER refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON {table.name} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION refuse()"
        )


def mark(connection: sa.Connection) -> None:
    """Mark the database as a ledger of the newest format."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version={FORMAT}")
        return
    if connection.exec_driver_sql(f"SELECT to_regclass('{FORMATS.name}') IS NULL").scalar_one():
        connection.execute(sa.schema.CreateTable(FORMATS))
        connection.execute(sa.insert(FORMATS), {"version": FORMAT})
    connection.execute(sa.update(FORMATS).values(version=FORMAT))


def header(connection: sa.Connection, place: object) -> Header:
    """Read what is fixed in a ledger."""
    row = connection.execute(sa.select(TERMS)).one()
    try:
        terms = Terms(
            currency=row.currency,
            budget=row.budget,
            delta=int(row.delta),
            keys_delta=int(row.keys_delta),
            unit=row.unit,
            description=row.description,
        )
        return Header(terms, row.identity, int.from_bytes(row.hash_key))
    except (ValueError, TypeError, AttributeError, LedgerError) as error:
        raise LedgerError(
            "the ledger's terms were damaged",
            rule="terms are fixed when a ledger is made",
            got=f"{place} ({error})",
            next_step="restore it from a copy; what it had charged stays spent",
        ) from None


def refuse_format(version: int, place: object) -> None:
    """Refuse ledgers from the future, and numbers that no format ever had."""
    if version > FORMAT:
        raise LedgerError(
            "the ledger is from a newer version of farthing",
            rule=f"this version reads formats up to {FORMAT}",
            got=f"{place} (format {version})",
            next_step="upgrade farthing",
        )
    if version < 1:
        raise LedgerError(
            "the ledger's format was damaged",
            rule=f"formats are numbered 1 to {FORMAT}",
            got=f"{place} (format {version})",
            next_step="restore it from a copy; what it had charged stays spent",
        )
