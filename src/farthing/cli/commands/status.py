"""`farthing status`: what was spent, what is left, and the history of questions."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def status(
    ledger: options.Ledger = None,
    *,
    as_json: options.BareJson = False,
    rows: options.LastEntries = None,
    wide: options.BareWide = False,
    config: options.LedgerConfig = None,
) -> None:
    """Show the books: total, spent, left, and the history of questions.

    An open reservation belongs to an ask that is running, or to one that died:
    its loss stays charged.

    Examples:
      farthing status
      farthing status flights.ledger --json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.status import status

        status(ledger, config, rows=rows, wide=wide, as_json=as_json)
