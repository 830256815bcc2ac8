"""`farthing check`: how a table is read, and what bounds and keys would cut, for its owner."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def check(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="A Parquet or CSV file, or a quoted pattern. Default: that of farthing.toml."
        ),
    ] = None,
    *,
    unit: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Whose privacy, or row.", rich_help_panel=options.DATA),
    ] = None,
    keys: options.Keys = None,
    as_json: options.Json = False,
    config: options.ConfigPath = None,
) -> None:
    """Look at the rows of a table, as its owner: what is read, dropped and cut.

    Prints exact numbers of private rows. They are for whoever may see the rows:
    nothing is charged, no noise is added, and none of it may be passed on.

    Tells lines of a CSV that do not fit, texts that do not fit their type,
    clamps and bounds with what each cuts, and keys that no row has. Where
    farthing.toml names the CSV and does not say how it is read, a proposal is
    written into it.

    Examples:
      farthing check rides.csv
      farthing check rides.parquet --unit rider_id --keys zone=@zones.csv:id
      farthing check --json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.check import check

        check(table, unit, keys or (), config, as_json=as_json)
