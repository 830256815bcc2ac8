"""How a ledger comes to be, and how a file is known to be one, without ever changing what is not ours.

A new ledger is built whole under another name and then linked to its own, which fails if the name is taken: two
processes may create the same ledger at once, and a crash leaves no half of one.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from farthing.errors import LedgerError
from farthing.ledger.books import Books
from farthing.ledger.entry import Terms
from farthing.ledger.tables import APPEND_ONLY, FORMAT, META, TERMS, TOTALS

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID: Final = 0x66726468
"""Marks a SQLite database as a ledger ("frdh")."""

_SIDE_FILES: Final = ("-wal", "-journal")


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
            got=f"{path!r} ({error})",
            next_step="check it",
        ) from error
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


def create(path: Path, terms: Terms) -> None:
    """Make a ledger file, whole or not at all; leave it alone when another process made it first."""
    _refuse_leftovers(path)
    try:
        with _draft(path) as draft:
            books = Books(draft)
            try:
                build(books, terms)
            finally:
                books.close()
            os.link(draft, path)
        _sync_folder(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise LedgerError(
            "the ledger cannot be made here",
            rule="its folder must be writable, on a disk with hard links",
            got=f"{path} ({error.strerror})",
            next_step="choose a writable folder on a local disk",
        ) from error


def build(books: Books, terms: Terms) -> None:
    """Write an empty ledger's tables and terms into an empty database."""
    books.use_write_ahead_log()
    with books.writing() as connection:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version={FORMAT}")
        for table in META.sorted_tables:
            connection.execute(sa.schema.CreateTable(table))
        for table in APPEND_ONLY:
            for action in ("UPDATE", "DELETE"):
                connection.exec_driver_sql(
                    f"CREATE TRIGGER {table.name}_refuse_{action.lower()} BEFORE {action} ON {table.name} "
                    f"BEGIN SELECT RAISE(ABORT, 'entries are only ever added'); END"
                )
        connection.execute(sa.insert(TOTALS).values(only=1, spent=0))
        connection.execute(
            sa.insert(TERMS).values(
                only=1,
                identity=secrets.token_hex(16),
                hash_key=secrets.token_bytes(8),
                currency=terms.currency,
                budget=terms.budget,
                delta=str(terms.delta),
                keys_delta=str(terms.keys_delta),
                unit=terms.unit,
                description=terms.description,
                made_at=time.time_ns() // 1000,
            )
        )


def header(books: Books) -> Header:
    """Read what is fixed in a ledger, or say why it is none."""
    with books.reading() as connection:
        application_id = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        _refuse_others(application_id, version, books.path)
        row = connection.execute(sa.select(TERMS)).one()
    terms = Terms(
        currency=row.currency,
        budget=row.budget,
        delta=int(row.delta),
        keys_delta=int(row.keys_delta),
        unit=row.unit,
        description=row.description,
    )
    return Header(terms, row.identity, int.from_bytes(row.hash_key))


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
        return _read(Books(path, mode="ro", timeout_s=timeout_s), path)
    except LedgerError:
        if os.access(path.parent, os.W_OK, effective_ids=_EFFECTIVE) or _leftovers(path):
            raise
    # In a folder where SQLite may not keep its lock file, a ledger that was closed can be read as it lies.
    return _read(Books(path, mode="immutable", timeout_s=timeout_s), path)


def _read(books: Books, path: Path) -> tuple[Books, Header]:
    """Read a ledger's header and size, and close the books on any error."""
    try:
        found = header(books)
        _refuse_cut_off(books, path)
    except BaseException:
        books.close()
        raise
    return books, found


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


def _refuse_others(application_id: int, version: int, path: Path | None) -> None:
    """Refuse databases that are not ledgers, and ledgers from the future."""
    if application_id != APPLICATION_ID:
        raise LedgerError(
            "this file is not a ledger",
            rule="a ledger is a file that farthing made",
            got=f"{path} (another SQLite database)",
            next_step="name another file",
        )
    if version > FORMAT:
        raise LedgerError(
            "the ledger is from a newer version of farthing",
            rule=f"this version reads formats up to {FORMAT}",
            got=f"{path} (format {version})",
            next_step="upgrade farthing",
        )


def _leftovers(path: Path) -> list[Path]:
    """Return what a crashed writer left beside a ledger and SQLite would read into it."""
    beside = [path.with_name(path.name + end) for end in _SIDE_FILES]
    return [file for file in beside if file.exists() and file.stat().st_size > 0]


def _refuse_leftovers(path: Path) -> None:
    """Refuse to make a new ledger beside the log of an old one, which SQLite would read into it."""
    leftovers = _leftovers(path)
    if leftovers and not path.exists():  # in this order: another process may be making the ledger right now
        raise LedgerError(
            "a ledger's log is here, but the ledger is not",
            rule="a new ledger needs a name without leftovers",
            got=", ".join(map(str, leftovers)),
            next_step="restore the ledger file, or delete its log if its charges do not matter any more",
        )


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give an empty file, mode 0600, in the ledger's folder; remove that name at the end."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a new name durable, where folders can be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
