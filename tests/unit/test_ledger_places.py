"""A ledger's file that is moved, linked, deleted or mounted by itself under an open session gives out no receipt."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest
import spending
from spending import TERMS

from farthing.errors import FarthingError, LedgerError
from farthing.ledger import places
from farthing.ledger.making import create
from farthing.ledger.store import Ledger


@pytest.fixture
def path(tmp_path):
    """Return where a ledger is, in a folder of its own, with something charged."""
    folder = tmp_path / "books"
    folder.mkdir()
    with Ledger.open(folder / "a.ledger", TERMS) as ledger:
        ask(ledger, "before")
    return folder / "a.ledger"


def ask(ledger, question="q"):
    """Reserve and settle ten farthings."""
    receipt = ledger.reserve(increase=10, fresh=10, question=question, version=0, label="COUNT(*)")
    ledger.settle(receipt, 10, lambda _: b"released")


def beside(path, end):
    """Return the path of the log, the locks or the witness."""
    return path.with_name(path.name + end)


def renamed(path):
    """Rename the file alone."""
    path.rename(path.with_name("b.ledger"))
    return path.with_name("b.ledger")


def moved(path):
    """Move all of it to another folder."""
    folder = path.parent.parent / "elsewhere"
    path.parent.rename(folder)
    return folder / path.name


def linked(path):
    """Give the file a second name, and the witness too."""
    for end in ("", "-head"):
        os.link(beside(path, end), path.with_name("b.ledger" + end))
    return path.with_name("b.ledger")


def deleted(path):
    """Delete the file alone."""
    path.unlink()
    return path


def wiped(path):
    """Delete all of it."""
    for file in path.parent.iterdir():
        file.unlink()
    return path


def without_log(path):
    """Delete the log."""
    beside(path, "-wal").unlink()
    return path


def without_locks(path):
    """Delete the locks."""
    beside(path, "-shm").unlink()
    return path


def replaced(path):
    """Put a copy in its place."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)
    return path


FAULTS = [renamed, moved, linked, deleted, wiped, without_log, without_locks, replaced]


@pytest.mark.thorough
@pytest.mark.parametrize("fault", FAULTS)
def test_nobody_is_given_more_than_one_budget(path, fault):
    """An open session and whoever opens what is there now: together they are given receipts for one budget at most."""
    given = 10
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, "in the log")
        given += 10
        now = fault(path)
        for look in (lambda: ask(ledger), lambda: ledger.spent, lambda: ledger.load("before")):
            with pytest.raises(LedgerError, match=r"moved, deleted|another name|witness is missing") as told:
                look()
            assert told.value.next_step
            assert told.value.rule
        for _ in range(100):
            try:
                with Ledger.open(now, TERMS) as other:
                    ask(other, f"other {given}")
                    given += 10
            except FarthingError:
                break
    lost = 20 if fault is wiped else 0  # all of the books: nobody can know of them
    assert given - lost <= 1000


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_between_the_charge_and_the_receipt_gives_none(path, fault, monkeypatch):
    """What happens while the charge is written is seen before its receipt is given out."""
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, "in the log")
        note, happened = places.LedgerPlace.require_unmoved, []

        def late(self):
            happened.append(self)
            if len(happened) == 2:  # once before the charge, once after it
                fault(path)
            note(self)

        monkeypatch.setattr(places.LedgerPlace, "require_unmoved", late)
        with pytest.raises(LedgerError, match=r"moved, deleted|another name"):
            ledger.reserve(increase=10, fresh=10, question="late", version=0, label="COUNT(*)")


def test_put_back_in_its_place_it_goes_on(path):
    """The way out that the error names."""
    with Ledger.open(path, TERMS) as ledger:
        other = renamed(path)
        with pytest.raises(LedgerError):
            ask(ledger)
        other.rename(path)
        ask(ledger)
        assert 20 == ledger.spent


def spend_from(go, told, *, path):
    """Tell what this process was given, once it may begin."""
    go.wait()
    told.put(spending.spend(path, "other"))


