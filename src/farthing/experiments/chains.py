"""What one release shows and costs, simulated for many counts at once: refined, from scratch, and with Laplace noise.

Each function follows the true joint law of the looks: a Gaussian refinement adds independent measurements to a mean,
doubling forgets what it saw, and Laplace noise is sharpened by the gradual-release kernel [KoufogiannisHP16].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.largest_counts import coarse
from farthing.accuracy.report import reported
from farthing.accuracy.schedule import Schedule
from farthing.accuracy.stop_rule import two_sided
from farthing.experiments.chance import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.experiments.chance import Generator

    Bools = NDArray[np.bool_]

PER_GRAIN: Final = 2.0**-56
"""The squared mu of one grain, as in `farthing.mechanisms.gaussian`."""

_UNSEEN: Final = 7.0  # a look that stops with a chance below 1e-12 is counted, but not drawn
_STEP: Final = 1.01  # the least growth of epsilon from one look of a Laplace chain to the next
_CAUTION: Final = 3.0  # how many b a jump over Laplace looks stays below the boundary
_CHECKED_LAPLACE: Final = 14.0
_CHECKED_PART: Final = 0.51  # at loose targets that look has this part of the signal that ends a release
_CALIBRATED_ON: Final = 200_000


class ReleaseStop(NamedTuple):
    """When a release is good enough: once its half-width, critical times the noise's scale, is within relative * Y.

    Attributes:
        relative: r of the target.
        critical: the half-width over the scale: z or log(1/beta) of Gaussian or Laplace noise, or a calibrated one.
    """

    relative: float
    critical: float

    @property
    def boundary(self) -> float:
        """Return the signal, Y over the scale, at which a release stops."""
        return self.critical / self.relative


@dataclass(frozen=True, slots=True)
class Runs:
    """How releases ended, one entry a count.

    Attributes:
        cost: what each has paid, in mu^2 or in epsilon; infinite for those the whole budget would not bring there.
        value: what each shows.
        kept: which are returned at the target; the others were given up.
    """

    cost: Floats
    value: Floats
    kept: Bools

    def shaped(self, *shape: int) -> Runs:
        """Return the same runs as arrays of another shape."""
        return Runs(self.cost.reshape(shape), self.value.reshape(shape), self.kept.reshape(shape))

    def taken(self, order: Ints) -> Runs:
        """Return the runs of each row in another order."""
        cost, value = (np.take_along_axis(each, order, axis=1) for each in (self.cost, self.value))
        return Runs(cost, value, np.take_along_axis(self.kept, order, axis=1))


@lru_cache(maxsize=64)
def calibrated_schedule(relative: float, beta: float, mu_squared: float) -> Schedule:
    """Return the library's looks for a relative target under a budget: `farthing.accuracy.Schedule`, as it stands."""
    return Schedule.plan(
        relative, 0.0, beta, per_grain=PER_GRAIN, cap_grains=math.floor(mu_squared / PER_GRAIN), futility=False
    )


def plain_schedule(relative: float, beta: float, mu_squared: float) -> Schedule:
    """Return the same looks with the rule of the paper: stop where z/sqrt(t) <= r |Y|, z not calibrated."""
    looks, z = calibrated_schedule(relative, beta, mu_squared), two_sided(beta)
    return replace(looks, critical=z, jumps=JumpMap(z / relative, looks.jumps.ratio))


@dataclass(frozen=True, slots=True)
class FutilityCheck:
    """A first coarse look at which a count that is far smaller than expected is given up.

    Attributes:
        expected: float64[counts], a public guess of each.
        least: float64[counts], what the look must show for the release to go on; -inf for always.
    """

    expected: Floats
    least: Floats


def refined(
    schedule: Schedule, truth: Floats, rng: Generator, *, centred: bool, check: FutilityCheck | None = None
) -> Runs:
    """Refine counts by Gaussian measurements, precision-weighted, until the schedule's rule is met.

    Args:
        schedule: when to look and when to stop.
        truth: float64[counts].
        rng: where noise comes from.
        centred: whether to show what `accuracy.report` shows, (1 - r^2) Y, or Y itself.
        check: a first look, with a standard deviation of 1/10 of what is expected, or more at loose targets; or None.
    """
    grains, value = np.zeros(len(truth), np.int64), np.zeros(len(truth))
    kept = np.ones(len(truth), np.bool_)
    if check is not None:
        checked = coarse(schedule.jumps.boundary, check.expected, PER_GRAIN)
        grains = np.minimum(checked, schedule.looks[-1]).astype(np.int64)
        value = truth + rng.standard_normal(len(truth)) / np.sqrt(grains * PER_GRAIN)
        kept = value >= check.least
    going = np.flatnonzero(kept & ~schedule.stopped(grains, value))
    while going.size:
        before, shown = grains[going], value[going]
        after = schedule.next_look(before, shown)
        noise = rng.standard_normal(going.size) / np.sqrt((after - before) * PER_GRAIN)
        share = before / after
        shown = share * shown + (1 - share) * (truth[going] + noise)
        grains[going], value[going] = after, shown
        going = going[~schedule.stopped(after, shown)]
    met = ~kept | (value * np.sqrt(grains * PER_GRAIN) >= schedule.jumps.boundary)
    if centred:
        value = reported(value, grains, schedule, np.zeros(len(value), np.bool_)).value
    return Runs(np.where(met, grains * PER_GRAIN, np.inf), value, kept)


