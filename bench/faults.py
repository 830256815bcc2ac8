"""What goes wrong in operations, replayed with counts.

Flipped bits, files that move or are mounted by themselves, a PostgreSQL that stops answering, spilled rows after kills,
forks, threads that ask the same, kills, Ctrl-C, disks that fill up, odd names and clocks, files that were cut off, many
reservations that died and many stored questions.
Figures to keep: nothing wrong shown, no raw error, never more than one budget given out, no worker that hangs, one
payer; nothing left open; thirteen kills in one look after the other cost what had been measured, where thirteen caps
are 130 % of the budget; twenty times as many in the books is at most 1.3 times the calls of an ask.

    python bench/faults.py [--flips 200] [--json FILE]
"""

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import platform
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from postgres import Postgres

import farthing
from farthing.errors import FarthingError
from farthing.ledger.entry import Terms
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger
from farthing.session.answering import looks
from farthing.session.core.records import Record, keys_to_bytes
from farthing.session.core.tags import FAMILY, tags_of

TERMS = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")
BUDGET = farthing.Budget(epsilon=1, delta=1e-6)
PATIENCE_S = 60.0


def ask(ledger: Ledger, name: str, loss: int = 10) -> None:
    """Reserve and settle."""
    receipt = ledger.reserve(increase=loss, fresh=loss, question=name, version=0, label=f"COUNT of {name}")
    ledger.settle(receipt, loss, lambda _: b"released" * 20)


def shown(path: Path) -> tuple[object, ...]:
    """Return what a ledger shows to whoever looks."""
    with Ledger.inspect(path) as ledger:
        return (ledger.spent, ledger.history(), ledger.open_reservations, ledger.acts(), ledger.load("q 1"))


def flips(folder: Path, many: int) -> dict[str, int]:
    """Flip one bit of a ledger's file at a time; half of them where something is written.

    A bit of an index can hide a stored answer, which is then paid again; it is counted apart where `verify` tells.
    """
    path, counts, chance = folder / "a.ledger", collections.Counter[str](), random.Random(20)
    with Ledger.open(path, TERMS) as ledger:
        for number in range(20):
            ask(ledger, f"q {number}")
    told, text = shown(path), path.read_bytes()
    written = [place for place, byte in enumerate(text) if byte]
    for number in range(many):
        place = chance.choice(written) if number % 2 else chance.randrange(len(text))
        changed = bytearray(text)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(changed))
        try:
            now = shown(path)
            hidden = now == (*told[:-1], None) and _told_by_verify(path)
            counts["as written" if now == told else "hidden" if hidden else "wrong"] += 1
        except FarthingError:
            counts["refused"] += 1
        except Exception:  # noqa: BLE001  what is counted
            counts["raw errors"] += 1
    return {name: counts[name] for name in ("as written", "refused", "hidden", "wrong", "raw errors")}


def _told_by_verify(path: Path) -> bool:
    """Return whether checking the whole ledger finds a fault."""
    try:
        with Ledger.inspect(path) as ledger:
            ledger.verify()
    except FarthingError:
        return True
    return False


def moves(folder: Path) -> dict[str, int]:
    """Do something to the files of an open ledger, then spend as much as two processes can; the budget is 1,000."""
    given = {}
    for name in ("renamed", "linked", "deleted", "replaced", "log deleted", "locks deleted"):
        place = folder / name / "a.ledger"
        place.parent.mkdir()
        with Ledger.open(place, TERMS) as ledger:
            ask(ledger, "first")
            given[name] = 10 + sum(_spend(books) for books in (_moved(place, name), ledger))
    return given


def mounts(folder: Path) -> dict[str, int | str]:
    """Mount the file of an open ledger by itself, as containers may, and spend as much as two processes can."""
    place, other = folder / "books" / "a.ledger", folder / "mounted" / "a.ledger"
    for path in (place, other):
        path.parent.mkdir()
    with Ledger.open(place, TERMS) as ledger:
        ask(ledger, "first")
        for end in ("", "-head"):
            Path(f"{other}{end}").touch()
            command = ["mount", "--bind", f"{place}{end}", f"{other}{end}"]
            done = (
                subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("mount") else None
            )
            if done is None or done.returncode:
                subprocess.run(["umount", str(other)], capture_output=True, check=False)
                return {"SKIPPED, no file could be mounted here:": "no mount" if done is None else done.stderr.strip()}
        try:
            return {"given": 10 + sum(_spend(books) for books in (other, ledger))}
        finally:
            for end in ("", "-head"):
                subprocess.run(["umount", f"{other}{end}"], check=False)


