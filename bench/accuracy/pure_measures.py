"""What means, variances and ratios cost under a pure budget, over somebody who knows the truth; and how many miss.

Groups of 10,000 rows with values in [0, 100], all alike. The oracle shows each measure once, in the best proportions it
finds by search, at the least epsilon at which the interval of the very truth is within the target.

    python bench/accuracy/pure_measures.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np

from farthing.accuracy.laplace_intervals import laplace_interval
from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.laplace_state import LaplaceState
from farthing.accuracy.statistics import RatioStatistic, VarianceStatistic
from farthing.mechanisms.laplace import LaplaceChain, Shown

ONE = 1 << 40
ROWS = 10_000
FINER = 12  # a row is 2^12 steps of noise
HALF = 50.0
MEAN = RatioStatistic(0, 1, HALF, 0.0, 100.0)
VARIANCE = VarianceStatistic(0, 1, 2, HALF, less=HALF**2 / 2)
DEVIATION = VarianceStatistic(0, 1, 2, HALF, root=True, less=HALF**2 / 2)
ASKED = (("mean", MEAN, 2), ("variance", VARIANCE, 3), ("standard deviation", DEVIATION, 3))
SHAPES = ((60.0, 800.0), (50.0, 833.0), (20.0, 100.0))
"""Mean and variance of values."""
UNITS = (1.0, HALF, HALF**2 / 2)


def lanes(mean, variance, rows=ROWS):
    """Return the exact lanes of a group: rows, centred sum, squares less half of the largest."""
    offset = mean - HALF
    return rows * np.array([1.0, offset, variance + offset**2 - HALF**2 / 2])


def question(statistic, lanes_of, relative, absolute=0.0, *, beta=0.05, cap=2 * ONE):
    """Return the question of one output."""
    unit = UNITS[:lanes_of]
    return LaplaceMeasures(
        (statistic,), ((relative, absolute),), beta, unit, tuple(u * 2.0**-FINER for u in unit), int(cap)
    )


def sources(truth, groups, *, smaller=1.0):
    """Return the pilots' and the claims' look: two lines of looks at every lane, with noise of a part of its scale."""
    made = []
    for _ in range(2):
        whole = [round(value / unit * 2**FINER) for value, unit in zip(truth, UNITS, strict=False)]
        chains = [LaplaceChain(np.full(groups, value), int(2**FINER / smaller)) for value in whole]
        shown = [Shown.nothing(groups) for _ in chains]

        def look(levels, places, chains=chains, shown=shown):
            """Show some groups again."""
            told = np.zeros_like(levels)
            for lane, chain in enumerate(chains):
                now = chain.measure(shown[lane].take(places), levels[lane], places)
                value, level = shown[lane].value.copy(), shown[lane].farthings.copy()
                value[places], level[places] = now.value, now.farthings
                shown[lane], told[lane] = Shown(value, level), now.value
            return told

        made.append(look)
    return made


def played(asked, truth, groups, *, state=None, looks=None):
    """Return the state of so many groups that are alike, after an ask, and where it goes on."""
    looks = sources(truth, groups) if looks is None else looks
    state = LaplaceState.nothing(len(truth), 1, groups) if state is None else state
    return asked.run(state, *looks), looks


def missed(asked, state, truth):
    """Return how many intervals miss the truth."""
    _, lower, upper, _ = asked.told(state)
    exact = asked.statistics[0].estimate(np.array(truth)[:, None])[0]
    return int(((lower > exact) | (upper < exact)).sum())


def oracle(asked, truth):
    """Return the least epsilon, over shapes, at which the interval at the truth is within the target."""
    units, best = np.array(asked.unit), np.inf
    parts = np.linspace(0.02, 0.96, 24)
    grid = np.meshgrid(*(parts,) * (len(truth) - 1), indexing="ij")
    shapes = np.stack([part.reshape(-1) for part in grid])
    shapes = shapes[:, shapes.sum(axis=0) < 0.99]
    shapes = np.concatenate([shapes, 1 - shapes.sum(axis=0, keepdims=True)])
    low, high = np.full(shapes.shape[1], 1e-6), np.full(shapes.shape[1], 1e3)
    values = np.repeat(np.array(truth)[:, None], shapes.shape[1], axis=1)
    for _ in range(40):
        middle = np.sqrt(low * high)
        scales = units[:, None] / (middle * shapes)
        ends = laplace_interval(asked.statistics[0], values, scales, np.zeros((len(truth), 1)), asked.beta)
        wide = asked.prices.ratio(ends[0][None], ends[1][None])[0] > 1
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return min(best, float(high.min()))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 groups a cell instead of 10,000")
    groups = 1_000 if parser.parse_args().quick else 10_000
    print("| asked | relative | paid / oracle (worst) | misses: worst | met: least | two steps / one |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, statistic, many in ASKED:
        for relative in (0.02, 0.05, 0.1, 0.2, 0.3):
            over, miss, met, chain = [], [], [], []
            for shape in SHAPES:
                truth = lanes(*shape)[:many]
                asked = question(statistic, many, relative)
                state, _ = played(asked, truth, groups)
                over.append(state.paid.mean() / ONE / oracle(asked, truth))
                miss.append(missed(asked, state, truth) / groups)
                met.append(asked.told(state)[3].mean())
                first, looks = played(question(statistic, many, 2 * relative), truth, groups)
                chain.append(played(asked, truth, groups, state=first, looks=looks)[0].paid.mean() / state.paid.mean())
            print(
                f"| {name} | {relative:.0%} | {np.mean(over):.2f} ({max(over):.2f}) | {max(miss):.2%} | {min(met):.3f} "
                f"| {np.mean(chain):.2f} |"
            )


if __name__ == "__main__":
    main()
