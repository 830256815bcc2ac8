"""The whole of `Session.count`, ledger included, against DuckDB's own exact GROUP BY, as ratios in one run.

    python bench/speed/groupby.py                # 10,000,000 rows
    python bench/speed/groupby.py --large        # 100,000,000 rows too (about 1 GB of disk)
    python bench/speed/groupby.py --json out.json

Every ask is a fresh question (asking again would be free): it goes to a session of its own, opened on a fresh ledger
and warmed up by a question about one group. Memory is measured in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from data import PLACES, ZONES, rides

BUDGET = {"epsilon": 50, "delta": 1e-6}
TARGET = {"relative": 0.1, "absolute": 100.0}

BOUNDED = {  # at most 5 zones a rider, at most 20 rows in each: aggregate first, then choose
    "window": "SELECT zone, sum(c) FROM (SELECT zone, c, row_number() OVER (PARTITION BY rider ORDER BY u) r FROM "
    "(SELECT rider, zone, least(count(*), 20) c, random() u FROM read_parquet('{path}') GROUP BY rider, zone)) "
    "WHERE r <= 5 GROUP BY zone",
    "hashed": "SELECT zone, sum(c) FROM (SELECT rider, zone, least(count(*), 20) c FROM "
    "(SELECT rider, zone FROM read_parquet('{path}')) GROUP BY rider, zone "
    "QUALIFY row_number() OVER (PARTITION BY rider ORDER BY hash(rider, zone), zone) <= 5) GROUP BY zone",
    "heavy": "WITH cells AS MATERIALIZED (SELECT rider, zone, least(count(*), 20) c, random() u "
    "FROM read_parquet('{path}') GROUP BY rider, zone), "
    "heavy AS MATERIALIZED (SELECT rider FROM cells GROUP BY rider HAVING count(*) > 5) "
    "SELECT zone, sum(c) FROM (SELECT zone, c FROM cells WHERE rider NOT IN (SELECT rider FROM heavy) UNION ALL "
    "SELECT zone, c FROM (SELECT zone, c, row_number() OVER (PARTITION BY rider ORDER BY u) r FROM cells "
    "WHERE rider IN (SELECT rider FROM heavy)) WHERE r <= 5) GROUP BY zone",
    "lists": "SELECT cell.zone, sum(cell.c) FROM (SELECT unnest(min_by({{'zone': zone, 'c': c}}, u, 5)) cell FROM "
    "(SELECT rider, zone, least(count(*), 20) c, random() u FROM read_parquet('{path}') GROUP BY rider, zone) "
    "GROUP BY rider) GROUP BY cell.zone",
}


def timed(work, *arguments):
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def interleaved(exact, ours, repeats):
    """Time two calls one after the other, several times; return their medians and the median of the ratios."""
    exact(), ours(0)
    pairs = [(timed(exact), timed(ours, turn)) for turn in range(1, repeats + 1)]
    base, mine = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"exact_s": base, "farthing_s": mine, "ratio": statistics.median(b / a for a, b in pairs)}


def session(path, folder, **options):
    """Open a session on a fresh durable ledger."""
    import farthing

    ledger = Path(folder) / f"{time.monotonic_ns()}.ledger"
    return farthing.Session(path, budget=farthing.Budget(**BUDGET), ledger=ledger, name="rides", **options)


def sessions(by, path, folder, repeats, **options):
    """Open one warm session for each turn: its question was never asked, so it is paid, drawn and booked."""
    opened = [session(path, folder, **options) for _ in range(repeats + 1)]
    for each in opened:
        each.count(by=by, keys={by: [0]}, absolute=100_000)
    return opened


def row_unit(path, folder, repeats):
    """265 groups, each row a unit."""
    import duckdb

    connection, asked, keys = duckdb.connect(), sessions("zone", path, folder, repeats), list(range(ZONES))
    exact = f"SELECT zone, count(*) FROM read_parquet('{path}') GROUP BY zone"
    return interleaved(
        lambda: connection.execute(exact).fetchall(),
        lambda turn: asked[turn].count(by="zone", keys={"zone": keys}, cap="all", **TARGET),
        repeats,
    )


def user_unit(path, folder, repeats):
    """265 groups, the rider a unit: 5 zones a rider, 20 rows in each, against the best of four exact spellings."""
    import duckdb

    import farthing

    connection = duckdb.connect()
    spelled = {name: text.format(path=path) for name, text in BOUNDED.items()}

    def once(name):
        return timed(lambda: connection.execute(spelled[name]).fetchall())

    seconds = {name: min(once(name) for _ in range(3)) for name in spelled}
    best = min(seconds, key=seconds.get)
    bounds = farthing.Bounds(max_groups=5, max_rows=20)
    asked = sessions("zone", path, folder, repeats, unit="rider", bounds=bounds)
    keys = list(range(ZONES))
    result = interleaved(
        lambda: connection.execute(spelled[best]).fetchall(),
        lambda turn: asked[turn].count(by="zone", keys={"zone": keys}, cap="all", relative=0.1, absolute=2000),
        repeats,
    )
    return result | {"best_sql": best}


def many_groups(path, folder, repeats):
    """1,000,000 groups refined over several looks."""
    import duckdb
    import numpy as np

    connection, asked, looks = duckdb.connect(), sessions("place", path, folder, repeats), []
    exact = f"SELECT place, count(*) FROM read_parquet('{path}') GROUP BY place"
    keys = np.arange(PLACES, dtype=np.int32)

    def ours(turn):
        seen = []
        asked[turn].count(by="place", keys={"place": keys}, relative=0.1, absolute=30, progress=seen.append)
        looks.append(seen[-1].look)

    result = interleaved(lambda: connection.execute(exact).fetchnumpy(), ours, repeats)
    return result | {"over_s": result["farthing_s"] - result["exact_s"], "looks": max(looks)}


CHILD = """
import json, sys
def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
def reset():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
which, path, ledger = sys.argv[1:4]
if which == "duckdb":
    import duckdb
    connection = duckdb.connect()
    work = lambda: connection.execute(f"SELECT zone, count(*) FROM read_parquet('{path}') GROUP BY zone").fetchall()
