"""What groups are compared, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import typer

MECHANISMS: Final = ("gaussian", "two-stage", "sqrt", "log", "linear-log", "asinh")
"""The names of `--mechanism`, in the order of the table."""


@dataclass(frozen=True, slots=True)
class GroupsOptions:
    """What was typed; None for what was left out."""

    relative: Annotated[str, typer.Option(metavar="10%", help="Error allowed as a part of the size: 10% or 0.1.")]
    sizes: Annotated[str | None, typer.Option(metavar="1,10,100", help="Sizes of groups.")] = None
    csv: Annotated[
        str | None,
        typer.Option(metavar="FILE:COLUMN", help="Sizes from a CSV file; public or released ones."),
    ] = None
    x0: Annotated[
        str, typer.Option("--x0", metavar="50", help="Below this size, the absolute error of this size is fine.")
    ] = "1"
    metric: Annotated[
        str, typer.Option(metavar="mae", help="mae (mean absolute error), rmse, or a confidence such as 95%.")
    ] = "mae"
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Repeat it, or leave it out for all: {', '.join(MECHANISMS)}."),
    ] = None
