"""Run a schedule on seeded Gaussian measurements, as a session would on exact ones."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import binom

from farthing.accuracy import reported
from farthing.accuracy.quantile_ranks import Ranks


class State:
    """Grains paid, precision-weighted mean, looks and verdict of each group."""

    def __init__(self, truth):
        self.truth = np.asarray(truth, dtype=float)
        self.paid = np.zeros(self.truth.size, np.int64)
        self.mean = np.zeros(self.truth.size)
        self.looks = np.zeros(self.truth.size, np.int64)
        self.futile = np.zeros(self.truth.size, bool)


def follow(schedule, state, rng):
    """Refine every group until it stops; a state that has been followed before goes on from there."""
    state.futile[:] = False
    active = np.flatnonzero(~((state.paid > 0) & schedule.stopped(state.paid, state.mean)))
    while active.size:
        before = state.paid[active]
        ahead = schedule.next_look(before, state.mean[active])
        bought = ahead - before
        noise = rng.standard_normal(active.size) / np.sqrt(bought * schedule.per_grain)
        state.mean[active] = (before * state.mean[active] + bought * (state.truth[active] + noise)) / ahead
        state.paid[active] = ahead
        state.looks[active] += 1
        state.futile[active] = schedule.futile(ahead, state.mean[active])
        active = active[~(state.futile[active] | schedule.stopped(ahead, state.mean[active]))]
    return state


def missed(schedule, state):
    """Return which groups' intervals do not hold the truth, or whose values are further off than they may be."""
    value, lower, upper, *_ = reported(state.mean, state.paid, schedule, state.futile)
    allowed = np.maximum(schedule.relative * np.abs(state.truth), schedule.floor)
    outside = (state.truth < lower) | (state.truth > upper)
    return outside | ((np.abs(value - state.truth) > allowed) & ~state.futile)


def surely_above(count, runs, rate, level):
    """Return whether `count` misses in `runs` refute a miss rate of at most `rate`, by the exact binomial tail."""
    return bool(binom.sf(count - 1, runs, rate) < level)


@cache
def bench(name):
    """Return a script of bench/accuracy as a module: what it follows is what tests follow."""
    path = Path(__file__).resolve().parents[2] / "bench" / "accuracy" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def ranks_of(leaf, leaves_log2):
    """Return the ranks of groups, int[groups, rows] the leaf of each row."""
    groups = len(leaf)
    key, count = np.unique((np.arange(groups)[:, None] << leaves_log2) + leaf, return_counts=True)
    leaves = (1 << leaves_log2) - 1
    return Ranks.of(key >> leaves_log2, key & leaves, count, groups=groups, leaves_log2=leaves_log2)
