"""Odd names, clocks, damaged measurements, full disks and memory: clear errors, and a history that is read."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest
from sweeps import sweep

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger import books, rows
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger
from farthing.session.core.records import Record, read_blob, read_keys

TERMS = Terms("gdp", budget=10_000, delta=10**21, keys_delta=7, unit="row", description="10000 farthings")


def reserve(ledger, question, price=9):
    """Reserve one question."""
    return ledger.reserve(increase=price, fresh=price, question=question, version=0, label=question[:80])


@pytest.mark.parametrize("length", [1, 200, 246, 247, 248, 250, 255, 256, 300, 5000])
def test_a_long_name_is_a_ledger_or_a_clear_error(tmp_path, length):
    """With its log and its witness beside it, or refused before anything is written."""
    path = tmp_path / ("x" * length)
    if length <= 247:
        with Ledger.open(path, TERMS) as ledger:
            reserve(ledger, "q")
        return
    with pytest.raises(LedgerError) as told:
        Ledger.open(path, TERMS)
    assert told.value.rule
    assert told.value.next_step
    assert 700 > len(str(told.value))
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("year", [9999, 10_000, 30_000, 292_000])
def test_a_clock_far_ahead_stops_nothing(tmp_path, monkeypatch, year):
    """The history stays readable, and goes on when the clock is right again."""
    path = tmp_path / "a.ledger"
    ahead = int((year - 1970) * 365.2425 * 86400) * 10**9
    with Ledger.open(path, TERMS) as ledger:
        with monkeypatch.context() as wrong:
            wrong.setattr(rows.time, "time_ns", lambda: ahead)
            ledger.settle(reserve(ledger, "ahead"), 1, None)
        reserve(ledger, "right again")
        assert ["right again", "ahead"] == [entry.label for entry in ledger.history()]
        assert datetime(9998, 1, 1, tzinfo=UTC) < ledger.history()[0].opened_at
        ledger.verify()


def test_a_moment_beyond_all_dates_is_shown_as_the_last_one():
    """Whatever an older version wrote, the history can be read."""
    assert 9999 == rows.moment(2**62).year
    assert 1970 == rows.moment(-5).year


def test_odd_texts_and_numbers_are_refused_before_they_are_written(tmp_path):
    """Half a surrogate, a zero byte, a number that no column holds."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        good = {"increase": 1, "fresh": 1, "question": "q", "version": 0, "label": "l"}
        odd = [{"label": "\ud800"}, {"target": "\ud800"}, {"question": "a\0b"}, {"version": 2**64},
               {"request": "\udfff"}, {"allotment": "\ud800"}]  # fmt: skip
        for change in odd:
            with pytest.raises(LedgerError):
                ledger.reserve(**(good | change))
        assert 0 == ledger.spent


def test_every_flipped_byte_of_a_stored_measurement_is_refused(tmp_path):
    """Whether it is read, sharpened or verified; the error is ours."""
    path = tmp_path / "a.ledger"
    blob = bytes(range(64))
    with Ledger.open(path, TERMS) as ledger:
        ledger.settle(reserve(ledger, "q"), 4, lambda _: blob)
        hand = sqlite3.connect(path, isolation_level=None)
        for place in range(len(blob)):
            flipped = bytearray(blob)
            flipped[place] ^= 1 << (place % 8)
            hand.execute("UPDATE measurements SET blob = ?", (bytes(flipped),))
            with pytest.raises(LedgerError, match="not what was written"):
                ledger.load("q")
            with pytest.raises(LedgerError, match="not what was written"):
                ledger.settle(reserve(ledger, "q"), 4, lambda old: old)
            with pytest.raises(LedgerError):
                ledger.verify()
        for column, value in (("version", 2), ("blob", "a text"), ("blob", 5), ("digest", "x")):
            hand.execute("UPDATE measurements SET blob = ?, version = 1", (blob,))
            hand.execute(f"UPDATE measurements SET {column} = ?", (value,))
            with pytest.raises(LedgerError):
                ledger.load("q")
        hand.close()


@pytest.mark.parametrize("read", [Record.from_bytes, lambda blob: read_blob(blob, b"form"), read_keys])
def test_no_bytes_make_a_reader_fail_in_words_of_its_own(read):
    """Every byte of a real blob flipped in turn: it is read, or refused as ours (the ledger's own hash comes first)."""
    import pyarrow as pa

    from farthing.session.core.records import write_blob

    blob = write_blob({"a": pa.array(range(50)), "b": pa.array(["x", "y"] * 25)}, {b"form": b"{}"})
    for place in range(0, len(blob), 3):
        for change in (0x01, 0x80, 0xFF):
            flipped = bytearray(blob)
            flipped[place] ^= change
            try:
                read(bytes(flipped))
            except LedgerError as told:
                assert told.next_step  # noqa: PT017  either way is fine


