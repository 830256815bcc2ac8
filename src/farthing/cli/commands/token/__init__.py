"""`farthing token`: who may ask a server."""

from __future__ import annotations

import typer

from farthing.cli.commands.token import add, list, revoke  # noqa: A004  # as they are typed
from farthing.cli.input.options import with_options

token = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Give people tokens for `farthing serve`, and take them back.

    A token is shown once; a salted, slow hash of it is kept.

    Start here:
      farthing token add alice --role analyst --share 20%
      farthing token list
      farthing token revoke alice
    """,
)

for command in (add.add, list.list, revoke.revoke):
    token.command()(with_options(command))
