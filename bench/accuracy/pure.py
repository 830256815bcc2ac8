"""What a count costs under a pure budget, against someone who knew the truth, and how often it misses.

Runs the library's schedule on its Laplace chain (system noise), for relative targets from 1 % to 50 %, at truths from
a twentieth of the kink a/r to a hundred times it. The oracle is the best single two-sided geometric release that knows
the truth: epsilon* = log(1/beta) / max(r x, a), and the same by the integer law on whole counts.

    python bench/accuracy/pure.py [--quick] [--runs N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from scipy.stats import beta as beta_law

from farthing.accuracy import Schedule, reported
from farthing.accuracy.noise_laws import LAPLACE
from farthing.accuracy.stop_rule import tamed
from farthing.mechanisms.geometric import price_of
from farthing.mechanisms.laplace import LaplaceChain, Shown

RELATIVE = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
THETAS = (0.05, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 3.0, 5.0, 10.0, 100.0)
ABSOLUTE = 30.0
FINER = 10  # noise is drawn on steps of 2^-FINER
LIMIT = 1.1
"""Most that mean paid / oracle may be at truths well above the kink, for relative targets that a rule is made for."""


def follow(schedule, truth):
    """Run a schedule on the chain; return (farthings, shown values, looks)."""
    chain = LaplaceChain(truth << FINER, sensitivity=1 << FINER, step_log2=-FINER)
    state, looks = Shown.nothing(len(truth), -FINER), np.zeros(len(truth), np.int64)
    value, farthings = state.value.copy(), state.farthings.copy()
    active = np.arange(len(truth))
    while active.size:
        ahead = schedule.next_look(farthings[active], np.ldexp(value[active].astype(float), -FINER))
        shown = chain.measure(Shown(value[active], farthings[active], -FINER), ahead, active)
        value[active], farthings[active] = shown.value, shown.farthings
        looks[active] += 1
        active = active[~schedule.stopped(shown.farthings, shown.values)]
    return farthings, np.ldexp(value.astype(float), -FINER), looks


def cells(relative, beta, *, runs):
    """Return one record a truth: misses with an exact bound, paid over the oracle, looks."""
    schedule = Schedule.plan(relative, ABSOLUTE, beta, per_grain=2.0**-40, cap_grains=1 << 50, law=LAPLACE)
    truths = np.array([max(1, round(theta * ABSOLUTE / relative)) for theta in THETAS])
    x = np.repeat(truths, runs)
    farthings, shown, looks = follow(schedule, x)
    value, lower, upper, *_ = reported(shown, farthings, schedule, np.zeros(len(x), bool))
    allowed = np.maximum(relative * x, ABSOLUTE)
    missed = ((x < lower) | (x > upper) | (np.abs(value - x) > allowed)).reshape(-1, runs).sum(axis=1)
    paid = farthings.reshape(-1, runs).mean(axis=1) * 2.0**-40
    found = []
    for place, truth in enumerate(truths.tolist()):
        width = max(relative * truth, ABSOLUTE)
        found.append({
            "relative": relative, "beta": beta, "truth": truth, "theta": truth * relative / ABSOLUTE, "runs": runs,
            "critical": schedule.critical, "miss": float(missed[place] / runs),
            "miss_at_least": float(beta_law.ppf(1e-6, missed[place], runs - missed[place] + 1)) if missed[place] else 0,
            "ratio": float(paid[place] * width / math.log(1 / beta)),
            "ratio_integer": float(paid[place] * 2.0**40 / price_of(width, 1, beta)),
            "looks": float(looks.reshape(-1, runs)[place].mean()),
        })  # fmt: skip
    return found


def main():
    """Print the table; exit with 1 where a promise is refuted or the price is above the limit."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--runs", type=int, default=100_000, help="runs a cell")
    options.add_argument("--json", type=Path)
    args = options.parse_args()
    runs, start, rows, wrong = 4_000 if args.quick else args.runs, time.perf_counter(), [], []
    print("    r  beta    theta    truth     miss  paid/oracle  integer  looks")
    for relative in RELATIVE:
        for beta in (0.05,) if args.quick else (0.05, 0.01):
            for row in cells(relative, beta, runs=runs):
                rows.append(row)
                print(
                    f"{relative:5} {beta:5} {row['theta']:8.2f} {row['truth']:8} {row['miss']:8.4f} "
                    f"{row['ratio']:12.3f} {row['ratio_integer']:8.3f} {row['looks']:6.1f}"
                )
                made = max(1.0, relative / tamed(relative, beta, LAPLACE))  # for a sharper target, absurd.py says why
                above = row["theta"] >= 2 and row["ratio"] > LIMIT * made + 3 / math.sqrt(runs)
                if row["miss_at_least"] > beta or above:
                    wrong.append(row)
    print(f"{len(rows)} cells, {time.perf_counter() - start:.0f} s; refuted: {len(wrong)}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
