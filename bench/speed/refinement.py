"""Speed of refining: seconds for many groups and six looks, for each chain, every group looked at every time.

    python bench/speed/refinement.py [--json FILE] [--groups 1000000] [--repeats 5]

The engine's answer is in memory already; what is timed is noise, averaging and books, as a session would run them. The
target is 2.5 s for a million groups; the exit code is 1 where a chain misses it, in proportion to the groups.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from farthing.mechanisms import GaussianMeasurements, LaplaceChain, Measured, Shown

LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
TARGET_S = 2.5


def gaussian(groups: int) -> None:
    """Refine by averaging Gaussian measurements, at six levels of mu."""
    grains = np.diff(np.square(LEVELS), prepend=0) * 2.0**56
    mechanism, state = GaussianMeasurements(np.full(groups, 1_000)), Measured.nothing(groups)
    for more in grains.astype(np.int64):
        state = mechanism.measure(state, np.full(groups, more))


def laplace(groups: int, step_log2: int = 0) -> None:
    """Refine by the Laplace chain, at six levels of epsilon."""
    chain = LaplaceChain(np.full(groups, 1_000) << -step_log2, 1 << -step_log2, step_log2=step_log2)
    state = Shown.nothing(groups)
    for level in LEVELS:
        state = chain.measure(state, np.full(groups, int(level * 2**40)))


def laplace_on_a_grid(groups: int) -> None:
    """Refine by the Laplace chain on the grid of 2^-12 of the sensitivity."""
    laplace(groups, -12)


def main() -> int:
    """Time each chain in turn, several times over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    chains = {"gaussian": gaussian, "laplace, integers": laplace, "laplace, grid": laplace_on_a_grid}
    seconds: dict[str, list[float]] = {name: [] for name in chains}
    for _ in range(asked.repeats):
        for name, run in chains.items():
            start = time.perf_counter()
            run(asked.groups)
            seconds[name].append(time.perf_counter() - start)
    found = {name: median(each) for name, each in seconds.items()}
    for name, each in found.items():
        print(f"{name:20} {each:6.3f} s for {asked.groups:,} groups and {len(LEVELS)} looks")
    if asked.json:
        asked.json.write_text(json.dumps({"groups": asked.groups, "looks": len(LEVELS), "seconds": found}, indent=2))
    return int(max(found.values()) > TARGET_S * asked.groups / 1_000_000)


if __name__ == "__main__":
    sys.exit(main())
