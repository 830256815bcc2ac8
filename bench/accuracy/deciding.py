"""How often somebody who refines until an interval excludes the truth gets there, and what together=True costs.

Each group of a table is one such game: it is won as soon as any of its intervals so far misses. Every ask is so many
times as wide as the last one. "each" is the default, whose answers hold their confidence one by one; "together" holds
it for all of them. The price is that of the whole chain, over that of the default.

The last lines are computed: somebody who knows the truth and sees the noise chooses also how much sharper each count
is, at best for a miss; beside it the price of the last answer over that of one by itself, and the same for shares that
only add up to the chance. Under a pure budget a lower bound for two asks.

    python bench/accuracy/deciding.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from farthing import Bounds, Budget, Session
from farthing.accuracy.claim_chances import next_chance
from farthing.accuracy.stop_rule import two_sided

CLAMPS = {"lower": 0, "upper": 100}
GAMES = {
    "count, absolute": (lambda s, **how: s.count(**how), "absolute", 100.0),
    "count, relative": (lambda s, **how: s.count(**how), "relative", 0.5),
    "sum": (lambda s, **how: s.sum("v", **CLAMPS, **how), "absolute", 10_000.0),
    "mean": (lambda s, **how: s.mean("v", **CLAMPS, **how), "absolute", 15.0),
    "variance": (lambda s, **how: s.variance("v", **CLAMPS, **how), "absolute", 200.0),
    "median": (lambda s, **how: s.quantile("v", 0.5, **CLAMPS, **how), "absolute", 20.0),
}


def table(groups, rows, rng):
    """Return groups that are alike in size, and their exact answers."""
    values = rng.integers(0, 101, (groups, rows)).astype(float)
    made = pa.table({"g": np.repeat(np.arange(groups), rows), "v": values.ravel(), "u": np.arange(groups * rows)})
    counts = np.full(groups, float(rows))
    truth = {"count": counts, "sum": values.sum(axis=1), "mean": values.mean(axis=1), "variance": values.var(axis=1)}
    return made, truth | {"median": np.sort(values, axis=1)[:, (rows - 1) // 2]}


def play(made, truth, game, *, asks, factor, together):
    """Return the part of the groups of which some interval missed by each ask, and mu squared paid in all."""
    ask, name, width = GAMES[game]
    exact, missed, shares = truth[game.split(",")[0]], False, []
    with Session(made, unit="u", bounds=Bounds(max_groups=1, max_rows=1), budget=Budget(mu=100)) as session:
        for number in range(asks):
            how = {name: width * factor**number, "cap": "all", "together": together}
            answer = ask(session, by="g", keys={"g": list(range(len(exact)))}, **how)
            missed = missed | (answer.lower > exact) | (answer.upper < exact)
            shares.append(float(missed.mean()))
        return shares, float(session.spent.value) ** 2, answer.confidence_together


def shares(asks, beta=0.05):
    """Return the chances of a miss of a chain's claims."""
    chances = ()
    for _ in range(asks):
        chances = (*chances, next_chance(chances, beta))
    return chances


def laplace(first, second):
    """Return the least chance that one of two answers misses under a pure budget, its width chosen at best for it.

    An error of y noise scales stays with probability q^2 where epsilon grows to 1/q times as much; it is then y/q.
    """
    begin, end = -np.log(first), -np.log(second)
    return first + (2 - first * (begin**2 + 2 * begin + 2)) / end**2


def worst(chances, cells=201):
    """Return the chance that one of so many counts misses, if each one's width is chosen at best for a miss.

    Backwards over the asks: the error, in its own standard deviations, moves from x to a Gaussian of mean r x and
    variance 1 - r^2, r being chosen knowing x.
    """
    asks, z, value = len(chances), -ndtri(np.array(chances) / 2), 0.0
    for k in range(asks - 1, -1, -1):
        inside = np.linspace(-z[k - 1], z[k - 1], cells) if k else np.zeros(1)
        edges, best = np.linspace(-z[k], z[k], cells + 1), np.zeros(len(inside))
        for r in (*np.linspace(0, 0.96, 25), 0.98, 0.99) if k else (0.0,):
            spread = (1 - r * r) ** 0.5
            cdf = ndtr((edges - r * inside[:, None]) / spread)
            best = np.maximum(best, 1 - cdf[:, -1] + cdf[:, 0] + (np.diff(cdf, axis=1) * value).sum(axis=1))
        nodes = np.linspace(-z[k - 1], z[k - 1], cells + 1) if k else np.zeros(2)
        value = np.interp((nodes[1:] + nodes[:-1]) / 2, inside, best)
    return float(value[0]) if asks else 0.0


def main():
    """Print one row for each game."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer groups")
    options = parser.parse_args()
    groups = 500 if options.quick else 2_000
    made, truth = table(groups, 400, np.random.default_rng(20_261_122))
    print(f"{'':18}{'asks':>5}{'factor':>8}{'each':>8}{'together':>10}{'told':>8}{'price':>8}")
    for game in GAMES:
        for asks, factor in ((2, 0.5), (5, 0.7), (11, 0.85), (16, 0.9)):
            each, plain, _ = play(made, truth, game, asks=asks, factor=factor, together=False)
            joint, dear, told = play(made, truth, game, asks=asks, factor=factor, together=True)
            print(
                f"{game:18}{asks:5}{factor:8g}{each[-1]:8.1%}{joint[-1]:10.1%}{told:8.4f}{dear / plain:8.2f}",
                flush=True,
            )
    for asks in (1, 2, 3, 5, 11, 16):
        adding = tuple(0.05 / (k * k + k) for k in range(1, asks + 1))
        for name, chances in (("together", shares(asks)), ("adding up", adding)):
            price, miss = (two_sided(chances[-1]) / two_sided(0.05)) ** 2, worst(chances)
            print(
                f"{name:9}, widths chosen by looking, {asks:2} asks: at worst {miss:.1%}, price {price:.2f}", flush=True
            )
    print(f"together under a pure budget, 2 asks: at worst {laplace(*shares(2)):.1%} or more")


if __name__ == "__main__":
    main()
