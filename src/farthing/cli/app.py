"""The commands and their options. Each command imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli import groups, ledgers
from farthing.cli.failing import explained

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_ACCURACY, _PRICE, _DATA, _OUTPUT = "Accuracy", "Price", "Data", "Output"
_TOTAL = "Budget, for all questions ever"

Relative = Annotated[
    str | None,
    typer.Option(
        metavar="5%", help="Error allowed as a part of the true answer: 5% or 0.05.", rich_help_panel=_ACCURACY
    ),
]
Absolute = Annotated[
    str | None,
    typer.Option(
        metavar="50",
        help="Error always allowed, in answer units. The larger of the two is the target.",
        rich_help_panel=_ACCURACY,
    ),
]
Confidence = Annotated[
    str | None,
    typer.Option(
        metavar="95%",
        help="How surely an interval holds its truth: 95% (default) or 0.95.",
        rich_help_panel=_ACCURACY,
    ),
]
Simultaneous = Annotated[
    bool,
    typer.Option(
        "--simultaneous",
        help="Hold the confidence for all groups at once, not for each.",
        rich_help_panel=_ACCURACY,
    ),
]
OnMiss = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="Groups that miss the target: return them marked (default), drop them, or raise (exit code 3).",
        rich_help_panel=_ACCURACY,
    ),
]
MaxEpsilon = Annotated[
    str | None,
    typer.Option(metavar="0.2", help="The most epsilon that this question may cost.", rich_help_panel=_PRICE),
]
Cap = Annotated[
    str | None,
    typer.Option(
        metavar="all",
        help="The most that it may cost: all that is left, or mu=0.1. Default: a tenth of the budget.",
        rich_help_panel=_PRICE,
    ),
]
NamedLoss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="mu=0.05",
        help="Name the price instead of the accuracy: mu=, rho= or epsilon=.",
        rich_help_panel=_PRICE,
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--keys",
        metavar="COL=...",
        help="Public groups of a column: dest=ATL,ORD or month=1..12 or dest=@airports.csv:faa. NULL is the key of "
        "missing values. Repeat it for each column of GROUP BY.",
        rich_help_panel=_DATA,
    ),
]
MaxGroups = Annotated[
    int | None,
    typer.Option(metavar="N", help="Count each privacy unit in at most N groups.", rich_help_panel=_DATA),
]
MaxRows = Annotated[
    int | None,
    typer.Option(metavar="N", help="Count at most N rows of a unit in each group.", rich_help_panel=_DATA),
]
ConfigPath = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="PATH", help="The settings to use. Default: farthing.toml here.", rich_help_panel=_DATA
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.", rich_help_panel=_OUTPUT)]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV on stdout, the price on stderr.", rich_help_panel=_OUTPUT)]
Chart = Annotated[
    str | None,
    typer.Option("--chart", metavar="FILE", help="Draw it into an .svg, .png or .html file.", rich_help_panel=_OUTPUT),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="N",
        help="Show the N largest answers, or all. Default: 30 on a terminal, all in a pipe.",
        rich_help_panel=_OUTPUT,
    ),
]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT with COUNT(*); WHERE and GROUP BY if you like.")]


@app.callback()
def farthing() -> None:
    """Name the accuracy, get the answer, pay the least privacy loss for it.

    farthing counts rows of a private table. You say how accurate the counts
    must be; it adds as much noise as that allows, keeps books of the privacy
    loss, and never spends more than the budget that was set once.

    Start here:
      farthing demo                  real flights, nothing to set up
      farthing init rides.parquet --epsilon 1 --delta 1e-6
      farthing ask "SELECT COUNT(*) FROM rides" --absolute 50
      farthing status                what was spent, and on what

    Exit codes: 0 answered, 2 usage, 3 refused by the budget,
    4 data, ledger or engine.
    """


@app.command()
def demo(
    *,
    as_json: Json = False,
    chart: Chart = None,
    keep: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep the demo's two ledgers in this folder.")
    ] = None,
) -> None:
    r"""Ask real flights for counts at a named accuracy; watch the price.

    Takes the flights from New York in 2013 as if they were private. Counts the
    flights to every airport, asks again (free), asks twice as accurately (pays
    the difference), then hides whole planes instead of single flights.

    Needs the demo extra: python -m pip install 'farthing\[demo]'

    Examples:
      farthing demo
      farthing demo --chart flights.svg
      farthing demo --json > demo.json
    """
    with explained(as_json=as_json):
        from farthing.cli.demo import demo

        demo(as_json=as_json, chart=chart, keep=keep)


@app.command()
def init(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A Parquet or CSV file, or a quoted pattern.")],
    *,
    unit: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Whose privacy: a column (a person, a plane), or row if each row is somebody.",
            rich_help_panel=_DATA,
        ),
    ] = "row",
    epsilon: Annotated[str | None, typer.Option(metavar="1", help="The total epsilon.", rich_help_panel=_TOTAL)] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="1e-6", help="The delta that goes with it.", rich_help_panel=_TOTAL)
    ] = None,
    rho: Annotated[
        str | None, typer.Option(metavar="X", help="A total in zCDP, in place of epsilon.", rich_help_panel=_TOTAL)
    ] = None,
    mu: Annotated[
        str | None,
        typer.Option(metavar="X", help="A total in Gaussian DP, in place of epsilon.", rich_help_panel=_TOTAL),
    ] = None,
    keys_delta: Annotated[
        str | None,
        typer.Option(
            metavar="X", help="A part of delta to set aside for keys found privately.", rich_help_panel=_TOTAL
        ),
    ] = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    keys: Keys = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table's name in SQL. Default: from TABLE.", rich_help_panel=_DATA),
    ] = None,
    data_version: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Your name for this state of the data; change it with them.", rich_help_panel=_DATA
        ),
    ] = "1",
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="The books. Default: NAME.ledger here.", rich_help_panel=_OUTPUT)
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace farthing.toml; a ledger is never replaced.", rich_help_panel=_OUTPUT),
    ] = False,
) -> None:
    r"""Write farthing.toml: the table, whose privacy, how much, which books.

    Opens the table and the ledger once to check all of it. The budget is for
    the lifetime of the ledger and cannot be raised later.

    Examples:
      farthing init visits.csv --epsilon 1 --delta 1e-6
      farthing init rides.parquet --unit rider_id --epsilon 1 --delta 1e-6 \
          --max-groups 5 --max-rows 20 --keys zone=@zones.csv:id
    """
    with explained():
        from farthing.cli.init import Promise, Wish, init

        wish = Wish(
            table,
            Promise(epsilon=epsilon, delta=delta, rho=rho, mu=mu, keys_delta=keys_delta),
            unit=unit,
            max_groups=max_groups,
            max_rows=max_rows,
            ledger=ledger,
            keys=keys or (),
            name=name,
            version=data_version,
        )
        init(wish, force=force)


@app.command()
def ask(
    sql: Sql,
    *,
    relative: Relative = None,
    absolute: Absolute = None,
    confidence: Confidence = None,
    simultaneous: Simultaneous = False,
    loss: NamedLoss = None,
    max_epsilon: MaxEpsilon = None,
    cap: Cap = None,
    on_miss: OnMiss = None,
    keys: Keys = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    as_json: Json = False,
    as_csv: Csv = False,
    chart: Chart = None,
    rows: Rows = None,
    config: ConfigPath = None,
) -> None:
    r"""Answer a question at the accuracy you name, and pay for it.

    The same question again is free; more accurately, it costs the difference.

    Examples:
      farthing ask "SELECT COUNT(*) FROM rides WHERE fare > 20" --absolute 50
      farthing ask "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest" \
          --keys dest=@airports.csv:faa --relative 5% --absolute 50
    """
    with explained(as_json=as_json):
        from farthing.cli.asking import Output, ask
        from farthing.cli.opening import Wanted

        wanted = Wanted(
            relative=relative,
            absolute=absolute,
            confidence=confidence,
            simultaneous=simultaneous,
            loss=loss,
            max_epsilon=max_epsilon,
            cap=cap,
            on_miss=on_miss,
            max_groups=max_groups,
            max_rows=max_rows,
            keys=keys or (),
        )
        ask(sql, wanted, Output(as_json=as_json, as_csv=as_csv, chart=chart, rows=rows), config)


@app.command()
def plan(
    sql: Sql,
    *,
    relative: Relative = None,
    absolute: Absolute = None,
    confidence: Confidence = None,
    simultaneous: Simultaneous = False,
    loss: NamedLoss = None,
    max_epsilon: MaxEpsilon = None,
    cap: Cap = None,
    on_miss: OnMiss = None,
    keys: Keys = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    as_json: Json = False,
    config: ConfigPath = None,
) -> None:
    """Say what a question would cost, before it is paid. Free.

    Shows the worst price, the price by group size, and what would fit.

    Example:
      farthing plan "SELECT COUNT(*) FROM rides" --relative 1% --absolute 20
    """
    with explained(as_json=as_json):
        from farthing.cli.asking import plan
        from farthing.cli.opening import Wanted

        wanted = Wanted(
            relative=relative,
            absolute=absolute,
            confidence=confidence,
            simultaneous=simultaneous,
            loss=loss,
            max_epsilon=max_epsilon,
            cap=cap,
            on_miss=on_miss,
            max_groups=max_groups,
            max_rows=max_rows,
            keys=keys or (),
        )
        plan(sql, wanted, config, as_json=as_json)


ledgers.register(app)
groups.register(app)


@app.command()
def version() -> None:
    """Print the version."""
    from farthing import __version__

    typer.echo(__version__)
