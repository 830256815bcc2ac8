"""One table of every aggregate: what it pays over an oracle and over a proved bound, its misses, what refining costs.

A row is an aggregate and a target, over several kinds of data. *Oracle* knows the truth and measures once, with our
noise and intervals. *Least* is proved (docs/proofs/limits.unbiased.md, section 1): what any unbiased mechanism pays
whose standard deviation is the target over z. *Any rule* is proved, too (docs/proofs/accuracy.joint_measures.md, claim
6): what any rule pays in the mean, biased or not and however it decides, that keeps its target on all data. *Chain* is
what two ever sharper asks from four times the width cost, through a session, over asking for the sharpest at once; one
figure for an aggregate.

    python bench/accuracy/all.py [--runs N] [--only WORD] [--chains]
"""

from __future__ import annotations

import argparse
from functools import partial

import absurd
import joint
import numpy as np
import oracle
import pure
import pure_measures
import quantiles
import refining
from joint import told_apart
from scipy.special import ndtri

BETA = 0.05
RELATIVE = (0.02, 0.05, 0.1, 0.2, 0.3)
THETAS = (1.0, 3.0, 10.0, 1000.0)
FLOOR = 1000.0
QUANTILES = ((0.5, 0.01), (0.5, 0.05), (0.5, 0.2), (0.9, 0.02))
JOINT = {"mean": "mean", "variance": "variance", "deviation": "stddev", "five": "several"}
VALUES = ((0.5, 0.05, 0.0), (0.5, 0.2, 0.0), (0.9, 0.05, 0.0), (0.5, 0.0, 655.0))
RANKED = {"quantile": ("even", "skewed", "lumpy"), "quantile of whole numbers": quantiles.NUMBERS}
CHAINS = {"count": "count", "count, pure": "count, pure", **JOINT, "quantile": "quantile 0.9"}


def counts(relative, runs):
    """Return (paid over oracle, over the least, misses, surely at least) of counts of several sizes."""
    truths = [theta * FLOOR / relative for theta in THETAS]
    rng = np.random.default_rng(20_261_122)
    found = []
    for each in oracle.cells(relative, FLOOR, BETA, truths, runs=runs, rng=rng):
        sd = max(relative * each["truth"], FLOOR) / -float(ndtri(BETA / 2))
        over = each["mu2"] / np.log1p(sd**-2), each["mu2"] / any_rule(relative, each["truth"], FLOOR)
        found.append((each["paid_over_oracle"], *over, each["miss"], each["miss_at_least"]))
    return found


def any_rule(relative, truth, absolute, *, pure=False):
    """Return the mu squared (epsilon) in the mean of any rule that keeps its promises at counts.

    They are its target, claim 6 on both sides, and that no count is told more than ten times as large as it or the
    floor, with a chance of ABSURD or more: the proof page of the stopping rule, "Absurd values".
    """
    width, found = max(relative * truth, absolute), []
    if (1 - relative) * truth > 10 * absolute:
        nats, apart = absurd.coins(1 - BETA, absurd.ABSURD), truth - (1 - relative) * truth / 10
        found.append(nats / apart if pure else 2 * nats / apart**2)
    for answer in truth + width * np.linspace(-1, 1, 41):
        below, above = min(answer / (1 + relative), answer - absolute), max(answer / (1 - relative), answer + absolute)
        fewer = truth - below if below >= 0 else np.inf
        least, most = (1 - BETA if answer <= truth - width else 0.0), (BETA if answer >= truth + width else 1.0)
        if pure:  # likelihoods change with the number of units, not with its square
            fewer, above = np.sqrt(fewer), truth + np.sqrt(above - truth)
        found.append(told_apart(fewer, above - truth, BETA, least, most) / (2 if pure else 1))
    return max(found)


def pure_counts(relative, runs):
    """Return the same of counts under a pure budget, of which the oracle makes one Laplace release."""
    found = []
    for each in pure.cells(relative, BETA, runs=runs):
        if each["theta"] < 1:
            continue
        width = max(relative * each["truth"], pure.ABSOLUTE)
        least = 2 * np.arcsinh(-float(ndtri(BETA / 2)) / (2 * width))
        paid = each["ratio"] * np.log(1 / BETA) / width
        bound = any_rule(relative, each["truth"], pure.ABSOLUTE, pure=True)
        found.append((each["ratio"], paid / least, paid / bound, each["miss"], each["miss_at_least"]))
    return found


