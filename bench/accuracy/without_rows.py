"""What groups without rows pay, as a part of their cap: one question of each kind, in a ledger of mu and a pure one.

Three groups have 1,000 rows each, fifty-seven none. The caps are those that a session has by itself: a tenth of a
budget of epsilon 4 (and delta 1e-6). As mu squared, or as epsilon.

    python bench/accuracy/without_rows.py
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import farthing

ROWS, GROUPS, FULL = 3_000, 60, 3
ASKED = {
    "COUNT(*) AS n": {"relative": 0.1, "absolute": 1},
    "SUM(x) AS n": {"relative": 0.1, "absolute": 100},
    "AVG(x) AS n": {"relative": 0.1},
    "STDDEV(x) AS n": {"relative": 0.2},
    "MEDIAN(x) AS n": {"relative": 0.1},
    "COUNT(*) AS c, AVG(x) AS n": {"relative": 0.1, "absolute": 1},
    "AVG(x) AS a, MEDIAN(x) AS n": {"relative": 0.1},
    "SUM(x) / SUM(w) AS n": {"relative": 0.1},
    "CORR(x, w) AS n": {"absolute": 0.1},
    "COVAR_POP(x, w) AS n": {"absolute": 200},
    "REGR_SLOPE(x, w) AS n": {"absolute": 0.1},
}
BUDGETS = (farthing.Budget(epsilon=4, delta=1e-6), farthing.Budget(epsilon=4))


def parts(table, select, how, budget):
    """Return which part of their cap the groups without rows pay, each."""
    bounds = farthing.Bounds(max_groups=1, max_rows=1, lower=0, upper=100)
    asked = {"keys": {"g": list(range(GROUPS))}, "bounds": bounds, **how}
    text = f"SELECT g, {select} FROM data GROUP BY g"  # no text from outside
    with farthing.Session(table, budget=budget, ledger=None) as session:
        cap, answer = session.plan(text, **asked).cap, session.sql(text, **asked)
    paid = answer.paid_by_group[FULL:] / float(cap.value)
    return paid if budget.currency is farthing.Pure else paid**2


def main():
    """Print the table."""
    rng = np.random.default_rng(1)
    table = pa.table({
        "g": np.arange(ROWS) % FULL, "x": rng.uniform(0, 100, ROWS), "w": rng.integers(0, 101, ROWS),
    })  # fmt: skip
    print("| question | within | mu: mean, a tenth more than | pure: mean, a tenth more than |")
    print("| --- | --- | --- | --- |")
    for select, how in ASKED.items():
        paid = [parts(table, select, how, budget) for budget in BUDGETS]
        words = " or ".join(f"{width:.0%}" if name == "relative" else f"{width:g}" for name, width in how.items())
        cells = " | ".join(f"{each.mean():.2f}, {np.quantile(each, 0.9):.2f}" for each in paid)
        print(f"| `{select}` | {words} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