else:
    import pyarrow as pa
    import farthing
    small = farthing.Session(pa.table({"zone": [1, 2]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    small.count(by="zone", keys={"zone": [1, 2]}, relative=0.1, absolute=100)
    asked = farthing.Session(path, budget=farthing.Budget(epsilon=50, delta=1e-6), ledger=ledger, name="rides")
    work = lambda: asked.count(by="zone", keys={"zone": list(range(265))}, relative=0.1, absolute=100)
idle = status("VmRSS")
reset()
work()
print(json.dumps({"idle_mib": idle, "peak_mib": status("VmHWM")}))
"""


def memory(path, folder):
    """Peak memory above the idle, fully imported process, and of the whole process, beside DuckDB's own."""
    found = {}
    for which in ("duckdb", "farthing"):
        runs = []
        for turn in range(3):
            ledger = str(Path(folder) / f"memory-{which}-{turn}.ledger")
            out = subprocess.run(
                [sys.executable, "-c", CHILD, which, str(path), ledger], capture_output=True, text=True, check=True
            )
            runs.append(json.loads(out.stdout))
        found[which] = min(runs, key=lambda run: run["peak_mib"] - run["idle_mib"])
    above = {which: run["peak_mib"] - run["idle_mib"] for which, run in found.items()}
    return {
        "duckdb_above_idle_mib": above["duckdb"],
        "farthing_above_idle_mib": above["farthing"],
        "ratio": above["farthing"] / above["duckdb"],
        "farthing_whole_mib": found["farthing"]["peak_mib"],
    }


def main() -> None:
    """Run, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 100,000,000 rows")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--data", type=Path, default=None, help="folder for the generated tables")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    path = rides(10_000_000, options.data)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        results["265 groups, 1e7 rows, row unit"] = row_unit(path, folder, options.repeats) | {"limit": 1.5}
        results["265 groups, 1e7 rows, user unit"] = user_unit(path, folder, max(3, options.repeats // 2)) | {
            "limit": 1.25
        }
        results["1e6 groups, 1e7 rows, row unit"] = many_groups(path, folder, max(3, options.repeats // 2)) | {
            "limit_over_s": 3.0
        }
        results["memory, 265 groups, 1e7 rows"] = memory(path, folder) | {"limit": 1.5, "limit_whole_mib": 400}
        if options.large:
            large = rides(100_000_000, options.data)
            results["265 groups, 1e8 rows, row unit"] = row_unit(large, folder, options.repeats) | {"limit": 1.15}
    for name, row in results.items():
        print(name)
        for key, value in row.items():
            print(f"    {key:<26} {value:.4g}" if isinstance(value, float) else f"    {key:<26} {value}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
