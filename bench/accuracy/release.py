"""What a release of all k-way tables costs over the least that is possible, and how often its intervals miss.

First the closed forms: the root mean squared error per cell at mu = 1 of the design that a session measures, over
`limits.marginals_error`; the largest standard deviation of the design for every cell; and what other ways would have.
Then real tables, coded as whole numbers (`--data DIR` with adult.csv.gz and its like): all two-way tables, every cell
within an absolute target at 95 %: misses by cell, misses of the worst table, the price over the least of any unbiased
mechanism, and the root mean squared error that was found over the one that was told.

    python bench/accuracy/release.py [--data DIR] [--ways 2] [--absolute 50] [--names adult,acs,br2000,nltcs]
"""

from __future__ import annotations

import argparse
import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.csv

from farthing import Budget, Gdp, Session
from farthing.limits import marginals_error
from farthing.limits.tables import tables_of
from farthing.mechanisms.gaussian import Coin
from farthing.planning.releasing import Goal, design_for
from farthing.workloads import marginals

DOMAINS = {
    "14 columns": (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2),
    "5 columns": (100, 50, 7, 4, 2),
    "10 binary": (2,) * 10,
}


def forms(sizes, ways, *, up_to):
    """Return the error of a planned design over the closed form, both ways' largest deviations, at mu = 1."""
    basis = tables_of(sizes, ways, up_to=up_to)
    nothing = np.zeros(len(basis.subsets))
    made = design_for(basis, Coin(Gdp, 1, 1), Goal(None, None, Gdp(1), 0.95, 0.05), nothing, 1)
    every = basis.variances(basis.least_largest()[0])
    best = marginals_error(sizes, ways, up_to=up_to)
    return best, made.rmse / best, np.sqrt(made.variances.max()), np.sqrt(every.max())


def measured(path, ways, absolute):
    """Release all tables of a real data set; return what was found about them."""
    with gzip.open(path) as file:
        table = pyarrow.csv.read_csv(file)
    names = table.column_names
    codes = {name: table.column(name).to_numpy() for name in names}
    sizes = {name: int(codes[name].max()) + 1 for name in names}
    with Session(table, budget=Budget(mu=20), name="data") as session:
        workload, keys = marginals(names, ways=ways), {name: range(size) for name, size in sizes.items()}
        release = session.release(workload, keys=keys, absolute=absolute, cap="all")
        missed, cells, squares, worst = 0, 0, 0.0, 0.0
        for columns in release:
            shape = tuple(sizes[name] for name in columns)
            flat = np.ravel_multi_index([codes[name] for name in columns], shape)
            error = abs(release[columns].value.reshape(-1) - np.bincount(flat, minlength=int(np.prod(shape))))
            outside = int((error > release[columns].half_width).sum())
            missed, cells, squares = missed + outside, cells + error.size, squares + float((error**2).sum())
            worst = max(worst, outside / error.size) if error.size >= 1000 else worst
        found = np.sqrt(squares / cells) / release.rmse
        return len(release), cells, missed / cells, worst, release.paid.value, release.optimality().ratio, found


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder with NAME.csv.gz")
    parser.add_argument("--ways", type=int, default=2)
    parser.add_argument("--absolute", type=float, default=50)
    parser.add_argument("--names", default="adult,acs,br2000,nltcs")
    given = parser.parse_args()
    print("domain       tables       least rmse   planned/least   largest sd of it   least largest sd")
    tracemalloc.start()
    for name, sizes in DOMAINS.items():
        for ways, up_to in ((1, False), (2, False), (3, False), (3, True)):
            best, ratio, largest, every = forms(sizes, ways, up_to=up_to)
            shown = f"{'up to ' if up_to else ''}{ways}-way"
            print(f"{name:11s}  {shown:11s}  {best:10.3f}  {ratio:13.4f}x  {largest:17.3f}  {every:17.3f}")
    print(f"most memory while planning: {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MiB")
    tracemalloc.stop()
    for name in given.names.split(",") if given.data else ():
        tables, cells, missed, worst, mu, ratio, found = measured(
            given.data / f"{name}.csv.gz", given.ways, given.absolute
        )
        print(
            f"{name}: {tables} {given.ways}-way tables, {cells:,} cells within {given.absolute:g}: "
            f"{100 * missed:.2f} % miss, {100 * worst:.2f} % of the worst table of 1,000 cells; mu {mu:.4g}, "
            f"{ratio:.4f} times the least mu^2; rmse found/told {found:.4f}"
        )


if __name__ == "__main__":
    main()
