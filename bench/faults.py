"""What goes wrong in operations, replayed with counts: flipped bits, files that move, forks, threads that ask the same.

Figures to keep: nothing wrong shown, no raw error, never more than one budget given out, no worker that hangs, one
payer.

    python bench/faults.py [--flips 200] [--json FILE]
"""

import argparse
import collections
import json
import multiprocessing
import os
import random
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import farthing
from farthing.errors import FarthingError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

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
    """Flip one bit of a ledger's file at a time; half of them where something is written."""
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
            same = shown(path) == told
            counts["as written" if same else "wrong"] += 1
        except FarthingError:
            counts["refused"] += 1
        except Exception:  # noqa: BLE001  what is counted
            counts["raw errors"] += 1
    return {name: counts[name] for name in ("as written", "refused", "wrong", "raw errors")}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=200, help="how many bits are flipped, one at a time")
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    figures = {}
    faults = {"forked workers": forks, "the same at once": payers, "given of 1,000": moves}
    for name, replay in (*faults.items(), ("flipped bits", lambda place: flips(place, options.flips))):
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = replay(Path(folder))
        print(f"{name:20}" + ", ".join(f"{what} {count:,}" for what, count in figures[name].items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
