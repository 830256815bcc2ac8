"""`farthing attack secrets`: people with random secrets, to load into the system to attack."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained


def secrets(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A .csv or .parquet file, which must not exist yet.")],
    *,
    n: Annotated[int, typer.Option("--n", metavar="200", min=1, help="How many people.")] = 200,
    attributes: Annotated[
        int, typer.Option(metavar="1000", min=0, help="Columns a1, a2, ... for the membership attack.")
    ] = 0,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Draw the same people again, for tests.")] = None,
) -> None:
    """Draw people with random secrets, to load into the system to attack.

    Columns: id, age, sex, area, and secret, a fair coin. Load the whole file
    into a table "people" of a copy of your system, and give the same file to
    `farthing attack run`, which scores its guesses by it.

    Examples:
      farthing attack secrets people.csv
      farthing attack secrets people.parquet --n 1000 --attributes 1000
    """
    with explained():
        from farthing.cli.run.attack import secrets

        secrets(path, n, attributes, seed)
