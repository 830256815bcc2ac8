"""`farthing select`: the largest groups, chosen privately; or how a choice among public scores goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli import flags
from farthing.cli.failing import explained
from farthing.cli.wanted import Wanted

CHOICE = "Choice"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which groups are wanted and how surely, as it was typed; None for what was left out.

    Attributes:
        by: the grouping column, or NAME=EXPRESSION.
        k: how many.
        within, order_correct, confidence, epsilon: how surely.
        value: what is added up; None counts rows.
        where: the rows that count.
        scores: public scores with commas between them, in place of the table.
        sensitivity: the most that one unit moves a score.
        monotone: whether it moves all of them the same way.
    """

    by: str | None
    k: str
    within: str | None
    order_correct: str | None
    confidence: str | None
    epsilon: str | None
    value: str | None
    where: str | None
    scores: str | None
    sensitivity: str
    monotone: bool


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(select)


def select(
    by: Annotated[str | None, typer.Argument(metavar="COLUMN", help="The grouping column, or NAME=EXPRESSION.")] = None,
    *,
    k: Annotated[str, typer.Option("-k", metavar="10", help="How many groups.", rich_help_panel=CHOICE)] = "10",
    within: Annotated[
        str | None,
        typer.Option(
            metavar="50", help="How far below the true rank k a chosen group may be.", rich_help_panel=flags.ACCURACY
        ),
    ] = None,
    order_correct: Annotated[
        str | None,
        typer.Option(
            metavar="95%",
            help="Refine counts until released intervals prove the order, this surely.",
            rich_help_panel=flags.ACCURACY,
        ),
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            metavar="95%", help="How surely --within holds: 95% (default) or 0.95.", rich_help_panel=flags.ACCURACY
        ),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="0.1", help="Name the price of each of the k choices instead.", rich_help_panel=flags.PRICE
        ),
    ] = None,
    max_epsilon: flags.MaxEpsilon = None,
    cap: flags.Cap = None,
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rank by the sum of this, not by rows.", rich_help_panel=flags.DATA),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="A WHERE, as in 'fare > 2'.", rich_help_panel=flags.DATA)
    ] = None,
    keys: flags.Keys = None,
    max_groups: flags.MaxGroups = None,
    max_rows: flags.MaxRows = None,
    lower: flags.Lower = None,
    upper: flags.Upper = None,
    scores: Annotated[
        str | None,
        typer.Option(metavar="120,100,90", help="Public scores: show how a choice goes.", rich_help_panel=CHOICE),
    ] = None,
    sensitivity: Annotated[
        str,
        typer.Option(metavar="1", help="With --scores: the most a unit moves a score.", rich_help_panel=CHOICE),
    ] = "1",
    monotone: Annotated[
        bool,
        typer.Option("--monotone", help="With --scores: a unit moves all the same way.", rich_help_panel=CHOICE),
    ] = False,
    as_json: flags.Json = False,
    chart: flags.Chart = None,
    config: flags.ConfigPath = None,
) -> None:
    """Choose the largest groups privately: their names, best first.

    Numbers do not leave, so it costs little where a unit is in many groups.
    With --scores it opens no table and spends nothing: it shows how likely each
    option is chosen, by the exponential mechanism and by permute and flip.

    Examples:
      farthing select zone -k 3 --within 200
      farthing select zone -k 3 --value fare --lower 0 --upper 200 --epsilon 0.1
      farthing select page --keys private --epsilon 0.1
      farthing select --scores 120,100,90 --epsilon 0.1 --chart choice.svg
    """
    with explained(as_json=as_json):
        from farthing.cli.selecting import select

        asked = Asked(by, k, within, order_correct, confidence, epsilon, value, where, scores, sensitivity, monotone)
        wanted = Wanted(keys=keys, max_groups=max_groups, max_rows=max_rows, lower=lower, upper=upper, cap=cap,
                        max_epsilon=max_epsilon)  # fmt: skip
        select(asked, wanted, config, as_json=as_json, chart=chart)
