"""`farthing serve`: answer many people over HTTP and the PostgreSQL wire."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained

_WHERE = "Where"


def serve(
    configs: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONFIG", help="The settings of each data set. Default: farthing.toml here."),
    ] = None,
    *,
    demo: Annotated[bool, typer.Option("--demo", help="Serve real flights, with an owner and two analysts.")] = False,
    host: Annotated[str, typer.Option(metavar="HOST", help="The interface.", rich_help_panel=_WHERE)] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Of HTTP; 0 for a free one.", rich_help_panel=_WHERE)
    ] = 8080,
    postgres: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Of the PostgreSQL wire. Default: none.", rich_help_panel=_WHERE
        ),
    ] = None,
    tokens: Annotated[str, typer.Option(metavar="FILE", help="The tokens of `farthing token`.")] = "farthing.tokens",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Processes that answer.", rich_help_panel=_WHERE)
    ] = 1,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the demo's tokens there, as JSON by name.")
    ] = None,
) -> None:
    """Serve data sets to the people who have a token.

    Each question is planned, booked in the ledger and answered as by `ask`.
    The PostgreSQL wire lets psql, pandas and dashboards connect: the user is
    the token's name, the password the token. TLS is a proxy's work.

    Examples:
      farthing serve --demo --port 8080 --postgres 5433 --token-file tokens.json
      farthing token add alice --role analyst --share 20%
      farthing serve farthing.toml --port 8080
    """
    with explained():
        from farthing.cli.run.serve import serve

        where = (host, port, postgres)
        serve(configs or [], *where, tokens=tokens, token_file=token_file, demo=demo, workers=workers)
