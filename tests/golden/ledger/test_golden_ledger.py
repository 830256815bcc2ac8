"""A ledger file of every format that was ever released opens for ever."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest

from farthing.errors import LedgerError
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.opening import accept
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger
from farthing.ledger.tables import FORMAT, META
from farthing.ledger.witness import SUFFIX

HERE = Path(__file__).parent
TERMS = Terms("gdp", 10**12, 10**21, 3, "column:tailnum", "epsilon=1, delta=1e-06")


def fill(ledger):
    """Write the entries of the golden files."""
    first = ledger.reserve(increase=600, fresh=600, question="question 1", version=0, label="COUNT(*)", request="r1")
    ledger.settle(first, 250, lambda _: b"released \x00\xff")
    second = ledger.reserve(increase=30, fresh=90, question="question 1", version=1, label="sharper", request="r2")
    ledger.settle(second, 20, lambda stored: stored + b" twice")
    ledger.fail(ledger.reserve(increase=5, fresh=5, question="question 2", version=0, label="failed", request="r3"))
    ledger.reserve(increase=1, fresh=7, question="question 2", version=0, label="died", request=None)


@pytest.fixture(params=["format_1.sqlite", "format_2.sqlite", "format_3.sqlite", "format_4.sqlite", "format_5.sqlite"])
def golden(request, tmp_path):
    """Return a copy of an old file, with its witness where its format had one: from 4 on."""
    witness = HERE / f"{request.param}{SUFFIX}"
    if witness.exists():
        shutil.copy(witness, tmp_path / f"old.ledger{SUFFIX}")
    return Path(shutil.copy(HERE / request.param, tmp_path / "old.ledger"))


@pytest.mark.parametrize("old_format", range(4, FORMAT + 1))
def test_a_format_that_had_a_witness_needs_it(tmp_path, old_format):
    """Without it the ledger is refused, with the way out: its owner accepts the head."""
    path = Path(shutil.copy(HERE / f"format_{old_format}.sqlite", tmp_path / "old.ledger"))
    with pytest.raises(LedgerError, match="witness is missing") as refused:
        Ledger.open(path, TERMS)
    assert "--accept-head" in refused.value.next_step
    with Ledger.inspect(path) as ledger:
        head = ledger.verify().head
    accept(path, head)
    assert (HERE / f"format_{old_format}.sqlite{SUFFIX}").read_bytes() == Path(f"{path}{SUFFIX}").read_bytes()
    with Ledger.open(path, TERMS) as ledger:
        assert 282 == ledger.spent


def test_a_copy_by_sqlite_keeps_a_log_again(tmp_path):
    """`VACUUM INTO` writes a file without a write-ahead log; opened, it has one, as every ledger does."""
    shutil.copy(HERE / f"format_4.sqlite{SUFFIX}", tmp_path / f"copy.ledger{SUFFIX}")
    source = sqlite3.connect(shutil.copy(HERE / "format_4.sqlite", tmp_path / "old.ledger"))
    source.execute("VACUUM INTO ?", (str(tmp_path / "copy.ledger"),))
    source.close()
    for _ in range(2):
        with Ledger.open(tmp_path / "copy.ledger", TERMS) as ledger:
            assert 282 == ledger.spent
            assert (tmp_path / "copy.ledger-wal").exists()


@pytest.mark.parametrize("opened", [lambda path: Ledger.open(path, TERMS), Ledger.inspect], ids=["open", "inspect"])
def test_old_ledger_reads_as_written(golden, opened):
    """Terms, totals, entries and measurements of an old file are what was written."""
    with opened(golden) as ledger:
        ledger.verify()
        assert TERMS == ledger.terms
        assert 0 < ledger.hash_key < 2**64
        assert ledger.spent == 250 + 20 + 5 + 7
        assert Stored(2, b"released \x00\xff twice") == ledger.load("question 1")
        assert [
            ("died", None, "open", 7, None, False),
            ("failed", "r3", "failed", 5, 5, True),
            ("sharper", "r2", "settled", 30, 20, True),
            ("COUNT(*)", "r1", "settled", 600, 250, True),
        ] == [(e.label, e.request, e.state, e.reserved, e.settled, e.exclusive) for e in ledger.history()]
        assert all(datetime(2026, 1, 1, tzinfo=UTC) < entry.opened_at for entry in ledger.history())


def test_old_ledger_goes_on(golden):
    """An old file takes new entries, and keeps its promise."""
    with Ledger.open(golden, TERMS) as ledger:
        ledger.settle(
            ledger.reserve(increase=4, fresh=9, question="question 1", version=2, label="more"),
            4,
            lambda stored: stored,
        )
        assert 286 == ledger.spent
        ledger.verify()
        with pytest.raises(LedgerError):
            ledger.reserve(increase=1, fresh=1, question="question 3", version=0, label="again", request="r1")


@pytest.fixture
def old(tmp_path):
    return Path(shutil.copy(HERE / "format_1.sqlite", tmp_path / "old.ledger"))


def test_format_1_is_carried_over(old):
    """An opened file of format 1 is one of the newest format afterwards: with a chain, and with who said so."""
    with Ledger.open(old, TERMS) as ledger:
        assert ["carried", "migrated"] == [act["kind"] for act in ledger.acts()]
        assert 4 + 3 + 2 == ledger.seal.records
        seal = ledger.verify()
    with sqlite3.connect(old) as connection:
        assert (FORMAT,) == connection.execute("PRAGMA user_version").fetchone()
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        with pytest.raises(sqlite3.IntegrityError, match="only ever added"):
            connection.execute("DELETE FROM reservations")
    connection.close()
    assert set(META.tables) == names
    with Ledger.inspect(old) as ledger:
        assert seal == ledger.verify()


def test_looking_at_format_1_changes_nothing(old):
    """Inspecting an old file shows it in the newest format and leaves the file as it was."""
    before = old.read_bytes()
    with Ledger.inspect(old) as ledger:
        ledger.verify()
        assert 4 == len(list(ledger.entries()))
    assert before == old.read_bytes()


def test_bad_books_of_format_1_are_refused_unchanged(old):
    """Books that contradict themselves are not carried over."""
    with sqlite3.connect(old) as connection:
        connection.execute("UPDATE totals SET spent = 1")
    connection.close()
    before = old.read_bytes()
    for opened in (lambda: Ledger.open(old, TERMS), lambda: Ledger.inspect(old).spent):
        with pytest.raises(LedgerError, match="older format contradict"):
            opened()
    assert before == old.read_bytes()


KILLED = """
import os, sys
import sqlalchemy as sa
sys.path.insert(0, sys.argv[2])
from test_golden_ledger import TERMS, Ledger

