"""How likely a group is told more than ten times the larger of its truth and its floor, by exact recursion.

Noise alone stops a group early where the boundary c/r of its rule is low: there are hundreds of looks, and the first
ones are the noisiest. Rules are made for the relative target that is asked, or for the largest at which this chance is
below one in ten million (`stopping.tamed`). Prints the chance with it and without it.

    python bench/accuracy/absurd.py [--pure]

With `--pure` the noise is a Laplace chain. In the end it prints the least that any rule pays which keeps both promises,
and what ours pays, over the price of someone who knows the truth.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from farthing.accuracy import laplace_stop_rule as chains
from farthing.accuracy.jumps import JumpMap, lines
from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE
from farthing.accuracy.stop_rule import ABSURD, GaussianLookChain, critical_value, step_ratio, tamed

SPAN = 2096  # looks: more than 62 doublings of information
TRUTHS = np.concatenate([[0.0], 10.0 ** np.arange(-1, 9.1, 0.5)])
"""Signals at the last look: truths over the noise that is left there."""


def worst(relative, beta, *, signed):
    """Return (boundary, largest chance) over truths of every size, for a rule of that relative target."""
    ratio = step_ratio(relative)
    critical = critical_value(relative, beta, SPAN, ratio, signed=signed)
    plain = JumpMap(critical / relative, ratio)
    jumps = plain if relative > tamed(relative, beta) else lines(relative, critical, ratio)
    chain = GaussianLookChain.run(relative, critical, span=SPAN, jumps=jumps, beta=1e-15, largest=2e9, signed=signed)
    return jumps.boundary, max(chain.absurd(float(signal)) for signal in TRUTHS)


def worst_pure(relative, beta, *, signed):
    """Return (boundary, largest chance) under a pure budget: epsilon grows by 2^30, more than a ledger's chain has."""
    ratio = 1.02
    step = chains.gate(ratio)
    span = step * math.ceil(2 * math.log(2.0**30) / math.log(ratio) / step)
    critical = chains.critical_value(relative, beta, span, ratio, signed=signed)
    jumps = JumpMap(critical / relative, ratio, chains.gates(span, ratio), law=LAPLACE)
    most = jumps.boundary * chains.GATE ** (span // step - 1.0)
    chain = chains.LaplaceLookChain.run(
        relative, critical, span=span, jumps=jumps, beta=1e-13, largest=most, signed=signed
    )
    return jumps.boundary, max(chain.absurd(float(signal)) for signal in TRUTHS if signal < most)


def bound(relative, beta, law):
    """Return the least mean price, over that of who knows the truth, of any rule that keeps both promises.

    Say x is told within r x with probability 1 - beta, and y = (1 - r) x/10 is told more than ten times y with chance
    ABSURD at most. So an event has these chances at x and at y, and the divergence of all that is seen is at least that
    of the two coins. It is at most (x - y)^2/2 times the mean information at x, or (x - y) times the mean epsilon.
    """
    nats = coins(1 - beta, ABSURD)
    apart = 1 - (1 - relative) / 10
    single = law.two_sided(beta) / relative
    return 2 * nats / apart**2 / single**2 if law is GAUSSIAN else nats / apart / single


def spread_bound(relative, beta, law, doublings=31):
    """Return the same in the mean of truths of every size, of so many doublings of the noise's scale.

    Answers within r of ((1 + r)/(1 - r))^k are apart for different whole k. At a truth of 0 all of those that are more
    than ten floors have a chance of ABSURD together, so each has 1/K of it in the mean of K sizes, and the divergence
    of two coins is convex in that chance.
    """
    sizes = math.floor(doublings * math.log(2) / math.log((1 + relative) / (1 - relative)))
    nats, single = coins(1 - beta, ABSURD / sizes), law.two_sided(beta) / relative
    return 2 * nats / single**2 if law is GAUSSIAN else nats / single


def coins(likely, rare):
    """Return the divergence of a coin of one chance from one of another."""
    return likely * math.log(likely / rare) + (1 - likely) * math.log((1 - likely) / (1 - rare))


def prices(law):
    """Print the bounds and what the rule's boundary pays."""
    print("\nprice over that of who knows the truth\n  asked    beta   any rule   in the mean of sizes   ours, about")
    for beta in (0.05, 0.01):
        for asked in (0.2, 0.3, 0.5):
            least, mean = (max(1.0, each(asked, beta, law)) for each in (bound, spread_bound))
            ours = max(1.0, law.least_signal * asked / law.two_sided(beta))
            ours = ours**2 if law is GAUSSIAN else ours
            print(f"   {asked:.1f}  {beta:7.0e}   {least:6.2f}   {mean:12.2f}        {ours:12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pure", action="store_true")
    pure = parser.parse_args().pure
    law, found = (LAPLACE, worst_pure) if pure else (GAUSSIAN, worst)
    print("  asked    beta  kind    | made for  boundary  chance    ok | as asked: boundary  chance")
    for beta in (0.5, 0.05, 1e-3, 1e-6) if pure else (0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8):
        for asked in (0.3, 0.5, 0.9):
            if asked != 0.5 and beta not in {0.05, 1e-3}:
                continue
            for signed in (False, True):
                relative = tamed(asked, beta, law)
                boundary, chance = found(relative, beta, signed=signed)
                plain = found(asked, beta, signed=signed) if relative < asked else (boundary, chance)
                print(
                    f"   {asked:.1f}  {beta:7.0e}  {'sums  ' if signed else 'counts'}  |  {relative:.4f}   "
                    f"{boundary:6.3f}   {chance:.1e}  {'yes' if chance < ABSURD else 'NO '} |"
                    f"           {plain[0]:6.3f}   {plain[1]:.1e}",
                    flush=True,
                )
    prices(law)


if __name__ == "__main__":
    main()
