"""`farthing verify`: the books recomputed from their entries."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def verify(
    ledger: options.Ledger = None,
    *,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="A head noted earlier: it must still be in the chain.")
    ] = None,
    accept_head: Annotated[
        str | None,
        typer.Option(
            metavar="HASH", help="Go on with a ledger file that lost entries; names the head that it has now."
        ),
    ] = None,
    as_json: options.BareJson = False,
    config: options.LedgerConfig = None,
) -> None:
    """Recompute the books from their entries and check the hash chain.

    Exit code 0 when all agrees, 4 when the ledger was damaged or edited. Note
    the head that it prints in another place: with --head a later run also sees
    a ledger that was rewritten whole, or replaced by an older copy.

    A ledger file has a witness beside it, NAME-head, and one that lost entries
    is not opened. --accept-head goes on without them: what they had charged is
    forgotten, and the promise is broken by as much.

    Examples:
      farthing verify
      farthing verify flights.ledger --head 3f9a...
    """
    with explained(as_json=as_json):
        from farthing.cli.run.verify import verify

        verify(ledger, config, head=head, accept=accept_head, as_json=as_json)