def stalls(folder: Path) -> dict[str, float]:
    """Freeze the PostgreSQL that holds the books: each call ends in its time, and what was given is in the books."""
    limit_s, given, waits, raw = 2, 20, [], 0
    with Postgres(folder / "server") as server, Ledger.open(server.url, TERMS, timeout_s=limit_s) as books:
        ask(books, "before")
        with server.frozen():
            for call in (partial(ask, books, "during"), lambda: books.spent, books.verify):
                began = time.monotonic()
                try:
                    call()
                except FarthingError:
                    pass
                except Exception:  # noqa: BLE001  # counted
                    raw += 1
                waits.append(time.monotonic() - began)
        ask(books, "after")
        books.verify()
        spent = books.spent
    return {"waited at most, times the limit": max(waits) / limit_s, "raw": raw, "given": given, "spent": spent}


def spills(folder: Path, many: int = 5) -> dict[str, int]:
    """Kill processes that have a folder for what does not fit into memory; the next session removes what they left."""
    where, counts = folder / "spill", collections.Counter[str]()
    where.mkdir()
    with mock.patch.dict(os.environ, {"FARTHING_SPILL": str(where)}):
        for _ in range(many):
            worker = multiprocessing.get_context("fork").Process(target=_leave_spill, args=(_rides(folder), where))
            worker.start()
            worker.join(PATIENCE_S)
            left = [path for path in where.rglob("*") if path.name == "rows"]
            counts["left by a kill"] += len(left)
            counts["that others may read"] += sum(path.parent.stat().st_mode & 0o077 != 0 for path in left)
            with farthing.Session(_rides(folder), budget=BUDGET, name="rides") as session:
                session.count(absolute=1000)
                counts["left after the next session opened"] += sum(path.name == "rows" for path in where.rglob("*"))
    return dict(counts)


def _leave_spill(table: Path, where: Path) -> None:
    """Open a session, write a file of rows where it spills, and die."""
    session = farthing.Session(table, budget=BUDGET, name="rides")
    session.count(absolute=1000)
    own = next(path for path in where.iterdir() if path.is_dir())
    (own / "rows").write_text("a row", encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)


def _moved(place: Path, how: str) -> Path:
    """Do it; return where the ledger is now."""
    other = place.with_name("b.ledger")
    if how == "renamed":
        return place.rename(other)
    if how == "linked":
        os.link(place, other)
        os.link(f"{place}-head", f"{other}-head")
        return other
    if how == "replaced":
        shutil.copy(place, other).replace(place)
    else:
        place.with_name(place.name + {"deleted": "", "log deleted": "-wal", "locks deleted": "-shm"}[how]).unlink()
    return place


def _spend(books: Path | Ledger) -> int:
    """Return how much somebody is given receipts for."""
    given = 0
    try:
        with Ledger.open(books, TERMS) if isinstance(books, Path) else books as ledger:
            for number in range(101):
                ask(ledger, f"{id(ledger)} {number}")
                given += 10
    except FarthingError:
        pass
    return given


def forks(folder: Path, workers: int = 8) -> dict[str, int]:
    """Fork workers from a process with two open sessions; each asks, and answers or refuses in time."""
    table = folder / "rides.parquet"
    pq.write_table(pa.table({"zone": ["a", "b"] * 500}), table)
    counts = collections.Counter[str]()
    names = [folder / "one.ledger", folder / "two.ledger"]
    opened = [farthing.Session(table, budget=BUDGET, ledger=name, name="rides") for name in names]
    for number, session in enumerate(opened):
        session.count(absolute=100 + number)
    context = multiprocessing.get_context("fork")
    made = [context.Process(target=opened[n % 2].count, kwargs={"absolute": 80 - n}) for n in range(workers)]
    for worker in made:
        worker.start()
    for worker in made:
        worker.join(PATIENCE_S)
        counts["hang" if worker.is_alive() else "failed" if worker.exitcode else "answered"] += 1
        worker.kill()
    for session in opened:
        session.close()
    return {name: counts[name] for name in ("answered", "failed", "hang")}


