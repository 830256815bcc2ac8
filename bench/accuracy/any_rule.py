"""What any rule pays in the mean over truths that it does not know, and what ours pay there, over the oracles.

A rule may be biased, decide from what it sees where to look and when to stop, and be told all but one thing. Proved:
docs/proofs/limits.any_rule.md and docs/proofs/limits.quantiles.md, "Anywhere".

- sizes: counts within a relative target, whose sizes come from an exponential law. The oracle knows the size and
  measures once. Ours: the mean of what it pays over what the oracle does, at 64 sizes. Beside it rules of a pure budget
  that also keep absurd values out (`absurd.py`).
- anywhere: a quantile by rank of data with one lump, just large enough that its place alone is right, or the same rows
  spread evenly over a stretch of leaves; where it is, is drawn. The oracle tests the place once (`quantiles.py`).
- told: a search that is told all but the place of the lump, follows what it believes, and stops when it is sure.
- values: the same, told the stretch as well: one of values that hold twice the rank of the rows each.
- chains: MIN and MAX asked ever more sharply, by somebody who knows all places and measures each with fresh noise.
- together: several quantiles of even data, over the mean of each alone, both by the best rules there are.

    python bench/accuracy/any_rule.py [--quick] [--only TABLE]
"""

from __future__ import annotations

import argparse

import absurd
import numpy as np
import oracle
import pure_quantiles
from quantiles import BETA, LEAVES, LEAVES_LOG2, ranks_of
from scipy.special import ndtri
from several_quantiles import ASKED

from farthing.accuracy.noise_laws import LAPLACE
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_choice import ExponentialQuantile
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal
from farthing.limits import answers_limit, search_limit, sizes_limit
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded
from farthing.rounding import FARTHING

RELATIVE = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
RANKS = ((0.5, 0.01), (0.5, 0.05), (0.5, 0.2), (0.9, 0.02), (0.99, 0.005))
STRETCHES = (1, 64, 1024)
SIZES = 64
TABLES = ("sizes", "anywhere", "told", "values", "chains", "together")
CHAINS = ((4, 1), (4, 2.5, 1), (4, 3.25, 2.5, 1.75, 1))


def sizes(runs):
    """Print what counts of unknown sizes cost."""
    print("| relative | any rule / oracle | ours / oracle | pure: any rule / oracle | and no absurd value |")
    print("| --- | --- | --- | --- | --- |")
    spread = -np.log1p(-(np.arange(SIZES) + 0.5) / SIZES)  # an exponential law in parts of like chances
    for relative in RELATIVE:
        limit, floor = sizes_limit(relative, beta=BETA), 1000.0
        truths = spread * 1000 * floor / relative
        found = oracle.cells(relative, floor, BETA, truths, runs=runs, rng=np.random.default_rng(20_261_123))
        paid = np.mean([each["mu2"] * (relative * each["truth"]) ** 2 for each in found]) / ndtri(BETA / 2) ** 2
        tamed = max(limit.epsilon, absurd.spread_bound(relative, BETA, LAPLACE))
        print(
            f"| {relative:.0%} | {limit.mu_squared:.3f} | {paid:.3f} | {limit.epsilon:.3f} | {tamed:.2f} |", flush=True
        )


