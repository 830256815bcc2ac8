"""`farthing version`."""

from __future__ import annotations

import typer

from farthing.version import VERSION


def version() -> None:
    """Print the version."""
    typer.echo(VERSION)
