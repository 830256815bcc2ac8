"""Answers as pictures: one point and interval a group, and beside it what the group paid."""

from __future__ import annotations

import json
import os
import textwrap
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing import picture
from farthing.errors import DataError, FarthingError, InvalidOption
from farthing.query import outward

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import ArrayLike

FORMATS: Final = (".svg", ".png", ".html")
"""The file endings a chart can be saved as."""

MOST_GROUPS: Final = 40
"""A chart shows at most this many groups, the largest answers first."""

# Blue and vermilion of Okabe and Ito, which colour-blind people tell apart; the shapes differ too, for print in grey.
_STATES: Final = {"target met": ("#0072B2", "circle"), "target missed": ("#D55E00", "diamond")}
_PAID: Final = "#8DA3B5"
# Six more of Okabe and Ito, one a mechanism; what nobody can run is grey and dashed.
_CURVES: Final = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
_IDEAL: Final = "#666666"
_IDEALS: Final = {"Gaussian that knows the size": [6, 3], "lower bound": [2, 2]}
_ANSWER_WIDTH: Final = 480
_PAID_WIDTH: Final = 150
_TITLE_LETTERS: Final = 84


def require_charts() -> Any:
    """Return altair; refuse with the install line where it or its renderer is missing."""
    if find_spec("altair") is None or find_spec("vl_convert") is None:
        raise FarthingError(
            "charts need altair and vl-convert",
            next_step="python -m pip install 'farthing[charts]'",
            rule="charts are an extra",
        ) from None
    import altair as alt

    return alt


def require_format(path: str | Path) -> Path:
    """Return the path of a chart; refuse one that could not be written, so that nothing is paid for it.

    >>> require_format("answer.svg").suffix
    '.svg'
    """
    if not isinstance(path, str | Path):
        raise InvalidOption(
            "a chart's file is named by a path", rule="text or a Path", got=repr(path), next_step="use answer.svg"
        )
    chosen = Path(path)
    if chosen.suffix.lower() not in FORMATS:
        raise InvalidOption(
            "unknown chart format",
            rule=f"a file ending in {', '.join(FORMATS)}",
            got=chosen.name,
            next_step=f"use {chosen.stem or 'answer'}.svg",
        )
    if not chosen.parent.is_dir():
        raise DataError(
            "the chart's folder does not exist",
            got=chosen.parent,
            next_step="make the folder first",
            rule="a chart is written into a folder that exists",
        )
    if chosen.is_dir() or not os.access(chosen if chosen.exists() else chosen.parent, os.W_OK):
        raise DataError(
            "the chart cannot be written here",
            got=chosen,
            next_step="name another file",
            rule="a chart is written to a new or writable file",
        )
    return chosen


def answer_chart(
    table: pa.Table, *, keys: tuple[str, ...], name: str, title: str, parameter: str, in_order: bool = False
) -> Any:
    """Return an altair chart of one answer: intervals on the left, what each group paid on the right.

    Args:
        table: the rows of an answer, as `Answer.to_arrow` gives them; groups are chosen by estimates, if it has them.
        keys: the names of its key columns; empty for a single number.
        name: the name of its answer column.
        title: the promise, a line above the picture.
        parameter: the currency's parameter, "mu", "rho" or "epsilon".
        in_order: whether all groups are drawn in the order of the rows; else texts by their answers.
    """
    alt = require_charts()
    rows = _largest(table, keys, name, in_order=in_order)
    base = alt.Chart(alt.Data(values=rows)).properties(height=max(48, 17 * len(rows)))
    labels = json.dumps([row["group"] for row in rows])
    axis = alt.Axis(labelExpr=f"{labels}[datum.value]", labelLimit=260, domain=False, ticks=False, labelPadding=8)
    place = alt.Y("place:O", title=", ".join(keys) or None, axis=axis)
    answers = _answers(alt, base, place, rows, name)
    paid = base.mark_bar(color=_PAID, size=9).encode(
        x=alt.X("paid:Q", title=f"paid ({parameter})", axis=alt.Axis(tickCount=3, format="~g")),
        y=place.axis(None),
        tooltip=_tooltip(alt, name, parameter),
    )
    picture = alt.hconcat(answers.properties(width=_ANSWER_WIDTH), paid.properties(width=_PAID_WIDTH), spacing=24)
    return (
        picture.properties(title=_title(alt, title, table, rows), padding=12)
        .configure_view(stroke=None)
        .configure_axis(gridColor="#E6E6E6", labelFontSize=11, titleFontSize=12, labelFlush=False, labelOverlap=True)
        .configure_legend(orient="top", labelFontSize=11)
    )


