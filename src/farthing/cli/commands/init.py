"""`farthing init`: a table, a promise and its books, written down."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.init import InitOptions


def init(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE", help="A Parquet or CSV file, a quoted pattern, or the address of a server's table."
        ),
    ],
    *,
    wish: InitOptions,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace farthing.toml; a ledger is never replaced.", rich_help_panel=options.OUTPUT
        ),
    ] = False,
) -> None:
    r"""Write farthing.toml: the table, whose privacy, how much, which books.

    Opens the table and the ledger once to check all of it. The budget is for
    the lifetime of the ledger and cannot be raised later.

    Examples:
      farthing init visits.csv --epsilon 1 --delta 1e-6
      farthing init rides.parquet --unit rider_id --epsilon 1 --delta 1e-6 \
          --max-groups 5 --max-rows 20 --keys zone=@zones.csv:id
      farthing init flights.csv --epsilon 1 --delta 1e-6 \
          --public airports=airports.csv --keys dest=airports.faa
      farthing init "postgresql://me@db.example.org/city#trips" --unit rider \
          --epsilon 1 --delta 1e-6
      farthing init "spark://host:7077#city.trips" --unit rider --epsilon 1 \
          --delta 1e-6
    """
    with explained():
        from farthing.cli.run.init import init

        init(table, wish, force=force)
