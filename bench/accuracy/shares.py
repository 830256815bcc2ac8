"""Shares of a total: what they pay over somebody who knows the truth, and how often intervals miss.

    python bench/accuracy/shares.py

The oracle knows all groups, and measures them and their total once, in the best proportion, so that each share is
within its target 95 times in 100. Prices are those of a member of a group, in mu squared. The last table has totals
without rows, which no price reaches, and beside them how many of even groups are met under a cap of twice the oracle's
price: nobody who could be told is given up for it.
"""

from __future__ import annotations

import numpy as np

from farthing.accuracy.share_of_total import SharesOfTotal
from farthing.accuracy.total_state import TotalState

WORTH = 2.0**-56
DATA = {
    "3 groups, 3000 to 1000": np.array([3000.0, 2000.0, 1000.0]),
    "30 groups, 3000 to 30": np.geomspace(3000, 30, 30),
    "300 groups, 3000 to 30": np.geomspace(3000, 30, 300),
    "30 groups, one with half": np.array([3000.0, *[3000 / 29] * 29]),
}
TARGETS = ((0.0, 0.05), (0.0, 0.02), (0.0, 0.01), (0.1, 0.01), (0.2, 0.02))
BETA, Z = 0.05, 1.959964


def oracle(sizes: np.ndarray, target: tuple[float, float], together: int) -> float:
    """Return the grains that somebody pays who knows the truth."""
    share, total, count = sizes / sizes.sum(), sizes.sum(), len(sizes)
    width = np.maximum(target[0] * share, target[1]) * total
    best = np.inf
    for weight in (0.0, *np.geomspace(0.01, 50, 200)):
        q = 1 / (1 + count * weight / together)
        spread = 1 - (1 - q) / count - 2 * share * q + share**2 * count * q
        best = min(best, float(((1 + weight) * spread * (Z / width) ** 2).max() / WORTH))
    return best


def run(
    sizes: np.ndarray, targets: list[tuple[float, float]], together: int, runs: int, cap: int = 1 << 58
) -> tuple[float, float, float]:
    """Return the mean price, and the parts of the shares that missed, and that were met; under a cap in grains."""
    rng, count = np.random.default_rng(7), len(sizes)
    places, truth = np.repeat(np.arange(runs), count), np.tile(sizes, runs)
    whole = sizes.sum()

    def measure(grains: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = truth + rng.standard_normal(len(truth)) / np.sqrt(np.maximum(grains, 1) * WORTH)
        total = whole + rng.standard_normal(runs)[places] * np.sqrt(together / (np.maximum(shared, 1) * WORTH))
        return own, total

    state = TotalState.nothing(len(truth))
    for target in targets:
        shares = SharesOfTotal(places, target, BETA, WORTH, together, cap)
        state = shares.run(state, measure)
    _, low, high, met = shares.judged(state)
    shown = truth / whole if whole else low  # where there are no rows, no share is wrong
    missed = (shown < low) | (shown > high)
    return float(state.paid.mean()), float(missed.mean()), float(met.mean())


def main() -> None:
    """Print the tables."""
    print(f"{'data':28}{'groups a unit':>14}{'target':>22}{'over the oracle':>17}{'misses':>10}{'met':>8}")
    for name, sizes in DATA.items():
        runs = 1_000 if len(sizes) < 100 else 150
        for together in (1, 5) if len(sizes) > 3 else (1,):
            for target in TARGETS:
                price, missed, met = run(sizes, [target], together, runs)
                told = f"{100 * target[0]:g} % or {target[1]:g}"
                times = price / oracle(sizes, target, together)
                print(f"{name:28}{together:>14}{told:>22}{times:>17.2f}{missed:>10.4f}{met:>8.4f}", flush=True)
    sizes = DATA["30 groups, 3000 to 30"]
    chain = [(0.0, 0.04), (0.0, 0.02), (0.0, 0.01)]
    once, sharpened = (run(sizes, asked, 1, 1_000)[0] for asked in (chain[-1:], chain))
    print(f"refined from 0.04 by 0.02 to 0.01, over 0.01 at once: {sharpened / once:.2f}")
    print(f"{'without rows':28}{'target':>22}{'of the cap':>17}{'twice the price: met':>24}")
    for count in (2, 4, 12):
        for target in ((0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.3, 0.05), (0.0, 0.1), (0.0, 0.3)):
            cap, even = 1 << 56, np.full(count, 1000.0)
            empty, *_ = run(np.zeros(count), [target], 1, 500, cap)
            *_, met = run(even, [target], 1, 500, int(2 * oracle(even, target, 1)))
            told = f"{100 * target[0]:g} % or {target[1]:g}"
            print(f"{count:>3} groups{told:>41}{empty / cap:>17.3f}{met:>24.3f}", flush=True)


if __name__ == "__main__":
    main()