def test_without_the_check_two_budgets_are_spent(path, monkeypatch):
    """The bug, planted: the same faults, unseen, give two processes a budget each."""
    monkeypatch.setattr(places.LedgerPlace, "require_unmoved", lambda _: None)
    monkeypatch.setattr("farthing.ledger.opening.require_one_name", lambda _: None)
    monkeypatch.setattr("farthing.ledger.places.require_one_name", lambda _: None)
    for module in ("opening", "sqlite"):
        monkeypatch.setattr(f"farthing.ledger.{module}.require_noted", lambda *_: None)
    monkeypatch.setattr(places, "_inode", lambda *_, **__: (0, 0))
    context = multiprocessing.get_context("fork")
    told, go = context.Queue(), context.Event()
    with Ledger.open(path, TERMS) as ledger:
        other = context.Process(target=spend_from, args=(go, told), kwargs={"path": linked(path)})
        other.start()
        ask(ledger, "in the log")  # a fork closes all connections: this one is opened after it
        go.set()
        given = told.get()
        for number in range(100):
            with suppress(FarthingError):
                ask(ledger, f"{number}")
                given += 10
        other.join()
    assert given > 1000


def test_a_maker_that_was_killed_leaves_a_ledger(tmp_path):
    """Between its two names: the first is removed by whoever opens it next."""
    path = tmp_path / "a.ledger"
    create(path, TERMS)
    os.link(path, tmp_path / ".farthing-abc.new")
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger)
    assert ["a.ledger", "a.ledger-head"] == sorted(file.name for file in tmp_path.iterdir())


def test_a_maker_that_was_killed_before_leaves_a_place(tmp_path):
    """A witness that has seen no charge is nobody's: the next ledger takes it over."""
    path = tmp_path / "a.ledger"
    create(path, TERMS)
    path.unlink()
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger)
        assert 10 == ledger.spent
    path.unlink()
    with pytest.raises(LedgerError, match="witness is here, but the ledger is not"):
        Ledger.open(path, TERMS)


def test_a_name_with_blanks_is_found_among_the_mounts(monkeypatch, tmp_path):
    """Mounts are listed with escapes."""
    path = tmp_path / "my books.ledger"
    path.touch()
    listed = tmp_path / "mountinfo"
    escaped = os.fsencode(path).replace(b" ", b"\\040")
    listed.write_bytes(b"63 43 254:0 /a " + escaped + b" rw,relatime - ext4 /dev/vda rw\n")
    monkeypatch.setattr(places, "_MOUNTS", listed)
    with pytest.raises(LedgerError, match="mounted by itself"):
        places.require_one_name(path)
    listed.write_bytes(b"63 43 254:0 /a / rw,relatime - ext4 /dev/vda rw\n")
    places.require_one_name(path)
    if sys.platform.startswith("linux"):
        monkeypatch.setattr(places, "_MOUNTS", tmp_path / "no mountinfo")
        with pytest.raises(LedgerError, match="cannot be listed"):
            places.require_one_name(path)


MOUNTED = """
import sys
from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

terms = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")
try:
    with Ledger.open(sys.argv[1], terms) as ledger:
        ledger.reserve(increase=10, fresh=10, question="mounted", version=0, label="COUNT(*)")
        print("given")
except LedgerError as error:
    print(error.what)
"""


def mounts():
    """Return whether this process may mount, in a namespace of its own."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not mounts(), reason="mounting takes a privilege")
@pytest.mark.parametrize("whole", [False, True])
def test_a_file_that_is_mounted_alone_is_refused(path, whole):
    """As a container would be given it: the file alone is refused, the folder is one ledger for both."""
    folder = path.parent.parent / "container"
    folder.mkdir()
    program = folder.parent / "program.py"
    program.write_text(MOUNTED)
    if whole:
        mount = f"mount --bind {path.parent} {folder}"
    else:
        mount = f"touch {folder}/a.ledger && mount --bind {path} {folder}/a.ledger"
    script = f"{mount} && exec {sys.executable} {program} {folder}/a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger)
        ran = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == ("given" if whole else "the ledger's file is mounted by itself")
        assert (30 if whole else 20) == ledger.spent
        ask(ledger, "after")


@pytest.mark.thorough
def test_two_processes_are_given_one_budget(path):
    """The count of all receipts, over processes, is the budget."""
    command = [sys.executable, spending.__file__, str(path)]
    workers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "ab"]
    assert 990 == sum(int(worker.communicate()[0]) for worker in workers)
