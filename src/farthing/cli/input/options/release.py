"""Which tables are released and how accurately, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options

TABLES = "Tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """Which tables are wanted, how accurately, at what price, and where they go; None for what was left out."""

    columns: Annotated[
        str | None,
        typer.Option(metavar="a,b,c", help="The columns, with commas between them.", rich_help_panel=TABLES),
    ] = None
    marginals: Annotated[
        str | None,
        typer.Option(metavar="2", help="All tables over this many of the columns, default 2; 0 is the total.",
                     rich_help_panel=TABLES),
    ] = None  # fmt: skip
    up_to: Annotated[
        bool, typer.Option("--up-to", help="The tables over fewer columns, too.", rich_help_panel=TABLES)
    ] = False
    prefixes: Annotated[
        list[str] | None,
        typer.Option("--prefixes", metavar="COL=0,10,60", help="The counts from the first edge to each other one.",
                     rich_help_panel=TABLES),
    ] = None  # fmt: skip
    ranges: Annotated[
        list[str] | None,
        typer.Option("--ranges", metavar="COL=0,10,60", help="The counts between any two edges.",
                     rich_help_panel=TABLES),
    ] = None  # fmt: skip
    conditions: Annotated[
        list[str] | None,
        typer.Option("--condition", metavar="CONDITION", help="The count of rows that meet it; repeat it for more.",
                     rich_help_panel=TABLES),
    ] = None  # fmt: skip
    workload: Annotated[
        str | None,
        typer.Option("--workload", metavar="FILE",
                     help="All of it from a TOML file: \\[\\[part]] tables that are joined, with marginals, prefixes, "
                     "ranges, conditions, matrix in each, which are multiplied.", rich_help_panel=TABLES),
    ] = None  # fmt: skip
    relative: options.Relative = None
    absolute: options.Absolute = None
    rms: Annotated[
        str | None,
        typer.Option(
            metavar="20", help="A root mean squared error over all cells instead.", rich_help_panel=options.ACCURACY
        ),
    ] = None
    confidence: options.Confidence = None
    simultaneous: options.Simultaneous = False
    loss: options.NamedLoss = None
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", metavar="tree", help="A model of the data at a --loss, whose errors are told: "
                     "tree, adaptive, mwem, projection, small database; or rows, residuals or adaptive, "
                     "whichever is better for rows: the default of --synthetic with --loss.",
                     rich_help_panel=options.PRICE),
    ] = None  # fmt: skip
    max_epsilon: options.MaxEpsilon = None
    cap: options.Cap = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the price and release nothing.", rich_help_panel=options.PRICE)
    ] = False
    keys: options.Keys = None
    where: options.Where = None
    max_groups: options.MaxGroups = None
    max_rows: options.MaxRows = None
    to: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Write one Parquet file for each table.", rich_help_panel=options.OUTPUT),
    ] = None
    synthetic: Annotated[
        str | None,
        typer.Option("--synthetic", metavar="FILE.parquet", help="Write rows that nobody has, whose tables are near "
                     "the released ones, and tell how near: free.", rich_help_panel=options.OUTPUT),
    ] = None  # fmt: skip
    rows: options.Rows = None
