"""Attacks as pictures: how much was guessed, between what anybody could guess and what a claim allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.charts import require_charts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.attacks.result import AttackResult

_COLOURS: Final = {"broken": "#D55E00", "holds": "#0072B2", "undecided": "#8DA3B5"}
_MARKS: Final = {"cap of the claim": "#000000", "always the more frequent": "#666666"}
_WIDTH: Final = 440


def accuracy_chart(results: Sequence[AttackResult]) -> Any:
    """Return a picture of attacks: accuracy with its 95 % interval, and ticks at the cap and at the baseline.

    Args:
        results: one row each.

    Returns:
        An altair chart.
    """
    alt = require_charts()
    rows = [_row(result) for result in results]
    ticks = [
        {"attack": row["attack"], "share": row[column], "mark": mark}
        for row in rows
        for column, mark in (("cap", "cap of the claim"), ("baseline", "always the more frequent"))
    ]
    across = alt.Y("attack:N", title=None, sort=[row["attack"] for row in rows], axis=alt.Axis(labelLimit=320))
    share = alt.Scale(domain=[0, 1])
    colour = alt.Color(
        "verdict:N", title="verdict", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    )
    bars = alt.Chart(alt.Data(values=rows)).encode(y=across, color=colour)
    marks = alt.Chart(alt.Data(values=ticks)).mark_tick(thickness=2, size=22)
    return (
        alt.layer(
            bars.mark_bar(opacity=0.35, height=16).encode(
                x=alt.X("accuracy:Q", title="secrets guessed right", scale=share, axis=alt.Axis(format="%"))
            ),
            bars.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", scale=share), x2="upper:Q"),
            marks.encode(
                y=across,
                x=alt.X("share:Q", scale=share),
                color=alt.Color(
                    "mark:N", title="limits", scale=alt.Scale(domain=list(_MARKS), range=list(_MARKS.values()))
                ),
            ),
        )
        .resolve_scale(color="independent")
        .properties(width=_WIDTH)
    )


def _row(result: AttackResult) -> dict[str, Any]:
    """Return what the picture shows of one attack."""
    return {
        "attack": f"{result.attack}: {result.target}",
        "accuracy": result.accuracy,
        "lower": result.interval[0],
        "upper": result.interval[1],
        "cap": result.cap,
        "baseline": result.baseline,
        "verdict": result.verdict,
    }
