"""What a quantile costs under a pure budget: by a search through Laplace chains, and by rank by one private choice.

Beside both: someone who knows the quantile's place and shows the rows on both sides of it once, at the same confidence.
By value: someone who knows the values, and shows the rows on both sides of the two thresholds that are cheapest.
Then how often the search misses, and what a chain of ever sharper targets pays over asking for the sharpest at once.

    python bench/accuracy/pure_quantiles.py [--quick] [--values] [--groups 1000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from quantiles import LEAVES_LOG2, VALUES, apart, leaves, ranks_of, true_and_half, windows

from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.laplace_sums import weighted_reach
from farthing.accuracy.quantile_chain_run import reach
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_choice import ExponentialQuantile
from farthing.accuracy.quantile_ranks import QuantileGoal
from farthing.rounding import FARTHING

BETA = 0.05
ROWS = 10_000
CAP = 1 << 43  # epsilon 8: nothing is cut short
TARGETS = ((0.5, 0.01), (0.5, 0.05), (0.5, 0.2), (0.9, 0.02), (0.99, 0.005), (0.0, 0.02))


def found_at(q, rank, ranks, held=None, cap=CAP):
    """Return what a search comes to."""
    plan = QuantileChains(QuantileGoal(q, 0.0, 2.0**LEAVES_LOG2, LEAVES_LOG2, rank=rank), BETA, cap)
    return plan, plan.run(ShownRanks(ranks, 1).show, groups=ranks.groups, held=held)


def off_target(state, leaf, q, rank):
    """Return which groups claim a rank that they do not have."""
    at = np.rint(state.value[:, None] - 0.5)
    edge = state.value == np.floor(state.value)
    at = np.where(edge[:, None], state.value[:, None] - 1, at)
    upto, below = (leaf <= at).mean(axis=1), (leaf < at).mean(axis=1)
    return state.met & ((below > q + rank + 1e-9) | (upto < q - rank - 1e-9))


def outside(state, leaf, plan):
    """Return which groups have an interval without their quantile."""
    place = np.maximum(np.ceil(plan.centre * leaf.shape[1] - 1e-9).astype(int) - 1, 0)
    true = np.sort(leaf, axis=1)[:, place]
    return (state.lower > true + 1) | (state.upper < true)


def oracle(plan):
    """Return the epsilon of one who knows the place, and shows both sides once."""
    slack = plan.asked.slack * ROWS
    return reach(plan.upper, np.array([BETA / 2]))[0] / slack


def measured(kind, q, rank, groups, rng):
    """Return the figures of one cell."""
    leaf = leaves(kind, groups, ROWS, rng)
    ranks = ranks_of(leaf)
    plan, state = found_at(q, rank, ranks)
    paid = state.paid * float(FARTHING)
    choice = ExponentialQuantile(plan.asked).price(plan.asked.slack * ROWS, beta=BETA) * float(FARTHING)
    held, chain = None, None
    for times in (4, 2, 1):
        _, chain = found_at(q, min(rank * times, 0.5), ranks, held)
        held = chain.trail
    return {
        "data": kind, "q": q, "rank": rank, "epsilon": float(paid.mean()),
        "slacks": float(paid.mean() * plan.asked.slack * ROWS),
        "one_test": float(paid.mean() / oracle(plan)), "choice": float(paid.mean() / choice),
        "refined": float(chain.paid.mean() / state.paid.mean()), "met": float(state.met.mean()),
        "misses": float(off_target(state, leaf, q, rank).mean()), "outside": float(outside(state, leaf, plan).mean()),
        "refined_misses": float(off_target(chain, leaf, q, rank).mean()),
        "width": float((state.upper - state.lower).mean() / 2**LEAVES_LOG2),
    }  # fmt: skip


def within(q, relative, absolute, ranks, held=None):
    """Return what a search by value comes to."""
    goal = QuantileGoal(q, 0.0, 2.0**LEAVES_LOG2, LEAVES_LOG2)
    plan = QuantileChains(goal, BETA, CAP, relative=relative, absolute=absolute)
    return plan, plan.run(ShownJointRanks(ranks, 1).show, groups=ranks.groups, held=held)


def two_tests(plan, leaf, target):
    """Return the epsilon of one who knows the values, and shows two thresholds as near as the target asks."""
    far, paid = reach(plan.centre, np.array([BETA / 2]))[0], []
    for values in np.sort(leaf[:50], axis=1):
        below, above = windows(*target, values)
        with np.errstate(divide="ignore"):
            paid.append((far / below + far / above).min())
    return float(np.mean(paid))


def one_round(plan, leaf, target):
    """Return the epsilon of one who knows the values, and shows the three bins between two such thresholds once."""
    share, chance, paid = plan.centre, np.array([BETA / 2]), []
    far = [weighted_reach(share, np.array([u]), np.array([3 - u]), chance, np.array([1e9]))[0] / 1e9 for u in (1, 2)]
    for values in np.sort(leaf[:50], axis=1):
        below, above = windows(*target, values)
        with np.errstate(divide="ignore"):
            paid.append(np.maximum(far[0] / below, far[1] / above).min())
    return float(np.mean(paid))


def least(leaf, target):
    """Return the mean epsilon that any rule pays: docs/proofs/accuracy.quantile_chains.md, "By value, the least"."""
    price = (1 - BETA) * np.log((1 - BETA) / BETA) - (1 - 2 * BETA)
    return float(np.mean([price / apart(*target, values) for values in np.sort(leaf[:50], axis=1)]))


def by_value(kind, target, groups, rng):
    """Return the figures of one cell by value."""
    q, relative, absolute = target
    leaf = leaves(kind, groups, ROWS, rng)
    ranks = ranks_of(leaf)
    plan, state = within(q, relative, absolute, ranks)
    held, chain = None, None
    for times in (4, 2, 1):
        _, chain = within(q, min(relative * times, 0.9), absolute * times, ranks, held)
        held = chain.trail
    paid, both = state.paid * float(FARTHING), two_tests(plan, leaf, target)
    once, any_rule = one_round(plan, leaf, target), least(leaf, target)
    return {
        "data": kind, "q": q, "relative": relative, "absolute": absolute, "epsilon": float(paid.mean()),
        "half": float(np.median(paid)), "tests": float(paid.mean() / both), "half_tests": float(np.median(paid) / both),
        "typical": float((paid * near(leaf, target)).mean() / np.sqrt(2 * (plan.centre**2 + (1 - plan.centre) ** 2))),
        "round": float(paid.mean() / once), "least": float(paid.mean() / any_rule),
        "refined": float(np.median(chain.paid) / np.median(state.paid)), "met": float(state.met.mean()),
        "misses": float(outside(state, leaf, plan).mean()), "refined_misses": float(outside(chain, leaf, plan).mean()),
    }  # fmt: skip


def near(leaf, target):
    """Return how many rows are within the target of the quantile, on one side in the mean, in each group."""
    found = []
    for values in np.sort(leaf, axis=1):
        true, half = true_and_half(*target, values)
        found.append((np.searchsorted(values, true + half, "right") - np.searchsorted(values, true - half, "left")) / 2)
    return np.array(found)


def told(cells):
    """Print the table of quantiles by value."""
    print(
        "| data | quantile | target | epsilon | half of the groups | of two tests | half | of one round |"
        " of the least | refined | met | missed |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for one in cells:
        target = f"{one['relative']:.0%}" if one["relative"] else f"{one['absolute'] / 2**LEAVES_LOG2:.2%} of the range"
        print(
            f"| {one['data']} | {one['q']} | {target} | {one['epsilon']:.4f} | {one['half']:.4f} | {one['tests']:.1f} |"
            f" {one['half_tests']:.1f} | {one['round']:.1f} | {one['least']:.0f} | {one['refined']:.2f} |"
            f" {one['met']:.1%} | {max(one['misses'], one['refined_misses']):.1%} |"
        )
    even = [one["typical"] for one in cells if one["data"] != "lumpy"]
    print(
        f"epsilon times the rows within the target, without lumps: {np.mean(even):.1f},"
        f" {min(even):.1f} to {max(even):.1f}"
    )


def by_rank(groups):
    """Print the table of quantiles by rank, and return its cells."""
    rng = np.random.default_rng(7)
    cells = [measured(kind, *target, groups, rng) for target in TARGETS for kind in ("even", "skewed", "lumpy")]
    print(
        "| data | quantile | rank | epsilon | times slack | of one test | of one choice | refined, of fresh | missed |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for one in cells:
        print(
            f"| {one['data']} | {one['q']} | {one['rank']} | {one['epsilon']:.4f} | {one['slacks']:.1f} |"
            f" {one['one_test']:.1f} | {one['choice']:.2f} | {one['refined']:.2f} |"
            f" {max(one['misses'], one['outside'], one['refined_misses']):.1%} |"
        )
    print(f"mean of one choice {np.mean([one['choice'] for one in cells]):.2f},", end=" ")
    print(f"of fresh {np.mean([one['refined'] for one in cells]):.2f}")
    return cells


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the groups")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--values", action="store_true", help="only quantiles by value")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    groups = asked.groups // (10 if asked.quick else 1)
    cells = [] if asked.values else by_rank(groups)
    few, rng = max(groups // 5, 1), np.random.default_rng(8)
    valued = [by_value(kind, target, few, rng) for target in VALUES for kind in ("even", "skewed", "lumpy")]
    told(valued)
    if asked.json:
        asked.json.write_text(json.dumps({"rank": cells, "value": valued}, indent=1) + "\n")


if __name__ == "__main__":
    main()
