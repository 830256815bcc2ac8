"""How likely a group is told more than ten times the larger of its truth and its floor, by exact recursion.

Noise alone stops a group early where the boundary c/r of its rule is low: there are hundreds of looks, and the first
ones are the noisiest. Rules are made for the relative target that is asked, or for the largest at which this chance is
below one in ten million (`stopping.tamed`). Prints the chance with it and without it.

    python bench/accuracy/absurd.py
"""

from __future__ import annotations

import numpy as np

from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.stopping import ABSURD, Chain, critical_value, step_ratio, tamed

SPAN = 2096  # looks: more than 62 doublings of information
TRUTHS = np.concatenate([[0.0], 10.0 ** np.arange(-1, 9.1, 0.5)])
"""Signals at the last look: truths over the noise that is left there."""


def worst(relative, beta, *, signed):
    """Return (boundary, largest chance) over truths of every size, for a rule of that relative target."""
    ratio = step_ratio(relative)
    critical = critical_value(relative, beta, SPAN, ratio, signed=signed)
    jumps = JumpMap(critical / relative, ratio)
    chain = Chain.run(relative, critical, span=SPAN, jumps=jumps, beta=1e-15, largest=2e9, signed=signed)
    return jumps.boundary, max(chain.absurd(float(signal)) for signal in TRUTHS)


def main():
    print("  asked    beta  kind    | made for  boundary  chance    ok | as asked: boundary  chance")
    for beta in (0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8):
        for asked in (0.3, 0.5, 0.9):
            if asked != 0.5 and beta not in {0.05, 1e-3}:
                continue
            for signed in (False, True):
                relative = tamed(asked, beta)
                boundary, chance = worst(relative, beta, signed=signed)
                plain = worst(asked, beta, signed=signed) if relative < asked else (boundary, chance)
                print(
                    f"   {asked:.1f}  {beta:7.0e}  {'sums  ' if signed else 'counts'}  |  {relative:.4f}   "
                    f"{boundary:6.3f}   {chance:.1e}  {'yes' if chance < ABSURD else 'NO '} |"
                    f"           {plain[0]:6.3f}   {plain[1]:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
