"""Answers as pictures: one point and interval a group, and what each group paid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError, FarthingError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS: Final = (".svg", ".png", ".html")
"""The file endings a chart can be saved as."""

MOST_GROUPS: Final = 40
"""A chart shows at most this many groups, the largest answers first."""

_BLUE, _ORANGE = "#2f5d8a", "#c8702a"


def require_charts() -> Any:
    """Return altair; refuse with the install line where it is missing."""
    try:
        import altair
    except ImportError:
        raise FarthingError(
            "charts need altair and vl-convert", next_step="python -m pip install 'farthing[charts]'"
        ) from None
    return altair


def require_format(path: str | Path) -> Path:
    """Return the path of a chart; refuse another ending, before anything is paid."""
    chosen = Path(path)
    if chosen.suffix.lower() not in FORMATS:
        raise FarthingError(
            "unknown chart format", rule=f"a file ending in {', '.join(FORMATS)}", got=chosen.name, next_step="use .svg"
        )
    if not chosen.parent.is_dir():
        raise DataError("the chart's folder does not exist", got=str(chosen.parent), next_step="make the folder first")
    return chosen


def answer_chart(table: pa.Table, *, keys: tuple[str, ...], name: str, title: str, parameter: str) -> Any:
    """Return an altair chart of one answer: intervals on the left, what each group paid on the right.

    Args:
        table: the rows of an answer, as `Answer.to_arrow` gives them.
        keys: the names of its key columns; empty for a single number.
        name: the name of its answer column.
        title: a line above the picture.
        parameter: the currency's parameter, "mu", "rho" or "epsilon".
    """
    alt = require_charts()
    rows = _largest(table, keys, name)
    data = alt.Data(values=rows)
    order = [row["group"] for row in rows]
    height = max(60, 16 * len(rows))
    group = alt.Y("group:N", sort=order, title=", ".join(keys) or None)
    shape = {"height": height}
    base = alt.Chart(data).encode(y=group)
    span = base.mark_rule(strokeWidth=3, opacity=0.45, color=_BLUE).encode(
        x=alt.X("lower:Q", title=name), x2="upper:Q"
    )
    point = base.mark_point(filled=True, size=45, opacity=1).encode(
        x="value:Q",
        color=alt.Color(
            "state:N",
            title=None,
            scale=alt.Scale(domain=["target met", "target missed"], range=[_BLUE, _ORANGE]),
        ),
        tooltip=["group:N", "value:Q", "lower:Q", "upper:Q", "paid:Q"],
    )
    paid = base.mark_bar(color=_BLUE, opacity=0.75).encode(
        x=alt.X("paid:Q", title=f"paid ({parameter})", axis=alt.Axis(tickCount=4)), y=group.axis(None)
    )
    picture = alt.hconcat((span + point).properties(width=480, **shape), paid.properties(width=140, **shape))
    return picture.properties(title=_title(title, table, rows)).configure_view(stroke=None).configure_legend(
        orient="top"
    )


def save(chart: Any, path: str | Path) -> None:
    """Write a chart to an .svg, .png or .html file; html carries its own script and needs no network."""
    chosen = require_format(path)
    if chosen.suffix.lower() == ".html":
        chart.save(str(chosen), inline=True)
    else:
        chart.save(str(chosen), **({"scale_factor": 2} if chosen.suffix.lower() == ".png" else {}))


def _title(title: str, table: pa.Table, rows: list[dict[str, Any]]) -> str:
    """Return the title, saying when only a part is drawn."""
    return title if len(rows) == table.num_rows else f"{title} ({len(rows)} largest of {table.num_rows:,} groups)"


def _largest(table: pa.Table, keys: tuple[str, ...], name: str) -> list[dict[str, Any]]:
    """Return the rows with the largest answers, as plain values."""
    import numpy as np

    value = table.column(name).to_numpy()
    top = np.argsort(-value, kind="stable")[:MOST_GROUPS]
    return [
        {
            "group": " / ".join("NULL" if row[key] is None else str(row[key]) for key in keys) or name,
            "value": row[name],
            "lower": row[f"{name}_lower"],
            "upper": row[f"{name}_upper"],
            "paid": row["paid"],
            "state": "target met" if row["met"] else "target missed",
        }
        for row in table.take(top).to_pylist()
    ]
