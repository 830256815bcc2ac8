"""How often intervals of sums miss where all rows are alike: rounding must not be a systematic error.

    python bench/accuracy/repeated.py               # 10,000,000 and 40,000,000 rows, 40 runs each
    python bench/accuracy/repeated.py --at 1e6 --runs 20

Every row is 19.95, clamped to [0, 100]; the target is 1000. Beside the misses: by how much the measured total is off.
"""

from __future__ import annotations

import argparse

import pyarrow as pa

from farthing import Budget, Session
from farthing.engines import open_table
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query
from farthing.query.aggregates import NamedAggregate, Sum
from farthing.query.expressions import Column

VALUE, UPPER, TARGET = 19.95, 100, 1_000


def misses(table: pa.Table, runs: int) -> int:
    """Return how many of so many fresh intervals miss the clamped truth."""
    truth, missed = VALUE * len(table), 0
    for _ in range(runs):
        with Session(table, budget=Budget(mu=10)) as session:
            answer = session.sum("x", lower=0, upper=UPPER, absolute=TARGET)
        missed += not answer.lower <= truth <= answer.upper
    return missed


def off(table: pa.Table) -> float:
    """Return by how much the engine's total is off, before any noise."""
    query = Query("data", (), None, None, (NamedAggregate("s", Sum(Column("x"), 0, UPPER)),), PrivacyUnit(), Bounds())
    return float(open_table(table, name="data").measure(query, 1)[0, 0] * query.measures[0].step - VALUE * len(table))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", type=float, nargs="+", default=(1e7, 4e7), help="rows")
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    print(f"{'rows':>12} {'misses':>10} {'off by':>12}")
    for rows in map(int, options.at):
        column = pa.chunked_array(
            [pa.repeat(VALUE, 1_000_000)] * (rows // 1_000_000) + [pa.repeat(VALUE, rows % 1_000_000)]
        )
        table = pa.table({"x": column})
        print(f"{rows:>12,} {misses(table, options.runs):>3} of {options.runs:<3} {off(table):>12.6f}", flush=True)


if __name__ == "__main__":
    main()