def loss_chart(laws: Mapping[str, Any], losses: ArrayLike) -> Any:
    """Return an altair chart of privacy losses: delta against epsilon, one line a mechanism, on a logarithmic axis.

    Args:
        laws: privacy loss distributions by the names they are drawn under, as `farthing.privacy.profile` makes them.
        losses: float64 epsilons >= 0 at which delta is drawn.

    >>> from farthing.privacy.profile import gaussian
    >>> chart = loss_chart({"mu = 1": gaussian(1), "mu = 2": gaussian(2)}, [0.0, 1.0, 2.0])
    >>> len(chart.data.values)
    6
    """
    from farthing.privacy.profile import plot_points

    alt = require_charts()
    points = {name: plot_points(law, losses) for name, law in laws.items()}
    rows = [
        {"mechanism": name, "epsilon": epsilon, "delta": delta}
        for name, drawn in points.items()
        for epsilon, delta in zip(drawn["loss"].tolist(), drawn["delta"].tolist(), strict=True)
        if delta > 0  # a logarithmic axis has no zero, and no delta stands at negative losses
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("epsilon:Q"),
            y=alt.Y("delta:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e")),
            color=alt.Color("mechanism:N", title=None),
        )
        .properties(width=480, height=280)
    )


def policy_chart(sizes: ArrayLike, curves: Mapping[str, ArrayLike], *, title: str) -> Any:
    """Return an altair chart of group-wise losses: rho against the size of the group, both axes logarithmic.

    Args:
        sizes: int64[sizes], rising, from 1.
        curves: rho at each size, by the name it is drawn under; the bounds "lower bound" and "Gaussian that knows the
            size" are dashed and grey, since nobody can run them.
        title: the target that every mechanism was set to.

    >>> chart = policy_chart([1, 10], {"log": [0.1, 0.001], "lower bound": [0.05, 0.0005]}, title="10 %")
    >>> len(chart.data.values)
    4
    """
    import numpy as np

    alt = require_charts()
    at = np.asarray(sizes).tolist()
    rows = [
        {"mechanism": name, "size": size, "rho": rho}
        for name, losses in curves.items()
        for size, rho in zip(at, np.asarray(losses).tolist(), strict=True)
        if rho > 0  # a logarithmic axis has no zero
    ]
    names = list(curves)
    ideal = [name in _IDEALS for name in names]
    colours = iter(_CURVES)
    drawn = [_IDEAL if it else next(colours, _IDEAL) for it in ideal]
    dashes = [_IDEALS.get(name, [1, 0]) for name in names]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("size:Q", title="members of the group", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
            y=alt.Y("rho:Q", title="rho of a member", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e")),
            color=alt.Color("mechanism:N", title=None, scale=alt.Scale(domain=names, range=drawn)),
            strokeDash=alt.StrokeDash("mechanism:N", title=None, scale=alt.Scale(domain=names, range=dashes)),
            tooltip=[
                alt.Tooltip("mechanism:N"),
                alt.Tooltip("size:Q", format=","),
                alt.Tooltip("rho:Q", format=".4~g"),
            ],
        )
        .properties(width=480, height=320, title=heading(alt, title))
    )


