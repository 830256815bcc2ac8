"""`farthing allot`: a share of the budget for an analyst or a project."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def allot(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An analyst or a project.")],
    share: Annotated[str, typer.Argument(metavar="SHARE", help="A part of the budget, 20%, or a loss, mu=0.05.")],
    ledger: options.Ledger = None,
    *,
    as_json: options.BareJson = False,
    config: options.LedgerConfig = None,
) -> None:
    """Give somebody a share of the budget, or change it.

    All shares draw on the one total, so together they can never pass it. A
    share is for the lifetime of the ledger.

    Examples:
      farthing allot alice 20%
      farthing allot census mu=0.05 flights.ledger
    """
    with explained(as_json=as_json):
        from farthing.cli.run.allot import allot

        allot(name, share, ledger, config, as_json=as_json)