FULL = """
import resource, signal, sys
from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
terms = Terms("gdp", budget=10_000, delta=10**21, keys_delta=7, unit="row", description="10000 farthings")
try:
    Ledger.open(sys.argv[1], terms).close()
except LedgerError as error:
    sys.exit(3 if error.next_step else 4)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs limits on files")
def test_a_disk_that_is_full_while_a_ledger_is_made_leaves_nothing(tmp_path):
    """Whatever may be written, page by page: a whole ledger, or no file at all."""
    whole = tmp_path / "whole.ledger"
    Ledger.open(whole, TERMS).close()
    size, ends = whole.stat().st_size, set()
    for limit in [0, 512, *range(4096, size + 2 * 8192, sweep(32_768, 8192))]:
        path = tmp_path / str(limit) / "a.ledger"
        path.parent.mkdir()
        done = subprocess.run([sys.executable, "-c", FULL, path, str(limit)], check=False, timeout=60)
        ends.add(done.returncode)
        if done.returncode:
            assert 3 == done.returncode
            assert [] == list(path.parent.iterdir())
        with Ledger.open(path, TERMS) as ledger:
            ledger.verify()
        shutil.rmtree(path.parent)
    assert {0, 3} == ends


def test_memory_that_runs_out_is_told(tmp_path):
    """Inside of a merge: an error of ours, the reservation stays."""

    def out(_):
        raise MemoryError

    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        receipt = reserve(ledger, "q")
        with pytest.raises(LedgerError, match="memory ran out"):
            ledger.settle(receipt, 1, out)
        assert 9 == ledger.spent
        ledger.verify()


def together(ledger, works):
    """Run works in threads that all wait while the ledger is held; return what each returned or raised."""
    ends = [None] * len(works)

    def run(number):
        try:
            ends[number] = works[number]()
        except BaseException as error:  # noqa: BLE001  it is looked at
            ends[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    with ledger._books._lock:
        for thread in threads:
            thread.start()
        while len(ledger._books._jobs) < len(works):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    return ends


def commits(monkeypatch):
    """Return a list that grows with every transaction that begins to write."""
    begun, begin = [], books.Books._transaction

    def counted(self, purpose, until):
        begun.append(purpose)
        return begin(self, purpose, until)

    monkeypatch.setattr(books.Books, "_transaction", counted)
    return begun


def test_threads_share_one_commit(tmp_path, monkeypatch):
    """Sixteen that wait are written in one transaction, each with its own receipt."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        begun = commits(monkeypatch)
        receipts = together(ledger, [lambda n=n: reserve(ledger, f"q{n}") for n in range(16)])
        assert ["write"] == begun
        assert list(range(1, 17)) == sorted(receipt.id for receipt in receipts)
        assert {f"q{n}" for n in range(16)} == {receipt.question for receipt in receipts}
        assert 16 * 9 == ledger.spent
        ends = together(ledger, [lambda r=r: ledger.settle(r, 4, lambda _: b"x") for r in receipts])
        assert [None] * 16 == ends
        assert 16 * 4 == ledger.spent
        ledger.verify()


def test_a_refusal_of_one_fails_no_other(tmp_path, monkeypatch):
    """Over the budget, settled twice, or a merge that raises: each is told to its own thread; others are written."""

    def breaks(_):
        raise ZeroDivisionError

    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        done, broken = reserve(ledger, "done"), reserve(ledger, "broken")
        ledger.settle(done, 1, None)
        begun = commits(monkeypatch)
        works = [
            lambda: reserve(ledger, "one"),
            lambda: reserve(ledger, "expensive", 10**9),
            lambda: ledger.settle(done, 1, None),
            lambda: ledger.settle(broken, 1, breaks),
            lambda: reserve(ledger, "two"),
            lambda: ledger.settle(broken, 1, lambda _: ledger.spent),
        ]
        ends = together(ledger, works)
        assert ["write"] == begun
        assert [0, 4] == [place for place, end in enumerate(ends) if not isinstance(end, Exception)]
        assert [BudgetExceeded, LedgerError, ZeroDivisionError, LedgerError] == [
            type(ends[place]) for place in (1, 2, 3, 5)
        ]
        assert "own merge" in str(ends[5])
        assert 1 + 9 + 9 + 9 == ledger.spent
        ledger.verify()


def test_the_budget_holds_in_a_shared_commit(tmp_path):
    """Those that fit are charged, in turn; the others are refused."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        ends = together(ledger, [lambda n=n: reserve(ledger, f"q{n}", 3000) for n in range(8)])
        assert 3 == sum(not isinstance(end, Exception) for end in ends)
        assert 9000 == ledger.spent
        ledger.verify()


def test_a_failure_of_the_database_undoes_all_and_each_is_tried_again(tmp_path, monkeypatch):
    """In the middle of a shared transaction: nothing is half written, and whoever can be is."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        add, calls = rows.add_reservation, []

        def fails(connection, reservation, *rest):
            calls.append(reservation["question"])
            if len(calls) == 3 or reservation["question"] == "q5":
                raise MemoryError
            return add(connection, reservation, *rest)

        monkeypatch.setattr(rows, "add_reservation", fails)
        ends = together(ledger, [lambda n=n: reserve(ledger, f"q{n}") for n in range(8)])
        assert [isinstance(end, LedgerError) for end in ends] == [n == 5 for n in range(8)]
        assert 7 * 9 == ledger.spent
        ledger.verify()


def test_a_commit_that_fails_is_told_to_all(tmp_path, monkeypatch):
    """Nobody gets a receipt whose charge may not be on disk."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:

        def fails(*_, **__):
            raise LedgerError("no note")

        with monkeypatch.context() as broken:
            broken.setattr("farthing.ledger.witness.Held.note", fails)
            ends = together(ledger, [lambda n=n: reserve(ledger, f"q{n}") for n in range(4)])
        assert ["no note"] * 4 == [str(end) for end in ends]
        assert 4 == len({id(end) for end in ends})
        assert 36 == ledger.spent
        ledger.verify()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_write_what_its_parents_threads_want(tmp_path):
    """Work that waits when a process is forked is written once, by the parent."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        thread = threading.Thread(target=reserve, args=(ledger, "parent"))
        with ledger._books._lock:
            thread.start()
            while not ledger._books._jobs:
                time.sleep(0.001)
            pid = os.fork()
            if pid == 0:
                try:
                    reserve(ledger, "child")
                    os._exit(0)
                finally:
                    os._exit(1)
            assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        thread.join()
        assert ["child", "parent"] == sorted(entry.label for entry in ledger.history())
        ledger.verify()