number = 0
while True:
    number += 1
    pid = os.fork()
    if pid == 0:
        left = [number]
        def die(*_):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
        sa.event.listen(sa.Engine, "before_cursor_execute", die)
        try:
            Ledger.open(sys.argv[1], TERMS)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with Ledger.inspect(sys.argv[1]) as ledger:
        ledger.verify()
        assert ledger.spent == 282 and ledger.load("question 1").version == 2
    if code == 0:
        break
    assert code == 9
print(number)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("made", "statements"), [("format_1", 40), ("format_4", 15)])
def test_killed_at_every_statement_of_the_migration(made, statements, tmp_path):
    """A process that dies anywhere in carrying a ledger over leaves the old one or the new one, whole."""
    old = Path(shutil.copy(HERE / f"{made}.sqlite", tmp_path / "old.ledger"))
    if (HERE / f"{made}.sqlite{SUFFIX}").exists():
        shutil.copy(HERE / f"{made}.sqlite{SUFFIX}", f"{old}{SUFFIX}")
    command = [sys.executable, "-c", KILLED, str(old), str(HERE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert statements < int(done.stdout)


def test_format_4_keeps_its_chain(tmp_path):
    """Format 4 gets tables for looks and for what is found by them; its head stays, and so does what is open."""
    path = Path(shutil.copy(HERE / "format_4.sqlite", tmp_path / "old.ledger"))
    shutil.copy(HERE / f"format_4.sqlite{SUFFIX}", f"{path}{SUFFIX}")
    with Ledger.inspect(path) as ledger:
        head = ledger.verify().head
    with Ledger.open(path, TERMS) as ledger:
        assert head == ledger.verify().head == ledger.seal.head
        assert ["died"] == [entry.label for entry in ledger.open_reservations]
        assert ["question 1"] == ledger.untagged("question")
        receipt = ledger.reserve(increase=9, fresh=9, question="q", version=0, label="looks", first=2)
        ledger.look(receipt, 5)
        ledger.fail(receipt)
        assert 282 + 5 == ledger.spent
        ledger.verify(head)


def test_two_open_an_old_ledger_at_once(old):
    """Whoever comes second finds it carried over already."""
    gate, seals = threading.Barrier(4), []

    def work():
        gate.wait()
        with Ledger.open(old, TERMS) as ledger:
            seals.append(ledger.verify())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (4, 1) == (len(seals), len(set(seals)))


if __name__ == "__main__":
    # How these files were made; a new format gets a new file, and the old ones stay.
    with (
        Ledger.open(HERE / "new.sqlite", TERMS, who="golden") as new,
        patch("farthing.ledger.rows.this_process") as process,
    ):
        process.return_value = Process(1, "golden", "")
        fill(new)


def test_format_2_is_carried_over(tmp_path):
    """Format 2 gets its table for deltas, and charges them; what it held stays as it was."""
    path = Path(shutil.copy(HERE / "format_2.sqlite", tmp_path / "old.ledger"))
    with Ledger.open(path, TERMS) as ledger:
        assert ["migrated"] == [act["kind"] for act in ledger.acts()]
        ledger.reserve(increase=1, fresh=1, question="keys", version=0, label="keys", delta=2)
        assert 1 == ledger.keys_delta_left
        ledger.verify()
    with sqlite3.connect(path) as connection:
        assert (FORMAT,) == connection.execute("PRAGMA user_version").fetchone()
    connection.close()
