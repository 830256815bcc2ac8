"""What a free repeat prints is kept, and printed again as long as nothing that it depends on has changed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing.cli import main, repeats
from farthing.cli.app import app
from farthing.cli.run import ask as run_ask

pytestmark = pytest.mark.thorough

ZONES = ["ask", "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone", "--absolute", "60"]
HEAVY = ("numpy", "scipy", "pandas", "pyarrow", "duckdb", "ibis", "sqlglot", "sqlalchemy", "flint", "rich", "typer",
         "tomlkit", "httpx", "cryptography", "asyncio")  # fmt: skip
BOUNDS = ["bounds", "day", "--lower", "0", "--upper", "2"]
OTHER = ["ask", "SELECT COUNT(*) AS n FROM rides WHERE day = 2", "--absolute", "90"]
MOST_MODULES = 130
SOURCE = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with a table of two files, keys in a file, and settings; repeats are kept beside it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv(repeats.SETTING, str(tmp_path / "kept"))
    for part in "12":
        pq.write_table(pa.table({"zone": ["a", "b"] * 150, "day": [1, 2, 3] * 100}), f"rides{part}.parquet")
    Path("zones.csv").write_text("id\na\nb\n", encoding="utf-8")
    made = ["init", "rides*.parquet", "--name", "rides", "--epsilon", "1", "--delta", "1e-6", "--keys"]
    ended = CliRunner().invoke(app, [*made, "zone=@zones.csv:id"])
    assert ended.exit_code == 0, ended.stderr
    return tmp_path


@pytest.fixture
def typed(monkeypatch, capsysbinary):
    """Run the program with some words; return what it printed, and how it ended."""

    def run(*words: str):
        monkeypatch.setattr(sys, "argv", ["farthing", *words])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        return (*capsysbinary.readouterr(), code)

    return run


def test_ctrl_c_before_a_command_runs_ends_it_without_a_traceback(typed, monkeypatch):
    """While libraries are loaded, too, the exit code is that of Ctrl-C, and nothing is printed."""

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(repeats, "keeping", stopped)

    assert (b"", b"", 130) == typed("version")


@pytest.fixture
def asked(monkeypatch):
    """Count how often a question is really asked."""
    seen, real = [], run_ask.ask

    def counted(*words):
        seen.append(words)
        return real(*words)

    monkeypatch.setattr(run_ask, "ask", counted)
    return seen


@pytest.mark.usefixtures("folder")
def test_a_repeat_prints_what_asking_again_prints(typed, asked, monkeypatch):
    """The bytes of stdout and of stderr are those of a repeat that is really asked; nothing is charged or asked."""
    place = os.environ[repeats.SETTING]
    price = typed(*ZONES)
    for shape in ([], ["--json"], ["--csv"], ["--trace", "--rows", "1"]):
        monkeypatch.setenv(repeats.SETTING, place)
        typed(*ZONES, *shape)
        before = len(asked)
        kept = typed(*ZONES, *shape)
        assert len(asked) == before
        monkeypatch.setenv(repeats.SETTING, "none")
        again = typed(*ZONES, *shape)
        assert len(asked) == before + 1
        assert kept == again
        assert kept[2] == 0
        assert kept != price


def _rewritten(name: str) -> None:
    """Write a file anew with the same content."""
    path = Path(name)
    held = path.read_bytes()
    path.unlink()
    path.write_bytes(held)


CHANGES = {
    "another question was charged": lambda: Path("rides.ledger-head").write_bytes(b"2" * 1024),
    "a file of the table": lambda: _rewritten("rides1.parquet"),
    "one more file of its pattern": lambda: shutil.copy("rides1.parquet", "rides3.parquet"),
    "one file less": lambda: Path("rides2.parquet").unlink(),
    "the file of keys": lambda: Path("zones.csv").write_text("id\nb\na\n", encoding="utf-8"),
    "the settings": lambda: Path("farthing.toml").write_bytes(b"[target]"),
    "the ledger": lambda: _rewritten("rides.ledger"),
    "a log of the ledger": lambda: Path("rides.ledger-wal").write_bytes(b"1"),
    "its witness is gone": lambda: Path("rides.ledger-head").unlink(),
    "the ledger is gone": lambda: Path("rides.ledger").unlink(),
    "a second name of the ledger": lambda: os.link("rides.ledger", "other.ledger"),
    "the width": lambda: os.environ.update(COLUMNS="61"),
    "an allotment by environment": lambda: os.environ.update(FARTHING_ALLOTMENT="alice"),
    "another folder": lambda: os.chdir(".."),
    "what is kept was cut off": lambda: next(Path(os.environ[repeats.SETTING]).glob("*.json")).write_bytes(b"{"),
}


@pytest.fixture
def kept(capsysbinary, tmp_path, monkeypatch) -> Path:  # noqa: ARG001  # outputs go where the test reads them
    """Keep an output of files that stand for a table, its keys, the settings and the books."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv(repeats.SETTING, str(tmp_path / "kept"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FARTHING_ALLOTMENT", "")
    for name in ("rides1.parquet", "rides2.parquet", "zones.csv", "farthing.toml", "rides.ledger"):
        Path(name).write_bytes(name.encode())
    Path("rides.ledger-head").write_bytes(b"1" * 1024)
    with repeats.keeping(ZONES, list) as printed:
        assert not printed
        watched = repeats.KeptRepeats.begun()
        watched.watch(["farthing.toml", str(home / "rides*.parquet"), "zones.csv"])
        watched.books = home / "rides.ledger"
        watched.keep(b"n 12\n", b"free\n", watched.witness)
    return home


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_asked(change, capsysbinary):
    """Anything that an output depends on is noticed: the question is asked then. Words that differ are, too."""
    with repeats.keeping(ZONES, list) as printed:
        assert printed
    assert capsysbinary.readouterr() == (b"n 12\n", b"free\n")
    Path("rides.ledger-wal").touch()  # who looks at a ledger leaves an empty log
    with repeats.keeping(ZONES, list) as printed:
        assert printed
    capsysbinary.readouterr()
    CHANGES[change]()
    for words in (ZONES, [*ZONES, "--csv"], ["plan", *ZONES[1:]]):
        with repeats.keeping(words, list) as printed:
            assert not printed
    assert capsysbinary.readouterr() == (b"", b"")


