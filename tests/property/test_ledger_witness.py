"""A ledger that lost entries is not opened: its log cut at every frame and flipped in every page, older copies.

Every fault is made on a copy of a ledger with its log, as a process that was killed leaves them.
"""

import multiprocessing
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from sweeps import sweep

from farthing.errors import LedgerError
from farthing.ledger import witness
from farthing.ledger.entry import Terms
from farthing.ledger.opening import accept
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

TERMS = Terms("gdp", budget=1000, delta=10**21, keys_delta=7, unit="row", description="1000 farthings")
HEADER = 32
FRAME = 24 + 4096


def ask(ledger, number, settles=True):
    """Reserve, and settle perhaps."""
    receipt = ledger.reserve(increase=9, fresh=9, question=f"q{number}", version=0, label="COUNT(*)")
    if settles:
        ledger.settle(receipt, 4, lambda _: f"released {number}".encode())


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A ledger, its log and its witness, as a process that was killed leaves them; and what it had spent."""
    folder = tmp_path_factory.mktemp("crashed")
    ledger = Ledger.open(folder / "a.ledger", TERMS)
    try:
        for number in range(6):
            ask(ledger, number)
        part = ledger.part(partition="region", name="EU")
        ask(part, 6, settles=False)
        spent = ledger.spent
        copied = folder / "copy"
        copied.mkdir()
        for file in folder.glob("a.ledger*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, copied)
    finally:
        ledger.close()
    return copied, spent


def copy_of(crashed, tmp_path, name):
    """Return the path of another copy."""
    folder = tmp_path / name
    shutil.copytree(crashed[0], folder)
    return folder / "a.ledger"


def opened(path):
    """Open a ledger and return what it says was spent, None where it is refused; either way it says so clearly."""
    try:
        with Ledger.open(path, TERMS) as ledger:
            ledger.verify()
            return ledger.spent
    except LedgerError as error:
        return None if error.rule and error.next_step else -1


def log(path):
    """Return the path of its log."""
    return path.with_name(path.name + "-wal")


def cuts(size):
    """Return where a log is cut: at each frame, and inside each; in the gate every fourth place of these."""
    edges = range(HEADER, size, FRAME)
    return sorted(
        {
            0,
            5,
            *edges,
            *(edge + 1 for edge in edges),
            *(edge + FRAME // 2 for edge in edges if edge + FRAME // 2 < size),
        }
    )[:: sweep(4, 1)]


def outcomes(crashed, tmp_path, damage, places):
    """Return how many of the damaged copies were refused, told as much or more spent, and told less."""
    refused = kept = less = 0
    for number, place in enumerate(places):
        path = copy_of(crashed, tmp_path, str(number))
        damage(log(path), place)
        spent = opened(path)
        refused += spent is None
        kept += spent is not None and spent >= crashed[1]
        less += spent is not None and spent < crashed[1]
        shutil.rmtree(path.parent)
    return refused, kept, less


def cut(path, place):
    """Cut a log off."""
    with path.open("r+b") as file:
        file.truncate(place)


def flip(path, place):
    """Flip one bit of a log."""
    text = bytearray(path.read_bytes())
    text[place] ^= 1 << (place % 8)
    path.write_bytes(bytes(text))


def flips(size):
    """Return where a log is flipped: in its header, and in the head and the page of each frame."""
    frames = range(HEADER, size, FRAME)
    places = [1, 9, 17, *(frame + inside for frame in frames for inside in (2, 10, 18, 24 + 40, 24 + 2048))]
    return places[:: sweep(3, 1)]


def test_a_log_that_was_cut_anywhere_opens_with_nothing_less(crashed, tmp_path):
    """At every frame, and inside every one: refused, or as much spent as before."""
    refused, kept, less = outcomes(crashed, tmp_path, cut, cuts(log(crashed[0] / "a.ledger").stat().st_size))
    assert 0 == less
    assert refused > 10 * kept


def test_a_log_with_one_flipped_bit_opens_with_nothing_less(crashed, tmp_path):
    """In the header, and in head and page of every frame."""
    refused, _, less = outcomes(crashed, tmp_path, flip, flips(log(crashed[0] / "a.ledger").stat().st_size))
    assert 0 == less
    assert refused > 0


def test_without_the_witness_a_ledger_is_refused(crashed, tmp_path):
    """Deleted with or without a cut of the log: refused; with the refusal taken out, cut logs open with less."""

    def forgets(path, place):
        cut(path, place)
        path.with_name("a.ledger-head").unlink()

    places = cuts(log(crashed[0] / "a.ledger").stat().st_size)
    assert (len(places), 0, 0) == outcomes(crashed, tmp_path, forgets, places)
    path = copy_of(crashed, tmp_path, "whole")
    path.with_name("a.ledger-head").unlink()
    with pytest.raises(LedgerError, match="witness is missing") as told:
        Ledger.open(path, TERMS)
    assert "--accept-head" in told.value.next_step
    with Ledger.inspect(path) as ledger:
        accept(path, ledger.seal.head)
    assert crashed[1] == opened(path)

    def planted(path, place):
        forgets(path, place)
        path.with_name("a.ledger-head").touch()

    assert outcomes(crashed, tmp_path, planted, places)[2] > 10


def test_an_older_copy_is_refused_until_the_owner_accepts_it(tmp_path):
    """Put back over the ledger, it says so, and how much was lost; accepting names its head."""
    path, old = tmp_path / "a.ledger", tmp_path / "old"
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, 0)
    shutil.copy(path, old)
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, 1)
    shutil.copy(old, path)
    for look in (lambda: Ledger.open(path, TERMS), lambda: Ledger.inspect(path)):
        with pytest.raises(LedgerError, match="has lost entries") as told:
            look()
        assert "0.4 % more" in told.value.got
    head = told.value.next_step.split("--accept-head ")[1][:12]
    with pytest.raises(LedgerError, match="another head"):
        accept(path, "f" * 12)
    with pytest.raises(LedgerError, match="another head"):
        accept(path, head[:3])
    accept(path, head)
    with Ledger.open(path, TERMS) as ledger:
        assert 4 == ledger.spent
        ask(ledger, 2)
    assert 8 == opened(path)


def test_a_lost_settlement_charges_the_whole_reservation(tmp_path):
    """The witness does not wait for the disk when a charge is lowered: what is lost then is charged more."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        receipt = ledger.reserve(increase=9, fresh=9, question="q", version=0, label="COUNT(*)")
        reserved = path.with_name("a.ledger-head").read_bytes()
        for file in (path, log(path)):
            shutil.copy(file, tmp_path / f"kept{file.suffix}")
        ledger.settle(receipt, 4, lambda _: b"released")
    shutil.copy(tmp_path / "kept.ledger", path)
    shutil.copy(tmp_path / "kept.ledger-wal", log(path))
    path.with_name("a.ledger-head").write_bytes(reserved)
    assert 9 == opened(path)


