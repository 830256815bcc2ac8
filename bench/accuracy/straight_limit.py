"""What any rule of looks at ranks pays for a quantile by rank where ranks rise evenly, over one test of the place.

The rule may be told the rows, how steeply ranks rise, and the place give or take so many slacks; it keeps the rank on
all data. Whoever makes the one test is told the place. Proved: docs/proofs/limits.quantiles.md, "Where ranks rise
evenly".

    python bench/accuracy/straight_limit.py
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri

from farthing.limits.quantiles import divergence

BETA = 0.05
PLACES = (1.0, 3.0, 10.0)
ONE_TEST = (2 * float(ndtri(BETA))) ** 2


def straight_limit(place, beta=BETA, *, end=0.4, first=0.49, slope=0.75, part=0.95, grow=1.01):
    """Return the least information, in units of 1/slack^2, that finds and proves a quantile where ranks rise evenly.

    Any `end`, `first`, `slope` and `part` give a bound; these give nearly the best. A hundredth is taken off for the
    meshes. Proof: docs/proofs/limits.quantiles.md, "Where ranks rise evenly".

    Args:
        place: the standard deviation of the place beforehand, in slacks.
        beta: the chance of a miss.
        end: how far off a told place may be, at most, for the bound to look at it.
        first: the chance that what is told is off by 0 and more, on one side, at which tangents touch.
        slope: how much that chance falls with each slack.
        part: what looks at the best places win back of what they cost.
        grow: the ratio of the mesh of information.
    """
    off = np.linspace(0, end, 17)
    weight, chance = np.diff(2 * part / (1 - off) ** 2, prepend=0.0), first - slope * off
    steep = np.log(chance * (1 - beta) / ((1 - chance) * beta))
    known = np.geomspace(place**-2, 400, int(np.log(400 * place**2) / np.log(grow)) + 2)
    middle, spent = np.linspace(0, 1.2, 121), np.zeros(len(known))
    for at, (less, more) in enumerate(pairwise(known), 1):
        won = weight @ np.array([near(middle, more**-0.5, each) + near(-middle, more**-0.5, each) for each in off]) / 2
        spent[at] = spent[at - 1] + (more - less) * (1 - won.max())
    wrong = 2 * (weight * steep) @ ndtr(-off[:, None] * np.sqrt(known))
    least = min((spent[:-1] + wrong[1:]).min(), spent[-1] + weight[0] * steep[0])
    return float(least + 2 * weight @ (divergence(chance, beta) - steep * chance)) * 0.99


def near(mean, deviation, off):
    """Return E[(1 - d)^2; off <= d <= 1] of a normal d."""
    low, high = (off - mean) / deviation, (1 - mean) / deviation
    at_low, at_high = (np.exp(-(each**2) / 2) / np.sqrt(2 * np.pi) for each in (low, high))
    gap = 1 - mean
    return (gap**2 + deviation**2) * (ndtr(high) - ndtr(low)) + deviation * (
        (off - mean) * at_low - gap * at_high - 2 * gap * (at_low - at_high)
    )


def main():
    """Print the bound of several places."""
    print("| the place, give or take | looks at ranks / one test |")
    print("| --- | --- |")
    for place in PLACES:
        print(f"| {place:g} slacks | {straight_limit(place) / ONE_TEST:.3f} |")


if __name__ == "__main__":
    main()
