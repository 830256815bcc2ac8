"""`farthing demo`: the main job, end to end, on real flights."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def demo(
    *,
    as_json: options.Json = False,
    chart: options.Chart = None,
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
        from farthing.cli.run.demo import demo

        demo(as_json=as_json, chart=chart, keep=keep)