def selection_chart(scores: Sequence[float], chances: Mapping[str, Sequence[float]], *, title: str) -> Any:
    """Return an altair chart of selection probabilities: a bar for each option and mechanism, best option first.

    Args:
        scores: the options' scores, which are public here.
        chances: each option's probability, by the name of the mechanism.
        title: the price and what the scores move by.

    >>> chart = selection_chart([3, 1], {"exponential": [0.7, 0.3], "permute and flip": [0.8, 0.2]}, title="epsilon 1")
    >>> len(chart.data.values)
    4
    """
    alt = require_charts()
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[:MOST_GROUPS]
    rows = [
        {"option": rank, "score": f"{scores[place]:g}", "mechanism": name, "probability": column[place]}
        for name, column in chances.items()
        for rank, place in enumerate(best)
    ]
    labels = json.dumps([f"{scores[place]:g}" for place in best])
    colours = alt.Scale(domain=list(chances), range=list(_CURVES[: len(chances)]))
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("option:O", title="score", axis=alt.Axis(labelExpr=f"{labels}[datum.value]", labelAngle=0)),
            xOffset=alt.XOffset("mechanism:N"),
            y=alt.Y("probability:Q", title="chance of being chosen"),
            color=alt.Color("mechanism:N", title=None, scale=colours),
            tooltip=["score:N", "mechanism:N", alt.Tooltip("probability:Q", format=".4~g")],
        )
        .properties(width=480, height=280, title=heading(alt, title))
    )


def prices_chart(prices: Mapping[str, float], *, parameter: str, title: str) -> Any:
    """Return an altair chart of what several ways to keep one promise cost, cheapest first.

    Args:
        prices: each price, in the currency's parameter, by the name of the mechanism.
        parameter: "mu", "rho" or "epsilon".
        title: the promise.

    >>> len(prices_chart({"top-3 (gumbel)": 0.04, "top-3 (gaussian)": 0.07}, parameter="mu", title="").data.values)
    2
    """
    alt = require_charts()
    rows = [{"mechanism": name, "price": price} for name, price in prices.items()]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=_PAID, size=14)
        .encode(
            x=alt.X("price:Q", title=f"price ({parameter})"),
            y=alt.Y("mechanism:N", title=None, sort=list(prices)),
            tooltip=["mechanism:N", alt.Tooltip("price:Q", format=".4~g")],
        )
        .properties(width=_ANSWER_WIDTH, height=max(48, 26 * len(rows)), title=heading(alt, title))
    )


def heading(alt: Any, title: str) -> Any:
    """Return a title in lines that fit."""
    return alt.TitleParams(textwrap.wrap(title, _TITLE_LETTERS), anchor="start")


def _answers(alt: Any, base: Any, place: Any, rows: list[dict[str, Any]], name: str) -> Any:
    """Return points and their intervals; a legend only where some target was missed."""
    shown = [state for state in _STATES if any(row["state"] == state for row in rows)]
    legend = alt.Legend() if "target missed" in shown else None
    colours = alt.Scale(domain=shown, range=[_STATES[state][0] for state in shown])
    shapes = alt.Scale(domain=shown, range=[_STATES[state][1] for state in shown])
    colour = alt.Color("state:N", title=None, scale=colours, legend=legend)
    span = base.mark_rule(strokeWidth=3, opacity=0.4).encode(
        x=alt.X("lower:Q", title=name, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=7, format=",~r")),
        x2="upper:Q",
        y=place,
        color=colour,
    )
    point = base.mark_point(filled=True, size=55, opacity=1).encode(
        x="value:Q",
        y=place,
        color=colour,
        shape=alt.Shape("state:N", title=None, scale=shapes, legend=legend),
        tooltip=_tooltip(alt, name, "paid"),
    )
    return span + point


def _tooltip(alt: Any, name: str, paid: str) -> list[Any]:
    """Return what is shown under the pointer."""
    numbers = (("value", name), ("lower", "from"), ("upper", "to"))
    return [
        alt.Tooltip("group:N"),
        *(alt.Tooltip(f"{field}:Q", title=title, format=",.4~r") for field, title in numbers),
        alt.Tooltip("state:N"),
        alt.Tooltip("paid:Q", title=paid, format=".4~g"),
    ]


def save(chart: Any, path: str | Path) -> None:
    """Write a chart to an .svg, .png or .html file; html carries its own script and needs no network.

    Texts in it are guarded: an escape character would end the process that draws, and a tag in a key would be a part of
    the page.
    """
    chosen = require_format(path)
    require_charts()
    kind = chosen.suffix.lower().removeprefix(".")
    how: dict[str, dict[str, Any]] = {
        "html": {"inline": True, "json_kwds": {"cls": picture.InPage}},
        "png": {"scale_factor": 2},
    }
    chart = picture.kind_of(chart).from_dict(picture.guarded(chart.to_dict()))
    try:
        chart.save(str(chosen), format=kind, **how.get(kind, {}))
    except OSError:
        raise DataError(
            "the chart cannot be written here",
            got=chosen,
            next_step="name another file",
            rule="a chart is written to a new or writable file",
        ) from None


