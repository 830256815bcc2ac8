"""Which process made a reservation, and whether it still runs."""

from __future__ import annotations

import getpass
import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_DEAD = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Process:
    """A process, told apart from later ones with the same number by when it started.

    Attributes:
        pid: its number.
        host: the name of its machine.
        started: boot and clock tick at which it started, or "" where the system does not say.
    """

    pid: int
    host: str
    started: str

    def alive(self) -> bool | None:
        """Tell whether it still runs; None when this machine cannot know. Best effort, for people to read.

        >>> this_process().alive()
        True
        """
        if self.host != platform.node() or os.name != "posix":
            return None
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            pass
        return self.started == _started(self.pid) if self.started else True


def this_process() -> Process:
    """Return the process that asks.

    >>> this_process().pid == os.getpid()
    True
    """
    return _process(os.getpid())


@lru_cache(maxsize=1)
def user() -> str:
    """Return the name of the operating system's user, or its number where it has no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


@lru_cache(maxsize=1)
def _process(pid: int) -> Process:
    """Look the process up once; a forked child has another pid."""
    return Process(pid, platform.node(), _started(pid))


def _started(pid: int) -> str:
    """Return boot and start tick of a running process, "" when it is gone or the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # The command's name may hold spaces and brackets; the fields are counted behind its last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _DEAD else f"{boot}/{fields[19]}"
