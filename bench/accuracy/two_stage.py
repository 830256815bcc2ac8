"""Algorithm 1 of the open problem, measured: Figure 1, divergences at growing orders, tCDP regions and curves by size.

    python bench/accuracy/two_stage.py [--json FILE] [--pictures FOLDER]
    python bench/accuracy/two_stage.py --certify [--write]

Without --pictures nothing is drawn. The first stage has sigma^2 = 100, the second r = 0.3, as in the problem's figure.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

from farthing.charts import require_charts
from farthing.mechanisms import TwoStage
from farthing.mechanisms.two_stage import _divergences

SIGMA, RELATIVE, RHO = 10.0, 0.3, 1 / 200
FIGURE_SIZE, OUTPUTS = 10_000, 1_000_000
CHECKED = {100: (2, 32, 300, 1e4), 500: (8, 100, 1000, 1e4, 1e5), 1000: (8, 64)}
SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
ORDERS = tuple(np.geomspace(1.1, 1e6, 61).tolist())
CERTIFIED = ((100, 2.0), (100, 32.0))
PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs" / "mechanisms.two_stage.md"
BEGIN, END = (
    "<!-- printed by bench/accuracy/two_stage.py --certify: do not edit -->",
    "<!-- end of what was printed -->",
)
DELTA = 1e-6
COLOURS = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#d9b800")


def figure_one(mechanism):
    """Return what the problem's Figure 1 shows: sampled mean and sd beside the closed form, and a histogram."""
    sample = mechanism.release(np.full(OUTPUTS, FIGURE_SIZE))
    counts, edges = np.histogram(sample, bins=120)
    return {
        "size": FIGURE_SIZE,
        "outputs": OUTPUTS,
        "mean": float(sample.mean()),
        "sd": float(sample.std()),
        "exact_mean": float(FIGURE_SIZE),
        "exact_sd": math.sqrt(SIGMA**2 + RELATIVE**2 * (FIGURE_SIZE**2 + SIGMA**2)),
        "problem_mean": 10_002.6,
        "problem_sd": 2995.1,
        "counts": counts.tolist(),
        "edges": edges.tolist(),
    }


def checked(mechanism):
    """Return D_a / a over rho at the sizes and orders of the published table, both ways."""
    return [
        {
            "size": x,
            "order": order,
            "there": mechanism.renyi(x, float(order)) / order / RHO,
            "back": mechanism.renyi(x, float(order), reverse=True) / order / RHO,
        }
        for x, orders in CHECKED.items()
        for order in orders
    ]


def by_size(mechanism, x):
    """Return one size's curves: D_a / a over rho at growing orders, its tCDP region, its epsilon at delta 1e-6."""
    ideal = 1 / (2 * (SIGMA**2 + RELATIVE**2 * (x**2 + SIGMA**2)))
    region = mechanism.tcdp(x)
    return {
        "size": x,
        "orders": list(ORDERS),
        "there": (mechanism.renyi(x, np.array(ORDERS)) / ORDERS / RHO).tolist(),
        "back": (mechanism.renyi(x, np.array(ORDERS), reverse=True) / ORDERS / RHO).tolist(),
        "limit_there": mechanism.limit(x) / RHO,
        "limit_back": mechanism.limit(x, reverse=True) / RHO,
        "ideal": ideal / RHO,
        "low_over_ideal": mechanism.renyi(x, 2.0) / 2 / ideal,
        "rho": region.rho,
        "omega": region.omega if math.isfinite(region.omega) else None,
        "epsilon": mechanism.epsilon(x, DELTA),
        "epsilon_of_region": region.loss.epsilon(DELTA),
    }


def outputs_picture(figure):
    """Return Figure 1: the outputs as bars, the best-fit normal curve as a line."""
    alt = require_charts()
    edges, counts = np.array(figure["edges"]), np.array(figure["counts"])
    middles = (edges[1:] + edges[:-1]) / 2
    density = counts / counts.sum() / (edges[1] - edges[0])
    normal = np.exp(-(((middles - figure["mean"]) / figure["sd"]) ** 2) / 2) / figure["sd"] / math.sqrt(2 * math.pi)
    rows = {"bars": (middles, density), "line": (middles, normal)}
    bars, line = ([{"x": float(x), "y": float(y)} for x, y in zip(*each, strict=True)] for each in rows.values())
    title = f"{OUTPUTS:,} outputs of Algorithm 1 at 10,000, and the normal law of their mean and deviation"
    x = alt.X("x:Q", title="output", axis=alt.Axis(format=",d", tickCount=7))
    y = alt.Y("y:Q", title="density", axis=alt.Axis(format=".0e", tickCount=4))
    area = alt.Chart(alt.Data(values=bars)).mark_area(color="#c0392b", opacity=0.65, interpolate="step")
    outputs = area.encode(x=x, y=y)
    fit = alt.Chart(alt.Data(values=line)).mark_line(color="black", strokeWidth=1.8).encode(x=x, y=y)
    return finished(outputs + fit, title)


