"""A process that dies at every statement of its books, and disks that fill at every page: nothing lost or overdrawn."""

import json
import subprocess
import sys

import pytest
from ledger_servers import fresh_schema, raw
from sweeps import sweep

from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

TERMS = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")

# One child a statement: it dies just before its n-th one, and so after every one and at every commit.
CHILD = """
import json, os, sys
import sqlalchemy as sa
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

place, last, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
terms = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")

def work(name, told):
    with Ledger.open(place, terms, allotment="alice") as ledger:
        part = ledger.part(partition="region", name="EU")
        receipt = part.reserve(increase=9, fresh=9, question=name, version=0, label="killed", request=name)
        os.write(told, b"r")
        part.settle(receipt, 4, lambda _: name.encode())
        os.write(told, b"s")

def child(number):
    out, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        left = [number]
        def die(*_):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
        sa.event.listen(sa.Engine, "before_cursor_execute", die)
        try:
            work(f"ask {number}", told)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(told)
    seen = os.read(out, 1) + os.read(out, 1)
    os.close(out)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

results = []
while not results or results[-1][1] == 9:
    results.append(child(1 + len(results) * step))
    assert len(results) < last
print(json.dumps(results))
"""


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path):
    if request.param == "file":
        yield str(tmp_path / "a.ledger")
        return
    with fresh_schema() as url:
        yield url


def test_killed_at_every_statement(place):
    """Whatever was shown as reserved is charged, whatever was shown as settled is stored, and the books are good."""
    step = sweep(4 if place.startswith("postgres") else 2, 1)
    with Ledger.open(place, TERMS) as ledger:
        ledger.allot("alice", 900)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, place, "200", str(step)], check=True, capture_output=True, timeout=120
    )
    results = json.loads(done.stdout)

    assert ["rs", 0] == results[-1]
    assert {"", "r"} == {shown for shown, _ in results[:-1]}
    with Ledger.open(place, TERMS) as ledger:
        ledger.verify()
        part = ledger.part(partition="region", name="EU")
        entries = {entry.request: entry for entry in ledger.entries()}
        assert sum(entry.charged for entry in entries.values()) == ledger.spent == ledger.allotments["alice"].spent
        for number, (shown, _) in enumerate(results):
            name = f"ask {1 + number * step}"
            assert not shown or name in entries
            settled = name in entries and entries[name].state == "settled"
            assert settled or "s" not in shown
            assert settled == (part.load(name) is not None)
        assert {"open", "settled"} == {entry.state for entry in entries.values()}
        assert not any(entry.alive for entry in ledger.open_reservations)


def work(ledger, name):
    """Reserve and settle; return how far it came."""
    try:
        receipt = ledger.reserve(increase=9, fresh=9, question=name, version=0, label="long" * 500, request=name)
    except LedgerError as error:
        return "nothing", error
    try:
        ledger.settle(receipt, 4, lambda _: name.encode() * 1000)
    except LedgerError as error:
        return "reserved", error
    return "settled", None


def test_file_on_a_disk_that_fills_up(tmp_path):
    """At whatever page the disk is full: a clear error, what was reserved stays charged, and it goes on once freed."""
    came = {}
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        for spare in range(8):
            with ledger._books.writing() as connection:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
                connection.exec_driver_sql(f"PRAGMA max_page_count={pages + spare}")
            for number in range(4):
                name = f"{spare} {number}"
                before = ledger.spent
                came[name], error = work(ledger, name)
                assert before + {"nothing": 0, "reserved": 9, "settled": 4}[came[name]] == ledger.spent
                assert error is None or "disk is full" in str(error)
            with ledger._books.writing() as connection:
                connection.exec_driver_sql("PRAGMA max_page_count=1000000")
            ledger.verify()
        assert {"nothing", "reserved", "settled"} == set(came.values())
        assert "settled" == work(ledger, "freed")[0]
        ledger.verify()


@pytest.mark.parametrize("table", ["reservations", "unsettled", "totals", "settlements", "measurements", "accounts"])
def test_server_on_a_disk_that_fills_up(table):
    """At whatever table the server's disk is full: a clear error, nothing half written, and it goes on once freed."""
    with fresh_schema() as url, Ledger.open(url, TERMS) as ledger:
        part = ledger.part(partition="region", name="EU")
        with raw(url) as hand:
            hand.execute(
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
            )
            hand.execute(f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk()")
        came, error = work(part, "while full")
        assert "disk is full" in str(error)
        assert {"nothing": 0, "reserved": 9}[came] == ledger.spent == part.spent
        ledger.verify()
        with raw(url) as hand:
            hand.execute(f"DROP TRIGGER full_disk ON {table}")
        assert ("settled", None) == work(part, "freed")
        ledger.verify()


def test_lost_connection_loses_nothing():
    """A server that drops the connection at any moment is a ledger error; the next call connects again."""
    with fresh_schema() as url, Ledger.open(url, TERMS) as ledger:
        receipt = ledger.reserve(increase=9, fresh=9, question="q", version=0, label="x")

        def cut(_):
            with raw(url) as hand:
                hand.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'farthing'"
                    " AND pid != pg_backend_pid()"
                )
            return b"never stored"

        with pytest.raises(LedgerError, match="cannot be reached, or was lost"):
            ledger.settle(receipt, 4, cut)
        with pytest.raises(LedgerError, match="lost"):  # readers have connections of their own, which were cut as well
            _ = ledger.spent
        assert (9, None) == (ledger.spent, ledger.load("q"))
        ledger.settle(receipt, 4, lambda _: b"stored")
        cut(None)
        with pytest.raises(LedgerError, match="lost"):
            _ = ledger.spent
        assert 4 == ledger.spent
        ledger.verify()
