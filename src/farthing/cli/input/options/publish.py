"""Where a publication goes and how it is printed, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """Where a publication goes and how its tables are printed."""

    to: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="The folder to make. Required.", rich_help_panel=options.OUTPUT),
    ]
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The title of the statement.", rich_help_panel=options.OUTPUT),
    ] = None
    whole: Annotated[
        bool, typer.Option("--whole", help="Print counts as whole numbers.", rich_help_panel=options.OUTPUT)
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Price all and publish nothing.", rich_help_panel=options.PRICE)
    ] = False
    allotment: options.Allotment = None
    as_json: options.Json = False
