"""`farthing mcp`: let language-model agents question a table."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained


def mcp(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIG", help="The settings of the data set. Default: farthing.toml here.")
    ] = None,
    *,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask a server of `farthing serve` instead, with FARTHING_TOKEN.")
    ] = None,
    agent: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Who asks: the name in the history, and of the share.")
    ] = "agent",
) -> None:
    """Give agents tools over the Model Context Protocol: datasets, plan, ask, refine, history.

    It speaks on stdin and stdout, as agents' programs start it. Each question
    is priced first; only the id of a plan is asked, and paid for.

    Examples:
      farthing mcp farthing.toml --as agent
      FARTHING_TOKEN=alice.xyz farthing mcp --url https://ask.example.org
    """
    with explained():
        from farthing.cli.run.mcp import mcp

        mcp(config, url, agent)
