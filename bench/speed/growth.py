"""How work grows with what is asked: constants of a condition, groups of an answer, rows of a table.

Every figure is processor time (user and system), which means the same however busy a machine is, or memory; each is
taken in a process of its own where that matters. Figures to keep: a plan and an ask with 10,000 constants under 1 s;
twice the lists on one column at most about twice the work; 10,000,000 groups under 1 GiB and 40 s; with 100,000,000
rows at most 1.15 times the exact query.

    python bench/speed/growth.py [--groups 1e7] [--rows 1e8] [--repeats 3] [--data FOLDER] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from data import ZONES, rides

import farthing

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET = farthing.Budget(epsilon=50, delta=1e-6)
EXACT = """
import json, sys, time
import duckdb
start = time.process_time()
by = sys.argv[2] == "by zone"
text = "SELECT {}count(*) FROM read_parquet('" + sys.argv[1] + "'){}"
duckdb.connect().execute(text.format(*("zone, ", " GROUP BY zone") if by else ("", ""))).fetchall()
print(json.dumps({"asked": time.process_time() - start}))
"""
LIBRARIES = """
import json, duckdb, flint, numpy, pyarrow.compute, pyarrow.parquet, sqlalchemy, sqlite3
print(json.dumps({}))
"""
OURS = """
import json, sys, tempfile, time
import farthing, farthing.session
import duckdb, flint, pyarrow.compute, pyarrow.parquet
start = time.process_time()
by = {"by": "zone", "keys": {"zone": range(int(sys.argv[3]))}} if sys.argv[2] == "by zone" else {}
with tempfile.TemporaryDirectory() as folder:
    budget = farthing.Budget(epsilon=50, delta=1e-6)
    with farthing.Session(sys.argv[1], budget=budget, ledger=folder + "/a.ledger", name="rides") as session:
        session.count(absolute=1_000, **by)
print(json.dumps({"asked": time.process_time() - start}))
"""


def took(work: Callable[[], object]) -> float:
    """Return the seconds of processor that a call takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def constants() -> dict[str, float]:
    """Return what a plan and its ask take together, by the constants of one list and by the lists of 20 constants."""
    found, table = {}, pa.table({"x": np.arange(100_000) % 20_000})
    conditions = {f"{many:,} constants": [range(many)] for many in (10, 5_000, 10_000)}
    conditions |= {f"{many} lists": [range(place, place + 20) for place in range(many)] for many in (2, 7, 14, 28, 56)}
    for name, lists in conditions.items():
        with farthing.Session(table, budget=BUDGET, name="t") as session:
            session.sql("SELECT COUNT(*) AS n FROM t WHERE x IN (1)", absolute=2_000)
            where = " OR ".join(f"NOT x IN ({', '.join(map(str, values))})" for values in lists)
            text = f"SELECT COUNT(*) AS n FROM t WHERE {where.removeprefix('NOT ') if len(lists) == 1 else where}"
            plan, ask = (partial(call, text, absolute=1_000) for call in (session.plan, session.sql))
            found[name] = took(plan) + took(ask)
    return found


def groups(path: str, many: int, relative: float) -> dict[str, float]:
    """Return what a count of very many groups takes, in a process of its own: answer, record and frame."""
    target = {"relative": relative, "absolute": 100} if relative else {"absolute": 100}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
        session = farthing.Session(path, budget=BUDGET, ledger=Path(folder) / "a.ledger", name="rides")
        with session:
            start = time.process_time()
            answer = session.count(by="place", keys={"place": range(many)}, **target)
            rows = answer.to_arrow().num_rows
            seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        return {"groups": rows, "seconds": seconds, "peak_gib": peak}


def places(folder: Path, many: int) -> Path:
    """Write a table of twice as many rows as there are groups."""
    import pyarrow.parquet as pq

    path, chance = folder / f"places-{many}.parquet", np.random.default_rng(20)
    with pq.ParquetWriter(path, pa.schema([("place", pa.int32())])) as writer:
        for _ in range(20):
            writer.write_table(pa.table({"place": chance.integers(0, many, many // 10, dtype=np.int32)}))
    return path


def in_a_process(*arguments: str) -> dict[str, float]:
    """Run one measurement in a process of its own; return it with the processor of the whole process."""
    compiled = Path(tempfile.gettempdir()) / f"farthing-bench-compiled-{os.getuid()}"  # as an installation has them
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(compiled), "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout  # may show progress
    found = json.loads(told.splitlines()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found | {"whole": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def rows(path: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Compare one ask of a fresh process with one exact query of a fresh process: the least of several turns each.

    `asked` starts when the libraries are imported, of both; `whole` is the process. What importing numpy, pyarrow,
    DuckDB and SQLAlchemy takes by itself is printed beside.
    """
    in_a_process("-c", LIBRARIES)  # compiles
    libraries = min(in_a_process("-c", LIBRARIES)["whole"] for _ in range(repeats))
    found = {"importing the libraries": {"whole_s": libraries}}
    for what in ("the total", "by zone"):
        turns: dict[str, list[dict[str, float]]] = {"exact": [], "ours": []}
        for _ in range(repeats):
            for which, code in (("exact", EXACT), ("ours", OURS)):
                turns[which].append(in_a_process("-c", code, str(path), what, str(ZONES)))
        least = {f"{which}_{part}_s": min(turn[part] for turn in taken)
                 for which, taken in turns.items() for part in ("asked", "whole")}  # fmt: skip
        ratios = {f"ratio_{part}": least[f"ours_{part}_s"] / least[f"exact_{part}_s"] for part in ("asked", "whole")}
        found[what] = least | ratios
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=float, default=1e7, help="groups of the large answer; 0 leaves it out")
    parser.add_argument("--rows", type=float, default=1e8, help="rows of the large table; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=None, help="folder for the generated tables")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        path, many, relative = options.worker
        print(json.dumps(groups(path, int(many), float(relative))))
        return
    figures: dict[str, object] = {"constants, seconds of a plan and its ask": constants()}
    if options.groups:
        with tempfile.TemporaryDirectory(dir=options.data) as folder:
            path = places(Path(folder), int(options.groups))
            for relative in (0.0, 0.1):
                given = ("--worker", str(path), str(int(options.groups)), str(relative))
                figures[f"groups, relative target {relative:g}"] = in_a_process(__file__, *given)
    if options.rows:
        figures["rows"] = rows(rides(int(options.rows), options.data), options.repeats)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
