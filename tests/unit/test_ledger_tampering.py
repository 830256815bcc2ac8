"""Every column of every table of a ledger, edited by hand, is found by verify."""

import shutil
import sqlite3

import pytest
from ledger_servers import fresh_schema, raw

from farthing.errors import FarthingError, LedgerError
from farthing.ledger import tables
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

TERMS = Terms("gdp", budget=100, delta=10**21, keys_delta=7, unit="row", description="100 farthings")
HINTS = {"opened", "tags", "tagged"}
"""By what something is found sooner; what is found by it is checked: a change loses time, or a free answer."""

COLUMNS = [
    (table.name, column.name)
    for table in tables.META.sorted_tables
    for column in table.columns
    if not HINTS & {table.name, column.name}
]
TEXTS = {"unit": "'column:x'", "currency": "'zcdp'", "state": "'failed'", "kind": "'migrated'", "delta": "'9999999'",
         "keys_delta": "'6'", "coins": "'4'"}  # fmt: skip


def fill(place):
    """Make books with something in every table."""
    with Ledger.open(place, TERMS) as ledger:
        ledger.allot("alice", 40)
        part = ledger.part(partition="region", name="EU")
        receipt = part.reserve(
            increase=10, fresh=10, question="q", version=0, label="COUNT(*)", request="r", allotment="alice"
        )
        part.settle(receipt, 4, lambda _: b"released")
        ledger.over("data", "table 'rides'", lambda: "1 file").reserve(
            increase=20, fresh=20, question="open", version=0, label="COUNT(*)", delta=5, first=3
        )
        return ledger.verify()


def edit(table, column, kind):
    """Return a statement that changes one column of every row, as somebody who wants to gain by it might."""
    if column in TEXTS:
        value = TEXTS[column]
    elif kind == "text":
        value = f"coalesce(\"{column}\", '') || 'x'"
    elif kind == "blob":
        value = "x'00'" if column == "hash_key" else "x'6162'"
    else:
        value = f"1 - {column}" if column == "exclusive" else f'coalesce("{column}", 0) + 100'
    return f'UPDATE {table} SET "{column}" = {value}'


def kind_of(table, column):
    """Return how a column's values are changed."""
    name = str(tables.META.tables[table].columns[column].type).lower()
    return next(kind for kind in ("text", "blob", "int") if kind in name or kind == "int")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "made.ledger"
    fill(path)
    return path


def caught(place):
    """Check that the change is told, when the ledger is opened or when it is verified."""
    with pytest.raises(LedgerError) as told, Ledger.inspect(place) as ledger:
        ledger.verify()
    assert told.value.next_step


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_edited_file_is_caught(made, tmp_path, table, column):
    """In a file: whatever is changed, behind triggers and checks that were switched off."""
    path = shutil.copy(made, tmp_path / "edited.ledger")
    hand = sqlite3.connect(path)
    hand.execute("PRAGMA ignore_check_constraints=ON")
    for (trigger,) in hand.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        hand.execute(f"DROP TRIGGER {trigger}")
    assert hand.execute(edit(table, column, kind_of(table, column))).rowcount > 0
    hand.commit()
    hand.close()
    caught(path)


def test_edited_server_is_caught():
    """On a server: the same, one column after the other, each put back."""
    with fresh_schema() as url:
        fill(url)
        with raw(url) as hand:
            hand.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
            found = (
                "SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'c' "
                " AND connamespace = %s::regnamespace"
            )
            for table, check in hand.execute(found, (url.partition("schema=")[2],)).fetchall():
                hand.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{check}"')
            for table, column in COLUMNS:
                hand.execute(f"CREATE TABLE kept AS SELECT * FROM {table}")
                statement = edit(table, column, kind_of(table, column)).replace("x'00'", "'\\x00'")
                hand.execute(statement.replace("x'6162'", "'ab'").replace("1 - exclusive", "NOT exclusive"))
                caught(url)
                hand.execute(f"DELETE FROM {table}")
                hand.execute(f"INSERT INTO {table} SELECT * FROM kept")
                hand.execute("DROP TABLE kept")
        with Ledger.inspect(url) as ledger:
            ledger.verify()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM settlements",
        "DELETE FROM reservations WHERE id = 2",
        "DELETE FROM acts",
        "DELETE FROM accounts",
        "DELETE FROM measurements",
        "DELETE FROM unsettled",
        "DELETE FROM totals",
        "INSERT INTO measurements VALUES ('free', 1, x'00', '', 0)",
        "INSERT INTO accounts VALUES ('mallory', '', '', 50, 0, '')",
        "INSERT INTO unsettled VALUES ('stray', 9)",
        "INSERT INTO acts VALUES ('allotted', 'mallory', 50, '', 'me', 0, 0, 9, 'hash')",
        "UPDATE totals SET spent = 0; UPDATE settlements SET amount = 0",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 0",
    ],
)
def test_added_and_removed_rows_are_caught(made, tmp_path, change):
    """What was taken away or slipped in is found, too."""
    path = shutil.copy(made, tmp_path / "edited.ledger")
    hand = sqlite3.connect(path)
    for (trigger,) in hand.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        hand.execute(f"DROP TRIGGER {trigger}")
    hand.executescript(change)
    hand.close()
    caught(path)
    with pytest.raises(FarthingError), Ledger.open(path, TERMS) as ledger:
        ledger.verify()


def test_rewritten_ledger_is_caught_by_a_noted_head(tmp_path):
    """A ledger that was replaced by an older copy is good in itself; the head that was noted tells."""
    path, old = tmp_path / "a.ledger", tmp_path / "old.ledger"
    fill(path)
    shutil.copy(path, old)
    with Ledger.open(path, TERMS) as ledger:
        ledger.reserve(increase=1, fresh=1, question="more", version=0, label="more")
        noted = ledger.verify().head
    with Ledger.inspect(old) as ledger:
        ledger.verify()
        with pytest.raises(LedgerError, match="older copy"):
            ledger.verify(noted)


def test_moved_ledger_still_verifies(made, tmp_path):
    """A ledger is the same wherever it lies: a copy verifies to the same head, and goes on."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    path = shutil.copy(made, folder / "moved")
    shutil.copy(f"{made}-head", folder / "moved-head")
    with Ledger.inspect(made) as before, Ledger.open(path, TERMS) as ledger:
        assert before.verify() == ledger.verify()
        ledger.reserve(increase=1, fresh=1, question="more", version=0, label="more")
        ledger.verify()
