"""How little the members of a release with a relative target could pay, by what the worst row may cost.

All two-way tables of real tables (`--data DIR` with adult.csv.gz and its like), every cell within 10 % or 50 at 95 %,
by somebody who knows the counts and pays for no pilot: noise by cell as a session chooses it, with more and with less
regard to the worst row, and weights of values by several powers of their counts. Then each cell measured by itself;
and what no unbiased release goes below. All of it as mu squared over that of the absolute target alone.

    python bench/accuracy/members.py --data DIR [--names adult,br2000,acs,nltcs] [--powers 0,0.16]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from release import loaded
from scipy.sparse import csr_array

from farthing.limits.tables import tables_of
from farthing.mechanisms.gaussian import GRAIN
from farthing.planning import release_shaped
from farthing.planning.release_shaped import ShapeProgram

RELATIVE, ABSOLUTE, CRITICAL = 0.1, 50.0, 1.959964
REGARDS = (0.97, 0.9, 0.5, 0.2)
BOUNDED = 2_000
"""The most cells for which the bound of unbiased releases is computed: it takes eigenvalues of a matrix of so many."""


def program_of(table, sizes):
    """Return the places of values by column, what noise is chosen from if all counts are known, and the price."""
    names = sorted(sizes)
    codes = np.stack([table.column(name).to_numpy() for name in names], axis=1)
    basis = tables_of([sizes[name] for name in names], 2, up_to=False)
    counts = {}
    for subset in basis.subsets:
        shape = tuple(basis.sizes[at] for at in subset)
        flat = np.ravel_multi_index([codes[:, at] for at in subset], shape) if subset else np.zeros(len(codes), int)
        counts[subset] = np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(float)
    widest = tuple((np.maximum(RELATIVE * counts[pair], ABSOLUTE) / CRITICAL) ** 2 for pair in basis.tables)
    even = float(basis.variances(basis.least_largest()[0]).max()) * (CRITICAL / ABSOLUTE) ** 2
    return codes, ShapeProgram(basis, 1, counts, widest), even


def paid_of(design, codes):
    """Return what each row pays, float64[rows]."""
    paid = np.zeros(len(codes))
    for subset in design.basis.subsets:
        paid += design.losses(subset)[tuple(codes[:, at] for at in subset)]
    return paid


def alone(codes, program):
    """Return what each row pays where each cell is measured by itself, and what the worst possible row does."""
    paid = np.zeros(len(codes))
    for pair, wide in zip(program.basis.tables, program.widest, strict=True):
        paid += 1 / wide[codes[:, pair[0]], codes[:, pair[1]]]
    return paid, sum(float((1 / wide).max()) for wide in program.widest)


def least_mean(codes, program, steps):
    """Return a lower bound on the mean loss of all rows, in chi^2, of any unbiased release with these variances.

    The covariance C of the cells holds u u'/m for each row, with u its cells and m its chi^2: so u' C^-1 u <= m, and
    the mean of m is at least tr(C^-1 G), with G the mean of u u'. With the diagonal of C at most v and any weights w,
    that is at least (tr (W^1/2 G W^1/2)^1/2)^2 / w'v, by Cauchy and Schwarz. Any w will do; some are tried.
    """
    wide = np.concatenate([one.reshape(-1) for one in program.widest])
    offsets = np.cumsum([0, *(one.size for one in program.widest)])
    pairs = enumerate(program.basis.tables)
    flat = [offsets[n] + codes[:, i] * program.basis.sizes[j] + codes[:, j] for n, (i, j) in pairs]
    places = np.stack(flat, axis=1)
    starts = np.arange(len(codes) + 1) * len(flat)
    rows = csr_array((np.ones(places.size), places.reshape(-1), starts), shape=(len(codes), len(wide)))
    mean, weights, best = (rows.T @ rows).toarray() / len(codes), 1 / wide, 0.0
    for _ in range(steps):
        roots = np.sqrt(weights)
        values, vectors = np.linalg.eigh(roots[:, None] * mean * roots)
        singular = np.sqrt(np.maximum(values, 0))
        best = max(best, float(singular.sum()) ** 2 / float(weights @ wide))
        excess = (vectors**2 @ singular) / weights / wide
        weights = np.maximum(weights * np.minimum(excess / excess.mean(), 50), weights.max() * 1e-9)
    return best


def main():
    """Print the table of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.csv.gz")
    parser.add_argument("--names", default="acs,nltcs,br2000,adult")
    parser.add_argument("--powers", default="0,0.08,0.16,0.25,0.35")
    given = parser.parse_args()
    for name in given.names.split(","):
        codes, program, even = program_of(*loaded(given.data / f"{name}.csv.gz"))
        cells = sum(one.size for one in program.widest)
        if cells <= BOUNDED:
            least = least_mean(codes, program, 20)
            print(f"{name}: no unbiased release has rows pay less than {least / even:.3f} in the mean (chi^2)")
        paid, booked = alone(codes, program)
        print(f"{name}: each cell by itself: booked {booked / even:.3f}, {shown(paid / even)}", flush=True)
        for power in map(float, given.powers.split(",")):
            for regard in REGARDS:
                release_shaped._WORST = regard
                made = program._weighted(power)
                booked = made.total * float(GRAIN) / even
                told = f"{shown(paid_of(made, codes) / even)}, of what is booked "
                told += f"{np.median(paid_of(made, codes)) / even / booked:.2f}"
                print(f"{name}: weights^{power:g}, worst {regard:g}: booked {booked:.3f}, {told}", flush=True)


def shown(paid):
    """Return the median, the mean and the most of what rows pay, in words."""
    return f"median {np.median(paid):.3f}, mean {paid.mean():.3f}, most {paid.max():.3f}"


if __name__ == "__main__":
    main()
