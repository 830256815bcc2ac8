"""Speed of selections: seconds a choice among a million options, and among ten, next to numpy's argmax of Gumbel noise.

python bench/speed/selection.py [--json FILE] [--repeats 5] [--options 1000000]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median

import numpy as np

from farthing.mechanisms import Exponential, LargeMargin, NoisyMax, PermuteAndFlip, TopK, UnknownTopK

TARGET_S = 0.5


def contenders(scores, counts):
    """Return what is timed, by name."""
    rng = np.random.default_rng(1)
    return {
        "numpy, scores + Gumbel noise, argmax (no privacy)": lambda: int(
            np.argmax(scores + rng.gumbel(0, 2, len(scores)))
        ),
        "Exponential": lambda: Exponential(1).choose(scores),
        "PermuteAndFlip": lambda: PermuteAndFlip(1).choose(scores),
        "NoisyMax, Laplace": lambda: NoisyMax(1).choose(scores),
        "NoisyMax, Gaussian": lambda: NoisyMax(1, "gaussian").choose(scores, moved=1),
        "TopK(10), Gumbel": lambda: TopK(10, 0.1).choose(scores),
        "TopK(10), Gumbel, all tied": lambda: TopK(10, 0.1).choose(np.zeros(len(scores))),
        "TopK(1000), Gumbel": lambda: TopK(1000, 0.1).choose(scores),
        "LargeMargin": lambda: LargeMargin(1, 1e-6).choose(scores),
        "UnknownTopK(10, k_bar=1000)": lambda: UnknownTopK(10, 1000, 0.1, 1e-6).choose(counts),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--options", type=int, default=1_000_000)
    flags = parser.parse_args()

    scores = np.random.default_rng(0).integers(0, flags.options, flags.options)
    counts = np.sort(scores[scores > 0])[::-1][:1001]
    rows = {}
    for name, run in contenders(scores, counts).items():
        run()
        times = []
        for _ in range(flags.repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        rows[name] = median(times)
        print(f"{name:52s} {rows[name] * 1e3:9.2f} ms")
    met = rows["TopK(10), Gumbel"] < TARGET_S
    print(f"top-10 of {flags.options:,}: {'within' if met else 'NOT within'} {TARGET_S} s")
    if flags.json:
        flags.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
