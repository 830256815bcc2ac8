"""What groups that are too small for the target of a quantile pay before they are given up, and how many by mistake.

The median within 1 of its value, of normal and of whole values and of groups whose rows all hold one value; and by
rank, of normal values: from groups without rows to such as are large enough for the cap, with the rule and without it
(`on_miss="spend"`). Paid: the part of the cap, as mu squared, of groups that do not meet their target.

    python bench/accuracy/small_groups.py [--groups 1000]
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.quantile_bisection import NoisyRanks, QuantileBisection, QuantileGoal, Ranks

LEAVES_LOG2, CAP_MU, HIGHEST = 16, 0.2, 60
BY_VALUE = {"normal": (0, 10, 100, 300, 1_000, 2_000), "whole": (10, 100, 300, 1_000), "one": (10, 30, 40, 60)}
BY_RANK = {0.05: (0, 10, 100, 200, 300), 0.1: (0, 10, 100, 200), 0.2: (0, 10, 60, 100), 0.4: (0, 10, 30, 60)}


def drawn(kind, groups, rows, rng):
    """Return the histogram of groups of so many rows, values from 0 to 60."""
    values = rng.normal(30.3, 10, (groups, rows)).clip(0, HIGHEST - 0.001)
    values = {"normal": values, "whole": np.floor(values), "one": values[:, :1] + np.zeros((1, rows))}[kind]
    leaf = (values / HIGHEST * (1 << LEAVES_LOG2)).astype(np.int64)
    key, count = np.unique((np.arange(groups)[:, None] << LEAVES_LOG2) + leaf, return_counts=True)
    last = (1 << LEAVES_LOG2) - 1
    return Ranks.of(key >> LEAVES_LOG2, key & last, count, groups=groups, leaves_log2=LEAVES_LOG2)


def state_of(ranks, rank, *, spend):
    """Return what a bisection to this rank, or to within 1 of the value, comes to."""
    asked, cap = QuantileGoal(0.5, 0.0, float(HIGHEST), LEAVES_LOG2, rank=rank), int(CAP_MU**2 * 2**56)
    noisy = NoisyRanks(ranks, asked)
    plan = QuantileBisection(asked, 0.05, cap, absolute=0.0 if rank else 1.0, spend=spend)
    return plan.run(noisy.measure, noisy.measure_count, groups=ranks.groups), cap


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=1_000)
    groups, rng = parser.parse_args().groups, np.random.default_rng(4)
    print("| target | values | rows | met | met with the whole cap | paid where not met | a tenth more than |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    cells = [(0.0, kind, rows) for kind, sizes in BY_VALUE.items() for rows in sizes]
    cells += [(rank, "normal", rows) for rank, sizes in BY_RANK.items() for rows in sizes]
    for rank, kind, rows in cells:
        ranks = drawn(kind, groups, rows, rng)
        (state, cap), (whole, _) = state_of(ranks, rank, spend=False), state_of(ranks, rank, spend=True)
        part = state.paid[~state.met] / cap
        paid = f"{part.mean():.3f} | {np.quantile(part, 0.9):.3f}" if part.size else "- | -"
        target = f"rank {rank:.0%}" if rank else "within 1"
        met = f"{state.met.mean():.3f} | {whole.met.mean():.3f}"
        print(f"| {target} | {kind} | {rows:,} | {met} | {paid} |", flush=True)


if __name__ == "__main__":
    main()
