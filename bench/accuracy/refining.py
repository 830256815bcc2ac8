"""What a chain of ever sharper asks costs, over asking for the sharpest at once.

Every aggregate, with relative and absolute targets, through a session, on groups of 500 to 20,000 rows; the mean
over the groups of what each paid in all asks (mu squared, or epsilon in pure books). A chain of n steps goes from four
times the width to the width in n equal steps; "halvings" starts at sixteen times the width. The last column raises the
confidence from 95 % to 99 %.

    python bench/accuracy/refining.py [--groups N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from farthing import Bounds, Budget, Gdp, Pure, Session, Zcdp

GDP, PURE = Budget(mu=4), Budget(epsilon=200)
CLAMPS = {"lower": 0, "upper": 100}
SEVERAL = "SELECT g, COUNT(*) AS n, SUM(CLAMP(v, 0, 100)) AS t, AVG(CLAMP(v, 0, 100)) AS m, STDDEV(CLAMP(v, 0, 100)) AS s FROM data GROUP BY g"  # noqa: E501
STEPS = (1, 2, 4)


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
    "quantile": (Budget(mu=40), value("quantile", q=0.5), {"rank": 0.05, "absolute": 5}),
    "count, pure": (PURE, lambda s, **how: s.count(**how), {"relative": 0.05, "absolute": 20}),
    "sum, pure": (PURE, value("sum"), {"relative": 0.05, "absolute": 1_000}),
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
        cap = {"epsilon": Pure(50), "mu": Gdp(2), "rho": Zcdp(2)}[session.spent.parameter]
        answer = ask(session, by="g", keys={"g": list(range(groups))}, cap=cap, **how)
        total += answer.paid_by_group ** (2 if answer.paid.parameter == "mu" else 1)
    return float(total.mean())


def ratios(rows, groups, kind, name, width):
    """Return what each chain costs over asking at once."""
    budget, ask, _ = KINDS[kind]

    def run(*asks):
        with Session(rows, unit="unit", bounds=Bounds(max_groups=1, max_rows=1), budget=budget) as session:
            return paid(session, ask, asks, groups)

    once = np.mean([run({name: width}) for _ in range(3)])
    sure = np.mean([run({name: width, "confidence": 0.99}) for _ in range(3)])
    record = {"kind": kind, "target": name, "width": width}
    for steps in STEPS:
        record[f"{steps} steps"] = run(*({name: width * 4 ** (k / steps)} for k in range(steps, -1, -1))) / once
    if not (name in {"relative", "rank"} and width * 16 > 0.5):
        record["4 halvings"] = run(*({name: width * 2.0**k} for k in range(4, -1, -1))) / once
    record["surer"] = run({name: width}, {name: width, "confidence": 0.99}) / sure
    return record


def main():
    """Print one row for each aggregate and target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all records there")
    options = parser.parse_args()
    rows = table(options.groups, np.random.default_rng(20_261_122))
    columns = [*(f"{steps} steps" for steps in STEPS), "4 halvings", "surer"]
    print(f"{'':16}{'target':12}{'width':>8}" + "".join(f"{name:>12}" for name in columns))
    records = []
    for kind, (_, _, targets) in KINDS.items():
        for name, width in targets.items():
            record = ratios(rows, options.groups, kind, name, width)
            records.append(record)
            cells = "".join(f"{record[c]:12.3f}" if c in record else f"{'-':>12}" for c in columns)
            print(f"{kind:16}{name:12}{width:8g}{cells}", flush=True)
    worst = max(record[c] for record in records for c in columns[:3] if c in record and record["kind"] != "quantile")
    print(f"the dearest chain from four times the width, quantiles apart: {worst:.3f}")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
