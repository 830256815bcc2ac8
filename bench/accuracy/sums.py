"""How wide the interval of a total of stopped cells is, beside its real error, and how often it misses.

Cells stop by the real schedule of a relative target: on a statistical generator, or under a pure budget on the Laplace
chain itself. Widths are in units of the cells' own half-widths added up, sum of max(r x, a); "added" is the bound that
widens each cell's interval and adds them up, for Gaussian noise.

    python bench/accuracy/sums.py [--pure] [--sums N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import oracle
import pure

from farthing.accuracy import Schedule, cell_sums
from farthing.accuracy.noise_laws import LAPLACE
from farthing.accuracy.stopped_laws import GAUSSIAN_STOPS, LaplaceStops
from farthing.accuracy.stopped_sums import StoppedSums
from farthing.accuracy.stored_promise import StoredPromise

RELATIVE = (0.02, 0.1, 0.3)
CELLS = (2, 4, 12, 100, 1000)
THETAS = (0.5, 1.0, 5.0)
ABSOLUTE, BETA, RUNS = 10.0, 0.05, 10_000


def gaussian(relative, runs, truth, rng):
    """Return the schedule, the law, and information and means of cells that stopped by it."""
    schedule = oracle.plan(relative, ABSOLUTE, BETA)
    held, means, *_ = oracle.follow(schedule, np.full(runs, truth), rng)
    return schedule, GAUSSIAN_STOPS, held * schedule.per_grain, means


def laplace(relative, runs, truth, rng):  # noqa: ARG001  # a chain draws from the system
    """Return the same under a pure budget."""
    schedule = Schedule.plan(relative, ABSOLUTE, BETA, per_grain=2.0**-40, cap_grains=1 << 50, law=LAPLACE)
    held, means, _ = pure.follow(schedule, np.full(runs, truth))
    return schedule, LaplaceStops(schedule.looks[-1] * schedule.per_grain), held * schedule.per_grain, means


def record(stops, relative, cells, theta, *, most, rng):
    """Return widths of a few sums, the error's quantiles over many, and the misses of those few."""
    runs, truth = max(most, RUNS // cells), round(theta * ABSOLUTE / relative)
    schedule, law, held, means = stops(relative, runs * cells, truth, rng)
    means, held = means.reshape(runs, cells), held.reshape(runs, cells)
    error = means.sum(axis=1) - cells * truth
    relative = schedule.relative
    unit = cells * max(relative * truth, ABSOLUTE)
    few = slice(0, most)
    sums = StoppedSums(means[few], held[few], relative, schedule.floor, schedule.critical, law)
    lower, upper = sums.ends(BETA)
    middle, each = means[few].sum(axis=1), np.maximum(relative * means[few], schedule.floor).sum(axis=1)
    added = cell_sums.stretch(StoredPromise.of(schedule, BETA), BETA / cells) if law is GAUSSIAN_STOPS else np.nan
    return {
        "relative": relative, "cells": cells, "theta": theta, "sums": most, "runs": runs,
        "below": float((middle - lower).mean() / unit), "above": float((upper - middle).mean() / unit),
        "added": float(added * each.mean() / unit),
        "low": float(np.quantile(error, 0.025) / unit), "high": float(np.quantile(error, 0.975) / unit),
        "misses": int(((lower > cells * truth) | (upper < cells * truth)).sum()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pure", action="store_true", help="cells of a pure budget")
    parser.add_argument("--sums", type=int, default=40, help="sums a row of which intervals are computed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    options = parser.parse_args()
    rng, records = np.random.default_rng(20_240_618), []
    print("| relative | cells | truth over a/r | below, above | added | error | misses |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for relative in RELATIVE:
        for cells in CELLS:
            for theta in THETAS:
                most, stops = max(2, options.sums // max(1, cells // 25)), laplace if options.pure else gaussian
                one = record(stops, relative, cells, theta, most=most, rng=rng)
                records.append(one)
                bound = f"{one['below']:.2f}, {one['above']:.2f} | {one['added']:.2f}"
                error = f"{one['low']:.2f}, {one['high']:.2f} | {one['misses']} of {one['sums']}"
                print(f"| {relative:.0%} | {cells:,} | {theta} | {bound} | {error} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
