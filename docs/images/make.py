"""Draw the pictures of delta, group privacy and refinement: python docs/images/make.py [FOLDER]."""  # noqa: INP001  no package

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import vl_convert

from farthing.privacy import Gdp
from farthing.privacy.profile import gaussian, name_and_shame, plot_points, two_sided_geometric
from farthing.trace import Trace

DELTA = 1e-6
NOISE = Gdp.from_epsilon(1, delta=DELTA)
LAWS = {
    "geometric noise, epsilon 1": two_sided_geometric(1, 8),
    "Gaussian noise, (1, 1e-6)": gaussian(NOISE.mu),
    "name and shame, delta 1e-6": name_and_shame(DELTA),
}
COLOURS = ["#1b6ca8", "#2a9d5c", "#c0392b"]
ARROW = 3.0  # where infinity is drawn


def stacked(values: dict[str, Any], column: str, least: float) -> list[dict[str, Any]]:
    """Return the points of all laws as rows, with what is below the picture left out."""
    return [
        {"loss": float(x), "chance": float(y), "mechanism": name}
        for name, points in values.items()
        for x, y in zip(points["loss"], points[column], strict=True)
        if y >= least
    ]


def picture(title: str, lines: Any, *, height: int = 240) -> Any:
    """Return one finished picture."""
    return (
        alt.layer(*lines)
        .properties(width=520, height=height, title=title)
        .configure_view(stroke=None)
        .configure_axis(grid=False, labelFontSize=11, titleFontSize=12)
        .configure_legend(orient="top", title=None, labelLimit=400)
    )


def colour(names: list[str]) -> Any:
    """Return the colour scale of the mechanisms."""
    return alt.Color("mechanism:N", scale=alt.Scale(domain=names, range=COLOURS[: len(names)]))


def laws() -> Any:
    """Where the privacy loss lies: a bar chart of each law, on a log scale so that 1e-6 can be seen."""
    rows = []
    for name, law in LAWS.items():
        if isinstance(law, type(gaussian(1.0))):
            edges = np.linspace(-1.6, 1.6, 65)
            for low, mass in zip(edges, np.diff(law.cdf(edges)), strict=False):
                rows.append({"loss": low + 0.025, "chance": float(mass), "mechanism": name})
        else:
            values, masses = law.pmf()
            rows += [
                {"loss": float(min(value, ARROW)), "chance": float(mass), "mechanism": name}
                for value, mass in zip(values, masses, strict=True)
            ]
    ticks = alt.Axis(values=[1, 1e-3, 1e-6, 1e-9], format="e", grid=False)
    base = (
        alt.Chart(alt.Data(values=[row for row in rows if row["chance"] >= 1e-9]))
        .mark_bar(size=5)
        .encode(
            x=alt.X(
                "loss:Q",
                title="privacy loss Z of the output (the last bar stands for infinity)",
                axis=alt.Axis(grid=False),
            ),
            y=alt.Y("chance:Q", title="chance", scale=alt.Scale(type="log", domain=[1e-9, 1]), axis=ticks),
            y2=alt.datum(1e-9),
            color=colour(list(LAWS)),
            row=alt.Row("mechanism:N", title=None, sort=list(LAWS), header=alt.Header(labels=False)),
        )
    )
    return base.properties(
        width=520, height=110, title="Three mechanisms, one promise of at most (1, 1e-6)"
    ).configure_legend(orient="top", title=None, labelLimit=400)


def curves() -> Any:
    """What each promises at every epsilon."""
    at = np.linspace(0, 2.2, 221)
    points = {name: plot_points(law, at) for name, law in LAWS.items()}
    line = (
        alt.Chart(alt.Data(values=stacked(points, "delta", 1e-24)))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("loss:Q", title="epsilon"),
            y=alt.Y(
                "chance:Q", title="delta", scale=alt.Scale(type="log", domain=[1e-24, 1]), axis=alt.Axis(format="e")
            ),
            color=colour(list(LAWS)),
        )
    )
    mark = (
        alt.Chart(alt.Data(values=[{"loss": 1, "chance": DELTA}]))
        .mark_point(size=90, filled=True, color="black")
        .encode(x="loss:Q", y="chance:Q")
    )
    return picture("The same point (1, 1e-6), and what lies beyond it", [line, mark])


def weights() -> Any:
    """Delta is less than the chance of a large loss: what lies beyond epsilon is weighed by how far it goes."""
    law, z = gaussian(1.0), np.linspace(-2.5, 4, 261)
    density = law.pdf(z)
    counted = np.where(z > 1, density * -np.expm1(1 - z), 0.0)
    rows = [
        {"loss": float(x), "chance": float(y), "mechanism": name}
        for name, ys in (("density of Z", density), ("what delta counts at epsilon 1", counted))
        for x, y in zip(z, ys, strict=True)
    ]
    names = ["density of Z", "what delta counts at epsilon 1"]
    area = (
        alt.Chart(alt.Data(values=rows))
        .mark_area(opacity=0.6)
        .encode(
            x=alt.X("loss:Q", title="privacy loss Z (mu 1)"),
            y=alt.Y("chance:Q", title="density", stack=None),
            color=alt.Color("mechanism:N", scale=alt.Scale(domain=names, range=["#bcd4e6", "#c0392b"])),
        )
    )
    rule = alt.Chart(alt.Data(values=[{"loss": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="loss:Q")
    return picture("Delta at epsilon 1 is the dark area: 0.127, of a tail of 0.309", [area, rule])


def groups() -> Any:
    """One unit's curve, four releases about it, and one release about four units."""
    one = Gdp(0.2)
    losses = {"one release, one unit": one, "4 releases, one unit": one * 4, "one release, 4 units": one.for_group(4)}
    at = np.linspace(0, 5, 201)
    points = {name: {"loss": at, "delta": loss.profile().deltas(at)} for name, loss in losses.items()}
    line = (
        alt.Chart(alt.Data(values=stacked(points, "delta", 1e-12)))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("loss:Q", title="epsilon"),
            y=alt.Y(
                "chance:Q", title="delta", scale=alt.Scale(type="log", domain=[1e-12, 1]), axis=alt.Axis(format="e")
            ),
            color=colour(list(losses)),
        )
    )
    return picture("Composition adds rho, a group multiplies it by the square (mu 0.2)", [line])


def refinement() -> Any:
    """How the interval of one count closed in: a trace with looks of its own, so that the picture can be made again."""
    paid = np.array([0.0016, 0.0062, 0.0231, 0.0331, 0.0387, 0.0392])
    signs = np.array([0.6, -0.9, 0.5, -0.3, 0.2, 0.15])
    half = 1.96 / paid
    value = 1800 + signs * half / 1.96
    ends = {"value": value, "lower": value - half, "upper": value + half, "paid": paid, "look": np.arange(1, 7)}
    place, last = np.zeros(6, np.int64), np.arange(6) == 5
    facts = {"column": place, "group": place, "final": last, "parameter": "mu", "goal": "within 50"}
    return Trace(("rides",), None, **ends, **facts).chart()


def main() -> None:
    """Write every picture as SVG."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in {
        "delta-laws": laws,
        "delta-curves": curves,
        "delta-weights": weights,
        "group-curves": groups,
        "refinement": refinement,
    }.items():
        (folder / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(draw().to_json()), encoding="utf-8")


if __name__ == "__main__":
    main()
