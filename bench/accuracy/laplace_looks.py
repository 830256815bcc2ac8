"""How often a mean or a variance is missed that a pure budget shows by looks, at the worst of many groups.

Runs the code itself on its chains of noise: each row is a target and a confidence, at groups over the whole range.
*Missed* is the worst part of beta that was missed, of which looks may miss .95; *surely* the lower bound on it that is
wrong once in a million.

    python bench/accuracy/laplace_looks.py [--groups N] [--rows N] [--betas B ...] [--only WORD]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import pure_measures
from oracle import miss_at_least

from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.statistics import RatioStatistic

RELATIVE = tuple((relative, 0.0, 0.0) for relative in (0.02, 0.1, 0.2, 0.3, 0.4, 0.6))
MEANS = (*RELATIVE, *((0.0, absolute, 0.0) for absolute in (2.5, 10.0, 25.0)), (0.2, 5.0, 0.0), (0.3, 0.0, -50.0))
MEANS = (*MEANS, (0.15, 0.0, 100.0), (0.15, 15.0, -50.0), (0.1, 15.0, -50.0), (0.02, 25.0, -50.0), (0.0, 15.0, -50.0))
"""Relative target, absolute one, and where a range of width 100 begins."""

PLACES = (-0.9, -0.7, -0.6, -0.5, -0.35, 0.0, 0.5, 0.8)
"""Means, from -1 at the lower end of the range to 1 at the upper one."""

SPREADS = (("variance", 0.05), ("variance", 0.3), ("variance", 0.6), ("deviation", 0.05), ("deviation", 0.3))
SHAPES = (*pure_measures.SHAPES, (50.0, 20.0), (90.0, 50.0), (50.0, 2400.0))
BETAS = (0.05, 0.001, 0.2)


def means(beta, groups, held, rows):
    """Give (words, (part of beta missed, at least, mean)) of every target of a mean, at its worst, whose words hold."""
    for relative, absolute, begins in MEANS:
        worst, words = (0.0, 0.0, 0.0), f"mean of {begins:g} to {begins + 100:g}, {relative:.0%} or {absolute:g}"
        if held not in words:
            continue
        for place in PLACES:
            middle = begins + 50
            mean = middle + 50 * place
            if relative and abs(mean) < 3:  # what is 0 within nothing has no end
                continue
            only = RatioStatistic(0, 1, middle, begins, begins + 100)
            worst = max(worst, (*missed(only, (relative, absolute), (rows, rows * 50 * place), beta, groups), mean))
        yield words, worst


def spreads(beta, groups, held, rows):
    """Give the same of variances and standard deviations."""
    for kind, relative in SPREADS:
        if held not in f"{kind}, {relative:.0%}":
            continue
        only = replace(pure_measures.VARIANCE, root=kind == "deviation")
        tried = [missed(only, (relative, 0.0), pure_measures.lanes(*shape, rows), beta, groups) for shape in SHAPES]
        yield f"{kind}, {relative:.0%}", max((*found, mean) for found, (mean, _) in zip(tried, SHAPES, strict=True))


def missed(only, target, truth, beta, groups):
    """Return which part of beta was missed in groups that are alike, and the lower bound on it."""
    lanes = len(only.reads)
    unit = pure_measures.UNITS[:lanes]
    asked = LaplaceMeasures(
        (only,), (target,), beta, unit, tuple(each * 2.0**-pure_measures.FINER for each in unit), pure_measures.ONE
    )
    state, _ = pure_measures.played(asked, truth, groups)
    found = pure_measures.missed(asked, state, truth)
    return found / groups / beta, miss_at_least(found, groups) / beta


def main():
    """Print one row for each target and confidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=pure_measures.ROWS, help="of each group")
    parser.add_argument("--betas", type=float, nargs="+", default=BETAS)
    parser.add_argument("--only", default="", help="targets whose words hold this")
    options = parser.parse_args()
    print("| asked | beta | missed / beta | surely | at the mean |\n| --- | --- | --- | --- | --- |")
    for beta in options.betas:
        groups = round(options.groups * (0.05 / beta) ** 0.5)
        for kind in (means, spreads):
            for words, (part, surely, mean) in kind(beta, groups, options.only, options.rows):
                print(f"| {words} | {beta:g} | {part:.3f} | {surely:.3f} | {mean:g} |", flush=True)


if __name__ == "__main__":
    main()
