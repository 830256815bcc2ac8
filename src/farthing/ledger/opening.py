"""How a ledger comes to be, and how a file is known to be one, without ever changing what is not ours.

A new ledger is built whole under another name and then linked to its own, which fails if the name is taken: two
processes may create the same ledger at once, and a crash leaves no half of one.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger import rows
from farthing.ledger.books import Books
from farthing.ledger.checking import has_record, require_good, require_sealed
from farthing.ledger.migrating import add_tables, migrate
from farthing.ledger.postgres import Postgres, is_url
from farthing.ledger.shaping import APPLICATION_ID, FORMATS, Header, build, header, refuse_format
from farthing.ledger.sqlite import Sqlite
from farthing.ledger.tables import FORMAT, TERMS
from farthing.ledger.witness import SUFFIX, Noted, Witness, require_same, sync_folder, went_back

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.ledger.entry import Terms
    from farthing.ledger.sqlite import Mode

_SIDE_FILES: Final = ("-wal", "-journal")
_LEAST_HEAD: Final = 12
_ROOM: Final = len("-journal")
_NAME_MAX: Final = 255
_SHOWN: Final = 120


def opened(path: str | Path | None, terms: Terms, timeout_s: float) -> tuple[Books, Header]:
    """Open the ledger at a path or URL to write it, making it if there is none; None keeps the books in memory."""
    if path is None:
        books = Books(Sqlite(None, timeout_s=timeout_s))
        with books.building() as connection:
            build(connection, terms)
            return books, header(connection, "memory")
    if is_url(path):
        return _served(Postgres.of(str(path), timeout_s=timeout_s), terms)
    place = located(path)
    if not place.exists():
        create(place, terms)
    reader, found = inspected(place, timeout_s)
    reader.close()
    found.terms.require(terms)
    require_writable(place)
    books = Books(Sqlite(place, timeout_s=timeout_s))
    books.identity = found.identity
    with books.reading() as connection:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if version < FORMAT:
        with books.building() as connection:
            migrate(connection)
    try:
        with books.reading() as connection:
            require_sealed(connection)
    except BaseException:
        books.close()
        raise
    return books, found


def looked_at(path: str | Path, timeout_s: float) -> tuple[Books, Header]:
    """Open an existing ledger, at a path or URL, without being able to change it."""
    if is_url(path):
        return _served(Postgres.of(str(path), writable=False, timeout_s=timeout_s), None)
    return inspected(located(path), timeout_s)


def _served(store: Postgres, terms: Terms | None) -> tuple[Books, Header]:
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


def _made_on(books: Books, store: Postgres, terms: Terms | None) -> Header:
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


def _header_on(connection: sa.Connection, store: Postgres) -> Header | None:
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


def create(path: Path, terms: Terms) -> None:
    """Make a ledger file, whole or not at all; leave it alone when another process made it first."""
    _refuse_leftovers(path)
    try:
        with _draft(path) as draft:
            _fill(draft, terms)
            os.link(draft, path)
        sync_folder(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise LedgerError(
            "the ledger cannot be made here",
            rule="its folder must be writable, on a disk with hard links",
            got=f"{path} ({error.strerror})",
            next_step="choose a writable folder on a local disk",
        ) from error


def _fill(draft: Path, terms: Terms) -> None:
    """Write an empty ledger into an empty file; readers will go on while one process writes (WAL).

    It is written without a log, so that a commit means that all of it is in the file, and read again before it gets
    its name: a disk that fills up in between leaves nothing.
    """
    books = Books(Sqlite(draft))
    try:
        with books.building() as connection:
            build(connection, terms)
        with books.outside() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    finally:
        books.close()
    reader = Books(Sqlite(draft, "ro"))
    try:
        with reader.reading() as connection:
            require_good(connection)
        _refuse_cut_off(reader, draft)
    finally:
        reader.close()


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
        if os.access(path.parent, os.W_OK, effective_ids=_EFFECTIVE) or _leftovers(path):
            raise
    # In a folder where SQLite may not keep its lock file, a ledger that was closed can be read as it lies.
    return _read(path, "immutable", timeout_s)


def _read(path: Path, mode: Mode, timeout_s: float) -> tuple[Books, Header]:
    """Open a file to look at it; one of an older format as a copy in memory, carried over to ours."""
    noted = Witness.beside(path).read()  # first: the ledger only moves on
    books = Books(Sqlite(path, mode, timeout_s))
    try:
        with books.reading() as connection:
            version = _format_of(connection, path)
            found = header(connection, path)
        _refuse_cut_off(books, path)
        if version < FORMAT:
            books.close()
            books = Books(Sqlite(path, "carried", timeout_s))
        _require_all(books, found, path, noted)
    except BaseException:
        books.close()
        raise
    return books, found


def _require_all(books: Books, found: Header, place: Path, noted: Noted | None) -> None:
    """Refuse a ledger that went back behind its witness."""
    if noted is None:
        return
    require_same(noted, found.identity, place)
    with books.reading() as connection:
        if not has_record(connection, noted.records, noted.head):
            raise went_back(place, noted, rows.totals(connection), budget=found.terms.budget)


def accept(path: str | Path, head: str) -> None:
    """Take a ledger's file for the whole of it, though its witness saw more: the owner's act.

    Args:
        path: the ledger's file.
        head: the end of its chain now, or at least its first 12 digits: what is accepted was looked at.

    Raises:
        LedgerError: the ledger has another head, or contradicts itself; nothing is changed.
    """
    place = located(path)
    books = Books(Sqlite(place, "ro"))
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


def _refuse_cut_off(books: Books, path: Path) -> None:
    """Refuse a file that is shorter than its pages: SQLite does not notice a cut inside the last one."""
    with books.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        needed = pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    # While there is a log, the last pages may still be in it.
    if not _leftovers(path) and path.stat().st_size < needed:
        raise LedgerError(
            "the ledger file is damaged or cut off",
            rule="every page of a ledger must be there",
            got=f"{path} ({path.stat().st_size} of {needed} bytes)",
            next_step="restore it from a copy; what it had charged stays spent",
        )


def require_writable(path: Path) -> None:
    """Refuse a file or folder in which no charge could be written."""
    for place in (path, path.parent):
        if not os.access(place, os.W_OK, effective_ids=_EFFECTIVE):
            raise LedgerError(
                "the ledger is read-only",
                rule="a charge must be written before noise is drawn",
                got=place,
                next_step="make the file and its folder writable",
            )


_EFFECTIVE: Final = os.access in os.supports_effective_ids


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


def _leftovers(path: Path) -> list[Path]:
    """Return what a crashed writer left beside a ledger and SQLite would read into it."""
    beside = [path.with_name(path.name + end) for end in _SIDE_FILES]
    return [file for file in beside if file.exists() and file.stat().st_size > 0]


def _refuse_leftovers(path: Path) -> None:
    """Refuse to make a new ledger beside the log of an old one, which SQLite would read into it."""
    leftovers = [*_leftovers(path), *filter(Path.exists, [path.with_name(path.name + SUFFIX)])]
    if leftovers and not path.exists():  # in this order: another process may be making the ledger right now
        raise LedgerError(
            "a ledger's log or witness is here, but the ledger is not",
            rule="a new ledger needs a name without leftovers",
            got=", ".join(map(str, leftovers)),
            next_step="restore the ledger file, or delete these if its charges do not matter any more",
        )


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give an empty file, mode 0600, in the ledger's folder; remove that name at the end."""
    handle, name = tempfile.mkstemp(prefix=".farthing-", suffix=".new", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)
