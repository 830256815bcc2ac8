"""Speed of the exact noise: nanoseconds a sample, next to numpy's insecure noise in the same run, and OpenDP's.

    python bench/speed/noise.py [--json FILE] [--samples 1000000] [--repeats 15]

Each repeat runs every sampler once, in turn, so that a busy machine slows all of them; a ratio is the median over the
repeats of the ratio within one. Memory is the peak during one draw, in arrays of the output's size.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from farthing.noise import rounded_exponential, rounded_gaussian, rounded_gumbel, two_sided_geometric

if TYPE_CHECKING:
    from collections.abc import Callable

enable_features("contrib")
OPENDP_SHARE = 100  # OpenDP draws this many times fewer samples
GAUSSIAN_TARGET = 3.0
MEMORY_TARGET = 6.0


@dataclass(frozen=True)
class Sampler:
    """One contender, and the numpy sampler it is compared with."""

    name: str
    draw: Callable[[int], object]
    against: str = ""
    share: int = 1


@dataclass(frozen=True)
class Row:
    """What was measured of one contender."""

    name: str
    ns: float
    against: str
    ratio: float | None
    arrays: float


def samplers(samples: int) -> list[Sampler]:
    """Return the contenders."""
    rng = np.random.default_rng(1)
    integers = vector_domain(atom_domain(T="i64"))
    contenders = []
    for sigma in (10.0, 1e4):
        normal, laplace, each = f"numpy normal {sigma:g}", f"numpy laplace {sigma:g}", np.full(samples, sigma)
        gauss = make_gaussian(integers, l2_distance(T="f64"), scale=sigma)
        geometric = make_laplace(integers, l1_distance(T="i64"), scale=sigma)
        contenders += [
            Sampler(normal, lambda n, s=sigma: np.rint(rng.normal(0, s, n)).astype(np.int64)),
            Sampler(laplace, lambda n, s=sigma: np.rint(rng.laplace(0, s, n)).astype(np.int64)),
            Sampler(f"gaussian {sigma:g}", lambda n, s=sigma: rounded_gaussian(s, size=n), normal),
            Sampler(f"gaussian {sigma:g}, a sigma each", lambda n, s=each: rounded_gaussian(s[:n]), normal),
            Sampler(f"geometric {sigma:g}", lambda n, s=sigma: two_sided_geometric(1 / s, size=n), laplace),
            Sampler(f"exponential {sigma:g}", lambda n, s=sigma: rounded_exponential(s, size=n), laplace),
            Sampler(f"gumbel {sigma:g}", lambda n, s=sigma: rounded_gumbel(s, size=n), laplace),
            Sampler(f"opendp gaussian {sigma:g}", lambda n, draw=gauss: draw([0] * n), normal, OPENDP_SHARE),
            Sampler(f"opendp geometric {sigma:g}", lambda n, draw=geometric: draw([0] * n), laplace, OPENDP_SHARE),
        ]
    return contenders


def seconds(sampler: Sampler, n: int) -> float:
    """Return the seconds of one draw of n samples."""
    start = time.perf_counter()
    sampler.draw(n)
    return time.perf_counter() - start


def peak_arrays(sampler: Sampler, n: int) -> float:
    """Return the peak memory of one draw, in arrays of n 64-bit numbers."""
    tracemalloc.start()
    sampler.draw(n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8 * n)


def measure(samples: int, repeats: int) -> list[Row]:
    """Run every sampler in turn, several times over."""
    contenders = samplers(samples)
    sizes = {each.name: samples // each.share for each in contenders}
    for each in contenders:
        each.draw(sizes[each.name])
    ns: dict[str, list[float]] = {each.name: [] for each in contenders}
    for _ in range(repeats):
        for each in contenders:
            ns[each.name].append(seconds(each, sizes[each.name]) / sizes[each.name] * 1e9)
    rows = []
    for each in contenders:
        ratios = [ours / theirs for ours, theirs in zip(ns[each.name], ns.get(each.against, []), strict=False)]
        ratio = median(ratios) if ratios else None
        arrays = peak_arrays(each, sizes[each.name])
        rows.append(Row(each.name, median(ns[each.name]), each.against, ratio, arrays))
    return rows


def main() -> None:
    """Print the table, say whether the targets are met, and write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    rows = measure(options.samples, options.repeats)
    print(f"{options.samples:,} samples (OpenDP: {options.samples // OPENDP_SHARE:,}), {options.repeats} repeats")
    print(f"{'sampler':32} {'ns a sample':>12} {'x numpy':>9} {'arrays':>7}")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        print(f"{row.name:32} {row.ns:12.1f} {ratio:>9} {row.arrays:7.2f}")
    ours = [row for row in rows if row.name.startswith("gaussian")]
    worst, arrays = max(row.ratio or 0 for row in ours), max(row.arrays for row in ours)
    met = worst <= GAUSSIAN_TARGET and arrays <= MEMORY_TARGET
    print(f"gaussian: at most {worst:.2f}x numpy (target {GAUSSIAN_TARGET:g})", end=", ")
    print(f"{arrays:.2f} arrays (target {MEMORY_TARGET:g}): {'met' if met else 'MISSED'}")
    if options.json:
        facts = {
            "samples": options.samples,
            "repeats": options.repeats,
            "met": met,
            "rows": [asdict(row) for row in rows],
        }
        options.json.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
