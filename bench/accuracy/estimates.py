"""The bias of values and of estimates, at truths of every size, as shares of the half-width.

Runs the real schedule on a statistical generator. A value keeps a relative target surely, and is low; the mean Y of the
measurements is high, since a group stops when it looks large; the estimate is to be within a tenth at every truth.

    python bench/accuracy/estimates.py [--runs N] [--pure]

With `--pure` the noise is a Laplace chain.
"""

from __future__ import annotations

import argparse

import held
import numpy as np
from oracle import follow, plan

from farthing.accuracy import Schedule, reported
from farthing.accuracy.noise_laws import LAPLACE

KINK = 1000.0
THETAS = (0.02, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0, 30.0, 1e3, 1e5)
ALLOWED = 0.1


def chained(relative, beta, truths, *, runs, rng):
    """Run a schedule on a Laplace chain; return it, and (farthings, shown values), [truths * runs]."""
    made = {"per_grain": held.PER[LAPLACE], "cap_grains": held.CAP[LAPLACE], "law": LAPLACE}
    schedule = Schedule.plan(relative, relative * KINK, beta, **made)
    mean, paid = np.zeros((len(truths), runs)), np.zeros((len(truths), runs), np.int64)
    for place, truth in enumerate(truths):
        held.follow(schedule, truth, mean[place], paid[place], np.ones(runs, bool), rng)
    return schedule, paid.ravel(), mean.ravel()


def biases(relative, beta, *, runs, rng, pure):
    """Return (value, Y, estimate, standard error) over the half-width, float64[truths] each."""
    truths = KINK * np.array(THETAS)
    x = np.repeat(truths, runs)
    if pure:
        schedule, paid, mean = chained(relative, beta, truths, runs=runs, rng=rng)
        futile = np.zeros(x.size, bool)
    else:
        schedule = plan(relative, relative * KINK, beta)
        paid, mean, _, futile = follow(schedule, x, rng)
    report = reported(mean, paid, schedule, futile)
    half = np.maximum(schedule.relative * truths, schedule.floor)
    columns = [(told - x).reshape(-1, runs) for told in (report.value, mean, report.estimate)]
    return *(off.mean(axis=1) / half for off in columns), columns[2].std(axis=1) / half / np.sqrt(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000, help="runs a truth")
    parser.add_argument("--pure", action="store_true")
    given = parser.parse_args()
    runs = given.runs
    rng = np.random.default_rng(20_240_602)
    print("     r  beta | worst bias over half-width: value (theta)     Y (theta)   estimate (theta) +- | ok")
    for beta in (0.05, 0.01):
        for relative in (0.1, 0.3, 0.5):
            *columns, error = biases(relative, beta, runs=runs, rng=rng, pure=given.pure)
            told = []
            for off in columns:
                at = int(np.argmax(np.abs(off)))
                told.append(f"{off[at]:+.3f} ({THETAS[at]:g})")
            fine = np.abs(columns[2]).max() + 5 * error.max() <= ALLOWED
            print(
                f"  {relative:.2f}  {beta:.2f} | {told[0]:>34s} {told[1]:>15s} {told[2]:>15s} {error.max():.4f}"
                f" | {'yes' if fine else 'NO'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
