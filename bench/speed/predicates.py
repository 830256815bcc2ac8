"""Eleven conditions on a sorted Parquet file: a count under each, beside the exact count of the same DuckDB, as ratios.

    python bench/speed/predicates.py              # 20,000,000 rows
    python bench/speed/predicates.py --rows 2e6

Every row is a unit. Readers of Parquet skip what the statistics of a row group exclude, where a condition is handed to
them. Both sides run alternately; times are the least of the runs, of the clock and of the processor (all threads): the
second means the same on a busy machine. A count may take 1.5 times the exact one and 8 ms. The first count on a column
of reals looks once whether it holds NaN, which the statistics leave out. pyarrow reads times of milliseconds, all of
them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

PREDICATES = {
    "real from": "real >= 0.99",
    "real up to": "real < 0.01",
    "real between": "real BETWEEN 0.5 AND 0.51",
    "real, always true": "real <= 2",
    "real, never true": "real > 2",
    "decimal from": "money >= 990.5",
    "decimal, always true": "money <= 2000",
    "date from": "day >= DATE '2013-12-25'",
    "whole number from": "whole >= 19000000",
    "microseconds from": "micros >= TIMESTAMP '2013-12-25 00:00:00'",
    "milliseconds from": "millis >= TIMESTAMP '2013-12-25 00:00:00'",
}


def made(path, rows):
    """Write the sorted table."""
    import duckdb

    duckdb.connect().execute(
        f"COPY (SELECT i AS whole, i / {rows}::DOUBLE AS real, (1000 * i / {rows})::DECIMAL(9, 3) AS money, "
        f"DATE '2013-01-01' + (365 * i / {rows})::INTEGER AS day, "
        f"make_timestamp(1356998400000000 + 1000 * (31536000000 * i / {rows})::BIGINT) AS micros, "
        f"micros::TIMESTAMP_MS AS millis FROM range({rows}) t(i)) "
        f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)"
    )


def least(sides, repeats):
    """Return the least seconds of several calls of each side in turns, as pairs: of the clock, of the processor."""
    found = [[] for _ in sides]
    for _ in range(repeats):
        for work, seconds in zip(sides, found, strict=True):
            start, began = time.perf_counter(), time.process_time()
            work()
            seconds.append((time.perf_counter() - start, time.process_time() - began))
    return [tuple(map(min, zip(*seconds, strict=True))) for seconds in found]


def main() -> None:
    """Print the table."""
    import duckdb

    from farthing.engines import open_table
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Bounds, Query, counting
    from farthing.sql import parse_predicate

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    rows = int(asked.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sorted.parquet"
        made(path, rows)
        connection, engine = duckdb.connect(), open_table(path, name="t")
        heads = f"{'exact ms':>9} {'ours ms':>9} {'ratio':>7} {'processor':>9} {'ours':>9} {'ratio':>7}"
        print(f"{'condition':<22} {heads}  within 1.5x + 8 ms of the processor")
        for name, text in PREDICATES.items():
            spelled = text.replace("19000000", str(rows * 19 // 20))
            sql = f"SELECT count(*) FROM read_parquet('{path}') WHERE {spelled}"
            where = parse_predicate(spelled, engine.schema)
            query = Query("t", (), None, where, counting("n"), PrivacyUnit(), Bounds())
            truth, first = connection.execute(sql).fetchone()[0], time.perf_counter()
            if truth != engine.measure(query, 7)[0, 0]:
                raise SystemExit(f"{name}: another count than the exact one")
            first = time.perf_counter() - first
            sides = (lambda sql=sql: connection.execute(sql).fetchall(), lambda query=query: engine.measure(query, 7))
            (clock, processor), (ours, work) = least(sides, asked.repeats)
            told = "yes" if work <= 1.5 * processor + 0.008 else "NO"
            figures = f"{clock * 1e3:>9.1f} {ours * 1e3:>9.1f} {ours / clock:>7.2f} {processor * 1e3:>9.1f} "
            print(
                f"{name:<22} {figures}{work * 1e3:>9.1f} {work / processor:>7.2f}  {told} (first {first * 1e3:.0f} ms)"
            )


if __name__ == "__main__":
    sys.exit(main())
