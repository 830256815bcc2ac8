"""How often a mean that is measured by looks misses, by quadrature, at the worst of many means; one row a target.

Each rule is followed in the three shapes with fewest rows that it may take and the one with most, and at means over
the whole range, among them those at which the target tilts most. *Worst* is the chance of a miss over the part of beta
that looks may take: below 1 everywhere. The quadrature errs upwards: where it finds more, it is made twice as fine.

    python bench/accuracy/ratio_looks.py [--step H] [--betas B ...] [--code N]

`--code N` follows the code itself instead, on N groups of 10,000 rows each, at means where an end of the range nearly
helps, and prints the part of beta that is missed, and how much of that at a hundredth of the usual price or less.
"""

from __future__ import annotations

import argparse

import joint
import numpy as np

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.ratio_chances import CUT_FROM, RatioChances, easy, plain
from farthing.accuracy.ratio_shapes import LOOKS_SHARE, SHAPES, chosen, cut_critical, tilts
from farthing.accuracy.statistics import RatioStatistic

RELATIVE = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.42)
TARGETS = (
    *((relative, 0.0, 1.0) for relative in RELATIVE),
    *((0.0, absolute, 1.0) for absolute in (0.01, 0.04, 0.1, 0.2, 0.4, 0.5)),
    (0.1, 0.1, 1.0), (0.2, 0.2, 1.0), (0.3, 0.05, 0.0), (0.2, 0.1, 0.5), (0.1, 0.0, 3.0), (0.05, 0.0, 10.0),
    (0.2, 0.0, 1.5), (0.1, 0.0, 0.0), (0.2, 0.02, 0.0), (0.3, 0.0, 0.0), (0.3, 0.1, 0.0), (0.3, 0.2, 0.0),
    (0.42, 0.2, 0.0), (0.3, 0.2, 0.5), (0.3, 0.0, 0.5), (0.42, 0.3, 1.0), (0.3, 0.0, 1.5),
)  # fmt: skip
BETAS = (0.2, 0.05, 0.01, 0.001, 1e-4)

ENDED = (
    (0.3, 0.0, 50.0, 53.5), (0.31, 0.0, 50.0, 52.0), (0.32, 0.0, 50.0, 51.2), (0.34, 0.0, 50.0, 48.7),
    (0.42, 0.0, 50.0, 39.5), (0.3, 10.0, 0.0, 24.5), (0.4, 10.0, 0.0, 20.0), (0.3, 0.0, 75.0, 48.0),
)  # fmt: skip
"""Targets, the middle of a range of 100, and means where an end of it nearly helps."""


def followed(case, beta, runs, rng):
    """Return how many groups of one of these are missed by the code itself, and of how many noise alone is at fault.

    These paid a hundredth of what half of the groups paid, or less.
    """
    relative, absolute, middle, mean = case
    statistic = RatioStatistic(0, 1, middle, middle - joint.HALF, middle + joint.HALF)
    question = JointMeasures((statistic,), ((relative, absolute),), beta, joint.PER_GRAIN, 2**58)
    missed, early, piece = 0, 0, 50_000
    for start in range(0, runs, piece):
        many = min(piece, runs - start)
        truth = np.repeat(joint.lanes(1e4, mean - middle + joint.HALF, 100.0)[:, None], many, axis=1)
        state = question.run(JointState.nothing(3, 1, many), joint.source(truth, rng))
        off = (mean < state.lower[0]) | (mean > state.upper[0])
        missed, early = missed + int(off.sum()), early + int((off & (state.paid < np.median(state.paid) / 100)).sum())
    return missed, early


def begins(relative, absolute, middle):
    """Return from which mean on the upper end of the range alone bounds a mean enough; those below are not helped."""
    tried = np.linspace(-1, 1, 2_001)
    allowed = [np.maximum(relative * np.abs(end + middle), absolute) for end in (tried, 1.0)]
    return float(tried[np.flatnonzero(1 - tried > sum(allowed)).max(initial=-1) + 1])


def means(relative, absolute, middle, shape):
    """Return the means to try: over the range, and where the target tilts most; not where a relative one is endless."""
    tried = np.linspace(-1, 1, 201)
    tilted = tilts(relative, absolute, shape, middle)
    some = {-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0}
    some |= {round(float(tried[place]), 2) for place in (tilted.argmin(), tilted.argmax())}
    if relative >= CUT_FROM:  # just where the ends do not help
        off = 0.01, 0.03, 0.15
        some |= {round(begins(relative, absolute, middle) - less, 2) for less in off}
        some |= {round(-begins(relative, absolute, -middle) + more, 2) for more in off}
    if relative and absolute:  # where one part of the target takes over from the other
        some |= {round(sign * absolute / relative - middle + off, 2) for sign in (-1, 1) for off in (-0.08, 0.0, 0.08)}
    some = {mean for mean in some if abs(mean) <= 1}
    return sorted(mean for mean in some if absolute > 0 or abs(mean + middle) > 0.04)


def worst(target, beta, step):
    """Return the rule of a target, and its worst chance of a miss with the shape and mean it is at."""
    rule = chosen(*target, beta)
    if rule is None:
        return None
    critical, least, public = rule

    def cut(shape):
        less = bool(easy(np.array(shape), *target))
        simple = plain(*target[1:])
        return float(cut_critical(critical, beta, less, simple=simple)) if target[0] >= CUT_FROM else None

    shapes = (least,) if public else (*[shape for shape in SHAPES if least <= shape < 1][:3], 1.0)
    found = [
        (RatioChances(*target, shape, critical, step=step, cut=cut(shape)).missed(mean), shape, mean)
        for shape in shapes
        for mean in means(*target, shape)
    ]
    finer = [  # what the mesh may have made too large
        (RatioChances(*target, shape, critical, step=step / 2, cut=cut(shape)).missed(mean), shape, mean)
        for chance, shape, mean in found
        if chance > LOOKS_SHARE * beta
    ]
    return rule, max(finer or found)


def main():
    """Print one row for each target and failure probability."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--step", type=float, default=0.08, help="mesh of the quadrature, in standard deviations")
    parser.add_argument("--betas", type=float, nargs="+", default=BETAS, help="failure probabilities")
    parser.add_argument("--code", type=int, metavar="N", help="follow the code itself, on so many groups each")
    options = parser.parse_args()
    for beta in options.betas if options.code else ():
        for case in ENDED:
            (relative, absolute, middle, mean), rng = case, np.random.default_rng(3)
            part, early = (count / options.code / beta for count in followed(case, beta, options.code, rng))
            spread = ((1 - beta) / beta / options.code) ** 0.5
            where = f"{relative:.0%}, {absolute:g} at a mean of {mean}, middle {middle:g}, beta {beta}"
            print(f"{where}: {part:.3f} +- {spread:.3f} of beta, {early:.3f} by noise alone", flush=True)
    if options.code:
        return
    print("| relative | absolute | middle | beta | c | shape | worst | at shape, mean |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for beta in options.betas:
        for target in TARGETS:
            found = worst(target, beta, options.step)
            head = f"| {target[0]:g} | {target[1]:g} | {target[2]:g} | {beta:g} |"
            if found is None:
                print(f"{head} - | claims in stages | - | - |", flush=True)
                continue
            (critical, least, public), (chance, shape, mean) = found
            kind = f"{least:g}" if public else f"from {least:g}"
            print(
                f"{head} {critical:.3f} | {kind} | {chance / LOOKS_SHARE / beta:.3f} | {shape:g}, {mean:g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
