"""The bias of values and of estimates, at truths of every size, as shares of the half-width.

Runs the real schedule on a statistical generator. A value keeps a relative target surely, and is low; the mean Y of the
measurements is high, since a group stops when it looks large; the estimate is to be within a tenth at every truth.

    python bench/accuracy/estimates.py [--runs N]
"""

from __future__ import annotations

import argparse

import numpy as np
from oracle import follow, plan

from farthing.accuracy import reported

KINK = 1000.0
THETAS = (0.02, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0, 30.0, 1e3, 1e5)
ALLOWED = 0.1


def biases(relative, beta, *, runs, rng):
    """Return (value, Y, estimate, standard error) over the half-width, float64[truths] each."""
    schedule = plan(relative, relative * KINK, beta)
    truths = KINK * np.array(THETAS)
    x = np.repeat(truths, runs)
    paid, mean, _, futile = follow(schedule, x, rng)
    report = reported(mean, paid, schedule, futile)
    half = np.maximum(schedule.relative * truths, schedule.floor)
    columns = [(told - x).reshape(-1, runs) for told in (report.value, mean, report.estimate)]
    return *(off.mean(axis=1) / half for off in columns), columns[2].std(axis=1) / half / np.sqrt(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000, help="runs a truth")
    runs = parser.parse_args().runs
    rng = np.random.default_rng(20_240_602)
    print("     r  beta | worst bias over half-width: value (theta)     Y (theta)   estimate (theta) +- | ok")
    for beta in (0.05, 0.01):
        for relative in (0.1, 0.3, 0.5):
            *columns, error = biases(relative, beta, runs=runs, rng=rng)
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
