"""How fast the books are: reserve + settle pairs a second, against bare sqlite3 and psycopg in the same run.

The bare side does the same two durable transactions (SQLite: BEGIN IMMEDIATE, WAL, synchronous=FULL, busy_timeout;
PostgreSQL: the row of the running total locked by its update, synchronous_commit=on) with the same entries and the same
total, and nothing else: no prices, no refusals, no chain, no checks, no witness. Figures to keep: each ratio >= 1/4; 16
threads of one process, which share their commits, do at least twice what one does; a ledger of a million entries opens
in under 0.5 s, and memory does not grow with the entries.

    python bench/speed/ledger.py [--postgres URL] [--json FILE] [--seconds 2] [--entries 1000000]
"""

import argparse
import itertools
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa

import farthing
from farthing.ledger.chain import unsettled
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.rows import advance, append, sealed_measurement, totals
from farthing.ledger.store import Ledger
from farthing.ledger.tables import CLOSE, MEASUREMENTS, OPEN, RESERVE, TAGS, UNSETTLE
from farthing.session.core.tags import FAMILY, sought

TERMS = Terms("gdp", budget=1 << 60, delta=0, keys_delta=0, unit="row", description="bench")
BLOB = os.urandom(8192)
QUESTIONS = 100
THREADS = (1, 16, 64)
STARTED = "b0071d00-0000-4000-8000-000000000000/123456"
TABLES = (
    "CREATE TABLE totals (spent BIGINT)",
    "INSERT INTO totals VALUES (0)",
    (
        "CREATE TABLE reservations (id {key}, request TEXT UNIQUE, question TEXT, label TEXT, reserved BIGINT, "
        "exclusive BOOLEAN, version BIGINT, opened_at BIGINT, pid BIGINT, host TEXT, started TEXT)"
    ),
    "CREATE TABLE settlements (reservation BIGINT PRIMARY KEY, state TEXT, amount BIGINT, closed_at BIGINT)",
    "CREATE TABLE measurements (question TEXT PRIMARY KEY, version BIGINT, blob {blob})",
)
RESERVE_BARE = (
    "INSERT INTO reservations (request, question, label, reserved, exclusive, version, opened_at, pid, host, started) "
    "VALUES ({}) RETURNING id"
)
STORE_BARE = (
    "INSERT INTO measurements VALUES ({}) ON CONFLICT (question) DO UPDATE SET version = excluded.version, "
    "blob = excluded.blob"
)


class Ours:
    """The ledger as a session uses it."""

    def __init__(self, place: str) -> None:
        self.ledger = Ledger.open(place, TERMS)

    def pair(self, i: int, blob: bytes | None) -> None:
        """Reserve and settle once."""
        question = f"question {i % QUESTIONS}"
        receipt = self.ledger.reserve(
            increase=7, fresh=9, question=question, version=0, label="SELECT COUNT(*)", request=f"{os.getpid()}-{i}"
        )
        self.ledger.settle(receipt, 5, None if blob is None else (lambda _: blob))

    def close(self) -> None:
        """Close the books."""
        self.ledger.close()


