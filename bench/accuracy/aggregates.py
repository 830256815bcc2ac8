"""What each aggregate costs at the same target, through a session, by the size of the group; and what bounds cost.

The values are invented ride times: lognormal, the middle half between 8 and 18 minutes, clamped into [0, 60]. One row
is the unit, so the price is that of one group. Prices are means over the runs, in mu; noise moves the last digit.

    python bench/accuracy/aggregates.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import farthing

CLAMPS = {"lower": 0.0, "upper": 60.0}
SIZES = (1_000, 10_000, 100_000)
BUDGET = farthing.Budget(epsilon=20, delta=1e-6)
ASKED = {
    "COUNT(*)": lambda s, t: s.count(**t, cap="all"),
    "SUM": lambda s, t: s.sum("minutes", **CLAMPS, **t, cap="all"),
    "AVG": lambda s, t: s.mean("minutes", **CLAMPS, **t, cap="all"),
    "STDDEV": lambda s, t: s.variance("minutes", **CLAMPS, root=True, **t, cap="all"),
    "MEDIAN": lambda s, t: s.quantile("minutes", 0.5, **CLAMPS, **t, cap="all"),
    "9th decile": lambda s, t: s.quantile("minutes", 0.9, **CLAMPS, **t, cap="all"),
    "MAX": lambda s, t: s.quantile("minutes", 1.0, **CLAMPS, **t, cap="all"),
}
WIDTHS = ({"relative": 0.05}, {"relative": 0.2})
RANKS = ({"rank": 0.02}, {"rank": 0.1})
THREE = "SELECT COUNT(*) AS n, SUM(minutes) AS total, AVG(minutes) AS mean FROM data"


def rides(size):
    """Return ride times, the same ones in every run."""
    return pa.table({"minutes": np.random.default_rng(1).lognormal(2.5, 0.6, size)})


def paid(table, ask, runs):
    """Return the mean price in mu of fresh asks, or None where an answer missed its target."""
    prices = []
    for _ in range(runs):
        with farthing.Session(table, budget=BUDGET) as session:
            answer = ask(session)
            if not answer.met:
                return None
            prices.append(answer.paid.value)
    return float(np.mean(prices))


def shown(price):
    """Return a price with two digits."""
    return "-" if price is None else f"{price:.2g}"


def by_aggregate(runs, sizes):
    """Return the price of each aggregate, target and size."""
    rows = []
    for name, ask in ASKED.items():
        ranked = name in {"MEDIAN", "9th decile", "MAX"}
        widths = () if name == "MAX" else WIDTHS
        for target in (*widths, *(RANKS if ranked else ())):
            prices = [paid(rides(size), lambda s, ask=ask, target=target: ask(s, target), runs) for size in sizes]
            rows.append({"asked": name, "target": target, "mu": dict(zip(sizes, prices, strict=True))})
    return rows


def by_width(runs, size):
    """Return the price of a mean within 1 minute, by what its values are clamped into."""
    table = rides(size)
    return {
        upper: paid(table, lambda s, u=upper: s.mean("minutes", lower=0, upper=u, absolute=1, cap="all"), runs)
        for upper in (30, 60, 120, 240)
    }


def together(runs, size):
    """Return the price of three aggregates in one SELECT, and of the three one by one."""
    bounds, target, table = farthing.Bounds(**CLAMPS), {"relative": 0.05}, rides(size)

    def apart(session):
        """Ask one by one; return whether all met, and what they cost together."""
        answers = [ASKED[name](session, target) for name in ("COUNT(*)", "SUM", "AVG")]
        return SimpleNamespace(met=all(answer.met for answer in answers), paid=session.spent)

    one = paid(table, lambda s: s.sql(THREE, bounds=bounds, cap="all", **target), runs)
    return {"one SELECT": one, "one by one": paid(table, apart, runs)}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs = 2 if options.quick else 20
    found = {
        "aggregates": by_aggregate(runs, SIZES),
        "clamped to": by_width(runs, 10_000),
        "together": together(runs, 10_000),
    }
    print("mu paid, by the rows of the group", *(f"{size:>9,}" for size in SIZES))
    for row in found["aggregates"]:
        ((kind, width),) = row["target"].items()
        print(f"{row['asked']:12s} {kind:8s} {width:<10}", *(f"{shown(price):>9}" for price in row["mu"].values()))
    for upper, price in found["clamped to"].items():
        print(f"AVG within 1, clamped into [0, {upper}], 10,000 rows: mu {shown(price)}")
    for how, price in found["together"].items():
        print(f"COUNT, SUM and AVG within 5 %, 10,000 rows, {how}: mu {shown(price)}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
