"""Relative noise: error against its target, and loss against the Gaussian that knows the size and the lower bound.

For each mechanism, relative error r and size: the measured mean absolute (or root mean square) error over its target,
the loss over that of a Gaussian that knows the size, and over the least of any unbiased mechanism. Then the Renyi
divergence between neighbours, estimated from samples, over the policy; and the time of 1,000,000 groups.

A measured ratio is compared with 1 plus `MARGIN` of its standard errors; at the stated number of draws noise that is
3 % too large (about 5 % for the heaviest tails) is caught almost surely. Seeds are fixed.

    python bench/accuracy/groups.py [--draws 200000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

from farthing.limits import group_lower_bound
from farthing.mechanisms import Asinh, LinearLog, Log, PlainGaussian, Power, TwoStage
from farthing.noise.bits import seeded

KINDS = {
    "gaussian": PlainGaussian,
    "two-stage": TwoStage,
    "sqrt": Power,
    "log": Log,
    "linear-log": LinearLog,
    "asinh": Asinh,
}
STRICT = ("log", "linear-log", "asinh", "sqrt", "gaussian")
RELATIVE = (0.01, 0.05, 0.1, 0.3, 0.5)
SIZES = np.array([1, 3, 10, 30, 50, 60, 100, 150, 300, *(10**k for k in range(3, 10))])
X0 = 50
MARGIN = 4.5
ORDERS = (2, 8, 32)
LEAST_CELL = 50
HEADS = (
    "mechanism", "metric", "r", "worst error / target (its s.e.)", "cells above", "loss, x >= x0", "loss, x >= 3 x0",
    "loss at 1e9", "worst rho", "over the bound at 1e9",
)  # fmt: skip


def measured(mechanism, size, metric, draws, seed):
    """Return the measured error at one size and its standard error."""
    off = mechanism.release(np.full(draws, size), seeded(seed)) - size
    if metric == "mae":
        return float(np.abs(off).mean()), float(np.abs(off).std() / math.sqrt(draws))
    square = off**2
    root = math.sqrt(square.mean())
    return root, float(square.std() / math.sqrt(draws)) / (2 * root)


def rows(metric, draws):
    """Yield one row for each mechanism and relative error."""
    spread = math.sqrt(math.pi / 2) if metric == "mae" else 1.0
    for relative in RELATIVE:
        target = relative * np.maximum(SIZES, X0)
        ideal = 1 / (2 * (spread * target) ** 2)
        least = group_lower_bound(target / relative, relative=relative)
        for name, kind in KINDS.items():
            mechanism = kind.for_relative_error(relative, x0=X0, metric=metric)
            found = [measured(mechanism, int(size), metric, draws, i) for i, size in enumerate(SIZES)]
            errors, noise = np.array(found).T
            rho = np.asarray(mechanism.policy(SIZES))
            yield {
                "mechanism": name, "relative": relative, "metric": metric,
                "error_over_target": (errors / target).tolist(),
                "standard_error": (noise / target).tolist(),
                "above_target": int(((errors - MARGIN * noise) > target).sum()),
                "expected_over_target": float((mechanism.expected_error(SIZES, metric) / target).max()),
                "worst_rho": float(np.asarray(mechanism.policy([0]))[0]),
                "over_ideal": (rho / ideal).tolist(),
                "over_bound": (rho / least).tolist() if metric == "rmse" else None,
            }  # fmt: skip


def power(draws):
    """Return how often noise that is 3 % too large is caught at x0, of ten runs a strict mechanism."""
    caught = {}
    for name in ("linear-log", "asinh", "gaussian"):
        honest = KINDS[name].for_relative_error(0.1, x0=X0)
        fields = {field: getattr(honest, field) for field in honest.__dataclass_fields__}
        louder = KINDS[name](**{**fields, "sigma": honest.sigma * 1.03})
        runs = [measured(louder, X0, "mae", draws, 1000 + seed) for seed in range(10)]
        caught[name] = sum(error - MARGIN * noise > 0.1 * X0 for error, noise in runs)
    return caught


def divergences(draws):
    """Yield, for each mechanism, size and order, the divergence estimated from samples over what the policy allows.

    Both neighbours' grid steps are counted in 40 cells of equal mass; cells are post-processing, so the divergence
    between their chances is at most the mechanism's. The estimate's own error comes from ten parts of the draws.
    """
    for name in STRICT:
        for size in (1, 20, 50, 51, 1000):
            shape = KINDS[name].for_relative_error(0.1, x0=X0)
            fields = {field: getattr(shape, field) for field in shape.__dataclass_fields__}
            for order in ORDERS:
                mu = 0.7 / math.sqrt(order)
                sigma = shape.sigma * float(np.asarray(shape.policy.mu(size))) / mu
                if not 2.0**-20 <= sigma <= 16 and name != "gaussian":
                    continue
                mechanism = KINDS[name](**{**fields, "sigma": sigma})
                allowed = order * float(np.asarray(mechanism.policy(size)))
                here, there = (mechanism.indices(np.full(draws, x), seeded(7 + x)) for x in (size, size - 1))
                ratio = [estimate(*pair, order) / allowed for pair in ((here, there), (there, here))]
                parts = [estimate(here[i::10], there[i::10], order) / allowed for i in range(10)]
                yield {
                    "mechanism": name, "size": size, "order": order, "mu": mu, "ratio": max(ratio),
                    "standard_error": float(np.std(parts) / math.sqrt(10)),
                }  # fmt: skip


def estimate(here, there, order):
    """Return the Renyi divergence of an order between two samples, in 40 cells of equal mass."""
    ends = np.quantile(np.concatenate([here, there]), np.linspace(0, 1, 41)[1:-1])
    p = np.bincount(np.searchsorted(ends, here), minlength=40) / len(here)
    q = np.bincount(np.searchsorted(ends, there), minlength=40) / len(there)
    fine = (p > 0) & (q * len(there) >= LEAST_CELL)
    return math.log(np.sum(p[fine] ** order * q[fine] ** (1 - order))) / (order - 1)


def seconds():
    """Return the best of three times of 1,000,000 groups in one call, by mechanism."""
    counts = np.random.default_rng(1).integers(0, 10**9, 1_000_000)
    found = {}
    for name, kind in KINDS.items():
        mechanism, best = kind.for_relative_error(0.1, x0=X0), math.inf
        for _ in range(3):
            started = time.perf_counter()
            mechanism.release(counts)
            best = min(best, time.perf_counter() - started)
        found[name] = best
    return found


def markdown(found):
    """Return the tables as Markdown."""
    lines = [
        f"Targets: r * max(x, {X0}); sizes 1 to 1e9; {found['draws']:,} draws a cell. Losses over that of a Gaussian",
        "that knows x; the last column over the least of any unbiased mechanism (root mean square targets).",
        "",
        f"| {' | '.join(HEADS)} |",
        "| --- | --- |" + " ---: |" * (len(HEADS) - 2),
    ]
    for row in found["errors"]:
        errors, over = np.array(row["error_over_target"]), np.array(row["over_ideal"])
        worst = int(errors.argmax())
        bound = "–" if row["over_bound"] is None else f"{row['over_bound'][-1]:.4g}"
        lines.append(
            f"| {row['mechanism']} | {row['metric']} | {row['relative']:g} | {errors[worst]:.4f} "
            f"({row['standard_error'][worst]:.4f}) | {row['above_target']} | {over[SIZES >= X0].max():.4g} "
            f"| {over[SIZES >= 3 * X0].max():.4g} | {over[-1]:.4g} | {row['worst_rho']:.4g} | {bound} |"
        )
    highest = max(found["divergences"], key=lambda row: row["ratio"] - MARGIN * row["standard_error"])
    lines += ["", f"Noise 3 % too large is caught in so many of 10 runs: {found['power']}", ""]
    lines += ["| Renyi order | measured over the policy: largest (its s.e.) | cells |", "| ---: | ---: | ---: |"]
    for order in ORDERS:
        cells = [row for row in found["divergences"] if row["order"] == order]
        top = max(cells, key=lambda row: row["ratio"])
        lines.append(f"| {order} | {top['ratio']:.4f} ({top['standard_error']:.4f}) | {len(cells)} |")
    least = highest["ratio"] - MARGIN * highest["standard_error"]
    lines += ["", f"Largest ratio less {MARGIN} standard errors: {least:.4f}", ""]
    took = ", ".join(f"{name} {value:.2f} s" for name, value in found["seconds"].items())
    return "\n".join([*lines, f"1,000,000 groups in one call: {took}"])


def main():
    """Print the tables; write JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200_000, help="draws in each cell")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    started = time.perf_counter()
    found = {
        "draws": options.draws,
        "sizes": SIZES.tolist(),
        "x0": X0,
        "errors": [row for metric in ("mae", "rmse") for row in rows(metric, options.draws)],
        "power": power(options.draws),
        "divergences": list(divergences(5 * options.draws)),
        "seconds": seconds(),
    }
    print(markdown(found))
    print(f"\n{time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
