"""What the smallest groups pay under targets of both kinds, over what the absolute target alone would cost them.

A count within `relative` of itself or within 5 rows, whichever is wider: nobody pays more than the last look costs,
and the smallest groups pay just that. Large groups pay less, and the more so the looser the relative target is; the
looks that let them stop early are what the last look is wider for. Prices are mu squared, or epsilon under a pure
budget. *Large* is the price at a truth of a hundred times the kink absolute/relative, over the price without a
relative target.

    python bench/accuracy/worst.py
"""

from __future__ import annotations

import numpy as np

from farthing.accuracy import Schedule
from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE

ABSOLUTE = 5.0
RELATIVE = (0.0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.32, 0.5)
BETAS = (0.05, 0.01)
GRAIN = {GAUSSIAN.name: 2.0**-56, LAPLACE.name: 2.0**-40}


def prices(relative, beta, law):
    """Return the worst price of a group, and about what one of a hundred times the kink pays."""
    grain = GRAIN[law.name]
    plan = Schedule.plan(relative, ABSOLUTE, beta, per_grain=grain, cap_grains=1 << 61, law=law)
    worst = int(plan.looks[-1]) * grain
    if not relative:
        return worst, worst
    return worst, int(plan.typical(np.array([100 * ABSOLUTE / plan.relative]))[0]) * grain


def main():
    """Print one table for each confidence."""
    for beta in BETAS:
        print(f"{100 * (1 - beta):g} %, within 5 rows or a part of the count")
        print(f"{'relative':>10}{'mu^2':>10}{'over 0':>9}{'large':>10}{'epsilon':>11}{'over 0':>9}{'large':>10}")
        alone = {law.name: prices(0.0, beta, law)[0] for law in (GAUSSIAN, LAPLACE)}
        for relative in RELATIVE:
            told = ""
            for law in (GAUSSIAN, LAPLACE):
                worst, large = prices(relative, beta, law)
                told += f"{worst:>{10 if law is GAUSSIAN else 11}.4f}{worst / alone[law.name]:9.3f}"
                told += f"{large / alone[law.name]:10.1e}"
            print(f"{relative:10g}{told}", flush=True)


if __name__ == "__main__":
    main()