def payers(folder: Path, threads: int = 16) -> dict[str, int]:
    """Let threads ask the same at once."""
    table = pa.table({"zone": ["a", "b"] * 500})
    with farthing.Session(table, budget=BUDGET, ledger=folder / "same.ledger", name="rides") as session:
        start = threading.Barrier(threads)

        def one(_: int) -> None:
            start.wait()
            session.count(absolute=50)

        with ThreadPoolExecutor(threads) as pool:
            answers = list(pool.map(one, range(threads)))
        return {"threads": len(answers), "payers": len(session.history())}


def kills(folder: Path, what: str = "a quantile", many: int = 13) -> dict[str, float]:
    """Kill processes in the middle of an ask, each one look later; what stays charged once the books are opened."""
    opened = partial(farthing.Session, _rides(folder), budget=BUDGET, ledger=folder / "a.ledger", name="rides")
    opened().close()
    for number in range(many):
        worker = multiprocessing.get_context("fork").Process(target=_killed, args=(opened, number, what))
        worker.start()
        worker.join(PATIENCE_S)
    with opened() as session:
        history = session.history()
        session.verify()
        charged = sum(entry.charged for entry in history) / session._ledger.terms.budget
    counts = collections.Counter(entry.state for entry in history)
    return {"kills": many, **{state: counts[state] for state in ("open", "failed")}, "% of the budget": 100 * charged}


def _killed(opened: Callable[[], farthing.Session], number: int, what: str) -> None:
    """Ask for what would take its whole cap, and die as soon as so many of its looks were begun."""
    begun = itertools.count()
    begin = looks.BegunLooks.begin

    def dies(*given: object) -> None:
        begin(*given)
        if next(begun) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    looks.BegunLooks.begin = dies
    with opened() as session:
        if what == "a quantile":
            session.quantile("amount", 0.5, lower=0, upper=50 + number, absolute=1e-3)
        else:
            keys = {"amount": [float(amount) for amount in range(50)] + [60.0 + number]}
            session.count(by="amount", keys=keys, relative=0.05)


def interrupts(folder: Path, many: int = 20) -> dict[str, int]:
    """Press Ctrl-C at one moment after the other; every one is a KeyboardInterrupt, and leaves nothing open."""
    counts = collections.Counter[str]()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with Ctrl-C ignored
    with farthing.Session(_rides(folder), budget=BUDGET, ledger=folder / "a.ledger", name="rides") as session:
        for number in range(many):
            try:
                threading.Timer(0.01 + 0.004 * number, os.kill, (os.getpid(), signal.SIGINT)).start()
                while True:
                    session.count(where=f"amount < {number}", absolute=2000)
                    session.mean("amount", lower=0, upper=60 + number, absolute=20)
            except KeyboardInterrupt:
                counts["interrupts"] += 1
            except farthing.errors.BudgetExceeded:
                time.sleep(0.2)
                counts["too late"] += 1
        counts["left open"] = len(session.status()["open"])
    return {name: counts[name] for name in ("interrupts", "left open")}


def full_disks(folder: Path) -> dict[str, int]:
    """Make a ledger on a disk that fills up after so many bytes; then make it where there is room."""
    counts = collections.Counter[str]()
    for number, size in enumerate(range(0, 160_000, 8192)):
        path = folder / f"{number}.ledger"
        worker = multiprocessing.get_context("fork").Process(target=_make_within, args=(path, size))
        worker.start()
        worker.join(PATIENCE_S)
        counts["made" if worker.exitcode == 0 else "refused" if worker.exitcode == 1 else "raw errors"] += 1
        with Ledger.open(path, TERMS) as ledger:
            ask(ledger, "after")
            counts["good after"] += 1
    return {name: counts[name] for name in ("made", "refused", "raw errors", "good after")}


