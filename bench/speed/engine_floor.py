"""What the engine costs over DuckDB's own exact SQL, in one process, taking turns.

usage: engine_floor.py TAXI.parquet [ROUNDS]

TAXI.parquet has pickup_zone (265 zones), rider_id and ride_id. Prints a table and, last, one line of JSON.
* row: 265 groups against SELECT pickup_zone, count(*) GROUP BY 1 (warm medians)
* unit: 5 zones a rider, 20 rows in each, against the best plain SQL for the same bounding
* many: 1,000,000 groups against their exact GROUP BY
* memory: peak above the idle process, each in a process of its own
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa

from farthing.engines import open_table
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query

EXACT = "SELECT {by}, count(*) AS n FROM read_parquet('{path}') GROUP BY 1"
BOUNDED = """SELECT z, sum(c) AS n FROM (
    SELECT u, z, least(count(*), 20) AS c
    FROM (SELECT rider_id AS u, pickup_zone AS z FROM read_parquet('{path}')) GROUP BY u, z
    QUALIFY row_number() OVER (PARTITION BY u ORDER BY hash(u, z), z) <= 5) GROUP BY z"""


def question(engine, by, groups, unit=None, bounds=None):
    """Return a counting question over the integer keys 0..groups."""
    keys = Keys.of((by,), {by: range(groups)}, engine.schema)
    return Query(engine.name, (by,), keys, None, "n", PrivacyUnit(unit), bounds or Bounds())


def seconds(run):
    """Return how long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(label, exact, ours, rounds):
    """Return medians of both, taken in turns; the first round only warms up."""
    pairs = [(seconds(exact), seconds(ours)) for _ in range(rounds + 1)][1:]
    floor, cost = (statistics.median(side) for side in zip(*pairs, strict=True))
    over = f"ratio {cost / floor:5.2f}   over {1e3 * (cost - floor):7.1f} ms"
    print(f"{label:10} exact {floor:8.4f} s   ours {cost:8.4f} s   {over}")
    return {"exact_s": floor, "ours_s": cost}


def rss_kib(field):
    """Return a memory figure of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1])


def memory(side, unit, path):
    """Print idle and peak memory (KiB) of one side in this process."""
    engine = open_table(path)
    query = question(engine, "pickup_zone", 266, *(("rider_id", Bounds(5, 20)) if unit == "unit" else ()))
    small = open_table(pa.table({"g": [1]}))  # what is imported at the first question is part of the idle process
    small.counts(question(small, "g", 1), 7)
    warm = duckdb.connect()
    warm.execute("SELECT 1").to_arrow_table()
    Path("/proc/self/clear_refs").write_text("5")
    idle = rss_kib("VmRSS")
    if side == "ours":
        engine.counts(query, 7)
    else:
        sql = BOUNDED if unit == "unit" else EXACT
        warm.execute(sql.format(path=path, by="pickup_zone")).to_arrow_table()
    print(json.dumps([idle, rss_kib("VmHWM")]))


def memories(path):
    """Return peaks above idle in MiB, each side in a process of its own."""
    found = {}
    for unit in ("row", "unit"):
        for side in ("exact", "ours"):
            command = [sys.executable, __file__, "--memory", side, unit, path]
            idle, peak = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            found[f"{unit}_{side}"] = {"above_idle_mib": (peak - idle) / 1024, "process_mib": peak / 1024}
            print(
                f"memory {unit:5}{side:6} above idle {(peak - idle) / 1024:7.0f} MiB   process {peak / 1024:7.0f} MiB"
            )
    return found


def main():
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    plain, engine = duckdb.connect(), open_table(path)

    def exact(sql):
        return lambda: plain.execute(sql).to_arrow_table()

    def ours(asked, query):
        return lambda: asked.counts(query, 7)

    row, unit = question(engine, "pickup_zone", 266), question(engine, "pickup_zone", 266, "rider_id", Bounds(5, 20))
    found = {"row": compare("row", exact(EXACT.format(by="pickup_zone", path=path)), ours(engine, row), rounds)}
    found["unit"] = compare("unit", exact(BOUNDED.format(path=path)), ours(engine, unit), max(2, rounds // 3))
    with tempfile.TemporaryDirectory() as folder:
        many = f"{folder}/many.parquet"
        plain.execute(f"COPY (SELECT hash(ride_id) % 1000000 AS g FROM read_parquet('{path}')) TO '{many}'")
        wide = open_table(many)
        query = question(wide, "g", 1_000_000)
        found["many"] = compare("many", exact(EXACT.format(by="g", path=many)), ours(wide, query), max(3, rounds // 2))
    found["memory"] = memories(path)
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "--memory":
        memory(*sys.argv[2:5])
    else:
        main()
