"""How often a mean that is measured by looks misses, by quadrature, at the worst of many means; one row a target.

Each rule is followed in the three shapes with fewest rows that it may take, and at means over the whole range, among
them those at which the target tilts most. *Worst* is the chance of a miss over the part of beta that looks may take:
below 1 everywhere. The quadrature errs upwards: where it finds more, it is made twice as fine.

    python bench/accuracy/ratio_looks.py [--step H] [--betas B ...] [--code N]

`--code N` follows the code itself instead, on N groups of 10,000 rows each, at means just below where the end of the
range begins to help, and prints the part of beta that is missed.
"""

from __future__ import annotations

import argparse

import joint
import numpy as np

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.ratio_chances import CUT_FROM, RatioChances, easy
from farthing.accuracy.ratio_shapes import LOOKS_SHARE, SHAPES, chosen, cut_critical, tilts

RELATIVE = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.42)
TARGETS = (
    *((relative, 0.0, 1.0) for relative in RELATIVE),
    *((0.0, absolute, 1.0) for absolute in (0.01, 0.04, 0.1, 0.2, 0.4, 0.5)),
    (0.1, 0.1, 1.0), (0.2, 0.2, 1.0), (0.3, 0.05, 0.0), (0.2, 0.1, 0.5), (0.1, 0.0, 3.0), (0.05, 0.0, 10.0),
    (0.2, 0.0, 1.5),
)  # fmt: skip
BETAS = (0.2, 0.05, 0.01, 0.001, 1e-4)


ENDED = ((0.3, 53.5), (0.31, 52.0), (0.32, 51.2), (0.34, 48.7), (0.42, 39.5))
"""Relative targets, and means of a range of 0 to 100 just below where its end begins to help."""


def followed(relative, mean, beta, runs, rng):
    """Return how many groups are missed by the code itself."""
    question, missed, piece = JointMeasures((joint.MEAN,), ((relative, 0.0),), beta, joint.PER_GRAIN, 2**58), 0, 50_000
    for start in range(0, runs, piece):
        many = min(piece, runs - start)
        truth = np.repeat(joint.lanes(1e4, mean, 100.0)[:, None], many, axis=1)
        state = question.run(JointState.nothing(3, 1, many), joint.source(truth, rng))
        missed += int(((mean < state.lower[0]) | (mean > state.upper[0])).sum())
    return missed


def means(relative, absolute, middle, shape):
    """Return the means to try: over the range, and where the target tilts most; not where a relative one is endless."""
    tried = np.linspace(-1, 1, 201)
    tilted = tilts(relative, absolute, shape, middle)
    some = {-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0}
    some |= {round(float(tried[place]), 2) for place in (tilted.argmin(), tilted.argmax())}
    begins = (1 + middle) * (1 - relative) / (1 + relative) - middle  # means just below are not helped by the end
    some |= {round(begins - less, 2) for less in (0.03, 0.15) if relative >= CUT_FROM}
    return sorted(mean for mean in some if absolute > 0 or abs(mean + middle) > 0.04)


def worst(target, beta, step):
    """Return the rule of a target, and its worst chance of a miss with the shape and mean it is at."""
    rule = chosen(*target, beta)
    if rule is None:
        return None
    critical, least, public = rule

    def cut(shape):
        less = bool(easy(np.array(shape), *target))
        return float(cut_critical(critical, beta, less)) if target[0] >= CUT_FROM else None

    shapes = (least,) if public else [shape for shape in SHAPES if shape >= least][:3]
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
        for relative, mean in ENDED:
            part = followed(relative, mean, beta, options.code, np.random.default_rng(3)) / options.code / beta
            spread = ((1 - beta) / beta / options.code) ** 0.5
            print(f"{relative:.0%} at a mean of {mean}, beta {beta}: {part:.3f} +- {spread:.3f} of beta", flush=True)
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
