"""How little the members of a release with a relative target could pay, by what the worst row may cost.

All two-way tables of real tables (`--data DIR` with adult.csv.gz and its like), every cell within 10 % or 50 at 95 %,
by somebody who knows the counts and pays for no pilot: the noise that a session would choose; each cell measured by
itself; and what no unbiased release goes below in which no possible row pays more than `--most`. All of it as mu
squared over that of the absolute target alone.

    python bench/accuracy/members.py --data DIR [--names br2000,acs,nltcs] [--most 1.02] [--turns 8] [--cells 5000]
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
from farthing.planning.release_shaped import ShapeProgram

RELATIVE, ABSOLUTE, CRITICAL = 0.1, 50.0, 1.959964
BOUNDED = 5_000
"""The most cells that the bound of unbiased releases is about: it takes eigenvectors of a matrix of so many. Of more
cells those count in which members lose most: whoever releases all cells releases these."""

TRIED = 6_000  # possible rows that may be the worst one; the bound holds whichever are tried
PART = 4_000


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


def alone(codes, program):
    """Return what each row pays where each cell is measured by itself, and what the worst possible row does."""
    paid = np.zeros(len(codes))
    for pair, wide in zip(program.basis.tables, program.widest, strict=True):
        paid += 1 / wide[codes[:, pair[0]], codes[:, pair[1]]]
    return paid, sum(float((1 / wide).max()) for wide in program.widest)


class Bound:
    """A lower bound on what members pay in the mean, in chi^2, in any unbiased release with these variances in which
    no possible row pays more than `most`.

    The covariance C of the cells holds u u'/m for a row with the cells u that pays the chi^2 m: so u' C^-1 u <= m. For
    weights q >= 0 of possible rows, G the mean of u u' over members and H its sum over those rows by q, the mean of
    members is at least tr C^-1 (G + H) - most sum q. With the diagonal of C at most v and any weights w of cells,
    tr C^-1 (G + H) >= (tr (W^1/2 (G + H) W^1/2)^1/2)^2 / w'v, by Cauchy and Schwarz. Any q and w will do; they move
    to the rows and cells where the C that is best for them does not keep to `most` and v. The median follows: half of
    the members pay at most it, the others at most `most`. Where there are more cells than `BOUNDED`, all of this is
    about some of them: what members lose to all cells is no less.
    """

    def __init__(self, codes, program, even, most, cells=BOUNDED):
        wide = np.concatenate([one.reshape(-1) for one in program.widest]) * even
        counts = np.concatenate([program.counts[pair].reshape(-1) for pair in program.basis.tables])
        lost = counts / wide
        kept = np.sort(np.argsort(-lost, kind="stable")[:cells])
        self.at = np.full(len(wide), -1)
        self.at[kept] = np.arange(len(kept))
        self.wide, self.part = wide[kept], lost[kept].sum() / lost.sum()
        self.program, self.most = program, most
        self.members = self._places(codes)
        random, own = np.random.default_rng(1), []
        for power in (0.0, 0.3, 1.0):  # rows of rare values are the worst ones
            counts = [program.counts[place,] for place in range(codes.shape[1])]
            parts = [(each + 1) ** -power / ((each + 1) ** -power).sum() for each in counts]
            own.append(np.stack([random.choice(len(one), TRIED // 3, p=one) for one in parts], axis=1))
        self.tried = self._places(np.unique(np.concatenate(own), axis=0))
        self.mean = self._moments(self.members, np.full(len(codes), 1 / len(codes)))

    def _places(self, codes):
        """Return the places of the cells of rows, int64[rows, tables]; -1 for cells that do not count."""
        basis, starts = self.program.basis, np.cumsum([0, *(one.size for one in self.program.widest)])
        pairs = enumerate(basis.tables)
        cells = [starts[n] + codes[:, i] * basis.sizes[j] + codes[:, j] for n, (i, j) in pairs]
        return self.at[np.stack(cells, axis=1)]

    def _rows(self, places, weights):
        """Return rows as vectors of their cells, times weights."""
        some = places >= 0
        starts = np.concatenate([[0], np.cumsum(some.sum(axis=1))])
        values = np.repeat(weights, some.sum(axis=1))
        return csr_array((values, places[some], starts), shape=(len(places), len(self.wide)))

    def _moments(self, places, weights):
        """Return the sum of u u' over rows, by weights."""
        rows = self._rows(places, np.sqrt(weights))
        return (rows.T @ rows).toarray()

    def _paid(self, places, inverse):
        """Return u' C^-1 u of rows."""
        found = []
        for start in range(0, len(places), PART):
            part = places[start : start + PART]
            told = np.take_along_axis(self._rows(part, np.ones(len(part))) @ inverse, np.maximum(part, 0), axis=1)
            found.append((told * (part >= 0)).sum(axis=1))
        return np.concatenate(found)

    def best(self, turns):
        """Return the bound, what members pay by the last C, and what the worst row that was tried does."""
        tried, weights, best = np.full(len(self.tried), 0.03 / len(self.tried)), 1 / self.wide, 0.0
        for _ in range(turns):
            weights /= weights @ self.wide
            roots = np.sqrt(weights)
            values, vectors = np.linalg.eigh(roots[:, None] * (self.mean + self._moments(self.tried, tried)) * roots)
            some = values > values[-1] * 1e-9
            singular, vectors = np.sqrt(values[some]), vectors[:, some]
            total = float(singular.sum())
            best = max(best, total**2 - self.most * float(tried.sum()))
            scaled = roots[:, None] * vectors
            inverse = total * (scaled / singular) @ scaled.T
            paid = self._paid(self.tried, inverse)
            excess = (vectors**2 @ singular) / weights / self.wide / total
            weights = weights * np.clip(excess, 0.02, 50)
            tried = np.maximum(tried * np.clip(paid / self.most, 0.2, 5) ** 4, 1e-12)
        return best, self._paid(self.members, inverse), paid.max(), excess.max()


