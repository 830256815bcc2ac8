"""What a release of prefix sums, ranges, conditions and their like costs over the least that is possible.

For each workload and goal (the mean error; the largest one) what each way pays, in mu squared, over the certified lower
bound: gamma_F squared or gamma_2 squared, before the gap between mu^2 and chi^2, which is nothing at small losses. Then
how often intervals of one release miss, of data of its own.

    python bench/accuracy/products.py [--markdown FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from farthing import Budget, Session
from farthing.planning.ways import ways_of
from farthing.workloads import conditions, marginals, matrix, prefixes, ranges

AGE, PAY = range(65), range(17)
WORKLOADS = {
    "prefixes, 64 bins": (prefixes("a", AGE), {}),
    "ranges, 64 bins": (ranges("a", AGE), {}),
    "prefixes x ranges, 16 and 8 bins": (prefixes("a", PAY) * ranges("b", range(9)), {}),
    "listed x prefixes, 5 and 64": (marginals(["x"], ways=1) * prefixes("a", AGE), {"x": 5}),
    "a random matrix, 5 x 40": (matrix(np.random.default_rng(0).normal(size=(5, 40)), over="x"), {"x": 40}),
    "prefixes and ranges, 64 bins": (prefixes("a", AGE) + ranges("a", AGE), {}),
    "prefixes of two columns, 16 and 14 bins": (prefixes("a", PAY) + prefixes("b", range(15)), {}),
    "prefixes of two columns, 64 bins each": (prefixes("a", AGE) + prefixes("b", AGE), {}),
    "5 conditions": (conditions([f"c{at}" for at in range(5)]), {}),
    "20 conditions": (conditions([f"c{at}" for at in range(20)]), {}),
    "50 conditions": (conditions([f"c{at}" for at in range(50)]), {}),
}


def sizes_of(workload, listed):
    """Return how many cells each axis has."""
    return {
        axis: listed[axis] if isinstance(axis, str) else len(axis.edges) - 1 if hasattr(axis, "edges") else 2
        for axis in workload.axes
    }


def ratios(workload, listed, *, largest):
    """Return the price of each way over the bound."""
    found = ways_of(workload, sizes_of(workload, listed), largest=largest)
    prices = {}
    for way in found.ways:
        shares = way.least_largest() if largest else way.least_squares()
        errors = [w**2 * spread @ (way.lengths / shares) for w, spread in zip(way.weights, way.spreads, strict=True)]
        answers = np.concatenate(errors)
        least = max(found.least**2, found.least_mean**2 / len(answers)) if largest else found.least_mean**2
        prices[way.name] = float(answers.max() if largest else answers.sum()) / least
    return prices


def misses(runs):
    """Return how many of so many intervals of releases miss the truth."""
    ages = np.random.default_rng(1).integers(0, 64, 30_000)
    truth = np.cumsum(np.bincount(ages, minlength=64))
    missed = 0
    with Session(pa.table({"a": ages}), budget=Budget(mu=100), name="data") as session:
        for run in range(runs):
            found = session.release(prefixes("a", AGE), absolute=60, where=f"a >= -{run}", cap="all").to_arrow()
            lower, upper = (found.column(name).to_numpy() for name in ("count_lower", "count_upper"))
            missed += int(((truth < lower) | (upper < truth)).sum())
    return missed, runs * 64


def main():
    """Print one line a workload and goal, then the misses."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    ways = ("factors", "total and factors", "matrix")
    lines = ["| workload | least | " + " | ".join(ways) + " |", "| --- | --- |" + " --- |" * len(ways)]
    for name, (workload, listed) in WORKLOADS.items():
        for largest in (False, True):
            started = time.perf_counter()
            prices = ratios(workload, listed, largest=largest)
            cells = [f"{prices[way]:.4f}" if way in prices else "" for way in ways]
            goal = "largest error" if largest else "mean error"
            lines.append(f"| {name} | {goal} | " + " | ".join(cells) + " |")
            print(lines[-1], f"{time.perf_counter() - started:.1f} s", flush=True)
    if asked.markdown:
        asked.markdown.write_text("\n".join(lines) + "\n")
    missed, of = misses(20)
    print(f"missed {missed} of {of} intervals at 95 %")


if __name__ == "__main__":
    main()
