"""Speed of the linear attack, its closed form, and a verdict on every target of the suite.

    python bench/attacks.py [--json FILE] [--repeats 5] [--honest 1000]

Speed: one linear attack on n people with 4 n questions, noise of 0.2 sqrt(n), the default method; `cpu` is
what it takes on an idle core, and what the target is about. Law: least squares against noise c sqrt(n), beside
Phi(sqrt(k - 1) / (4 c)), in binomial standard deviations. Matrix: which attack calls which target broken; the honest
one is attacked --honest times over, and the verdicts counted.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from statistics import median
from typing import Any

from farthing import attacks
from farthing.attacks import targets

TARGETS_S = {200: 0.5, 800: 10.0}
WIDTHS = (0.1, 0.2, 0.35, 0.5, 1.0, 2.0)
MOST_DEVIATIONS = 4.0
LEVEL = 1e-3


def speed(repeats: int) -> list[dict[str, Any]]:
    """Return the median seconds of a linear attack by size."""
    rows = []
    for n, most in TARGETS_S.items():
        taken, worked = [], []
        for run in range(repeats if n < 800 else 1):
            target = targets.FreshGaussian(attacks.secrets(n, seed=run).bits, 0.2 * math.sqrt(n), seed=run)
            started, idle = time.perf_counter(), time.process_time()
            attacks.linear(target, queries=4 * n, seed=run)
            taken.append(time.perf_counter() - started)
            worked.append(time.process_time() - idle)
        row = {"n": n, "m": 4 * n, "seconds": median(taken), "cpu": median(worked), "target": most}
        rows.append(row | {"ok": row["cpu"] < most})
    return rows


def law(repeats: int, n: int = 200) -> list[dict[str, Any]]:
    """Return measured and expected accuracy of least squares, and how many binomial deviations apart they are."""
    rows = []
    for width in WIDTHS:
        for factor in (2, 4, 8):
            good = 0
            for run in range(repeats):
                bits = attacks.secrets(n, seed=100 * factor + run).bits
                target = targets.FreshGaussian(bits, width * math.sqrt(n), seed=run)
                found = attacks.linear(target, factor * n, run, method="least_squares", intercept=False)
                good += round(found.accuracy * n)
            expected = attacks.expected_accuracy(width * math.sqrt(n), n, factor * n)
            band = math.sqrt(max(expected * (1 - expected), 1 / (repeats * n)) / (repeats * n))
            gap = abs(good / (repeats * n) - expected) / band
            row = {"c": width, "m/n": factor, "accuracy": good / (repeats * n), "expected": expected}
            rows.append(row | {"deviations": gap, "ok": gap <= MOST_DEVIATIONS})
    return rows


def matrix() -> list[dict[str, Any]]:
    """Return the verdict of each attack on each broken target."""
    bits, many = attacks.secrets(200, seed=1).bits, attacks.secrets(600, seed=2).bits
    alone = {
        "exact": lambda: targets.Exact(bits),
        "rounding to 5": lambda: targets.Rounded(bits, 5),
        "suppression": lambda: targets.Suppressed(bits),
        "subsample": lambda: targets.Subsample(bits),
        "fresh noise": lambda: targets.FreshGaussian(bits, math.sqrt(10)),
        "leaky ledger": lambda: targets.LeakyLedger(bits),
    }
    fresh = {"float noise": targets.Floats, "sensitivity off by two": targets.OffByTwo}
    tried = {
        "linear l1": attacks.linear,
        "least squares": lambda target: attacks.linear(target, method="least_squares"),
        "averaging": lambda target: attacks.averaging(target, 400),
        "differencing": lambda target: attacks.differencing(target, 10),
        "single target": attacks.single_target,
    }
    rows = [
        {"target": name} | {attack: run(make()).verdict for attack, run in tried.items()}
        for name, make in alone.items()
    ]
    for name, kind in fresh.items():
        found = {
            "single target": attacks.single_target(targets.each(kind, many, epsilon=1)).verdict,
            "precision": attacks.precision(targets.each(kind, many, epsilon=1)).verdict,
        }
        rows.append({"target": name} | found)
    return [row | {"ok": "broken" in row.values()} for row in rows]


def honest(runs: int) -> dict[str, Any]:
    """Return how often each attack calls the honest mechanism broken, at the cap itself for the single target."""
    called = {"linear": 0, "averaging": 0, "differencing": 0, "single target": 0}
    for run in range(runs):
        bits = attacks.secrets(100, seed=10_000 + run).bits
        found = {
            "linear": attacks.linear(targets.Honest(bits, 1, 200, seed=run), 200, run, method="least_squares"),
            "averaging": attacks.averaging(targets.Honest(bits, 1, 100, seed=run), 2, run),
            "differencing": attacks.differencing(targets.Honest(bits, 1, 100, seed=run), 1, run, trick="range"),
            "single target": attacks.single_target(targets.each(targets.Honest, bits, epsilon=1), 1, run),
        }
        for name, result in found.items():
            called[name] += result.verdict == "broken"
    return {"runs": runs, "called broken": called, "level": LEVEL}


def table(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    shown = [[f"{row[name]:.3g}" if isinstance(row.get(name), float) else str(row.get(name, "")) for name in names]
             for row in rows]  # fmt: skip
    widths = [max(len(line[place]) for line in [names, *shown]) for place in range(len(names))]
    for line in [names, *shown]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
    print()


def main() -> None:
    """Measure, print, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--honest", type=int, default=1000)
    given = parser.parse_args()
    found = {"speed": speed(given.repeats), "law": law(given.repeats), "matrix": matrix()}
    for name, rows in found.items():
        print(name)
        table(rows)
    kept = honest(given.honest)
    print("honest", kept)
    if given.json:
        given.json.write_text(json.dumps(found | {"honest": kept}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