class Bare:
    """The same two transactions with the driver alone."""

    def __init__(self, place: str) -> None:
        self.server = "://" in place
        if self.server:
            import psycopg

            url, _, schema = place.partition("?schema=")
            self.opened = psycopg.connect(
                url.replace("+psycopg", ""), autocommit=True, options=f"-csearch_path={schema} -csynchronous_commit=on"
            )
            self.run("SELECT pg_advisory_lock(1)")
            self.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            there = self.run("SELECT to_regclass('reservations')").fetchone()[0]
        else:
            self.opened = sqlite3.connect(place, isolation_level=None, timeout=30)
            self.run("PRAGMA journal_mode=WAL")
            self.run("PRAGMA synchronous=FULL")
            there = self.run("SELECT 1 FROM sqlite_master WHERE name='reservations'").fetchone()
        for table in () if there else TABLES:
            key = "BIGSERIAL PRIMARY KEY" if self.server else "INTEGER PRIMARY KEY"
            self.run(table.format(key=key, blob="BYTEA" if self.server else "BLOB"))
        if self.server:
            self.run("SELECT pg_advisory_unlock(1)")

    def run(self, statement: str, values: tuple = ()):
        """Execute one statement."""
        return self.opened.execute(statement, values)

    def pair(self, i: int, blob: bytes | None) -> None:
        """Reserve and settle once."""
        begin, mark = ("BEGIN", "%s") if self.server else ("BEGIN IMMEDIATE", "?")
        question = f"question {i % QUESTIONS}"
        self.run(begin)
        self.run("UPDATE totals SET spent = spent + 7")
        row = (f"{os.getpid()}-{i}", question, "SELECT COUNT(*)", 7, True, 0, time.time_ns() // 1000, os.getpid())
        number = self.run(RESERVE_BARE.format(",".join([mark] * 10)), (*row, "host", STARTED)).fetchone()[0]
        self.run("COMMIT")
        self.run(begin)
        self.run("UPDATE totals SET spent = spent - 2")
        closed = (number, "settled", 5, time.time_ns() // 1000)
        self.run(f"INSERT INTO settlements VALUES ({','.join([mark] * 4)})", closed)
        if blob is not None:
            self.run(STORE_BARE.format(",".join([mark] * 3)), (question, 1, blob))
        self.run("COMMIT")

    def close(self) -> None:
        """Close the books."""
        self.opened.close()


class Places:
    """New places for books: files in a folder, or schemas of a server."""

    def __init__(self, server: str | None) -> None:
        self.server = server
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR"))
        self.schemas = []

    def new(self) -> str:
        """Return a new place."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        if self.server is None:
            return str(Path(self.folder.name) / name)
        self.schemas.append(name)
        return f"{self.server}?schema={name}"

    def close(self) -> None:
        """Remove them all."""
        self.folder.cleanup()
        if self.schemas:
            import psycopg

            with psycopg.connect(self.server.replace("+psycopg", ""), autocommit=True) as opened:
                for schema in self.schemas:
                    opened.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def rate(kind: type, place: str, blob: bytes | None, seconds: float, *, waits: bool = False) -> float:
    """Return pairs a second."""
    books = kind(place)
    books.pair(-1, blob)
    if waits:  # for the others, so that all work at the same time
        print("ready", flush=True)
        sys.stdin.readline()
    start, i = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        books.pair(i, blob)
        i += 1
    took = time.perf_counter() - start
    books.close()
    return i / took


def alone(places: Places, blob: bytes | None, seconds: float) -> dict[str, float]:
    """Compare in turns, so that a busy machine slows both sides; medians of five turns."""
    rates = {Bare: [], Ours: []}
    for _ in range(5):
        for kind, found in rates.items():
            found.append(rate(kind, places.new(), blob, seconds / 5))
    return _row(statistics.median(rates[Ours]), statistics.median(rates[Bare]))


def together(places: Places, processes: int, seconds: float) -> dict[str, float]:
    """Compare several processes on the same books; medians of three turns."""
    rates = {Bare: [], Ours: []}
    for _ in range(3):
        for kind, found in rates.items():
            place = places.new()
            kind(place).close()
            command = [sys.executable, __file__, "--worker", kind.__name__, "--place", place, "--seconds", str(seconds)]
            pipe = subprocess.PIPE
            workers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)]
            for worker in workers:
                worker.stdout.readline()
            for worker in workers:
                worker.stdin.write("go\n")
                worker.stdin.flush()
            found.append(sum(float(worker.communicate()[0]) for worker in workers))
    return _row(statistics.median(rates[Ours]), statistics.median(rates[Bare]))


def in_threads(places: Places, many: int, seconds: float) -> float:
    """Return pairs a second of several threads on one open ledger; the median of three turns."""
    found = []
    for _ in range(3):
        books, done, until = Ours(places.new()), [0] * many, time.perf_counter() + seconds

        def work(place: int, books: Ours = books, done: list[int] = done, until: float = until) -> None:
            while time.perf_counter() < until:
                books.pair(place + many * done[place], None)
                done[place] += 1

        workers = [threading.Thread(target=work, args=(place,)) for place in range(many)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        found.append(sum(done) / (time.perf_counter() - start))
        books.close()
    return statistics.median(found)


def _row(ours: float, bare: float) -> dict[str, float]:
    return {"ours_pairs_per_s": ours, "bare_pairs_per_s": bare, "ratio": ours / bare}


def large(place: str, entries: int) -> dict[str, float]:
    """Time a ledger of many entries: opening, the running total, one reservation, reading all, checking all."""
    with Ledger.open(place, TERMS) as ledger:
        _fill(ledger, entries)
    command = [sys.executable, __file__, "--worker", "Large", "--place", place]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measured(place: str) -> dict[str, float]:
    """Measure a large ledger in a process of its own, whose memory is its own too."""
    import resource

    times: dict[str, float] = {}
    with _timed(times, "open_s"):
        ledger = Ledger.open(place, TERMS)
    with _timed(times, "spent_s"):
        _ = ledger.spent
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with _timed(times, "reserve_s"):
        held = ledger.reserve(increase=1, fresh=1, question="question 1", version=0, label="one more")
    with _timed(times, "read_all_s"):
        times["entries"] = float(sum(1 for _ in ledger.entries()))
    with _timed(times, "last_page_s"):
        ledger.history(100)
    with _timed(times, "verify_s"):
        head = ledger.verify().head
    for name, work in (("free_while_read_s", lambda: sum(1 for _ in ledger.entries())),
                       ("free_while_verified_s", ledger.verify)):  # fmt: skip
        times[name] = _longest(work, lambda: ledger.load("question 1"))
    ledger.settle(held, 0, None)
    with _timed(times, "verify_since_s"):
        ledger.verify(since=head)
    ledger.close()
    times["memory_grew_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return times


def _longest(work: Callable[[], object], beside: Callable[[], object]) -> float:
    """Return the longest that a call took of those that ran beside some work, one after the other."""
    worker = threading.Thread(target=work)
    worker.start()
    took = []
    while worker.is_alive() or not took:
        start = time.perf_counter()
        beside()
        took.append(time.perf_counter() - start)
        time.sleep(0.01)
    return max(took)


def _fill(ledger: Ledger, entries: int) -> None:
    """Write many settled entries at once, each linked to the last, as no user could."""
    with ledger._books.writing() as connection:
        many = _Many(connection)
        held = totals(connection)
        tip = held.tip
        for number in range(1, entries + 1):
            row = {"id": number, "request": None, "question": f"question {number % QUESTIONS}", "label": "label",
                   "target": "", "reserved": 7, "exclusive": True, "version": 0, "allotment": "", "partition": "",
                   "part": "", "pid": 1, "host": "host", "started": "", "who": "bench", "opened_at": tip.clock,
                   "behind": 0}  # fmt: skip
            tip = append(many, RESERVE, row, tip)
            row = {"reservation": number, "state": "settled", "amount": 5, "stored": 0, "digest": "", "who": "bench",
                   "closed_at": tip.clock, "behind": 0}  # fmt: skip
            tip = append(many, CLOSE, row, tip)
        many.flush()
        advance(connection, held.after(tip, change=5 * entries))


class _Many:
    """A connection that gathers rows and writes them together."""

    def __init__(self, connection) -> None:
        self.connection, self.rows = connection, {}

    def execute(self, insert, row: dict) -> None:
        """Gather one row."""
        self.rows.setdefault(insert, []).append(row)
        if len(self.rows[insert]) >= 5000:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered, reservations first."""
        for insert in (RESERVE, CLOSE, UNSETTLE, OPEN):
            if self.rows.get(insert):
                self.connection.execute(insert, self.rows.pop(insert))


class _timed:  # noqa: N801  reads as a statement
    """Note how long a block took."""

    def __init__(self, times: dict[str, float], name: str) -> None:
        self.times, self.name = times, name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.times[self.name] = time.perf_counter() - self.start


def asks(place: Path, many: int) -> dict[str, dict[str, float]]:
    """Measure the processor of an ask of three groups, and of status(), beside many stored, dead or failed ones."""
    found = {}
    for name, fill in {"nothing": None, "stored": _stored, "open, their process dead": _left, "failed": _left}.items():
        table = pa.table({"zone": [f"z{number}" for number in range(200)] * 50})
        books = place / f"{name[:4]}.ledger"
        with farthing.Session(table, budget=farthing.Budget(epsilon=1, delta=1e-6), ledger=books, name="t") as session:
            asked = partial(session.count, by="zone", absolute=900)
            session.count(by="zone", keys={"zone": ["z1", "z2", "z3"]}, absolute=950)
            if fill is not None:
                fill(session, many, failed=name == "failed")
            picks = [{"zone": [f"z{n}", f"z{n + 1}", f"z{n + 2}"]} for n in range(40, 70)]
            took = [_took(partial(asked, keys=keys)) for keys in picks]
            found[name] = {"ask_s": statistics.median(took), "status_s": min(_took(session.status) for _ in range(3))}
        base = found["nothing"]
        print(f"{many if fill else 0:>9,} {name:28}" + ", ".join(
            f"{what[:-2]} {1e3 * took:,.1f} ms ({took / base[what]:.2f} x)" for what, took in found[name].items()
        ), flush=True)  # fmt: skip
    return found


def _took(work: Callable[[], object]) -> float:
    """Return how much processor a call took, which others on the machine hardly change."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _stored(session: farthing.Session, many: int, *, failed: bool) -> None:  # noqa: ARG001  # as the other
    """Store many questions of the family that is asked, found by three other groups each, as no user could."""
    ledger = session._ledger
    asked = session.history(1)[0].question
    blob = ledger.load(asked).blob
    triples = itertools.combinations([f"z{number}" for number in range(40, 200)], 3)
    stored, tagged = [], []
    for number, keys in enumerate(itertools.islice(triples, many)):
        question = f"{asked[:FAMILY]}{number:032x}"
        seal = sealed_measurement(question, Stored(1, blob))
        stored.append({"question": question, "version": 1, "blob": blob, "digest": seal, "tagged": 1})
        tags = sought(asked[:FAMILY], pa.table({"zone": keys}))[0]
        facts = {"rank": number, "groups": tags.groups, "bits": tags.bits, "question": question}
        tagged += [{**facts, "tag": tag} for tag in tags.tags]
    with ledger._books.writing() as connection:
        connection.execute(sa.insert(MEASUREMENTS), stored)
        connection.execute(sa.insert(TAGS), tagged)


def _left(session: farthing.Session, many: int, *, failed: bool) -> None:
    """Leave many reservations behind, open with their process dead, or failed, as no user could."""
    ledger, state, last = session._ledger, "failed", session.history(1)[0].id
    with ledger._books.writing() as connection:
        held, copies = totals(connection), 0
        tip, writer = held.tip, _Many(connection)
        for number in range(last + 1, last + many + 1):
            question = f"left {number}"
            row = {"id": number, "request": None, "question": question, "label": "label", "target": "", "reserved": 1,
                   "exclusive": True, "version": 0, "allotment": "", "partition": "", "part": "", "pid": 1 << 22,
                   "host": platform.node(), "started": "gone", "who": "bench", "opened_at": tip.clock,
                   "behind": 0}  # fmt: skip
            tip = append(writer, RESERVE, row, tip)
            if failed:
                row = {"reservation": number, "state": state, "amount": 1, "stored": 0, "digest": "interrupted",
                       "who": "bench", "closed_at": tip.clock, "behind": 0}  # fmt: skip
                tip = append(writer, CLOSE, row, tip)
            writer.execute(UNSETTLE, {"question": question, "reservation": number})
            if not failed:
                writer.execute(OPEN, {"reservation": number, "question": question, "looks": 0})
            copies += unsettled(question, number)
        writer.flush()
        advance(connection, held.after(tip, change=many, copies=copies))


def compare(places: Places, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Print and return the figures of one kind of books."""
    kind = "SQLite" if places.server is None else "PostgreSQL"
    rows = {
        f"{kind}, 1 process": alone(places, None, options.seconds),
        f"{kind}, 1 process, 8 KiB measurement": alone(places, BLOB, options.seconds),
        f"{kind}, 8 processes": together(places, 8, options.seconds),
    }
    for name, row in rows.items():
        print(f"{name:40}{row['ours_pairs_per_s']:10.0f}{row['bare_pairs_per_s']:10.0f}{row['ratio']:8.2f}", flush=True)
    shared = {many: in_threads(places, many, options.seconds) for many in THREADS}
    for many, pairs in shared.items():
        print(f"{f'{kind}, {many} threads of 1 process':40}{pairs:10.0f}{pairs / shared[1]:18.2f} x one", flush=True)
    big = grown(places, options)
    threads = {f"{kind}, threads": {f"{many}_pairs_per_s": pairs for many, pairs in shared.items()}}
    return {**rows, **threads, f"{kind}, large": big}


def grown(places: Places, options: argparse.Namespace) -> dict[str, float]:
    """Print and return the figures of a large ledger."""
    big = large(places.new(), options.entries)
    figures = ", ".join(f"{k[:-2]} {v * 1e3:,.1f} ms" for k, v in big.items() if k.endswith("_s"))
    print(f"{big['entries']:,.0f} entries: {figures}; memory grew by {big['memory_grew_mb']:.0f} MB", flush=True)
    return big


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL server to compare too")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each side of each row")
    parser.add_argument("--entries", type=int, default=1_000_000, help="entries of the large ledger")
    parser.add_argument("--left", type=int, default=100_000, help="stored, dead or failed questions beside an ask")
    parser.add_argument("--only-growth", action="store_true", help="leave the throughput out")
    parser.add_argument("--worker", choices=("Ours", "Bare", "Large"), help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker == "Large":
        print(json.dumps(measured(options.place)))
        return
    if options.worker:
        print(rate({"Ours": Ours, "Bare": Bare}[options.worker], options.place, None, options.seconds, waits=True))
        return
    if not options.only_growth:
        print(f"{'reserve + settle pairs a second':40}{'farthing':>10}{'bare':>10}{'ratio':>8}")
    figures = {}
    for server in [None, *filter(None, [options.postgres])]:
        places = Places(server)
        try:
            figures |= {"large": grown(places, options)} if options.only_growth else compare(places, options)
        finally:
            places.close()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        figures["asks"] = asks(Path(folder), options.left)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
