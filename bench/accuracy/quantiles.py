"""What a quantile costs by noisy bisection and by one private choice, and how often the bisection misses.

Beside both: someone who knows n and the quantile's place already and only tests it once, at half the slack and the same
confidence; the same one who is not told n, and has to count the rows (what any mechanism of a fixed price pays that
tells this place as surely); and the least that any rule pays that keeps the rank target on all data: at these, and, in
the mean, where they have a lump of rows more in one leaf near the quantile (proved: docs/proofs/limits.quantiles.md).
Smooth, skewed and lumpy data, several quantiles and targets.

    python bench/accuracy/quantiles.py [--quick] [--whole] [--values] [--drawn] [--parts] [--json FILE]

With `--whole`: what quantiles of whole numbers cost, each number being a leaf, over the one test and over the same on
a grid of 2^16 equal steps, on which each number would be one of them and the others empty.

With `--values`: what quantiles within a target of the value cost, over what somebody pays who knows all values and
tests the two thresholds, as near as the target asks, that are cheapest, each once at half of what D is off there; over
what any rule pays; and what a chain of ever sharper targets pays over asking for the sharpest at once.

With `--drawn`: what they cost where each group has a place and a scale, or lumps, of its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from farthing.accuracy import quantile_curve, quantile_neighbours, quantile_picture, quantile_windows
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_choice import compare
from farthing.accuracy.quantile_ranks import WHOLE, NoisyRanks, QuantileGoal, Ranks
from farthing.accuracy.quantile_trail import LOOK
from farthing.limits import quantile_limit
from farthing.mechanisms.gaussian import GRAIN
from farthing.noise.bits import seeded
from farthing.planning.quantile_sought import goal_of
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.query.aggregates import Quantile
from farthing.query.expressions import Column
from farthing.query.schema import Type

LEAVES_LOG2 = 16
LEAVES = 1 << LEAVES_LOG2
BETA = 0.05
VALUE_TARGETS = {
    "half a year": {"absolute": 0.5},
    "1 year": {"absolute": 1.0},
    "2 years": {"absolute": 2.0},
    "5 %": {"relative": 0.05},
    "10 %": {"relative": 0.1},
}
NUMBERS = ("ages", "visits", "ratings", "minutes")
WHOLE_TARGETS = ((0.5, 0.02), (0.5, 0.15), (0.75, 0.05), (0.1, 0.03), (0.95, 0.01))
VALUES = ((0.5, 0.05, 0.0), (0.5, 0.2, 0.0), (0.9, 0.05, 0.0), (0.9, 0.2, 0.0), (0.5, 0.0, 655.0), (0.5, 0.0, 30.0))
LUMPS = (0.3, 0.19, 0.02, 0.4, 0.09)  # the part of the rows in each lump, from the lowest up
CAP = 1 << 60
TARGETS = ((0.5, 0.01), (0.5, 0.05), (0.5, 0.2), (0.9, 0.02), (0.99, 0.005), (0.0, 0.02))


def leaves(kind, groups, rows, rng):
    """Return int64[groups, rows], the leaf of each row."""
    if kind == "even":
        drawn = rng.random((groups, rows)) * LEAVES
    elif kind == "skewed":
        drawn = rng.lognormal(5.0, 1.5, (groups, rows))
    else:
        drawn = rng.choice([80, 1600, 1616, 20_000, 40_000], (groups, rows), p=LUMPS)
    return np.minimum(drawn, LEAVES - 1).astype(np.int64)


def drawn_leaves(kind, groups, rows, rng):
    """Return the same where each group has a place and a scale, or lumps, of its own."""
    place, scale = rng.random((2, groups, 1))
    if kind == "even":
        drawn = (place / 2 + rng.random((groups, rows)) * (0.2 + 0.3 * scale)) * LEAVES
    elif kind == "skewed":
        drawn = rng.lognormal(4.0 + 3.0 * place, 0.7 + scale, (groups, rows))
    else:
        lumps = np.sort(rng.integers(0, LEAVES, (groups, 5)), axis=1)
        drawn = np.take_along_axis(lumps, rng.choice(5, (groups, rows), p=LUMPS), axis=1)
    return np.minimum(drawn, LEAVES - 1).astype(np.int64)


def numbers(kind, groups, rows, rng):
    """Return int64[groups, rows], whole numbers from 0 on, and the largest one that there may be."""
    match kind:
        case "ages":
            return np.clip(np.rint(rng.normal(42, 18, (groups, rows))), 0, 120).astype(np.int64), 120
        case "visits":
            return np.minimum(rng.poisson(9, (groups, rows)), 93), 93
        case "ratings":
            return rng.binomial(10, 0.7, (groups, rows)), 10
        case "minutes":
            return np.minimum(rng.lognormal(3.2, 0.8, (groups, rows)), 1440).astype(np.int64), 1440
    raise ValueError(kind)


def drawn(kind, q, rank, groups, rows):
    """Return int64[groups, rows], the leaf of each row, and what is asked: a whole number is a leaf."""
    rng = np.random.default_rng(7)
    if kind not in NUMBERS:
        return leaves(kind, groups, rows, rng), QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2, rank=rank)
    leaf, last = numbers(kind, groups, rows, rng)
    return leaf, goal_of(Quantile.of(Column("x"), Type.INTEGER, q, 0.0, float(last)), 1, rank)


def ranks_of(leaf, log2=LEAVES_LOG2):
    """Return the histogram of all groups."""
    groups = len(leaf)
    key, count = np.unique((np.arange(groups)[:, None] << log2) + leaf, return_counts=True)
    return Ranks.of(key >> log2, key & ((1 << log2) - 1), count, groups=groups, leaves_log2=log2)


def one_test_of(asked, rows):
    """Return the grains of the one test, and how many times as much one pays that counts the rows."""
    half = asked.slack * rows / 2
    one_test = (-float(ndtri(BETA)) * asked.sensitivity / WHOLE / half) ** 2 / float(GRAIN)
    counting = (asked.lane_sensitivity / WHOLE + abs(asked.beside) + asked.slack) / (asked.sensitivity / WHOLE)
    return one_test, counting**2


def rank_misses(leaf, shown, q, rank):
    """Return which groups' shown leaf has a rank that is off by more than the target."""
    below, upto = (leaf < shown[:, None]).mean(axis=1), (leaf <= shown[:, None]).mean(axis=1)
    return (below > q + rank + 1e-12) | (upto < q - rank - 1e-12)


