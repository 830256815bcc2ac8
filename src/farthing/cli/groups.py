"""`farthing groups`: what members of small and large groups pay, by mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from farthing.cli.failing import explained

MECHANISMS: Final = ("gaussian", "two-stage", "sqrt", "log", "linear-log", "asinh")
"""The names of `--mechanism`, in the order of the table."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed.

    Attributes:
        sizes: sizes with commas between them, or None.
        csv: FILE or FILE:COLUMN of sizes, or None.
        relative: the relative error, 10% or 0.1.
        x0: the size below which an absolute error is fine.
        metric: mae, rmse, or a confidence.
        mechanisms: names; none for all.
    """

    sizes: str | None
    csv: str | None
    relative: str
    x0: str
    metric: str
    mechanisms: tuple[str, ...]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(groups)


def groups(
    *,
    relative: Annotated[str, typer.Option(metavar="10%", help="Error allowed as a part of the size: 10% or 0.1.")],
    sizes: Annotated[str | None, typer.Option(metavar="1,10,100", help="Sizes of groups.")] = None,
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE:COLUMN", help="Sizes from a CSV file; public or released ones."),
    ] = None,
    x0: Annotated[
        str, typer.Option("--x0", metavar="50", help="Below this size, the absolute error of this size is fine.")
    ] = "1",
    metric: Annotated[
        str, typer.Option(metavar="mae", help="mae (mean absolute error), rmse, or a confidence such as 95%.")
    ] = "mae",
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Repeat it, or leave it out for all: {', '.join(MECHANISMS)}."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    chart: Annotated[
        str | None, typer.Option("--chart", metavar="FILE", help="Draw it into an .svg, .png or .html file.")
    ] = None,
) -> None:
    """Show what a member of a group pays, by the size of the group.

    Every mechanism is set to the same relative error. The table says what each
    costs a member of a group of each size, in zCDP, next to a Gaussian that knows
    the size, and the least that an unbiased mechanism can cost. Spends nothing.

    Examples:
      farthing groups --sizes 1,10,100,1000 --relative 0.1
      farthing groups --csv zones.csv:riders --relative 5% --x0 50
    """
    with explained(as_json=as_json):
        from farthing.cli.comparing import groups

        asked = Asked(sizes, csv, relative, x0, metric, tuple(mechanism or ()))
        groups(asked, as_json=as_json, chart=chart)
