"""`farthing resume`: asks go on after failures."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def resume(*, config: options.LedgerConfig = None) -> None:
    """Let asks go on after two in a row have failed. It costs nothing.

    A failed ask stays charged. So that a damaged table does not use up the
    budget, nothing is charged after two failures in a row until you say so.
    See first that the table can be read.

    Examples:
      farthing resume
    """
    with explained():
        from farthing.cli import show
        from farthing.cli.input import config as settings
        from farthing.cli.input.session import opened

        with opened(settings.read(config)) as session:
            session.resume()
        show.say("the next asks go on: see `farthing history` for those that failed")
