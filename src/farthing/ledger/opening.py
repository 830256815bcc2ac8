"""How a file or a schema is known to be a ledger, and opened, without ever changing what is not ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import rows
from farthing.ledger.books import Books
from farthing.ledger.checking import require_good, require_noted, require_sealed, require_terms
from farthing.ledger.making import EFFECTIVE, create, leftovers, refuse_cut_off, remove_drafts
from farthing.ledger.migrating import add_tables, migrate
from farthing.ledger.places import require_no_mount, require_one_name
from farthing.ledger.postgres import PostgresStore
from farthing.ledger.shaping import (
    APPLICATION_ID,
    FORMATS,
    Header,
    build,
    header,
    index_records,
    is_indexed,
    refuse_format,
)
from farthing.ledger.sqlite import SqliteStore
from farthing.ledger.tables import FORMAT, TERMS
from farthing.ledger.witness import Noted, Witness, missing
from farthing.urls import is_address

if TYPE_CHECKING:
    from farthing.ledger.entry import Terms
    from farthing.ledger.sqlite import Mode

WITNESSED: Final = 4
"""The first format that has a witness beside it from the start."""

_LEAST_HEAD: Final = 12
_ROOM: Final = len("-journal")
_NAME_MAX: Final = 255
_SHOWN: Final = 120


def opened(path: str | Path | None, terms: Terms, timeout_s: float) -> tuple[Books, Header]:
    """Open the ledger at a path or URL to write it, making it if there is none; None keeps the books in memory."""
    if path is None:
        books = Books(SqliteStore(None, timeout_s=timeout_s))
        with books.building() as connection:
            build(connection, terms)
            return books, header(connection, "memory")
    if is_address(path):
        return _served(PostgresStore.of(str(path), timeout_s=timeout_s), terms)
    place = located(path)
    if not place.exists():
        create(place, terms)
    found = _known(place, timeout_s)
    found.terms.require(terms)
    require_writable(place)
    _log_ahead(place, timeout_s)
    books = Books(SqliteStore(place, timeout_s=timeout_s))
    books.identity = found.identity
    _renew(books)
    try:
        with books.reading() as connection:
            require_sealed(connection)
    except BaseException:
        books.close()
        raise
    return books, found


def _renew(books: Books) -> None:
    """Carry a file of an older format over, and give it the indexes that older versions did not make."""
    with books.reading() as connection:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        indexed = is_indexed(connection)
    if version < FORMAT or not indexed:
        with books.building() as connection:
            migrate(connection)
            index_records(connection)


def _known(place: Path, timeout_s: float) -> Header:
    """Look at a ledger's file before it is written: it is one, whole, under one name, beside its witness."""
    reader, found = inspected(place, timeout_s)
    reader.close()
    require_no_mount(place)
    witness = Witness.beside(place, timeout_s)
    if _format_in(place) < WITNESSED:
        require_writable(place)
        with witness.held(new=True):
            pass
    if not witness.path.exists():
        raise missing(witness.path)
    if place.stat().st_nlink > 1:  # as long as it is being made
        with witness.held():
            remove_drafts(place)
    require_one_name(place)
    return found


def _log_ahead(place: Path, timeout_s: float) -> None:
    """Let a file keep a write-ahead log, as every ledger does; SQLite's own copies (`VACUUM INTO`) come without."""
    books = Books(SqliteStore(place, "draft", timeout_s))
    try:
        with books.outside() as connection:
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal":
                return
            with Witness.beside(place, timeout_s).held():
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    finally:
        books.close()


def looked_at(path: str | Path, timeout_s: float) -> tuple[Books, Header]:
    """Open an existing ledger, at a path or URL, without being able to change it."""
    if is_address(path):
        return _served(PostgresStore.of(str(path), writable=False, timeout_s=timeout_s), None)
    return inspected(located(path), timeout_s)


def _served(store: PostgresStore, terms: Terms | None) -> tuple[Books, Header]:
    """Open a ledger on a server; make it if there is none and terms are given."""
    books = Books(store)
    try:
        with books.reading() as connection:
            found = _header_on(connection, store)
        if found is None:
            found = _made_on(books, store, terms)
        if terms is not None:
            found.terms.require(terms)
            _carry_over(books)
            with books.reading() as connection:
                require_sealed(connection)
    except BaseException:
        books.close()
        raise
    return books, found


def _carry_over(books: Books) -> None:
    """Carry a ledger of an older format on a server over, once, whichever process comes first."""
    with books.reading() as connection:
        version = connection.execute(sa.select(FORMATS.c.version)).scalar_one()
    if version == FORMAT:
        return
    with books.building() as connection:
        version = connection.execute(sa.select(FORMATS.c.version).with_for_update()).scalar_one()
        if version < FORMAT:
            add_tables(connection, version)
            index_records(connection)


def _made_on(books: Books, store: PostgresStore, terms: Terms | None) -> Header:
    """Make a ledger in its schema, whole or not at all; take the one of another process that was first."""
    if terms is None:
        raise LedgerError(
            "there is no ledger here",
            rule="the schema must hold one",
            got=store.place,
            next_step="check the URL, or ask first",
        )
    with books.building() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {store.schema}")
        found = _header_on(connection, store)
        if found is None:
            build(connection, terms)
            found = header(connection, store.place)
    return found