def doubled(stop: ReleaseStop, truth: Floats, first: Floats, most: float, rng: Generator) -> Runs:
    """Draw fresh noise at information first, 2 first, 4 first, ..., pay for all of it, stop where z/sqrt(t) <= r |Y|.

    Args:
        stop: the target and z.
        truth: float64[counts].
        first: float64[counts], the information of the first level.
        most: what a run may pay at most.
        rng: where noise comes from.
    """
    boundary = stop.boundary
    near = max(boundary - _UNSEEN, 0.0) / np.maximum(truth, 1e-300)
    unseen = np.floor(np.log2(np.maximum(near**2 / first, 1.0)))
    level, paid = first * 2.0**unseen, first * (2.0**unseen - 1)
    value, cost = np.zeros(len(truth)), np.full(len(truth), np.inf)
    going = np.flatnonzero(paid + level <= most)
    while going.size:
        shown = truth[going] + rng.standard_normal(going.size) / np.sqrt(level[going])
        paid[going] += level[going]
        met = np.abs(shown) * np.sqrt(level[going]) >= boundary
        done = going[met]
        value[done], cost[done] = shown[met], paid[done]
        going = going[~met]
        level[going] *= 2
        going = going[paid[going] + level[going] <= most]
    return Runs(cost, value, np.ones(len(truth), np.bool_))


def finer(noise: Floats, before: Floats, after: Floats, rng: Generator) -> Floats:
    """Return noise of epsilon `after` given the noise of epsilon `before` < after: the gradual-release kernel, forward.

    The marginals are Laplace of scale 1/before and 1/after, and what came before `before` does not matter.
    """
    size, gap, both = np.abs(noise), after - before, after + before
    tail = np.exp(-gap * size)
    branch, spread = rng.uniform(size=noise.size), rng.standard_exponential(noise.size)
    stay = before / after * tail
    inside = stay + both / (2 * after) * (1 - tail)
    beyond = inside + gap / (2 * after) * tail
    within = -np.log1p(np.expm1(-spread) * (1 - tail)) / gap
    far = spread / both
    moved = np.where(branch < inside, within, np.where(branch < beyond, size + far, -far))
    return np.asarray(np.where(branch < stay, noise, np.where(noise < 0, -moved, moved)))


def laplace_runs(
    stop: ReleaseStop, truth: Floats, first: Floats, most: float, rng: Generator, *, least: Floats | float = -math.inf
) -> tuple[Runs, Floats]:
    """Sharpen Laplace noise until critical/epsilon <= r Y; also return what the first look showed.

    A look's epsilon grows by 1 % at least, and jumps while even noise that is `_CAUTION` off would not stop between.

    Args:
        stop: the target and its critical value.
        truth: float64[counts].
        first: float64[counts], the epsilon of the first look.
        most: the epsilon that a run may reach at most.
        rng: where noise comes from.
        least: a count whose first look shows less is given up there.
    """
    boundary = stop.boundary
    level = np.minimum(first, most)
    noise = rng.laplace(size=len(truth)) / level
    coarse = truth + noise
    kept = coarse >= least
    going = np.flatnonzero(kept & (coarse * level < boundary))
    while going.size:
        before, held = level[going], noise[going]
        hopeful = np.maximum(truth[going] + held + _CAUTION / before, boundary / (4 * before))
        after = np.maximum(before * _STEP, boundary / hopeful)
        fits = after <= most
        level[going[~fits]] = np.inf
        going, before, held, after = going[fits], before[fits], held[fits], after[fits]
        noise[going] = finer(held, before, after, rng)
        level[going] = after
        going = going[(truth[going] + noise[going]) * after < boundary]
    return Runs(level, truth + noise, kept), coarse


def laplace_refined(stop: ReleaseStop, truth: Floats, most: float, rng: Generator, check: FutilityCheck) -> Runs:
    """Sharpen Laplace noise by a calibrated rule, show (1 - r^2) Y, give up what is far smaller than expected.

    The first look has epsilon 14 over the expected size, about half of what that size needs at 10 %.
    """
    signal = min(_CHECKED_LAPLACE, _CHECKED_PART * stop.boundary)
    first = np.minimum(signal / check.expected, most)
    runs, _ = laplace_runs(stop, truth, first, most, rng, least=check.least)
    return Runs(runs.cost, (1 - stop.relative**2) * runs.value, runs.kept)


@lru_cache(maxsize=64)
def laplace_critical(relative: float, beta: float) -> float:
    """Return the critical value of a Laplace chain whose answer (1 - r^2) Y misses with probability at most beta.

    Far above its floor the chain is the same for every truth, but for a factor. So one large simulation with a fixed
    seed tells the chance of a miss; the value is raised until that is beta less three standard errors.

    >>> 2.996 < laplace_critical(0.1, 0.05) < 3.1
    True
    """
    aim = beta - 3 * math.sqrt(beta / _CALIBRATED_ON)
    critical = math.log(1 / beta)
    while (miss := laplace_miss(relative, critical, _CALIBRATED_ON)) > aim:
        critical += max(math.log(miss / aim), 1e-3)  # the chance of a miss falls about like exp(-critical)
    return critical


def laplace_miss(relative: float, critical: float, runs: int, seed: int = 0) -> float:
    """Return the share of simulated Laplace chains whose answer (1 - r^2) Y is farther than r from the truth."""
    truth = np.ones(runs)
    ended, _ = laplace_runs(
        ReleaseStop(relative, critical), truth, np.full(runs, 1.0), math.inf, stream(seed, "laplace")
    )
    return float(np.mean(np.abs((1 - relative**2) * ended.value - 1) > relative))


__all__ = [
    "PER_GRAIN",
    "FutilityCheck",
    "ReleaseStop",
    "Runs",
    "calibrated_schedule",
    "doubled",
    "finer",
    "laplace_critical",
    "laplace_miss",
    "laplace_refined",
    "laplace_runs",
    "plain_schedule",
    "refined",
]