@pytest.mark.parametrize("name", ["farthing.toml", "rides1.parquet", "rides.ledger-head"])
def test_what_changed_while_it_was_asked_is_not_kept(kept, name):
    """An output of files or books that changed meanwhile may be neither the old nor the new one."""
    with repeats.keeping(["ask", "another"], list):
        watched = repeats.KeptRepeats.begun()
        watched.watch(["farthing.toml", str(kept / "rides*.parquet")])
        watched.books = kept / "rides.ledger"
        witness = watched.witness
        Path(name).write_bytes(b"3" * 1024)
        watched.keep(b"n 12\n", b"", witness)
    with repeats.keeping(["ask", "another"], list) as printed:
        assert not printed


@pytest.mark.usefixtures("folder")
def test_each_file_that_a_question_reads_is_watched(typed):
    """Every file of the folder that the process opens while it asks is one whose change is noticed."""
    opened: set[str] = set()

    def heard(event: str, told: tuple) -> None:
        if listening and event == "open" and isinstance(told[0], str | os.PathLike):
            opened.add(str(Path(told[0]).absolute()))

    listening = True
    sys.addaudithook(heard)
    typed(*ZONES)
    listening = False
    kept = json.loads(next(Path(os.environ[repeats.SETTING]).glob("*.json")).read_bytes())
    known = {*kept["files"], *(kept["books"] + end for end in ("", "-wal", "-shm", "-journal", "-head"))}
    assert {path for path in opened if path.startswith(str(Path.cwd()))} <= known
    assert {"rides1.parquet", "rides2.parquet", "zones.csv", "farthing.toml"} == {Path(p).name for p in kept["files"]}


