"""Misses when a target of another kind follows a first one: the new rule starts from what is held.

    python bench/accuracy/held.py [--runs 200000] [--beta 0.05] [--pure]

With `--pure` the noise is a Laplace chain, and a last column says what the second ask paid in the mean over what the
second target pays when it is asked alone, at the largest truth but one.

For each pair of targets, at eleven truths around the places where either rule changes its kind of interval: how often
the interval that is told after the second ask misses the truth, where a group whose first interval meets the second
target keeps it. beta is allowed. The truth that is missed most is run again with other noise, since the worst of eleven
rates is too large by its choice.
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE, NoiseLaw
from farthing.accuracy.report import half_widths
from farthing.accuracy.schedule import Schedule, StopRule
from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
from farthing.planning.gaussian_count import AFTER_ONE_LOOK
from farthing.planning.laplace_count import Grid, union

PER: dict[NoiseLaw, float] = {GAUSSIAN: 2.0**-56, LAPLACE: 2.0**-40}
CAP: dict[NoiseLaw, int] = {GAUSSIAN: 2**61, LAPLACE: 2**50}
MOST = 2**40
"""The most farthings of a group on whole steps: epsilon 1."""

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


def gaussian(  # noqa: PLR0917  # one look
    truth: float, mean: np.ndarray, held: np.ndarray, total: np.ndarray, per: float, bits: np.random.Generator
) -> np.ndarray:
    """Return the means after groups were raised from `held` to `total` grains."""
    more = total - held
    fresh = truth + bits.standard_normal(len(mean)) / np.sqrt(more * per)
    return mean + (fresh - mean) * (more / total)


def laplace(  # noqa: PLR0917  # one look
    truth: float, mean: np.ndarray, held: np.ndarray, total: np.ndarray, per: float, bits: np.random.Generator
) -> np.ndarray:
    """Return what a chain of Laplace noise shows at `total` farthings, given what it showed at `held`; 0 for none.

    In the direction of the noise X that was shown, with m = |X| and rates o < n: the finer noise is beyond j <= m with
    probability exp(-(n - o) j) (n + o)/2n, beyond m + k with exp(-(n - o) m - (n + o) k) (n - o)/2n, and below -k with
    exp(-(n + o) k) (n - o)/2n.
    """
    old, new = held * per, total * per
    apart, together = new - old, new + old
    shown, u = mean - truth, bits.random(len(mean))
    m, low = np.where(held > 0, np.abs(shown), 0.0), apart / (2 * new)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = -np.log(u / (1 - low)) / apart
        beyond = np.maximum(m - (np.log(u / low) + apart * m) / together, m)
        noise = np.where(inside <= m, inside, beyond)
        noise = np.where(u > 1 - low, np.log((1 - u) / low) / together, noise)
    return truth + np.where((held > 0) & (shown < 0), -noise, noise)


LAWS = {GAUSSIAN: gaussian, LAPLACE: laplace}


def follow(  # noqa: PLR0917  # a state that is changed in place
    schedule: Schedule, truth: float, mean: np.ndarray, grains: np.ndarray, going: np.ndarray, bits: np.random.Generator
) -> None:
    """Look until every run that goes on has stopped; means and grains are changed in place."""
    active = np.flatnonzero(going & ~schedule.stopped(grains, mean))
    while len(active):
        held, shown = grains[active], mean[active]
        total = schedule.next_look(held, shown)
        mean[active] = LAWS[schedule.law](truth, shown, held, total, schedule.per_grain, bits)
        grains[active] = total
        active = active[~schedule.stopped(total, mean[active])]


def misses(  # noqa: PLR0917  # one cell of the table
    first: Schedule, second: Schedule, beta: float, truth: float, runs: int, bits: np.random.Generator,
    *, forgets: bool = False,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the rates of misses after the second ask, of groups that pay nothing for it, and the mean level.

    One that `forgets` is wrong: it looks as if nothing had been shown, where what was shown chose who looks.
    """
    mean, grains = np.zeros(runs), np.zeros(runs, np.int64)
    follow(first, truth, mean, grains, np.ones(runs, bool), bits)
    kept = StoredPromise.of(first, beta)
    held = HeldIntervals(kept, OwnPromises.none(runs), mean.copy(), grains.copy())
    claims = held.claims(kept, beta, first.per_grain)
    room = second.strictest / first.critical
    settled = held.serving(claims, second.relative, second.absolute, room=room)
    before = grains.copy()
    if forgets:
        grains[~settled] = 0
    follow(second, truth, mean, grains, ~settled, bits)
    half = np.where(settled, claims.half, half_widths(mean, grains, second, np.zeros(runs, bool)))
    return float((np.abs(mean - truth) > half).mean()), float((grains == before).mean()), float(grains.mean())


def schedules(
    first: tuple[float, float],
    second: tuple[float, float],
    beta: float,
    law: NoiseLaw = GAUSSIAN,
    *,
    whole: bool = False,
) -> tuple[Schedule, Schedule]:
    """Return the looks of a pair of targets, the second made after the first as a session makes it."""
    made = {"per_grain": PER[law], "cap_grains": CAP[law], "law": law}
    one = Schedule.plan(*first, beta, **made)
    if whole:  # a count that was first asked with an absolute target alone keeps to whole steps
        grid = Grid(1, 1, 0)
        return one, union(grid, second, beta, limit=MOST, first=int(one.looks[-1]), signed=False)
    after = StopRule(one.relative, one.critical, 0)
    share = AFTER_ONE_LOOK if first[0] == 0 < second[0] else 1.0
    return one, Schedule.plan(*second, beta * share, **made, after=after)


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
    parser.add_argument("--pure", action="store_true")
    given = parser.parse_args()
    runs, beta, law = given.runs, given.beta, LAPLACE if given.pure else GAUSSIAN
    bits = np.random.default_rng(20)
    error, finer = ((beta * (1 - beta) / many) ** 0.5 for many in (runs, 5 * runs))
    print(f"{runs:,} runs a truth; standard error {error:.2%}, of those run again {finer:.2%}\n")
    print("first target     second target    most missed   at truth    again   over alone   free at most truths")
    for first, second in PAIRS:
        for whole in (False, True) if given.pure and first[0] == 0 else (False,):
            pair = schedules(first, second, beta, law, whole=whole)
            alone = Schedule.plan(*second, beta, per_grain=PER[law], cap_grains=CAP[law], law=law)
            truths = places(*pair)
            found = [(*misses(*pair, beta, truth, runs, bits), truth) for truth in truths]
            grains, mean = np.zeros(runs, np.int64), np.zeros(runs)
            follow(alone, truths[-2], mean, grains, np.ones(runs, bool), bits)
            worst, _, _, where = max(found)
            again = misses(*pair, beta, where, 5 * runs, bits)[0]
            free = "  ".join(f"{share:.2f}" for _, share, _, _ in found)
            targets = "  ".join(f"{share:5.0%} or {width:<7g}" for share, width in (first, second))
            over = found[-2][2] / grains.mean()
            print(f"{targets} {worst:8.2%} {where:12,.0f} {again:8.2%} {over:12.2f}   {free}", "whole steps" * whole)


if __name__ == "__main__":
    main()
