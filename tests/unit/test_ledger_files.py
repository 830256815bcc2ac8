"""Ledger files: made whole, opened again, refused with a reason, and never harmed."""

import dataclasses
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from farthing.errors import LedgerError, LedgerMismatch
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.making import create
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")


@pytest.fixture
def tmp_path():
    """A folder that others could be let into: those above pytest's own are closed whenever another pytest starts."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.ledger"


@pytest.fixture
def made(path):
    """A ledger with one settled and one open entry, closed."""
    with Ledger.open(path, TERMS) as ledger:
        ledger.settle(reserve(ledger, 10), 4, lambda _: b"released")
        reserve(ledger, 20, question="open")
    return path


@pytest.fixture
def unprivileged(tmp_path):
    """Let the test run as somebody to whom file modes apply."""
    if os.name != "posix":
        pytest.skip("file modes are POSIX")
    if os.geteuid() != 0:
        yield
        return
    before = {place: (place.stat().st_mode, place.stat().st_uid) for place in (tmp_path, *tmp_path.rglob("*"))}
    for place in before:
        os.chown(place, 65534, -1)
    os.seteuid(65534)
    yield
    os.seteuid(0)
    for place, (mode, owner) in before.items():
        os.chown(place, owner, -1)
        place.chmod(stat.S_IMODE(mode))


def reserve(ledger, price, question="q", version=0):
    return ledger.reserve(increase=price, fresh=price, question=question, version=version, label="COUNT(*)")


def refused(path, match, terms=TERMS, **options):
    """Check that opening and inspecting are refused with all the facts, and that the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=match) as error:
        Ledger.open(path, terms, **options)
    assert error.value.rule
    assert error.value.next_step
    assert before == (path.read_bytes() if path.is_file() else None)
    return error.value


def test_reopened_ledger_is_the_same(made):
    """What was charged, stored and drawn is there again."""
    with Ledger.open(made, TERMS) as first:
        key = first.hash_key
    with Ledger.open(str(made), TERMS) as ledger:
        assert (24, key, TERMS) == (ledger.spent, ledger.hash_key, ledger.terms)
        assert Stored(1, b"released") == ledger.load("q")
        assert ["open", "settled"] == [entry.state for entry in ledger.history()]
        assert ["open"] == [entry.question for entry in ledger.open_reservations]
        ledger.verify()


def test_new_ledger_is_private_and_alone(path):
    """The file is its owner's alone, and creating it leaves nothing else."""
    Ledger.open(path, TERMS).close()
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert {path, path.with_name(path.name + "-head")} == set(path.parent.iterdir())


def test_log_is_private(path):
    """The log beside an open ledger is its owner's alone too."""
    with Ledger.open(path, TERMS) as ledger:
        reserve(ledger, 1)
        assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}


def test_commits_are_durable(path):
    """Every commit is synced (synchronous=FULL) to a write-ahead log."""
    with Ledger.open(path, TERMS) as ledger, ledger._books.writing() as connection:
        assert 2 == connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        assert "wal" == connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()


@pytest.mark.parametrize("name", ["a b?c#d%41.ledger", "ünï.ledger", "-x.ledger"])
def test_odd_file_names_are_names(tmp_path, name):
    """A file name is taken as it is."""
    with Ledger.open(tmp_path / name, TERMS) as ledger:
        reserve(ledger, 5)
    assert [name, f"{name}-head"] == sorted(file.name for file in tmp_path.iterdir())


def test_relative_path_stays_when_the_folder_changes(tmp_path, monkeypatch):
    """A ledger is where it was opened, wherever the process goes."""
    monkeypatch.chdir(tmp_path)
    with Ledger.open("a.ledger", TERMS) as ledger:
        monkeypatch.chdir("/")
        reserve(ledger, 5)
        assert 5 == ledger.spent


def test_inspect_shows_any_ledger(made):
    """Inspecting needs no terms, and charges nothing."""
    with Ledger.inspect(made) as ledger:
        assert (TERMS, 24) == (ledger.terms, ledger.spent)
        assert "100 farthings" in repr(ledger)
        ledger.verify()
        with pytest.raises(LedgerError, match="opened for reading"):
            reserve(ledger, 1)


def test_inspect_sees_a_ledger_in_use(made):
    """Inspecting sees what another connection has just charged."""
    with Ledger.open(made, TERMS) as ledger, Ledger.inspect(made) as inspected:
        reserve(ledger, 1)
        assert 25 == inspected.spent


def test_inspect_makes_nothing(path):
    """Inspecting a missing ledger is an error, not a new ledger."""
    with pytest.raises(LedgerError, match="no ledger here"):
        Ledger.inspect(path)
    assert [] == list(path.parent.iterdir())


@pytest.mark.parametrize(
    "change", [{"unit": "column:tailnum"}, {"budget": 101}, {"currency": "zcdp"}], ids=["unit", "budget", "currency"]
)
def test_other_terms_are_refused(made, change):
    """A ledger is opened with the terms it was made with."""
    error = refused(made, f"{next(iter(change))} is .*, asked for", dataclasses.replace(TERMS, **change))
    assert isinstance(error, LedgerMismatch)


