"""What is written down, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options

_TOTAL = "Budget, for all questions ever"


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What was typed; None for what was left out."""

    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Whose privacy: a column (a person, a plane), or row, the default, if each row is somebody.",
            rich_help_panel=options.DATA,
        ),
    ] = None
    epsilon: Annotated[str | None, typer.Option(metavar="1", help="The total epsilon.", rich_help_panel=_TOTAL)] = None
    delta: Annotated[
        str | None, typer.Option(metavar="1e-6", help="The delta that goes with it.", rich_help_panel=_TOTAL)
    ] = None
    rho: Annotated[
        str | None, typer.Option(metavar="X", help="A total in zCDP, in place of epsilon.", rich_help_panel=_TOTAL)
    ] = None
    mu: Annotated[
        str | None,
        typer.Option(metavar="X", help="A total in Gaussian DP, in place of epsilon.", rich_help_panel=_TOTAL),
    ] = None
    keys_delta: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="A part of delta to set aside for keys found privately.", rich_help_panel=_TOTAL
        ),
    ] = None
    drop_lines: Annotated[
        bool,
        typer.Option(
            "--drop-lines",
            help="Leave out lines of a CSV that do not fit how it is read; else they are told, and nothing is written.",
            rich_help_panel=options.DATA,
        ),
    ] = False
    max_groups: options.MaxGroups = None
    max_rows: options.MaxRows = None
    keys: options.Keys = None
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A table of public facts, to join and to take keys from; repeat it for each.",
            rich_help_panel=options.DATA,
        ),
    ] = None
    protected: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A further protected table, with the unit column, to join; repeat it for each.",
            rich_help_panel=options.DATA,
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The table's name in SQL. Default: from TABLE.", rich_help_panel=options.DATA
        ),
    ] = None
    data_version: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Your name for this state of the data; change it with them.",
            rich_help_panel=options.DATA,
        ),
    ] = "1"
    ledger: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The books. Default: NAME.ledger here.", rich_help_panel=options.OUTPUT),
    ] = None
    parquet: Annotated[
        bool,
        typer.Option("--parquet", help="Write a CSV as NAME.parquet, and use that.", rich_help_panel=options.OUTPUT),
    ] = False
