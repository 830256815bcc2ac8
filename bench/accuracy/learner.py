"""Private learners by the size of the class: rows that are enough, rows below which no pure learner works, agreement.

    python bench/accuracy/learner.py [--json FILE] [--pictures FOLDER] [--quick]

Without --pictures nothing is drawn. Errors of at most 10 %, but for 5 %; epsilon 0.5, delta 1e-6 or none.
Rates of failure are measured on drawn rows with the system's bits; all else is computed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from farthing.charts import require_charts
from farthing.mechanisms import FiniteClassLearner, GlobalStability, Points, Thresholds
from farthing.mechanisms.exponential import Exponential
from farthing.mechanisms.learner import samples_limit, samples_needed
from farthing.mechanisms.stable_learner import points_needed, stable_point

ERROR, FAILURE, EPSILON, DELTA = 0.1, 0.05, 0.5, 1e-6
BITS = (4, 8, 12, 16, 20, 32, 64, 128, 256, 512, 1024)
DRAWN = {4: 4000, 8: 4000, 12: 2000, 16: 1000, 20: 150}
AGREED = 10_000
FIXED_ROWS = (100, 200, 400, 800)
PUSHED = (4, 16, 64, 256, 4096, 65536)
COLOURS = {
    "exponential mechanism": "#1b6ca8",
    "no proper pure learner below": "#c0392b",
    "agreement of parts": "#2a9d5c",
}


def log_others(bits):
    """Return log(2^bits - 1)."""
    return bits * np.log(2) + np.log1p(-(2.0**-bits))


def fails(bits, rows):
    """Return the exact chance that the learner fails on the hard population, where only K rows in Bin(n, 10 %) tell."""
    told = np.arange(rows + 1)
    return float(binom.pmf(told, rows, ERROR) @ expit(log_others(bits) - EPSILON * told))


def exact_need(bits):
    """Return the least number of rows that is enough for the exponential mechanism on the hard population."""
    low, high = 0, 1
    while fails(bits, high) > FAILURE:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fails(bits, middle) > FAILURE else (low, middle)
    return high


def agreement():
    """Return the learner by agreement."""
    return GlobalStability(stable_point, EPSILON, DELTA, parts=4096, moves=1)


def by_size(bits, stable_rows):
    """Return one size's numbers of rows."""
    return {
        "bits": bits,
        "enough": samples_needed(2**bits, ERROR, FAILURE, EPSILON),
        "exact": exact_need(bits),
        "limit_points": samples_limit(2**bits - 1, ERROR, FAILURE, EPSILON),
        "limit_thresholds": samples_limit(2**bits, 2 * ERROR, FAILURE, EPSILON),
        "agreement": stable_rows,
    }


def measured(bits, runs, rng):
    """Return how often the exponential mechanism fails on drawn rows, at the number of rows that is enough for it."""
    size, rows = 2**bits, samples_needed(2**bits, ERROR, FAILURE, EPSILON)
    points, cuts = FiniteClassLearner(Points(size), EPSILON), FiniteClassLearner(Thresholds(np.arange(size)), EPSILON)
    wrong = np.zeros(2, int)
    for _ in range(runs):
        ours = rng.random(rows) < ERROR
        wrong[0] += points.fit(np.where(ours, 1, 0), ours).hypothesis.at != 1
        wrong[1] += cuts.fit(np.where(ours, 0.5, 0), ours).hypothesis.at != 0
    return {"bits": bits, "runs": runs, "rows": rows, "points": wrong[0] / runs, "thresholds": wrong[1] / runs}


def agreed(runs, rows, rng):
    """Return how often agreement fails on drawn rows; it does not matter how many points there are."""
    learner = agreement()
    drawn = (rng.random(rows) < ERROR for _ in range(runs))
    return {"runs": runs, "rows": rows, "fails": sum(learner.fit(ours * 1, ours) is None for ours in drawn) / runs}