@pytest.mark.usefixtures("folder")
def test_what_costs_or_fails_or_draws_is_not_kept(typed, asked):
    """A price alone, a mistake, a missed target that raises, and a picture are done each time."""
    for words in (
        ["ask", "EXPLAIN " + ZONES[1], "--absolute", "60"],
        ["ask", "SELECT zone FROM rides", "--absolute", "60"],
        [*ZONES[:2], "--absolute", "0.01", "--on-miss", "raise"],
    ):
        typed(*words)
        before = len(asked)
        typed(*words)
        assert len(asked) == before + 1, words


def test_what_is_kept_is_its_users_alone_and_little(folder, typed, monkeypatch):
    """The folder has mode 0700, its files 0600; the oldest go."""
    monkeypatch.setattr(repeats, "_MOST", 2)
    for width in ("60", "70", "80"):
        typed(*ZONES[:3], width)
    kept = folder / "kept"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    files = list(kept.iterdir())
    assert len(files) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.usefixtures("folder")
def test_a_folder_that_cannot_be_written_is_no_trouble(typed, monkeypatch, asked):
    """Then nothing is kept."""
    monkeypatch.setenv(repeats.SETTING, "/dev/null/kept")
    assert [typed(*ZONES)[2] for _ in range(2)] == [0, 0]
    assert len(asked) == 2


@pytest.mark.usefixtures("folder")
def test_a_repeat_loads_nothing_heavy_even_after_another_charge(typed, unkept, monkeypatch):
    """A process that repeats imports none of the heavy packages, and few modules at all; what is left is up to date."""
    code = f"import sys, json; sys.argv = ['farthing', *{ZONES!r}]; from farthing.cli import main; main();"
    monkeypatch.setenv("PYTHONPATH", SOURCE)
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        first = typed(*ZONES)
        for charged in (["status"], OTHER):
            typed(*charged)
        told = subprocess.run(
            [sys.executable, "-c", code + "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"],
            stdin=nothing, env=dict(os.environ), capture_output=True, check=True,  # readline changes what is inherited
        )  # fmt: skip
        modules = json.loads(told.stderr)
        assert first[0] != told.stdout == unkept(*ZONES)[0]
        assert not [name for name in modules if name.partition(".")[0] in HEAVY]
        assert len(modules) < MOST_MODULES


@pytest.mark.usefixtures("folder")
def test_a_charge_asks_again_what_was_free_before_it(typed, asked, unkept, monkeypatch):
    """Whatever command charges; the latest few are asked again, each without a charge, and printed as then."""
    monkeypatch.setattr(repeats, "_MOST_RENEWED", 2)
    for shape in (["--rows", "1"], ["--json"], ["--csv"]):
        typed(*ZONES, *shape)
    for charged in (OTHER, BOUNDS):
        entries = _entries(typed)
        assert typed(*charged)[2] == 0, charged
        count = len(asked)
        kept = {shape: typed(*ZONES, shape) for shape in ("--json", "--csv")}
        assert len(asked) == count
        assert kept["--csv"] == unkept(*ZONES, "--csv")
        assert _entries(typed) == entries + 1
    count = len(asked)
    typed(*ZONES, "--rows", "1")
    assert len(asked) == count + 1


@pytest.mark.usefixtures("folder")
def test_what_is_asked_again_is_never_paid(typed, monkeypatch):
    """Where what was free costs something by the time it is asked again, it is left: nobody asked for it."""
    typed(*ZONES)
    entries = _entries(typed)
    name = next(Path(os.environ[repeats.SETTING]).glob("*.json"))
    held = json.loads(name.read_bytes())
    dearer = [*ZONES[:2], "--absolute", "20"]
    monkeypatch.setattr(repeats, "_place", lambda args, real=repeats._place: name if args == dearer else real(args))
    name.write_text(json.dumps({**held, "args": dearer}))
    typed(*OTHER)
    assert _entries(typed) == entries + 1
    assert json.loads(name.read_bytes())["state"] == held["state"]


def _entries(typed) -> int:
    """Return how many entries the books have."""
    return len(json.loads(typed("history", "--json")[0])["history"])


@pytest.fixture
def unkept(typed, monkeypatch):
    """Run the program with some words, as where nothing is kept."""

    def run(*words: str):
        with monkeypatch.context() as context:
            context.setenv(repeats.SETTING, "none")
            return typed(*words)

    return run
