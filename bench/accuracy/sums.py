"""How wide the interval of a total of stopped cells is, beside its real error, and how often it misses.

Cells stop by the real schedule of a relative target, on a statistical generator. Widths are in units of the cells' own
half-widths added up, sum of max(r x, a); "added" is the bound that widens each cell's interval and adds them up.

    python bench/accuracy/sums.py [--sums N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from oracle import follow, plan

from farthing.accuracy import cell_sums
from farthing.accuracy.stopped_sums import StoppedSums
from farthing.accuracy.stored_promise import StoredPromise

RELATIVE = (0.02, 0.1, 0.3)
CELLS = (2, 4, 12, 100, 1000)
THETAS = (0.5, 1.0, 5.0)
ABSOLUTE, BETA, RUNS = 10.0, 0.05, 10_000


def record(relative, cells, theta, *, most, rng):
    """Return widths of a few sums, the error's quantiles over many, and the misses of those few."""
    schedule = plan(relative, ABSOLUTE, BETA)
    runs = max(most, RUNS // cells)
    truth = theta * ABSOLUTE / relative
    held, means, *_ = follow(schedule, np.full(runs * cells, truth), rng)
    means, held = means.reshape(runs, cells), held.reshape(runs, cells) * schedule.per_grain
    error = means.sum(axis=1) - cells * truth
    unit = cells * max(relative * truth, ABSOLUTE)
    few = slice(0, most)
    sums = StoppedSums(means[few], held[few], relative, schedule.floor, schedule.critical)
    lower, upper = sums.ends(BETA)
    middle, kept = means[few].sum(axis=1), StoredPromise.of(schedule, BETA)
    each = np.maximum(relative * means[few], schedule.floor).sum(axis=1)
    return {
        "relative": relative, "cells": cells, "theta": theta, "sums": most, "runs": runs,
        "below": float((middle - lower).mean() / unit), "above": float((upper - middle).mean() / unit),
        "added": float(cell_sums.stretch(kept, BETA / cells) * each.mean() / unit),
        "low": float(np.quantile(error, 0.025) / unit), "high": float(np.quantile(error, 0.975) / unit),
        "misses": int(((lower > cells * truth) | (upper < cells * truth)).sum()),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sums", type=int, default=40, help="sums a row of which intervals are computed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    options = parser.parse_args()
    rng, records = np.random.default_rng(20_240_618), []
    print("| relative | cells | truth over a/r | below, above | added | error | misses |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for relative in RELATIVE:
        for cells in CELLS:
            for theta in THETAS:
                one = record(relative, cells, theta, most=max(2, options.sums // max(1, cells // 25)), rng=rng)
                records.append(one)
                bound = f"{one['below']:.2f}, {one['above']:.2f} | {one['added']:.2f}"
                error = f"{one['low']:.2f}, {one['high']:.2f} | {one['misses']} of {one['sums']}"
                print(f"| {relative:.0%} | {cells:,} | {theta} | {bound} | {error} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
