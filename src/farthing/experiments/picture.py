"""The comparison as a picture: counts returned against epsilon, one line a method."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

from farthing import charts
from farthing.experiments.tables import NAMES

if TYPE_CHECKING:
    from farthing.experiments.runner import Comparison

# Colours of Okabe and Ito, which colour-blind people tell apart; the dashes differ too, for print in grey.
_COLOURS: Final = ("#999999", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00", "#000000")
_DASHES: Final = ([2, 2], [6, 3], [1, 3], [8, 3, 2, 3], [4, 4], [1, 0], [3, 3])

LEAST: Final = 0.1
"""A mean number of counts below this is told in words: a logarithmic axis has no zero."""

_LETTERS: Final = 90


def returned_chart(found: Comparison, task: str) -> Any:
    """Return the chart of one task; both axes are logarithmic, and what is too small for them is told above."""
    alt = charts.require_charts()
    points = [
        {"epsilon": epsilon, "returned": cell.returned, "method": name}
        for epsilon, row in found.cells[task].items()
        for name, cell in row.items()
        if cell.returned >= LEAST
    ]
    methods, plan = list(NAMES), found.plan
    legend = alt.Legend(symbolType="stroke", symbolSize=500, symbolStrokeWidth=2)
    how: dict[str, Any] = {"sort": methods, "title": None, "legend": legend}
    hue = alt.Color("method:N", scale=alt.Scale(domain=methods, range=list(_COLOURS)), **how)
    dash = alt.StrokeDash("method:N", scale=alt.Scale(domain=methods, range=list(_DASHES)), **how)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("epsilon:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(plan.epsilons), format="~g")),
        y=alt.Y(
            "returned:Q",
            scale=alt.Scale(type="log"),
            title=f"counts returned within {100 * plan.relative:g} %",
            axis=alt.Axis(format="~g"),
        ),
    )
    title = alt.TitleParams(
        found.titles[task], subtitle=textwrap.wrap(_nothing(found, task), _LETTERS), anchor="start", fontSize=13
    )
    dots = base.mark_point(filled=True, size=40).encode(color=alt.Color("method:N", legend=None))
    return (base.mark_line().encode(strokeDash=dash, color=hue) + dots).properties(width=460, height=300, title=title)


def _nothing(found: Comparison, task: str) -> str:
    """Return which methods are not drawn at which epsilon, since a logarithmic axis has no zero; "" if none."""
    absent = {at: [name for name in NAMES if row[name].returned < LEAST] for at, row in found.cells[task].items()}
    told = [f"at epsilon {at:g} {', '.join(names)}" for at, names in absent.items() if names]
    return f"fewer than {LEAST:g} a session, not drawn: {'; '.join(told)}" if told else ""


__all__ = ["returned_chart"]
