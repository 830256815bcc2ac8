"""Which bounds are looked at, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options


@dataclass(frozen=True, slots=True)
class BoundsOptions:
    """Which question's bounds are looked at, and at what price, as it was typed."""

    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            metavar="mu=0.02",
            help="What it may cost: mu=, rho= or epsilon=. Default: a hundredth of the budget.",
            rich_help_panel=options.PRICE,
        ),
    ] = None
    confidence: options.Confidence = None
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL",
            help="A column of the question's GROUP BY, or NAME=EXPRESSION; repeat it for each.",
            rich_help_panel=options.DATA,
        ),
    ] = None
    where: options.Where = None
    keys: options.Keys = None
    max_groups: options.MaxGroups = None
    max_rows: options.MaxRows = None
    lower: options.Lower = None
    upper: options.Upper = None
