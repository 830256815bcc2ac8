"""The program: its commands, each from the file of its name in `commands`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from farthing.cli.commands import (
    allot,
    ask,
    attack,
    audit,
    bounds,
    check,
    compare,
    demo,
    export,
    freeze,
    groups,
    history,
    init,
    mcp,
    plan,
    publish,
    release,
    resume,
    same_data,
    select,
    serve,
    status,
    thaw,
    token,
    verify,
    version,
    workload,
)
from farthing.cli.failing import Program
from farthing.cli.input.options import with_options

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    demo.demo,
    init.init,
    ask.ask,
    plan.plan,
    check.check,
    bounds.bounds,
    workload.workload,
    select.select,
    release.release,
    publish.publish,
    status.status,
    history.history,
    export.export,
    verify.verify,
    allot.allot,
    freeze.freeze,
    thaw.thaw,
    same_data.same_data,
    resume.resume,
    serve.serve,
    mcp.mcp,
    groups.groups,
    compare.compare,
    audit.audit,
    version.version,
)
"""In the order of the help."""


def _version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        version.version()
        raise typer.Exit


@app.callback()
def farthing(
    *,
    shown: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Name the accuracy, get the answer, pay the least privacy loss for it.

    farthing answers SQL about a private table: counts, sums, averages,
    quantiles. You say how accurate the answers must be; it adds as much noise
    as that allows, keeps books of the privacy loss, and never spends more
    than the budget that was set once.

    Start here:
      farthing demo                  real flights, nothing to set up
      farthing init rides.parquet --epsilon 1 --delta 1e-6
      farthing ask "SELECT COUNT(*) FROM rides" --absolute 50
      farthing status                what was spent, and on what

    Exit codes: 0 answered, 2 usage, 3 refused by the budget,
    4 data, ledger or engine; of attack and audit 0 holds, 10 broken,
    11 undecided.
    """


for command in _COMMANDS:
    app.command()(with_options(command))
app.add_typer(token.token, name="token")
app.add_typer(attack.attack, name="attack")