def _make_within(path: Path, size: int) -> None:
    """Make a ledger where no file may be larger."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        Ledger.open(path, TERMS).close()
    except FarthingError:
        os._exit(1)
    except BaseException:  # noqa: BLE001  what is counted
        os._exit(2)
    os._exit(0)


def odd_things(folder: Path) -> dict[str, int]:
    """Names of 250 letters, a clock beyond the year 9999, no memory, and Parquet files that were cut off."""
    whole = _rides(folder)
    text = whole.read_bytes()
    files = []
    for place in (1, len(text) // 2, len(text) - 5):
        files.append(folder / f"cut{place}.parquet")
        files[-1].write_bytes(text[:place])

    def late() -> None:
        with mock.patch("time.time_ns", return_value=1 << 60), Ledger.open(folder / "late.ledger", TERMS) as ledger:
            ask(ledger, "late")
            ledger.history()
            ledger.verify()

    def no_memory() -> None:
        with Ledger.open(folder / "m.ledger", TERMS) as ledger, mock.patch("farthing.ledger.booking.reserve") as broken:
            broken.side_effect = MemoryError
            ask(ledger, "q")

    works = [late, no_memory, partial(Ledger.open, folder / ("n" * 250), TERMS)]
    works += [partial(farthing.Session, file, budget=BUDGET) for file in files]
    counts = collections.Counter[str]()
    for work in works:
        try:
            work()
            counts["good"] += 1
        except FarthingError:
            counts["refused"] += 1
        except Exception:  # noqa: BLE001  what is counted
            counts["raw errors"] += 1
    return {name: counts[name] for name in ("good", "refused", "raw errors")}


def growth(_: Path) -> dict[str, float]:
    """Count the calls of an ask beside many reservations that died, and beside many stored questions."""
    found = {}
    for name, fill in {"died": _dead, "stored": _stored}.items():
        calls = []
        for many in (100, 2000):
            table = pa.table({"zone": [f"z{number}" for number in range(200)] * 10})
            with farthing.Session(table, budget=BUDGET, name="rides") as session:
                fill(session, many)
                calls.append(_calls(partial(session.count, by="zone", keys={"zone": ["z7", "z9"]}, absolute=900)))
        found[f"calls with 20 times as many {name}"] = calls[1] / calls[0]
    return found


def _dead(session: farthing.Session, many: int) -> None:
    """Leave reservations open, by a process that is gone."""
    gone = Process(1 << 22, platform.node(), "gone")
    with mock.patch("farthing.ledger.rows.this_process", return_value=gone):
        for number in range(many):
            session._ledger.reserve(increase=1, fresh=1, question=f"q {number}", version=0, label="left")


def _stored(session: farthing.Session, many: int) -> None:
    """Store questions of the family that is asked, each with other groups."""
    session.count(by="zone", keys={"zone": ["z0", "z1"]}, absolute=1000)
    asked = session.history()[0].question
    record = Record.from_bytes(session._ledger.load(asked).blob)
    pairs = itertools.combinations([f"z{number}" for number in range(200)], 2)
    for number, keys in enumerate(itertools.islice(pairs, many)):
        blob = replace(record, listed=keys_to_bytes(pa.table({"zone": keys}))).to_bytes()
        question = f"{asked[:FAMILY]}{number:032x}"
        receipt = session._ledger.reserve(increase=1, fresh=1, question=question, version=0, label="stored")
        session._ledger.settle(receipt, 1, lambda _, kept=blob: kept, tagged=partial(tags_of, question))


def _calls(work: Callable[[], object]) -> int:
    """Count the functions that are called."""
    count = itertools.count()
    sys.setprofile(lambda _, event, __: next(count) if event in {"call", "c_call"} else None)
    try:
        work()
    finally:
        sys.setprofile(None)
    return next(count)


def _rides(folder: Path) -> Path:
    """Write a table, and return where it is."""
    table = folder / "rides.parquet"
    pq.write_table(pa.table({"zone": ["a", "b"] * 50_000, "amount": [float(n % 50) for n in range(100_000)]}), table)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=200, help="how many bits are flipped, one at a time")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    figures = {}
    faults = {"forked workers": forks, "the same at once": payers, "given of 1,000": moves, "a mounted file": mounts,
              "PostgreSQL frozen": stalls,
              "spills": spills, "kills": kills, "kills of a count": partial(kills, what="a count"),
              "Ctrl-C": interrupts, "full disks": full_disks, "odd things": odd_things, "growth": growth}  # fmt: skip
    for name, replay in (*faults.items(), ("flipped bits", lambda place: flips(place, options.flips))):
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = replay(Path(folder))
        told = (
            f"{what} {count if isinstance(count, str) else f'{count:,.6g}'}" for what, count in figures[name].items()
        )
        print(f"{name:20}" + ", ".join(told), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