def _header_on(connection: sa.Connection, store: PostgresStore) -> Header | None:
    """Read the header of a ledger on a server; None when its schema is empty."""
    tables = set(sa.inspect(connection).get_table_names(schema=store.schema))
    if not tables:
        return None
    if not {FORMATS.name, TERMS.name} <= tables:
        raise LedgerError(
            "this schema is not a ledger",
            rule="a ledger has a schema of its own",
            got=store.place,
            next_step="name another: ?schema=NAME",
        )
    version = connection.execute(sa.select(FORMATS.c.version)).scalar_one()
    refuse_format(version, store.place)
    if version < 2:
        raise LedgerError(
            "the ledger's format was damaged",
            rule="books on PostgreSQL began with format 2",
            got=f"{store.place} (format {version})",
            next_step="restore it from a copy; what it had charged stays spent",
        )
    if version < FORMAT and not store.writable:
        raise LedgerError(
            "the ledger is of an older format",
            rule="looking at a ledger changes nothing, so it is not carried over now",
            got=f"{store.place} (format {version})",
            next_step="open it once to ask a question: farthing plan does",
        )
    return header(connection, store.place)


def located(path: str | Path) -> Path:
    """Return the absolute path of a ledger whose folder exists."""
    try:
        place = Path(path).expanduser().resolve()
        is_folder = place.is_dir()
        has_parent = place.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise LedgerError(
            "the ledger's path cannot be reached",
            rule="a path of a file",
            got=f"{str(path)[:_SHOWN]!r} ({getattr(error, 'strerror', None) or type(error).__name__})",
            next_step="check it",
        ) from error
    if len(os.fsencode(place.name)) + _ROOM > _name_max(place.parent):
        raise LedgerError(
            "the ledger's name is too long",
            rule=f"its log and its witness lie beside it, with up to {_ROOM} letters more",
            got=f"{place.name[:_SHOWN]!r} ({len(os.fsencode(place.name))} bytes)",
            next_step="choose a shorter name",
        )
    if is_folder:
        raise LedgerError("the path is a folder", rule="a ledger is one file", got=place, next_step="name a file in it")
    if not has_parent:
        raise LedgerError(
            "the ledger's folder is missing",
            rule="the folder must exist before the ledger",
            got=place.parent,
            next_step="make the folder first",
        )
    return place


def _name_max(folder: Path) -> int:
    """Return how many bytes a file's name may have."""
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):
        return _NAME_MAX


def inspected(path: Path, timeout_s: float) -> tuple[Books, Header]:
    """Open an existing ledger without being able to change it."""
    if not path.exists():
        raise LedgerError(
            "there is no ledger here", rule="the file must exist", got=path, next_step="check the path, or ask first"
        )
    if path.stat().st_size == 0:
        # An empty file may be a ledger that was cut off: taking it for a new one would forget what it had charged.
        raise LedgerError(
            "the ledger file is empty",
            rule="a ledger is never empty, not even a new one",
            got=path,
            next_step="restore it from a copy; delete it only if it never was a ledger",
        )
    try:
        return _read(path, "ro", timeout_s)
    except LedgerError:
        if os.access(path.parent, os.W_OK, effective_ids=EFFECTIVE) or leftovers(path):
            raise
    # In a folder where SQLite may not keep its lock file, a ledger that was closed can be read as it lies.
    return _read(path, "immutable", timeout_s)


def _read(path: Path, mode: Mode, timeout_s: float) -> tuple[Books, Header]:
    """Open a file to look at it; one of an older format as a copy in memory, carried over to ours."""
    noted = Witness.beside(path).read()  # first: the ledger only moves on
    books = Books(SqliteStore(path, mode, timeout_s))
    try:
        with books.reading() as connection:
            version = _format_of(connection, path)
            found = header(connection, path)
        refuse_cut_off(books, path)
        if version < FORMAT:
            books.close()
            books = Books(SqliteStore(path, "carried", timeout_s))
        with books.reading() as connection:
            require_noted(connection, noted, path)
            require_terms(connection)
    except BaseException:
        books.close()
        raise
    return books, found


def accept(path: str | Path, head: str) -> None:
    """Take a ledger's file for the whole of it, though its witness saw more: the owner's act.

    Args:
        path: the ledger's file.
        head: the end of its chain now, or at least its first 12 digits: what is accepted was looked at.

    Raises:
        LedgerError: the ledger has another head, or contradicts itself; nothing is changed.
    """
    place = located(path)
    books = Books(SqliteStore(place, "ro" if _format_in(place) == FORMAT else "carried"))
    try:
        with books.reading() as connection:
            require_good(connection)
            totals, identity = rows.totals(connection), header(connection, place).identity
    finally:
        books.close()
    if len(head) < _LEAST_HEAD or not totals.tip.head.startswith(head):
        raise LedgerError(
            "the ledger has another head",
            rule=f"what is accepted is named by at least {_LEAST_HEAD} digits of its head",
            got=f"{head}, the ledger's is {totals.tip.head}",
            next_step="look at the ledger again before you accept it",
        )
    Witness.beside(place).accept(Noted.of(identity, totals))


def require_writable(path: Path) -> None:
    """Refuse a file or folder in which no charge could be written."""
    for place in (path, path.parent):
        if not os.access(place, os.W_OK, effective_ids=EFFECTIVE):
            raise LedgerError(
                "the ledger is read-only",
                rule="a charge must be written before noise is drawn",
                got=place,
                next_step="make the file and its folder writable",
            )


def _format_in(place: Path) -> int:
    """Return the format of a ledger file."""
    books = Books(SqliteStore(place, "ro"))
    try:
        with books.reading() as connection:
            return _format_of(connection, place)
    finally:
        books.close()


def _format_of(connection: sa.Connection, path: Path) -> int:
    """Return the format of a ledger file; refuse databases that are not ledgers, and ledgers from the future."""
    application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if application_id != APPLICATION_ID:
        raise LedgerError(
            "this file is not a ledger",
            rule="a ledger is a file that farthing made",
            got=f"{path} (another SQLite database)",
            next_step="name another file",
        )
    refuse_format(version, path)
    return version
