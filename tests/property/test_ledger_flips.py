"""Bits flipped anywhere in a ledger's file: what is shown is what was written, or nothing; no raw error leaves."""

import json
import random
import shutil
import sqlite3

import pytest
from sweeps import sweep
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.errors import LedgerError
from farthing.ledger import proving
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=1000, delta=10**21, keys_delta=7, unit="row", description="1000 farthings")
LOOKS = {
    "spent": lambda ledger: ledger.spent,
    "left": lambda ledger: (ledger.remaining, ledger.keys_delta_left),
    "terms": lambda ledger: ledger.terms,
    "history": lambda ledger: ledger.history(),
    "last": lambda ledger: ledger.history(3),
    "entries": lambda ledger: list(ledger.entries()),
    "open": lambda ledger: ledger.open_reservations,
    "acts": lambda ledger: ledger.acts(),
    "allotments": lambda ledger: ledger.allotments,
    "seal": lambda ledger: ledger.seal,
    "receipt": lambda ledger: ledger.receipt("request 3"),
    "measured": lambda ledger: ledger.load("question 1"),
}
ABSENT_IS_FREE = ("receipt", "measured")
"""Where a flipped key hides a row, it is asked and paid for again: more is charged, nothing wrong is shown."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make books with something in every table, all of it in the file."""
    path = tmp_path_factory.mktemp("made") / "a.ledger"
    with Ledger.open(path, TERMS, who="ada") as ledger:
        ledger.allot("alice", 400)
        for number in range(12):
            receipt = ledger.reserve(
                increase=10, fresh=10, question=f"question {number % 4}", version=0, label=f"COUNT {number}",
                request=f"request {number}", target="5 %", allotment="alice" if number % 3 else None,
            )  # fmt: skip
            if number % 5 == 1:
                ledger.settle(receipt, 4, lambda _: b"released" * 20)
            elif number % 5 == 2:
                ledger.fail(receipt)
        ledger.over("data", "table 'rides'", lambda: "1 file").reserve(
            increase=20, fresh=20, question="open", version=0, label="COUNT(*)", delta=5
        )
        shown = {name: look(ledger) for name, look in LOOKS.items()}
    return path, shown


def flipped(made, tmp_path, place, bit):
    """Return the path of a copy with one bit of its file flipped."""
    path = tmp_path / "flipped.ledger"
    shutil.copy(made[0], path)
    shutil.copy(f"{made[0]}-head", f"{path}-head")
    text = bytearray(path.read_bytes())
    text[place] ^= 1 << bit
    path.write_bytes(bytes(text))
    return path


def used(path):
    """Return the places of a file that hold something, and a few that do not."""
    text = path.read_bytes()
    return [place for place, byte in enumerate(text) if byte or place % 512 == 0]


def sample(path, many):
    """Return places and bits: half of them where something is written, half anywhere."""
    chance, size, written = random.Random(2), path.stat().st_size, used(path)
    return [
        (chance.choice(written) if number % 2 else chance.randrange(size), chance.randrange(8))
        for number in range(many)
    ]


def wrong(path, shown, opens):
    """Return what a ledger shows that was never written."""
    found = []
    for name, look in LOOKS.items():
        try:
            with opens(path) as ledger:
                told = look(ledger)
        except LedgerError as error:
            told = shown[name] if error.rule and error.next_step else "an error without a way out"
        if told != shown[name] and not (told is None and name in ABSENT_IS_FREE):
            found.append(name)
    return found


@pytest.mark.thorough
def test_nothing_wrong_is_shown_after_a_flipped_bit(made, tmp_path):
    """Over the whole file, by everything that a ledger shows: refused, or as it was written."""
    path, shown = made
    faults = {}
    for place, bit in sample(path, sweep(30, 70)):
        for opens in (Ledger.inspect, lambda path: Ledger.open(path, TERMS)):
            found = wrong(flipped(made, tmp_path, place, bit), shown, opens)
            if found:
                faults[place, bit] = found
    assert {} == faults


def test_every_shown_column_is_checked(made, tmp_path):
    """A bit of every column of every entry, changed as a disk would: behind the triggers."""
    path, _ = made
    for table in ("reservations", "settlements", "acts"):
        with sqlite3.connect(path) as hand:
            columns = [name for _, name, *_ in hand.execute(f"PRAGMA table_info({table})")]
        hand.close()
        for column in columns:
            copy, step = flipped(made, tmp_path, 0, 0), "1 - exclusive" if column == "exclusive" else f"{column} + 64"
            shutil.copy(path, copy)
            with sqlite3.connect(copy) as hand:
                hand.execute("PRAGMA ignore_check_constraints=ON")
                for (trigger,) in hand.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                    hand.execute(f"DROP TRIGGER {trigger}")
                hand.execute(
                    f"UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {step} "
                    f"ELSE coalesce({column}, '') || 'x' END WHERE rowid = (SELECT max(rowid) FROM {table})"
                )
            hand.close()
            look = Ledger.acts if table == "acts" else Ledger.history
            with Ledger.inspect(copy) as ledger, pytest.raises(LedgerError):
                look(ledger)


@pytest.mark.parametrize("table", ["reservations", "settlements", "unsettled"])
def test_a_row_that_is_gone_is_missed(made, tmp_path, table):
    """Any one of them: the newest, the oldest, and those between."""
    rows = {"reservations": 13, "settlements": 5, "unsettled": 10}[table]
    for number in range(rows):
        copy = flipped(made, tmp_path, 0, 0)
        shutil.copy(made[0], copy)
        with sqlite3.connect(copy) as hand:
            for (trigger,) in hand.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                hand.execute(f"DROP TRIGGER {trigger}")
            key = "question || reservation" if table == "unsettled" else "rowid"
            hand.execute(f"DELETE FROM {table} WHERE {key} = (SELECT {key} FROM {table} LIMIT 1 OFFSET {number})")
        hand.close()
        for look in (Ledger.history, lambda ledger: list(ledger.entries())):
            with Ledger.inspect(copy) as ledger, pytest.raises(LedgerError):
                look(ledger)


def test_without_the_check_a_wrong_history_is_shown(made, tmp_path, monkeypatch):
    """The bug, planted: what an entry says is taken as it lies."""
    for name in ("require_entries", "require_newest", "require_next"):
        monkeypatch.setattr(proving, name, lambda *_: None)
    text = made[0].read_bytes()
    place = text.index(b"COUNT 7")
    assert ["history", "entries"] == wrong(flipped(made, tmp_path, place, 1), made[1], Ledger.inspect)


@pytest.mark.thorough
def test_no_command_shows_a_traceback(made, tmp_path):
    """By the command line: what it shows is what was written, or one error with a way out."""
    run, shown = CliRunner(), {}
    commands = (["history", "--json"], ["status", "--json"], ["verify"])
    for command in commands:
        done = run.invoke(app, [command[0], str(made[0]), *command[1:]])
        assert 0 == done.exit_code, done.output
        shown[command[0]] = done.stdout
    for place, bit in sample(made[0], 40):
        path = flipped(made, tmp_path, place, bit)
        for command in commands:
            done = run.invoke(app, [command[0], str(path), *command[1:]])
            assert done.exception is None or isinstance(done.exception, SystemExit), (place, bit)
            if done.exit_code == 0 and command[0] == "history":
                assert json.loads(shown["history"]) == json.loads(done.stdout)
            elif done.exit_code:
                assert "Traceback" not in done.output
