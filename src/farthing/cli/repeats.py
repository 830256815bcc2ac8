"""What a free repeat prints is kept, so that the same command is answered again without loading anything heavy.

What `farthing ask` prints is a function of its words, of the settings, of the files that it reads and of the books. So
the output of a free repeat is kept with the state of all of these, and printed again as long as none has changed. Only
released numbers are kept, in a private folder of the user who saw them. Nothing here answers: where anything differs,
the question is asked as ever.

A charge changes what every repeat prints: how much is left. So the command that was charged asks again, as ever, what
was free before it, while all that this needs is loaded.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SETTING: Final = "FARTHING_REPEATS"
"""The environment variable that names the folder of what is kept, or says `none`."""

NONE: Final = "none"
_COMMAND: Final = "ask"
_MOST: Final = 200
_MOST_RENEWED: Final = 5
"""So many repeats are asked again after a charge, the latest: each takes about a tenth of a second."""

_MOST_ROWS: Final = 1_000
"""Answers of more rows are not asked again: that could take long."""

_LASTING: Final = (["serve"], ["mcp"])
"""Commands that end when somebody stops them, who does not wait for more."""

_SIZE: Final = 3
_LOGS: Final = ("-wal", "-journal")
"""Behind the ledger's name: its logs."""

_SHAPING: Final = (
    "FARTHING_", "LC_", "LANG", "PYTHON", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_",
    "CLICOLOR", "JUPYTER_", "TYPER_", "UNICODE_VERSION", "USER", "LOGNAME",
)  # fmt: skip
"""How the names begin of environment variables that an output may depend on."""


@dataclass(frozen=True, slots=True)
class _Running:
    """The command that runs now.

    Attributes:
        args: its words.
        at: where its output will be kept.
        renewed: whether only what it prints is wanted, and only if that is free.
    """

    args: list[str]
    at: Path
    renewed: bool = False


_RUNNING: ContextVar[_Running | None] = ContextVar("running", default=None)


@dataclass
class KeptRepeats:
    """The files that an output depends on, as they were before the question was read.

    Attributes:
        running: the command; None where nothing is kept.
        files: the state of each file.
        found: the files of each pattern.
        books: the ledger's file; None for books on a server.
        rows: of the answer.
    """

    running: _Running | None
    files: dict[str, Any] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)
    books: Path | None = None
    rows: int = 0

    @classmethod
    def begun(cls) -> KeptRepeats:
        """Return what watches the command that runs now; nothing where `main` did not start it."""
        return cls(_RUNNING.get())

    @property
    def renewed(self) -> bool:
        """Whether nobody reads what the command prints: it is only to be kept, and nothing may be paid."""
        return self.running is not None and self.running.renewed

    def watch(self, paths: Iterable[str | Path]) -> None:
        """Note the state of files, and which files a pattern names."""
        for path in map(str, paths):
            if glob.has_magic(path) and not Path(path).exists():
                self.found[path] = _listed(path)
                self.files |= {each: _state(each) for each in self.found[path]}
            else:
                self.files[str(Path(path).absolute())] = _state(path)

    def keep(self, out: bytes, err: bytes, witness: str | None) -> None:
        """Keep an output, unless a file has changed since, or the books since their witness was read."""
        if self.running is None or self.books is None or witness is None or _witness(self.books) != witness:
            return
        held: dict[str, Any] = {
            "files": self.files,
            "found": self.found,
            "books": str(self.books),
            "state": _books(self.books),
        }
        if _holds(held):
            held |= {"args": self.running.args, "rows": self.rows}
            with suppress(OSError):
                _write(self.running.at, {**held, "out": out.decode("latin-1"), "err": err.decode("latin-1")})

    @property
    def witness(self) -> str | None:
        """What the witness of the books says now; None where there is none."""
        return None if self.books is None else _witness(self.books)


@contextmanager
def keeping(args: list[str], run: Callable[[list[str]], object]) -> Iterator[bool]:
    """Print what is kept for a command and give True; else give False, and let the command keep what it prints.

    What was free before the command and what it changes are run again after it.
    """
    at = _place(args)
    kept = None if at is None else _read(at)
    if kept is not None:
        for stream, text in ((sys.stdout, kept["out"]), (sys.stderr, kept["err"])):
            stream.flush()
            stream.buffer.write(text.encode("latin-1"))
            stream.flush()
        yield True
        return
    free, process = [] if args[:1] in _LASTING else _latest(at), os.getpid()
    token = _RUNNING.set(None if at is None else _Running(args, at))
    try:
        yield False
    finally:
        _RUNNING.reset(token)
        if isinstance(sys.exception(), SystemExit | None) and os.getpid() == process:
            _renew(free, run)


def _latest(at: Path | None) -> list[tuple[Path, dict[str, Any]]]:
    """Return what is kept of the latest commands, but for one, as far as it would be printed again here and now."""
    folder = _folder()
    with suppress(OSError, KeyError, TypeError):
        there = sorted((each for each in folder.glob("*.json") if each != at), key=_changed) if folder else []
        read = [(path, _read(path)) for path in there[-_MOST_RENEWED:]]
        here = [(path, kept) for path, kept in read if kept is not None and _place(kept["args"]) == path]
        return [(path, kept) for path, kept in here if kept["rows"] <= _MOST_ROWS]
    return []


