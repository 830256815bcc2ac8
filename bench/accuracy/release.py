"""What a release of all k-way tables costs over the least that is possible, and how often its intervals miss.

First the closed forms: the root mean squared error per cell at mu = 1 of the design that a session measures, over
`limits.marginals_error`; the largest standard deviation of the design for every cell; and what other ways would have.
Then tables, real ones coded as whole numbers too (`--data DIR` with adult.csv.gz and its like): all two-way tables,
every cell within a target at 95 %: how many intervals miss, how many values are beyond the target, the price over the
least of any unbiased mechanism with these errors, and over that of the absolute target alone.

    python bench/accuracy/release.py [--data DIR] [--ways 2] [--absolute 50] [--relative 0.1] [--runs 3]
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
from farthing.mechanisms.gaussian import GRAIN, Coin
from farthing.planning.release import design_for
from farthing.planning.release_plan import Goal
from farthing.planning.release_shaped import ShapedDesign
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


def loaded(path):
    """Return a table of whole numbers from 0, and the sizes of its columns."""
    with gzip.open(path) as file:
        table = pyarrow.csv.read_csv(file)
    return table, {name: int(table.column(name).to_numpy().max()) + 1 for name in table.column_names}


def even(rows):
    """Return a table whose cells are all about as large, and the sizes of its columns."""
    sizes = {"a": 5, "b": 4, "c": 3}
    random = np.random.default_rng(1)
    return pyarrow.table({name: random.integers(0, size, rows) for name, size in sizes.items()}), sizes


def members(release, table):
    """Return what each row pays for a release, float64[rows], in mu squared: what was measured of its cells, and the
    pilot; and what the books hold of it.
    """
    plan, names = release._plan, sorted(release.columns)
    pilot, design = plan.pilot * float(GRAIN), plan.design
    if not isinstance(design, ShapedDesign):
        return np.full(len(table), design.total * float(GRAIN) + pilot), design.total * float(GRAIN) + pilot
    codes = np.stack([table.column(name).to_numpy() for name in names], axis=1)
    return design.paid(codes) + pilot, design.total * float(GRAIN) + pilot


def measured(table, sizes, given):
    """Release all tables of a data set, several times; return what was found about them."""
    workload, keys = marginals(list(sizes), ways=given.ways), {name: range(size) for name, size in sizes.items()}
    missed, cells, squares, prices, most = [], 0, 0.0, [], 0.0
    for _ in range(given.runs):
        with Session(table, budget=Budget(mu=20), name="data") as session:
            how = {"keys": keys, "absolute": given.absolute, "cap": "all"}
            floor = session.plan_release(workload, **how).worst_price
            release = session.release(workload, relative=given.relative or None, **how)
        prices.append(float(release.paid.amount / floor.amount))
        missed.append(0)
        for columns in release:
            shape = tuple(sizes[name] for name in columns)
            flat = np.ravel_multi_index([table.column(name).to_numpy() for name in columns], shape)
            counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
            error = abs(release[columns].value - counts) / release[columns].half_width
            missed[-1], cells = missed[-1] + int((error > 1).sum()), cells + error.size
            squares += float((error**2).sum())
            beyond = abs(release[columns].value - counts) > np.maximum(given.relative * counts, given.absolute)
            most += int(beyond.sum())
    found = np.sqrt(squares / cells) * 1.959964
    rates = np.array(missed) * given.runs / cells
    rate = f"{100 * rates.mean():.3f} +- {196 * rates.std(ddof=min(1, given.runs - 1)) / np.sqrt(given.runs):.3f}"
    return release, cells, rate, most / cells, np.mean(prices), found, members(release, table), floor


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder with NAME.csv.gz")
    parser.add_argument("--ways", type=int, default=2)
    parser.add_argument("--absolute", type=float, default=50)
    parser.add_argument("--relative", type=float, default=0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--names", default="adult,acs,br2000,nltcs")
    given = parser.parse_args()
    print_forms()
    named = {f"even, {rows:,} rows": even(rows) for rows in (20_000, 2_000_000)}
    named |= {name: loaded(given.data / f"{name}.csv.gz") for name in (given.names.split(",") if given.data else ())}
    print(f"all {given.ways}-way tables, every cell within {100 * given.relative:g} % or {given.absolute:g}, 95 %")
    for name, (table, sizes) in named.items():
        release, cells, missed, beyond, price, found, (paid, booked), floor = measured(table, sizes, given)
        print(
            f"{name}: {len(release)} tables, {cells // given.runs:,} cells, {given.runs} runs: {missed} % of "
            f"intervals miss, {100 * beyond:.2f} % beyond the target, sd found/told {found:.3f}; mu "
            f"{release.paid.value:.4g}, {release.optimality().ratio:.3f} times the least mu^2 for these errors, "
            f"{price:.3g} times that of the absolute target"
        )
        least = float(floor.amount)
        told = " ".join(f"{one:.3f}" for one in (*np.quantile(paid, (0.5, 0.95)) / least, paid.max() / least))
        print(
            f"    members, mu^2 over the optimum at the strictest cell: median, 95 %, most {told}; booked "
            f"{booked / least:.3f}; median over booked {np.median(paid) / booked:.3f}",
            flush=True,
        )


def print_forms():
    """Print the closed forms, and the memory that planning takes."""
    print("domain       tables       least rmse   planned/least   largest sd of it   least largest sd")
    tracemalloc.start()
    for name, sizes in DOMAINS.items():
        for ways, up_to in ((1, False), (2, False), (3, False), (3, True)):
            best, ratio, largest, every = forms(sizes, ways, up_to=up_to)
            shown = f"{'up to ' if up_to else ''}{ways}-way"
            print(f"{name:11s}  {shown:11s}  {best:10.3f}  {ratio:13.4f}x  {largest:17.3f}  {every:17.3f}")
    print(f"most memory while planning: {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MiB")
    tracemalloc.stop()


if __name__ == "__main__":
    main()
