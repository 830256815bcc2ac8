"""How often a variance or standard deviation that is measured by looks misses, by simulation; one row a target.

The code itself is run on groups of many means and variances, with exact pivots (small variances far off the middle)
and cautious ones (large variances) among them. The worst few are run again, ten times as often, with fresh noise.
*Worst* is the largest miss rate of these over the part of beta that looks may take; it should be 1 or less, and in
brackets is what it is at most (wrong once in a thousand).

    python bench/accuracy/variance_looks.py [--runs N] [--betas B ...] [--only KIND]
"""

from __future__ import annotations

import argparse
from functools import partial

import joint
import numpy as np
from joint_looks import PIECE, SIZE, print_row, worst

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState

KINDS = {"variance": joint.VARIANCE, "deviation": joint.DEVIATION, "sample": joint.SAMPLE}
TARGETS = (
    *(("deviation", relative, 0.0) for relative in (0.3, 0.1, 0.05, 0.02)),
    *(("variance", relative, 0.0) for relative in (0.6, 0.3, 0.1, 0.02)),
    ("sample", 0.2, 0.0), ("variance", 0.0, 0.2), ("variance", 0.2, 0.02),
)  # fmt: skip
CELLS = tuple((mean, part) for mean in (0.0, 0.3, 0.6, 0.9) for part in (0.003, 0.02, 0.1, 0.3, 0.7))


def missed(kind, target, beta, mean, part, *, runs, rng):
    """Return how many groups of one mean and variance (parts of their largest) their intervals miss."""
    offset = mean * joint.HALF
    variance, most = part * (joint.HALF**2 - offset**2), 2**56
    relative, absolute = target
    statistic = KINDS[kind]
    question = JointMeasures((statistic,), ((relative, absolute * joint.HALF**2),), beta, joint.PER_GRAIN, most)
    found = 0
    for start in range(0, runs, PIECE):
        many = min(PIECE, runs - start)
        truth = np.repeat(joint.lanes(SIZE, joint.HALF + offset, variance)[:, None], many, axis=1)
        state = question.run(JointState.nothing(3, 1, many), joint.source(truth, rng))
        answer = statistic.estimate(truth)
        found += int(((answer < state.lower[0]) | (answer > state.upper[0])).sum())
    return found, state.critical


def main():
    """Print one row for each target and failure probability."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="runs a cell; the worst are run ten times as often")
    parser.add_argument("--betas", type=float, nargs="+", default=(0.05,), help="failure probabilities")
    parser.add_argument("--only", default="", help="one kind alone")
    options = parser.parse_args()
    rng = np.random.default_rng(20_261_123)
    print("| kind | relative | absolute | beta | c | worst (at most) | at mean, variance |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for beta in options.betas:
        for kind, *target in TARGETS:
            if options.only not in kind:
                continue
            found = worst(partial(missed, kind, target, beta, rng=rng), CELLS, options.runs)
            head = f"| {kind} | {target[0]:g} | {target[1]:g} | {beta:g} |"
            print_row(head, beta, found)


if __name__ == "__main__":
    main()
