"""How often intervals of a release with a relative target miss, over very many runs, where all residuals share noise.

Made-up rows move all large cells of a release together, so a few runs tell little: misses of one release go together.
Here each *cell* is counted over many independent releases of small tables: `--pilots` releases by a session, each with
a pilot of its own, and `--answers` answers drawn at the noise that each pilot chose, as a session draws them. Given its
pilot an interval misses with the chance that was named, so over all answers the misses of a cell are binomial: the
intervals of their rates are exact (Clopper and Pearson).

    python bench/accuracy/release_misses.py [--pilots 100] [--answers 200] [--relative 0.1] [--absolute 50]
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
from scipy.stats import beta

from farthing import Budget, Session
from farthing.mechanisms.residuals import Residual, ResidualMeasurements, put_together, residual_table
from farthing.mechanisms.shared_noise import summed
from farthing.sealed import sealed
from farthing.workloads import marginals

SIZES = {"a": 5, "b": 4, "c": 3}
SURE = 0.95


def skewed(rows):
    """Return a table whose values are the rarer the larger they are, so that some cells are small."""
    random = np.random.default_rng(5)
    found = {name: random.choice(size, rows, p=2.0 ** -np.arange(size) / sum(2.0 ** -np.arange(size)))
             for name, size in SIZES.items()}  # fmt: skip
    return pa.table(found)


def even(rows):
    """Return a table whose cells are all about as large."""
    random = np.random.default_rng(1)
    return pa.table({name: random.integers(0, size, rows) for name, size in SIZES.items()})


def drawn(measuring, design, many):
    """Give the residuals of so many answers at a design, as a session measures them, each with rows of its own.

    One look of all grains has the law of the mean of several.
    """
    grains = dict(zip(design.basis.subsets, map(int, design.grains.tolist()), strict=True))
    noise = design.shared
    along = None if noise is None else noise.along(design.weights)
    for _ in range(many):
        numbers, found = None if noise is None else noise.drawn(grains[()]), {}
        for subset, each in grains.items():
            moved = None if noise is None else summed(numbers, [along[place] for place in subset])
            empty = Residual.nothing([design.basis.sizes[place] for place in subset])
            state = measuring.measure(subset, empty, each, design.shapes[subset], moved)
            found[subset] = residual_table(state.mean, design.shapes[subset].weights)
        yield found


def misses(table, given):
    """Return for each cell how often it missed, int64[cells], in how many answers, how many cells each answer missed,
    and in how many releases rows were made up.
    """
    workload, keys = marginals(list(SIZES), ways=2), {name: range(size) for name, size in SIZES.items()}
    codes = np.stack([table.column(name).to_numpy() for name in SIZES], axis=1)
    every = np.zeros(tuple(SIZES.values()), np.int64)
    np.add.at(every, tuple(codes.T), 1)
    missed, by_answer, shared = 0, [], 0
    for _ in range(given.pilots):
        with Session(table, budget=Budget(mu=20), name="data") as session:
            release = session.release(workload, keys=keys, relative=given.relative, absolute=given.absolute, cap="all")
        design = release._plan.design
        shared += design.shared is not None
        sizes = dict(enumerate(design.basis.sizes))
        sets = {*design.basis.subsets, *design.basis.tables}
        counts = {one: every.sum(axis=tuple(at for at in range(3) if at not in one)) for one in sets}
        measuring = ResidualMeasurements(sealed(counts), 1)
        widths = [release[tuple(list(SIZES)[at] for at in one)].half_width for one in design.basis.tables]
        for residuals in drawn(measuring, design, given.answers):
            found = []
            for one, width in zip(design.basis.tables, widths, strict=True):
                found.append(abs(put_together(one, sizes, residuals, design.weights) - counts[one]) > width)
            flat = np.concatenate([one.reshape(-1) for one in found])
            missed = missed + flat.astype(np.int64)
            by_answer.append(int(flat.sum()))
    return missed, len(by_answer), np.array(by_answer), shared


def exact(misses, runs, sure):
    """Return the interval of a rate that holds it with probability `sure` at least."""
    rest = (1 - sure) / 2
    low = beta.ppf(rest, misses, runs - misses + 1) if misses else 0.0
    return low, beta.ppf(1 - rest, misses + 1, runs - misses) if misses < runs else 1.0


def main():
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilots", type=int, default=100)
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--relative", type=float, default=0.1)
    parser.add_argument("--absolute", type=float, default=50)
    given = parser.parse_args()
    tables = {"skewed, 20,000 rows": skewed(20_000), "even, 20,000 rows": even(20_000)}
    for name, table in tables.items():
        missed, runs, by_answer, shared = misses(table, given)
        spread = 1.96 * by_answer.std() / np.sqrt(runs) / len(missed)
        worst, cells = int(missed.max()), len(missed)
        low, high = exact(worst, runs, 1 - (1 - SURE) / cells)
        print(
            f"{name}: {cells} cells, {runs:,} answers of {given.pilots} pilots, {shared} with made-up rows: "
            f"{100 * by_answer.mean() / cells:.3f} +- {100 * spread:.3f} % of intervals miss; the cell that misses "
            f"most {100 * worst / runs:.2f} % (from {100 * low:.2f} to {100 * high:.2f}, all cells at once), the one "
            f"that misses least {100 * missed.min() / runs:.2f} %; answers without a miss "
            f"{100 * (by_answer == 0).mean():.1f} %, with a tenth of the cells or more "
            f"{100 * (by_answer >= cells / 10).mean():.1f} %, with half {100 * (by_answer >= cells / 2).mean():.2f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