def main():
    """Print the table of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.csv.gz")
    parser.add_argument("--names", default="acs,nltcs,br2000,adult")
    parser.add_argument("--most", type=float, default=1.02, help="what the worst row may pay")
    parser.add_argument("--turns", type=int, default=8, help="how often the weights of the bound move")
    parser.add_argument("--cells", type=int, default=BOUNDED, help="the most cells that the bound is about")
    given = parser.parse_args()
    for name in given.names.split(","):
        codes, program, even = program_of(*loaded(given.data / f"{name}.csv.gz"))
        paid, booked = alone(codes, program)
        print(f"{name}: each cell by itself: booked {booked / even:.3f}, {shown(paid / even)}", flush=True)
        made = program.best(int(given.most * even / float(GRAIN)))
        paid, booked = made.paid(codes) / even, made.total * float(GRAIN) / even
        print(f"{name}: as chosen: booked {booked:.3f}, {shown(paid)}, median {np.median(paid) / booked:.2f} of booked")
        bound = Bound(codes, program, even, given.most, given.cells)
        least, paid, worst, excess = bound.best(given.turns)
        print(
            f"{name}: no unbiased release of at most {given.most:g} for every row has members pay less than "
            f"{least:.3f} in the mean, nor in the median than {max(2 * least - given.most, 0):.3f} (chi^2), by "
            f"{len(bound.wide):,} cells with {bound.part:.3f} of what cells by themselves cost members; the noise of "
            f"the last turn: {shown(paid)}, the worst tried row {worst:.3f}, variances {excess:.3f} of what is allowed",
            flush=True,
        )


def shown(paid):
    """Return the median, the mean and the most of what rows pay, in words."""
    return f"median {np.median(paid):.3f}, mean {paid.mean():.3f}, most {paid.max():.3f}"


if __name__ == "__main__":
    main()
