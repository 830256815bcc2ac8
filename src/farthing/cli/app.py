"""The commands and their options. Each command imports what it needs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli import attack, audit, compare, flags, groups, ledgers, questions, select, workload
from farthing.cli.failing import explained

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_TOTAL = "Budget, for all questions ever"


@app.callback()
def farthing() -> None:
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


@app.command()
def demo(
    *,
    as_json: flags.Json = False,
    chart: flags.Chart = None,
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
            rich_help_panel=flags.DATA,
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
    max_groups: flags.MaxGroups = None,
    max_rows: flags.MaxRows = None,
    keys: flags.Keys = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A table of public facts, to join and to take keys from; repeat it for each.",
            rich_help_panel=flags.DATA,
        ),
    ] = None,
    protected: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A further protected table, with the unit column, to join; repeat it for each.",
            rich_help_panel=flags.DATA,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The table's name in SQL. Default: from TABLE.", rich_help_panel=flags.DATA),
    ] = None,
    data_version: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Your name for this state of the data; change it with them.",
            rich_help_panel=flags.DATA,
        ),
    ] = "1",
    ledger: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The books. Default: NAME.ledger here.", rich_help_panel=flags.OUTPUT),
    ] = None,
    parquet: Annotated[
        bool,
        typer.Option("--parquet", help="Write a CSV as NAME.parquet, and use that.", rich_help_panel=flags.OUTPUT),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace farthing.toml; a ledger is never replaced.", rich_help_panel=flags.OUTPUT
        ),
    ] = False,
) -> None:
    r"""Write farthing.toml: the table, whose privacy, how much, which books.

    Opens the table and the ledger once to check all of it. The budget is for
    the lifetime of the ledger and cannot be raised later.

    Examples:
      farthing init visits.csv --epsilon 1 --delta 1e-6
      farthing init rides.parquet --unit rider_id --epsilon 1 --delta 1e-6 \
          --max-groups 5 --max-rows 20 --keys zone=@zones.csv:id
      farthing init flights.csv --epsilon 1 --delta 1e-6 \
          --public airports=airports.csv --keys dest=airports.faa
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
            public=public or (),
            protected=protected or (),
            name=name,
            version=data_version,
            parquet=parquet,
        )
        init(wish, force=force)


questions.register(app)
workload.register(app)
select.register(app)
ledgers.register(app)
groups.register(app)
compare.register(app)
audit.register(app)
attack.register(app)


@app.command()
def version() -> None:
    """Print the version."""
    from farthing import __version__

    typer.echo(__version__)
