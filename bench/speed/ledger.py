"""How fast the books are: reserve + settle pairs a second, against the standard library's sqlite3 in the same run.

The bare side does the same two durable transactions (BEGIN IMMEDIATE, WAL, synchronous=FULL, busy_timeout) with the
same inserts and nothing else: no prices, no budget, no checks. Figure to keep: ratio >= 1/4.

    python bench/speed/ledger.py [--json FILE] [--seconds 2]
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=1 << 60, delta=0, keys_delta=0, unit="row", description="bench")
BLOB = os.urandom(8192)
QUESTIONS = 100
SCHEMA = """
CREATE TABLE reservations (id INTEGER PRIMARY KEY, request TEXT UNIQUE, question TEXT, label TEXT, reserved INTEGER,
    exclusive INTEGER, version INTEGER, opened_at INTEGER, pid INTEGER, host TEXT, started TEXT);
CREATE TABLE settlements (reservation INTEGER PRIMARY KEY, state TEXT, amount INTEGER, closed_at INTEGER);
CREATE TABLE measurements (question TEXT PRIMARY KEY, version INTEGER, blob BLOB);
"""


class Ours:
    """The ledger as a session uses it."""

    def __init__(self, folder: str) -> None:
        self.ledger = Ledger.open(Path(folder) / "bench.ledger", TERMS)

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
    """The same two transactions with the standard library alone."""

    def __init__(self, folder: str) -> None:
        self.sqlite = sqlite3.connect(Path(folder) / "bench.sqlite", isolation_level=None, timeout=30)
        self.sqlite.execute("PRAGMA journal_mode=WAL")
        self.sqlite.execute("PRAGMA synchronous=FULL")
        if not self.sqlite.execute("SELECT 1 FROM sqlite_master WHERE name='reservations'").fetchone():
            self.sqlite.executescript(SCHEMA)

    def pair(self, i: int, blob: bytes | None) -> None:
        """Reserve and settle once."""
        run = self.sqlite.execute
        run("BEGIN IMMEDIATE")
        number = run(
            "INSERT INTO reservations (request, question, label, reserved, exclusive, version, opened_at, pid, host,"
            " started) VALUES (?,?,?,?,?,?,?,?,?,?)",
            (f"{os.getpid()}-{i}", f"question {i % QUESTIONS}", "SELECT COUNT(*)", 7, 1, 0, time.time_ns() // 1000,
             os.getpid(), "host", "b0071d00-0000-4000-8000-000000000000/123456"),
        ).lastrowid  # fmt: skip
        run("COMMIT")
        run("BEGIN IMMEDIATE")
        run("INSERT INTO settlements VALUES (?,?,?,?)", (number, "settled", 5, time.time_ns() // 1000))
        if blob is not None:
            run("INSERT OR REPLACE INTO measurements VALUES (?,?,?)", (f"question {i % QUESTIONS}", 1, blob))
        run("COMMIT")

    def close(self) -> None:
        """Close the books."""
        self.sqlite.close()


def rate(kind: type, folder: str, blob: bytes | None, seconds: float) -> float:
    """Return pairs a second."""
    books = kind(folder)
    start, i = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        books.pair(i, blob)
        i += 1
    took = time.perf_counter() - start
    books.close()
    return i / took


def alone(blob: bytes | None, seconds: float) -> dict[str, float]:
    """Compare in turns, so that a busy machine slows both sides; medians of five turns."""
    ours, bare = [], []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for turn in range(5):
            for kind, rates in ((Bare, bare), (Ours, ours)):
                where = Path(folder) / f"{turn}"
                where.mkdir(exist_ok=True)
                rates.append(rate(kind, str(where), blob, seconds / 5))
    return _row(statistics.median(ours), statistics.median(bare))


def together(processes: int, seconds: float) -> dict[str, float]:
    """Compare several processes on one file."""
    rates = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        for kind in (Bare, Ours):
            kind(folder).close()
            command = [
                sys.executable,
                __file__,
                "--worker",
                kind.__name__,
                "--folder",
                folder,
                "--seconds",
                str(seconds),
            ]
            workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
            rates[kind] = sum(float(worker.communicate()[0]) for worker in workers)
    return _row(rates[Ours], rates[Bare])


def _row(ours: float, bare: float) -> dict[str, float]:
    return {"ours_pairs_per_s": ours, "sqlite3_pairs_per_s": bare, "ratio": ours / bare}


def large(entries: int) -> dict[str, float]:
    """Time a ledger of many entries: opening, the running total, one reservation, the check of everything."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        path = Path(folder) / "large.ledger"
        with Ledger.open(path, TERMS) as ledger:
            _fill(ledger, entries)
        times = {"entries": float(entries)}
        with _timed(times, "open_s"):
            ledger = Ledger.open(path, TERMS)
        with _timed(times, "spent_s"):
            assert ledger.spent == 5 * entries  # noqa: S101  the figure is of the right books
        with _timed(times, "reserve_s"):
            ledger.reserve(increase=1, fresh=1, question="question 1", version=0, label="one more")
        with _timed(times, "verify_s"):
            ledger.verify()
        ledger.close()
    return times


def _fill(ledger: Ledger, entries: int) -> None:
    """Write many settled entries at once, as no user could."""
    with ledger._books.writing() as connection:
        numbers = range(1, entries + 1)
        connection.exec_driver_sql(
            "INSERT INTO reservations VALUES (?,NULL,?,'label',7,1,0,0,1,'host','')",
            [(n, f"question {n % QUESTIONS}") for n in numbers],
        )
        connection.exec_driver_sql("INSERT INTO settlements VALUES (?,'settled',5,0)", [(n,) for n in numbers])
        connection.exec_driver_sql("UPDATE totals SET spent = ?", (5 * entries,))


class _timed:  # noqa: N801  reads as a statement
    """Note how long a block took."""

    def __init__(self, times: dict[str, float], name: str) -> None:
        self.times, self.name = times, name

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.times[self.name] = time.perf_counter() - self.start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each side of each row")
    parser.add_argument("--worker", choices=("Ours", "Bare"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(rate({"Ours": Ours, "Bare": Bare}[options.worker], options.folder, None, options.seconds))
        return
    rows = {
        "1 process": alone(None, options.seconds),
        "1 process, 8 KiB measurement": alone(BLOB, options.seconds),
        "8 processes": together(8, options.seconds),
    }
    print(f"{'reserve + settle pairs a second':34}{'farthing':>10}{'sqlite3':>10}{'ratio':>8}")
    for name, row in rows.items():
        print(f"{name:34}{row['ours_pairs_per_s']:10.0f}{row['sqlite3_pairs_per_s']:10.0f}{row['ratio']:8.2f}")
    big = large(100_000)
    print("100,000 entries: " + ", ".join(f"{k[:-2]} {v * 1e3:.2f} ms" for k, v in big.items() if k != "entries"))
    if options.json:
        Path(options.json).write_text(json.dumps({"pairs": rows, "large": big}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