def test_a_torn_note_leaves_the_one_before(tmp_path):
    """Each of the two slots may be torn, not both."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        for number in range(3):
            ask(ledger, number)
            for place in (7, 519):
                head = path.with_name("a.ledger-head")
                whole = bytearray(head.read_bytes())
                torn = bytearray(whole)
                torn[place] ^= 1
                head.write_bytes(torn)
                with Ledger.open(path, TERMS) as other:
                    assert 4 * (number + 1) == other.spent
                head.write_bytes(whole)
    torn[7 if place == 519 else 519] ^= 1
    head.write_bytes(torn)
    with pytest.raises(LedgerError, match="witness is damaged"):
        Ledger.open(path, TERMS)


def test_an_empty_note_says_nothing(tmp_path):
    """A crash may leave the file empty when it is made."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        path.with_name("a.ledger-head").write_bytes(b"")
        ask(ledger, 0)
    assert 4 == opened(path)


def test_the_witness_of_another_ledger_is_refused(tmp_path):
    """A ledger that was replaced by a new one would start a budget from scratch."""
    for name in ("a.ledger", "b.ledger"):
        with Ledger.open(tmp_path / name, TERMS) as ledger:
            ask(ledger, 0)
    shutil.copy(tmp_path / "b.ledger", tmp_path / "a.ledger")
    with pytest.raises(LedgerError, match="another ledger"):
        Ledger.open(tmp_path / "a.ledger", TERMS)
    (tmp_path / "b.ledger").unlink()
    with pytest.raises(LedgerError, match="log or witness is here"):
        Ledger.open(tmp_path / "b.ledger", TERMS)


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_around_the_note(tmp_path, when):
    """A process that dies between the commit and the note, or just after it, leaves a ledger that opens."""
    path = tmp_path / "a.ledger"
    Ledger.open(path, TERMS).close()
    pid = os.fork()
    if pid == 0:
        note = witness.Held.note

        def dies(self, *args, **how):
            if when == "after":
                note(self, *args, **how)
            os._exit(9)

        witness.Held.note = dies
        try:
            with Ledger.open(path, TERMS) as ledger:
                ask(ledger, 0)
        finally:
            os._exit(1)
    assert 9 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert 9 == opened(path)
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, 1)
    assert 13 == opened(path)


def work(path, name):
    """Ask thirty times, in a process of its own."""
    with Ledger.open(path, TERMS) as ledger:
        for number in range(30):
            ask(ledger, f"{name}-{number}")


