"""How much an answer costs against someone who knew the truth, and how often it misses.

Runs the real schedule (`next_look`, `stopped`, `reported`) on a statistical generator, for relative targets from 1 % to
50 %, kinks a/r from 10 to 1e8 and truths from a twentieth of the kink to far above it. Beside it: doubling, a
time-uniform interval, and the classic conversion of the same spend to epsilon.

    python bench/accuracy/oracle.py [--quick] [--relative R ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
from scipy.special import log_ndtr, ndtr
from scipy.stats import beta as beta_law

from farthing.accuracy import Schedule, doubling_cost, oracle_cost, reported

RELATIVE = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5)
BETAS = (0.05, 0.01)
KINKS = tuple(10.0**k for k in range(1, 9))
THETAS = (0.05, 0.2, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 5.0)
GRAIN = 2.0**-56
DELTA = 1e-6
LIMIT = {0.01: 1.04, 0.05: 1.04, 0.1: 1.04, 0.2: 1.08, 0.3: 1.11, 0.5: 2.85}
"""Most that mean paid / oracle may be at truths well above the kink; at 50 % no early look may be passed by noise."""


def plan(relative, absolute, beta):
    """Lay out a schedule that no cap binds; tiny absolute targets get coarser grains, to stay within int64."""
    per_grain = max(GRAIN, (10 / absolute) ** 2 / 2**60)
    return Schedule.plan(relative, absolute, beta, per_grain=per_grain, cap_grains=2**62)


def follow(schedule, truth, rng):
    """Run the schedule on Gaussian measurements of each truth; return (grains, Y, looks, given up)."""
    paid, looks = np.zeros(truth.size, np.int64), np.zeros(truth.size, np.int64)
    total, mean, futile = np.zeros(truth.size), np.zeros(truth.size), np.zeros(truth.size, bool)
    active = np.arange(truth.size)
    while active.size:
        ahead = schedule.next_look(paid[active], mean[active])
        bought = (ahead - paid[active]) * schedule.per_grain
        total[active] += bought * truth[active] + np.sqrt(bought) * rng.standard_normal(active.size)
        paid[active] = ahead
        mean[active] = total[active] / (ahead * schedule.per_grain)
        looks[active] += 1
        futile[active] = schedule.futile(ahead, mean[active])
        active = active[~(futile[active] | schedule.stopped(ahead, mean[active]))]
    return paid, mean, looks, futile


def cells(relative, absolute, beta, truths, *, runs, rng):
    """Return one record a truth: miss rate with exact bounds, paid / oracle, looks."""
    schedule = plan(relative, absolute, beta)
    x = np.repeat(np.asarray(truths, dtype=float), runs)
    paid, mean, looks, futile = follow(schedule, x, rng)
    value, lower, upper, met, _ = reported(mean, paid, schedule, futile)
    off = np.abs(value - x) > np.maximum(relative * x, absolute)
    missed = ((x < lower) | (x > upper) | off).reshape(-1, runs).sum(axis=1)
    cost = paid.reshape(-1, runs).mean(axis=1) * schedule.per_grain
    first = schedule.first_look * schedule.per_grain
    doubling = doubling_cost(truths, relative, absolute, beta, first=first)
    oracle = oracle_cost(truths, relative, absolute, beta)
    return [
        {
            "relative": relative,
            "absolute": absolute,
            "beta": beta,
            "truth": float(truth),
            "theta": float(truth * relative / absolute),
            "runs": runs,
            "miss": float(missed[i] / runs),
            "miss_at_least": miss_at_least(int(missed[i]), runs),
            "met": float(met.reshape(-1, runs)[i].mean()),
            "mu2": float(cost[i]),
            "paid_over_oracle": float(cost[i] / oracle[i]),
            "looks": float(looks.reshape(-1, runs)[i].mean()),
            "doubling_over_oracle": float(doubling[i] / oracle[i]),
            "doubling_miss": doubling_miss(float(truth), relative, absolute, schedule.critical, first),
        }
        for i, truth in enumerate(truths)
    ]


def miss_at_least(missed, runs, level=1e-6):
    """Return the exact (Clopper-Pearson) lower bound on a miss rate, wrong with probability at most `level`."""
    return 0.0 if missed == 0 else float(beta_law.ppf(level, missed, runs - missed + 1))


def doubling_miss(truth, relative, absolute, z, first):
    """Return the exact miss rate of doubling with fresh noise, at critical value z."""
    missed, going, level = 0.0, 1.0, first
    enough = max(first, (z / absolute) ** 2)
    while going > 1e-12:
        level = min(level, enough)
        mu, b = truth * math.sqrt(level), z / relative
        stays = float(ndtr(b - mu) - ndtr(-b - mu)) if level < enough else 0.0
        wrong = ndtr(mu - max(b, mu / (1 - relative))) + max(ndtr(mu / (1 + relative) - mu) - ndtr(b - mu), 0)
        if level == enough:
            wrong += ndtr(min(b, mu - z) - mu) + max(ndtr(b - mu) - ndtr(z), 0)
        missed += going * float(wrong)
        going *= stays
        level *= 2
    return missed


def time_uniform(theta, relative, absolute, beta, *, runs, rng, ratio=1.02):
    """Stop by an interval that is valid at all times (normal mixture, tuned to the truth); return cost and miss."""
    x = theta * absolute / relative
    ideal = float(oracle_cost(x, relative, absolute, beta))
    spread = ideal / 8
    t = ideal / 8
    brown = math.sqrt(t) * rng.standard_normal(runs)
    cost, wrong, active = np.zeros(runs), np.zeros(runs, bool), np.arange(runs)
    while active.size:
        mean = x + brown[active] / t
        radius = math.sqrt((t + spread) * math.log((t + spread) / (spread * beta**2))) / t
        done = radius <= np.maximum(relative * (np.abs(mean) - radius), absolute)
        cost[active[done]] = t
        wrong[active[done]] = np.abs(mean[done] - x) > radius
        active = active[~done]
        step = t * (ratio - 1)
        brown[active] += math.sqrt(step) * rng.standard_normal(active.size)
        t += step
    return cost.mean() / ideal, wrong.mean()


def epsilon_gdp(mu2):
    """Return epsilon of sqrt(mu2)-GDP at DELTA, by bisection on the exact curve."""
    mu, low, high = math.sqrt(mu2), 0.0, 50.0
    for _ in range(80):
        mid = (low + high) / 2
        delta = ndtr(mu / 2 - mid / mu) - math.exp(mid + log_ndtr(-mu / 2 - mid / mu))
        low, high = (mid, high) if delta > DELTA else (low, mid)
    return high


def epsilon_classic(mu2):
    """Return epsilon by the filter of Rogers et al., Theorem 2: rho + 2 sqrt(rho log(1/delta))."""
    rho = mu2 / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / DELTA))


def summary(relative, beta, records, runs, rng):
    """Condense the records of one (relative, beta) to a line of the table."""
    above = [r for r in records if r["theta"] >= 10]
    worst = max(records, key=lambda r: r["miss"])
    uniform, uniform_miss = time_uniform(20.0, relative, 1.0, beta, runs=runs, rng=rng)
    mu2 = float(np.mean([r["paid_over_oracle"] for r in above])) * float(oracle_cost(0, 0, 100.0, beta))
    return {
        "relative": relative,
        "beta": beta,
        "worst_miss": worst["miss"],
        "worst_miss_at_least": max(r["miss_at_least"] for r in records),
        "worst_theta": worst["theta"],
        "paid_over_oracle": max(r["paid_over_oracle"] for r in above),
        "limit": LIMIT[relative],
        "looks": float(np.mean([r["looks"] for r in records])),
        "doubling_over_oracle": float(np.mean([r["doubling_over_oracle"] for r in above])),
        "doubling_worst_miss": max(r["doubling_miss"] for r in records),
        "time_uniform_over_oracle": float(uniform),
        "time_uniform_miss": float(uniform_miss),
        "epsilon": epsilon_gdp(mu2),
        "epsilon_classic": epsilon_classic(mu2),
        "ok": all(r["miss_at_least"] <= beta for r in records)
        and max(r["paid_over_oracle"] for r in above) <= LIMIT[relative],
    }


HEAD = (
    "     r  beta | worst miss (>= surely)  at theta | paid/oracle (limit)  looks |"
    " doubling (miss) | time-uniform (miss) | epsilon at +-100: ours, classic | ok"
)


def line(s):
    return (
        f"{s['relative']:6.2f}  {s['beta']:.2f} |   {s['worst_miss']:.4f} ({s['worst_miss_at_least']:.4f})"
        f"      {s['worst_theta']:8.2f} |    {s['paid_over_oracle']:.3f}   ({s['limit']:.2f})   {s['looks']:6.1f} |"
        f"   {s['doubling_over_oracle']:.2f}  ({s['doubling_worst_miss']:.3f}) |"
        f"     {s['time_uniform_over_oracle']:.2f}  ({s['time_uniform_miss']:.3f})  |"
        f"         {s['epsilon']:.4f}  {s['epsilon_classic']:.4f}         | {'yes' if s['ok'] else 'NO'}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two kinks and four relative targets")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    parser.add_argument("--runs", type=int, default=10_000, help="runs a truth")
    parser.add_argument("--relative", type=float, nargs="+", metavar="R", help="only these relative targets")
    options = parser.parse_args()
    rng = np.random.default_rng(20_240_601)
    kinks = (1e2, 1e5) if options.quick else KINKS
    started, lines, everything = time.perf_counter(), [], []
    print(HEAD)
    for beta in BETAS:
        for relative in options.relative or ((0.05, 0.1, 0.3, 0.5) if options.quick else RELATIVE):
            records = []
            for kink in kinks:
                truths = [kink * theta for theta in THETAS]
                truths += [10.0**k for k in range(2, 9) if 10.0**k >= 10 * kink]
                records += cells(relative, relative * kink, beta, truths, runs=options.runs, rng=rng)
            lines.append(summary(relative, beta, records, options.runs, rng))
            everything += records
            print(line(lines[-1]), flush=True)
    print(f"{len(everything)} cells of {options.runs} runs in {time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({"summary": lines, "cells": everything}, indent=1) + "\n")


if __name__ == "__main__":
    main()
