"""A second witness beside a ledger's file: how far its chain had come, so that a ledger that went back is noticed.

SQLite cannot tell a write-ahead log that lost its tail from one that never had it, and no file can tell that it is an
older copy of itself. So every transaction that changes the books is noted here after it is on disk, and before its
receipt is handed out. The ledger may be ahead of its witness (a crash in between), never behind.

Two slots are written in turn, in place: a write that is torn spoils one, and the other still stands.

Whoever writes the ledger holds the witness locked from before its transaction until the note is made. So writers come
one at a time, whatever SQLite makes of its own locks, and each sees what the one before it noted.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from farthing.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from farthing.ledger.chain import Totals

SUFFIX: Final = "-head"
"""Behind the ledger's name: `rides.ledger-head`."""

_SLOT: Final = 512
"""Bytes of one slot; a disk writes as many at once."""

_PAUSE_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Noted:
    """How far a ledger had come.

    Attributes:
        identity: which ledger.
        records: how many records its chain had.
        head: the hash of the last one.
        spent: farthings charged.
    """

    identity: str
    records: int
    head: str
    spent: int

    @classmethod
    def of(cls, identity: str, totals: Totals) -> Noted:
        """Return what there is to note of totals."""
        return cls(identity, totals.tip.records, totals.tip.head, totals.spent)

    def slot(self) -> bytes:
        """Return the bytes of a slot, with a hash of their own."""
        facts = json.dumps([self.identity, self.records, self.head, self.spent], separators=(",", ":")).encode()
        text = hashlib.sha256(facts).hexdigest().encode() + b" " + facts
        return text.ljust(_SLOT - 1) + b"\n"

    @classmethod
    def from_slot(cls, slot: bytes) -> Noted | None:
        """Return what a slot says; None when it was torn or never written."""
        digest, _, facts = slot.strip().partition(b" ")
        if hashlib.sha256(facts).hexdigest().encode() != digest:
            return None
        return cls(*json.loads(facts))


@dataclass(frozen=True, slots=True)
class Witness:
    """The file of one ledger.

    Guarantee: while the file is kept, a ledger that lost a transaction whose receipt was given out is not opened.
    Proof: docs/proofs/ledger.witness.md.
    Assumes: the disk keeps what it has synced; nobody changes both files consistently.
    Rounds: nothing.

    Attributes:
        path: where it is.
        timeout_s: how long to wait for another process that is writing it.
    """

    path: Path
    timeout_s: float = 30.0

    @classmethod
    def beside(cls, ledger: Path, timeout_s: float = 30.0) -> Witness:
        """Return the witness of a ledger's file."""
        return cls(ledger.with_name(ledger.name + SUFFIX), timeout_s)

    def read(self) -> Noted | None:
        """Return the latest that was noted; None when nothing was.

        Raises:
            LedgerError: neither of its slots can be read.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(self.path, error) from None
        return _latest(text, self.path)

    def note(self, noted: Noted, *, sync: bool) -> None:
        """Note how far the ledger has come, in a turn of its own; see `Held.note`."""
        with self.held(new=True) as held:
            held.note(noted, sync=sync)

    def accept(self, noted: Noted) -> None:
        """Take the ledger as it is now for the whole of it: the owner's act, after a loss."""
        with self.held(new=True) as held:
            held.start(noted)

    @contextmanager
    def held(self, wait_s: float | None = None, *, new: bool = False) -> Iterator[Held]:
        """Give the open file, which no other process or thread holds meanwhile.

        Args:
            wait_s: how long to wait for the others; by default the time limit.
            new: whether to make the file where there is none.

        Raises:
            LedgerError: another process holds it too long, it is missing, or it cannot be opened.
        """
        try:
            handle = self._opened(time.monotonic() + (self.timeout_s if wait_s is None else wait_s), new=new)
        except BlockingIOError:
            problem = _locked(self.path)
        except FileNotFoundError:
            problem = missing(self.path)
        except OSError as error:
            problem = _failed(self.path, error)
        else:
            try:
                yield Held(self.path, handle)
            finally:
                os.close(handle)
            return
        raise problem

    def _opened(self, deadline: float, *, new: bool) -> int:
        """Open and lock the file that has the name now."""
        while True:
            fresh = new and not self.path.exists()
            handle = os.open(self.path, os.O_RDWR | (os.O_CREAT if new else 0), 0o600)
            try:
                if fresh:
                    sync_folder(self.path.parent)
                _lock(handle, deadline)
                if _has_name(handle, self.path):
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)