def test_random_bytes_are_no_ledger(path):
    """A file of other content is refused and left alone."""
    path.write_bytes(bytes(range(256)) * 64)
    refused(path, "not a ledger")


def test_text_is_no_ledger(path):
    """A short text file is refused."""
    path.write_text("budget = 3\n", encoding="utf-8")
    refused(path, "not a ledger")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_database_is_no_ledger(path, mode):
    """Somebody else's SQLite database is refused and left alone."""
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA journal_mode={mode}")
        other.execute("CREATE TABLE terms (only_theirs TEXT)")
    other.close()
    refused(path, "not a ledger")


def test_empty_file_is_refused(path):
    """An empty file may be a ledger that was cut off: it is not taken for a new one."""
    path.touch()
    refused(path, "empty")


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.9999])
def test_truncated_ledger_is_refused(made, keep):
    """A ledger that lost its end is refused."""
    os.truncate(made, int(made.stat().st_size * keep))
    refused(made, "damaged or cut off")


def test_truncated_header_is_refused(made):
    """A ledger cut inside its first bytes is refused."""
    os.truncate(made, 50)
    refused(made, "damaged|not a ledger")


def test_newer_format_is_refused(made):
    """A ledger from the future is refused, and says to upgrade."""
    with sqlite3.connect(made) as connection:
        connection.execute("PRAGMA user_version=6")
    connection.close()
    assert "upgrade" in refused(made, "newer version").next_step


def test_half_a_ledger_is_refused(made):
    """A ledger without its tables is refused."""
    with sqlite3.connect(made) as connection:
        connection.execute("DROP TABLE terms")
    connection.close()
    refused(made, "damaged")


def test_folder_is_refused(tmp_path):
    """A folder is no ledger."""
    refused(tmp_path, "folder")


def test_missing_folder_is_refused(tmp_path):
    """The folder must exist before the ledger; it is not made."""
    refused(tmp_path / "missing" / "a.ledger", "folder is missing")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000])
def test_impossible_path_is_refused(tmp_path, name):
    """A path that no file can have is refused."""
    with pytest.raises(LedgerError):
        Ledger.open(tmp_path / name, TERMS)


def test_leftover_log_is_refused(made):
    """A new ledger is not made beside the log of a deleted one, which would be read into it."""
    log = made.with_name(made.name + "-wal")
    log.write_bytes(b"left by a crash")
    made.unlink()
    refused(made, "log or witness is here")
    log.unlink()
    refused(made, "log or witness is here")
    assert not made.exists()
    made.with_name(made.name + "-head").unlink()
    with Ledger.open(made, TERMS) as ledger:
        assert 0 == ledger.spent


