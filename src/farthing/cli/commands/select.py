"""`farthing select`: the largest groups, chosen privately; or how a choice among public scores goes."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.select import SelectOptions


def select(
    by: Annotated[str | None, typer.Argument(metavar="COLUMN", help="The grouping column, or NAME=EXPRESSION.")] = None,
    *,
    asked: SelectOptions,
    as_json: options.Json = False,
    chart: options.Chart = None,
    config: options.ConfigPath = None,
) -> None:
    """Choose the largest groups privately: their names, best first where an order is told.

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
        from farthing.cli.run.select import select

        select(by, asked, config, as_json=as_json, chart=chart)
