"""A second witness beside a ledger's file: how far its chain had come, so that a ledger that went back is noticed.

SQLite cannot tell a write-ahead log that lost its tail from one that never had it, and no file can tell that it is an
older copy of itself. So every transaction that changes the books is noted here after it is on disk, and before its
receipt is handed out. The ledger may be ahead of its witness (a crash in between), never behind.

Two slots are written in turn, in place: a write that is torn spoils one, and the other still stands.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager, suppress
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
        return self._latest(text)

    def note(self, noted: Noted, *, sync: bool) -> None:
        """Note how far the ledger has come, unless another process noted more.

        Args:
            noted: what is on the ledger's disk already.
            sync: whether to wait for the disk. Not where a loss of the note would leave more charged than was used.

        Raises:
            LedgerError: the ledger is behind, or is another one; or the file cannot be written.
        """
        try:
            with self._locked() as handle:
                before = self._latest(os.read(handle, 2 * _SLOT))
                require_same(before, noted.identity, self.path)
                if before is None or before.records <= noted.records:  # else another process noted more already
                    os.lseek(handle, noted.records % 2 * _SLOT, os.SEEK_SET)
                    os.write(handle, noted.slot())
                if sync:
                    _sync(handle)
        except OSError as error:
            raise _failed(self.path, error) from None

    def accept(self, noted: Noted) -> None:
        """Take the ledger as it is now for the whole of it: the owner's act, after a loss."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.note(noted, sync=True)

    def _latest(self, text: bytes) -> Noted | None:
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
            got=self.path,
            next_step="run `farthing verify --accept-head` if you know that the ledger lost nothing",
        )

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Give the open file, which no other process writes meanwhile."""
        new = not self.path.exists()
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if new:
                sync_folder(self.path.parent)
            self._lock(handle)
            yield handle
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        """Lock the file until it is closed, where the system has such locks."""
        try:
            import fcntl
        except ImportError:
            return
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return


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
