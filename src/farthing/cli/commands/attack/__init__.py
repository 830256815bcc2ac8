"""`farthing attack`: attack a system of your own, get a verdict; replay a real attack; see all of them in a demo."""

from __future__ import annotations

import typer

from farthing.cli.commands.attack import demo, replay, run, secrets
from farthing.cli.input.options import with_options

attack = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Attack a system that answers questions about people, and get a verdict.

    The attacks are those that broke real systems: linear reconstruction,
    averaging, differencing, everything on one person, noise in floating point,
    membership inference, and the two attacks on Diffix.

    Start here:
      farthing attack demo                        which attack breaks what
      farthing attack secrets people.csv          load this into your system
      farthing attack run https://me/sql --secrets people.csv --claim-epsilon 1

    Exit codes: 0 holds, 10 broken, 11 undecided; 2 usage, 4 data or files.
    """,
)

for command in (demo.demo, run.run, replay.replay, secrets.secrets):
    attack.command()(with_options(command))
