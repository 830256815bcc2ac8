"""`farthing token revoke`: somebody's token ends."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person whose token ends.")],
    *,
    tokens: options.Tokens = "farthing.tokens",
    as_json: options.BareJson = False,
) -> None:
    """End somebody's token, also for servers that run.

    Examples:
      farthing token revoke alice
    """
    with explained(as_json=as_json):
        from farthing.cli.run.token import revoke

        revoke(name, tokens, as_json=as_json)
