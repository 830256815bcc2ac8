"""Misses when a target of another kind follows a first one: the new rule starts from what is held.

    python bench/accuracy/held.py [--runs 200000] [--beta 0.05]

For each pair of targets, at eleven truths around the places where either rule changes its kind of interval: how often
the interval that is told after the second ask misses the truth, where a group whose first interval meets the second
target keeps it. beta is allowed.
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.kept import Held, Kept, Own
from farthing.accuracy.report import half_widths
from farthing.accuracy.schedule import Rule, Schedule
from farthing.planning.refinement import AFTER_ONE_LOOK

PER_GRAIN = 2.0**-56
CAP = 2**61
PAIRS = [
    ((0.0, 1000.0), (0.01, 0.0)),
    ((0.0, 1000.0), (0.1, 0.0)),
    ((0.0, 1000.0), (0.3, 0.0)),
    ((0.0, 1000.0), (0.1, 900.0)),
    ((0.05, 100.0), (0.0, 20_000.0)),
    ((0.1, 100.0), (0.0, 5_000.0)),
    ((0.3, 100.0), (0.0, 5_000.0)),
    ((0.1, 1000.0), (0.11, 900.0)),
    ((0.05, 1000.0), (0.1, 100.0)),
    ((0.1, 1000.0), (0.3, 200.0)),
    ((0.1, 1000.0), (0.05, 2_000.0)),
    ((0.3, 100.0), (0.29, 1000.0)),
]


def follow(  # noqa: PLR0917  # a state that is changed in place
    schedule: Schedule, truth: float, mean: np.ndarray, grains: np.ndarray, going: np.ndarray, bits: np.random.Generator
) -> None:
    """Look until every run that goes on has stopped; means and grains are changed in place."""
    active = np.flatnonzero(going & ~schedule.stopped(grains, mean))
    while len(active):
        held, shown = grains[active], mean[active]
        total = schedule.next_look(held, shown)
        more = total - held
        fresh = truth + bits.standard_normal(len(active)) / np.sqrt(more * PER_GRAIN)
        mean[active] = shown + (fresh - shown) * (more / total)
        grains[active] = total
        active = active[~schedule.stopped(total, mean[active])]


def misses(  # noqa: PLR0917  # one cell of the table
    first: Schedule, second: Schedule, beta: float, truth: float, runs: int, bits: np.random.Generator
) -> tuple[float, float]:
    """Return the rates of misses after the second ask, and of groups that pay nothing for it."""
    mean, grains = np.zeros(runs), np.zeros(runs, np.int64)
    follow(first, truth, mean, grains, np.ones(runs, bool), bits)
    kept = Kept.of(first, beta)
    held = Held(kept, Own.none(runs), mean.copy(), grains.copy())
    claims = held.claims(kept, beta, PER_GRAIN)
    room = second.critical / first.critical
    settled = held.serving(claims, second.relative, second.absolute, room=room)
    before = grains.copy()
    follow(second, truth, mean, grains, ~settled, bits)
    half = np.where(settled, claims.half, half_widths(mean, grains, second, np.zeros(runs, bool)))
    return float((np.abs(mean - truth) > half).mean()), float((grains == before).mean())


def schedules(first: tuple[float, float], second: tuple[float, float], beta: float) -> tuple[Schedule, Schedule]:
    """Return the looks of a pair of targets, the second made after the first as a session makes it."""
    one = Schedule.plan(*first, beta, per_grain=PER_GRAIN, cap_grains=CAP)
    after = Rule(one.relative, one.critical, 0)
    share = AFTER_ONE_LOOK if first[0] == 0 < second[0] else 1.0
    return one, Schedule.plan(*second, beta * share, per_grain=PER_GRAIN, cap_grains=CAP, after=after)


def places(first: Schedule, second: Schedule) -> list[float]:
    """Return eleven truths: where intervals of one rule are as wide as those of the other, and about."""
    widths = sorted({x for x in (first.floor, second.floor) if x < 1e6})
    shares = sorted({r for r in (first.relative, second.relative) if r > 0})
    kinks = sorted({width / share for width in widths for share in shares})
    r = shares[-1]
    around = [
        kinks[0] * (1 - r),
        kinks[0],
        *(kinks[-1] * at for at in (1 - r, 1 - r / 2, 1, 1 + r / 2, 1 + r, 1.5, 2.5)),
    ]
    return [0.0, *around, 20 * kinks[-1]][:11]


def main() -> None:
    """Print a line for each pair of targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--beta", type=float, default=0.05)
    given = parser.parse_args()
    runs, beta = given.runs, given.beta
    bits = np.random.default_rng(20)
    print(f"{runs:,} runs a truth; standard error {(beta * (1 - beta) / runs) ** 0.5:.2%}\n")
    print("first target     second target    most missed   at truth   free at most truths")
    for first, second in PAIRS:
        pair = schedules(first, second, beta)
        found = [(*misses(*pair, beta, truth, runs, bits), truth) for truth in places(*pair)]
        worst, _, where = max(found)
        free = "  ".join(f"{share:.2f}" for _, share, _ in found)
        targets = "  ".join(f"{share:5.0%} or {width:<7g}" for share, width in (first, second))
        print(f"{targets} {worst:8.2%} {where:12,.0f}   {free}")


if __name__ == "__main__":
    main()
