"""What a plan under a pure budget computes: the critical values of Laplace chains, and how long they take.

    python bench/speed/plans.py [--many 40] [--table]

For targets and confidences drawn at random, of those that rules are made for: how often the looks are followed (each
time is most of the work), milliseconds of one core, and c over the least that a search without a hint finds. With
`--table` the table of `farthing.accuracy.critical_hints` is computed again and printed.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc
from unittest.mock import patch

import numpy as np

from farthing.accuracy import critical_hints, laplace_stop_rule
from farthing.accuracy.noise_laws import LAPLACE
from farthing.accuracy.stop_rule import step_ratio, tamed

FOLDS = math.log(2.0**30)
"""No chain of a ledger sees epsilon grow by more than e to this."""


def span(ratio: float) -> int:
    """Return the index of the first look of the longest chain."""
    step = laplace_stop_rule.gate(ratio)
    return step * math.floor(2 * FOLDS / math.log(ratio) / step)


def least(relative: float, beta: float, ratio: float, *, signed: bool = True) -> float:
    """Return the critical value that a search without a hint finds."""
    with patch.object(laplace_stop_rule, "hint", lambda *_: 0.0):
        return laplace_stop_rule.critical_value.__wrapped__(relative, beta, span(ratio), ratio, signed=signed)


def table() -> None:
    """Print the table of excesses: c less that of a single look, over r."""
    print("_TABLE: Final[dict[float, tuple[tuple[float, ...], ...]]] = {")
    for ratio, nodes in critical_hints.BANDS.items():
        print(f"    {ratio}: (")
        for beta in critical_hints.BETAS:
            single, row = LAPLACE.two_sided(beta), []
            for relative in nodes:
                known = relative <= critical_hints.REACH * single / LAPLACE.least_signal
                if known:
                    row.append((least(relative, beta, ratio) - single) / relative)
                else:
                    row.append(row[-1] if row else 0.0)
            print(f"        ({', '.join(f'{each:.3f}' for each in row)}),", flush=True)
        print("    ),")
    print("}")


def main() -> None:
    """Print the table, or what plans cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=40)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if given.table:
        table()
        return
    bits = np.random.default_rng(17)
    print("relative    beta  kind    followed      ms     MB   c over the least")
    worst = np.zeros(4)
    for _ in range(given.many):
        beta = float(10 ** bits.uniform(-12, math.log10(0.5)))
        relative = tamed(float(10 ** bits.uniform(math.log10(0.0005), 0)), beta, LAPLACE)
        ratio, signed = step_ratio(relative), bool(bits.integers(2))
        with patch.object(
            laplace_stop_rule.LaplaceLookChain, "run", wraps=laplace_stop_rule.LaplaceLookChain.run
        ) as followed:
            start = time.process_time()
            critical = laplace_stop_rule.critical_value.__wrapped__(relative, beta, span(ratio), ratio, signed=signed)
            took = time.process_time() - start
        tracemalloc.start()
        laplace_stop_rule.critical_value.__wrapped__(relative, beta, span(ratio), ratio, signed=signed)
        held = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        over = critical / least(relative, beta, ratio, signed=signed)
        worst = np.maximum(worst, [followed.call_count, took * 1e3, held, over])
        print(
            f"{relative:8.5f} {beta:7.0e}  {'sums  ' if signed else 'counts'} {followed.call_count:8d} "
            f"{took * 1e3:9.0f} {held:6.0f} {over:12.5f}",
            flush=True,
        )
    print(f"worst: followed {worst[0]:.0f} times, {worst[1]:.0f} ms, {worst[2]:.0f} MB, {worst[3]:.5f} of the least c")


if __name__ == "__main__":
    main()
