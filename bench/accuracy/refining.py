"""What a chain of ever sharper asks costs, over asking for the sharpest at once.

Every aggregate, with relative and absolute targets, through a session, on groups of 500 to 20,000 rows; the mean
over the groups of what each paid in all asks (mu squared, or epsilon in pure books). A chain of n steps goes from four
times the width to the width in n equal steps; "halvings" starts at sixteen times the width. The last column raises the
confidence from 95 % to 99 %. Quantiles, whose price varies most from run to run, are found by the mechanism alone,
without a session, in ten times as many groups; their grains are the same in GDP and zCDP.

With --caps: what groups pay in all that a cap stopped, and that are asked again without it, over asking at once.

    python bench/accuracy/refining.py [--groups N] [--only WORD] [--caps] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import joint
import numpy as np
import pyarrow as pa

from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.noise.bits import seeded

GDP, PURE = Budget(mu=4), Budget(epsilon=200)
CLAMPS = {"lower": 0, "upper": 100}
SEVERAL = "SELECT g, COUNT(*) AS n, SUM(CLAMP(v, 0, 100)) AS t, AVG(CLAMP(v, 0, 100)) AS m, STDDEV(CLAMP(v, 0, 100)) AS s FROM data GROUP BY g"  # noqa: E501
STEPS = (1, 2, 4)
CAPS = (0.1, 0.3, 0.6, 0.9)


def value(method, **options):
    """Return an ask about the values."""
    return lambda s, **how: getattr(s, method)("v", **CLAMPS, **options, **how)


def several(s, **how):
    """Ask for four aggregates at once."""
    how.pop("by")
    return s.sql(SEVERAL, **how)


KINDS = {
    "count": (GDP, lambda s, **how: s.count(**how), {"relative": 0.05, "absolute": 20}),
    "count_distinct": (GDP, lambda s, **how: s.count_distinct(**how), {"relative": 0.05, "absolute": 20}),
    "sum": (GDP, value("sum"), {"relative": 0.05, "absolute": 1_000}),
    "mean": (GDP, value("mean"), {"relative": 0.05, "absolute": 2}),
    "variance": (GDP, value("variance"), {"relative": 0.05, "absolute": 30}),
    "stddev": (GDP, value("variance", root=True), {"relative": 0.02, "absolute": 0.5}),
    "several": (GDP, several, {"relative": 0.05}),
    "count, pure": (PURE, lambda s, **how: s.count(**how), {"relative": 0.05, "absolute": 20}),
    "sum, pure": (PURE, value("sum"), {"relative": 0.05, "absolute": 1_000}),
}

QUANTILES = {
    "median": (0.5, {"rank": 0.05, "relative": 0.05, "absolute": 2}),
    "quantile 0.9": (0.9, {"rank": 0.05}),
    "least": (0.0, {"rank": 0.05}),
}


def table(groups, rng):
    """Return groups of very different sizes; each row is a unit and has a value of a skewed law."""
    sizes = (500 * 40 ** rng.random(groups)).astype(int)
    place = np.repeat(np.arange(groups), sizes)
    return pa.table({"g": place, "v": rng.gamma(2.0, 15.0, sizes.sum()), "unit": np.arange(sizes.sum())})


def paid(session, ask, asks, groups):
    """Return what groups paid in all asks, on average: in coins that add up."""
    total = np.zeros(groups)
    for how in asks:
        cap = Pure(50) if session.spent.parameter == "epsilon" else Gdp(2)
        answer = ask(session, by="g", keys={"g": list(range(groups))}, cap=cap, **how)
        total += answer.paid_by_group ** (2 if answer.paid.parameter == "mu" else 1)
    return float(total.mean())


def asked(rows, groups, kind):
    """Return what a chain of asks of a session costs, as a function of the asks."""
    budget, ask, _ = KINDS[kind]

    def run(*asks):
        with Session(rows, unit="unit", bounds=Bounds(max_groups=1, max_rows=1), budget=budget) as session:
            return paid(session, ask, asks, groups)

    return run


def descended(groups, kind):
    """Return what a chain of bisections on one trail costs, as a function of the asks: 1,000 rows a group."""
    q, seeds = QUANTILES[kind][0], count(1)
    leaf = np.minimum(np.random.default_rng(7).gamma(2.0, 15.0 * 655.36, (groups, 1_000)), (1 << 16) - 1).astype(
        np.int64
    )
    key, many = np.unique((np.arange(groups)[:, None] << 16) + leaf, return_counts=True)
    ranks = Ranks.of(key >> 16, key & ((1 << 16) - 1), many, groups=groups, leaves_log2=16)

    def run(*asks):
        held = None
        for how in asks:
            plan = QuantileBisection(
                QuantileGoal(q, 0.0, 100.0, rank=how.get("rank", 0.0)), 1 - how.get("confidence", 0.95), 1 << 61,
                relative=how.get("relative", 0.0), absolute=how.get("absolute", 0.0),
            )  # fmt: skip
            noisy = NoisyRanks(ranks, plan.asked, seeded(next(seeds)))
            held = plan.run(noisy.measure, noisy.measure_count, groups=groups, held=held).trail
        return float(held.paid.mean())

    return run


def ratios(run, kind, name, width):
    """Return what each chain costs over asking at once."""
    once = np.mean([run({name: width}) for _ in range(3)])
    sure = np.mean([run({name: width, "confidence": 0.99}) for _ in range(3)])
    record = {"kind": kind, "target": name, "width": width}
    for steps in STEPS:
        record[f"{steps} steps"] = run(*({name: width * 4 ** (k / steps)} for k in range(steps, -1, -1))) / once
    if not (name in {"relative", "rank"} and width * 16 > 0.5):
        record["4 halvings"] = run(*({name: width * 2.0**k} for k in range(4, -1, -1))) / once
    record["surer"] = run({name: width}, {name: width, "confidence": 0.99}) / sure
    return record


def capped(kind, target, part, *, spend, runs, seed=1):
    """Return what groups pay in all that a cap of so large a part of the mean price stopped, over the price at once.

    And the part of the price that the cap bought, and the share of the groups that were within their target.
    """
    truth = np.repeat(joint.lanes(1e4, *joint.SHAPES[0])[:, None], runs, axis=1)
    measure, statistics = joint.source(truth, np.random.default_rng(seed)), joint.KINDS[kind]
    question = joint.JointMeasures(statistics, (target,) * len(statistics), joint.BETA, joint.PER_GRAIN, 2**58, spend)
    nothing = joint.JointState.nothing(3, len(statistics), runs)
    once = question.run(nothing, measure).paid.mean()
    first = replace(question, cap_grains=int(once * part)).run(nothing, measure)
    then = question.run(first, measure)
    return then.paid.mean() / once, first.paid.mean() / once, first.met.all(axis=0).mean(), then.met.mean()


def caps(runs, only):
    """Print what a cap that was too small costs in the end."""
    print("paid in all over once (paid at the cap, met there), by cap over the mean price")
    for kind, target in (("mean", (0.05, 0.0)), ("mean", (0.2, 0.0)), ("variance", (0.1, 0.0)), ("five", (0.1, 0.0))):
        for spend in (False, True) if only in kind else ():
            cells = [capped(kind, target, part, spend=spend, runs=runs) for part in CAPS]
            told = "".join(f"{total:8.3f} ({paid:.2f}, {met:.2f})" for total, paid, met, _ in cells)
            print(f"{kind:10}{target[0]:6.0%}  {'spent   ' if spend else 'given up'}" + told, flush=True)


def main():
    """Print one row for each aggregate and target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--only", default="", help="kinds whose name holds this word")
    parser.add_argument("--caps", action="store_true", help="print what a cap that was too small costs in the end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    options = parser.parse_args()
    if options.caps:
        caps(10 * options.groups, options.only)
        return
    rows = table(options.groups, np.random.default_rng(20_261_122))
    columns = [*(f"{steps} steps" for steps in STEPS), "4 halvings", "surer"]
    print(f"{'':16}{'target':12}{'width':>8}" + "".join(f"{name:>12}" for name in columns))
    records = []
    chains = [(asked(rows, options.groups, kind), kind, KINDS[kind][2]) for kind in KINDS if options.only in kind]
    chains += [
        (descended(10 * options.groups, kind), kind, QUANTILES[kind][1]) for kind in QUANTILES if options.only in kind
    ]
    for run, kind, targets in chains:
        for name, width in targets.items():
            record = ratios(run, kind, name, width)
            records.append(record)
            cells = "".join(f"{record[c]:12.3f}" if c in record else f"{'-':>12}" for c in columns)
            print(f"{kind:16}{name:12}{width:8g}{cells}", flush=True)
    told = [record[c] for record in records for c in columns[:3] if c in record and record["kind"] != "least"]
    print(f"the most expensive chain from four times the width, the least value apart: {max(told, default=1):.3f}")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
