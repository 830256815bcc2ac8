"""Where the embedded engine puts rows that do not fit into memory: a private folder, gone with its process.

The folder has a random name and is its owner's alone (mode 0700), whatever the files in it are. It is removed when the
engine is closed or its process ends. What a process that was killed left is removed by the next that makes one: the
lock that the owner held is free then.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

SETTING: Final = "FARTHING_SPILL"
"""The environment variable that names the folder for such folders, or says `none`."""

NONE: Final = "none"
_PREFIX: Final = "farthing-spill-"


class Spill:
    """One private folder, of this process.

    Guarantee: no other user reads what is written into it, and it is removed when the process ends; if the process was
        killed, when the next one of that user makes such a folder in the same place.
    Proof: mode 0700 from `mkdtemp`; the lock on the folder is held as long as its process lives, and given back by the
        kernel; who finds it free removes the folder.
    Assumes: a system with `flock`; on others what a killed process left stays.
    Rounds: nothing.

    Args:
        where: the folder in which it is made.
    """

    def __init__(self, where: Path) -> None:
        _sweep(where)
        self._handle: int | None
        self.path, self._handle = _made(where)
        self.remove: Callable[[], object] = weakref.finalize(self, _remove, self.path, self._handle, os.getpid())

    def leave(self) -> None:
        """In a forked child: it is the parent's, who holds its lock without us."""
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)


def place() -> Path | None:
    """Return where private folders are made, None where nothing is to be written; see `SETTING`.

    Raises:
        DataError: there is no such folder, or it may not be written.
    """
    named = os.environ.get(SETTING, "").strip()
    if named.casefold() == NONE:
        return None
    where = Path(named or tempfile.gettempdir()).absolute()
    if where.is_dir() and os.access(where, os.W_OK):
        return where
    raise DataError(
        "the disk has no room for data that do not fit into memory",
        rule=f"{SETTING} names a folder that may be written, or is `{NONE}`; without it the system's folder is taken",
        got=where,
        next_step=f"make the folder, or set {SETTING}={NONE}: questions then fail where memory does not suffice",
    )


def _made(where: Path) -> tuple[Path, int | None]:
    """Make a folder and lock it; make another if somebody took it for a dead one before it was locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
        with suppress(FileNotFoundError):
            handle = _locked(folder, wait=True)
            if folder.exists():
                return folder, handle
            if handle is not None:
                os.close(handle)


def _sweep(where: Path) -> None:
    """Remove the folders of this user whose processes are gone."""
    for folder in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "geteuid") and about.st_uid != os.geteuid()):
                continue
            handle = _locked(folder, wait=False)
            if handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)


def _locked(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where the system cannot lock folders, or where it is held and nobody waits."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _remove(folder: Path, handle: int | None, owner: int) -> None:
    """Remove a folder, if it is this process's own."""
    if os.getpid() != owner:
        return
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        with suppress(OSError):
            os.close(handle)