def pushed(cells, rows=40):
    """Return the chance of the exponential mechanism to land where it must, when two rows are moved from cell to cell.

    Of 40 rows, 19 lie below all cells with label 0 and 19 above with label 1. The last two are moved to the two ends of
    a cell: between them lies the only cut without a mistake.
    """
    grid = Thresholds(np.arange(cells + 1.0))
    features = np.r_[np.full(rows // 2 - 1, -1.0), cells // 2, cells // 2 + 1, np.full(rows // 2 - 1, cells + 1.0)]
    labels = np.repeat([0, 1], rows // 2)
    law = Exponential(EPSILON).probabilities(-grid.mistakes(features, labels), monotone=True)
    return {
        "cells": cells,
        "chance": float(law[cells // 2]),
        "allowed": min(1.0, float(np.exp(2 * EPSILON)) / cells),
    }


def rows_picture(sizes):
    """Return rows against the size of the class: two lines that rise with its logarithm, and one that does not."""
    alt = require_charts()
    keys = dict(zip(COLOURS, ("enough", "limit_points", "agreement"), strict=True))
    rows = [{"bits": each["bits"], "rows": each[key], "learner": name} for each in sizes for name, key in keys.items()]
    lines = alt.Chart(alt.Data(values=rows)).mark_line(point=True, strokeWidth=2.2)
    lines = lines.encode(
        x=alt.X("bits:Q", title="log2 of the size of the class", scale=alt.Scale(type="log", base=2)),
        y=alt.Y("rows:Q", title="rows", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
        color=alt.Color("learner:N", sort=list(COLOURS), scale=scale(alt, COLOURS), title=None),
    )
    return finished(lines, "Point functions: rows to learn them, by how many there are")


def grids_picture(curves):
    """Return the chance to learn a threshold from so many rows, against how fine the grid is."""
    alt = require_charts()
    rows = [
        {"bits": bits, "chance": chance, "rows": f"{each['rows']}"}
        for each in curves
        for bits, chance in zip(each["bits"], each["chances"], strict=True)
    ]
    colours = dict(zip(map(str, FIXED_ROWS), ("#440154", "#31688e", "#35b779", "#d9b800"), strict=True))
    lines = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2.2)
    lines = lines.encode(
        x=alt.X("bits:Q", title="log2 of the number of cut points"),
        y=alt.Y("chance:Q", title="chance to learn", axis=alt.Axis(format="%", tickCount=5)),
        color=alt.Color("rows:N", sort=list(colours), scale=scale(alt, colours), title="rows"),
    )
    return finished(lines, "However many rows: on a grid that is fine enough nothing is learned")


def scale(alt, colours):
    """Return a colour scale."""
    return alt.Scale(domain=list(colours), range=list(colours.values()))


def finished(chart, title):
    """Return a picture in the style of the documentation."""
    return (
        chart.properties(width=520, height=260, title=title)
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="right", labelLimit=200)
    )


def shown(sizes, rates, agree, moved):
    """Print the tables of docs/explanation/learning.md."""
    print("| size | enough | exactly | no proper pure learner: points | thresholds | agreement |")
    print("| --- |" + " ---: |" * 5)
    for each in sizes:
        cells = (each["enough"], each["exact"], each["limit_points"], each["limit_thresholds"], each["agreement"])
        print(f"| 2^{each['bits']} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    print("\n| size | runs | rows | points fail | thresholds fail |")
    print("| --- |" + " ---: |" * 4)
    for each in rates:
        cells = [f"{100 * each[name]:.1f} %" for name in ("points", "thresholds")]
        print(f"| 2^{each['bits']} | {each['runs']:,} | {each['rows']} | " + " | ".join(cells) + " |")
    print(f"\nagreement, {agree['runs']:,} runs of {agree['rows']} rows: {100 * agree['fails']:.1f} % fail")
    print("\n| cells | chance to land in the right one | most that privacy allows |")
    print("| ---: | ---: | ---: |")
    for each in moved:
        print(f"| {each['cells']:,} | {each['chance']:.2g} | {each['allowed']:.2g} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    options = parser.parse_args()
    start, rng = time.perf_counter(), np.random.default_rng(7)
    stable_rows = points_needed(agreement(), ERROR, FAILURE)
    sizes = [by_size(bits, stable_rows) for bits in BITS]
    part = 10 if options.quick else 1
    rates = [measured(bits, runs // part, rng) for bits, runs in DRAWN.items()]
    agree = agreed(AGREED // part, stable_rows, rng)
    moved = [pushed(cells) for cells in PUSHED]
    grid = np.arange(1, 129)
    curves = [
        {"rows": rows, "bits": grid.tolist(), "chances": [1 - fails(int(bits), rows) for bits in grid]}
        for rows in FIXED_ROWS
    ]
    shown(sizes, rates, agree, moved)
    if options.json:
        facts = {"sizes": sizes, "rates": rates, "agreement": agree, "pushed": moved, "curves": curves}
        options.json.write_text(json.dumps(facts, indent=1), "utf-8")
    if options.pictures:
        import vl_convert

        for name, chart in {"learning-rows": rows_picture(sizes), "learning-grids": grids_picture(curves)}.items():
            path = options.pictures / f"{name}.svg"
            path.write_text(vl_convert.vegalite_to_svg(chart.to_json()), encoding="utf-8")
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
