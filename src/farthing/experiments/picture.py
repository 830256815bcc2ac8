"""The comparison as a picture: counts returned against epsilon, one line a method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing import charts
from farthing.experiments.tables import NAMES

if TYPE_CHECKING:
    from farthing.experiments.runner import Comparison

# Colours of Okabe and Ito, which colour-blind people tell apart; the dashes differ too, for print in grey.
_COLOURS: Final = ("#999999", "#0072b2", "#cc79a7", "#e69f00", "#56b4e9", "#d55e00", "#000000")
_DASHES: Final = ([2, 2], [6, 3], [1, 3], [8, 3, 2, 3], [4, 4], [1, 0], [3, 3])


def returned_chart(found: Comparison, task: str) -> Any:
    """Return the chart of one task; both axes are logarithmic, and what returned nothing is left out."""
    alt = charts.require_charts()
    points = [
        {"epsilon": epsilon, "returned": cell.returned, "method": name}
        for epsilon, row in found.cells[task].items()
        for name, cell in row.items()
        if cell.returned >= 0.1
    ]
    methods, plan = list(NAMES), found.plan
    hue = alt.Color("method:N", scale=alt.Scale(domain=methods, range=list(_COLOURS)), sort=methods, title=None)
    dash = alt.StrokeDash("method:N", scale=alt.Scale(domain=methods, range=list(_DASHES)), sort=methods, title=None)
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("epsilon:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(plan.epsilons), format="~g")),
        y=alt.Y(
            "returned:Q",
            scale=alt.Scale(type="log"),
            title=f"counts returned within {100 * plan.relative:g} %",
            axis=alt.Axis(format="~g"),
        ),
        color=hue,
    )
    title = alt.TitleParams(found.titles[task], anchor="start", fontSize=13)
    return (base.mark_line().encode(strokeDash=dash) + base.mark_point(filled=True, size=40)).properties(
        width=460, height=300, title=title
    )


__all__ = ["returned_chart"]
