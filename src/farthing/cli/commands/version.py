"""`farthing version`."""

from __future__ import annotations

import typer


def version() -> None:
    """Print the version."""
    from farthing import __version__

    typer.echo(__version__)
