"""`farthing attack run`: attack one system, and say whether it keeps what it claims."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options
from farthing.cli.input.options.attack import AttackOptions


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="An http(s) URL, a database URL, module:function, farthing.toml or its folder, or a built-in name.",
        ),
    ],
    *,
    order: AttackOptions,
    as_json: options.Json = False,
    chart: options.Chart = None,
) -> None:
    """Attack one system, and say whether it keeps what it claims.

    Guesses the secrets of people whose secrets were drawn by coin tosses, from
    the system's answers alone. So many right guesses either fit the claim or
    refute it: "broken" is wrong at most once in a thousand runs. Without a
    claim the system is judged against epsilon 1 for one secret.

    A farthing.toml is attacked with its whole budget, on books in memory: the
    ledger is left alone.

    Built-in: exact, rounded, suppressed, subsample, fresh-noise, diffix-birch,
    diffix-cedar, diffix-dogwood, honest, leaky-ledger, off-by-two, float-noise,
    farthing.

    Examples:
      farthing attack secrets people.csv
      farthing attack run https://me/sql --secrets people.csv --claim-epsilon 1
      farthing attack run postgresql+psycopg://me@host/db --secrets people.csv
      farthing attack run mine:answer --secrets people.csv --attack linear --json
      farthing attack run rounded --chart rounded.svg
    """
    with explained(as_json=as_json):
        from farthing.cli.run.attack import run

        code = run(target, order, as_json=as_json, chart=chart)
    raise typer.Exit(code)
