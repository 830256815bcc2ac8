"""`farthing publish`: a folder of tables with a statement, from one file of questions."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.publish import PublishOptions
from farthing.cli.input.options.question import QuestionOptions


def publish(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The questions, as for workload.")],
    *,
    wanted: QuestionOptions,
    how: PublishOptions,
    config: options.ConfigPath = None,
) -> None:
    r"""Make a folder of tables with a statement about privacy, from a file of questions.

    All questions must fit in the budget, or nothing is asked. The folder has each
    table as CSV and Parquet, statement.html for people, record.json for registries
    and SHA256SUMS. It is there whole or not at all. The same file again is free
    and makes the same bytes.

    In a .toml file a table \[publication] has title, description, purpose,
    curators, region, sector and sources; a question may have
      adds_to = "all"     its rows are to add up to those of that question
      whole = true        counts as whole numbers
      nonnegative = true  nothing below zero; the statement tells the bias

    Examples:
      farthing publish report.toml --relative 5% --absolute 50 --to published
      farthing publish report.sql --absolute 50 --to published --dry-run
    """
    with explained(as_json=how.as_json):
        from farthing.cli.run.publish import publish

        publish(file, wanted, how, config)
