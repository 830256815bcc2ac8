"""What several quantiles of one column cost together, over what one of them costs alone, and how often they miss.

*One* is the mean over the quantiles of what each costs alone at the same rank target; *most* is what the most expensive
of them costs alone. The three kinds of data are those of quantiles.py.

    python bench/accuracy/several_quantiles.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from quantiles import BETA, LEAVES, LEAVES_LOG2, leaves, ranks_of

from farthing.accuracy.joint_quantiles import JointQuantiles, NoisyJointRanks
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded

CAP = 1 << 61
ASKED = {
    "deciles": tuple(k / 10 for k in range(1, 10)),
    "box plot": (0.05, 0.25, 0.5, 0.75, 0.95),
    "quartiles": (0.25, 0.5, 0.75),
}


def missed(leaf, value, met, q, rank):
    """Return the share of groups whose rank is further off than was said."""
    shown = np.ceil(value)[:, None] - 1
    below, upto = (leaf < shown).mean(axis=1), (leaf <= shown).mean(axis=1)
    return float((met & ((below > q + rank + 1e-12) | (upto < q - rank - 1e-12))).mean())


def measured(kind, name, rank, groups, rows):
    """Return one record: the price together and alone, misses, and how many groups were met."""
    leaf = leaves(kind, groups, rows, np.random.default_rng(7))
    ranks = ranks_of(leaf)
    asked = tuple(QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank) for q in ASKED[name])
    alone = []
    for one in asked:
        noisy = NoisyRanks(ranks, one, seeded(7))
        state = QuantileBisection(one, BETA, CAP).run(noisy.measure, noisy.measure_count, groups=groups)
        alone.append(float(state.paid.mean()))
    plan = JointQuantiles(asked, BETA, CAP)
    noisy = NoisyJointRanks(ranks, 1, seeded(7))
    state = plan.run(noisy.measure, noisy.measure_count, groups=groups)
    paid = float(state.trail.paid.mean())
    each = [missed(leaf, state.value[:, i], state.met[:, i], one.q, rank) for i, one in enumerate(asked)]
    return {
        "data": kind, "asked": name, "rank": rank, "rows": rows,
        "mu": float(np.sqrt(paid * float(GRAIN))),
        "over_one": paid / float(np.mean(alone)),
        "over_most": paid / max(alone),
        "over_alone": paid / sum(alone),
        "typical_over_paid": plan.typical(rows) / paid,
        "most_misses": max(each),
        "met": float(state.met.mean()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    groups, rows = (30, 2_000) if given.quick else (100, 10_000)
    records = []
    for name in ASKED:
        for kind in ("even", "skewed", "lumpy"):
            for rank in (0.01, 0.02, 0.05) if name == "deciles" else (0.02,):
                each = measured(kind, name, rank, groups, rows)
                records.append(each)
                print(
                    f"{name:10} {kind:7} rank={rank:<5g} mu={each['mu']:.4f}  {each['over_one']:5.2f} x one, "
                    f"{each['over_most']:5.2f} x most, {each['over_alone']:.2f} of all alone  "
                    f"misses at most {each['most_misses']:.3f} (beta {BETA}), met {each['met']:.3f}  "
                    f"planned {each['typical_over_paid']:.2f}",
                    flush=True,
                )
    if given.json:
        given.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