def test_locked_ledger_is_refused_after_the_timeout(made):
    """A writer that stays longer than the timeout is told as a lock; reading goes on."""
    holder = sqlite3.connect(made, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with Ledger.open(made, TERMS, timeout_s=0.1) as ledger:
        with pytest.raises(LedgerError, match="locked") as error:
            reserve(ledger, 1)
        assert "timeout_s" in error.value.next_step
        assert 24 == ledger.spent
        holder.close()
        reserve(ledger, 1)
        assert 25 == ledger.spent


@pytest.mark.usefixtures("unprivileged")
def test_read_only_file_is_refused(made):
    """A ledger that cannot be written is refused before anything is asked, and can be inspected."""
    made.chmod(0o400)
    refused(made, "read-only")
    with Ledger.inspect(made) as ledger:
        assert 24 == ledger.spent


@pytest.mark.usefixtures("unprivileged")
def test_read_only_folder_is_refused(made):
    """A ledger whose folder cannot be written is refused, and can be inspected."""
    made.parent.chmod(0o500)
    refused(made, "read-only")
    with Ledger.inspect(made) as ledger:
        assert 24 == ledger.spent


@pytest.mark.usefixtures("unprivileged")
def test_unreadable_file_is_refused(made):
    """A ledger that cannot be read is refused."""
    made.chmod(0)
    with pytest.raises(LedgerError, match="opened"):
        Ledger.open(made, TERMS)


@pytest.mark.usefixtures("unprivileged")
def test_new_ledger_in_read_only_folder_is_refused(path):
    """No ledger is made where none can be written."""
    path.parent.chmod(0o500)
    refused(path, "cannot be made here")


def test_disk_without_links_is_refused(path, monkeypatch):
    """Where a ledger cannot be made atomically, none is made, and nothing is left."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    refused(path, "hard links")
    assert [] == list(path.parent.iterdir())


def test_second_creator_keeps_the_first_ledger(made):
    """A process that comes second leaves the first's ledger as it is."""
    before, beside = made.read_bytes(), set(made.parent.iterdir())
    create(made, TERMS)
    assert before == made.read_bytes()
    assert beside == set(made.parent.iterdir())


def test_many_create_the_same_ledger_at_once(path):
    """Those who create a ledger at the same moment all get the one that came first."""
    keys, gate = [], threading.Barrier(8)

    def work():
        gate.wait()
        with Ledger.open(path, TERMS) as ledger:
            keys.append((ledger.identity, reserve(ledger, 1, question=str(threading.get_ident())).id))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 1 == len({identity for identity, _ in keys})
    assert list(range(1, 9)) == sorted(number for _, number in keys)


def test_crash_before_the_link_leaves_no_ledger(path, monkeypatch):
    """An interrupted creation leaves no half of a ledger, and the next one succeeds."""
    with monkeypatch.context() as context:
        context.setattr("farthing.ledger.making.build", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Ledger.open(path, TERMS)
    assert [] == list(path.parent.iterdir())
    Ledger.open(path, TERMS).close()


@pytest.mark.parametrize("table", ["terms", "reservations", "settlements"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET rowid = rowid"])
def test_entries_are_only_added(made, table, change):
    """The database itself refuses to change or delete what was booked."""
    connection = sqlite3.connect(made)
    with pytest.raises(sqlite3.IntegrityError, match="only ever added"):
        connection.execute(change.format(table))
    connection.close()


@pytest.mark.parametrize(
    ("forgery", "fault"),
    [
        ("UPDATE totals SET spent = 1", "the running total is not what was written"),
        ("DELETE FROM unsettled", "entry 2 is unsettled, yet not counted"),
        ("INSERT INTO unsettled VALUES ('q', 1)", "entry 1 is unsettled, yet not counted"),
        (
            "INSERT INTO settlements VALUES (9, 'settled', 0, 0, '', 'me', 0, 0, 4, '')",
            "entry 9 is closed but never reserved",
        ),
        (
            "INSERT INTO settlements VALUES (2, 'failed', 3, 0, '', 'me', 0, 0, 4, '')",
            "entry 2 is settled above its reservation, or refunded",
        ),
        ("INSERT INTO settlements VALUES (2, 'settled', 21, 0, '', 'me', 0, 0, 4, '')", "entry 2 is settled above"),
        (
            "INSERT INTO reservations VALUES (3, NULL, 'x', 'x', '', 90, 1, 0, '', '', '', 1, '', '', '', 0, 0, 4, 0)",
            "114, over the budget of 100",
        ),
    ],
)
def test_verify_finds_forgeries(made, forgery, fault):
    """Books whose parts contradict each other are told apart from good ones."""
    with sqlite3.connect(made) as connection:
        connection.execute(forgery)
    connection.close()
    with pytest.raises(LedgerError, match=fault), Ledger.inspect(made) as ledger:
        ledger.verify()


def test_verify_finds_damaged_pages(made):
    """A damaged page is found by verify, if not before."""
    size = made.stat().st_size
    with made.open("r+b") as file:
        file.seek(size - 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(LedgerError), Ledger.open(made, TERMS) as ledger:
        ledger.verify()


def test_failed_commit_charges_nothing(path):
    """A reservation that cannot be written raises, and is not charged."""
    with Ledger.open(path, TERMS) as ledger:
        with ledger._books.writing() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        with ledger._books.outside() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        with pytest.raises(LedgerError, match="disk is full"):
            ledger.reserve(increase=1, fresh=1, question="q", version=0, label="long" * 10_000)
        assert (0, []) == (ledger.spent, ledger.history())
        reserve(ledger, 1)
        ledger.verify()


def test_backup_copy_opens(made, tmp_path):
    """A closed ledger is one file and its witness: their copies are the same ledger."""
    copy = tmp_path / "copy.ledger"
    shutil.copy(made, copy)
    with pytest.raises(LedgerError, match="witness is missing"):
        Ledger.open(copy, TERMS)
    shutil.copy(f"{made}-head", f"{copy}-head")
    with Ledger.open(copy, TERMS) as ledger:
        assert 24 == ledger.spent
        ledger.verify()


FORKS = """
import os, sys
from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")

def reserve(ledger, name):
    return ledger.reserve(increase=1, fresh=1, question=name, version=0, label="fork")

def forked(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except LedgerError as error:
            os._exit(3 if "forked" in str(error) else 4)
        finally:
            os._exit(5)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

with Ledger.open(sys.argv[1], terms) as ledger, Ledger.open(None, terms) as memory:
    mine = reserve(ledger, "before")
    assert forked(lambda: [reserve(ledger, f"child {i}") for i in range(9)]) == 0
    assert ledger.spent == 10
    assert forked(lambda: ledger.settle(mine, 0, lambda _: b"by the child")) == 0
    assert ledger.load("before").blob == b"by the child"
    assert [entry.alive for entry in ledger.open_reservations] == [False] * 9
    reserve(memory, "parent")
    assert forked(lambda: reserve(memory, "child")) == 3
    with ledger._books.reading():
        assert forked(lambda: reserve(ledger, "child")) == 3
    reserve(ledger, "after")
    ledger.verify()
    assert (ledger.spent, memory.spent) == (10, 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_its_own_connection(path):
    """A fork opens the file again on both sides; books in memory, or in use, stay with the parent."""
    subprocess.run([sys.executable, "-W", "error", "-c", FORKS, path], check=True, timeout=60)
