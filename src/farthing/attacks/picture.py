"""Attacks as pictures: how much was guessed, between what anybody could guess and what a claim allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from farthing.charts import require_charts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLOURS: Final = {"broken": "#D55E00", "holds": "#0072B2", "undecided": "#8DA3B5"}
_MARKS: Final = {"cap of the claim": "#000000", "always the more frequent": "#666666"}
_CURVES: Final = ("#D55E00", "#9CC9E8", "#3D94CC", "#0B4F7D", "#009E73", "#CC79A7")
"""Vermilion for what is broken, which comes first; then blues, the darker the larger the budget."""

_DASHES: Final = ([1, 0], [2, 2], [5, 3], [8, 3], [1, 2], [12, 4])
_WIDTH: Final = 440
_FROM_TWO_FIFTHS: Final[Any] = {"domain": [0.4, 1.0], "clamp": True}


class Pictured(Protocol):
    """What a picture shows of one attack; an `AttackResult` has it."""

    @property
    def attack(self) -> str:
        """Its name."""

    @property
    def target(self) -> str:
        """The target's name."""

    @property
    def accuracy(self) -> float:
        """The share of right guesses."""

    @property
    def interval(self) -> tuple[float, float]:
        """The exact 95 % interval of the accuracy."""

    @property
    def cap(self) -> float:
        """The most that the claim allows."""

    @property
    def baseline(self) -> float:
        """The share that always guessing the more frequent secret gets."""

    @property
    def verdict(self) -> str:
        """What is said of the claim."""


def accuracy_chart(results: Sequence[Pictured]) -> Any:
    """Return a picture of attacks: accuracy with its 95 % interval, and ticks at the cap and at the baseline.

    The verdict on membership rests on the members that it finds and on the false-positive rate, not on the accuracy;
    where there is such a row, the title says so.

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
            alt.layer(
                bars.mark_bar(opacity=0.35, height=16).encode(
                    x=alt.X("accuracy:Q", title="secrets guessed right", scale=share, axis=alt.Axis(format="%"))
                ),
                bars.mark_rule(strokeWidth=2).encode(x=alt.X("lower:Q", scale=share), x2="upper:Q"),
            ),
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


def queries_chart(curves: Mapping[str, Mapping[int, float]], *, title: str = "") -> Any:
    """Return a picture of the share of secrets that is guessed right as more and more questions are asked.

    Args:
        curves: by target, the accuracy by number of questions.
        title: a line above it.

    Returns:
        An altair chart.
    """
    alt = require_charts()
    names = list(curves)
    rows = [
        {"target": name, "questions": asked, "accuracy": share}
        for name, curve in curves.items()
        for asked, share in curve.items()
    ]
    colours = alt.Scale(domain=names, range=list(_CURVES[: len(names)]))
    dashes = alt.Scale(domain=names, range=list(_DASHES[: len(names)]))
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=alt.X("questions:Q", title="questions asked"),
            y=alt.Y("accuracy:Q", title="secrets guessed right", axis=alt.Axis(format="%"), scale=_FROM_TWO_FIFTHS),
            color=alt.Color("target:N", title=None, scale=colours, sort=names),
            strokeDash=alt.StrokeDash("target:N", title=None, scale=dashes, sort=names),
            tooltip=["target:N", "questions:Q", alt.Tooltip("accuracy:Q", format=".1%")],
        )
    )
    coin = alt.Chart(alt.Data(values=[{"coin": 0.5}])).mark_rule(strokeDash=[4, 4], color="#666666")
    picture = alt.layer(coin.encode(y=alt.Y("coin:Q", scale=_FROM_TWO_FIFTHS)), lines)
    return picture.properties(width=_WIDTH, height=260, title=title)


def demonstration_chart(curves: Mapping[str, Mapping[int, float]], results: Sequence[Pictured]) -> Any:
    """Return both pictures, one above the other."""
    alt = require_charts()
    above = queries_chart(curves, title="The attack of Cohen and Nissim: secrets right after so many questions")
    return alt.vconcat(above, accuracy_chart(results)).resolve_scale(color="independent", strokeDash="independent")


def _row(result: Pictured) -> dict[str, Any]:
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
