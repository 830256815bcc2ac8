"""How a file of questions is asked, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """How a workload is run and shown, as it was typed."""

    order: Annotated[
        str,
        typer.Option(
            metavar="given", help="given: in the order of the file; cheapest: by price.", rich_help_panel=options.PRICE
        ),
    ] = "given"
    strategy: Annotated[
        str,
        typer.Option(
            metavar="each",
            help="each: every question to its target. together: share --cap among counts, so that the worst error, "
            "in targets, is small. largest: spend --cap on the largest counts, each to its target.",
            rich_help_panel=options.PRICE,
        ),
    ] = "each"
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Price all and ask nothing.", rich_help_panel=options.PRICE)
    ] = False
    allotment: options.Allotment = None
    as_json: options.Json = False
    rows: options.Rows = None
    wide: options.Wide = False
