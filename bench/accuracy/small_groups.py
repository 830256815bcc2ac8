"""What groups that are too small for a target of their value pay before they are given up, and how many are by mistake.

Quantiles by value: groups of normal and of whole values, from far too small to large enough for the cap; with the rule
and without it (`on_miss="spend"`). Paid: the part of the cap, as mu squared, of groups that do not meet their target.

    python bench/accuracy/small_groups.py [--groups 400]
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.quantile_bisection import NoisyRanks, QuantileBisection, QuantileGoal, Ranks

LEAVES_LOG2, CAP_MU = 16, 0.2
SIZES = (10, 100, 300, 1_000, 2_000, 3_000, 5_000, 10_000)


def drawn(kind, groups, rows, rng):
    """Return the histogram of groups of so many rows, values from 0 to 60."""
    values = rng.normal(30.3, 10, (groups, rows)).clip(0, 59.999)
    values = np.floor(values) if kind == "whole" else values
    leaf = (values / 60 * (1 << LEAVES_LOG2)).astype(np.int64)
    key, count = np.unique((np.arange(groups)[:, None] << LEAVES_LOG2) + leaf, return_counts=True)
    last = (1 << LEAVES_LOG2) - 1
    return Ranks.of(key >> LEAVES_LOG2, key & last, count, groups=groups, leaves_log2=LEAVES_LOG2)


def state_of(ranks, *, spend):
    """Return what a bisection to within 1 of the value comes to."""
    asked, cap = QuantileGoal(0.5, 0.0, 60.0, LEAVES_LOG2), int(CAP_MU**2 * 2**56)
    noisy = NoisyRanks(ranks, asked)
    plan = QuantileBisection(asked, 0.05, cap, absolute=1.0, spend=spend)
    return plan.run(noisy.measure, noisy.measure_count, groups=ranks.groups), cap


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=400)
    groups, rng = parser.parse_args().groups, np.random.default_rng(4)
    print(
        "| values | rows | met | met with the whole cap | paid of the cap where not met | a tenth of groups more than |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ("normal", "whole"):
        for rows in SIZES:
            ranks = drawn(kind, groups, rows, rng)
            (state, cap), (whole, _) = state_of(ranks, spend=False), state_of(ranks, spend=True)
            part = state.paid[~state.met] / cap
            paid = f"{part.mean():.2f} | {np.quantile(part, 0.9):.2f}" if part.size else "- | -"
            print(f"| {kind} | {rows:,} | {state.met.mean():.3f} | {whole.met.mean():.3f} | {paid} |")


if __name__ == "__main__":
    main()
