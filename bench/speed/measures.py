"""Several measures of very many groups: whole asks, ledger included, over the exact query, in seconds of processor.

    python bench/speed/measures.py                          # 1,000,000 groups of ten rows
    python bench/speed/measures.py --groups 1e5 --turns 5

Each ask is new, of a session of its own on a table in memory: it is planned, paid, drawn and booked. Beside it the same
bounded aggregates in plain SQL on the DuckDB that farthing embeds, in turns. Seconds of processor, of all threads; the
least of the turns is told, and the most memory that the process had so far, with the table of 16 bytes a row. The least
time by the clock is told, too, which says something on a machine without other work only.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

import farthing

SUM, MEAN = "SUM(CLAMP(fare, 0, 100))", "AVG(CLAMP(fare, 0, 100))"
ALL = f"COUNT(*) AS n, {SUM} AS s, {MEAN} AS m"
BOUNDED = "least(greatest(fare, 0), 100)"
EXACT = {"n": "count(*)", "s": f"sum({BOUNDED})", "m": f"avg({BOUNDED})", "q": "sum(least(greatest(fare, 0), 50))"}
NARROW, WIDE = {"n": 5, "s": 100, "m": 5}, {"n": 5, "s": 100, "q": 100}

ASKED = {
    "one count, within 10 % or 30": ("COUNT(*) AS n", {"relative": 0.1, "absolute": 30}),
    "a count and two sums, absolute": (f"COUNT(*) AS n, {SUM} AS s, SUM(CLAMP(fare, 0, 50)) AS q", {"absolute": WIDE}),
    "count, sum, mean at a named loss": (ALL, {"loss": farthing.Gdp(1)}),
    "count, sum, mean, absolute": (ALL, {"absolute": NARROW}),
    "count, sum, mean, 20 % or absolute": (ALL, {"relative": 0.2, "absolute": NARROW}),
    "one mean, absolute": (f"{MEAN} AS m", {"absolute": 5}),
}  # fmt: skip


def seconds(work) -> tuple[float, float]:
    """Return the seconds that a call takes: of processor, of all threads, and by the clock."""
    start, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - start, time.perf_counter() - clock


def main() -> None:
    """Ask everything in turns, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=float, default=1e6)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    groups, rng = int(asked.groups), np.random.default_rng(7)
    table = pa.table({"zone": rng.integers(0, groups, 10 * groups), "fare": rng.gamma(2, 10, 10 * groups)})
    keys, found = {"zone": np.arange(groups)}, {}
    exact = duckdb.connect(config={"threads": 1})
    exact.register("t", table)
    for name, (columns, how) in ASKED.items():
        if asked.only not in name:
            continue
        wanted = ", ".join(EXACT[one] for one in "nsqm" if f"AS {one}" in columns)

        def plain(wanted=wanted):
            exact.execute(f"SELECT zone, {wanted} FROM t GROUP BY zone").fetchnumpy()

        def ours(columns=columns, how=how if "loss" in how else how | {"cap": "all"}):
            session = farthing.Session(table, budget=farthing.Budget(epsilon=5000, delta=1e-6), name="t")
            session.sql(f"SELECT zone, {columns} FROM t GROUP BY zone", keys=keys, **how)

        pairs = [(seconds(plain)[0], *seconds(ours)) for _ in range(asked.turns)]
        base, mine, clock = (min(column) for column in zip(*pairs, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        over = median(b - a for a, b, _ in pairs)
        found[name] = {"exact_s": base, "farthing_s": mine, "clock_s": clock, "over_s": over, "peak_mib": peak}
        print(
            f"{name:38s} exact {base:6.2f} s   farthing {mine:6.2f} s   more {mine - base:6.2f} s   "
            f"clock {clock:6.2f} s   {peak:,} MiB",
            flush=True,
        )
    if asked.json:
        asked.json.write_text(json.dumps({"groups": groups, "asks": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
