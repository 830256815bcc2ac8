"""Limits of unbiased mechanisms: factorization norms of usual workloads, and the mean of points in an ellipsoid.

Every norm is computed with both of its sides. The noise for the mean of points is also drawn, by numpy, and its error
measured beside the formula.

    python bench/accuracy/limits.py [--json FILE] [--picture FILE]
        [--limits docs/explanation/what-nobody-can-do.md] [--mean docs/explanation/mean-of-points.md]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

from farthing.limits import MeanPoint, bracket_2, bracket_f
from farthing.privacy.loss import Pure, Zcdp

RECORDS = 1000
EPSILON = 0.5
RHO = EPSILON**2 / 2  # what epsilon-DP implies, so that the two columns may be compared
DIMENSIONS = (1, 2, 4, 8, 16, 32, 64, 128)
DRAWS = 20_000
COLOURS = {"Gaussian": "#1b6ca8", "Laplace": "#c0392b", "ball-shaped": "#2a9d5c"}
BEGIN, END = "<!-- printed by bench/accuracy/limits.py: do not edit -->", "<!-- end of what was printed -->"


def prefix(n):
    """Return the n running totals."""
    return np.tril(np.ones((n, n)))


def ranges(n):
    """Return all sums over ranges of n cells."""
    return np.array([[float(i <= k <= j) for k in range(n)] for i in range(n) for j in range(i, n)])


def two_way(columns):
    """Return all 2-way marginals of binary columns."""
    cells = np.array(list(np.ndindex(*[2] * columns)))
    pairs = [(i, j) for i in range(columns) for j in range(i + 1, columns)]
    return np.array([(cells[:, i] == a) & (cells[:, j] == b) for i, j in pairs for a in (0, 1) for b in (0, 1)]) * 1.0


WORKLOADS = {
    **{f"prefix sums, {n} cells": prefix(n) for n in (4, 8, 16, 32, 64, 256)},
    **{f"all ranges, {n} cells": ranges(n) for n in (8, 16)},
    **{f"identity and total, {n} cells": np.vstack([np.eye(n), np.ones(n)]) for n in (8, 32)},
    "all 2-way marginals of 4 bits": two_way(4),
}


def norms():
    """Return one record a workload."""
    rows = []
    for name, W in WORKLOADS.items():
        f, two = bracket_f(W), bracket_2(W)
        rows.append(
            {
                "workload": name,
                "gamma_f_squared": f.lower**2,
                "singular_values": float(np.linalg.svd(W, compute_uv=False).sum()) ** 2 / W.shape[1],
                "gamma_2": two.lower,
                "plain_gaussian": len(W) * float((W**2).sum(axis=0).max()),
                "gap": max(f.gap, two.gap),
                "rounds": max(f.rounds, two.rounds),
                "seconds": f.seconds + two.seconds,
            }
        )
    return rows


def drawn(law, dimension, rng):
    """Return draws of the noise Z, for a mean of points of the unit ball."""
    step = 2 / RECORDS
    if law == "Gaussian":
        return step / math.sqrt(2 * RHO) * rng.standard_normal((DRAWS, dimension))
    if law == "Laplace":
        return rng.laplace(0, step * math.sqrt(dimension) / EPSILON, (DRAWS, dimension))
    direction = rng.standard_normal((DRAWS, dimension))
    radius = rng.gamma(dimension, step / EPSILON, (DRAWS, 1))
    return radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)


def mean_points(rng):
    """Return one record a dimension and mechanism: error by formula and by draws, and the least."""
    rows = []
    for dimension in DIMENSIONS:
        U = np.diag(1 / np.arange(1.0, dimension + 1))
        problem = MeanPoint(U, records=RECORDS)
        for noise in (problem.gaussian(Zcdp(RHO)), problem.laplace(Pure(EPSILON)), problem.ball(Pure(EPSILON))):
            measured = math.sqrt(float(((drawn(noise.name, dimension, rng) @ U.T) ** 2).sum(axis=1).mean()))
            rows.append(
                {
                    "dimension": dimension,
                    "noise": noise.name,
                    "loss": repr(noise.loss),
                    "error": noise.error,
                    "measured": measured,
                    "least": noise.least,
                    "ratio": noise.ratio,
                }
            )
    return rows


def norm_table(rows):
    """Return the norms as Markdown."""
    lines = ["| workload | gamma_f^2 | by singular values | plain Gaussian | gamma_2 | rounds | sides apart |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    lines += [
        f"| {row['workload']} | {row['gamma_f_squared']:.3f} | {row['singular_values']:.3f} "
        f"| {row['plain_gaussian']:,.0f} | {row['gamma_2']:.4f} | {row['rounds']} | {row['gap']:.0e} |"
        for row in rows
    ]
    return "\n".join(lines)


def mean_table(rows):
    """Return the errors as Markdown: in thousandths, measured ones in brackets."""
    names = list(COLOURS)
    lines = ["| d | least, zCDP | Gaussian | times | least, pure | Laplace | times | ball-shaped | times |"]
    lines += ["| ---: |" + " ---: |" * 8]
    for dimension in DIMENSIONS:
        g, laplace, ball = (
            next(row for row in rows if (row["dimension"], row["noise"]) == (dimension, name)) for name in names
        )
        cells = [f"{1000 * g['least']:.3f}", shown(g), f"{g['ratio']:.2f}", f"{1000 * laplace['least']:.3f}"]
        cells += [shown(laplace), f"{laplace['ratio']:.2f}", shown(ball), f"{ball['ratio']:.2f}"]
        lines.append(f"| {dimension} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shown(row):
    """Return an error and, in brackets, the one measured."""
    return f"{1000 * row['error']:.3f} ({1000 * row['measured']:.3f})"


def picture(rows):
    """Draw how many times the least error each noise has, against the dimension."""
    import altair as alt

    data = [{"d": row["dimension"], "times": row["ratio"], "noise": row["noise"]} for row in rows]
    least = alt.Chart(alt.Data(values=[{"times": 1}])).mark_rule(strokeDash=[4, 3]).encode(y="times:Q")
    lines = (
        alt.Chart(alt.Data(values=data))
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=alt.X("d:Q", title="dimension d", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("times:Q", title="error, in times the least", scale=alt.Scale(type="log", domain=[1, 40])),
            color=alt.Color("noise:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))),
        )
    )
    return (
        alt.layer(least, lines)
        .properties(width=520, height=260, title="The mean of points: Gaussian noise stays near the limit")
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="top", title=None)
    )


def rewrite(path, text):
    """Replace the printed part of a page."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main():
    """Print the tables; write JSON, the picture, or the parts of the pages, when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--json", "--picture", "--limits", "--mean"):
        parser.add_argument(option, type=Path, metavar="FILE")
    options = parser.parse_args()
    started = time.perf_counter()
    found = {"norms": norms(), "mean_points": mean_points(np.random.default_rng(20_261_121))}
    tables = norm_table(found["norms"]), mean_table(found["mean_points"])
    print("\n\n".join(tables))
    slowest = max(found["norms"], key=lambda row: row["seconds"])
    print(f"\n{time.perf_counter() - started:.1f} s; slowest {slowest['workload']}: {slowest['seconds']:.2f} s")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.picture:
        from farthing.charts import save

        save(picture(found["mean_points"]), options.picture)
    for page, text in ((options.limits, tables[0]), (options.mean, tables[1])):
        if page:
            rewrite(page, text)


if __name__ == "__main__":
    main()
