"""`farthing same-data`: the files of a table are the same data as before."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def same_data(*, config: options.LedgerConfig = None) -> None:
    """Say that the table's files were copied or touched, and not one row differs.

    Files that changed are refused, since what is charged under one version of
    the data assumes that nobody's rows moved. If rows did change, change
    version in farthing.toml instead.

    Examples:
      farthing same-data
    """
    with explained():
        from farthing.cli import show
        from farthing.cli.input import config as settings
        from farthing.cli.input.session import opened

        chosen = settings.read(config)
        with opened(chosen, same_data=True):
            show.say(f"the files of table {chosen.name}, version {chosen.version}, are known from now on")