def _title(alt: Any, title: str, table: pa.Table, rows: list[dict[str, Any]]) -> Any:
    """Return the promise as a title, and below it how much is drawn when that is only a part."""
    part = f"the {len(rows)} largest answers of {table.num_rows:,} groups"
    below = [part] if len(rows) < table.num_rows else []
    return alt.TitleParams(
        textwrap.wrap(title, _TITLE_LETTERS),
        subtitle=below,
        anchor="start",
        fontSize=13,
        subtitleColor="#555555",
        offset=12,
    )


def _largest(table: pa.Table, keys: tuple[str, ...], name: str, *, in_order: bool = False) -> list[dict[str, Any]]:
    """Return the rows with the largest answers, as plain values in the order of the picture.

    Numbers, days and truth values run in their order; of texts the largest answers come first, unless
    rows stay in their order.
    """
    import numpy as np

    ranked = f"{name}_estimate"
    value = table.column(ranked if ranked in table.column_names else name).to_numpy()
    places = np.argsort(-value, kind="stable")[:MOST_GROUPS]
    chosen = table.take(np.sort(places) if in_order else places)
    if keys and not in_order and all(_runs(table.schema.field(key).type) for key in keys):
        chosen = chosen.take(_in_order(chosen, keys))
    stems = {key.removesuffix(end) for key, end in zip(keys, ("_from", "_to"), strict=False) if key.endswith(end)}
    both = len(keys) == 2 and keys[0].endswith("_from") and keys[1].endswith("_to")
    between = " .. " if both and len(stems) == 1 else " / "
    labels = {key: _labels(chosen.column(key).to_pylist()) for key in keys}
    return [
        {
            "place": place,
            "group": between.join(labels[key][place] for key in keys) or name,
            "value": row[name],
            "lower": row[f"{name}_lower"],
            "upper": row[f"{name}_upper"],
            "paid": row["paid"],
            "state": "target met" if row["met"] else "target missed",
        }
        for place, row in enumerate(chosen.to_pylist())
    ]


def _runs(kind: pa.DataType) -> bool:
    """Return whether values of a type have an order that people expect in a picture."""
    import pyarrow as pa

    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def _in_order(table: pa.Table, keys: Sequence[str]) -> pa.Array:
    """Return the places of the rows in the order of their keys, missing ones last."""
    import pyarrow.compute as pc

    plain = table.select(list(keys)).rename_columns([f"key{place}" for place in range(len(keys))])
    return pc.sort_indices(plain, sort_keys=[(column, "ascending") for column in plain.column_names])


def _labels(values: Sequence[object]) -> list[str]:
    """Return short labels of the keys of a column: months and days without what all of them share.

    >>> from datetime import date, datetime
    >>> _labels([date(2013, 1, 1), date(2013, 2, 1), None]), _labels([date(2013, 1, 5), date(2013, 2, 1)])
    (['2013-01', '2013-02', 'NULL'], ['2013-01-05', '2013-02-01'])
    >>> _labels([datetime(2013, 1, 1, 7), datetime(2013, 1, 1, 8)]), _labels([0.1 + 0.2, 10.0])
    (['2013-01-01 07:00', '2013-01-01 08:00'], ['0.3', '10'])
    """
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, float) for value in known):
        return ["NULL" if value is None else f"{value:.6g}" for value in values]
    texts = ["NULL" if value is None else outward.drawn(str(value)) for value in values]
    if not known or not all(isinstance(value, date) for value in known):
        return texts
    for end in (" 00:00:00", ":00", "-01-01" if len(known) > 1 else "", "-01"):
        if end and all(text.endswith(end) for text, value in zip(texts, values, strict=True) if value is not None):
            texts = [text.removesuffix(end) for text in texts]
    return texts
