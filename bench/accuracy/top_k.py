"""Top-k under a pure budget: a race with exponential noise, the positional joint choice, and ours over sets.

    python bench/accuracy/top_k.py [--runs 100]

First the epsilon that "all k within 50 of the true k-th, 95 times in 100" costs. Then, at equal epsilon, how far the
worst chosen option is below the true k-th and which part of the true k is missed, on Zipf's law and on real flights.
The positional choice, of [GillenwaterJMR22], is simulated in float64; its loss is the largest of c_i - n_(s_i). The
race is shown at its own price, k epsilon, and with the noise that zCDP composition would allow at delta 1e-6, which a
pure budget does not: what the mechanism gains is to be told from what accounting gains.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa

from farthing.flights import data_folder, flights
from farthing.mechanisms import JointTopK, TopK, choose_mechanism
from farthing.mechanisms.select import named
from farthing.privacy import Pure, Zcdp

DELTA = 1e-6


def race(scores, k, epsilon, _):
    """Return a race with exponential noise, the best buy among races under a pure budget."""
    return TopK(k, Fraction(epsilon) / k, "exponential").choose(scores, monotone=True)


def composed(scores, k, epsilon, _):
    """Return k peels of the exponential mechanism at the zCDP that (epsilon, 1e-6) allows."""
    rho = Zcdp.from_epsilon(epsilon, delta=DELTA).rho
    return TopK(k, math.sqrt(8 * rho / k)).choose(scores, monotone=True)


def joint(scores, k, epsilon, _):
    """Return a joint choice over sets."""
    return JointTopK(k, epsilon).choose(scores, monotone=True)


def positional(scores, k, epsilon, rng):
    """Return the joint choice over sequences with the positional loss: scores fall."""
    behind = scores[:k, None] - scores[None]
    row, column = np.nonzero(behind >= 0)
    loss = behind[row, column]
    order = np.argsort(loss, kind="stable")
    factor = (column - row + 1.0)[order]
    grows = np.log(np.maximum(factor, 1)) - np.log(np.maximum(factor - 1, 1))
    levels, first = np.unique(loss[order], return_index=True)
    sequences = np.cumsum(grows)[np.append(first[1:], len(order)) - 1]
    steps = np.append(np.diff(levels), np.inf)
    weight = sequences - epsilon / 2 * levels + np.log(-np.expm1(-epsilon / 2 * steps))
    level = levels[np.argmax(weight + rng.gumbel(size=len(weight)))]
    chosen: list[int] = []
    for most in (behind <= level).sum(axis=1).tolist():
        chosen.append(rng.choice(np.setdiff1d(np.arange(most), chosen)))
    return np.array(chosen)


KINDS = {"race": race, "positional": positional, "sets": joint, "(race, zCDP)": composed}


def measured(scores, k, epsilon, runs):
    """Return for each mechanism the mean shortfall of the worst chosen, and the part of the true k that is missed."""
    rng = np.random.default_rng(k)
    for choose in KINDS.values():
        chosen = [choose(scores, k, epsilon, rng) for _ in range(runs)]
        short = np.mean([scores[k - 1] - scores[each].min() for each in chosen])
        missed = np.mean([np.mean(each >= k) for each in chosen])
        yield short, missed


def data():
    """Yield counts by their names, the largest first."""
    for options in (1_000, 10_000):
        share = 1 / np.arange(1, options + 1)
        yield f"Zipf, {options:,} options, 100,000 rows", np.floor(1e5 * share / share.sum()).astype(np.int64)
    table = flights(data_folder(), {"dest": pa.string(), "tailnum": pa.string()})
    for column in ("dest", "tailnum"):
        counts = np.array(table[column].drop_null().value_counts().field("counts").to_pylist(), np.int64)
        yield f"flights by {column}, {len(counts):,} options", np.sort(counts)[::-1]


def prices():
    """Print what the promise costs by each mechanism."""
    print(
        "| options | k | race | positional, by its bound | sets | taken |\n| ---: | ---: | ---: | ---: | ---: | --- |"
    )
    for options, k in ((20, 3), (100, 10), (1_000, 10), (1_000, 50), (10_000, 10), (100_000, 10)):
        choice = choose_mechanism(Pure, options=options, within=50, k=k, monotone=True)
        by_name = {named(one): float(price.amount) for one, price in choice.compared}
        bound = 2 / 50 * (sum(math.log(options - i) for i in range(k)) + math.log(1 / 0.05))
        cells = f"{by_name[f'top-{k} (exponential)']:.2f} | {bound:.2f} | {by_name[f'joint top-{k}']:.2f}"
        print(f"| {options:,} | {k} | {cells} | {named(choice.mechanism)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs

    prices()
    names = " | ".join(KINDS)
    print(f"\n| data | k | epsilon | {names} |\n| --- | ---: | ---: |{' ---: |' * len(KINDS)}")
    for name, scores in data():
        for k in (10, 50):
            for epsilon in (0.5, 1.0, 2.0):
                if 2 * k < len(scores):
                    found = (f"{short:.1f} ({missed:.2f})" for short, missed in measured(scores, k, epsilon, runs))
                    print(f"| {name} | {k} | {epsilon:g} | {' | '.join(found)} |", flush=True)


if __name__ == "__main__":
    main()
