"""How often answers miss that are measured together by looks, by simulation; one row a question and target.

The code itself is run on groups of many means and variances, and the worst few are run again, ten times as often, with
fresh noise. *Worst* is the largest miss rate of any one answer over the part of beta that looks may take; it should be
1 or less, and in brackets is what it is at most (wrong once in a thousand). *Chains* asks three times as coarsely
first, then half again as coarsely, then for the target.

    python bench/accuracy/joint_looks.py [--runs N] [--betas B ...] [--only WORD] [--chains]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

import joint
import numpy as np
from scipy.stats import beta as beta_law

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.ratio_shapes import LOOKS_SHARE
from farthing.accuracy.statistics import Linear, RatioStatistic

SIGNED = Linear((1,)), replace(joint.MEAN, centre=0.0, lower=-joint.HALF, upper=joint.HALF)
SQUARED = RatioStatistic(0, 2, joint.LESS, 0.0, 2 * joint.LESS)  # the mean of another column
QUESTIONS = {
    "five": joint.KINDS["five"],
    "count mean": (joint.COUNT, joint.MEAN),
    "sum mean": (joint.SUM, joint.MEAN),
    "signed sum mean": SIGNED,
    "two means": (joint.MEAN, SQUARED),
    "count sum mean": (joint.COUNT, joint.SUM, joint.MEAN),
    "count deviation": (joint.COUNT, joint.DEVIATION),
    "mean variance": (joint.MEAN, joint.VARIANCE),
    "mean deviation": (joint.MEAN, joint.DEVIATION),
}
TARGETS = (
    *(("five", (relative,)) for relative in (0.3, 0.2, 0.1, 0.05, 0.02)),
    *(("count mean", relative) for relative in ((0.3,), (0.1,), (0.03,), (0.08, 0.2), (0.2, 0.08))),
    *(("sum mean", (relative,)) for relative in (0.3, 0.1)),
    ("signed sum mean", (0.2,)), ("two means", (0.3,)), ("two means", (0.05,)),
    *(("count sum mean", (relative,)) for relative in (0.3, 0.1)),
    ("count deviation", (0.3,)), ("count deviation", (0.05, 0.3)),
    *(("mean variance", (relative,)) for relative in (0.3, 0.1)),
    *(("mean deviation", (relative,)) for relative in (0.3, 0.1)),
)  # fmt: skip
CELLS = tuple((mean, part) for mean in (3.0, 20.0, 40.0, 55.0, 75.0, 95.0) for part in (0.003, 0.1, 0.6))
SIZE, WORST, PIECE = 1e6, 3, 50_000


def missed(kind, ladder, beta, mean, part, *, runs, rng):
    """Return how many groups of one mean and variance (a part of its largest) an answer misses, at most, and c."""
    statistics, cap = QUESTIONS[kind], 2**56
    variance = part * (joint.HALF**2 - (mean - joint.HALF) ** 2)
    found = np.zeros(len(statistics), np.int64)
    for start in range(0, runs, PIECE):
        many = min(PIECE, runs - start)
        truth = np.repeat(joint.lanes(SIZE, mean, variance)[:, None], many, axis=1)
        measure, state = joint.source(truth, rng), JointState.nothing(3, len(statistics), many)
        for relative in ladder:
            targets = tuple((each, 0.0) for each in np.broadcast_to(relative, len(statistics)).tolist())
            state = JointMeasures(statistics, targets, beta, joint.PER_GRAIN, cap).run(state, measure)
        answers = np.stack([statistic.estimate(truth) for statistic in statistics])
        found += ((answers < state.lower) | (answers > state.upper)).sum(axis=1)
    return int(found.max()), state.critical


def worst(missed, cells, runs):
    """Return (c, worst rate, the most it can be, at which mean and variance) of a rule, or None where it has none.

    `missed` returns how many of some runs miss in a cell, and c.
    """
    first = [(missed(*cell, runs=runs), cell) for cell in cells]
    if not first[0][0][1]:
        return None
    again, many = sorted(first, reverse=True)[:WORST], 10 * runs
    (found, critical), cell = max((missed(*cell, runs=many), cell) for _, cell in again)
    return critical, found / many, float(beta_law.ppf(0.999, found + 1, many - found)), cell


def print_row(head, beta, found):
    """Print a row of what `worst` found at a failure probability."""
    if found is None:
        print(f"{head} - | claims in stages | - |", flush=True)
        return
    critical, rate, most, (mean, part) = found
    share = LOOKS_SHARE * beta
    print(f"{head} {critical:.3f} | {rate / share:.3f} ({most / share:.3f}) | {mean:g}, {part:g} |", flush=True)


def main():
    """Print one row for each question, target and failure probability."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5_000, help="runs a cell; the worst are run ten times as often")
    parser.add_argument("--betas", type=float, nargs="+", default=(0.05,), help="failure probabilities")
    parser.add_argument("--only", default="", help="questions whose name holds this word")
    parser.add_argument(
        "--chains", action="store_true", help="ask for three times the target first, then for half more"
    )
    options = parser.parse_args()
    rng = np.random.default_rng(20_261_123)
    print("| answers | relative | beta | c | worst (at most) | at mean, part of the largest variance |")
    print("| --- | --- | --- | --- | --- | --- |")
    for beta in options.betas:
        for kind, relative in TARGETS:
            if options.only not in kind or (options.chains and max(relative) > 0.1):
                continue
            ladder = [np.multiply(relative, times) for times in ((3, 1.5, 1) if options.chains else (1,))]
            found = worst(partial(missed, kind, ladder, beta, rng=rng), CELLS, options.runs)
            head = f"| {kind} | {', '.join(f'{each:g}' for each in relative)} | {beta:g} |"
            print_row(head, beta, found)


if __name__ == "__main__":
    main()
