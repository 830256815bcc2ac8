"""What it costs to find groups privately, and what delta would be told by counting it wrong.

Each rule is the cheapest that finds groups of the named size with 95 %.

    python bench/accuracy/keys.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.mechanisms.keys import GaussianKeys
from farthing.noise import two_sided_geometric
from farthing.noise.bits import seeded

DELTA = Fraction(1, 10**8)
GROUPS = (1, 3, 10, 30)
SIZES = (20, 50, 100, 200, 500, 1000)
ALONE = 100_000
"""Units, each alone in a group of its own."""


def tie(rate, threshold):
    """Return the chance that a unit alone is told, if a noisy count must pass a threshold, and if it may equal it.

    The noise is the two-sided geometric, P[Z >= k] = q^k/(1 + q) for k >= 1 and q = exp(-rate).
    """
    q = math.exp(-rate)
    past, reached = (q**k / (1 + q) for k in (threshold, threshold - 1))
    noisy = 1 + two_sided_geometric(rate, size=ALONE, bits=seeded(1))
    return {"passes": past, "reaches": reached, "measured": float(np.mean(noisy >= threshold))}


def of_groups():
    """Return the delta of a rule that is planned for one group, if a unit counts in several."""
    rule = GaussianKeys.plan(100, confidence=0.95, delta=DELTA)
    return {many: float(GaussianKeys(rule.grains, rule.threshold, many).delta) / float(rule.delta) for many in GROUPS}


def prices():
    """Return the price in mu of finding groups of so many units, by the groups that a unit counts in."""
    return {
        size: {
            many: float(GaussianKeys.plan(size, confidence=0.95, delta=DELTA, max_groups=many).loss.mu)
            for many in GROUPS
        }
        for size in SIZES
    }


def main():
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {"tie": tie(1.0, 5), "groups": of_groups(), "mu": prices()}
    print("a unit alone, noise of scale 1, threshold 5: told with chance")
    print("  {passes:.4f} if the noisy count must pass 5, {reaches:.4f} if it may be 5".format(**found["tie"]))
    print(f"  {found['tie']['measured']:.4f} measured, if it may be 5: {ALONE:,} groups of one unit")
    print("delta of a rule for one group, if a unit counts in K groups, over what it says")
    print("  " + ", ".join(f"K={many}: {times:.2f}" for many, times in found["groups"].items()))
    print(f"mu to find groups of so many units with 95 %, delta {float(DELTA):g}", *(f"{f'K={k}':>8}" for k in GROUPS))
    for size, row in found["mu"].items():
        print(f"{size:>57,}", *(f"{mu:8.4f}" for mu in row.values()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
