"""The commands that ask: ask, plan, bounds. Each imports what it needs when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import flags
from farthing.cli.failing import explained
from farthing.cli.wanted import Wanted, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT of aggregates over the protected table.")]


def register(app: typer.Typer) -> None:
    """Add the commands that ask."""
    commands: tuple[Callable[..., None], ...] = (with_options(ask), with_options(plan), bounds)
    for command in commands:
        app.command()(command)


def ask(
    sql: Sql,
    *,
    wanted: Wanted,
    as_json: flags.Json = False,
    as_csv: flags.Csv = False,
    chart: flags.Chart = None,
    column: flags.ChartColumn = None,
    rows: flags.Rows = None,
    trace: flags.Trace = False,
    trace_chart: flags.TraceChart = None,
    config: flags.ConfigPath = None,
) -> None:
    r"""Answer a question at the accuracy you name, and pay for it.

    The same question again is free; more accurately, it costs about the
    difference. Quantiles are asked afresh.

    Count, sum, average, or rank; several at once, each at its own accuracy:
      farthing ask "SELECT COUNT(*) FROM rides WHERE fare > 20" --absolute 50
      farthing ask "SELECT COUNT(*) AS n, AVG(CLAMP(fare, 0, 200)) AS fare \
          FROM rides" --absolute n=50 --absolute fare=0.5
      farthing ask "SELECT MEDIAN(fare) FROM rides" --lower 0 --upper 200 \
          --rank 1%
    Also COUNT(x), COUNT(DISTINCT unit), SUM, VARIANCE, STDDEV, MIN, MAX and
    QUANTILE(x, 0.9). CLAMP, or --lower and --upper, say how much one value
    may weigh.

    By groups, which you list since which ones exist is private:
      farthing ask "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest" \
          --keys dest=@airports.csv:faa --relative 5% --absolute 50
      farthing ask "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n \
          FROM rides GROUP BY month" --keys month=2013-01..2013-12 \
          --absolute 50
      farthing ask "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone \
          HAVING n > 100 ORDER BY n DESC LIMIT 5" --keys private --absolute 50

    Joined with tables that farthing.toml declares:
      farthing ask "SELECT a.tz, COUNT(*) AS n FROM flights \
          JOIN airports a ON dest = a.faa GROUP BY a.tz" \
          --keys tz=airports.tz --absolute 50

    Its price alone, which is free; and GoogleSQL as pasted:
      farthing ask "EXPLAIN SELECT COUNT(*) FROM rides" --absolute 50
      farthing ask "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) \
          COUNT(*) AS n FROM rides"
    """
    with explained(as_json=as_json):
        from farthing.cli.asking import Output, ask

        shape = Output(as_json, as_csv, chart, column, rows, trace=trace, trace_chart=trace_chart)
        ask(sql, wanted, shape, config)


def plan(sql: Sql, *, wanted: Wanted, as_json: flags.Json = False, config: flags.ConfigPath = None) -> None:
    """Say what a question would cost, before it is paid. Free.

    Shows the worst price, the price by group size, and what would fit. The
    questions and options are those of ask.

    Example:
      farthing plan "SELECT COUNT(*) FROM rides" --relative 1% --absolute 20
    """
    with explained(as_json=as_json):
        from farthing.cli.asking import plan

        plan(sql, wanted, config, as_json=as_json)


def bounds(
    value: Annotated[
        str | None,
        typer.Argument(metavar="COLUMN", help="A numeric column or value, whose --lower and --upper are looked at."),
    ] = None,
    *,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            metavar="mu=0.02",
            help="What it may cost: mu= or rho=. Default: a hundredth of the budget.",
            rich_help_panel=flags.PRICE,
        ),
    ] = None,
    confidence: flags.Confidence = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL",
            help="A column of the question's GROUP BY, or NAME=EXPRESSION; repeat it for each.",
            rich_help_panel=flags.DATA,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="The question's WHERE, as in 'fare > 2'.", rich_help_panel=flags.DATA),
    ] = None,
    keys: flags.Keys = None,
    max_groups: flags.MaxGroups = None,
    max_rows: flags.MaxRows = None,
    lower: flags.Lower = None,
    upper: flags.Upper = None,
    as_json: flags.Json = False,
    config: flags.ConfigPath = None,
) -> None:
    """Estimate privately what bounds cut: shares of units, rows and value.

    Intervals of answers are about the bounded data; what the bounds cut is in
    none of them. The estimate is paid for once and kept: other bounds of the
    same question are looked at for nothing, and its answers warn by it.

    Examples:
      farthing bounds --max-rows 20
      farthing bounds fare --lower 0 --upper 200 --loss mu=0.02
      farthing bounds --by zone --max-groups 3 --max-rows 5 --json
    """
    with explained(as_json=as_json):
        from farthing.cli.cutting import Looked, bounds

        wanted = Wanted(keys=keys, max_groups=max_groups, max_rows=max_rows, lower=lower, upper=upper)
        bounds(Looked(value, tuple(by or ()), where, loss, confidence), wanted, config, as_json=as_json)
