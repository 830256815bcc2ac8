"""`farthing plan`: what a question would cost."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.question import QuestionOptions


def plan(
    sql: options.Sql,
    *,
    wanted: QuestionOptions,
    allotment: options.Allotment = None,
    as_json: options.Json = False,
    config: options.ConfigPath = None,
) -> None:
    """Say what a question would cost, before it is paid. Free.

    Shows the worst price, the price by group size, and what would fit. The
    questions and options are those of ask.

    Example:
      farthing plan "SELECT COUNT(*) FROM rides" --relative 1% --absolute 20
    """
    with explained(as_json=as_json):
        from farthing.cli.run.plan import plan

        plan(sql, wanted, config, allotment=allotment, as_json=as_json)
