"""What several quantiles of one column cost together under a pure budget, over one of them alone, and their misses.

*One* is the mean over the quantiles of what each costs alone at the same rank target, in epsilon; *all alone* is their
sum. The three kinds of data are those of quantiles.py.

    python bench/accuracy/pure_several_quantiles.py [--quick] [--groups N] [--only WORDS] [--empty]
"""

from __future__ import annotations

import argparse

import numpy as np
from quantiles import BETA, LEAVES, LEAVES_LOG2, leaves, ranks_of
from several_quantiles import ASKED, missed

from farthing.accuracy.joint_chains import JointChains, ShownJointRanks
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.noise.bits import seeded
from farthing.rounding import FARTHING

CAP = 1 << 43
ROWS = 10_000


def measured(kind, name, rank, groups):
    """Print one row: the price together and alone, misses, and how many numbers were met."""
    leaf = leaves(kind, groups, ROWS, np.random.default_rng(7))
    ranks = ranks_of(leaf)
    asked = tuple(QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank) for q in ASKED[name])
    shown = ShownRanks(ranks, 1, seeded(7))
    alone = [QuantileChains(one, BETA, CAP).run(shown.show, groups=groups).paid.mean() for one in asked]
    plan, held = JointChains(asked, BETA, CAP), None
    state = plan.run(ShownJointRanks(ranks, 1, seeded(7)).show, groups=groups)
    for times in (4, 2, 1):
        wide = tuple(QuantileGoal(one.q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank * times) for one in asked)
        chain = JointChains(wide, BETA, CAP).run(ShownJointRanks(ranks, 1, seeded(8)).show, groups=groups, held=held)
        held = chain.trail
    paid = state.trail.paid.mean()
    each = [missed(leaf, state.value[:, i], state.met[:, i], one.q, rank) for i, one in enumerate(asked)]
    print(
        f"| {name} | {kind} | {rank:.0%} | {paid * float(FARTHING):.4f} | {paid / np.mean(alone):.2f} | "
        f"{paid / sum(alone):.2f} | {plan.typical(ROWS) / paid:.2f} | {held.paid.mean() / paid:.2f} | "
        f"{state.met.mean():.1%} | {max(each):.1%} |",
        flush=True,
    )


def empty(name, rank, groups):
    """Return which part of their cap groups without rows pay, in the mean."""
    none = np.zeros(0, np.int64)
    ranks = Ranks.of(none, none, none, groups=groups, leaves_log2=LEAVES_LOG2)
    asked = tuple(QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank) for q in ASKED[name])
    state = JointChains(asked, BETA, 1 << 40).run(ShownJointRanks(ranks, 1, seeded(7)).show, groups=groups)
    return float((state.trail.paid / (1 << 40)).mean())


def emptiness(groups):
    """Print the table of groups without rows."""
    print("| quantiles | 2 % | 5 % | 10 % | 20 % |\n| --- | --- | --- | --- | --- |")
    for name in ASKED:
        print(f"| {name} |", *(f"{empty(name, rank, groups):.3f} |" for rank in (0.02, 0.05, 0.1, 0.2)), flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--only", default="", help="rows that begin with these words, as 'deciles lumpy 5%%'")
    parser.add_argument("--empty", action="store_true", help="what groups without rows pay, of their cap")
    options = parser.parse_args()
    groups = 20 if options.quick else options.groups
    if options.empty:
        emptiness(2 * groups)
        return
    print("| quantiles | values | rank | epsilon | over one | over all alone | planned | refined | met | missed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ASKED:
        for kind in ("even", "skewed", "lumpy"):
            for rank in (0.01, 0.02, 0.05) if name == "deciles" else (0.02,):
                if f"{name} {kind} {rank:.0%}".startswith(options.only):
                    measured(kind, name, rank, groups)


if __name__ == "__main__":
    main()
