"""Which groups are chosen, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options

CHOICE = "Choice"


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """Which groups are wanted and how surely, as it was typed; None for what was left out."""

    k: Annotated[str, typer.Option("-k", metavar="10", help="How many groups.", rich_help_panel=CHOICE)] = "10"
    within: Annotated[
        str | None,
        typer.Option(
            metavar="50", help="How far below the true rank k a chosen group may be.", rich_help_panel=options.ACCURACY
        ),
    ] = None
    order_correct: Annotated[
        str | None,
        typer.Option(
            metavar="95%",
            help="Refine counts until released intervals prove the order, with this confidence.",
            rich_help_panel=options.ACCURACY,
        ),
    ] = None
    confidence: Annotated[
        str | None,
        typer.Option(
            metavar="95%", help="How surely --within holds: 95% (default) or 0.95.", rich_help_panel=options.ACCURACY
        ),
    ] = None
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="0.1", help="Name the price of each of the k choices instead.", rich_help_panel=options.PRICE
        ),
    ] = None
    max_epsilon: options.MaxEpsilon = None
    cap: options.Cap = None
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rank by the sum of this, not by rows.", rich_help_panel=options.DATA),
    ] = None
    where: options.Where = None
    keys: options.Keys = None
    max_groups: options.MaxGroups = None
    max_rows: options.MaxRows = None
    lower: options.Lower = None
    upper: options.Upper = None
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="120,100,90", help="Public scores: show how likely each choice is.", rich_help_panel=CHOICE
        ),
    ] = None
    sensitivity: Annotated[
        str,
        typer.Option(metavar="1", help="With --scores: the most a unit moves a score.", rich_help_panel=CHOICE),
    ] = "1"
    monotone: Annotated[
        bool,
        typer.Option(
            "--monotone", help="With --scores: a unit moves all of them the same way.", rich_help_panel=CHOICE
        ),
    ] = False