def test_processes_note_in_any_order(tmp_path):
    """The witness never goes back behind what any of them was told."""
    path = tmp_path / "a.ledger"
    Ledger.open(path, TERMS).close()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(path, name)) for name in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert 0 == worker.exitcode
    with Ledger.open(path, TERMS) as ledger:
        seal = ledger.verify()
        assert 480 == ledger.spent
    noted = witness.Witness.beside(path).read()
    assert (seal.records, seal.head) == (noted.records, noted.head)


def test_a_later_note_is_not_overwritten(tmp_path):
    """Who committed first and notes last leaves the later state."""
    beside = witness.Witness(tmp_path / "a.ledger-head")
    later, sooner = (witness.Noted("me", records, f"head {records}", records) for records in (7, 6))
    beside.note(later, sync=True)
    beside.note(sooner, sync=True)
    assert later == beside.read()


def test_the_note_left_out_is_caught(tmp_path, monkeypatch):
    """The bug, planted: nothing is noted, and a cut log opens with less."""
    path = tmp_path / "b.ledger"
    Ledger.open(path, TERMS).close()
    monkeypatch.setattr(witness.Held, "note", lambda *_, **__: None)
    ledger = Ledger.open(path, TERMS)
    for number in range(3):
        ask(ledger, number)
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in (path, log(path), path.with_name("b.ledger-head")):
        shutil.copy(file, folder)
    ledger.close()
    cut(log(folder / "b.ledger"), HEADER)
    assert 0 == opened(folder / "b.ledger")


def test_a_note_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    """A folder or nothing in its place, or a disk that fails: an error of ours; what was reserved stays charged."""

    def fails(_handle):
        raise OSError(5, "Input/output error")

    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        head = Path(f"{path}-head")
        kept = head.read_bytes()
        head.unlink()
        head.mkdir()
        with pytest.raises(LedgerError, match="witness cannot be"):
            ask(ledger, 0)
        head.rmdir()
        with pytest.raises(LedgerError, match="witness is missing"):
            ask(ledger, 0)
        head.write_bytes(kept)
        monkeypatch.setattr(witness, "_sync", fails)
        with pytest.raises(LedgerError, match="witness cannot be"):
            ask(ledger, 0)
        assert 9 == ledger.spent


def test_every_bit_of_the_totals_is_watched(tmp_path):
    """Each column of the totals and of the accounts, changed by one, is refused by everything that reads it."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        ledger.allot("alice", 500)
        ask(ledger.part(partition="region", name="EU"), 0, settles=False)
        ask(ledger, 1)
    tables = {"totals": ["spent", "records", "head", "clock", "coins", "copies", "terms", "seal"],
              "accounts": ["allotment", "partition", "part", "share", "spent", "seal"],
              "terms": ["budget", "delta", "keys_delta", "hash_key", "identity", "made_at"],
              "unsettled": ["question", "reservation"]}  # fmt: skip
    for table, columns in tables.items():
        for column in columns:
            changed = shutil.copy(path, tmp_path / f"{table}-{column}")
            shutil.copy(f"{path}-head", f"{changed}-head")
            with sqlite3.connect(changed) as hand:
                hand.execute("PRAGMA ignore_check_constraints=ON")
                for (trigger,) in hand.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                    hand.execute(f"DROP TRIGGER {trigger}")
                kind = hand.execute(f"SELECT typeof({column}) FROM {table}").fetchone()[0]
                value = f"{column} + 1" if kind == "integer" else f"CAST({column} || 'x' AS {kind})"
                hand.execute(f"UPDATE {table} SET {column} = {value}")
            hand.close()
            with pytest.raises(LedgerError):
                Ledger.open(changed, TERMS)


def test_every_bit_of_the_running_total_is_watched_in_an_open_ledger(tmp_path):
    """64 bits, each flipped while the ledger is open: the next reading and the next charge say so."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS) as ledger:
        ask(ledger, 0)
        hand = sqlite3.connect(path, isolation_level=None)
        hand.execute("PRAGMA ignore_check_constraints=ON")
        for bit in range(0, 63, sweep(6, 1)):
            hand.execute("UPDATE totals SET spent = (spent | :bit) - (spent & :bit)", {"bit": 1 << bit})
            looks = (lambda: ledger.spent, lambda: ledger.remaining, lambda: ledger.allotments, lambda: ledger.seal,
                     lambda: ledger.keys_delta_left, lambda: ask(ledger, 1), lambda: ledger.allot("bob", 1),
                     ledger.verify)  # fmt: skip
            for look in looks:
                with pytest.raises(LedgerError):
                    look()
            hand.execute("UPDATE totals SET spent = (spent | :bit) - (spent & :bit)", {"bit": 1 << bit})
        hand.close()
        assert 4 == ledger.spent
