"""What joint answers cost against someone who knew the truth, how often they miss, and how long they take.

The oracle knows every lane and takes one fixed stage at the exact levels, in the best proportions that a search finds,
with the same intervals at the whole of beta. *Least* is a proved bound: what any unbiased mechanism pays whose standard
deviation is the target over z (docs/proofs/limits.unbiased.md, section 1, with a row more or less; of several the most
expensive). *Any rule* is proved, too: the least that any rule pays there in the mean which keeps its target on all data
(docs/proofs/accuracy.joint_measures.md, claim 6, both sides). *Plain* is what claims in stages pay if squares are
measured as they are, over what they pay where these are re-centred. Groups hold values in [0, 100].

    python bench/accuracy/joint.py [--quick] [--only KIND] [--json FILE]
    python bench/accuracy/joint.py --shape        what the one shape of all groups costs five aggregates
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import beta as beta_law

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.accuracy.stop_rule import two_sided

GRAIN, HALF, BETA = 2.0**-56, 50.0, 0.05
LESS = HALF**2 / 2
PER_GRAIN = (GRAIN, GRAIN / HALF**2, GRAIN / LESS**2)
COUNT, SUM, MEAN = Linear((0,)), Linear((1, 0), (1.0, HALF), HALF), RatioStatistic(0, 1, HALF, 0.0, 2 * HALF)
VARIANCE = VarianceStatistic(0, 1, 2, HALF, less=LESS)
DEVIATION, SAMPLE = replace(VARIANCE, root=True), replace(VARIANCE, sample=True)
KINDS = {
    "mean": (MEAN,),
    "variance": (VARIANCE,),
    "deviation": (DEVIATION,),
    "five": (COUNT, SUM, MEAN, SAMPLE, DEVIATION),
}
RELATIVE = (0.02, 0.05, 0.1, 0.2, 0.3)
SHAPES = ((60.0, 800.0), (30.0, 100.0), (52.0, 2000.0), (80.0, 50.0))
SIZES = (1e3, 1e4, 1e6)


def lanes(size, mean, variance):
    """Return N, S and Q of a group."""
    offset = mean - HALF
    return np.array([size, size * offset, size * (variance + offset**2 - LESS)])


def source(truth, rng, worth=PER_GRAIN):
    """Return a `measure` on a statistical generator."""

    def measure(grains, groups):
        sigma = 1 / np.sqrt(np.maximum(grains, 1) * np.array(worth)[:, None])
        return truth[:, groups] + sigma * rng.standard_normal(grains.shape)

    return measure


def oracle(question, truth, rng, tries=3_000):
    """Return the least grains of one fixed stage, at the truth, by a search over proportions."""
    values = np.repeat(truth[:, None], tries, axis=1)
    base = question.prices.wanted(truth[:, None], np.zeros((3, 1)), question.beta)
    best = np.inf
    for spread in (0.5, 0.2, 0.08):
        grains = base * np.exp(spread * rng.standard_normal((3, tries)) * (np.arange(tries) > 0))
        grains[~question.prices.used] = 0
        for _ in range(40):
            variances = np.where(grains > 0, 1 / np.maximum(grains * question.prices.worth, 1e-300), 1e200)
            excess = question.prices.excess(values, variances, question.beta, 0.0)
            grains *= np.clip(excess, 0.5, 3) ** 2
        total = np.where(np.abs(excess - 1) < 1e-3, grains.sum(axis=0), np.inf)
        best, base = min(best, total.min()), grains[:, [int(total.argmin())]]
    return float(best)


def least(statistics, truth, relative):
    """Return the least grains of an unbiased mechanism: what hides a row more or less, by Hammersley and others."""
    size, offset = truth[0], truth[1] / truth[0]
    most = 0.0
    for value in (-HALF, HALF, offset):
        row = np.array([1.0, value, value * value - LESS])
        for statistic in statistics:
            before, after = (float(statistic.estimate((truth + sign * row)[:, None])[0]) for sign in (0, 1))
            deviation = relative * abs(before) / two_sided(BETA)
            most = max(most, abs(after - before) / deviation)
    return np.log1p(most**2) / GRAIN if size > 1 else 0.0


def moves(statistic, truth):
    """Return values of groups that so many units can make of one, float64[n], and the units.

    Each lane moves by as much as so many units move it, or not at all; what comes out is a group that there can be.
    """
    units = truth[0] * np.geomspace(1e-4, 2, 4_000)
    most, values, needed = np.array([1.0, HALF, LESS])[:, None], [], []
    for signs in product((-1, 0, 1), repeat=3):
        moved = truth[:, None] + np.array(signs)[:, None] * most * units
        offset = moved[1] / np.maximum(moved[0], 1)
        variance = moved[2] / np.maximum(moved[0], 1) + LESS - offset**2
        possible = (moved[0] >= 1) & (np.abs(offset) <= HALF)
        if 2 in statistic.reads:  # else there is a group with some sum of squares
            possible &= (variance >= 0) & (variance <= HALF**2 - offset**2)
        values.append(np.abs(statistic.estimate(moved))[possible])
        needed.append(units[possible])
    return np.concatenate(values), np.concatenate(needed)


def any_rule(statistics, truth, relative):
    """Return the least grains in the mean of any rule that keeps its target: what tells groups apart."""
    found = []
    for statistic in statistics:
        size, (values, units) = abs(float(statistic.estimate(truth[:, None])[0])), moves(statistic, truth)
        order = np.argsort(values)
        values, units = values[order], units[order]
        below, above = np.minimum.accumulate(units), np.minimum.accumulate(units[::-1])[::-1]
        for answer in size * np.linspace(1 - relative, 1 + relative, 41):
            low, high = np.searchsorted(values, (answer / (1 + relative), answer / (1 - relative)))
            fewer, more = below[low - 1] if low else np.inf, above[high] if high < len(values) else np.inf
            least = 1 - BETA if answer <= size * (1 - relative) else 0.0
            found.append(told_apart(fewer, more, BETA, least, BETA if answer >= size * (1 + relative) else 1.0))
    return max(found) / GRAIN


def told_apart(below, above, beta, least=0.0, most=1.0):
    """Return the mu squared that a rule takes whose answers are high here, and are not or surely are at two others.

    Args:
        below: units to where high answers have chance beta at most.
        above: units to where low ones have.
        beta: that chance.
        least: what the chance of a high answer here is at least.
        most: what it is at most.
    """
    low, high = least, most
    for _ in range(60):
        chance = (low + high) / 2
        if _needed(chance, beta, below) < _needed(1 - chance, beta, above):
            low = chance
        else:
            high = chance
    return max(_needed(low, beta, below), _needed(1 - high, beta, above))


def _needed(chance, beta, units):
    """Return the mu squared that tells so many units apart by a coin: heads so often here, with beta at most there."""
    told = information(chance, beta)
    return 2 * told / units**2 if told and units else np.inf if told else 0.0


def information(chance, beta):
    """Return the divergence of a coin that shows heads so often from one that does with beta at most."""
    if chance <= beta:
        return 0.0
    tails = (1 - chance) * np.log((1 - chance) / (1 - beta)) if chance < 1 else 0.0
    return chance * np.log(chance / beta) + tails


def told(beta):
    """Return the mu squared that tells whether a unit is there, in the mean, with errors of beta on both sides."""
    return 2 * (1 - 2 * beta) * np.log((1 - beta) / beta)


def plain(kind, relative, shape, size, *, runs, rng):
    """Return what claims in stages cost where squares are not re-centred, over what they cost where they are."""
    paid = []
    for less in (0.0, LESS):
        statistics = tuple(replace(one, less=less) if hasattr(one, "less") else one for one in (*KINDS[kind], COUNT))
        worth = (*PER_GRAIN[:2], GRAIN / (less or HALF**2) ** 2)
        truth = np.repeat((lanes(size, *shape) + np.array([0, 0, (LESS - less) * size]))[:, None], runs, axis=1)
        targets = ((relative, 0.0),) * len(KINDS[kind]) + ((0.0, 0.0),)
        question = JointMeasures(statistics, targets, BETA, worth, 2**58)
        state = question.run(JointState.nothing(3, len(statistics), runs), source(truth, rng, worth))
        paid.append(float(state.paid.mean()))
    return paid[0] / paid[1]


def cell(kind, relative, shape, size, *, runs, rng):
    """Return miss rate, cost over the oracle, and the share of groups met, for groups that are alike."""
    statistics = KINDS[kind]
    question = JointMeasures(statistics, ((relative, 0.0),) * len(statistics), BETA, PER_GRAIN, 2**58)
    truth = np.repeat(lanes(size, *shape)[:, None], runs, axis=1)
    state = question.run(JointState.nothing(3, len(statistics), runs), source(truth, rng))
    answers = np.stack([statistic.estimate(truth) for statistic in statistics])
    off = state.met & (np.abs(state.value - answers) > relative * np.abs(answers) * (1 + 1e-9))
    missed = int(((answers < state.lower) | (answers > state.upper) | off).sum(axis=1).max())
    return {
        "kind": kind, "relative": relative, "mean": shape[0], "variance": shape[1], "size": size, "runs": runs,
        "miss": missed / runs,
        "miss_at_least": float(beta_law.ppf(1e-6, missed, runs - missed + 1)) if missed else 0.0,
        "met": float(state.met.all(axis=0).mean()),
        "paid_over_oracle": float(state.paid.mean()) / oracle(question, truth[:, 0], rng),
        "paid_over_least": float(state.paid.mean()) / least(statistics, truth[:, 0], relative),
        "paid_over_any": float(state.paid.mean()) / any_rule(statistics, truth[:, 0], relative),
        "plain_over_centred": plain(kind, relative, shape, size, runs=runs // 5, rng=rng),
        "median_over_mean": float(np.median(state.paid) / state.paid.mean()),
    }  # fmt: skip


def one_shape(relative, shape, rng):
    """Return what five aggregates cost in the shape that all groups have at coarse targets, over the oracle."""
    statistics = KINDS["five"]
    question = JointMeasures(statistics, ((relative, 0.0),) * len(statistics), BETA, PER_GRAIN, 2**58)
    truth = lanes(1e4, *shape)[:, None]
    grains = question.looks(JointState.nothing(3, len(statistics), 1)).shape(truth, np.ones((3, 1), np.int64))
    ticks = 1.0
    for _ in range(200):
        ticks *= (
            min(float(question.prices.excess(truth, 1 / (grains * ticks * question.prices.worth), BETA)[0]), 3) ** 2
        )
    return ticks * grains.sum() / oracle(question, truth[:, 0], rng)


def beyond(kind, relative, times, *, runs, rng):
    """Return the part of the cap that groups pay which need so many times the cap, and the share of them met."""
    statistics, truth = KINDS[kind], np.repeat(lanes(1e4, *SHAPES[0])[:, None], runs, axis=1)
    cap = int(
        oracle(
            JointMeasures(statistics, ((relative, 0.0),) * len(statistics), BETA, PER_GRAIN, 2**58), truth[:, 0], rng
        )
    )
    question = JointMeasures(
        statistics, ((relative, 0.0),) * len(statistics), BETA, PER_GRAIN, max(int(cap / times), 1)
    )
    state = question.run(JointState.nothing(3, len(statistics), runs), source(truth, rng))
    return float(state.paid.mean()) / question.cap_grains, float(state.met.all(axis=0).mean())


def speed(groups, rng):
    """Return seconds (of CPU, all told and in drawing noise) for a mean and a variance of many groups."""
    question = JointMeasures((MEAN, SAMPLE), ((0.1, 1.0), (0.1, 20.0)), BETA, PER_GRAIN, 2**54)
    sizes = 10 ** rng.uniform(2, 6, groups)
    mean, variance = rng.uniform(10, 90, groups), rng.uniform(50, 800, groups)
    truth, drawing, calls = lanes(sizes, mean, variance), 0.0, 0
    inner = source(truth, rng)

    def measure(grains, chosen):
        nonlocal drawing, calls
        started = time.process_time()
        values = inner(grains, chosen)
        drawing += time.process_time() - started
        calls += 1
        return values

    started = time.process_time()
    question.run(JointState.nothing(3, 2, groups), measure)
    return {"groups": groups, "cpu_s": time.process_time() - started, "drawing_s": drawing, "calls": calls}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs, one size, 100,000 groups for speed")
    parser.add_argument("--only", metavar="KIND", choices=tuple(KINDS), help="one kind of question alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    parser.add_argument("--shape", action="store_true", help="what the one shape of five aggregates costs, alone")
    options = parser.parse_args()
    rng = np.random.default_rng(20_240_601)
    runs, sizes, groups = (2_000, SIZES[1:2], 100_000) if options.quick else (5_000, SIZES, 1_000_000)
    if options.shape:
        for relative, shape in product((0.1, 0.2, 0.3), SHAPES):
            print(f"{relative} {shape} {one_shape(relative, shape, rng):.3f}", flush=True)
        return
    records = []
    print("kind           r  paid/oracle mean (worst)  /least mean (worst)   plain/here  worst miss (>= surely)   met")
    for kind in [options.only] if options.only else KINDS:
        for relative in RELATIVE:
            some = [cell(kind, relative, shape, n, runs=runs, rng=rng) for shape in SHAPES for n in sizes]
            records += some
            names = "paid_over_oracle", "paid_over_least", "plain_over_centred"
            cost, floor, gain = ([record[name] for record in some] for name in names)
            worst = max(some, key=lambda record: record["miss"])
            print(
                f"{kind:10s} {relative:5.2f}      {np.mean(cost):.3f}  ({max(cost):.3f})"
                f"      {np.mean(floor):.3f}  ({max(floor):.3f})     {np.mean(gain):.3f}"
                f"        {worst['miss']:.4f}  ({max(r['miss_at_least'] for r in some):.4f})"
                f"         {min(r['met'] for r in some):.3f}",
                flush=True,
            )
    if options.only:
        return
    print("part of the cap that is paid by groups that need so many times the cap of somebody who knew the truth (met)")
    for kind in KINDS:
        for relative in RELATIVE[1:4]:
            row = [beyond(kind, relative, times, runs=1_000, rng=rng) for times in (1, 2, 4, 30)]
            print(f"{kind:10s} {relative:5.2f} " + "".join(f"{paid:9.3f} ({met:.2f})" for paid, met in row), flush=True)
    took = speed(groups, rng)
    print(f"{took['groups']:,} groups: {took['cpu_s']:.1f} s of CPU, {took['drawing_s']:.1f} s to draw", end=", ")
    print(f"{took['calls']} calls")
    if options.json:
        options.json.write_text(json.dumps({"cells": records, "speed": took}, indent=1) + "\n")


if __name__ == "__main__":
    main()
