"""How a ledger's file comes to be: whole under another name, with its witness, and then under its own.

Linking it fails if the name is taken: two processes may create the same ledger at once, and a crash leaves no half of
one. Whoever makes it holds its witness meanwhile.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farthing.errors import LedgerError
from farthing.ledger import rows
from farthing.ledger.books import Books
from farthing.ledger.checking import require_good
from farthing.ledger.shaping import build, header
from farthing.ledger.sqlite import SqliteStore
from farthing.ledger.witness import Noted, Witness, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.ledger.entry import Terms
    from farthing.ledger.witness import Held

EFFECTIVE: Final = os.access in os.supports_effective_ids
_SIDE_FILES: Final = ("-wal", "-journal")
_DRAFT: Final = ".farthing-"


def create(path: Path, terms: Terms) -> None:
    """Make a ledger file, whole or not at all; leave it alone when another process made it first.

    Its witness is there before it, and is held until it is: so a ledger is never without.
    """
    _refuse_leftovers(path)
    problem = None if os.access(path.parent, os.W_OK, effective_ids=EFFECTIVE) else "Permission denied"
    try:
        if problem is None:
            with Witness.beside(path).held(new=True) as held:
                if not path.exists():
                    _refuse_leftovers(path)
                    _make(path, terms, held)
    except FileExistsError:
        return
    except OSError as error:
        problem = error.strerror
    if problem is not None:
        raise LedgerError(
            "the ledger cannot be made here",
            rule="its folder must be writable, on a disk with hard links",
            got=f"{path} ({problem})",
            next_step="choose a writable folder on a local disk",
        )


def _make(path: Path, terms: Terms, held: Held) -> None:
    """Make a ledger under another name, note that nothing was charged yet, and give it its own."""
    try:
        with _draft(path) as draft:
            held.start(_fill(draft, terms))
            os.link(draft, path)
    except BaseException:
        if not path.exists():
            held.path.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _fill(draft: Path, terms: Terms) -> Noted:
    """Write an empty ledger into an empty file; readers will go on while one process writes (WAL).

    It is written without a log, so that a commit means that all of it is in the file, and read again before it gets
    its name: a disk that fills up in between leaves nothing.

    Returns:
        What its witness is to know.
    """
    books = Books(SqliteStore(draft, "draft"))
    try:
        with books.building() as connection:
            build(connection, terms)
        with books.outside() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    finally:
        books.close()
    reader = Books(SqliteStore(draft, "ro"))
    try:
        with reader.reading() as connection:
            require_good(connection)
            noted = Noted.of(header(connection, draft).identity, rows.totals(connection))
        refuse_cut_off(reader, draft)
    finally:
        reader.close()
    return noted


def refuse_cut_off(books: Books, path: Path) -> None:
    """Refuse a file that is shorter than its pages: SQLite does not notice a cut inside the last one."""
    with books.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        needed = pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one()
    # While there is a log, the last pages may still be in it.
    if not leftovers(path) and path.stat().st_size < needed:
        raise LedgerError(
            "the ledger file is damaged or cut off",
            rule="every page of a ledger must be there",
            got=f"{path} ({path.stat().st_size} of {needed} bytes)",
            next_step="restore it from a copy; what it had charged stays spent",
        )


def leftovers(path: Path) -> list[Path]:
    """Return what a crashed writer left beside a ledger and SQLite would read into it."""
    beside = [path.with_name(path.name + end) for end in _SIDE_FILES]
    return [file for file in beside if file.exists() and file.stat().st_size > 0]


def remove_drafts(place: Path) -> None:
    """Remove the name under which a process that was killed had made a ledger."""
    for draft in place.parent.glob(f"{_DRAFT}*"):
        with suppress(OSError):
            if draft.samefile(place):
                draft.unlink()


def _refuse_leftovers(path: Path) -> None:
    """Refuse to make a new ledger beside the log of an old one, which SQLite would read into it."""
    witness = Witness.beside(path)
    noted = witness.read()
    found = [*leftovers(path), *([witness.path] if noted is not None and noted.records else [])]
    if found and not path.exists():  # in this order: another process may be making the ledger right now
        raise LedgerError(
            "a ledger's log or witness is here, but the ledger is not",
            rule="a new ledger needs a name without leftovers",
            got=", ".join(map(str, found)),
            next_step="restore the ledger file, or delete these if its charges do not matter any more",
        )


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """Give an empty file, mode 0600, in the ledger's folder; remove that name at the end."""
    handle, name = tempfile.mkstemp(prefix=_DRAFT, suffix=".new", dir=path.parent)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)
