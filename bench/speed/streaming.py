"""How much memory a question on partitioned Parquet takes, by the rows: tables of several times the memory allowed.

    python bench/speed/streaming.py                          # 1e8, 2e8 and 4e8 rows, a few GB of disk
    python bench/speed/streaming.py --rows 1e6 4e6 --limit 1 --data FOLDER

The table has one folder a month (`month=1/part0.parquet`, ...). Every size is asked in a process of its own, which may
not have more than `--limit` GiB of memory of its own (RLIMIT_DATA), one question after the other: five aggregates by
265 zones where each row is a unit, and a count by month where a rider is, with at most 5 months and 20 rows in each:
what that holds are a rider's months, however many rows they have. `table` is what the rows take in memory, column by
column. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ZONES, RIDERS, PART = 265, 100_000, 5_000_000
BYTES = 4 + 2 + 8
ROWS = (
    f"SELECT (hash(i) % {RIDERS})::INTEGER AS rider, ({ZONES} * pow(hash(-i) / 2e19, 3))::SMALLINT AS zone, "
    "(hash(3 * i) % 10000 / 100)::DOUBLE AS fare FROM range({first}, {stop}) t(i)"
)
FIVE = (
    "SELECT zone, COUNT(*) AS n, SUM(CLAMP(fare, 0, 100)) AS s, AVG(CLAMP(fare, 0, 100)) AS m, VARIANCE(CLAMP(fare, 0, "
    "100)) AS v, STDDEV(CLAMP(fare, 0, 100)) AS d FROM rides GROUP BY zone"
)
COUNT = "SELECT month, COUNT(*) AS n FROM rides GROUP BY month"


def made(folder: Path, rows: int) -> None:
    """Write what is missing of the table, a month after the other."""
    import duckdb

    for part, first in enumerate(range(0, rows, PART)):
        path = folder / f"month={part % 12 + 1}" / f"part{part}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_suffix(".draft")
            text = ROWS.format(first=first, stop=min(first + PART, rows))
            duckdb.connect().execute(f"COPY ({text}) TO '{draft}' (FORMAT parquet, ROW_GROUP_SIZE 500000)")
            draft.rename(path)


def asked(folder: Path, rows: int, limit: float) -> dict[str, float]:
    """Ask both questions of so many rows in this process; return peak memory and seconds of processor."""
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit * 2**30),) * 2)
    import farthing

    parts = range(0, rows, PART)
    with tempfile.TemporaryDirectory(dir=folder) as chosen:
        for part in range(len(parts)):
            month = Path(chosen) / f"month={part % 12 + 1}"
            month.mkdir(exist_ok=True)
            (month / f"part{part}.parquet").hardlink_to(folder / month.name / f"part{part}.parquet")
        table, found = f"{chosen}/*/*.parquet", {"rows": rows, "table_gib": rows * BYTES / 2**30}
        budget, bounds = farthing.Budget(epsilon=50, delta=1e-6), farthing.Bounds(max_groups=5, max_rows=20)
        zones, months = {"zone": range(ZONES)}, {"month": range(1, 13)}
        riders = {"unit": "rider", "bounds": bounds}
        for name, text, keys, how in (("five", FIVE, zones, {}), ("riders", COUNT, months, riders)):
            with farthing.Session(table, name="rides", budget=budget, **how) as session:
                start = time.process_time()
                session.sql(text, keys=keys, absolute=2_000)
                found[f"{name}_s"] = time.process_time() - start
                found[f"{name}_peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        return found


def main() -> None:
    """Make the table, ask each size in a process of its own, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e8, 2e8, 4e8])
    parser.add_argument("--limit", type=float, default=1.0, help="GiB of a process's own memory; 0 for no limit")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "farthing-bench" / "partitioned")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(rows) for rows in given.rows]
    if given.worker:
        print(json.dumps(asked(given.data, sizes[0], given.limit)))
        return
    made(given.data, max(sizes))
    print(f"{'rows':>12} {'table GiB':>10} {'five s':>8} {'peak MiB':>9} {'riders s':>9} {'peak MiB':>9}")
    for rows in sizes:
        command = [sys.executable, __file__, "--worker", "--rows", str(rows), "--data", str(given.data)]
        told = subprocess.run(
            [*command, "--limit", str(given.limit)], check=True, capture_output=True, text=True
        ).stdout
        one = json.loads(told.splitlines()[-1])
        shown = (
            f"{one['five_s']:>8.1f} {one['five_peak_mib']:>9.0f} {one['riders_s']:>9.1f} {one['riders_peak_mib']:>9.0f}"
        )
        print(f"{rows:>12,} {one['table_gib']:>10.1f} {shown}", flush=True)


if __name__ == "__main__":
    main()
