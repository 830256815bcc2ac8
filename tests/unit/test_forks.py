"""Forked workers: a session that was opened before the fork answers in each of them, and nobody hangs.

Each program runs in a process of its own, so that what hangs is ended.
"""

import os
import subprocess
import sys
import threading

import pytest

from farthing.ledger.entry import Terms
from farthing.ledger.sqlite import SqliteStore
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

HEAD = """
import multiprocessing, os, sys, threading, time
import pyarrow as pa, pyarrow.parquet as pq
import farthing
from farthing.errors import DataError

folder = sys.argv[1]
pq.write_table(pa.table({"u": list(range(3000)), "g": [x % 3 for x in range(3000)]}), f"{folder}/a.parquet")
with open(f"{folder}/b.csv", "w") as file:
    file.write("u,g\\n" + "".join(f"{x},{x % 3}\\n" for x in range(3000)))

def opened(table, ledger="books.ledger"):
    return farthing.Session(table, budget=farthing.Budget(mu=2), ledger=f"{folder}/{ledger}")

def ask(session, name):
    return session.count(where=f"u <> {name}", absolute=200).value

def good(value):
    return abs(value - 2999) < 1000

def forked(work):
    pid = os.fork()
    if pid == 0:
        sys.exit(0 if work() else 7)
    return pid

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

PREFORK = """
csv = farthing.Csv(f"{folder}/b.csv", columns={"u": "integer"})
sessions = [opened(f"{folder}/a.parquet"), opened(csv, "other.ledger")]
assert good(ask(sessions[0], -1))
workers = [forked(lambda n=n: all(good(ask(s, n)) for s in sessions)) for n in range(6)]
assert [0] * 6 == [ended(pid) for pid in workers]
assert good(ask(sessions[0], -2))
assert 8 == len(sessions[0].history())
for session in sessions:
    session.verify()
    session.close()
"""

POOL = """
session, beside = opened(f"{folder}/a.parquet"), opened(f"{folder}/a.parquet", "other.ledger")

def work(n):
    return good(ask(session, n)) and good(ask(beside, n))

with multiprocessing.get_context("fork").Pool(4) as pool:
    assert all(pool.map(work, range(12)))
workers = [multiprocessing.get_context("fork").Process(target=work, args=(n,)) for n in range(12, 16)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert [0] * 4 == [worker.exitcode for worker in workers]
assert 16 == len(session.history())
"""

THREADS = """
session, over, failed = opened(f"{folder}/a.parquet"), threading.Event(), []
ask(session, -1)  # what is imported when it is used is imported: Python's own locks do not survive a fork

def keep_asking(n):
    place = 0
    while not over.is_set():
        try:
            ask(session, 1000 * n + place)
            session.spent, session.history(3)
        except BaseException as error:  # nothing may be refused, whatever the process does just then
            failed.append(error)
            raise
        place += 1

threads = [threading.Thread(target=keep_asking, args=(n,)) for n in range(1, 4)]
for thread in threads:
    thread.start()
for n in range(4):
    assert 0 == ended(forked(lambda: good(ask(session, -n - 5))))
over.set()
for thread in threads:
    thread.join()
assert not failed and not session.status()["open"]
assert {"settled"} == {entry.state for entry in session.history()}
session.verify()
"""

OTHERS = """
import duckdb
relation = duckdb.connect().sql(f"SELECT * FROM '{folder}/a.parquet'")
session = farthing.Session(relation, budget=farthing.Budget(mu=2), ledger=f"{folder}/books.ledger")

def refused():
    try:
        ask(session, 1)
    except DataError as error:
        return "forked this one" in str(error)

pid = os.fork()
if pid == 0:
    os._exit(0 if refused() else 7)  # DuckDB 2.0 crashes where a child destroys its parent's relation, as sys.exit does
assert 0 == ended(pid)
assert not session.history()
assert good(ask(session, 1))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("program", [PREFORK, POOL, THREADS, OTHERS], ids=["prefork", "pool", "threads", "relation"])
def test_workers_answer_and_end(program, tmp_path):
    """Prefork, pools, threads that ask while it forks; and a table that cannot cross a fork is refused, free."""
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + program, tmp_path], capture_output=True, text=True, timeout=240, check=False
    )
    told = [line for line in ran.stderr.splitlines() if not line.startswith(LEAKS)]
    assert (0, []) == (ran.returncode, told)


LEAKS = ("nanobind: ", " - ", "See https://nanobind")
"""What DuckDB 2.0.0 prints in a child that ends with its parent's connections open, as it must."""


def rested(books):
    """A fork, as far as connections see it."""
    books.rest()
    books.wake()


def lost(books):
    """A connection that is given up, as after an error."""
    with books._turn(float("inf")):
        books._readers.close()
        books._disconnect()


@pytest.mark.parametrize("closing", [rested, lost])
def test_a_reader_misses_no_log_that_a_closed_connection_took_along(closing, monkeypatch, tmp_path):
    """A reader looks after the writer's connection; another thread that closes it in that moment waits until it has."""
    looked, check, found = [], SqliteStore.check, []

    def at_the_same_time(store, connection):
        """Begin to close the connection between the reader's having it in hand and its look at the files."""
        if not looked:
            looked.append(threading.Thread(target=closing, args=(ledger._books,)))
            looked[0].start()
            looked[0].join(0.25)  # long enough for a thread that does not wait; one that waits is still there
            found.append(looked[0].is_alive())
        check(store, connection)

    with Ledger.open(tmp_path / "a.ledger", Terms("gdp", 100, 0, 0, "row", "100 farthings")) as ledger:
        ledger.reserve(increase=10, fresh=10, question="q", version=0, label="COUNT(*)")
        monkeypatch.setattr(SqliteStore, "check", at_the_same_time)
        assert (10, 1) == (ledger.spent, len(ledger.history()))
        looked[0].join()
        assert [True] == found