@dataclass(frozen=True, slots=True)
class Held:
    """The witness of a ledger in the hands of the one who writes it.

    Attributes:
        path: where it is.
        handle: the open file, locked.
    """

    path: Path
    handle: int

    def latest(self) -> Noted | None:
        """Return the latest that was noted; None when nothing was.

        Raises:
            LedgerError: neither of its slots can be read.
        """
        try:
            return _latest(os.pread(self.handle, 2 * _SLOT, 0), self.path)
        except OSError as error:
            problem = error
        raise _failed(self.path, problem)

    def note(self, noted: Noted, *, sync: bool) -> None:
        """Note how far the ledger has come, unless more was noted before.

        Args:
            noted: what is on the ledger's disk already.
            sync: whether to wait for the disk. Not where a loss of the note would leave more charged than was used.

        Raises:
            LedgerError: the ledger is another one; or the file cannot be written.
        """
        before = self.latest()
        require_same(before, noted.identity, self.path)
        try:
            if before is None or before.records <= noted.records:
                os.pwrite(self.handle, noted.slot(), noted.records % 2 * _SLOT)
            if sync:
                _sync(self.handle)
        except OSError as error:
            problem = error
        else:
            return
        raise _failed(self.path, problem)

    def start(self, noted: Noted) -> None:
        """Note how far a ledger has come, whatever was noted before: of a new one, or by its owner's word."""
        try:
            os.truncate(self.handle, 0)
        except OSError as error:
            problem = error
        else:
            self.note(noted, sync=True)
            return
        raise _failed(self.path, problem)


def _latest(text: bytes, path: Path) -> Noted | None:
    """Return the newer of two slots; None when the file is empty, as a crash may leave it when it is made."""
    slots = [text[:_SLOT], text[_SLOT : 2 * _SLOT]]
    found = [noted for noted in map(Noted.from_slot, slots) if noted is not None]
    if found:
        return max(found, key=lambda noted: noted.records)
    if not text.strip(b"\0"):
        return None
    raise LedgerError(
        "the ledger's witness is damaged",
        rule="it says how far the ledger had come, so that one that went back is noticed",
        got=path,
        next_step="run `farthing verify --accept-head` if you know that the ledger lost nothing",
    )


def _lock(handle: int, deadline: float) -> None:
    """Lock a file until it is closed, where the system has such locks; BlockingIOError after the deadline."""
    try:
        import fcntl
    except ImportError:
        return
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _has_name(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one that has the name."""
    mine = os.fstat(handle)
    try:
        named = path.stat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)


def require_same(noted: Noted | None, identity: str, path: Path) -> None:
    """Refuse the witness of another ledger."""
    if noted is not None and noted.identity != identity:
        raise LedgerError(
            "this is another ledger than the one that was here",
            rule="a ledger keeps its witness: what another one had charged is not forgotten",
            got=path,
            next_step="put that ledger back; or delete this file if its charges do not matter any more",
        )


def went_back(path: Path, noted: Noted, totals: Totals, *, budget: int) -> LedgerError:
    """Return the error of a ledger that is behind its witness."""
    lost = noted.spent - totals.spent
    return LedgerError(
        "the ledger has lost entries: it is an older copy, or its log was cut off",
        rule="every entry whose receipt was given out is there; what was lost stays spent",
        got=f"{path}: {totals.tip.records} records with head {totals.tip.head[:12]}, its witness saw {noted.records} "
        f"({100 * noted.spent / budget:.3g} % of the budget spent, {100 * max(lost, 0) / budget:.3g} % more)",
        next_step="restore the newest copy, or count the whole budget as spent; `farthing verify --accept-head "
        f"{totals.tip.head[:12]}` goes on without what was lost, and breaks the promise by as much",
    )


def missing(path: Path) -> LedgerError:
    """Return the error of a ledger without its witness."""
    return LedgerError(
        "the ledger's witness is missing",
        rule="it lies beside the ledger from the beginning, and says how far it had come: without it nobody knows "
        "whether entries were lost",
        got=path,
        next_step="move or copy it with the ledger; or, if you know that nothing was lost, `farthing verify "
        "--accept-head` with the head that `farthing verify` prints",
    )


def _locked(path: Path) -> LedgerError:
    """Return the error of a writer who waited too long."""
    return LedgerError(
        "the ledger is locked",
        rule="a writer must be free within the time limit",
        got=path,
        next_step="let the other process finish, or raise timeout_s",
    )


def _failed(path: Path, error: OSError) -> LedgerError:
    """Return the error of a witness that cannot be read or written."""
    return LedgerError(
        "the ledger's witness cannot be read and written",
        rule="how far the ledger has come is noted beside it before a receipt is given",
        got=f"{path} ({error.strerror or type(error).__name__})",
        next_step="make the file and its folder writable, on a disk with room; what was reserved stays charged",
    )


_sync = getattr(os, "fdatasync", os.fsync)
"""Waits for the disk; times of the file do not matter."""


def sync_folder(folder: Path) -> None:
    """Make a new name durable, where folders can be synced."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