def whole_numbers(groups, rows):
    """Print what quantiles of whole numbers cost, number by number and on a grid of steps."""
    print("| numbers | q | rank | over one test | that counts | over any rule | of a grid | misses: interval, rank |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    records = []
    for kind in NUMBERS:
        for q, rank in WHOLE_TARGETS:
            each = measured(kind, q, rank, groups, rows)
            leaf, whole = drawn(kind, q, rank, groups, rows)
            asked = QuantileGoal(q, 0.0, whole.upper, LEAVES_LOG2, rank=rank)
            steps = np.minimum(leaf * LEAVES // int(whole.upper), LEAVES - 1)
            noisy = NoisyRanks(ranks_of(steps), asked, seeded(7))
            state = QuantileBisection(asked, BETA, 1 << 61).run(noisy.measure, noisy.measure_count, groups=groups)
            mine, counted = each["paid_over_one_test"], each["paid_over_counting_test"]
            other = mine / (float(state.paid.mean()) / one_test_of(whole, rows)[0])
            over = each["paid_over_least"] or float("nan")
            records.append((mine, counted, other))
            print(
                f"| {kind} | {q} | {100 * rank:g} % | {mine:.2f} | {counted:.2f} | {over:.1f} | {other:.2f} | "
                f"{100 * each['interval_misses']:.1f} %, {100 * each['rank_misses']:.1f} % |",
                flush=True,
            )
    for each, name in zip(zip(*records, strict=True), ("one test", "one that counts", "a grid"), strict=True):
        print(f"over {name}: {np.mean(each):.2f} in the mean, {max(each):.2f} at most; {groups} runs a cell")
    whole_values(groups // 4, rows)


def true_and_half(share, relative, absolute, values):
    """Return the quantile of sorted values, and half of the width that the target leaves to an interval there."""
    true = values[max(int(np.ceil(share * len(values) - 1e-9)) - 1, 0)]
    return true, absolute or relative * true / (1 + relative)


def windows(share, relative, absolute, values):
    """Return by how many rows D is off at both ends of windows around the quantile; infinity at ends of the range."""
    true, half = true_and_half(share, relative, absolute, values)
    low = np.unique(np.linspace(true - max(int(2 * half), 1), true - 1, 200).astype(int))
    high = low + max(int(2 * half), 1)
    below = share * len(values) - np.searchsorted(values, low, "right")
    above = np.searchsorted(values, high, "right") - share * len(values)
    return np.where(low < 0, np.inf, np.maximum(below, 0)), np.where(high >= LEAVES - 1, np.inf, np.maximum(above, 0))


def apart(share, relative, absolute, values):
    """Return how many rows make data of which no value is within the target of both quantiles, at least."""
    true, _ = true_and_half(share, relative, absolute, values)
    error = max(absolute, relative * true)
    up = (true + error) / (1 - relative) if relative else true + 2 * error
    down = (true - error) / (1 + relative) if relative else true - 2 * error
    above = np.searchsorted(values, up, "right") - share * len(values)
    below = share * len(values) - np.searchsorted(values, down - 1, "left")
    return np.floor(max(min(above, below), 0) / max(share, 1 - share)) + 1


def cells(groups, rows, leaves_of, seed):
    """Yield the record of each target of the value on each kind of data."""
    rng = np.random.default_rng(seed)
    for target in VALUES:
        for kind in ("even", "skewed", "lumpy"):
            yield valued(kind, target, rows, leaves_of(kind, groups, rows, rng))


def name_of(record):
    """Return how a target of the value is named in tables."""
    if record["relative"]:
        return f"{100 * record['relative']:g} %"
    return f"{record['absolute'] / LEAVES:.2%} of the range"


def by_value(groups, rows):
    """Print what quantiles within a target of the value cost, and return the records."""
    print("| data | q | target | mu | of two tests | half | 90 % | of any rule | refined | met | missed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    records = []
    for each in cells(groups, rows, leaves, 8):
        records.append(each)
        print(
            f"| {each['data']} | {each['q']} | {name_of(each)} | {each['mu']:.4f} | {each['tests']:.2f} | "
            f"{each['half']:.1f} | {each['most']:.1f} | {each['least']:.0f} | {each['refined']:.2f} | "
            f"{each['met']:.1%} | {each['misses']:.1%} |",
            flush=True,
        )
    over = [each["half"] for each in records]
    print(f"half of the groups: {np.mean(over):.2f} in the mean, {max(over):.2f} at most; {groups} runs a cell")
    return records


def by_drawn_value(groups, rows):
    """Print what they cost where places, scales and lumps are drawn, in the mean and in nearly all groups."""
    print("| data | q | target | of two tests | half | 90 % | 99 % | met | missed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for each in cells(groups, rows, drawn_leaves, 9):
        print(
            f"| {each['data']} | {each['q']} | {name_of(each)} | {each['tests']:.2f} | {each['half']:.1f} | "
            f"{each['most']:.1f} | {each['nearly_all']:.1f} | {each['met']:.1%} | {each['misses']:.1%} |",
            flush=True,
        )


def by_parts():
    """Print what quantiles by value cost, in the mean of the cells, without parts of the guess where to look."""
    lend, behind, curve = quantile_neighbours.LEND, quantile_windows.BEHIND, quantile_picture.curve_of

    def none(places, *_):
        return quantile_curve.Curve.none(*places.shape)

    for name, *parts in (
        ("as it is", lend, behind, curve),
        ("no curve", lend, behind, none),
        ("each place by its own looks", 0.0, behind, none),
        ("whatever is known beside it", lend, np.inf, none),
        ("none of these", 0.0, np.inf, none),
    ):
        quantile_neighbours.LEND, quantile_windows.BEHIND, quantile_picture.curve_of = parts
        found = list(cells(150, 10_000, leaves, 8))
        mean, half = (np.mean([each[part] for each in found]) for part in ("tests", "half"))
        print(f"{name}: {mean:.2f} times two tests, half of the groups {half:.2f}", flush=True)


def valued(kind, target, rows, leaf):
    """Return one record: cost by value against both tests and any rule, misses, and what a chain costs."""
    (q, relative, absolute), groups = target, len(leaf)
    noisy = NoisyRanks(ranks_of(leaf), QuantileGoal(q, 0.0, float(LEAVES), LEAVES_LOG2), seeded(7))

    def ran(times, held):
        wide = {"relative": min(relative * times, 0.9), "absolute": absolute * times}
        plan = QuantileBisection(noisy.asked, BETA, CAP, **wide)
        return plan.run(noisy.measure, noisy.measure_count, groups=groups, held=held)

    state, chain = ran(1, None), None
    for times in (4, 2, 1):
        chain = ran(times, None if chain is None else chain.trail)
    z, lane = -float(ndtri(BETA)), max(q, 1 - q)
    tests, least = [], []
    for values in np.sort(leaf, axis=1):
        below, above = windows(q, relative, absolute, values)
        with np.errstate(divide="ignore"):
            tests.append((((2 * z * lane) ** 2) * (1 / below**2 + 1 / above**2)).min())
        kl = (1 - 2 * BETA) * np.log((1 - BETA) / BETA)
        least.append(2 * kl / apart(q, relative, absolute, values) ** 2)
    paid, tests = state.paid * float(GRAIN), np.array(tests)
    place = np.sort(leaf, axis=1)[:, int(np.ceil(q * rows - 1e-9)) - 1]
    missed = [((one.lower > place + 1) | (one.upper < place)).mean() for one in (state, chain)]
    return {
        "data": kind, "q": q, "relative": relative, "absolute": absolute, "mu": float(np.sqrt(paid.mean())),
        "tests": float((paid / tests).mean()), "half": float(np.median(paid / tests)),
        "most": float(np.quantile(paid / tests, 0.9)), "nearly_all": float(np.quantile(paid / tests, 0.99)),
        "least": float(np.median(paid / np.array(least))),
        "refined": float(np.median(chain.paid) / np.median(state.paid)), "met": float(state.met.mean()),
        "misses": float(max(missed)),
    }  # fmt: skip


def whole_values(questions, rows):
    """Print the same of targets of the value: ages in ranges and at quantiles that are drawn, 10 groups a question."""
    rng, paid = np.random.default_rng(5), {name: [] for name in VALUE_TARGETS}
    for question in range(questions):
        lower, upper = int(rng.integers(-5, 6)), int(rng.integers(100, 140))
        q = float(rng.choice([0.1, 0.25, 0.5, 0.75, 0.9]))
        ages = np.clip(np.rint(rng.normal(42, 18, (10, rows))), lower, upper).astype(np.int64) - lower
        whole = goal_of(Quantile.of(Column("x"), Type.INTEGER, q, float(lower), float(upper)), 1, None)
        steps = QuantileGoal(q, whole.lower, whole.upper, LEAVES_LOG2)
        on_steps = np.minimum(ages * LEAVES // (upper - lower), LEAVES - 1)
        for name, target in VALUE_TARGETS.items():
            each = []
            for asked, leaf in ((whole, ages), (steps, on_steps)):
                noisy = NoisyRanks(ranks_of(leaf, asked.leaves_log2), asked, seeded(question))
                state = QuantileBisection(asked, BETA, 1 << 55, **target).run(
                    noisy.measure, noisy.measure_count, groups=10
                )
                each += [float(state.paid.mean()), float(state.met.mean())]
            paid[name].append(each)
    print("| target | of a grid, in the mean | 10 to 90 % of questions | met | met on a grid |")
    print("| --- | --- | --- | --- | --- |")
    for name, found in paid.items():
        mine, met, other, met_on = np.array(found).T
        low, high = np.quantile(mine / other, (0.1, 0.9))
        print(
            f"| {name} | {mine.mean() / other.mean():.2f} | {low:.2f} to {high:.1f} | {100 * met.mean():.1f} % | "
            f"{100 * met_on.mean():.1f} % |"
        )


def limits(leaf, asked, q, rank):
    """Return the least mu squared that any rule pays on groups like these, and the limit of one of them."""
    found = [quantile_limit(np.bincount(each, minlength=asked.leaves), q, rank=rank, beta=BETA) for each in leaf[:20]]
    return float(np.mean([each.here for each in found])), found[0]


def paid_beside(descent, leaf, limit, groups):
    """Return what is paid, as mu squared, in the mean over data with a lump more, each of them in another leaf."""
    lumps = np.random.default_rng(8).choice(limit.lumps, groups)
    more = np.hstack([np.broadcast_to(leaf, (groups, len(leaf))), np.repeat(lumps[:, None], limit.rows, axis=1)])
    noisy = NoisyRanks(ranks_of(more, descent.asked.leaves_log2), descent.asked, seeded(8))
    return float(descent.run(noisy.measure, noisy.measure_count, groups=groups).paid.mean()) * float(GRAIN)


def measured(kind, q, rank, groups, rows):
    """Return one record: cost against the single test, misses, how the bisection ended, and the other road."""
    leaf, asked = drawn(kind, q, rank, groups, rows)
    descent = QuantileBisection(asked, BETA, 1 << 61)
    noisy = NoisyRanks(ranks_of(leaf, asked.leaves_log2), asked, seeded(7))
    state = descent.run(noisy.measure, noisy.measure_count, groups=groups)
    place = int(np.ceil((asked.lane_steps / WHOLE + asked.beside) * rows - 1e-9))
    truth = np.sort(leaf, axis=1)[:, max(place, 1) - 1]
    one_test, counting = one_test_of(asked, rows)
    least, limit = limits(leaf, asked, q, rank)
    mu2 = float(state.paid.mean()) * float(GRAIN)
    beside = paid_beside(descent, leaf[0], limit, groups // 2) / limit.beside if limit.beside else None
    last = 0 if asked.whole else 1
    shown = np.ceil(state.value) - last  # the leaf that the value ends, or lies in, or is
    off = state.by_rank & rank_misses(leaf, shown, q, rank)
    found = {kind.__name__: compare(descent, kind, rows=rows) for kind in (Gdp, Zcdp, Pure)}
    return {
        "data": kind, "q": q, "rank": rank, "rows": rows,
        "mu": float(np.sqrt(mu2)),
        "paid_over_one_test": float(state.paid.mean() / one_test),
        "paid_over_counting_test": float(state.paid.mean() / one_test / counting),
        "paid_over_least": mu2 / least if least else None,
        "paid_over_beside": beside,
        "typical_over_paid": float(descent.typical(rows) / state.paid.mean()),
        "interval_misses": float(((state.lower > truth) | (state.upper < truth + last)).mean()),
        "rank_misses": float(off.mean()),
        "met": float(state.met.mean()),
        "looks": float((state.trail.kinds == LOOK).sum(axis=0).mean()),
        "cheaper": {name: each.cheaper for name, each in found.items()},
        "choice_over_descent_gdp": float(found["Gdp"].exponential.amount / found["Gdp"].descent.amount),
        "choice_over_descent_zcdp": float(found["Zcdp"].exponential.amount / found["Zcdp"].descent.amount),
        "epsilon_of_choice": found["Pure"].exponential.value,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--whole", action="store_true", help="whole numbers alone")
    parser.add_argument("--values", action="store_true", help="targets of the value alone")
    parser.add_argument("--drawn", action="store_true", help="the same of groups with places of their own")
    parser.add_argument("--parts", action="store_true", help="the same, without parts of the guess where to look")
    given = parser.parse_args()
    if given.parts:
        by_parts()
        return
    groups, rows = (100, 2_000) if given.quick else (400, 10_000)
    if given.whole:
        whole_numbers(groups, rows)
        return
    if given.values:
        by_value(groups, rows)
        return
    if given.drawn:
        by_drawn_value(groups, rows)
        return
    records = []
    for kind in ("even", "skewed", "lumpy"):
        for q, rank in TARGETS:
            each = measured(kind, q, rank, groups, rows)
            records.append(each)
            print(
                f"{kind:7} q={q:<5g} rank={rank:<6g} mu={each['mu']:.4f}  "
                f"{each['paid_over_one_test']:5.1f} x one test, {each['paid_over_counting_test']:.1f} that counts  "
                f"{each['paid_over_least'] or float('nan'):5.1f} x any rule, "
                f"{each['paid_over_beside'] or float('nan'):5.1f} beside lumps  "
                f"misses {each['interval_misses']:.3f}, of the rank {each['rank_misses']:.3f} (beta {BETA})  "
                "choice/descent: "
                f"GDP {each['choice_over_descent_gdp']:.2f}, zCDP {each['choice_over_descent_zcdp']:.2f}; "
                f"epsilon {each['epsilon_of_choice']:.4f} if pure"
            )
    for name, beside in (("paid_over_one_test", "one test"), ("paid_over_counting_test", "one test that counts")):
        over = [each[name] for each in records]
        print(f"over {beside}: {np.mean(over):.2f} in the mean, {max(over):.2f} at most; {groups} runs a cell")
    if given.json:
        given.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
