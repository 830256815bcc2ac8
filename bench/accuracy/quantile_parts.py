"""What a search for a quantile by rank pays for: learning where to look, the place that it proves, and the rows.

Each look is put down by how far its place is off, in slacks, which the search is not told: *far* (more than 2),
*beside* (.9 to 2), *near* (less, but another place than the one that was looked at most), *proof* (the place that was
looked at most). The *rows* are all counts, those before the first look and those that bets take beside theirs. All over
one test at the right place that is told the rows. *Whole numbers* lie on steps of 700 leaves (Poisson, 9 in the mean).

    python bench/accuracy/quantile_parts.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
from quantiles import BETA, LEAVES, LEAVES_LOG2, TARGETS, leaves, ranks_of
from scipy.special import ndtri

from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_ranks import WHOLE, NoisyRanks, QuantileGoal
from farthing.accuracy.quantile_trail import LOOK
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded

FAR, NEAR = 2.0, 0.9
ROWS = 10_000
WHOLE_NUMBERS = ((0.5, 0.02), (0.5, 0.15), (0.75, 0.05), (0.1, 0.03), (0.95, 0.01))


def drawn(kind, groups, rng):
    """Return int64[groups, rows], the leaf of each row."""
    if kind == "whole numbers":
        return np.minimum(rng.poisson(9, (groups, ROWS)) * 700 + 11, LEAVES - 1).astype(np.int64)
    return leaves(kind, groups, ROWS, rng)


def most_looked_at(place, grains):
    """Return bool[looks, groups]: which looks are at the place of their group that has the most of its grains."""
    groups = place.shape[1]
    key = (np.arange(groups) << LEAVES_LOG2) + np.maximum(place, 0)
    kept, which = np.unique(key, return_inverse=True)
    total = np.bincount(which.ravel(), weights=grains.ravel().astype(float))
    most = np.full(groups, -1.0)
    np.maximum.at(most, kept >> LEAVES_LOG2, total)
    return np.asarray((total == most[kept >> LEAVES_LOG2])[which.reshape(key.shape)])


def parts(kind, q, rank, groups):
    """Return what each part costs over one test: far, beside, near, proof, rows; and how many places and looks."""
    leaf = drawn(kind, groups, np.random.default_rng(7))
    asked, ranks = QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank), ranks_of(leaf)
    noisy = NoisyRanks(ranks, asked, seeded(7))
    trail = QuantileBisection(asked, BETA, 1 << 61).run(noisy.measure, noisy.measure_count, groups=groups).trail
    looks = trail.kinds >= LOOK
    grains, counted = np.where(looks, trail.grains, 0), np.where(looks, trail.counted, 0)
    group = np.broadcast_to(np.arange(groups), grains.shape)
    lane = ranks.lane(np.maximum(trail.thresholds, 0).ravel(), group.ravel(), asked.lane_steps).reshape(grains.shape)
    off = np.abs(lane / WHOLE - asked.beside * ROWS) / (asked.slack * ROWS)
    proof = most_looked_at(trail.thresholds, grains)
    kinds = (~proof & (off > FAR), ~proof & (off <= FAR) & (off > NEAR), ~proof & (off <= NEAR), proof)
    one_test = (-2 * float(ndtri(BETA)) * asked.sensitivity / WHOLE / (asked.slack * ROWS)) ** 2 / float(GRAIN)
    paid = [np.where(each, grains, 0).sum() / groups / one_test for each in kinds]
    places = np.mean([len(np.unique(trail.thresholds[grains[:, one] > 0, one])) for one in range(groups)])
    return [*paid, counted.sum() / groups / one_test], places, (grains > 0).sum() / groups


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    groups = 30 if parser.parse_args().quick else 200
    print("| values | q | rank | far | beside | near | proof | rows | in all | places | looks |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    cells = [(kind, *each) for kind in ("even", "skewed", "lumpy") for each in TARGETS]
    for kind, q, rank in cells + [("whole numbers", *each) for each in WHOLE_NUMBERS]:
        paid, places, looks = parts(kind, q, rank, groups)
        row = " | ".join(f"{each:.2f}" for each in (*paid, sum(paid)))
        print(f"| {kind} | {q:g} | {100 * rank:g} % | {row} | {places:.1f} | {looks:.0f} |", flush=True)


if __name__ == "__main__":
    main()
