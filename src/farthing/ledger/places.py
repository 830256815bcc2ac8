"""Where a ledger's file lies: under one name, with the log and the locks of everybody else who uses it.

SQLite keeps its log and its locks beside the *name* of a file. Two names of one file (a hard link, a mount of the file
alone, as `docker run -v rides.ledger:...` makes one) have two logs and two sets of locks; a file that was moved or
deleted under an open session has a log that nobody else reads. In each case two processes would spend one budget twice.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from farthing.errors import LedgerError

BESIDE: Final = ("-wal", "-shm")
"""The log of an open ledger, and its locks."""

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")

_Inode = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """By which files an open connection reads and writes, as their names told right after it was opened.

    Guarantee: while `require_unmoved` passes, whoever opens the ledger under its name opens the files of this
        connection: its log, and its locks.
    Proof: docs/proofs/ledger.witness.md.
    Assumes: the kernel names files by device and inode, and lists mounts in /proc (Linux).
    Rounds: nothing.

    Attributes:
        path: the ledger's file.
        inodes: device and inode of the file, its log and its locks.
    """

    path: Path
    inodes: tuple[_Inode, ...]

    @classmethod
    def of(cls, path: Path) -> LedgerPlace:
        """Return where a ledger lies whose log is open; refuse a file that has another name, or is a mount."""
        require_one_name(path)
        return cls(path, _inodes(path))

    def require_same(self, before: LedgerPlace) -> None:
        """Refuse another file than an earlier connection's; its log and locks come and go with the connections."""
        if self.inodes[0] != before.inodes[0]:
            raise _moved(self.path, "another file is there now")

    def require_unmoved(self) -> None:
        """Refuse a file that is not where it was, has got another name, or lost its log or its locks."""
        if _inodes(self.path) != self.inodes:
            raise _moved(self.path, "another file is there now")


def require_one_name(path: Path) -> None:
    """Refuse a ledger's file that has a second name, or is mounted by itself."""
    require_no_mount(path)
    _inode(path, links=True)


def require_no_mount(path: Path) -> None:
    """Refuse a ledger's file that is mounted by itself."""
    if _mounted(path):
        raise LedgerError(
            "the ledger's file is mounted by itself",
            rule="its log and its locks lie beside it: a process that mounts the file alone has others, and "
            "the budget would be spent twice",
            got=path,
            next_step="mount the folder that it lies in, as in `docker run -v /data/books:/data/books`",
        )


def _inodes(path: Path) -> tuple[_Inode, ...]:
    """Return device and inode of a ledger, its log and its locks."""
    beside = (_inode(path.with_name(path.name + end)) for end in BESIDE)
    return (_inode(path, links=True), *beside)


def _inode(path: Path, *, links: bool = False) -> _Inode:
    """Return device and inode of a file; refuse one that is gone, or has a second name."""
    try:
        about = path.stat()
    except OSError as error:
        missing = error.strerror or type(error).__name__
    else:
        if links and stat.S_ISREG(about.st_mode) and about.st_nlink != 1:
            raise _linked(path, about)
        return about.st_dev, about.st_ino
    raise _moved(path, missing)


def _moved(path: Path, how: str) -> LedgerError:
    """Return the error of files that are not where they were."""
    return LedgerError(
        "the ledger was moved, deleted or replaced while it was open",
        rule="the file, its -wal and its -shm stay in their places while a session is open: what is charged elsewhere "
        "is seen by nobody",
        got=f"{path} ({how})",
        next_step="put it back, or close all its sessions and open it where it is now; if it is lost, count its whole "
        "budget as spent",
    )


def _linked(path: Path, about: os.stat_result) -> LedgerError:
    """Return the error of a file with several names."""
    return LedgerError(
        "the ledger's file has another name",
        rule="a log and locks belong to a name: under two of them the budget would be spent twice",
        got=f"{path} ({about.st_nlink} hard links)",
        next_step=f"find the other name with `find / -xdev -inum {about.st_ino}` and remove it",
    )


def _mounted(path: Path) -> bool:
    """Return whether a file is a mount of its own; where mounts are not listed, whether its device tells so."""
    if not sys.platform.startswith("linux"):
        return path.stat().st_dev != path.parent.stat().st_dev
    try:
        listed = _MOUNTS.read_bytes()
    except OSError as error:
        problem = error.strerror
    else:
        wanted = os.fsencode(path)
        return any(_unescaped(line.split(b" ")[4]) == wanted for line in listed.splitlines())
    raise LedgerError(
        "the mounts of this machine cannot be listed",
        rule="a ledger's file that is mounted by itself is not used, since its budget would be spent twice",
        got=f"{_MOUNTS} ({problem})",
        next_step="mount /proc",
    )


def _unescaped(name: bytes) -> bytes:
    """Return a path as mountinfo writes it, with blanks and the like as they are."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), name)