def hidden(q, rank, *, rows, stretch, groups):
    """Return int64[groups, rows], the leaves of rows with a lump in a stretch of the range, each group another."""
    limit = search_limit((LEAVES - 2) // stretch, rows, q, rank=rank, beta=BETA)
    rng = np.random.default_rng(20_261_123)
    first = 1 + stretch * rng.integers((LEAVES - 2) // stretch, size=groups)
    lump = first[:, None] + np.arange(limit.lump) * stretch // limit.lump
    low, high = np.zeros((groups, limit.below)), np.full((groups, rows - limit.below - limit.lump), LEAVES - 1)
    return np.hstack([low, lump, high]).astype(np.int64), limit


def anywhere(groups, rows):
    """Print what a quantile costs that may be anywhere."""
    print("| stretch | q | rank | any rule / one test | of ranks | ours | ours / of ranks | met | misses "
          "| pure: ours / any rule | one choice / any rule | misses |")  # fmt: skip
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for stretch in STRETCHES:
        for q, rank in RANKS:
            leaf, limit = hidden(q, rank, rows=rows, stretch=stretch, groups=groups)
            ranks, asked = ranks_of(leaf), QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank)
            noisy = NoisyRanks(ranks, asked, seeded(9))
            state = QuantileBisection(asked, BETA, 1 << 61).run(noisy.measure, noisy.measure_count, groups=groups)
            paid = float(state.paid.mean()) * float(GRAIN)
            one_test = (2 * float(ndtri(BETA)) * max(q, 1 - q) / (rank * rows)) ** 2
            _, chains = pure_quantiles.found_at(q, rank, ranks)
            epsilon = float(chains.paid.mean()) * float(FARTHING)
            choice = ExponentialQuantile(asked).price(asked.slack * rows, beta=BETA) * float(FARTHING)
            print(
                f"| {stretch} | {q} | {rank:.1%} | {limit.mu_squared / one_test:.2f} | {limit.of_ranks / one_test:.2f} "
                f"| {paid / one_test:.2f} | {paid / limit.of_ranks:.2f} | {state.met.mean():.3f} "
                f"| {pure_quantiles.off_target(state, leaf, q, rank).mean():.2%} | {epsilon / limit.epsilon:.2f} "
                f"| {choice / limit.epsilon:.2f} "
                f"| {pure_quantiles.off_target(chains, leaf, q, rank).mean():.2%} |",
                flush=True,
            )


def told(runs):
    """Print what a search pays that is told all but the place of a lump: the rows, and that it is there."""
    places, half, rng = LEAVES - 2, 1.0, np.random.default_rng(20_261_123)
    for look in (0.4, 0.2, 0.1):
        spent, right = np.zeros(runs), np.zeros(runs, bool)
        for run in range(runs):
            place, belief = rng.integers(places), np.full(places, 1 / places)
            while belief.max() < 0.935:
                at = int(np.argmin(np.abs(np.cumsum(belief) - 0.5)))
                shown = (half if at >= place else -half) + rng.standard_normal() / np.sqrt(look)
                belief[: at + 1] *= np.exp(2 * half * look * shown)
                belief /= belief.sum()
                spent[run] += look
            right[run] = belief.argmax() == place
        over = spent.mean() / (2 * float(ndtri(BETA))) ** 2
        error = spent.std() / np.sqrt(runs) / (2 * float(ndtri(BETA))) ** 2
        print(f"looks of {look}: {over:.2f} +- {error:.2f} times one test, right in {right.mean():.1%}", flush=True)


def values():
    """Print what a quantile costs at least of few values, each somewhere in a stretch of its own."""
    print("| q | rank | rows at a value | any rule / one test | of ranks |")
    print("| --- | --- | --- | --- | --- |")
    for q, rank in RANKS:
        limit = search_limit(int(2 * rank * LEAVES), 10_000, q, rank=rank, beta=BETA)
        one_test = (2 * float(ndtri(BETA)) * max(q, 1 - q) / (rank * 10_000)) ** 2
        over = limit.mu_squared / one_test, limit.of_ranks / one_test
        print(f"| {q} | {rank:.1%} | {2 * rank:.0%} | {over[0]:.2f} | {over[1]:.2f} |")


def chains():
    """Print what one test of a place for each target costs, over the last alone."""
    for widths in CHAINS:
        print(f"{len(widths) - 1} steps: {sum(float(each) ** -2 for each in widths):.2f}")


def together():
    """Print what several quantiles cost at least, over one of them."""
    print("| quantiles | least of all / mean of each alone | / the most expensive |")
    print("| --- | --- | --- |")
    for name, quantiles in ASKED.items():
        q = np.array(quantiles)[:, None]
        moves = (np.arange(len(q) + 1) <= np.arange(len(q))[:, None]) - q
        all_of_them = answers_limit(moves, np.ones(len(q)), beta=BETA)
        each = [answers_limit(row[None], np.ones(1), beta=BETA) for row in moves]
        print(f"| {name} | {all_of_them / np.mean(each):.2f} | {all_of_them / max(each):.2f} |")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--only", choices=TABLES, help="one table alone")
    options = parser.parse_args()
    tables = {
        "sizes": lambda: sizes(200 if options.quick else 2_000),
        "anywhere": lambda: anywhere(50 if options.quick else 200, 10_000),
        "told": lambda: told(50 if options.quick else 300),
        "values": values,
        "chains": chains,
        "together": together,
    }
    for name, table in tables.items():
        if options.only in (None, name):
            table()
            print()


if __name__ == "__main__":
    main()