def orders_picture(sizes):
    """Return D_a / a over rho against the order, a line a size: level at first, then up to one half."""
    alt = require_charts()
    rows = [
        {"order": a, "loss": y, "group of": f"{each['size']:,}"}
        for each in sizes
        for a, y in zip(each["orders"], each["there"], strict=True)
    ]
    lines = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2.2)
    lines = lines.encode(
        x=alt.X("order:Q", title="Renyi order a", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
        y=alt.Y("loss:Q", title="D_a / a, over rho", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e")),
        color=colour(sizes),
    )
    half = alt.Chart(alt.Data(values=[{"y": 0.5}])).mark_rule(strokeDash=[5, 4]).encode(y="y:Q")
    return finished(lines + half, "Every group ends at half of rho; a large one takes its time")


def curves_picture(sizes, mechanism):
    """Return delta against epsilon, a line a size."""
    alt = require_charts()
    rows = []
    for each in sizes:
        epsilons = each["epsilon"] * np.linspace(0.02, 1.3, 25)
        deltas = mechanism.profile(each["size"], epsilons)
        rows += [
            {"epsilon": float(e), "delta": float(d), "group of": f"{each['size']:,}"}
            for e, d in zip(epsilons, deltas, strict=True)
        ]
    lines = alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2.2)
    lines = lines.encode(
        x=alt.X("epsilon:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=8)),
        y=alt.Y("delta:Q", scale=alt.Scale(type="log", domain=[1e-9, 1], clamp=True), axis=alt.Axis(format=".0e")),
        color=colour(sizes),
    )
    return finished(lines, "What Algorithm 1 promises as (epsilon, delta), by size")


def colour(sizes):
    """Return the colours of the sizes, small to large."""
    alt = require_charts()
    names = [f"{each['size']:,}" for each in sizes]
    return alt.Color("group of:N", sort=names, scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])))


def finished(chart, title):
    """Return a picture in the style of the documentation."""
    return (
        chart.properties(width=520, height=260, title=title)
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="right", labelLimit=200)
    )


def certify():
    """Return a table: what is measured, how far the certain ends are from it, and how much longer they take."""
    TwoStage(SIGMA, RELATIVE).renyi(10, 2.0)  # what is imported on the way is no part of the time
    rows = ["| x | order | D_a measured | lower end | upper end | time, over the measurement's |", "|" + " ---: |" * 6]
    for x, order in CERTIFIED:
        _divergences.cache_clear()
        start, mechanism = time.process_time(), TwoStage(SIGMA, RELATIVE)
        measured = mechanism.renyi(x, order)
        middle = time.process_time()
        found = mechanism.certified_renyi(x, order)
        ratio = (time.process_time() - middle) / (middle - start)
        ends = (f"{end / measured - 1:+.1e}" for end in found)
        rows.append(f"| {x:,} | {order:g} | {measured:.9g} | {' | '.join(ends)} | {ratio:,.0f} |")
        print(rows[-1], flush=True)
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--certify", action="store_true", help="certain ends of some divergences, and nothing else")
    parser.add_argument("--write", action="store_true", help="put what --certify prints into the documentation")
    options = parser.parse_args()
    if options.certify:
        printed, text = certify(), PAGE.read_text(encoding="utf-8")
        if options.write:
            before, after = text.split(BEGIN)[0], text.split(END)[1]
            PAGE.write_text(f"{before}{BEGIN}\n\n{printed}\n\n{END}{after}", encoding="utf-8")
        return
    start, mechanism = time.perf_counter(), TwoStage(SIGMA, RELATIVE)
    figure, table = figure_one(mechanism), checked(mechanism)
    sizes = [by_size(mechanism, x) for x in SIZES]
    print(f"Figure 1 at {FIGURE_SIZE:,}: mean {figure['mean']:.1f} (exact 10000), sd {figure['sd']:.1f}", end=" ")
    print(f"(exact {figure['exact_sd']:.1f}); in the problem 10,002.6 and 2995.1\n")
    for row in table:
        print(f"x {row['size']:>5}  a {row['order']:>8g}  D_a/a/rho {row['there']:.4f}, back {row['back']:.5f}")
    print()
    for each in sizes:
        omega = f"{each['omega']:.0f}" if each["omega"] else "all"
        print(
            f"x {each['size']:>9,}  D_2/2 over the Gaussian's {each['low_over_ideal']:.3f}  rho {each['rho']:.2e}"
            f"  omega {omega:>7}  epsilon {each['epsilon']:.3g}  by tCDP {each['epsilon_of_region']:.3g}"
        )
    if options.json:
        options.json.write_text(json.dumps({"figure": figure, "checked": table, "sizes": sizes}, indent=1), "utf-8")
    if options.pictures:
        import vl_convert

        pictures = {
            "two-stage-outputs": outputs_picture(figure),
            "two-stage-orders": orders_picture(sizes),
            "two-stage-curves": curves_picture(sizes, mechanism),
        }
        for name, chart in pictures.items():
            path = options.pictures / f"{name}.svg"
            path.write_text(vl_convert.vegalite_to_svg(chart.to_json()), encoding="utf-8")
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
