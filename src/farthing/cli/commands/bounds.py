"""`farthing bounds`: what the bounds of a question cut, estimated privately."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.bounds import BoundsOptions


def bounds(
    value: Annotated[
        str | None,
        typer.Argument(metavar="COLUMN", help="A numeric column or value, whose --lower and --upper are looked at."),
    ] = None,
    *,
    looked: BoundsOptions,
    as_json: options.Json = False,
    config: options.ConfigPath = None,
) -> None:
    """Estimate privately what bounds cut: shares of units, rows and value.

    Intervals of answers are about the bounded data; what the bounds cut is in
    none of them. The estimate is paid for once and kept: other bounds of the
    same question are looked at free of charge, and its answers warn by it.

    Examples:
      farthing bounds --max-rows 20
      farthing bounds fare --lower 0 --upper 200 --loss mu=0.02
      farthing bounds --by zone --max-groups 3 --max-rows 5 --json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.bounds import bounds

        bounds(value, looked, config, as_json=as_json)
