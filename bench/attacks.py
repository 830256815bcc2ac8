"""Speed of the linear attack, its closed form, and a verdict on every target of the suite.

    python bench/attacks.py [--json FILE] [--repeats 5] [--honest 1000] [--only demo]

Speed: one linear attack on n people with 4 n questions, noise of 0.2 sqrt(n), the default method; `cpu` is
what it takes on an idle core, and what the target is about. Law: least squares against noise c sqrt(n), beside
Phi(sqrt(k - 1) / (4 c)), in binomial standard deviations. Matrix: which attack calls which target broken; the honest
one is attacked --honest times over, and the verdicts counted. Members: found at one false alarm in a hundred. Demo: the
seconds of `farthing attack demo --chart`, which attack breaks which system, and whether an honest one is called broken.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from farthing import attacks
from farthing.attacks import targets

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS_S = {200: 0.5, 800: 10.0}
WIDTHS = (0.1, 0.2, 0.35, 0.5, 1.0, 2.0)
MOST_DEVIATIONS = 4.0
LEVEL = 1e-3
DEMO_S = 60.0


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


def demo() -> dict[str, Any]:
    """Run `farthing attack demo` in a process of its own, with its pictures; return seconds, verdicts and curves."""
    with tempfile.TemporaryDirectory() as folder:
        line = "import sys; from farthing.cli import main; main()"
        command = [sys.executable, "-c", line, "attack", "demo", "--json", "--chart", str(Path(folder) / "demo.svg")]
        started, idle = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - idle
        seconds = time.perf_counter() - started
    found = json.loads(ended.stdout)
    rows: dict[str, dict[str, Any]] = {}
    for row in found["attacks"]:
        one = rows.setdefault(
            row["system"], {"system": row["system"], "honest": row["honest"], "broken by": [], "tried": 0}
        )
        one["tried"] += 1
        one["broken by"] += [row["attack"]] if row["verdict"] == "broken" else []
    told = [row | {"broken by": ", ".join(row["broken by"]), "ok": bool(row["broken by"]) != row["honest"]}
            for row in rows.values()]  # fmt: skip
    curves = [{"system": name} | curve for name, curve in found["curves"].items()]
    return {
        "seconds": seconds,
        "cpu": cpu,
        "target": DEMO_S,
        "ok": cpu < DEMO_S and ended.returncode == 0,
        "systems": told,
        "curves": curves,
    }


def members(repeats: int, candidates: int = 200) -> list[dict[str, Any]]:
    """Return the share of members that is found at a false-positive rate of 1 %, beside the law for exact answers."""
    kinds = {
        "exact": targets.Exact,
        "rounded to 5": lambda people: targets.Rounded(people, 5),
        "sample of half": targets.Subsample,
        "sigma 5": lambda people: targets.FreshGaussian(people, 5),
        "sigma 10": lambda people: targets.FreshGaussian(people, 10),
        "honest, epsilon 1": lambda people: targets.Honest(people, 1, people.n * 100),
    }
    rows = []
    for count in (100, 400, 1000, 2000):
        row: dict[str, Any] = {"attributes": count, "law": attacks.tracing_power(count, candidates // 2)}
        crowds = [attacks.secrets(candidates, seed=count + run, attributes=count) for run in range(repeats)]
        for name, make in kinds.items():
            found = [attacks.membership(make(people)).details["true_positives"] for people in crowds]
            row[name] = sum(found) / repeats
        rows.append(row)
    return rows


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
    parser.add_argument("--only", choices=["speed", "law", "matrix", "members", "demo", "honest"])
    given = parser.parse_args()
    parts: dict[str, Callable[[], Any]] = {
        "speed": lambda: speed(given.repeats),
        "law": lambda: law(given.repeats),
        "matrix": matrix,
        "members": lambda: members(given.repeats),
        "demo": demo,
        "honest": lambda: honest(given.honest),
    }
    found = {name: part() for name, part in parts.items() if given.only in (None, name)}
    for name, result in found.items():
        print(name)
        tell(result)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def tell(result: Any) -> None:
    """Print tables as tables, and what stands beside them on a line."""
    if isinstance(result, list):
        table(result)
        return
    print({name: value for name, value in result.items() if not isinstance(value, list)}, "\n")
    for value in result.values():
        if isinstance(value, list):
            table(value)


if __name__ == "__main__":
    main()
