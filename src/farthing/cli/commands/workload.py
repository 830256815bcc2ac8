"""`farthing workload`: many questions from a file, as many as the budget allows."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.question import QuestionOptions
from farthing.cli.input.options.workload import WorkloadOptions


def workload(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Questions: .sql with ; between them, or .toml with \\[name] tables.")
    ],
    *,
    wanted: QuestionOptions,
    how: WorkloadOptions,
    config: options.ConfigPath = None,
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
    with explained(as_json=how.as_json):
        from farthing.cli.run.workload import workload

        workload(file, wanted, how, config)