def _renew(free: list[tuple[Path, dict[str, Any]]], run: Callable[[list[str]], object]) -> None:
    """Ask again, where it is free, what was kept before a charge and says what was left then."""
    for path, kept in free:
        if _books(Path(kept["books"])) != kept["state"]:
            token = _RUNNING.set(_Running(kept["args"], path, renewed=True))
            try:
                with suppress(Exception, SystemExit), recorded():
                    run(kept["args"])
            except KeyboardInterrupt:
                return
            finally:
                _RUNNING.reset(token)


@contextmanager
def recorded() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Give what is printed meanwhile, on stdout and on stderr, in place of printing it."""
    real, taken = (sys.stdout, sys.stderr), (io.BytesIO(), io.BytesIO())
    made = [_Recorder(into, like) for into, like in zip(taken, real, strict=True)]
    sys.stdout, sys.stderr = made
    try:
        yield taken
    finally:
        sys.stdout, sys.stderr = real
        for each in made:
            each.detach()  # what was written stays readable


class _Recorder(io.TextIOWrapper):
    """A stream that keeps what is written, and looks like another: a terminal, or none."""

    def __init__(self, into: io.BytesIO, like: Any) -> None:
        super().__init__(into, encoding=like.encoding, errors=like.errors, write_through=True)
        self._like = like

    def isatty(self) -> bool:
        """Return whether the other is a terminal."""
        return bool(self._like.isatty())

    def fileno(self) -> int:
        """Return the other's number, by which the width of a terminal is known."""
        return int(self._like.fileno())


def _folder() -> Path | None:
    """Return the folder of what is kept, None where nothing is."""
    named = os.environ.get(SETTING, "").strip()
    if named.casefold() == NONE or any(name.startswith("_") and "COMPLETE" in name for name in os.environ):
        return None
    with suppress(OSError, RuntimeError):
        return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "farthing"
    return None


def _place(args: list[str]) -> Path | None:
    """Return where the output of a command is kept, None where none is."""
    base = _folder()
    if base is None or args[:1] != [_COMMAND]:
        return None
    shaping = sorted((name, value) for name, value in os.environ.items() if name.startswith(_SHAPING))
    user = os.getuid() if hasattr(os, "getuid") else ""
    with suppress(OSError, ValueError):
        faces = [_face(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
        facts = [VERSION, sys.version, user, str(Path.cwd()), args, shaping, faces]
        return base / f"{hashlib.sha256(json.dumps(facts).encode()).hexdigest()}.json"
    return None


def _face(stream: Any) -> list[Any]:
    """Return what an output may depend on of a stream: its encoding, and the size of its terminal."""
    terminal = stream.isatty()
    return [terminal, (stream.encoding or "").casefold(), *(os.get_terminal_size(stream.fileno()) if terminal else ())]


def _read(at: Path) -> dict[str, Any] | None:
    """Return what is kept in a file of ours, if it still holds."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        if hasattr(os, "getuid") and at.stat().st_uid != os.getuid():
            return None
        kept: dict[str, Any] = json.loads(at.read_bytes())
        if _holds(kept):
            return kept
    return None


def _holds(kept: dict[str, Any]) -> bool:
    """Return whether every file, every pattern and the books are as they were."""
    same = all(_state(path) == state for path, state in kept["files"].items())
    found = all(_listed(pattern) == files for pattern, files in kept["found"].items())
    return same and found and _books(Path(kept["books"])) == kept["state"]


def _state(path: str | Path) -> list[int] | None:
    """Return what tells the state of a file: place, names, size, and when it was changed; None where there is none."""
    with suppress(OSError):
        about = os.stat(path)  # noqa: PTH116  # quick
        return [about.st_dev, about.st_ino, about.st_nlink, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    return None


def _listed(pattern: str) -> list[str]:
    """Return the files of a pattern."""
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # absolute


def _books(ledger: Path) -> list[Any]:
    """Return the state of a ledger: of its files, and what its witness noted with the last charge.

    Who looks at a ledger may leave an empty log, which is as good as none.
    """
    logs = [_state(ledger.with_name(ledger.name + end)) for end in _LOGS]
    files = [_state(ledger), *(log if log and log[_SIZE] else None for log in logs)]
    return [*files, _state(_beside(ledger)), _witness(ledger)]


def _beside(ledger: Path) -> Path:
    """Return where the witness of a ledger is."""
    return ledger.with_name(ledger.name + "-head")


def _witness(ledger: Path) -> str | None:
    """Return a digest of a ledger's witness; None where there is none."""
    with suppress(OSError):
        return hashlib.sha256(_beside(ledger).read_bytes()).hexdigest()
    return None


def _changed(path: Path) -> int:
    """Return when a file was changed."""
    return path.stat().st_mtime_ns


def _write(at: Path, kept: dict[str, Any]) -> None:
    """Write what is kept, whole or not at all, for its user alone; the oldest go where there are too many."""
    at.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = at.with_suffix(f".{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(kept, file)
    draft.replace(at)
    there = sorted(at.parent.glob("*.json"), key=_changed)
    for path in there[:-_MOST]:
        path.unlink(missing_ok=True)
