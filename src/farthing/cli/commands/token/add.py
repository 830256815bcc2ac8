"""`farthing token add`: a token for somebody, shown once."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.")],
    *,
    role: Annotated[str, typer.Option(metavar="ROLE", help="owner, analyst or auditor.")] = "analyst",
    share: Annotated[
        str | None, typer.Option(metavar="SHARE", help="A share of the budget, as in `farthing allot`: 20%.")
    ] = None,
    days: Annotated[int | None, typer.Option(metavar="N", help="How long it lasts. Default: until revoked.")] = None,
    tokens: options.Tokens = "farthing.tokens",
    as_json: options.BareJson = False,
    config: options.LedgerConfig = None,
) -> None:
    """Make a token for somebody and show it, this once; an older one ends.

    Examples:
      farthing token add alice --role analyst --share 20%
      farthing token add audit --role auditor --days 30
    """
    with explained(as_json=as_json):
        from farthing.cli.run.token import add

        add(name, role, share, days, tokens=tokens, config=config, as_json=as_json)
