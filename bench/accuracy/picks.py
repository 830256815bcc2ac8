"""How many counts anybody can return on the paper's task `zipf300`, who knows what each one costs.

Counts are within 10 %, 95 times in 100, at exactly the price of the one Laplace release that is enough for it; nothing
is paid for looks. Only which counts are the largest has to be found, by permute-and-flip, at prices that are fixed
beforehand: the best of a grid.

    python bench/accuracy/picks.py [--runs 500]
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np

COUNTS = 300 * np.arange(1, 1001) ** -0.75
PRICES = np.log(20) / (0.1 * COUNTS)
GRIDS = {
    0.5: ((0.03, 0.05, 0.07), (0.05, 0.08, 0.1), (0.001, 0.002)),
    1.0: ((0.03, 0.04, 0.05), (0.05, 0.06, 0.08), (0.06, 0.07, 0.08), (0.03, 0.05)),
}
"""For each epsilon of the whole session, the prices of the picks that are tried, first pick first."""


def returned(picks, total, runs, rng):
    """Return the mean number of counts returned and its standard error: a session ends where a release does not fit."""
    left, going, made = np.full(runs, total), np.ones(runs, bool), np.zeros(runs, int)
    taken, rows = np.zeros((runs, len(COUNTS)), bool), np.arange(runs)
    for epsilon in picks:
        noisy = np.where(taken, -1.0, epsilon * COUNTS + rng.standard_exponential(taken.shape))
        chosen = noisy.argmax(axis=1)
        going &= epsilon + PRICES[chosen] <= left
        left -= np.where(going, epsilon + PRICES[chosen], 0.0)
        made += going
        taken[rows[going], chosen[going]] = True
    return made.mean(), made.std() / np.sqrt(runs)


def main():
    """Print the best of each grid: the five best of the first draws are drawn again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    runs, rng = parser.parse_args().runs, np.random.default_rng(1)
    print("the largest counts alone, without picks:", ", ".join(f"{sum_:.3f}" for sum_ in np.cumsum(PRICES)[:4]))
    for total, grid in GRIDS.items():
        tried = [(returned(picks, total, runs, rng)[0], picks) for picks in product(*grid) if sum(picks) < total]
        again = [(*returned(picks, total, 8 * runs, rng), picks) for _, picks in sorted(tried)[-5:]]
        mean, error, best = max(again)
        print(f"epsilon {total:g}: {mean:.3f} +- {error:.3f}, the best of {len(tried)}: picks at {best}", flush=True)


if __name__ == "__main__":
    main()
