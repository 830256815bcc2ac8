"""The commands about the books: status, history, export, verify, allot, same-data and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli.failing import explained

if TYPE_CHECKING:
    from collections.abc import Callable

Place = Annotated[
    str | None,
    typer.Argument(metavar="LEDGER", help="A file, a PostgreSQL URL or a .toml. Default: farthing.toml here."),
]
Settings = Annotated[
    str | None, typer.Option("--config", metavar="PATH", help="The settings to use. Default: farthing.toml here.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Last = Annotated[str | None, typer.Option(metavar="N", help="Show the last N entries, or all. Default: 20.")]


def register(app: typer.Typer) -> None:
    """Add the commands about the books."""
    commands: tuple[Callable[..., None], ...] = (status, history, export, verify, allot, same_data, resume)
    for command in commands:
        app.command()(command)


def status(ledger: Place = None, *, as_json: Json = False, rows: Last = None, config: Settings = None) -> None:
    """Show the books: total, spent, left, and the history of questions.

    An open reservation belongs to an ask that is running, or to one that died:
    its loss stays charged.

    Examples:
      farthing status
      farthing status flights.ledger --json
    """
    with explained(as_json=as_json):
        from farthing.cli.books import status

        status(ledger, config, rows=rows, as_json=as_json)


def history(ledger: Place = None, *, as_json: Json = False, rows: Last = None, config: Settings = None) -> None:
    """Show who asked what, when, at which target, and paid what.

    Examples:
      farthing history
      farthing history postgresql+psycopg://user@127.0.0.1/db --rows all
    """
    with explained(as_json=as_json):
        from farthing.cli.books import history

        history(ledger, config, rows=rows, as_json=as_json)


def export(
    ledger: Place = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with everything (the default).")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV, one line an entry.")] = False,
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write a new file. Default: stdout.")] = None,
    config: Settings = None,
) -> None:
    """Write the whole history, however long, as JSON or CSV.

    Everything but the ledger's secret: terms, entries with the links of their
    chain, allotments. Released measurements are not part of it.

    Examples:
      farthing export --csv --out history.csv
      farthing export flights.ledger > history.json
    """
    with explained(as_json=as_json):
        from farthing.cli.books import export

        export(ledger, config, as_json=as_json, as_csv=as_csv, out=out)


def verify(
    ledger: Place = None,
    *,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head noted earlier: it must still be in the chain.")
    ] = None,
    accept_head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH", help="Go on with a ledger file that lost entries; names the head that it has now."
        ),
    ] = None,
    as_json: Json = False,
    config: Settings = None,
) -> None:
    """Recompute the books from their entries and check the hash chain.

    Exit code 0 when all agrees, 4 when the ledger was damaged or edited. Note
    the head that it prints in another place: with --head a later run also sees
    a ledger that was rewritten whole, or replaced by an older copy.

    A ledger file has a witness beside it, NAME-head, and one that lost entries
    is not opened. --accept-head goes on without them: what they had charged is
    forgotten, and the promise is broken by as much.

    Examples:
      farthing verify
      farthing verify flights.ledger --head 3f9a...
    """
    with explained(as_json=as_json):
        from farthing.cli.books import verify

        verify(ledger, config, head=head, accept=accept_head, as_json=as_json)


def allot(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An analyst or a project.")],
    share: Annotated[str, typer.Argument(metavar="SHARE", help="A part of the budget, 20%, or a loss, mu=0.05.")],
    ledger: Place = None,
    *,
    as_json: Json = False,
    config: Settings = None,
) -> None:
    """Give somebody a share of the budget, or change it.

    All shares draw on the one total, so together they can never pass it. A
    share is for the lifetime of the ledger.

    Examples:
      farthing allot alice 20%
      farthing allot census mu=0.05 flights.ledger
    """
    with explained(as_json=as_json):
        from farthing.cli.books import allot

        allot(name, share, ledger, config, as_json=as_json)


def same_data(*, config: Settings = None) -> None:
    """Say that the table's files were copied or touched, and not one row differs.

    Files that changed are refused, since what is charged under one version of
    the data assumes that nobody's rows moved. If rows did change, change
    version in farthing.toml instead.

    Examples:
      farthing same-data
    """
    with explained():
        from farthing.cli.books import same_data

        same_data(config)


def resume(*, config: Settings = None) -> None:
    """Let asks go on after two in a row have failed. It costs nothing.

    A failed ask stays charged. So that a damaged table does not use up the
    budget, nothing is charged after two failures in a row until you say so.
    See first that the table can be read.

    Examples:
      farthing resume
    """
    with explained(as_json=False):
        from farthing.cli.books import resume

        resume(config)
