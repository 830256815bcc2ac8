"""`farthing workload`: many questions from a file, as many as the budget allows."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli import flags
from farthing.cli.failing import explained
from farthing.cli.wanted import Wanted, with_options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_options(workload))


def workload(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Questions: .sql with ; between them, or .toml with [name] tables.")
    ],
    *,
    wanted: Wanted,
    order: Annotated[
        str,
        typer.Option(
            metavar="given", help="given: in the order of the file; cheapest: by price.", rich_help_panel=flags.PRICE
        ),
    ] = "given",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="each",
            help="each: every question to its target. together: share --cap among counts, so that the worst error, "
            "in targets, is small.",
            rich_help_panel=flags.PRICE,
        ),
    ] = "each",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Price all and ask nothing.", rich_help_panel=flags.PRICE)
    ] = False,
    as_json: flags.Json = False,
    rows: flags.Rows = None,
    config: flags.ConfigPath = None,
) -> None:
    r"""Answer as many questions of a file as the budget allows.

    All are read and priced before the first is asked. The options are those of
    ask, for every question; --cap and --max-epsilon are for all together.
    Exit code 3 says that some did not fit; it tells what they would cost.

    In a .sql file a comment names the statement after it: -- name: zones.
    In a .toml file each table is a question, and may have its own options:
      \[zones]
      sql = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
      absolute = 20

    Examples:
      farthing workload report.sql --relative 5% --absolute 50 --dry-run
      farthing workload report.toml --absolute 50 --order cheapest
      farthing workload report.sql --absolute 20 --strategy together \
          --cap mu=0.1
    """
    with explained(as_json=as_json):
        from farthing.cli.batch import How, workload

        workload(file, wanted, How(order, strategy, dry_run=dry_run, as_json=as_json, rows=rows), config)
