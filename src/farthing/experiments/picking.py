"""Which count comes next: the exponential mechanism by Gumbel noise, at one price for all picks or at a falling one.

Adding a user moves every count up by at most one, so the range of the score change is 1 and a pick of epsilon adds
Gumbel noise of scale 1/epsilon to each count. As long as epsilon stays the same, picking again without what was taken
has the law of one race: the noisy counts in falling order. All methods are given that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.largest_counts import GROWTH, HOPELESS, Pace, median_level
from farthing.experiments.chains import Runs
from farthing.experiments.setting import on_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.experiments.chance import Generator
    from farthing.experiments.laws import Task

    Singles = NDArray[np.float32]


def race(counts: Ints | Singles, epsilon: Floats, most: int, rng: Generator, *, flipped: bool = False) -> Ints:
    """Return the places of the first picks of each trial, int64[trials, most], in order.

    Args:
        counts: int64[counts] for all trials, or float32[trials, counts] with -inf for what is taken.
        epsilon: float64[trials], of one pick.
        most: how many picks.
        rng: where noise comes from.
        flipped: whether to pick by permute-and-flip, that is by exponential noise in place of Gumbel noise.
    """
    noise = rng.standard_exponential((len(epsilon), counts.shape[-1]))
    noisy = epsilon[:, None] * counts + (noise if flipped else -np.log(noise))
    if most < counts.shape[-1]:
        first = np.argpartition(-noisy, most - 1, axis=1)[:, :most]
    else:
        first = np.broadcast_to(np.arange(counts.shape[-1]), noisy.shape)
    order = np.argsort(-np.take_along_axis(noisy, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def in_order(task: Task, epsilon: float, most: int, trials: int, rng: Generator) -> Floats:
    """Return the true sizes of what is picked at one epsilon, float64[trials, most]; any where none is picked."""
    if not task.picked:
        return np.broadcast_to(task.sorted_counts(most).astype(np.float64), (trials, most))
    places = race(task.counts, np.full(trials, epsilon), most, rng)
    return task.counts[places].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Followed:
    """Sessions that picked and released as they went, [trials, picks] each.

    Attributes:
        exponents: of the picks' epsilons on the grid of prices.
        sizes: what was picked, the true counts.
        runs: how the releases ended.
        made: where there was a pick at all: a round ends early in trials where fewer counts are open than it picks.
    """

    exponents: Ints
    sizes: Floats
    runs: Runs
    made: NDArray[np.bool_]


def follow(
    task: Task,
    pace: Pace,
    most: int,
    trials: int,
    rng: Generator,
    *,
    release: Callable[[Floats, Floats, Floats], Runs],
) -> Followed:
    """Pick and release in rounds, each priced by what was released before it.

    What was released is public, so the price may follow it. Before each round the level is set to the median of the
    later half of all returned values times k/(k + 1) after k picks, at first to the public guess. What a release gives
    up, since its first look shows less than `HOPELESS` of the level, goes back among the counts; picked again, it is
    released whatever its size.

    Args:
        task: the counts.
        pace: how picks are priced.
        most: how many picks.
        trials: how many sessions.
        rng: where noise comes from.
        release: releases float64[trials * picks] true counts, given what was expected of each, and the least that its
            first look must show.
    """
    shape = (trials, most)
    exponents, sizes = np.zeros(shape, np.int64), np.zeros(shape)
    runs, made = Runs(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.bool_)), np.zeros(shape, np.bool_)
    left, again = np.tile(task.counts.astype(np.float32), (trials, 1)), np.zeros((trials, task.size), np.bool_)
    median, done = np.full(trials, task.guess), 0
    level = median
    while done < most:
        many = min(pace.round(done), most - done, task.size)
        at = np.s_[:, done : done + many]
        epsilon, exponent = on_grid(pace.epsilon(level, max(task.size / (done + 1), 1.0)))
        places = race(left, epsilon, many, rng, flipped=pace.flipped)
        exponents[at], sizes[at] = exponent[:, None], task.counts[places]
        expected = np.repeat(level, many)
        least = np.where(np.take_along_axis(again, places, axis=1).ravel(), -np.inf, HOPELESS * expected)
        ended = release(sizes[at].ravel(), expected, least).shaped(trials, many)
        there = np.isfinite(np.take_along_axis(left, places, axis=1))  # else no count is open before the next round
        made[at], runs.cost[at] = there, np.where(there, ended.cost, 0.0)
        runs.value[at], runs.kept[at] = ended.value, ended.kept & there
        put_back = np.where(ended.kept | ~there, -np.inf, sizes[at])
        np.put_along_axis(left, places, put_back.astype(np.float32), axis=1)
        np.put_along_axis(again, places, ~ended.kept, axis=1)
        done += many
        later = np.s_[:, done // 2 : done]
        median = median_level(runs.value[later], runs.kept[later], median)
        level = median * done / (done + 1)
    return Followed(exponents, sizes, runs, made)


__all__ = ["GROWTH", "HOPELESS", "Followed", "Pace", "follow", "in_order", "race"]
