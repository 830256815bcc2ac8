"""Where a chart goes: refused before anything is paid, if it cannot be drawn or written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing import charts

if TYPE_CHECKING:
    from pathlib import Path


def chart_path(chart: str | None) -> Path | None:
    """Return where a chart goes, once it is sure that it can be drawn and written."""
    if chart is None:
        return None
    path = charts.require_format(chart)
    charts.require_charts()
    return path
