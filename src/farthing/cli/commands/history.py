"""`farthing history`: who asked what, when, and paid what."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def history(
    ledger: options.Ledger = None,
    *,
    as_json: options.BareJson = False,
    rows: options.LastEntries = None,
    wide: options.BareWide = False,
    config: options.LedgerConfig = None,
) -> None:
    """Show who asked what, when, at which target, and paid what.

    Examples:
      farthing history
      farthing history postgresql+psycopg://user@127.0.0.1/db --rows all
    """
    with explained(as_json=as_json):
        from farthing.cli.run.history import history

        history(ledger, config, rows=rows, wide=wide, as_json=as_json)
