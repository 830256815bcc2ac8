"""How an answer is shown, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.cli.input import options


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How an answer is shown, as it was typed."""

    allotment: options.Allotment = None
    as_json: options.Json = False
    as_csv: options.Csv = False
    chart: options.Chart = None
    column: options.ChartColumn = None
    rows: options.Rows = None
    wide: options.Wide = False
    trace: options.Trace = False
    trace_chart: options.TraceChart = None