def pure_measured(kind, relative, runs):
    """Return the same of means, variances and their roots under a pure budget, of groups of 10,000 rows."""
    found = []
    for shape in pure_measures.SHAPES:
        _, statistic, lanes = next(each for each in pure_measures.ASKED if f"{each[0]}, pure" == kind)
        truth = pure_measures.lanes(*shape)[:lanes]
        asked = pure_measures.question(statistic, lanes, relative)
        state, _ = pure_measures.played(asked, truth, runs)
        missed = pure_measures.missed(asked, state, truth)
        ratio = state.paid.mean() / pure_measures.ONE / pure_measures.oracle(asked, truth)
        paid, here = state.paid.mean() / pure_measures.ONE, pure_measures.lanes(*shape)
        least = paid / joint.least_pure((statistic,), here, relative)
        over_any = paid / joint.any_rule((statistic,), here, relative, pure=True)
        found.append((ratio, least, over_any, missed / runs, oracle.miss_at_least(missed, runs)))
    return found


def several(kind, relative, runs):
    """Return the same of means, variances, roots and five aggregates at once, of groups of 10,000 rows."""
    rng = np.random.default_rng(20_240_601)
    cells = [joint.cell(kind, relative, shape, 1e4, runs=runs, rng=rng) for shape in joint.SHAPES]
    names = ("paid_over_oracle", "paid_over_least", "paid_over_any", "miss", "miss_at_least")
    return [tuple(each[name] for name in names) for each in cells]


def ranks(q, rank, groups, kinds):
    """Return the same of quantiles; the oracle tests the right place once, at half of the slack, and counts or not."""
    found: dict[str, list[tuple[float, ...]]] = {"told the rows": [], "counts": []}
    for kind in kinds:
        each = quantiles.measured(kind, q, rank, groups, 2_000)
        missed = round(each["interval_misses"] * groups)
        over = each["paid_over_least"] or np.nan
        rest = (np.nan, over, missed / groups, oracle.miss_at_least(missed, groups))
        found["told the rows"].append((each["paid_over_one_test"], *rest))
        found["counts"].append((each["paid_over_counting_test"], *rest))
    return found


def values(target, groups):
    """Return the same of quantiles by value; the oracle tests the two cheapest thresholds that are near enough."""
    rng, found = np.random.default_rng(8), []
    for kind in RANKED["quantile"]:
        each = quantiles.valued(kind, target, 2_000, quantiles.leaves(kind, groups, 2_000, rng))
        missed = round(each["misses"] * groups)
        over = each["tests"], np.nan, each["least"]
        found.append((*over, missed / groups, oracle.miss_at_least(missed, groups)))
    return found


def rows(runs, only):
    """Give (aggregate, target, runs a cell, cells) of every row whose aggregate holds a word."""
    kinds = {"count": counts, "count, pure": pure_counts}
    kinds |= {kind: partial(several, kind) for kind in JOINT}
    kinds |= {f"{name}, pure": partial(pure_measured, f"{name}, pure") for name, *_ in pure_measures.ASKED}
    for kind, cells in kinds.items():
        for relative in RELATIVE if only in kind else ():
            yield kind, f"{relative:.0%}", runs, cells(relative, runs)
    for name, kinds in RANKED.items():
        for q, rank in QUANTILES if only in name else ():
            for word, cells in ranks(q, rank, runs // 5, kinds).items():
                yield name, f"{q:g}, rank {rank:.0%}; {word}", runs // 5, cells
    for q, relative, absolute in VALUES if only in "quantile by value" else ():
        width = f"{relative:.0%} of the value" if relative else f"{absolute / quantiles.LEAVES:.0%} of the range"
        yield "quantile by value", f"{q:g}, {width}", runs // 5, values((q, relative, absolute), runs // 5)


def chain(kind):
    """Return what two ever sharper asks cost over one."""
    name = CHAINS[kind]
    if kind == "quantile":
        run, (target, width) = refining.descended(1_000, name), ("rank", 0.05)
    else:
        data = refining.table(300, np.random.default_rng(20_261_122))
        run, (target, width) = refining.asked(data, 300, name), next(iter(refining.KINDS[name][2].items()))
    once = np.mean([run({target: width}) for _ in range(2)])
    return run({target: 4 * width}, {target: 2 * width}, {target: width}) / once


def main():
    """Print one row for each aggregate and target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000, help="runs a cell; a fifth of it for quantiles")
    parser.add_argument("--only", default="", help="aggregates whose name holds this word")
    parser.add_argument("--chains", action="store_true", help="print what refining costs, too")
    options = parser.parse_args()
    print("| aggregate | target | kinds of data, runs each | paid / oracle (worst) | / least | / any rule | misses |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, target, runs, cells in rows(options.runs, options.only):
        *ratios, misses, surely = np.array(cells).T
        kinds = f"{len(cells)}, {runs:,}"
        known = [each[np.isfinite(each)] for each in ratios]
        costs = " | ".join(f"{each.mean():.2f} ({each.max():.2f})" if len(each) else "-" for each in known)
        print(f"| {name} | {target} | {kinds} | {costs} | {misses.max():.2%} ({surely.max():.2%}) |", flush=True)
    for kind in CHAINS if options.chains else ():
        if options.only in kind:
            print(f"{kind}: a chain of two steps costs {chain(kind):.3f} times the sharpest ask alone", flush=True)


if __name__ == "__main__":
    main()
