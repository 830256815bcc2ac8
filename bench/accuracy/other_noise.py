"""How much narrower one look under a pure budget would be with other noise than two-sided geometric, at 95 %.

In one dimension: the staircase, the best noise of one number, beside Laplace noise, for a unit that moves it by many
steps. In several: noise that is drawn for all groups at once, uniform in a cube of random size (the K-norm mechanism of
a unit that may be in every group), beside Laplace noise of each group by itself.

    python bench/accuracy/other_noise.py
"""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import gamma

BETA = 0.05
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0)
GROUPS = (1, 2, 5, 10, 100)


def staircase(epsilon):
    """Return the half-width of the best staircase, in sensitivities."""
    return min(_width(epsilon, part) for part in np.linspace(0.001, 0.999, 999))


def _width(epsilon, part):
    """Return the half-width of a staircase whose steps fall after this part of each sensitivity."""
    decay = math.exp(-epsilon)
    height = (1 - decay) / (2 * (part + decay * (1 - part)))
    left, reached = BETA / 2, 0.0
    tail = height * (part + decay * (1 - part)) / (1 - decay)
    while True:
        for wide, level in ((part, height), (1 - part, height * decay)):
            if tail - wide * level <= left:
                return reached + (tail - left) / level
            tail, reached = tail - wide * level, reached + wide
        height *= decay


def cube(groups):
    """Return the half-width of each of so many groups, times epsilon, with noise for all of them at once."""
    size = gamma(groups + 1)

    def missed(width):
        return quad(lambda r: size.pdf(r) * (1 - width / r), width, size.isf(1e-14), limit=500)[0] - BETA

    return brentq(missed, 1e-3, size.isf(1e-12))


def main():
    """Print both tables."""
    print("| epsilon | Laplace | staircase | of it |")
    print("| --- | --- | --- | --- |")
    for epsilon in EPSILONS:
        laplace, best = math.log(1 / BETA) / epsilon, staircase(epsilon)
        print(f"| {epsilon} | {laplace:.4g} | {best:.4g} | {best / laplace:.3f} |")
    print("\n| groups of a unit | Laplace, times epsilon | at once | of it |")
    print("| --- | --- | --- | --- |")
    for groups in GROUPS:
        laplace, best = groups * math.log(1 / BETA), cube(groups)
        print(f"| {groups} | {laplace:.4g} | {best:.4g} | {best / laplace:.3f} |")


if __name__ == "__main__":
    main()
