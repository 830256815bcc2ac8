"""How misses of one release go together: the law of the part of its intervals that miss.

An interval misses as seldom as its confidence says, but noise that is shared moves many cells of one release at once.
Noise is drawn by the law of a design for which all counts are known, for every cell of all two-way tables, each within
10 % or 50 at 95 %: as chosen; with made-up rows as random as there is room for; and without made-up rows. Draws of one
design are the same release over and over; what is printed is what one release may see.

    python bench/accuracy/release_together.py --data DIR [--names acs,nltcs,br2000] [--draws 4000]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from members import program_of
from release import even, loaded

from farthing.mechanisms.gaussian import GRAIN
from farthing.mechanisms.shared_noise import crossed
from farthing.planning import release_patterns
from farthing.session.answering.release import WORST_MOST

CRITICAL = 1.959964
BATCH = 250
PARTS = (0.5, 0.9, 0.95, 0.99)


def residual_errors(design, random):
    """Return float64[BATCH, cells], errors of all cells without made-up rows."""
    sizes, drawn, found = design.basis.sizes, {}, []
    for subset in design.basis.subsets:
        each = random.normal(size=(BATCH, *(sizes[place] for place in subset)))
        for axis in range(1, each.ndim):
            each = each - each.mean(axis=axis, keepdims=True)
        drawn[subset] = each * math.sqrt(design.noises[subset])
    for table in design.basis.tables:
        errors = np.zeros((BATCH, *(sizes[place] for place in table)))
        for subset in (one for one in drawn if set(one) <= set(table)):
            along = [BATCH, *(sizes[place] if place in subset else 1 for place in table)]
            errors += drawn[subset].reshape(along) / math.prod(sizes[i] for i in table if i not in subset)
        found.append(errors.reshape(BATCH, -1))
    return np.concatenate(found, axis=1)


def missed(design, draws):
    """Return float64[draws], which part of the intervals of a release misses."""
    random, noise, found = np.random.default_rng(1), design.shared, []
    deviations = np.sqrt(np.concatenate([each.reshape(-1) for each in design.by_table]))
    for _ in range(draws // BATCH):
        errors = residual_errors(design, random)
        if noise is not None:
            roots = np.sqrt(noise.scales / float(design.grains[0]))
            numbers, start = random.normal(size=(BATCH, len(roots))) * roots, 0
            for table in design.basis.tables:
                made = crossed(np.ones(len(roots)), [noise.patterns[place] for place in table])
                errors[:, start : start + made.shape[1]] += numbers @ made
                start += made.shape[1]
        found.append((abs(errors) > CRITICAL * deviations).mean(axis=1))
    return np.concatenate(found)


def main():
    """Print a line for each design of each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder with NAME.csv.gz")
    parser.add_argument("--names", default="acs,nltcs,br2000")
    parser.add_argument("--draws", type=int, default=4_000)
    given = parser.parse_args()
    tables = {"even, 20,000 rows": even(20_000)}
    tables |= {name: loaded(given.data / f"{name}.csv.gz") for name in (given.names.split(",") if given.data else ())}
    enough = release_patterns._ENOUGH
    for name, (table, sizes) in tables.items():
        codes, program, least = program_of(table, sizes)
        for label, spared in (("as chosen", enough), ("as random as there is room for", 0.0), ("none", None)):
            if spared is not None:
                release_patterns._ENOUGH = spared
                design = program.best(int(WORST_MOST * least / float(GRAIN)))
            else:
                design = replace(design, shared=None)
            rates, paid = missed(design, given.draws), design.paid(codes[::8]) / (design.total * float(GRAIN))
            at = " ".join(f"{100 * one:.1f}" for one in np.quantile(rates, PARTS))
            print(
                f"{name}, made-up rows {label}: median row pays {np.median(paid):.3f} of what is booked; intervals "
                f"miss {100 * rates.mean():.2f} %, of one release {at} % (median, 90, 95, 99 % of releases), "
                f"deviation {100 * rates.std():.2f}; a tenth or more in {100 * (rates >= 0.1).mean():.2f} %",
                flush=True,
            )
        release_patterns._ENOUGH = enough


if __name__ == "__main__":
    main()
